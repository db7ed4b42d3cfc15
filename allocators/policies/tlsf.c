/* Two-level segregated fit (Masmano, Ripoll, Crespo, Real: "TLSF: a new dynamic memory
 * allocator for real-time systems", 2004), deciding as mattconte/tlsf (2020) on 64 bits:
 *
 * 1. Sizes round up to 8 bytes, at least 24. Classes: 32 to a doubling from 256 bytes on, one
 *    per 8 bytes below. Two levels of bitmaps find a class that holds a block.
 * 2. A request looks from the next class up, so that any block found fits without a search
 *    (good fit); the block freed last is taken first.
 * 3. A block is cut where at least a smallest block with its header is left. A freed block
 *    merges with both neighbours at once.
 * 4. Every block has a header of 8 bytes before it, and a pool 16 bytes of them at its ends;
 *    they are counted as overhead. Real device memory cannot hold headers: the places are the
 *    same as if it did.
 * 5. Memory comes in pools: `pool` bytes, or what the request needs. The reference takes one
 *    pool given from outside and ends at blocks of 4 GiB; here pools are added on demand and
 *    classes go on to 2^48 bytes.
 *
 * All operations take constant time. Waste of good fit: below 1/32 of a block. */
#include "allocators/base/size.h"
#include "allocators/base/span.h"
#include "allocators/policy.h"

#include <string.h>

#define ALIGN_BYTES       UINT64_C(8)
#define HEADER_BYTES      UINT64_C(8)
#define POOL_HEADER_BYTES (2 * HEADER_BYTES) /* before the first block, and the end mark */
#define LEAST_BYTES       UINT64_C(24)
#define LEAST_BLOCK_BYTES (LEAST_BYTES + HEADER_BYTES)
#define SECOND_LOG2       5u
#define SECOND_COUNT      32u
#define SMALL_LOG2        8u /* sizes below 2^8 are all of first level 0 */
#define FIRST_COUNT       41u
#define CLASS_COUNT       (FIRST_COUNT * SECOND_COUNT) /* first level * 32 + second level */

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
    struct ar_spans spans; /* left: previous in the class's list, right: next, owner: the class */
    uint64_t first_map;
    uint32_t second_map[FIRST_COUNT];
    uint32_t heads[CLASS_COUNT];
    struct tlsf_pool *pools; /* by address */
    uint32_t pool_count, pool_room;
    uint64_t splits, merges, failures;
};

static const struct ar_option tlsf_options[] = {
    AR_POLICY_COMMON_OPTIONS,
    {"pool", AR_OPTION_BYTES, offsetof(struct tlsf_values, pool_bytes), "1GiB", 4096, 0x1p48, NULL,
     "bytes of each pool; a larger request gets a pool of its size"},
    {NULL, AR_OPTION_BYTES, 0, NULL, 0, 0, NULL, NULL},
};

static struct tlsf *tlsf_of(struct ar_policy *base)
{
    return (struct tlsf *)base;
}

/* The power of two below a size; all small sizes count as the first one that is not. */
static inline unsigned log_of(uint64_t bytes)
{
    return (unsigned)__builtin_clzll(bytes | UINT64_C(1) << SMALL_LOG2) ^ 63u;
}

/* The class that a block is in. */
static inline unsigned class_of(uint64_t bytes)
{
    unsigned log = log_of(bytes);
    return ((log - SMALL_LOG2) << SECOND_LOG2) + (unsigned)(bytes >> (log - SECOND_LOG2));
}

/* The first class of which every block is large enough. */
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

/* Whether a block fills its pool; then, while it is free, its bytes count as releasable. */
static inline bool fills_pool(const struct ar_span *span)
{
    return !(span->previous | span->next);
}

static inline void list_push(struct tlsf *self, unsigned class, uint32_t block)
{
    struct ar_span *at = self->spans.at;
    struct ar_span *span = &at[block];
    uint32_t head = self->heads[class];
    self->heads[class] = block;
    span->left = 0;
    span->right = head;
    span->owner = class;
    span->used = 0;
    if (head) {
        at[head].left = block;
    } else {
        self->first_map |= UINT64_C(1) << class / SECOND_COUNT;
        self->second_map[class / SECOND_COUNT] |= UINT32_C(1) << class % SECOND_COUNT;
    }
}

