/* First fit and best fit in one arena without a bound (Knuth, "The Art of Computer Programming" 1,
 * 2.5): exact splits and immediate merges. Both share everything but the order of the free blocks.
 *
 * 1. Every byte of the arena belongs to one range: used, free, or a gap in the supply. The ranges
 *    form a list in the order of addresses. The free blocks are also in a tree, by address for
 *    first fit and by size for best fit.
 * 2. A request is rounded up to the granule. It takes the first free block in the order of the tree
 *    that holds it, aligned. Without an alignment this is one descent; with one, blocks that are
 *    large enough but not aligned are skipped one by one.
 * 3. The used block starts at the lowest aligned address of the free block. The rests before and
 *    after it stay free.
 * 4. If no free block is large enough, the top of the arena moves up by exactly the missing bytes;
 *    a free block that ends there is used first. With `wilderness`, this last block counts as part
 *    of the unlimited space above: it is the loosest fit and serves only if no other block does
 *    ("wilderness preservation": Korn and Vo, "In search of a better malloc", 1985).
 * 5. A freed block merges with free neighbours on both sides at once. The arena shrinks only by
 *    `trim`, which releases whole supply pieces at its top.
 *
 * The supply of memory:
 * 6. On a backing with virtual memory, the first request reserves a range as large as the device,
 *    and pages are mapped at the top as the arena grows.
 * 7. On other backings, driver allocations are taken that touch the one before (the profile `bump`
 *    gives such). If one does not touch, it is freed, and one that holds the request alone is
 *    taken: the arena then has a gap.
 * 8. Pages may be unmapped only when the work that uses them is done, so the streams seen so far
 *    are waited for first. A driver free waits by itself. */
#include "allocators/base/array.h"
#include "allocators/base/range_tree.h"
#include "allocators/base/size.h"
#include "allocators/policy.h"

/* ---- the supply: rules 6 to 8 ---------------------------------------------------------------- */

/* The size of the range if the device reports none: more than any card or host has. */
#define RANGE_MOST_BYTES (UINT64_C(1) << 44)

/* One driver allocation, or one handle mapped into the range. */
struct supply_piece {
    uint64_t address, bytes;
    ar_backing_handle handle;
};

struct supply {
    struct ar_backing *backing;
    struct ar_host *host;
    uint64_t range_address, range_bytes; /* reserved addresses; 0 bytes: none yet */
    struct supply_piece *pieces;         /* by address */
    uint32_t count, room;
    uint32_t streams; /* above all streams that used the memory */
};

static bool paged(const struct supply *self)
{
    return self->backing->page_bytes != 0;
}

/* UNSUPPORTED: the backing has neither virtual memory nor segments that may touch. */
static enum ar_status supply_open(struct supply *self, const struct ar_policy_context *context,
                                  const char *owner, struct ar_error *error)
{
    *self = (struct supply){.backing = context->backing, .host = context->host};
    if (paged(self) || context->backing->adjacent)
        return AR_OK;
    return ar_error_set(error, AR_UNSUPPORTED,
                        "policy %s keeps one arena that grows, and this device offers neither "
                        "virtual memory nor allocations that touch; run it on sim",
                        owner);
}

static enum ar_status reserve_range(struct supply *self)
{
    if (self->range_bytes)
        return AR_OK;
    uint64_t page = self->backing->page_bytes;
    uint64_t free_bytes;
    uint64_t bytes;
    ar_backing_memory(self->backing, &free_bytes, &bytes);
    if (bytes == 0 || bytes > RANGE_MOST_BYTES)
        bytes = RANGE_MOST_BYTES;
    bytes = (bytes + page - 1) / page * page;
    AR_TRY(ar_backing_reserve(self->backing, bytes, &self->range_address));
    self->range_bytes = bytes;
    return AR_OK;
}

/* The end of the last piece: the first byte without memory. */
static uint64_t supplied_end(const struct supply *self)
{
    if (!self->count)
        return self->range_address;
    const struct supply_piece *last = &self->pieces[self->count - 1];
    return last->address + last->bytes;
}

