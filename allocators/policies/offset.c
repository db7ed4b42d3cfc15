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
#include "allocators/base/parts.h"
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
    struct ar_parts blocks; /* of multiples of the unit */
    uint32_t first;         /* the block at the start of the region */
    uint8_t unit_log2;
    bool round_up, unit_given;
    uint64_t unit_bits;   /* of a size, those within a unit */
    uint32_t most_blocks; /* used and free */
    uint64_t failures;
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

/* Bins are small floats of bytes, not of units: they separate multiples of a power of two as those
 * of units do, and other bins stay empty. All exponents have the hidden bit, that of 1 byte too, so
 * a size below 8 units has a bin with more digits than it needs. */

/* The place of the highest bit. */
static inline unsigned exponent_of(uint64_t bytes)
{
    return 63u ^ (unsigned)__builtin_clzll(bytes);
}

/* The bin of a free block. */
static inline unsigned bin_of(uint64_t bytes)
{
    unsigned exponent = exponent_of(bytes);
    return (exponent << MANTISSA_BITS) + (unsigned)(bytes << MANTISSA_BITS >> exponent);
}

/* The last byte of a block for a request, counted from 0: its bytes are rounded up to units. */
static inline uint64_t last_byte(const struct offset *self, uint64_t bytes)
{
    return (bytes - 1) | self->unit_bits;
}

/* The lowest bin in which every block has such a byte. */
static inline unsigned bin_above(const struct offset *self, uint64_t bytes)
{
    uint64_t last = last_byte(self, bytes);
    unsigned exponent = exponent_of(bytes | self->unit_bits);
    unsigned bin =
        (exponent << MANTISSA_BITS) + (unsigned)((last * MANTISSA + MANTISSA - 1) >> exponent) + 1;
    if (bin >= AR_CLASSES) /* requests have less than 2^60 bytes */
        __builtin_unreachable();
    return bin;
}

/* The smallest size of a bin. */
static inline uint64_t bin_bottom(size_t bin)
{
    size_t exponent = (bin >> MANTISSA_BITS) - 1;
    return ((bin & (MANTISSA - 1)) | MANTISSA) << exponent >> MANTISSA_BITS;
}

/* A block that is in no bin becomes free. */
AR_INLINE void add_free(struct offset *self, size_t block, uint64_t bytes)
{
    ar_parts_push(&self->blocks, block, bin_of(bytes));
}

/* ---- requests -------------------------------------------------------------------------------- */

static void choose_unit(struct offset *self, uint64_t region_bytes)
{
    while (!self->unit_given && region_bytes >> self->unit_log2 > MOST_UNITS)
        self->unit_log2++;
    self->unit_bits = (UINT64_C(1) << self->unit_log2) - 1;
}

/* The region, as one free block. */
static enum ar_status open_region(struct offset *self, uint64_t least_bytes)
{
    AR_TRY_HOST(ar_parts_reserve(&self->blocks, self->host, 1, self->most_blocks));
    if (self->unit_given && self->region.most_bytes >> self->unit_log2 > UINT32_MAX)
        self->region.most_bytes = (uint64_t)UINT32_MAX << self->unit_log2;
    AR_TRY(region_obtain(&self->region, &self->base, self->backing, UINT64_C(1) << self->unit_log2,
                         least_bytes));
    choose_unit(self, self->region.bytes);
    uint64_t bytes = self->region.bytes & ~self->unit_bits;
    self->first = ar_parts_new(&self->blocks, self->region.address, bytes, bin_of(bytes));
    self->base.totals.overhead_bytes += self->region.bytes - bytes;
    self->base.totals.releasable_bytes = bytes;
    add_free(self, self->first, bytes);
    ar_policy_free_added(&self->base, bytes);
    return AR_OK;
}

/* For a request that the bins cannot serve: records are missing, or the region. */
static __attribute__((noinline)) enum ar_status alloc_rare(struct offset *self,
                                                           struct ar_policy_block *out)
{
    struct ar_policy_request request = {.bytes = out->requested_bytes};
    struct ar_class bin;
    enum ar_status status = self->region.bytes ? AR_OK : open_region(self, request.bytes);
    if (status == AR_OK && ar_parts_count(&self->blocks) < self->most_blocks) {
        AR_TRY_HOST(ar_parts_reserve(&self->blocks, self->host, 1, self->most_blocks));
        if (ar_parts_search(&self->blocks, bin_above(self, request.bytes), &bin))
            return self->base.ops->alloc(&self->base, &request, out);
    }
    self->failures += status == AR_OK || status == AR_NO_MEMORY;
    return status == AR_OK ? AR_NO_MEMORY : status;
}