/* Takes out the head of a list; `right` follows it. */
static inline void list_pop(struct tlsf *self, unsigned class, uint32_t right)
{
    self->heads[class] = right;
    if (right) {
        self->spans.at[right].left = 0;
    } else {
        uint32_t *map = &self->second_map[class / SECOND_COUNT];
        *map &= ~(UINT32_C(1) << class % SECOND_COUNT);
        if (!*map)
            self->first_map &= ~(UINT64_C(1) << class / SECOND_COUNT);
    }
}

static inline void list_remove(struct tlsf *self, const struct ar_span *span)
{
    struct ar_span *at = self->spans.at;
    if (span->left) {
        at[span->left].right = span->right;
        at[span->right].left = span->left; /* record 0 may be written */
    } else {
        list_pop(self, span->owner, span->right);
    }
}

/* A block that is in no list becomes a free one. */
static inline void add_free(struct tlsf *self, uint32_t block)
{
    const struct ar_span *span = &self->spans.at[block];
    list_push(self, class_of(span->bytes), block);
    if (__builtin_expect(fills_pool(span), 0))
        self->base.totals.releasable_bytes += span->bytes;
    ar_policy_free_added(&self->base, span->bytes);
}

/* The first class from the given one on that holds a block. False: none. */
static inline bool find(const struct tlsf *self, unsigned class, unsigned *found)
{
    if (class >= CLASS_COUNT)
        return false;
    unsigned first = class / SECOND_COUNT;
    uint32_t second = self->second_map[first] & (~UINT32_C(0) << class % SECOND_COUNT);
    if (!second) {
        uint64_t above = self->first_map & (~UINT64_C(1) << first);
        if (!above)
            return false;
        first = (unsigned)__builtin_ctzll(above);
        second = self->second_map[first];
    }
    *found = first * SECOND_COUNT + (unsigned)__builtin_ctz(second);
    return true;
}

/* Cuts `block` after `bytes`; what follows, less a header, is the new block. */
static inline uint32_t cut(struct tlsf *self, uint32_t block, uint64_t bytes)
{
    uint32_t rest = ar_spans_take(&self->spans);
    struct ar_span *at = self->spans.at;
    struct ar_span *head = &at[block];
    struct ar_span *tail = &at[rest];
    uint32_t next = head->next;
    tail->address = head->address + bytes + HEADER_BYTES;
    tail->bytes = head->bytes - bytes - HEADER_BYTES;
    tail->previous = block;
    tail->next = next;
    at[next].previous = rest; /* record 0 may be written */
    head->next = rest;
    head->bytes = bytes;
    self->base.totals.overhead_bytes += HEADER_BYTES;
    self->splits++;
    return rest;
}

/* The right one of two neighbours, in no list, becomes part of the left one. */
static inline void absorb(struct tlsf *self, uint32_t left, uint32_t right)
{
    struct ar_span *at = self->spans.at;
    uint32_t next = at[right].next;
    at[left].bytes += at[right].bytes + HEADER_BYTES;
    at[left].next = next;
    at[next].previous = left; /* record 0 may be written */
    ar_spans_drop(&self->spans, right);
    self->base.totals.overhead_bytes -= HEADER_BYTES;
    self->merges++;
}

