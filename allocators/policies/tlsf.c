/* Two-level segregated fit (Masmano, Ripoll, Crespo, Real: "TLSF: a new dynamic memory allocator
 * for real-time systems", 2004), deciding as mattconte/tlsf (2020) on 64 bits:
 *
 * 1. Sizes round up to 8 bytes, at least 24. There is a class for each 8 bytes below 256 bytes, and
 *    32 classes for each power of two above. A bitmap finds a class that holds a block (the
 *    reference has two levels).
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
#include "allocators/base/parts.h"
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
    struct ar_parts blocks;
    struct tlsf_pool *pools; /* by address */
    uint32_t pool_count, pool_room;
    uint64_t failures;
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
static inline size_t class_of(uint64_t bytes)
{
    unsigned log = log_of(bytes);
    return ((size_t)(log - SMALL_LOG2) << SECOND_LOG2) + (bytes >> (log - SECOND_LOG2));
}

/* The first class in which every block is large enough. */
static inline size_t class_above(uint64_t bytes)
{
    unsigned log = log_of(bytes);
    return ((size_t)(log - SMALL_LOG2) << SECOND_LOG2) + ((bytes - 1) >> (log - SECOND_LOG2)) + 1;
}

/* The smallest size of a class. */
static uint64_t class_bottom(size_t class)
{
    size_t first = class / SECOND_COUNT;
    uint64_t second = class % SECOND_COUNT;
    return first ? (SECOND_COUNT + second) << (first + SMALL_LOG2 - 1 - SECOND_LOG2)
                 : second << (SMALL_LOG2 - SECOND_LOG2);
}

/* Whether a block fills its pool. If it is free, its bytes are releasable. */
static inline bool fills_pool(const struct ar_part *part)
{
    return !(part->previous | part->next);
}

/* A block that is in no list becomes free. */
AR_INLINE void add_free(struct tlsf *self, size_t block, uint64_t bytes, const bool plain)
{
    ar_parts_push(&self->blocks, block, class_of(bytes));
    if (__builtin_expect(fills_pool(&AR_PART(self->blocks.at, block)), 0))
        self->base.totals.releasable_bytes += bytes;
    if (!plain)
        ar_policy_free_added(&self->base, bytes);
}

/* Cuts `block` after `bytes`. What follows, less a header, is the new block. */
AR_INLINE size_t cut(struct tlsf *self, size_t block, struct ar_part *part, uint64_t bytes,
                     uint64_t rest_bytes)
{
    self->base.totals.overhead_bytes += HEADER_BYTES;
    return ar_parts_cut(&self->blocks, block, part, bytes, rest_bytes, HEADER_BYTES);
}

