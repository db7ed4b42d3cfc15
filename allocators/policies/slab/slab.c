#include "allocators/policies/slab/slab.h"

#define FIRST_SLAB_BYTES (16 * AR_KIB)
#define FIRST_BLOCKS     2u

static void link_slab(struct slab_policy *self, struct slab *slab, unsigned eighth)
{
    struct slab_class *class = self->classes[slab->class];
    struct slab *head = class->slabs[eighth];
    slab->eighth = (uint8_t)eighth;
    slab->previous = NULL;
    slab->next = head;
    class->slabs[eighth] = slab;
    if (head) {
        head->previous = slab;
        return;
    }
    if (!class->partial)
        self->available[slab->class / 64] |= UINT64_C(1) << slab->class % 64;
    class->partial |= UINT32_C(1) << eighth;
}

static void unlink_slab(struct slab_policy *self, const struct slab *slab)
{
    struct slab_class *class = self->classes[slab->class];
    if (slab->next)
        slab->next->previous = slab->previous;
    if (slab->previous) {
        slab->previous->next = slab->next;
        return;
    }
    class->slabs[slab->eighth] = slab->next;
    if (slab->next)
        return;
    class->partial &= ~(UINT32_C(1) << slab->eighth);
    if (!class->partial)
        self->available[slab->class / 64] &= ~(UINT64_C(1) << slab->class % 64);
}

/* The list of a slab with a free block. 0: it is empty. */
static unsigned eighth_of(const struct slab *slab)
{
    return (slab->live * (unsigned)slab->scale + 255) / 256;
}

static size_t record_bytes(uint32_t blocks)
{
    return sizeof(struct slab) + blocks * sizeof(uint32_t);
}

/* Rule 2: a quarter of the live blocks of the class, and for small blocks at least
 * FIRST_SLAB_BYTES. */
static uint32_t blocks_wanted(uint64_t live_blocks, uint64_t bytes)
{
    uint64_t blocks = live_blocks / 4;
    if (blocks < FIRST_SLAB_BYTES / bytes)
        blocks = FIRST_SLAB_BYTES / bytes;
    if (blocks < FIRST_BLOCKS)
        blocks = FIRST_BLOCKS;
    return blocks < SLAB_MOST_BLOCKS ? (uint32_t)blocks : SLAB_MOST_BLOCKS;
}

static enum ar_status new_slab(struct slab_policy *self, unsigned index, struct slab **out)
{
    struct slab_class *class = self->classes[index];
    uint32_t blocks = blocks_wanted(class->live_blocks, class->bytes);
    uint32_t piece;
    self->returned.known = false;
    AR_TRY(slab_supply(self, SLAB_SMALL, class->bytes, blocks * class->bytes, &piece));
    struct ar_span *span = &self->heap.spans.at[piece];
    blocks = (uint32_t)(span->bytes / class->bytes);
    struct slab *slab = ar_host_alloc(self->heap.host, record_bytes(blocks));
    if (!slab) {
        span->requested_bytes = 0;
        slab_restore(self, piece);
        return AR_HOST_MEMORY;
    }
    slab->address = span->address;
    slab->piece = piece;
    slab->blocks = (uint8_t)blocks;
    slab->class = (uint8_t)index;
    slab->free_mask = blocks == 32 ? ~UINT32_C(0) : (UINT32_C(1) << blocks) - 1;
    span->mark = 1;
    span->requested_bytes = (uint64_t)(uintptr_t)slab;
    for (uint32_t i = 0; i < blocks; i++)
        ar_policy_free_added(&self->base, class->bytes);
    slab->scale = (uint16_t)(2048 / blocks);
    link_slab(self, slab, 0);
    class->empty_slabs++;
    self->emptied[index / 64] |= UINT64_C(1) << index % 64;
    *out = slab;
    return AR_OK;
}

/* Returns an empty slab that is in no list to the supply. */
static void drop_slab(struct slab_policy *self, struct slab *slab)
{
    for (uint32_t i = 0; i < slab->blocks; i++)
        ar_policy_free_removed(&self->base, self->classes[slab->class]->bytes);
    uint32_t piece = slab->piece;
    self->returned.known = false;
    self->heap.spans.at[piece].mark = 0;
    ar_host_free(self->heap.host, slab, record_bytes(slab->blocks));
    slab_restore(self, piece);
}