/* A new pool with one free block for at least `bytes`. */
static enum ar_status add_pool(struct tlsf *self, uint64_t bytes)
{
    unsigned class = class_above(bytes);
    uint64_t least = class_bottom(class) + POOL_HEADER_BYTES;
    uint64_t wanted = least > self->pool_bytes ? least : self->pool_bytes;
    uint64_t room = self->limit_bytes - self->base.totals.reserved_bytes;
    uint64_t address;
    if (class >= CLASS_COUNT)
        return AR_NO_MEMORY;
    if (self->pool_count == self->pool_room) {
        uint32_t more = self->pool_room + self->pool_room / 4 + 4;
        struct tlsf_pool *grown =
            ar_host_grow(self->host, self->pools, self->pool_room, more, sizeof *grown);
        if (!grown)
            return AR_HOST_MEMORY;
        self->pools = grown;
        self->pool_room = more;
    }
    if (wanted > room)
        wanted = ar_size_round_down(room, ALIGN_BYTES);
    if (wanted < least)
        return AR_NO_MEMORY;
    enum ar_status status = ar_backing_segment_alloc(self->backing, wanted, &address);
    if (status == AR_REFUSED && wanted > least) {
        wanted = least; /* a pool for this request alone is better than none */
        status = ar_backing_segment_alloc(self->backing, wanted, &address);
    }
    if (status != AR_OK)
        return status == AR_REFUSED ? AR_NO_MEMORY : status;
    uint32_t block = ar_spans_take(&self->spans);
    struct ar_span *span = &self->spans.at[block];
    span->address = address + HEADER_BYTES;
    span->bytes = ar_size_round_down(wanted - POOL_HEADER_BYTES, ALIGN_BYTES);
    span->previous = 0;
    span->next = 0;
    uint32_t place = self->pool_count;
    while (place > 0 && self->pools[place - 1].address > address)
        place--;
    memmove(self->pools + place + 1, self->pools + place,
            (self->pool_count - place) * sizeof *self->pools);
    self->pools[place] = (struct tlsf_pool){.address = address, .bytes = wanted, .first = block};
    self->pool_count++;
    self->base.totals.reserved_bytes += wanted;
    self->base.totals.overhead_bytes += wanted - span->bytes;
    add_free(self, block);
    return AR_OK;
}

/* What lies before the first aligned place in a block; 0 or enough for a block of its own. */
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

/* Takes the head of a class out and marks it used. */
static inline uint32_t take_head(struct tlsf *self, unsigned class)
{
    uint32_t block = self->heads[class];
    struct ar_span *span = &self->spans.at[block];
    list_pop(self, class, span->right);
    if (__builtin_expect(fills_pool(span), 0))
        self->base.totals.releasable_bytes -= span->bytes;
    ar_policy_free_removed(&self->base, span->bytes);
    span->used = 1;
    return block;
}

/* Where no block is there, or the alignment needs more: a class at whose head is a free block
 * that begins at an aligned place and is large enough. It may be of a new pool, or cut for it. */
static enum ar_status find_again(struct tlsf *self, uint64_t bytes, uint64_t alignment,
                                 unsigned *class)
{
    uint64_t wanted = bytes;
    if (alignment > ALIGN_BYTES)
        wanted = ar_size_round_up(bytes + alignment + LEAST_BLOCK_BYTES, alignment);
    if (!find(self, class_above(wanted), class)) {
        enum ar_status status = add_pool(self, wanted);
        if (status != AR_OK) {
            self->failures += status == AR_NO_MEMORY;
            return status;
        }
        (void)find(self, class_above(wanted), class);
    }
    if (alignment <= ALIGN_BYTES)
        return AR_OK;
    uint32_t block = self->heads[*class];
    uint64_t gap = leading_gap(self->spans.at[block].address, alignment);
    if (gap) {
        take_head(self, *class);
        uint32_t aligned = cut(self, block, gap - HEADER_BYTES);
        add_free(self, block);
        add_free(self, aligned);
        *class = class_of(self->spans.at[aligned].bytes);
    }
    return AR_OK;
}

/* Hands out what a request needs of the head of `class`. */
static inline enum ar_status take(struct tlsf *self, unsigned class, uint64_t bytes,
                                  uint64_t requested_bytes, struct ar_policy_block *out)
{
    uint32_t block = take_head(self, class);
    struct ar_span *span = &self->spans.at[block];
    if (span->bytes >= bytes + LEAST_BLOCK_BYTES) {
        uint64_t rest_bytes = span->bytes - bytes - HEADER_BYTES;
        list_push(self, class_of(rest_bytes), cut(self, block, bytes));
        ar_policy_free_added(&self->base, rest_bytes);
    }
    uint64_t granted_bytes = span->bytes;
    span->requested_bytes = requested_bytes;
    self->base.totals.live_bytes += requested_bytes;
    self->base.totals.granted_bytes += granted_bytes;
    self->base.totals.live_blocks++;
    out->address = span->address;
    out->granted_bytes = granted_bytes;
    out->cookie = block;
    return AR_OK;
}

/* For a request that needs more than a look into the lists. */
static __attribute__((noinline)) enum ar_status alloc_rare(struct tlsf *self,
                                                           const struct ar_policy_request *request,
                                                           uint64_t bytes,
                                                           struct ar_policy_block *out)
{
    unsigned class = 0;
    if (!ar_spans_reserve(&self->spans, self->host, 4))
        return AR_HOST_MEMORY;
    enum ar_status status = find_again(self, bytes, request->alignment, &class);
    return status == AR_OK ? take(self, class, bytes, request->bytes, out) : status;
}

