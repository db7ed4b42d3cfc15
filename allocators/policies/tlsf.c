/* Two-level segregated fit (Masmano, Ripoll, Crespo, Real: "TLSF: a new dynamic memory allocator
 * for real-time systems", 2004), deciding as mattconte/tlsf (2020) on 64 bits:
 *
 * 1. Sizes round up to 8 bytes, at least 24. There is a class for each 8 bytes below 256 bytes, and
 *    32 classes for each power of two above. Two levels of bitmaps find a class that holds a block.
 * 2. A request searches from the next class up, so every block there is large enough (good fit).
 *    The block that was freed last is taken first.
 * 3. A block is cut if at least a smallest block and its header are left. A freed block merges with
 *    both neighbours at once.
 * 4. Every block has a header of 8 bytes before it, and a pool has 16 bytes of headers at its ends.
 *    They count as overhead. Real device memory cannot hold headers, but the addresses are the same
 *    as if it did.
 * 5. Memory comes in pools: `pool` bytes, or more if the request needs more. The reference uses one
 *    given pool and blocks of at most 4 GiB. Here pools are added on demand, and classes reach 2^48
 *    bytes.
 *
 * All operations take constant time. The waste of good fit is below 1/32 of a block. */
#include "allocators/base/span.h"
#include "allocators/base/size.h"
#include "allocators/policy.h"

#include "allocators/base/array.h"

#define ALIGN_BYTES       UINT64_C(8)
#define HEADER_BYTES      UINT64_C(8)
#define POOL_HEADER_BYTES (2 * HEADER_BYTES) /* before the first block, and the end mark */
#define LEAST_BYTES       UINT64_C(24)
#define LEAST_BLOCK_BYTES (LEAST_BYTES + HEADER_BYTES)
#define SECOND_LOG2       5u
#define SECOND_COUNT      32u
#define SMALL_LOG2        8u /* sizes below 2^8 are all of first level 0 */

struct tlsf_values {
    struct ar_policy_common common;
    uint64_t pool_bytes;
};

struct tlsf_pool {
    uint64_t address, bytes;
    uint32_t first;
};

struct tlsf {
    struct ar_policy base;
    struct ar_backing *backing;
    struct ar_host *host;
    uint64_t limit_bytes, pool_bytes;
    struct ar_spans spans; /* left, right: the list of the class; owner: the class */
    struct ar_class_lists lists;
    struct tlsf_pool *pools; /* by address */
    uint32_t pool_count, pool_room;
    uint64_t splits, failures;
};

static const struct ar_option tlsf_options[] = {
    AR_POLICY_COMMON_OPTIONS,
    {"pool", AR_OPTION_BYTES, offsetof(struct tlsf_values, pool_bytes), "1GiB", 4096, 0x1p48, NULL,
     "bytes of each pool; a larger request gets a pool of its size"},
    {0},
};

/* The logarithm of a size; that of a small size is SMALL_LOG2. */
static inline unsigned log_of(uint64_t bytes)
{
    return (unsigned)__builtin_clzll(bytes | UINT64_C(1) << SMALL_LOG2) ^ 63u;
}

/* The class of a block. */
static inline unsigned class_of(uint64_t bytes)
{
    unsigned log = log_of(bytes);
    return ((log - SMALL_LOG2) << SECOND_LOG2) + (unsigned)(bytes >> (log - SECOND_LOG2));
}

/* The first class in which every block is large enough. */
static inline unsigned class_above(uint64_t bytes)
{
    unsigned log = log_of(bytes);
    return ((log - SMALL_LOG2) << SECOND_LOG2) + (unsigned)((bytes - 1) >> (log - SECOND_LOG2)) + 1;
}

/* The smallest size of a class. */
static uint64_t class_bottom(unsigned class)
{
    unsigned first = class / SECOND_COUNT;
    uint64_t second = class % SECOND_COUNT;
    return first ? (SECOND_COUNT + second) << (first + SMALL_LOG2 - 1 - SECOND_LOG2)
                 : second << (SMALL_LOG2 - SECOND_LOG2);
}