/* A new slab for a class that has no free block, or is not used yet. */
static __attribute__((noinline)) enum ar_status renew(struct slab_policy *self, unsigned index,
                                                      struct slab **slab)
{
    if (!self->classes[index]) {
        struct slab_class *class = ar_host_alloc(self->heap.host, sizeof *class);
        AR_TRY_HOST(class);
        class->bytes = slab_class_bytes(index);
        self->classes[index] = class;
    }
    return new_slab(self, index, slab);
}

/* A block for a small request. */
static __attribute__((noinline)) enum ar_status
slab_take(struct slab_policy *self, uint64_t requested_bytes, struct ar_policy_block *out)
{
    unsigned index = slab_class_of(requested_bytes);
    struct slab_class *class = self->classes[index];
    struct slab *slab;
    if (__builtin_expect(class && class->partial, 1)) {
        slab = class->slabs[31u - (unsigned)__builtin_clz(class->partial)];
    } else {
        AR_TRY(renew(self, index, &slab));
        class = self->classes[index];
    }
    if (slab->eighth == 0) {
        self->returned.known = false;
        if (--class->empty_slabs == 0)
            self->emptied[index / 64] &= ~(UINT64_C(1) << index % 64);
    }
    unsigned block = (unsigned)__builtin_ctz(slab->free_mask);
    slab->free_mask &= slab->free_mask - 1;
    slab->live++;
    slab->wasted[block] = (uint32_t)(class->bytes - requested_bytes);
    unsigned eighth = eighth_of(slab);
    if (!slab->free_mask) {
        unlink_slab(self, slab);
    } else if (eighth != slab->eighth) {
        unlink_slab(self, slab);
        link_slab(self, slab, eighth);
    }
    class->live_blocks++;
    ar_policy_free_removed(&self->base, class->bytes);
    ar_policy_grant(&self->base, out, slab->address + block * class->bytes, class->bytes,
                    (uint64_t)(uintptr_t)slab);
    return AR_OK;
}

static __attribute__((noinline)) void slab_give(struct slab_policy *self,
                                                const struct ar_policy_block *block)
{
    struct slab *slab = (struct slab *)(uintptr_t)block->cookie;
    struct slab_class *class = self->classes[slab->class];
    uint64_t offset = block->address - slab->address;
    bool was_full = !slab->free_mask;
    slab->free_mask |= UINT32_C(1) << offset / class->bytes;
    slab->live--;
    class->live_blocks--;
    ar_policy_free_added(&self->base, class->bytes);
    unsigned eighth = eighth_of(slab);
    if (!was_full) {
        if (eighth == slab->eighth)
            return;
        unlink_slab(self, slab);
    }
    if (eighth == 0) {
        if (class->empty_slabs >= self->keep) {
            drop_slab(self, slab);
            return;
        }
        class->empty_slabs++;
        self->returned.known = false;
        self->emptied[slab->class / 64] |= UINT64_C(1) << slab->class % 64;
    }
    link_slab(self, slab, eighth);
}

/* Returns all empty slabs to the supply. */
void slab_return_empty(struct slab_policy *self)
{
    for (unsigned word = 0; word < 2; word++) {
        while (self->emptied[word]) {
            unsigned index = word * 64 + (unsigned)__builtin_ctzll(self->emptied[word]);
            struct slab_class *class = self->classes[index];
            while (class->slabs[0]) {
                struct slab *slab = class->slabs[0];
                unlink_slab(self, slab);
                drop_slab(self, slab);
            }
            class->empty_slabs = 0;
            self->emptied[word] &= self->emptied[word] - 1;
        }
    }
}

static void close_classes(struct slab_policy *self)
{
    for (uint32_t i = 0; i < self->heap.segment_count; i++) {
        for (uint32_t p = self->heap.segments[i].first; p; p = self->heap.spans.at[p].next) {
            const struct ar_span *span = &self->heap.spans.at[p];
            if (span->used && span->mark)
                ar_host_free(self->heap.host, slab_record(span),
                             record_bytes(slab_record(span)->blocks));
        }
    }
    for (unsigned c = 0; c < SLAB_CLASSES; c++)
        ar_host_free(self->heap.host, self->classes[c], sizeof *self->classes[c]);
}