/* Calls nothing on the usual way, which spares the saving of registers. */
static enum ar_status tlsf_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                                 struct ar_policy_block *out)
{
    struct tlsf *self = tlsf_of(base);
    uint64_t bytes = ar_size_round_up(request->bytes, ALIGN_BYTES);
    unsigned class;
    if (bytes < LEAST_BYTES)
        bytes = LEAST_BYTES;
    if (self->spans.spare_count < 4 || request->alignment > ALIGN_BYTES ||
        !find(self, class_above(bytes), &class))
        return alloc_rare(self, request, bytes, out);
    return take(self, class, bytes, request->bytes, out);
}

static enum ar_status tlsf_free(struct ar_policy *base, const struct ar_policy_block *given,
                                uint32_t stream)
{
    struct tlsf *self = tlsf_of(base);
    uint32_t block = (uint32_t)given->cookie;
    struct ar_span *at = self->spans.at;
    (void)stream;
    self->base.totals.live_bytes -= at[block].requested_bytes;
    self->base.totals.granted_bytes -= at[block].bytes;
    self->base.totals.live_blocks--;
    uint32_t next = at[block].next;
    if (!at[next].used) { /* record 0, which is none, is used */
        ar_policy_free_removed(&self->base, at[next].bytes);
        list_remove(self, &at[next]);
        absorb(self, block, next);
    }
    uint32_t previous = at[block].previous;
    if (!at[previous].used) {
        ar_policy_free_removed(&self->base, at[previous].bytes);
        list_remove(self, &at[previous]);
        absorb(self, previous, block);
        block = previous;
    }
    add_free(self, block);
    return AR_OK;
}

/* The largest request that good fit is sure to serve: the bottom of the highest class. */
static uint64_t largest_servable(const struct tlsf *self)
{
    if (!self->first_map)
        return 0;
    unsigned first = 63u - (unsigned)__builtin_clzll(self->first_map);
    unsigned second = 31u - (unsigned)__builtin_clz(self->second_map[first]);
    return class_bottom(first * SECOND_COUNT + second);
}