/* Whether a block fills its pool. If it is free, its bytes are releasable. */
static inline bool fills_pool(const struct ar_span *span)
{
    return !(span->previous | span->next);
}

/* A block that is in no list becomes free. */
AR_INLINE void add_free(struct tlsf *self, uint32_t block, const bool watched)
{
    const struct ar_span *span = &self->spans.at[block];
    ar_class_lists_push(&self->lists, self->spans.at, class_of(span->bytes), block);
    if (__builtin_expect(fills_pool(span), 0))
        self->base.totals.releasable_bytes += span->bytes;
    if (watched)
        ar_policy_free_added(&self->base, span->bytes);
}

/* Cuts `block` after `bytes`. What follows, less a header, is the new block. */
static inline uint32_t cut(struct tlsf *self, uint32_t block, uint64_t bytes)
{
    self->base.totals.overhead_bytes += HEADER_BYTES;
    self->splits++;
    return ar_spans_cut(&self->spans, block, bytes, HEADER_BYTES);
}

/* `right`, which is in no list, becomes part of `left`, its neighbour. */
static inline void absorb(struct tlsf *self, uint32_t left, uint32_t right)
{
    self->spans.at[left].bytes += self->spans.at[right].bytes + HEADER_BYTES;
    (void)ar_spans_join(&self->spans, left, right);
    self->base.totals.overhead_bytes -= HEADER_BYTES;
}

/* A new pool with one free block for at least `bytes`. */
static enum ar_status add_pool(struct tlsf *self, uint64_t bytes)
{
    unsigned class = class_above(bytes);
    uint64_t least = class_bottom(class) + POOL_HEADER_BYTES;
    uint64_t wanted = least > self->pool_bytes ? least : self->pool_bytes;
    uint64_t room = self->limit_bytes - self->base.totals.reserved_bytes;
    uint64_t address;
    if (class >= AR_CLASSES)
        return AR_NO_MEMORY;
    if (self->pool_count == self->pool_room &&
        !ar_host_extend(self->host, &self->pools, &self->pool_room,
                        self->pool_room + self->pool_room / 4 + 4, sizeof *self->pools))
        return AR_HOST_MEMORY;
    if (wanted > room)
        wanted = ar_size_round_down(room, ALIGN_BYTES);
    if (wanted < least)
        return AR_NO_MEMORY;
    enum ar_status status = ar_backing_segment_alloc(self->backing, wanted, &address);
    if (status == AR_REFUSED && wanted > least) {
        wanted = least; /* try a pool for this request alone */
        status = ar_backing_segment_alloc(self->backing, wanted, &address);
    }
    if (status != AR_OK)
        return status == AR_REFUSED ? AR_NO_MEMORY : status;
    uint64_t bytes_inside = ar_size_round_down(wanted - POOL_HEADER_BYTES, ALIGN_BYTES);
    uint32_t block = ar_spans_new(&self->spans, address + HEADER_BYTES, bytes_inside);
    size_t place = ar_array_from(self->pools, self->pool_count, sizeof *self->pools,
                                 offsetof(struct tlsf_pool, address), address);
    AR_ARRAY_INSERT(self->pools, self->pool_count, place,
                    (struct tlsf_pool){.address = address, .bytes = wanted, .first = block});
    self->base.totals.reserved_bytes += wanted;
    self->base.totals.overhead_bytes += wanted - bytes_inside;
    ar_class_lists_reach(&self->lists, class_of(bytes_inside));
    add_free(self, block, true);
    return AR_OK;
}

/* The bytes before the first aligned place in a block: 0, or enough for a block of their own. */
static uint64_t leading_gap(uint64_t address, uint64_t alignment)
{
    uint64_t aligned = ar_size_round_up(address, alignment);
    uint64_t gap = aligned - address;
    if (gap && gap < LEAST_BLOCK_BYTES) {
        uint64_t rest = LEAST_BLOCK_BYTES - gap;
        aligned = ar_size_round_up(aligned + (rest > alignment ? rest : alignment), alignment);
        gap = aligned - address;
    }
    return gap;
}