/* Maps what is missing below `end` as one handle. */
static enum ar_status map_up_to(struct supply *self, uint64_t end)
{
    struct ar_backing *backing = self->backing;
    struct supply_piece *piece = &self->pieces[self->count];
    uint64_t from = supplied_end(self);
    if (end <= from)
        return AR_OK;
    piece->bytes = ar_size_round_up(end - from, backing->page_bytes);
    if (from + piece->bytes > self->range_address + self->range_bytes)
        return AR_REFUSED;
    piece->address = from;
    AR_TRY(ar_backing_create(backing, piece->bytes, &piece->handle));
    enum ar_status status = ar_backing_map(backing, from, piece->handle);
    if (!status) {
        status = ar_backing_access(backing, from, piece->bytes);
        if (!status) {
            self->count++;
            return AR_OK;
        }
        if (ar_backing_unmap(backing, from, piece->bytes))
            return AR_CORRUPT;
    }
    return ar_backing_destroy(backing, piece->handle) ? AR_CORRUPT : status;
}

static enum ar_status grow_segments(struct supply *self, uint64_t *top, uint64_t bytes,
                                    uint64_t apart, uint64_t most_apart)
{
    struct supply_piece *piece = &self->pieces[self->count];
    AR_TRY(ar_backing_segment_alloc(self->backing, bytes, &piece->address));
    piece->bytes = bytes;
    bool touches = self->count == 0 || piece->address == *top;
    if (!touches) {
        if (ar_backing_segment_free(self->backing, piece->address))
            return AR_CORRUPT;
        if (apart > most_apart)
            return AR_REFUSED;
        AR_TRY(ar_backing_segment_alloc(self->backing, apart, &piece->address));
        piece->bytes = apart;
        if (piece->address < *top)
            return ar_backing_segment_free(self->backing, piece->address) ? AR_CORRUPT : AR_REFUSED;
    }
    *top = piece->address;
    self->count++;
    return AR_OK;
}

/* Obtains [*top, *top + bytes). If the memory does not touch the top, obtains `apart` bytes above
 * it and writes their start to *top. REFUSED: no memory, nothing has changed. */
static enum ar_status supply_grow(struct supply *self, uint64_t *top, uint64_t bytes,
                                  uint64_t apart, uint64_t most_apart)
{
    if (self->count == self->room &&
        !ar_host_extend(self->host, &self->pieces, &self->room, self->room + self->room / 2 + 8,
                        sizeof *self->pieces))
        return AR_HOST_MEMORY;
    if (!paged(self))
        return grow_segments(self, top, bytes, apart, most_apart);
    AR_TRY(reserve_range(self));
    /* The arena is empty at the first call, and after a first call that was refused. */
    if (!self->count)
        *top = self->range_address;
    return map_up_to(self, *top + bytes);
}

static void wait_for_work(struct supply *self)
{
    ar_backing_wait_streams(self->backing, self->streams);
    self->streams = 0;
}

/* Releases the last piece if it starts at `floor` or above. REFUSED: there is none. */
static enum ar_status supply_shrink(struct supply *self, uint64_t floor, uint64_t *new_end)
{
    if (!self->count || self->pieces[self->count - 1].address < floor)
        return AR_REFUSED;
    const struct supply_piece *last = &self->pieces[self->count - 1];
    enum ar_status status;
    if (paged(self)) {
        wait_for_work(self);
        status = ar_backing_unmap(self->backing, last->address, last->bytes);
        AR_THEN(status, ar_backing_destroy(self->backing, last->handle));
    } else {
        status = ar_backing_segment_free(self->backing, last->address);
    }
    if (status)
        return AR_CORRUPT;
    *new_end = last->address;
    self->count--;
    return AR_OK;
}

static void supply_close(struct supply *self)
{
    uint64_t end;
    while (supply_shrink(self, 0, &end) == AR_OK) {
    }
    if (self->range_bytes)
        (void)ar_backing_release(self->backing, self->range_address);
    ar_host_free(self->host, self->pieces, self->room * sizeof *self->pieces);
}