/* The usual path has no cases, so no registers are saved: `plain` is without a watch of free blocks
 * and without `round_up`. */
AR_INLINE enum ar_status serve(struct offset *self, struct ar_policy_block *out, const bool plain)
{
    struct ar_parts *blocks = &self->blocks;
    uint64_t bytes = last_byte(self, out->requested_bytes) + 1;
    struct ar_class found;
    if (!blocks->spare || !ar_parts_search(blocks, bin_above(self, out->requested_bytes), &found))
        return alloc_rare(self, out);
    if (!plain && self->round_up)
        bytes = bin_bottom(bin_above(self, bytes));
    size_t bin = ar_part_number(found.index), block = ar_part_number(blocks->heads[bin]);
    struct ar_part *part = &AR_PART(blocks->at, block);
    ar_policy_grant(&self->base, out, part->address, bytes, block);
    self->base.totals.releasable_bytes = 0;
    ar_parts_use(blocks, part, bin, found.word, out->requested_bytes);
    AR_READ_AGAIN(blocks->at);
    AR_READ_AGAIN(part->address);
    uint64_t rest_bytes = part->bytes - bytes;
    if (!plain)
        ar_policy_free_replaced(&self->base, bytes + rest_bytes, rest_bytes);
    if (rest_bytes)
        add_free(self, ar_parts_cut(blocks, block, part, bytes, rest_bytes, 0), rest_bytes);
    return AR_OK;
}

AR_INLINE enum ar_status take_back(struct offset *self, size_t block, const bool plain)
{
    struct ar_merge merge;
    const struct ar_part *part = &AR_PART(self->blocks.at, block);
    ar_policy_ungrant(&self->base, part->requested_bytes, part->bytes);
    if (__builtin_expect(!self->base.totals.live_blocks, 0)) /* all will be one free block */
        self->base.totals.releasable_bytes = self->region.bytes & ~self->unit_bits;
    block = ar_parts_merge(&self->blocks, block, 0, &self->base.totals.overhead_bytes, &merge);
    if (!plain) {
        ar_policy_free_removed(&self->base, merge.next_bytes);
        ar_policy_free_removed(&self->base, merge.previous_bytes);
    }
    add_free(self, block, merge.bytes);
    if (!plain)
        ar_policy_free_added(&self->base, merge.bytes);
    return AR_OK;
}

static enum ar_status offset_alloc(struct ar_policy *base,
                                   const struct ar_policy_request *request AR_UNUSED,
                                   struct ar_policy_block *out)
{
    return serve((struct offset *)base, out, true);
}

static enum ar_status offset_free(struct ar_policy *base, const struct ar_policy_block *given,
                                  uint32_t stream AR_UNUSED)
{
    return take_back((struct offset *)base, given->cookie, true);
}

static enum ar_status general_alloc(struct ar_policy *base,
                                    const struct ar_policy_request *request AR_UNUSED,
                                    struct ar_policy_block *out)
{
    return serve((struct offset *)base, out, false);
}

static enum ar_status general_free(struct ar_policy *base, const struct ar_policy_block *given,
                                   uint32_t stream AR_UNUSED)
{
    return take_back((struct offset *)base, given->cookie, false);
}

/* ---- from outside ---------------------------------------------------------------------------- */

static void offset_stats(const struct ar_policy *base, struct ar_policy_stats *out)
{
    const struct offset *self = (const struct offset *)base;
    *out = (struct ar_policy_stats){.totals = base->totals};
    out->count.splits = self->blocks.splits;
    out->count.merges = self->blocks.merges;
    out->count.segments_made = self->region.bytes != 0;
    out->count.failures = self->failures;
}

static void offset_room(const struct ar_policy *base, struct ar_policy_room *out)
{
    const struct offset *self = (const struct offset *)base;
    unsigned bin;
    bool any = ar_parts_count(&self->blocks) < self->most_blocks &&
               ar_parts_highest(&self->blocks, 0, &bin);
    ar_policy_room_fill(out, any ? bin_bottom(bin) : 0, 0, 0);
}