/* Removes the head of a class and marks it used. */
AR_INLINE uint32_t take_head(struct tlsf *self, unsigned class, const bool watched)
{
    uint32_t block = self->lists.heads[class];
    struct ar_span *span = &self->spans.at[block];
    ar_class_lists_pop(&self->lists, class, span->right);
    if (__builtin_expect(fills_pool(span), 0))
        self->base.totals.releasable_bytes -= span->bytes;
    if (watched)
        ar_policy_free_removed(&self->base, span->bytes);
    span->used = 1;
    return block;
}

/* For a request that finds no block, or has a large alignment: a class whose head starts at an
 * aligned address and is large enough. The block may be of a new pool, or it is cut for the
 * request. */
static enum ar_status find_again(struct tlsf *self, uint64_t bytes, uint64_t alignment,
                                 unsigned *class)
{
    uint64_t wanted = bytes;
    if (alignment > ALIGN_BYTES)
        wanted = ar_size_round_up(bytes + alignment + LEAST_BLOCK_BYTES, alignment);
    if (!ar_class_lists_find(&self->lists, class_above(wanted), class)) {
        enum ar_status status = add_pool(self, wanted);
        if (status != AR_OK) {
            self->failures += status == AR_NO_MEMORY;
            return status;
        }
        (void)ar_class_lists_find(&self->lists, class_above(wanted), class);
    }
    if (alignment <= ALIGN_BYTES)
        return AR_OK;
    uint32_t block = self->lists.heads[*class];
    uint64_t gap = leading_gap(self->spans.at[block].address, alignment);
    if (gap) {
        take_head(self, *class, true);
        uint32_t aligned = cut(self, block, gap - HEADER_BYTES);
        self->spans.at[block].used = 0;
        add_free(self, block, true);
        add_free(self, aligned, true);
        *class = class_of(self->spans.at[aligned].bytes);
    }
    return AR_OK;
}

/* Serves a request from the head of `class`. The usual path makes no calls, and there is a copy of
 * it without a watch of free blocks, so few registers are saved. */
AR_INLINE enum ar_status take(struct tlsf *self, unsigned class, uint64_t bytes,
                              struct ar_policy_block *out, const bool watched)
{
    uint32_t block = take_head(self, class, watched);
    struct ar_span *span = &self->spans.at[block];
    span->requested_bytes = out->requested_bytes;
    if (span->bytes >= bytes + LEAST_BLOCK_BYTES) {
        uint64_t rest_bytes = span->bytes - bytes - HEADER_BYTES;
        uint32_t rest = cut(self, block, bytes);
        ar_class_lists_push(&self->lists, self->spans.at, class_of(rest_bytes), rest);
        if (watched)
            ar_policy_free_added(&self->base, rest_bytes);
    }
    ar_policy_grant(&self->base, out, span->address, span->bytes, block);
    return AR_OK;
}

static __attribute__((noinline)) enum ar_status
take_watched(struct tlsf *self, unsigned class, uint64_t bytes, struct ar_policy_block *out)
{
    return take(self, class, bytes, out, true);
}

/* For a request that the lists alone cannot serve. */
static __attribute__((noinline)) enum ar_status alloc_rare(struct tlsf *self,
                                                           const struct ar_policy_request *request,
                                                           uint64_t bytes,
                                                           struct ar_policy_block *out)
{
    unsigned class = 0;
    AR_TRY_HOST(ar_spans_reserve(&self->spans, self->host, 4));
    enum ar_status status = find_again(self, bytes, request->alignment, &class);
    return status == AR_OK ? take_watched(self, class, bytes, out) : status;
}

static enum ar_status tlsf_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                                 struct ar_policy_block *out)
{
    struct tlsf *self = (struct tlsf *)base;
    uint64_t bytes = ar_size_round_up(request->bytes, ALIGN_BYTES);
    unsigned class;
    if (bytes < LEAST_BYTES)
        bytes = LEAST_BYTES;
    if (self->spans.spare_count < 4 || request->alignment > ALIGN_BYTES ||
        !ar_class_lists_find(&self->lists, class_above(bytes), &class))
        return alloc_rare(self, request, bytes, out);
    return base->watch ? take_watched(self, class, bytes, out)
                       : take(self, class, bytes, out, false);
}