/* The first piece that starts at `address` or above. */
static uint32_t piece_from(const struct supply *self, uint64_t address)
{
    return (uint32_t)ar_array_from(self->pieces, self->count, sizeof *self->pieces,
                                   offsetof(struct supply_piece, address), address);
}

/* Bytes of [low, high) in whole pages or whole segments, which could be released. */
static uint64_t supply_whole_bytes(const struct supply *self, uint64_t low, uint64_t high)
{
    if (paged(self)) {
        low = ar_size_round_up(low, self->backing->page_bytes);
        high = ar_size_round_down(high, self->backing->page_bytes);
        return high > low ? high - low : 0;
    }
    uint32_t first = piece_from(self, low);
    if (first == self->count)
        return 0;
    const struct supply_piece *piece = &self->pieces[first];
    if (piece->address + piece->bytes > high)
        return 0;
    /* The last piece that starts below `high` may end above it. */
    const struct supply_piece *last = &self->pieces[piece_from(self, high) - 1];
    if (last->address + last->bytes > high)
        last--;
    return last->address + last->bytes - piece->address;
}

/* ---- the arena: rules 1 to 5 ----------------------------------------------------------------- */

struct fit_values {
    struct ar_policy_common common;
    uint64_t granule_bytes;
    bool wilderness; /* rule 4; it has no effect on first fit */
};

#define FIT_OPTIONS                                                                                \
    {                                                                                              \
        "granule", AR_OPTION_BYTES, offsetof(struct fit_values, granule_bytes), "0", 0, 0, NULL,   \
            "bytes that sizes and addresses are rounded up to, a power of two; 0: 1 if the "       \
            "granule of the device is 1, else 256"                                                 \
    }

struct fit {
    struct ar_policy base;
    enum ar_range_order order;   /* of the free blocks */
    struct ar_range_pool ranges; /* a list by address. `extra`: requested bytes of a used range,
                                    releasable bytes of a free one */
    uint32_t first, last;        /* of the list; 0: empty */
    uint32_t free_blocks;        /* the tree */
    bool keeps_wilderness;       /* rule 4 */
    uint64_t top;                /* the end of the last range */
    uint64_t granule_bytes, limit_bytes;
    struct supply supply;
    struct ar_policy_stats counted; /* its counters only */
};

/* `left` of a range that is not in the tree. */
#define FIT_USED UINT32_MAX
#define FIT_GAP  (UINT32_MAX - 1) /* between two supplies that do not touch */

static inline bool fit_is_free_block(const struct ar_range_node *range)
{
    return range->left < FIT_GAP;
}

static struct ar_range_node *range(const struct fit *self, uint32_t index)
{
    return &self->ranges.nodes[index];
}

/* Bytes of a free block in whole pages or segments. */
static uint64_t fit_releasable(const struct fit *self, const struct ar_range_node *free_block)
{
    uint64_t end = free_block->address + free_block->bytes;
    if (end != self->top || self->supply.backing->page_bytes == 0)
        return supply_whole_bytes(&self->supply, free_block->address, end);
    /* The last page counts up to the top, because the bytes above are not reserved. */
    uint64_t page = self->supply.backing->page_bytes;
    uint64_t low = ar_size_round_up(free_block->address, page);
    return end > low ? end - low : 0;
}

/* Count a free block in the watch and the releasable bytes, or remove it from both. */
static void count_in(struct fit *self, struct ar_range_node *free_block)
{
    ar_policy_free_added(&self->base, free_block->bytes);
    free_block->extra = fit_releasable(self, free_block);
    self->base.totals.releasable_bytes += free_block->extra;
}

static void count_out(struct fit *self, const struct ar_range_node *free_block)
{
    ar_policy_free_removed(&self->base, free_block->bytes);
    self->base.totals.releasable_bytes -= free_block->extra;
}

static void free_block_add(struct fit *self, uint32_t index)
{
    ar_range_tree_insert(&self->ranges, &self->free_blocks, self->order, index);
    count_in(self, range(self, index));
}

static void free_block_drop(struct fit *self, uint32_t index)
{
    ar_range_tree_remove(&self->ranges, &self->free_blocks, self->order, index);
    count_out(self, range(self, index));
}