static void offset_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument)
{
    const struct offset *self = (const struct offset *)base;
    uint64_t end = self->region.address;
    for (uint32_t b = self->first; b; b = AR_PART(self->blocks.at, b).next) {
        const struct ar_part *part = &AR_PART(self->blocks.at, b);
        const struct ar_policy_range range = {
            .address = part->address,
            .bytes = part->bytes,
            .requested_bytes = ar_part_is_used(part) ? part->requested_bytes : 0,
            .segment_address = self->region.address,
            .state = ar_part_is_used(part) ? AR_POLICY_RANGE_USED : AR_POLICY_RANGE_FREE,
        };
        end = part->address + part->bytes;
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
    const struct ar_part *at = self->blocks.at;
    const struct ar_part *part = &AR_PART(at, block);
    if (part->address != address || !part->bytes || part->bytes & self->unit_bits)
        return "a block has a wrong size or does not follow the one before it";
    if (part->next && AR_PART(at, part->next).previous != block)
        return "the links of two neighbours differ";
    if (ar_part_is_used(part))
        return NULL;
    if (part->next && !ar_part_is_used(&AR_PART(at, part->next)))
        return "two free blocks are not merged";
    return ar_parts_has(&self->blocks, bin_of(part->bytes), block) ? NULL
                                                                   : "a free block is in no bin";
}

static enum ar_status offset_validate(const struct ar_policy *base, struct ar_error *error)
{
    const struct offset *self = (const struct offset *)base;
    uint64_t address = self->region.address, releasable_bytes = 0, blocks = 0, free_blocks = 0;
    for (uint32_t b = self->first; b; b = AR_PART(self->blocks.at, b).next, blocks++) {
        const struct ar_part *part = &AR_PART(self->blocks.at, b);
        const char *fault = block_fault(self, b, address);
        if (fault)
            return ar_policy_broken(base, fault, address, error);
        address += part->bytes;
        free_blocks += !ar_part_is_used(part);
        releasable_bytes +=
            !ar_part_is_used(part) && !(part->previous | part->next) ? part->bytes : 0;
    }
    uint64_t listed;
    const char *fault = ar_parts_fault(&self->blocks, &listed);
    if (!fault && (listed != free_blocks || blocks != ar_parts_count(&self->blocks)))
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
    ar_parts_close(&self->blocks, self->host);
    ar_host_free(self->host, self, sizeof *self);
}

static void offset_watched(struct ar_policy *base);
static enum ar_status offset_create(const struct ar_policy_context *context, const void *given,
                                    struct ar_policy **out, struct ar_error *error);

#define OFFSET_OPS                                                                                 \
    .summary = "OffsetAllocator: one region, bins of a small float, constant time",                \
    .reference = "sebbbi/OffsetAllocator at 3610a73 (2023); Mooncake's with round_up=true",        \
    .capabilities = AR_POLICY_WATCHES_FREE, .options = offset_options,                             \
    .values_bytes = sizeof(struct offset_values), .create = offset_create, .room = offset_room,    \
    .watched = offset_watched

const struct ar_policy_ops offset_policy = {
    .name = "offset",
    AR_POLICY_HOOKS(offset),
    OFFSET_OPS,
};

static const struct ar_policy_ops general_ops = {
    .name = "offset",
    AR_POLICY_HOOKS_WITH(offset, general_alloc, general_free),
    OFFSET_OPS,
};

/* Which copy of `serve` and `take_back` is used. */
static void offset_watched(struct ar_policy *base)
{
    const struct offset *self = (const struct offset *)base;
    base->ops = base->watch || self->round_up ? &general_ops : &offset_policy;
}

static enum ar_status offset_create(const struct ar_policy_context *context, const void *given,
                                    struct ar_policy **out, struct ar_error *error)
{
    const struct offset_values *values = given;
    uint64_t unit = values->unit_bytes;
    if (!unit)
        unit = context->backing->granule_bytes == 1 ? 1 : 256;
    if (!ar_size_is_power_of_two(unit))
        return ar_invalid(error, "policy offset: unit is not a power of two; write one, such as "
                                 "256, or 0 for the default");
    struct offset *self = ar_policy_new(context, &general_ops, sizeof *self, error);
    AR_TRY_HOST(self);
    self->backing = context->backing;
    self->host = context->host;
    region_open(&self->region, &values->region, &values->common);
    self->unit_log2 = (uint8_t)__builtin_ctzll(unit);
    self->unit_bits = unit - 1;
    self->unit_given = values->unit_bytes != 0;
    self->round_up = values->round_up;
    self->most_blocks = (uint32_t)(values->most_blocks - 1);
    offset_watched(&self->base);
    *out = &self->base;
    return AR_OK;
}