/* A new pool with one free block for at least `bytes`. */
static enum ar_status add_pool(struct tlsf *self, uint64_t bytes)
{
    size_t class = class_above(bytes);
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
    uint32_t block =
        ar_parts_new(&self->blocks, address + HEADER_BYTES, bytes_inside, class_of(bytes_inside));
    size_t place = ar_array_from(self->pools, self->pool_count, sizeof *self->pools,
                                 offsetof(struct tlsf_pool, address), address);
    AR_ARRAY_INSERT(self->pools, self->pool_count, place,
                    (struct tlsf_pool){.address = address, .bytes = wanted, .first = block});
    self->base.totals.reserved_bytes += wanted;
    self->base.totals.overhead_bytes += wanted - bytes_inside;
    add_free(self, block, bytes_inside, false);
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
AR_INLINE size_t take_head(struct tlsf *self, struct ar_class found, uint64_t requested_bytes,
                           const bool plain)
{
    size_t class = ar_part_number(found.index), block = ar_part_number(self->blocks.heads[class]);
    struct ar_part *part = &AR_PART(self->blocks.at, block);
    ar_parts_use(&self->blocks, part, class, found.word, requested_bytes);
    if (__builtin_expect(fills_pool(part), 0))
        self->base.totals.releasable_bytes -= part->bytes;
    if (!plain)
        ar_policy_free_removed(&self->base, part->bytes);
    return block;
}

/* For a request that finds no block, or has a large alignment: a class whose head starts at an
 * aligned address and is large enough. The block may be of a new pool, or it is cut for the
 * request. */
static enum ar_status find_again(struct tlsf *self, uint64_t bytes, uint64_t alignment,
                                 struct ar_class *class)
{
    uint64_t wanted = bytes;
    if (alignment > ALIGN_BYTES)
        wanted = ar_size_round_up(bytes + alignment + LEAST_BLOCK_BYTES, alignment);
    if (!ar_parts_find(&self->blocks, class_above(wanted), class)) {
        enum ar_status status = add_pool(self, wanted);
        if (status != AR_OK) {
            self->failures += status == AR_NO_MEMORY;
            return status;
        }
        (void)ar_parts_find(&self->blocks, class_above(wanted), class);
    }
    if (alignment <= ALIGN_BYTES)
        return AR_OK;
    size_t block = self->blocks.heads[class->index];
    struct ar_part *part = &AR_PART(self->blocks.at, block);
    uint64_t gap = leading_gap(part->address, alignment);
    if (gap) {
        uint64_t rest_bytes = part->bytes - gap;
        take_head(self, *class, 0, false);
        size_t aligned = cut(self, block, part, gap - HEADER_BYTES, rest_bytes);
        add_free(self, block, gap - HEADER_BYTES, false);
        add_free(self, aligned, rest_bytes, false);
        class->index = (unsigned)class_of(rest_bytes);
        class->word = class->index / 64;
    }
    return AR_OK;
}

/* Serves a request from the head of `class`. There is a copy of it without a watch of free blocks,
 * `plain`, so that few registers are saved. */
AR_INLINE enum ar_status take(struct tlsf *self, struct ar_class class, uint64_t bytes,
                              struct ar_policy_block *out, const bool plain)
{
    size_t block = take_head(self, class, out->requested_bytes, plain);
    struct ar_part *part = &AR_PART(self->blocks.at, block);
    AR_READ_AGAIN(self->blocks.at);
    AR_READ_AGAIN(out->requested_bytes);
    uint64_t rest_bytes = part->bytes - bytes;
    if (rest_bytes >= LEAST_BLOCK_BYTES) {
        rest_bytes -= HEADER_BYTES;
        size_t rest = cut(self, block, part, bytes, rest_bytes);
        ar_parts_push(&self->blocks, rest, class_of(rest_bytes));
        if (!plain)
            ar_policy_free_added(&self->base, rest_bytes);
        rest_bytes = 0;
    }
    AR_READ_AGAIN(part->address);
    ar_policy_grant(&self->base, out, part->address, bytes + rest_bytes, block);
    return AR_OK;
}

/* For a request that the lists alone cannot serve. */
static __attribute__((noinline)) enum ar_status alloc_rare(struct tlsf *self,
                                                           const struct ar_policy_request *request,
                                                           uint64_t bytes,
                                                           struct ar_policy_block *out)
{
    struct ar_class class = {0};
    AR_TRY_HOST(ar_parts_reserve(&self->blocks, self->host, 4, UINT32_MAX));
    enum ar_status status = find_again(self, bytes, request->alignment, &class);
    return status == AR_OK ? take(self, class, bytes, out, false) : status;
}

AR_INLINE enum ar_status serve(struct tlsf *self, const struct ar_policy_request *request,
                               struct ar_policy_block *out, const bool plain)
{
    uint64_t bytes = ar_size_round_up(request->bytes, ALIGN_BYTES);
    struct ar_class class;
    if (bytes < LEAST_BYTES)
        bytes = LEAST_BYTES;
    if (!self->blocks.spare || request->alignment > ALIGN_BYTES ||
        !ar_parts_find(&self->blocks, class_above(bytes), &class))
        return alloc_rare(self, request, bytes, out);
    return take(self, class, bytes, out, plain);
}

AR_INLINE enum ar_status take_back(struct tlsf *self, size_t block, const bool plain)
{
    struct ar_merge merge;
    const struct ar_part *part = &AR_PART(self->blocks.at, block);
    ar_policy_ungrant(&self->base, part->requested_bytes, part->bytes);
    block = ar_parts_merge(&self->blocks, block, HEADER_BYTES, &self->base.totals.overhead_bytes,
                           &merge);
    if (!plain) {
        ar_policy_free_removed(&self->base, merge.next_bytes);
        ar_policy_free_removed(&self->base, merge.previous_bytes);
    }
    add_free(self, block, merge.bytes, plain);
    return AR_OK;
}

static enum ar_status tlsf_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                                 struct ar_policy_block *out)
{
    return serve((struct tlsf *)base, request, out, true);
}

static enum ar_status tlsf_free(struct ar_policy *base, const struct ar_policy_block *given,
                                uint32_t stream AR_UNUSED)
{
    return take_back((struct tlsf *)base, given->cookie, true);
}

static enum ar_status watched_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                                    struct ar_policy_block *out)
{
    return serve((struct tlsf *)base, request, out, false);
}