/* A free block grows or shrinks at either end. It keeps its place in a tree by address. */
static void free_block_change(struct fit *self, uint32_t index, uint64_t address, uint64_t bytes)
{
    struct ar_range_node *free_block = range(self, index);
    count_out(self, free_block);
    if (self->order == AR_RANGE_BY_ADDRESS) {
        ar_range_tree_change(&self->ranges, self->free_blocks, index, address, bytes);
    } else {
        ar_range_tree_remove(&self->ranges, &self->free_blocks, self->order, index);
        free_block->address = address;
        free_block->bytes = bytes;
        ar_range_tree_insert(&self->ranges, &self->free_blocks, self->order, index);
    }
    count_in(self, free_block);
}

/* A new range after `after` in the list, or at its start if `after` is 0. It is not in the tree. */
static uint32_t range_add(struct fit *self, uint32_t after, uint64_t address, uint64_t bytes)
{
    uint32_t index = ar_range_pool_take(&self->ranges);
    struct ar_range_node *added = range(self, index);
    added->address = address;
    added->bytes = bytes;
    added->previous = after;
    added->next = after ? range(self, after)->next : self->first;
    if (after)
        range(self, after)->next = index;
    else
        self->first = index;
    if (added->next)
        range(self, added->next)->previous = index;
    else
        self->last = index;
    return index;
}

static void range_remove(struct fit *self, uint32_t index)
{
    const struct ar_range_node *gone = range(self, index);
    if (gone->previous)
        range(self, gone->previous)->next = gone->next;
    else
        self->first = gone->next;
    if (gone->next)
        range(self, gone->next)->previous = gone->previous;
    else
        self->last = gone->previous;
    ar_range_pool_give(&self->ranges, index);
}

static bool fits(const struct ar_range_node *free_block, uint64_t bytes, uint64_t alignment)
{
    uint64_t lead = ar_size_round_up(free_block->address, alignment) - free_block->address;
    return lead <= free_block->bytes && free_block->bytes - lead >= bytes;
}

/* Rules 2 and 4. 0: no free block can serve the request. */
static uint32_t search(const struct fit *self, uint64_t bytes, uint64_t alignment)
{
    uint64_t address = 0;
    uint64_t least = bytes;
    uint32_t wilderness = 0;
    for (;;) {
        uint32_t found = self->order == AR_RANGE_BY_ADDRESS
                             ? ar_range_tree_first(&self->ranges, self->free_blocks, address, bytes)
                             : ar_range_tree_best(&self->ranges, self->free_blocks, least, address);
        if (!found)
            return wilderness;
        if (fits(range(self, found), bytes, alignment)) {
            if (!self->keeps_wilderness || found != self->last)
                return found;
            wilderness = found;
        }
        least = range(self, found)->bytes;
        address = range(self, found)->address + 1;
    }
}

/* Rule 4. OK: the free block at the top has grown and may serve the request. */
static enum ar_status extend(struct fit *self, uint64_t bytes, uint64_t alignment)
{
    uint32_t tail = self->last && fit_is_free_block(range(self, self->last)) ? self->last : 0;
    uint64_t from = tail ? range(self, tail)->address : self->top;
    uint64_t missing = ar_size_round_up(from, alignment) + bytes - self->top;
    uint64_t apart = bytes + alignment - self->granule_bytes;
    uint64_t room = self->limit_bytes - self->base.totals.reserved_bytes;
    if (missing > room)
        return AR_REFUSED;
    uint64_t start = self->top;
    AR_TRY(supply_grow(&self->supply, &start, missing, apart, room));
    self->counted.count.segments_made += self->supply.backing->page_bytes == 0 || !self->first;
    if (self->first && start != self->top) {
        uint32_t gap = range_add(self, self->last, self->top, start - self->top);
        range(self, gap)->left = FIT_GAP;
        missing = apart;
        tail = 0;
    }
    self->base.totals.reserved_bytes += missing;
    self->top = start + missing;
    if (tail)
        free_block_change(self, tail, range(self, tail)->address,
                          range(self, tail)->bytes + missing);
    else
        free_block_add(self, range_add(self, self->last, start, missing));
    return AR_OK;
}

