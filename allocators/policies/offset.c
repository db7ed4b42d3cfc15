/* OffsetAllocator (sebbbi/OffsetAllocator, offsetAllocator.cpp at 3610a73): places blocks in one
 * range of fixed size in constant time. Rendering engines use it for buffers of the GPU, and
 * Mooncake's store places its objects with it.
 *
 * 1. Sizes and offsets are 32-bit numbers of units. Bins follow a small float of 3 bits of
 *    mantissa: one bin for each size below 8 units, and 8 for each power of two above.
 * 2. A request is rounded up to the bottom of a bin for the search only, so every free block that
 *    the search finds is large enough. It takes the lowest such bin and the block that was freed
 *    last, uses its start and frees the rest (allocate).
 * 3. A freed block merges with both neighbours at once (free).
 * 4. There are at most `max_allocs` - 1 blocks, used and free together. Requests fail when there
 *    are that many, also if one would fit exactly.
 * 5. A request above 15/16 of 2^32 units fails: its bin is above that of every block.
 *
 * Mooncake (mooncake-store/src/offset_allocator.cpp at 158fc94) has two changes. The size of a unit
 * follows from that of the region, so that 32 bits suffice; here too, if `unit` is not given. And a
 * block gets all of the size that it was rounded up to, so that it returns to the same bin: option
 * `round_up`. */
#include "allocators/base/span.h"
#include "allocators/base/size.h"
#include "allocators/region.h"

#define MANTISSA_BITS 3u
#define MANTISSA      UINT64_C(8)
/* The bottom of the highest bin that a 32-bit size can have: MAX_BIN_SIZE of Mooncake. */
#define MOST_UNITS (UINT64_C(15) << 28)

struct offset_values {
    struct ar_policy_common common;
    struct region_values region;
    uint64_t unit_bytes, most_blocks;
    bool round_up;
};

struct offset {
    struct ar_policy base;
    struct ar_backing *backing;
    struct ar_host *host;
    struct region region;
    struct ar_spans spans; /* of multiples of the unit */
    struct ar_class_lists lists;
    uint32_t first; /* the block at the start of the region */
    unsigned unit_log2;
    bool round_up, unit_given;
    uint64_t below_unit;  /* a unit less one byte */
    uint64_t most_blocks; /* used and free */
    uint32_t kept;        /* spare records that most_blocks does not allow to be used */
    uint64_t splits, failures;
};

static const struct ar_option offset_options[] = {
    AR_POLICY_COMMON_OPTIONS,
    REGION_OPTIONS(offset_values, region),
    {"unit", AR_OPTION_BYTES, offsetof(struct offset_values, unit_bytes), "0", 0, 1073741824, NULL,
     "bytes of a unit, a power of two; 0: 256, or 1 if the granule of the device is 1; more if the "
     "region has more than 3.75 Gi units"},
    {"max_allocs", AR_OPTION_COUNT, offsetof(struct offset_values, most_blocks), "131072", 2,
     4294967295, NULL, "one more than the maximum of blocks, used and free"},
    {"round_up", AR_OPTION_BOOL, offsetof(struct offset_values, round_up), "false", 0, 0, NULL,
     "a block gets all of the bin size that the search rounds up to, as in Mooncake"},
    {0},
};

/* ---- bins ------------------------------------------------------------------------------------ */

/* The bin of a free block. */
static inline unsigned bin_of(uint64_t units)
{
    unsigned shift = (63u ^ (unsigned)__builtin_clzll(units | MANTISSA)) - MANTISSA_BITS;
    return (shift << MANTISSA_BITS) + (unsigned)(units >> shift);
}

/* The lowest bin in which every block has at least `units`. */
static inline unsigned bin_above(uint64_t units)
{
    unsigned bin = bin_of(units - 1) + 1;
    if (bin >= AR_CLASSES) /* requests have less than 2^60 bytes */
        __builtin_unreachable();
    return bin;
}

/* The smallest size of a bin. */
static inline uint64_t bin_bottom(unsigned bin)
{
    unsigned exponent = bin >> MANTISSA_BITS;
    uint64_t mantissa = bin & (MANTISSA - 1);
    return exponent ? (mantissa | MANTISSA) << (exponent - 1) : mantissa;
}