static enum ar_status watched_free(struct ar_policy *base, const struct ar_policy_block *given,
                                   uint32_t stream AR_UNUSED)
{
    return take_back((struct tlsf *)base, given->cookie, false);
}

/* The largest request that good fit can serve: the smallest size of the highest class. */
static void tlsf_room(const struct ar_policy *base, struct ar_policy_room *out)
{
    unsigned class;
    bool any = ar_parts_highest(&((const struct tlsf *)base)->blocks, 0, &class);
    ar_policy_room_fill(out, any ? class_bottom(class) : 0, 0, 0);
}

static void tlsf_stats(const struct ar_policy *base, struct ar_policy_stats *out)
{
    const struct tlsf *self = (const struct tlsf *)base;
    *out = (struct ar_policy_stats){.totals = self->base.totals};
    out->count.splits = self->blocks.splits;
    out->count.merges = self->blocks.merges;
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
        for (uint32_t b = pool->first; b; b = AR_PART(self->blocks.at, b).next) {
            const struct ar_part *part = &AR_PART(self->blocks.at, b);
            if (!visit_range(visit, argument, range, AR_POLICY_RANGE_OVERHEAD, HEADER_BYTES))
                return;
            range.address = part->address;
            range.requested_bytes = ar_part_is_used(part) ? part->requested_bytes : 0;
            if (!visit_range(visit, argument, range,
                             ar_part_is_used(part) ? AR_POLICY_RANGE_USED : AR_POLICY_RANGE_FREE,
                             part->bytes))
                return;
            range.address = part->address + part->bytes;
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
    for (uint32_t b = pool->first; b; b = AR_PART(self->blocks.at, b).next) {
        const struct ar_part *part = &AR_PART(self->blocks.at, b);
        const struct ar_part *next = part->next ? &AR_PART(self->blocks.at, part->next) : NULL;
        const char *fault = NULL;
        if (part->address != address || part->bytes < LEAST_BYTES || part->bytes % ALIGN_BYTES)
            fault = "a block has a wrong size or does not follow the one before it";
        else if (next && next->previous != b)
            fault = "the links of two neighbours differ";
        else if (next && !ar_part_is_used(part) && !ar_part_is_used(next))
            fault = "two free blocks are not merged";
        else if (!ar_part_is_used(part) && !ar_parts_has(&self->blocks, class_of(part->bytes), b))
            fault = "a free block is in no list";
        if (fault)
            return ar_policy_broken(&self->base, fault, address, error);
        address += part->bytes + HEADER_BYTES;
        *free_blocks += !ar_part_is_used(part);
        *releasable_bytes += !ar_part_is_used(part) && fills_pool(part) ? part->bytes : 0;
    }
    if (address > pool->address + pool->bytes)
        return ar_policy_broken(&self->base, "blocks lie past the end of a pool", address, error);
    return AR_OK;
}

static enum ar_status check_lists(const struct tlsf *self, uint64_t free_blocks,
                                  struct ar_error *error)
{
    uint64_t listed;
    const char *fault = ar_parts_fault(&self->blocks, &listed);
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
    ar_parts_close(&self->blocks, self->host);
    ar_host_free(self->host, self, sizeof *self);
}

static void tlsf_watched(struct ar_policy *base);
static enum ar_status tlsf_create(const struct ar_policy_context *context, const void *given,
                                  struct ar_policy **out, struct ar_error *error);

#define TLSF_OPS                                                                                   \
    .summary = "two-level segregated fit: constant time, good fit, last freed first",              \
    .reference = "mattconte/tlsf 2020, with pools added on demand",                                \
    .capabilities = AR_POLICY_WATCHES_FREE | AR_POLICY_HONOURS_ALIGNMENT, .options = tlsf_options, \
    .values_bytes = sizeof(struct tlsf_values), .create = tlsf_create, .room = tlsf_room,          \
    .watched = tlsf_watched

const struct ar_policy_ops tlsf_policy = {
    .name = "tlsf",
    AR_POLICY_HOOKS(tlsf),
    TLSF_OPS,
};

static const struct ar_policy_ops watched_ops = {
    .name = "tlsf",
    AR_POLICY_HOOKS_WITH(tlsf, watched_alloc, watched_free),
    TLSF_OPS,
};

static void tlsf_watched(struct ar_policy *base)
{
    base->ops = base->watch ? &watched_ops : &tlsf_policy;
}

static enum ar_status tlsf_create(const struct ar_policy_context *context, const void *given,
                                  struct ar_policy **out, struct ar_error *error)
{
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