/* Rule 3: cuts the used block out of the free block. */
static uint32_t cut(struct fit *self, uint32_t index, uint64_t bytes, uint64_t alignment)
{
    uint64_t address = range(self, index)->address;
    uint64_t lead = ar_size_round_up(address, alignment) - address;
    uint64_t rest = range(self, index)->bytes - lead - bytes;
    uint32_t block = index;
    self->counted.count.splits += (lead ? 1U : 0U) + (rest ? 1U : 0U);
    if (lead) {
        free_block_change(self, index, address, lead);
        block = range_add(self, index, address + lead, bytes);
        if (rest)
            free_block_add(self, range_add(self, block, address + lead + bytes, rest));
    } else if (rest) {
        free_block_change(self, index, address + bytes, rest);
        block = range_add(self, range(self, index)->previous, address, bytes);
    } else {
        free_block_drop(self, index);
    }
    range(self, block)->left = FIT_USED;
    return block;
}

/* Placement ignores streams, but their work must be done before memory is released. */
static enum ar_status fit_use(struct ar_policy *base, const struct ar_policy_block *block AR_UNUSED,
                              uint32_t stream)
{
    struct fit *self = (struct fit *)base;
    if (stream >= self->supply.streams && stream != UINT32_MAX)
        self->supply.streams = stream + 1;
    return AR_OK;
}

static enum ar_status fit_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                                struct ar_policy_block *out)
{
    struct fit *self = (struct fit *)base;
    uint64_t granule = self->granule_bytes;
    uint64_t alignment = request->alignment > granule ? request->alignment : granule;
    uint64_t bytes = ar_size_round_up(request->bytes, granule);
    AR_TRY_HOST(ar_range_pool_reserve(&self->ranges, 6));
    uint32_t found = alignment > UINT64_C(1) << 60 ? 0 : search(self, bytes, alignment);
    /* A second time if the first memory of the arena is not aligned. Each takes up to two nodes and
     * the cut two more, which are reserved above. */
    for (int tries = 0; !found && tries < 2 && alignment <= UINT64_C(1) << 60; tries++) {
        enum ar_status status = extend(self, bytes, alignment);
        if (status && status != AR_REFUSED)
            return status;
        if (status)
            break;
        found = fits(range(self, self->last), bytes, alignment) ? self->last : 0;
    }
    if (!found) {
        self->counted.count.failures++;
        return AR_NO_MEMORY;
    }
    found = cut(self, found, bytes, alignment);
    range(self, found)->extra = request->bytes;
    (void)fit_use(base, out, request->stream);
    ar_policy_grant(base, out, range(self, found)->address, bytes, found);
    return AR_OK;
}

/* Rule 5. */
static enum ar_status fit_free(struct ar_policy *base, const struct ar_policy_block *block,
                               uint32_t stream)
{
    struct fit *self = (struct fit *)base;
    uint32_t index = (uint32_t)block->cookie;
    struct ar_range_node *freed = range(self, index);
    (void)fit_use(base, block, stream);
    ar_policy_ungrant(base, freed->extra, freed->bytes);
    uint32_t next = freed->next && fit_is_free_block(range(self, freed->next)) ? freed->next : 0;
    uint32_t previous =
        freed->previous && fit_is_free_block(range(self, freed->previous)) ? freed->previous : 0;
    uint64_t address = previous ? range(self, previous)->address : freed->address;
    uint64_t bytes = freed->bytes + (previous ? range(self, previous)->bytes : 0) +
                     (next ? range(self, next)->bytes : 0);
    self->counted.count.merges += (previous ? 1U : 0U) + (next ? 1U : 0U);
    if (previous && next) {
        free_block_drop(self, next);
        range_remove(self, next);
    }
    if (previous || next) {
        range_remove(self, index);
        free_block_change(self, previous ? previous : next, address, bytes);
    } else {
        free_block_add(self, index);
    }
    return AR_OK;
}