/* ---- inspection ------------------------------------------------------------------------------ */

/* The largest class of which a free piece of a kind holds a block. */
static uint64_t class_in_piece(const struct slab_policy *self, uint64_t bytes)
{
    if (bytes >= self->largest_class_bytes)
        return self->largest_class_bytes;
    unsigned class = slab_class_of(bytes + 1); /* the first one that is larger */
    return class ? slab_class_bytes(class - 1) : 0;
}

/* The largest request that empty segments of `bytes` serve with `rest` more. A class needs enough
 * for a whole new slab, so a request of a class may be refused where a large one is served. */
static uint64_t largest_in_segments(const struct slab_policy *self, uint64_t bytes, uint64_t rest)
{
    if (bytes > self->largest_class_bytes)
        return bytes;
    uint64_t room = bytes + rest;
    if (self->pages)
        room = ar_size_round_down(room, SLAB_PAGE_BYTES);
    for (unsigned c = bytes ? slab_class_of(bytes) + 1 : 0; c-- > 0;) {
        uint64_t block_bytes = slab_class_bytes(c);
        uint64_t live_blocks = self->classes[c] ? self->classes[c]->live_blocks : 0;
        if (blocks_wanted(live_blocks, block_bytes) * block_bytes <= room)
            return block_bytes < bytes ? block_bytes : bytes;
    }
    return 0;
}

/* The largest request that free memory serves without a call. */
static uint64_t largest_now(const struct slab_policy *self)
{
    uint64_t empty = heap_largest(&self->heap, SLAB_EMPTY);
    uint64_t large = heap_largest(&self->heap, SLAB_LARGE);
    large = ar_size_round_down(large > empty ? large : empty, SLAB_UNIT_BYTES);
    if (large > self->largest_class_bytes)
        return large;
    uint64_t best = 0;
    if (self->available[1])
        best = slab_class_bytes(127u - (unsigned)__builtin_clzll(self->available[1]));
    else if (self->available[0])
        best = slab_class_bytes(63u - (unsigned)__builtin_clzll(self->available[0]));
    uint64_t small = class_in_piece(self, heap_largest(&self->heap, SLAB_SMALL));
    best = small > best ? small : best;
    uint64_t fresh = largest_in_segments(self, empty, 0);
    return fresh > best ? fresh : best;
}

static bool is_free_or_empty(const struct ar_span *span)
{
    return !span->used || (span->mark && !slab_record(span)->live);
}

/* Adds the free pieces and empty slabs around an empty slab, once for all slabs among them. */
static void add_run(const struct ar_span *at, uint32_t piece, struct slab_returned *to)
{
    uint32_t first = piece, before = at[piece].previous;
    if (before && !at[before].used) {
        first = before;
        before = at[before].previous;
    }
    if (before && is_free_or_empty(&at[before]))
        return;
    uint64_t bytes = 0;
    uint32_t p = first;
    for (; p && is_free_or_empty(&at[p]); p = at[p].next)
        bytes += at[p].bytes;
    if (!before && !p)
        to->segment_bytes += bytes;
    else if (bytes > to->piece_bytes)
        to->piece_bytes = bytes;
}

static struct slab_returned when_returned(const struct slab_policy *self)
{
    struct slab_returned result = {.known = !self->borrows};
    for (unsigned word = 0; word < 2; word++) {
        for (uint64_t left = self->emptied[word]; left; left &= left - 1) {
            unsigned index = word * 64 + (unsigned)__builtin_ctzll(left);
            for (const struct slab *slab = self->classes[index]->slabs[0]; slab; slab = slab->next)
                add_run(self->heap.spans.at, slab->piece, &result);
        }
    }
    return result;
}

/* With every effort. The empty slabs are looked at only where they have changed. Pages of empty
 * segments move after a wait. Without pages, or if they do not do, the empty segments are released
 * and a new one takes their place; if that is refused, the largest piece serves, of either kind. */