AR_INLINE enum ar_status take_back(struct tlsf *self, uint32_t block, const bool watched)
{
    struct ar_span *at = self->spans.at;
    ar_policy_ungrant(&self->base, at[block].requested_bytes, at[block].bytes);
    uint32_t next = at[block].next;
    if (!at[next].used) { /* record 0 counts as used */
        if (watched)
            ar_policy_free_removed(&self->base, at[next].bytes);
        ar_class_lists_remove(&self->lists, at, next);
        absorb(self, block, next);
    }
    uint32_t previous = at[block].previous;
    if (!at[previous].used) {
        if (watched)
            ar_policy_free_removed(&self->base, at[previous].bytes);
        ar_class_lists_remove(&self->lists, at, previous);
        absorb(self, previous, block);
        block = previous;
    }
    at[block].used = 0;
    add_free(self, block, watched);
    return AR_OK;
}

static __attribute__((noinline)) enum ar_status take_back_watched(struct tlsf *self, uint32_t block)
{
    return take_back(self, block, true);
}

static enum ar_status tlsf_free(struct ar_policy *base, const struct ar_policy_block *given,
                                uint32_t stream AR_UNUSED)
{
    struct tlsf *self = (struct tlsf *)base;
    uint32_t block = (uint32_t)given->cookie;
    return base->watch ? take_back_watched(self, block) : take_back(self, block, false);
}

/* The largest request that good fit can serve: the smallest size of the highest class. */
static void tlsf_room(const struct ar_policy *base, struct ar_policy_room *out)
{
    unsigned class;
    bool any = ar_class_lists_highest(&((const struct tlsf *)base)->lists, 0, &class);
    ar_policy_room_fill(out, any ? class_bottom(class) : 0, 0, 0);
}

static void tlsf_stats(const struct ar_policy *base, struct ar_policy_stats *out)
{
    const struct tlsf *self = (const struct tlsf *)base;
    *out = (struct ar_policy_stats){.totals = self->base.totals};
    out->count.splits = self->splits;
    if (self->pool_count) /* each split makes a block, and each merge takes one away */
        out->count.merges = self->splits + self->pool_count - ar_spans_taken(&self->spans);
    out->count.segments_made = self->pool_count;
    out->count.failures = self->failures;
}

static bool visit_range(ar_policy_visit *visit, void *argument, struct ar_policy_range range,
                        enum ar_policy_range_state state, uint64_t bytes)
{
    range.state = state;
    range.bytes = bytes;
    return bytes == 0 || visit(argument, &range);
}

static void tlsf_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument)
{
    const struct tlsf *self = (const struct tlsf *)base;
    for (uint32_t i = 0; i < self->pool_count; i++) {
        const struct tlsf_pool *pool = &self->pools[i];
        struct ar_policy_range range = {.address = pool->address, .segment_address = pool->address};
        for (uint32_t b = pool->first; b; b = self->spans.at[b].next) {
            const struct ar_span *span = &self->spans.at[b];
            if (!visit_range(visit, argument, range, AR_POLICY_RANGE_OVERHEAD, HEADER_BYTES))
                return;
            range.address = span->address;
            range.requested_bytes = span->used ? span->requested_bytes : 0;
            if (!visit_range(visit, argument, range,
                             span->used ? AR_POLICY_RANGE_USED : AR_POLICY_RANGE_FREE, span->bytes))
                return;
            range.address = span->address + span->bytes;
            range.requested_bytes = 0;
        }
        if (!visit_range(visit, argument, range, AR_POLICY_RANGE_OVERHEAD,
                         pool->address + pool->bytes - range.address))
            return;
    }
}