static enum ar_status fit_trim(struct ar_policy *base, uint64_t keep_bytes)
{
    struct fit *self = (struct fit *)base;
    while (self->last && fit_is_free_block(range(self, self->last)) &&
           ar_policy_free_bytes(&base->totals) > keep_bytes) {
        uint32_t tail = self->last;
        uint64_t end;
        enum ar_status status = supply_shrink(&self->supply, range(self, tail)->address, &end);
        if (status)
            return status == AR_REFUSED ? AR_OK : status;
        self->counted.count.segments_freed += self->supply.backing->page_bytes == 0;
        if (end >= self->top) /* pages above the top */
            continue;
        uint64_t gone = self->top - end;
        base->totals.reserved_bytes -= gone;
        self->top = end;
        if (range(self, tail)->bytes > gone) {
            free_block_change(self, tail, range(self, tail)->address,
                              range(self, tail)->bytes - gone);
            continue;
        }
        free_block_drop(self, tail);
        range_remove(self, tail);
        if (self->last && range(self, self->last)->left == FIT_GAP) {
            self->top = range(self, self->last)->address;
            range_remove(self, self->last);
        }
    }
    return AR_OK;
}

static const char *fit_problem(const struct ar_policy *base)
{
    const struct fit *self = (const struct fit *)base;
    return ar_backing_problem(self->supply.backing);
}

static void fit_stats(const struct ar_policy *base, struct ar_policy_stats *out)
{
    *out = ((const struct fit *)base)->counted;
    out->totals = base->totals;
}

static void fit_room(const struct ar_policy *base, struct ar_policy_room *out)
{
    const struct fit *self = (const struct fit *)base;
    ar_policy_room_fill(out, ar_range_tree_most(&self->ranges, self->free_blocks), 0, 0);
}

static enum ar_status fit_create(const struct ar_policy_ops *ops, enum ar_range_order order,
                                 const struct ar_policy_context *context, const void *values,
                                 struct ar_policy **out, struct ar_error *error)
{
    const struct fit_values *given = values;
    uint64_t granule = given->granule_bytes;
    if (granule == 0)
        granule = context->backing->granule_bytes == 1 ? 1 : 256;
    if ((granule & (granule - 1)) || granule > AR_GIB)
        return ar_invalid(error,
                          "policy %s, option granule: %llu is not a power of two up to 1 GiB",
                          ops->name, (unsigned long long)granule);
    struct fit *self = ar_policy_new(context, ops, sizeof *self, error);
    AR_TRY_HOST(self);
    enum ar_status status = supply_open(&self->supply, context, ops->name, error);
    if (status) {
        ar_host_free(context->host, self, sizeof *self);
        return status;
    }
    ar_range_pool_open(&self->ranges, context->host);
    self->order = order;
    self->granule_bytes = granule;
    self->keeps_wilderness = given->wilderness;
    self->limit_bytes = ar_policy_limit(&given->common);
    *out = &self->base;
    return AR_OK;
}

static void fit_destroy(struct ar_policy *base)
{
    struct fit *self = (struct fit *)base;
    supply_close(&self->supply);
    ar_range_pool_close(&self->ranges);
    ar_host_free(self->supply.host, self, sizeof *self);
}

static void fit_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument)
{
    const struct fit *self = (const struct fit *)base;
    const struct ar_range_node *nodes = self->ranges.nodes;
    uint64_t segment = self->first ? nodes[self->first].address : 0;
    for (uint32_t at = self->first; at; at = nodes[at].next) {
        struct ar_policy_range range = {
            .address = nodes[at].address,
            .bytes = nodes[at].bytes,
            .segment_address = segment,
            .state = AR_POLICY_RANGE_FREE,
        };
        if (nodes[at].left == FIT_USED) {
            range.state = AR_POLICY_RANGE_USED;
            range.requested_bytes = nodes[at].extra;
        } else if (nodes[at].left == FIT_GAP) {
            range.state = AR_POLICY_RANGE_UNMAPPED;
            range.segment_address = range.address;
            segment = range.address + range.bytes;
        }
        if (!visit(argument, &range))
            return;
    }
}