static void slab_room(const struct ar_policy *base, struct ar_policy_room *out)
{
    const struct slab_policy *self = (const struct slab_policy *)base;
    uint64_t now = largest_now(self);
    struct slab_returned *returned = &((struct slab_policy *)(uintptr_t)base)->returned;
    if (!returned->known)
        *returned = when_returned(self);
    uint64_t emptied_bytes = base->totals.releasable_bytes + returned->segment_bytes;
    uint64_t segment =
        largest_in_segments(self, emptied_bytes, ar_policy_rest(base, self->limit_bytes));
    uint64_t small = heap_largest(&self->heap, SLAB_SMALL);
    uint64_t piece = heap_largest(&self->heap, SLAB_LARGE);
    piece = piece > small ? piece : small;
    piece = piece > returned->piece_bytes ? piece : returned->piece_bytes;
    piece = ar_size_round_down(piece, SLAB_UNIT_BYTES);
    if (piece <= self->largest_class_bytes)
        piece = class_in_piece(self, piece);
    uint64_t moved = segment > now ? segment : now;
    *out = (struct ar_policy_room){
        .largest_free_block_bytes = now,
        .servable_bytes = {[AR_POLICY_EFFORT_NONE] = now,
                           [AR_POLICY_EFFORT_MAP] = now,
                           [AR_POLICY_EFFORT_WAIT] = self->pages ? moved : now,
                           [AR_POLICY_EFFORT_TRIM] = piece > moved ? piece : moved},
    };
}

static void slab_stats(const struct ar_policy *base, struct ar_policy_stats *out)
{
    const struct slab_policy *self = (const struct slab_policy *)base;
    heap_stats(&self->heap, out);
    out->count.flushes = self->flushes;
    out->count.retries = self->retries;
    out->count.failures = self->failures;
    if (self->pages)
        out->count.remapped_bytes = slab_pages_moved(self->pages);
}

static bool show_slab(const struct slab_policy *self, const struct slab *slab,
                      struct ar_policy_range *range, ar_policy_visit *visit, void *argument)
{
    range->bytes = self->classes[slab->class]->bytes;
    for (uint32_t block = 0; block < slab->blocks; block++) {
        bool used = !(slab->free_mask >> block & 1);
        range->address = slab->address + block * range->bytes;
        range->state = used ? AR_POLICY_RANGE_USED : AR_POLICY_RANGE_FREE;
        range->requested_bytes = used ? range->bytes - slab->wasted[block] : 0;
        if (!visit(argument, range))
            return false;
    }
    return true;
}

/* The free blocks of a slab are separate ranges, because each is handed out alone. */
static void slab_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument)
{
    const struct slab_policy *self = (const struct slab_policy *)base;
    for (uint32_t i = 0; i < self->heap.segment_count; i++) {
        const struct heap_segment *segment = &self->heap.segments[i];
        for (uint32_t p = segment->first; p; p = self->heap.spans.at[p].next) {
            const struct ar_span *span = &self->heap.spans.at[p];
            struct ar_policy_range range = {
                .address = span->address,
                .bytes = span->bytes,
                .requested_bytes = span->used ? span->requested_bytes : 0,
                .segment_address = segment->address,
                .state = span->used ? AR_POLICY_RANGE_USED : AR_POLICY_RANGE_FREE,
            };
            bool more = span->used && span->mark
                            ? show_slab(self, slab_record(span), &range, visit, argument)
                            : visit(argument, &range);
            if (!more)
                return;
        }
    }
}

/* ---- validate -------------------------------------------------------------------------------- */

struct check {
    uint64_t kind_bytes[2];
    uint64_t live_of[SLAB_CLASSES], listed_of[SLAB_CLASSES], empty_of[SLAB_CLASSES];
};

static enum ar_status check_slab(const struct slab_policy *self, const struct ar_span *span,
                                 struct check *check, struct ar_error *error)
{
    const struct slab *slab = slab_record(span);
    uint32_t all = slab->blocks == 32 ? ~UINT32_C(0) : (UINT32_C(1) << slab->blocks) - 1;
    if (slab->address != span->address ||
        slab->blocks * self->classes[slab->class]->bytes != span->bytes ||
        (slab->free_mask & ~all) ||
        slab->live + (uint32_t)__builtin_popcount(slab->free_mask) != slab->blocks)
        return ar_policy_broken(&self->base, "the blocks of a slab do not add up", slab->address,
                                error);
    check->live_of[slab->class] += slab->live;
    check->listed_of[slab->class] += slab->free_mask != 0;
    check->empty_of[slab->class] += slab->live == 0;
    return AR_OK;
}