/* For one block more, within rule 4. */
static inline bool has_record(const struct offset *self)
{
    return self->spans.spare_count > self->kept;
}

/* A block that is in no bin becomes free. */
AR_INLINE void add_free(struct offset *self, uint32_t block, const bool watched)
{
    uint64_t bytes = self->spans.at[block].bytes;
    ar_class_lists_push(&self->lists, self->spans.at, bin_of(bytes >> self->unit_log2), block);
    if (watched)
        ar_policy_free_added(&self->base, bytes);
}

static inline uint64_t units_of(const struct offset *self, uint64_t bytes)
{
    return (bytes + self->below_unit) >> self->unit_log2;
}

static inline uint64_t granted_bytes(const struct offset *self, uint64_t units)
{
    if (__builtin_expect(self->round_up, 0))
        units = bin_bottom(bin_above(units));
    return units << self->unit_log2;
}

/* ---- requests -------------------------------------------------------------------------------- */

static void choose_unit(struct offset *self, uint64_t region_bytes)
{
    while (!self->unit_given && region_bytes >> self->unit_log2 > MOST_UNITS)
        self->unit_log2++;
    self->below_unit = (UINT64_C(1) << self->unit_log2) - 1;
}

/* The region, as one free block. */
static enum ar_status open_region(struct offset *self, uint64_t least_bytes)
{
    AR_TRY_HOST(ar_spans_reserve(&self->spans, self->host, 2));
    if (self->unit_given && self->region.most_bytes >> self->unit_log2 > UINT32_MAX)
        self->region.most_bytes = (uint64_t)UINT32_MAX << self->unit_log2;
    AR_TRY(region_obtain(&self->region, &self->base, self->backing, UINT64_C(1) << self->unit_log2,
                         least_bytes));
    choose_unit(self, self->region.bytes);
    self->first =
        ar_spans_new(&self->spans, self->region.address,
                     ar_size_round_down(self->region.bytes, UINT64_C(1) << self->unit_log2));
    self->base.totals.overhead_bytes += self->region.bytes - self->spans.at[self->first].bytes;
    ar_class_lists_reach(&self->lists, bin_of(self->region.bytes >> self->unit_log2));
    self->base.totals.releasable_bytes = self->spans.at[self->first].bytes;
    add_free(self, self->first, true);
    return AR_OK;
}

static enum ar_status offset_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                                   struct ar_policy_block *out);

/* For a request that the bins cannot serve: records are missing, or the region. */
static __attribute__((noinline)) enum ar_status alloc_rare(struct offset *self,
                                                           const struct ar_policy_request *request,
                                                           struct ar_policy_block *out)
{
    unsigned bin;
    AR_TRY_HOST(ar_spans_reserve(&self->spans, self->host, 1));
    enum ar_status status = self->region.bytes ? AR_OK : open_region(self, request->bytes);
    uint64_t records = self->spans.count - 1;
    self->kept = records > self->most_blocks ? (uint32_t)(records - self->most_blocks) : 0;
    if (status == AR_OK && has_record(self) &&
        ar_class_lists_find(&self->lists, bin_above(units_of(self, request->bytes)), &bin))
        return offset_alloc(&self->base, request, out);
    self->failures += status == AR_OK || status == AR_NO_MEMORY;
    return status == AR_OK ? AR_NO_MEMORY : status;
}

/* The usual path makes no calls, and there is a copy of it without a watch of free blocks: few
 * registers are saved. */
AR_INLINE enum ar_status serve(struct offset *self, const struct ar_policy_request *request,
                               struct ar_policy_block *out, const bool watched)
{
    uint64_t units = units_of(self, request->bytes);
    unsigned bin;
    if (!has_record(self) || !ar_class_lists_find(&self->lists, bin_above(units), &bin))
        return alloc_rare(self, request, out);
    uint64_t bytes = granted_bytes(self, units);
    struct ar_span *at = self->spans.at;
    uint32_t block = self->lists.heads[bin];
    struct ar_span *span = &at[block];
    uint32_t right = span->right;
    uint64_t rest_bytes = span->bytes - bytes;
    span->used = 1;
    span->requested_bytes = request->bytes;
    ar_policy_grant(&self->base, out, span->address, bytes, block);
    self->base.totals.releasable_bytes = 0;
    ar_class_lists_pop(&self->lists, bin, right);
    if (watched)
        ar_policy_free_replaced(&self->base, bytes + rest_bytes, rest_bytes);
    if (rest_bytes) {
        uint32_t rest = ar_spans_cut(&self->spans, block, bytes, 0);
        ar_class_lists_push(&self->lists, at, bin_of(rest_bytes >> self->unit_log2), rest);
        self->splits++;
    }
    return AR_OK;
}