static const char *range_fault(const struct fit *self, uint32_t at, uint32_t before)
{
    const struct ar_range_node *nodes = self->ranges.nodes;
    const struct ar_range_node *node = &nodes[at];
    if (node->previous != before || node->bytes == 0)
        return "the list is broken or a range is empty";
    if (before && nodes[before].address + nodes[before].bytes != node->address)
        return "a range does not start where the last one ends";
    if (node->left == FIT_USED && node->extra > node->bytes)
        return "a block is smaller than its request";
    if (!fit_is_free_block(node))
        return NULL;
    if (before && fit_is_free_block(&nodes[before]))
        return "two free blocks touch";
    return node->extra == fit_releasable(self, node)
               ? NULL
               : "the releasable bytes of a free block are out of date";
}

static enum ar_status fit_validate(const struct ar_policy *base, struct ar_error *error)
{
    const struct fit *self = (const struct fit *)base;
    const struct ar_range_node *nodes = self->ranges.nodes;
    uint64_t releasable_bytes = 0, free_blocks = 0, count;
    uint32_t before = 0;
    for (uint32_t at = self->first; at; before = at, at = nodes[at].next) {
        const char *fault = range_fault(self, at, before);
        if (fault)
            return ar_policy_broken(base, fault, nodes[at].address, error);
        free_blocks += fit_is_free_block(&nodes[at]);
        releasable_bytes += fit_is_free_block(&nodes[at]) ? nodes[at].extra : 0;
    }
    if (before != self->last ||
        (before && nodes[before].address + nodes[before].bytes != self->top))
        return ar_policy_broken(base, "the last range does not end at the top", self->top, error);
    if (!ar_range_tree_check(&self->ranges, self->free_blocks, self->order, &count) ||
        count != free_blocks)
        return ar_policy_broken(base, "the tree of free blocks is broken", self->top, error);
    return ar_policy_check_totals(base, releasable_bytes, error);
}

/* What the ops of both policies have. */
#define FIT_OPS                                                                                    \
    AR_POLICY_HOOKS(fit),                                                                          \
        .values_bytes = sizeof(struct fit_values),                                                 \
        .reference = "textbook: Knuth, The Art of Computer Programming, vol. 1, 2.5",              \
        .capabilities = AR_POLICY_WATCHES_FREE | AR_POLICY_HONOURS_ALIGNMENT, .room = fit_room,    \
        .use = fit_use, .trim = fit_trim, .problem = fit_problem

/* ---- the two policies ------------------------------------------------------------------------ */

static const struct ar_option first_fit_options[] = {AR_POLICY_COMMON_OPTIONS, FIT_OPTIONS, {0}};

extern const struct ar_policy_ops first_fit_policy;

static enum ar_status first_fit_create(const struct ar_policy_context *context, const void *values,
                                       struct ar_policy **out, struct ar_error *error)
{
    return fit_create(&first_fit_policy, AR_RANGE_BY_ADDRESS, context, values, out, error);
}

const struct ar_policy_ops first_fit_policy = {
    FIT_OPS,
    .name = "first-fit",
    .summary = "the lowest free block that is large enough, in one arena without a bound",
    .options = first_fit_options,
    .create = first_fit_create,
};

static const struct ar_option best_fit_options[] = {
    AR_POLICY_COMMON_OPTIONS,
    FIT_OPTIONS,
    {"wilderness", AR_OPTION_BOOL, offsetof(struct fit_values, wilderness), "no", 0, 0, NULL,
     "whether the free block at the end of the arena counts as unlimited, so that it serves last"},
    {0}};

extern const struct ar_policy_ops best_fit_policy;

static enum ar_status best_fit_create(const struct ar_policy_context *context, const void *values,
                                      struct ar_policy **out, struct ar_error *error)
{
    return fit_create(&best_fit_policy, AR_RANGE_BY_SIZE, context, values, out, error);
}

const struct ar_policy_ops best_fit_policy = {
    FIT_OPS,
    .name = "best-fit",
    .summary = "the smallest free block that is large enough, in one arena without a bound",
    .options = best_fit_options,
    .create = best_fit_create,
};