static enum ar_status check_class(const struct slab_policy *self, unsigned index,
                                  const struct check *check, struct ar_error *error)
{
    const struct slab_class *class = self->classes[index];
    uint64_t listed = 0;
    bool right =
        class->live_blocks == check->live_of[index] && class->empty_slabs == check->empty_of[index];
    for (unsigned e = 0; e < SLAB_EIGHTHS; e++) {
        right &= (class->partial >> e & 1) == (class->slabs[e] != NULL);
        for (const struct slab *slab = class->slabs[e]; slab; slab = slab->next) {
            right &= slab->eighth == e && slab->class == index && slab->free_mask;
            right &= (e + 1 >= slab->live * 8u / slab->blocks) && ((e == 0) == (slab->live == 0));
            right &= !slab->next || slab->next->previous == slab;
            listed++;
        }
    }
    right &= listed == check->listed_of[index];
    right &= (self->available[index / 64] >> index % 64 & 1) == (class->partial != 0);
    right &= (self->emptied[index / 64] >> index % 64 & 1) == (class->empty_slabs != 0);
    return right ? AR_OK
                 : ar_policy_broken(&self->base, "the lists of a class differ from its slabs",
                                    class->bytes, error);
}

static enum ar_status slab_validate(const struct ar_policy *base, struct ar_error *error)
{
    const struct slab_policy *self = (const struct slab_policy *)base;
    struct check check = {.kind_bytes = {0}};
    uint64_t releasable_bytes = 0;
    for (uint32_t i = 0; i < self->heap.segment_count; i++) {
        uint32_t p = self->heap.segments[i].first;
        for (; p; p = self->heap.spans.at[p].next) {
            const struct ar_span *span = &self->heap.spans.at[p];
            check.kind_bytes[span->owner % 2] += span->used ? span->bytes : 0;
            if (span->used && span->mark)
                AR_TRY(check_slab(self, span, &check, error));
        }
    }
    for (unsigned c = 0; c < SLAB_CLASSES; c++)
        if (self->classes[c])
            AR_TRY(check_class(self, c, &check, error));
    if (self->kind_bytes[SLAB_SMALL] != check.kind_bytes[SLAB_SMALL] ||
        self->kind_bytes[SLAB_LARGE] != check.kind_bytes[SLAB_LARGE])
        return ar_policy_broken(base, "the used bytes of a kind do not add up",
                                self->kind_bytes[SLAB_SMALL], error);
    struct slab_returned returned = when_returned(self);
    if (self->returned.known && (self->returned.segment_bytes != returned.segment_bytes ||
                                 self->returned.piece_bytes != returned.piece_bytes))
        return ar_policy_broken(base, "the empty slabs have changed unnoticed",
                                returned.segment_bytes, error);
    AR_TRY(heap_check(&self->heap, &releasable_bytes, error));
    if (releasable_bytes != heap_free_bytes(&self->heap, SLAB_EMPTY))
        return ar_policy_broken(base, "an empty segment is not in its list", releasable_bytes,
                                error);
    return ar_policy_check_totals(base, releasable_bytes, error);
}

/* ---- hooks ----------------------------------------------------------------------------------- */

static const struct ar_option slab_options[] = {
    AR_POLICY_COMMON_OPTIONS,
    {"largest_class", AR_OPTION_BYTES, offsetof(struct slab_values, largest_class_bytes), "256KiB",
     4096, 16777216, NULL, "bytes of the largest size class; larger requests are cut to size"},
    {"keep", AR_OPTION_COUNT, offsetof(struct slab_values, keep), "1", 0, 1000000, NULL,
     "empty slabs that each class keeps, so that repeated use of one block is cheap"},
    {"slack", AR_OPTION_FRACTION, offsetof(struct slab_values, slack), "0.125", 0, 1000000, NULL,
     "empty segments are released before reserved memory exceeds the greatest use plus this part "
     "of it"},
    {"virtual", AR_OPTION_BOOL, offsetof(struct slab_values, virtual), "false", 0, 0, NULL,
     "segments are mapped pages, and pages of empty segments move to where they are needed"},
    {0},
};