static enum ar_status check_pool(const struct tlsf *self, const struct tlsf_pool *pool,
                                 uint64_t *releasable_bytes, uint64_t *free_blocks,
                                 struct ar_error *error)
{
    uint64_t address = pool->address + HEADER_BYTES;
    for (uint32_t b = pool->first; b; b = self->spans.at[b].next) {
        const struct ar_span *span = &self->spans.at[b];
        const struct ar_span *next = span->next ? &self->spans.at[span->next] : NULL;
        const char *fault = NULL;
        if (span->address != address || span->bytes < LEAST_BYTES || span->bytes % ALIGN_BYTES)
            fault = "a block has a wrong size or does not follow the one before it";
        else if (next && next->previous != b)
            fault = "the links of two neighbours differ";
        else if (next && !span->used && !next->used)
            fault = "two free blocks are not merged";
        else if (!span->used &&
                 !ar_class_lists_has(&self->lists, self->spans.at, class_of(span->bytes), b))
            fault = "a free block is in no list";
        if (fault)
            return ar_policy_broken(&self->base, fault, address, error);
        address += span->bytes + HEADER_BYTES;
        *free_blocks += !span->used;
        *releasable_bytes += !span->used && fills_pool(span) ? span->bytes : 0;
    }
    if (address > pool->address + pool->bytes)
        return ar_policy_broken(&self->base, "blocks lie past the end of a pool", address, error);
    return AR_OK;
}

static enum ar_status check_lists(const struct tlsf *self, uint64_t free_blocks,
                                  struct ar_error *error)
{
    uint64_t listed;
    const char *fault = ar_class_lists_fault(&self->lists, self->spans.at, &listed);
    if (fault)
        return ar_error_set(error, AR_CORRUPT, "policy tlsf: %s", fault);
    return listed == free_blocks
               ? AR_OK
               : ar_error_set(error, AR_CORRUPT,
                              "policy tlsf: the lists hold %llu blocks, the pools %llu",
                              (unsigned long long)listed, (unsigned long long)free_blocks);
}

static enum ar_status tlsf_validate(const struct ar_policy *base, struct ar_error *error)
{
    const struct tlsf *self = (const struct tlsf *)base;
    uint64_t releasable_bytes = 0, free_blocks = 0;
    for (uint32_t i = 0; i < self->pool_count; i++)
        AR_TRY(check_pool(self, &self->pools[i], &releasable_bytes, &free_blocks, error));
    AR_TRY(check_lists(self, free_blocks, error));
    return ar_policy_check_totals(base, releasable_bytes, error);
}

static void tlsf_destroy(struct ar_policy *base)
{
    struct tlsf *self = (struct tlsf *)base;
    for (uint32_t i = 0; i < self->pool_count; i++)
        (void)ar_backing_segment_free(self->backing, self->pools[i].address);
    ar_host_free(self->host, self->pools, self->pool_room * sizeof *self->pools);
    ar_spans_close(&self->spans, self->host);
    ar_host_free(self->host, self, sizeof *self);
}

static enum ar_status tlsf_create(const struct ar_policy_context *context, const void *given,
                                  struct ar_policy **out, struct ar_error *error)
{
    extern const struct ar_policy_ops tlsf_policy;
    const struct tlsf_values *values = given;
    struct tlsf *self = ar_policy_new(context, &tlsf_policy, sizeof *self, error);
    AR_TRY_HOST(self);
    self->backing = context->backing;
    self->host = context->host;
    self->pool_bytes = ar_size_round_down(values->pool_bytes, ALIGN_BYTES);
    self->limit_bytes = ar_policy_limit(&values->common);
    *out = &self->base;
    return AR_OK;
}

const struct ar_policy_ops tlsf_policy = {
    .name = "tlsf",
    .summary = "two-level segregated fit: constant time, good fit, last freed first",
    .reference = "mattconte/tlsf 2020, with pools added on demand",
    .capabilities = AR_POLICY_WATCHES_FREE | AR_POLICY_HONOURS_ALIGNMENT,
    .options = tlsf_options,
    .values_bytes = sizeof(struct tlsf_values),
    .create = tlsf_create,
    AR_POLICY_HOOKS(tlsf),
    .room = tlsf_room,
};