static void tlsf_stats(const struct ar_policy *base, struct ar_policy_stats *out)
{
    const struct tlsf *self = (const struct tlsf *)base;
    *out = (struct ar_policy_stats){.totals = self->base.totals};
    out->largest_free_block_bytes = largest_servable(self);
    out->count.splits = self->splits;
    out->count.merges = self->merges;
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

struct sums {
    uint64_t live_bytes, granted_bytes, live_blocks, releasable_bytes, overhead_bytes, free_blocks;
    uint64_t usable_bytes;
};

static bool in_list(const struct tlsf *self, uint32_t block)
{
    unsigned class = class_of(self->spans.at[block].bytes);
    if (self->spans.at[block].owner != class)
        return false;
    for (uint32_t b = self->heads[class]; b; b = self->spans.at[b].right)
        if (b == block)
            return true;
    return false;
}

static enum ar_status check_pool(const struct tlsf *self, const struct tlsf_pool *pool,
                                 struct sums *sums, struct ar_error *error)
{
    uint64_t address = pool->address + HEADER_BYTES;
    for (uint32_t b = pool->first; b; b = self->spans.at[b].next) {
        const struct ar_span *span = &self->spans.at[b];
        if (span->address != address || span->bytes < LEAST_BYTES || span->bytes % ALIGN_BYTES)
            return ar_error_set(error, AR_CORRUPT, "tlsf: a block of %llu bytes at %llu",
                                (unsigned long long)span->bytes, (unsigned long long)span->address);
        if (span->next && self->spans.at[span->next].previous != b)
            return ar_error_set(error, AR_CORRUPT, "tlsf: neighbours do not know each other");
        if (span->next && !span->used && !self->spans.at[span->next].used)
            return ar_error_set(error, AR_CORRUPT, "tlsf: blocks should have merged");
        sums->overhead_bytes += HEADER_BYTES;
        address += span->bytes + HEADER_BYTES;
        if (span->used) {
            sums->live_bytes += span->requested_bytes;
            sums->granted_bytes += span->bytes;
            sums->live_blocks++;
            continue;
        }
        if (!in_list(self, b))
            return ar_error_set(error, AR_CORRUPT, "tlsf: a free block is in no list");
        sums->free_blocks++;
        sums->releasable_bytes += fills_pool(span) ? span->bytes : 0;
        if (self->base.watch)
            sums->usable_bytes += span->bytes - span->bytes % self->base.watch->unit_bytes;
    }
    if (address > pool->address + pool->bytes)
        return ar_error_set(error, AR_CORRUPT, "tlsf: blocks lie past the end of a pool");
    sums->overhead_bytes += pool->address + pool->bytes - (address - HEADER_BYTES);
    return AR_OK;
}

static enum ar_status check_lists(const struct tlsf *self, uint64_t free_blocks,
                                  struct ar_error *error)
{
    uint64_t listed = 0;
    for (unsigned f = 0; f < FIRST_COUNT; f++) {
        for (unsigned s = 0; s < SECOND_COUNT; s++) {
            bool bit = self->second_map[f] >> s & 1u;
            if (bit != (self->heads[f * SECOND_COUNT + s] != 0))
                return ar_error_set(error, AR_CORRUPT, "tlsf: a bit and its list differ");
            for (uint32_t b = self->heads[f * SECOND_COUNT + s]; b; b = self->spans.at[b].right)
                listed++;
        }
        if ((self->second_map[f] != 0) != (self->first_map >> f & 1u))
            return ar_error_set(error, AR_CORRUPT, "tlsf: the two bitmaps differ");
    }
    return listed == free_blocks
               ? AR_OK
               : ar_error_set(error, AR_CORRUPT, "tlsf: the lists hold %llu blocks, the pools %llu",
                              (unsigned long long)listed, (unsigned long long)free_blocks);
}

static enum ar_status tlsf_validate(const struct ar_policy *base, struct ar_error *error)
{
    const struct tlsf *self = (const struct tlsf *)base;
    const struct ar_policy_totals *totals = &self->base.totals;
    struct sums sums = {0};
    for (uint32_t i = 0; i < self->pool_count; i++) {
        enum ar_status status = check_pool(self, &self->pools[i], &sums, error);
        if (status != AR_OK)
            return status;
    }
    if (sums.live_bytes != totals->live_bytes || sums.granted_bytes != totals->granted_bytes ||
        sums.live_blocks != totals->live_blocks ||
        sums.releasable_bytes != totals->releasable_bytes ||
        sums.overhead_bytes != totals->overhead_bytes)
        return ar_error_set(error, AR_CORRUPT, "tlsf: the totals differ from the blocks");
    if (self->base.watch && self->base.watch->usable_bytes != sums.usable_bytes)
        return ar_error_set(error, AR_CORRUPT, "tlsf: the hole watch is off");
    return check_lists(self, sums.free_blocks, error);
}

static void tlsf_destroy(struct ar_policy *base)
{
    struct tlsf *self = tlsf_of(base);
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
    struct tlsf *self = ar_host_alloc(context->host, sizeof *self);
    if (!self)
        return ar_error_set(error, AR_HOST_MEMORY, "policy tlsf: the host has no memory left");
    self->base.ops = &tlsf_policy;
    self->backing = context->backing;
    self->host = context->host;
    self->pool_bytes = ar_size_round_down(values->pool_bytes, ALIGN_BYTES);
    self->limit_bytes = values->common.limit_bytes ? values->common.limit_bytes : UINT64_MAX;
    *out = &self->base;
    return AR_OK;
}

const struct ar_policy_ops tlsf_policy = {
    .abi = AR_POLICY_ABI,
    .ops_bytes = sizeof(struct ar_policy_ops),
    .name = "tlsf",
    .summary = "two-level segregated fit: constant time, good fit, last freed first",
    .reference = "mattconte/tlsf 2020, with pools added on demand",
    .capabilities = AR_POLICY_WATCHES_FREE | AR_POLICY_HONOURS_ALIGNMENT,
    .options = tlsf_options,
    .values_bytes = sizeof(struct tlsf_values),
    .create = tlsf_create,
    .destroy = tlsf_destroy,
    .alloc = tlsf_alloc,
    .free = tlsf_free,
    .stats = tlsf_stats,
    .walk = tlsf_walk,
    .validate = tlsf_validate,
};
