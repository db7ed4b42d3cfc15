/* First fit and best fit in one arena (Knuth, The Art of Computer Programming, vol. 1, 2.5).
 *
 * 1. Every byte of the arena belongs to one range: used, a hole, or a gap in the supply. The
 *    ranges form a list in address order; the holes are in a tree besides.
 * 2. A request is rounded up to the granule. The search gives the first hole in the tree's order
 *    in which it fits, aligned. Without a wish for alignment that is one descent; with one,
 *    holes that are large enough but lie wrong are passed over one by one.
 * 3. The block is cut out at the hole's lowest aligned address; what is left before and behind
 *    stays a hole.
 * 4. Where nothing fits, the top of the arena moves up by exactly what is missing: a hole that
 *    ends there is used first. With `wilderness` that hole counts as part of what has no end: it is
 *    the loosest fit of all, and serves only where no other hole does.
 * 5. A freed block merges with holes on both sides at once. The arena never shrinks but by
 *    `trim`, which can cut whole pieces off its top. */
#include "allocators/policies/fit/fit.h"

#include "allocators/base/size.h"

static struct ar_range_node *range(const struct fit *self, uint32_t index)
{
    return &self->ranges.nodes[index];
}

uint64_t fit_releasable(const struct fit *self, const struct ar_range_node *free_block)
{
    uint64_t end = free_block->address + free_block->bytes;
    if (end != self->top || self->supply.backing->page_bytes == 0)
        return supply_whole_bytes(&self->supply, free_block->address, end);
    /* The last page counts up to the top: what is behind it is not held. */
    uint64_t page = self->supply.backing->page_bytes;
    uint64_t low = ar_size_round_up(free_block->address, page);
    return end > low ? end - low : 0;
}

/* Counts a hole in, or out: the watch and the releasable bytes. */
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

/* A hole grows or shrinks at either end. By address it keeps its place in the tree. */
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

/* A new range behind `after` (0: at the start) in the list, not in the tree. */
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

/* Rules 2 and 4. 0: no hole will do. */
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

/* Rule 4. On OK the hole at the top has grown, and may serve. */
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
    enum ar_status status = supply_grow(&self->supply, &start, missing, apart, room);
    if (status)
        return status;
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

/* Rule 3: the block, cut out of the hole, not yet filled in. */
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

enum ar_status fit_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                         struct ar_policy_block *out)
{
    struct fit *self = (struct fit *)base;
    uint64_t granule = self->granule_bytes;
    uint64_t alignment = request->alignment > granule ? request->alignment : granule;
    uint64_t bytes = ar_size_round_up(request->bytes, granule);
    if (!ar_range_pool_reserve(&self->ranges, 6))
        return AR_HOST_MEMORY;
    uint32_t found = alignment > UINT64_C(1) << 60 ? 0 : search(self, bytes, alignment);
    /* Twice where the first memory of all does not start at the alignment. Each time takes up to
     * two nodes, the cut two more: the six of above. */
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
    fit_use(base, out, request->stream);
    out->address = range(self, found)->address;
    out->granted_bytes = bytes;
    out->cookie = found;
    base->totals.live_bytes += request->bytes;
    base->totals.granted_bytes += bytes;
    base->totals.live_blocks++;
    return AR_OK;
}

/* Rule 5. */
enum ar_status fit_free(struct ar_policy *base, const struct ar_policy_block *block,
                        uint32_t stream)
{
    struct fit *self = (struct fit *)base;
    uint32_t index = (uint32_t)block->cookie;
    struct ar_range_node *freed = range(self, index);
    fit_use(base, block, stream);
    base->totals.live_bytes -= freed->extra;
    base->totals.granted_bytes -= freed->bytes;
    base->totals.live_blocks--;
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

/* Streams are of no matter to the fits, but their work must be done before memory goes. */
enum ar_status fit_use(struct ar_policy *base, const struct ar_policy_block *block, uint32_t stream)
{
    struct fit *self = (struct fit *)base;
    (void)block;
    if (stream >= self->supply.streams && stream != UINT32_MAX)
        self->supply.streams = stream + 1;
    return AR_OK;
}

enum ar_status fit_trim(struct ar_policy *base, uint64_t keep_bytes)
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
        if (end >= self->top) /* pages that the arena had not reached yet */
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

const char *fit_problem(const struct ar_policy *base)
{
    const struct fit *self = (const struct fit *)base;
    return ar_backing_problem(self->supply.backing);
}

void fit_stats(const struct ar_policy *base, struct ar_policy_stats *out)
{
    const struct fit *self = (const struct fit *)base;
    *out = self->counted;
    out->totals = base->totals;
    out->largest_free_block_bytes = ar_range_tree_most(&self->ranges, self->free_blocks);
}

enum ar_status fit_create(const struct ar_policy_ops *ops, enum ar_range_order order,
                          const struct ar_policy_context *context, const void *values,
                          struct ar_policy **out, struct ar_error *error)
{
    const struct fit_values *given = values;
    uint64_t granule = given->granule_bytes;
    if (granule == 0)
        granule = context->backing->granule_bytes == 1 ? 1 : 256;
    if ((granule & (granule - 1)) || granule > AR_GIB)
        return ar_error_set(error, AR_INVALID,
                            "policy %s, option granule: %llu is not a power of two up to 1 GiB",
                            ops->name, (unsigned long long)granule);
    struct fit *self = ar_host_alloc(context->host, sizeof *self);
    if (!self)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for policy %s", ops->name);
    enum ar_status status = supply_open(&self->supply, context, ops->name, error);
    if (status) {
        ar_host_free(context->host, self, sizeof *self);
        return status;
    }
    ar_range_pool_open(&self->ranges, context->host);
    self->base.ops = ops;
    self->order = order;
    self->granule_bytes = granule;
    self->keeps_wilderness = given->wilderness;
    self->limit_bytes = given->common.limit_bytes ? given->common.limit_bytes : UINT64_MAX;
    *out = &self->base;
    return AR_OK;
}

void fit_destroy(struct ar_policy *base)
{
    struct fit *self = (struct fit *)base;
    supply_close(&self->supply);
    ar_range_pool_close(&self->ranges);
    ar_host_free(self->supply.host, self, sizeof *self);
}