static __attribute__((noinline)) enum ar_status
serve_watched(struct offset *self, const struct ar_policy_request *request,
              struct ar_policy_block *out)
{
    return serve(self, request, out, true);
}

static enum ar_status offset_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                                   struct ar_policy_block *out)
{
    struct offset *self = (struct offset *)base;
    return base->watch ? serve_watched(self, request, out) : serve(self, request, out, false);
}

/* Takes a free neighbour out of its bin, to be joined. */
AR_INLINE uint64_t take_neighbour(struct offset *self, struct ar_span *at, uint32_t neighbour,
                                  const bool watched)
{
    if (watched)
        ar_policy_free_removed(&self->base, at[neighbour].bytes);
    ar_class_lists_remove(&self->lists, at, neighbour);
    return at[neighbour].bytes;
}

AR_INLINE enum ar_status take_back(struct offset *self, uint32_t block, const bool watched)
{
    struct ar_span *at = self->spans.at;
    uint64_t bytes = at[block].bytes;
    ar_policy_ungrant(&self->base, at[block].requested_bytes, bytes);
    if (__builtin_expect(!self->base.totals.live_blocks, 0)) /* all will be one free block */
        self->base.totals.releasable_bytes = ar_policy_free_bytes(&self->base.totals);
    uint32_t next = at[block].next;
    if (!at[next].used) { /* record 0 counts as used */
        bytes += take_neighbour(self, at, next, watched);
        (void)ar_spans_join(&self->spans, block, next);
    }
    uint32_t previous = at[block].previous;
    if (!at[previous].used) {
        bytes += take_neighbour(self, at, previous, watched);
        (void)ar_spans_join(&self->spans, previous, block);
        block = previous;
    }
    at[block].used = 0;
    at[block].bytes = bytes;
    add_free(self, block, watched);
    return AR_OK;
}

static __attribute__((noinline)) enum ar_status take_back_watched(struct offset *self,
                                                                  uint32_t block)
{
    return take_back(self, block, true);
}

static enum ar_status offset_free(struct ar_policy *base, const struct ar_policy_block *given,
                                  uint32_t stream)
{
    struct offset *self = (struct offset *)base;
    uint32_t block = (uint32_t)given->cookie;
    (void)stream;
    return base->watch ? take_back_watched(self, block) : take_back(self, block, false);
}

/* ---- from outside ---------------------------------------------------------------------------- */

static void offset_stats(const struct ar_policy *base, struct ar_policy_stats *out)
{
    const struct offset *self = (const struct offset *)base;
    *out = (struct ar_policy_stats){.totals = base->totals};
    out->count.splits = self->splits;
    if (self->region.bytes) /* each split makes a block, and each merge takes one away */
        out->count.merges = self->splits + 1 - ar_spans_taken(&self->spans);
    out->count.segments_made = self->region.bytes != 0;
    out->count.failures = self->failures;
}

static void offset_room(const struct ar_policy *base, struct ar_policy_room *out)
{
    const struct offset *self = (const struct offset *)base;
    unsigned bin;
    bool any = ar_spans_taken(&self->spans) < self->most_blocks &&
               ar_class_lists_highest(&self->lists, 0, &bin);
    ar_policy_room_fill(out, any ? bin_bottom(bin) << self->unit_log2 : 0, 0, 0);
}

static void offset_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument)
{
    const struct offset *self = (const struct offset *)base;
    uint64_t end = self->region.address;
    for (uint32_t b = self->first; b; b = self->spans.at[b].next) {
        const struct ar_span *span = &self->spans.at[b];
        const struct ar_policy_range range = {
            .address = span->address,
            .bytes = span->bytes,
            .requested_bytes = span->used ? span->requested_bytes : 0,
            .segment_address = self->region.address,
            .state = span->used ? AR_POLICY_RANGE_USED : AR_POLICY_RANGE_FREE,
        };
        end = span->address + span->bytes;
        if (!visit(argument, &range))
            return;
    }
    uint64_t rest_bytes = self->region.address + self->region.bytes - end;
    const struct ar_policy_range rest = {.address = end,
                                         .bytes = rest_bytes,
                                         .segment_address = self->region.address,
                                         .state = AR_POLICY_RANGE_OVERHEAD};
    if (rest_bytes)
        (void)visit(argument, &rest);
}