static enum ar_status slab_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                                 struct ar_policy_block *out)
{
    struct slab_policy *self = (struct slab_policy *)base;
    slab_note_stream(self, request->stream);
    return request->bytes <= self->largest_class_bytes ? slab_take(self, request->bytes, out)
                                                       : slab_take_large(self, request->bytes, out);
}

static enum ar_status slab_free(struct ar_policy *base, const struct ar_policy_block *block,
                                uint32_t stream)
{
    struct slab_policy *self = (struct slab_policy *)base;
    slab_note_stream(self, stream);
    ar_policy_ungrant(base, block->requested_bytes, block->granted_bytes);
    if (block->requested_bytes <= self->largest_class_bytes)
        slab_give(self, block);
    else
        slab_restore(self, (uint32_t)block->cookie);
    return AR_OK;
}

static enum ar_status slab_use(struct ar_policy *base,
                               const struct ar_policy_block *block AR_UNUSED, uint32_t stream)
{
    struct slab_policy *self = (struct slab_policy *)base;
    slab_note_stream(self, stream);
    return AR_OK;
}

static enum ar_status slab_trim(struct ar_policy *base, uint64_t keep_bytes)
{
    struct slab_policy *self = (struct slab_policy *)base;
    slab_return_empty(self);
    uint64_t cached = self->heap.lists[SLAB_EMPTY]->free_bytes;
    enum ar_status status = cached > keep_bytes ? slab_release(self, cached - keep_bytes) : AR_OK;
    if (self->pages)
        slab_pages_drain(self->pages);
    return status;
}

static const char *slab_problem(const struct ar_policy *base)
{
    return ar_backing_problem(((const struct slab_policy *)base)->heap.backing);
}

static void slab_destroy(struct ar_policy *base)
{
    struct slab_policy *self = (struct slab_policy *)base;
    struct ar_host *host = self->heap.host;
    close_classes(self);
    heap_close(&self->heap);
    slab_pages_close(self->pages);
    ar_host_free(host, self, sizeof *self);
}

static enum ar_status slab_create(const struct ar_policy_context *context, const void *given,
                                  struct ar_policy **out, struct ar_error *error)
{
    extern const struct ar_policy_ops slab_policy;
    const struct slab_values *values = given;
    struct slab_policy *self = ar_policy_new(context, &slab_policy, sizeof *self, error);
    AR_TRY_HOST(self);
    self->limit_bytes = ar_policy_limit(&values->common);
    self->largest_class_bytes = slab_class_bytes(slab_class_of(values->largest_class_bytes));
    self->keep = (uint32_t)values->keep;
    self->slack = values->slack;
    heap_open(&self->heap, &self->base, context);
    enum ar_status status = AR_OK;
    if (values->virtual)
        status = slab_pages_open(context, &self->last_stream, &self->pages);
    if (self->pages)
        self->heap.backing = slab_pages_backing(self->pages);
    for (uint32_t list = 0; status == AR_OK && list < SLAB_LISTS; list++)
        status = heap_reserve(&self->heap, 0, list);
    if (status != AR_OK) {
        slab_destroy(&self->base);
        return status == AR_UNSUPPORTED
                   ? ar_error_set(error, status,
                                  "policy slab: virtual=true, but this device has no virtual "
                                  "memory; leave it out")
                   : ar_error_set(error, status, "no host memory for policy slab");
    }
    *out = &self->base;
    return AR_OK;
}

const struct ar_policy_ops slab_policy = {
    .name = "slab",
    .summary = "size classes in slabs, the fullest first; best fit for large requests",
    .reference = "Bonwick 1994, with size classes as in mimalloc, eight to a doubling",
    .capabilities = AR_POLICY_WATCHES_FREE,
    .options = slab_options,
    .values_bytes = sizeof(struct slab_values),
    .create = slab_create,
    AR_POLICY_HOOKS(slab),
    .room = slab_room,
    .use = slab_use,
    .trim = slab_trim,
    .problem = slab_problem,
};