static const char *block_fault(const struct offset *self, uint32_t block, uint64_t address)
{
    const struct ar_span *at = self->spans.at;
    const struct ar_span *span = &at[block];
    uint64_t units = span->bytes >> self->unit_log2;
    if (span->address != address || !units || units << self->unit_log2 != span->bytes)
        return "a block has a wrong size or does not follow the one before it";
    if (span->next && at[span->next].previous != block)
        return "the links of two neighbours differ";
    if (span->used)
        return NULL;
    if (span->next && !at[span->next].used)
        return "two free blocks are not merged";
    return ar_class_lists_has(&self->lists, at, bin_of(units), block) ? NULL
                                                                      : "a free block is in no bin";
}

static enum ar_status offset_validate(const struct ar_policy *base, struct ar_error *error)
{
    const struct offset *self = (const struct offset *)base;
    uint64_t address = self->region.address, releasable_bytes = 0, blocks = 0, free_blocks = 0;
    for (uint32_t b = self->first; b; b = self->spans.at[b].next, blocks++) {
        const struct ar_span *span = &self->spans.at[b];
        const char *fault = block_fault(self, b, address);
        if (fault)
            return ar_policy_broken(base, fault, address, error);
        address += span->bytes;
        free_blocks += !span->used;
        releasable_bytes += !span->used && !(span->previous | span->next) ? span->bytes : 0;
    }
    uint64_t listed;
    const char *fault = ar_class_lists_fault(&self->lists, self->spans.at, &listed);
    if (!fault && (listed != free_blocks || blocks != ar_spans_taken(&self->spans)))
        fault = "the bins or the number of blocks differ from the blocks of the region";
    if (!fault &&
        address + base->totals.overhead_bytes != self->region.address + self->region.bytes)
        fault = "the blocks do not fill the region";
    if (fault)
        return ar_policy_broken(base, fault, self->region.address, error);
    return ar_policy_check_totals(base, releasable_bytes, error);
}

static void offset_destroy(struct ar_policy *base)
{
    struct offset *self = (struct offset *)base;
    region_close(&self->region, self->backing);
    ar_spans_close(&self->spans, self->host);
    ar_host_free(self->host, self, sizeof *self);
}

static enum ar_status offset_create(const struct ar_policy_context *context, const void *given,
                                    struct ar_policy **out, struct ar_error *error)
{
    extern const struct ar_policy_ops offset_policy;
    const struct offset_values *values = given;
    uint64_t unit = values->unit_bytes;
    if (!unit)
        unit = context->backing->granule_bytes == 1 ? 1 : 256;
    if (!ar_size_is_power_of_two(unit))
        return ar_invalid(error, "policy offset: unit is not a power of two; write one, such as "
                                 "256, or 0 for the default");
    struct offset *self = ar_policy_new(context, &offset_policy, sizeof *self, error);
    AR_TRY_HOST(self);
    self->backing = context->backing;
    self->host = context->host;
    region_open(&self->region, &values->region, &values->common);
    self->unit_log2 = (unsigned)__builtin_ctzll(unit);
    self->below_unit = unit - 1;
    self->unit_given = values->unit_bytes != 0;
    self->round_up = values->round_up;
    self->most_blocks = values->most_blocks - 1;
    *out = &self->base;
    return AR_OK;
}

const struct ar_policy_ops offset_policy = {
    .name = "offset",
    .summary = "OffsetAllocator: one region, bins of a small float, constant time",
    .reference = "sebbbi/OffsetAllocator at 3610a73 (2023); Mooncake's with round_up=true",
    .capabilities = AR_POLICY_WATCHES_FREE,
    .options = offset_options,
    .values_bytes = sizeof(struct offset_values),
    .create = offset_create,
    AR_POLICY_HOOKS(offset),
    .room = offset_room,
};
