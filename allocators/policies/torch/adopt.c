/* The start from segments and blocks that exist already, as in a recording that begins in the
 * middle of a program. What the recording does not tell is derived:
 *
 * 1. A segment of 2 MiB belongs to the small pool, others to the large one. For a range that grows
 *    by pages the blocks decide; if none is used, whether all mapped runs have large pages.
 * 2. A block has at least the bytes that its request is rounded to. Bytes that would not be cut off
 *    it belong to it: up to 1 MiB in a segment of the large pool, and all that follow if the
 *    request is too large for its block to be split.
 * 3. A range ends 9/8 of the memory of the card after its start, like a range that is made here.
 *
 * Statistics begin with this state: peaks and totals are as if it had just been made. */
#include "allocators/policies/torch/torch.h"

/* The ranges of one segment. */
struct given {
    const struct ar_policy_range *ranges;
    size_t count;
    bool expandable;
};

static struct given next_segment(const struct torch *self, const struct ar_policy_range *ranges,
                                 size_t count)
{
    bool plain = self->settings.plain_pools && ranges->pool != 0;
    struct given given = {.ranges = ranges, .expandable = self->settings.expandable && !plain};
    while (given.count < count && ranges[given.count].segment_address == ranges->segment_address)
        given.count++;
    return given;
}

static uint64_t end_of(const struct ar_policy_range *range)
{
    return range->address + range->bytes;
}

/* Rule 1. */
static bool is_small(const struct torch *self, const struct given *given)
{
    uint64_t run_bytes = 0;
    bool large_pages = true;
    for (size_t i = 0; i < given->count; i++) {
        const struct ar_policy_range *range = &given->ranges[i];
        if (given->expandable && range->state == AR_POLICY_RANGE_USED)
            return torch_round(&self->settings, range->requested_bytes) <= TORCH_SMALL_BYTES;
        bool mapped = range->state != AR_POLICY_RANGE_UNMAPPED;
        run_bytes = mapped ? run_bytes + range->bytes : 0;
        if (mapped &&
            (i + 1 == given->count || given->ranges[i + 1].state == AR_POLICY_RANGE_UNMAPPED))
            large_pages &= run_bytes % self->settings.large_segment_bytes == 0;
    }
    if (given->expandable)
        return !large_pages;
    return end_of(&given->ranges[given->count - 1]) - given->ranges->segment_address ==
           TORCH_SMALL_SEGMENT_BYTES;
}

/* Rule 2: bytes of the block of `range`, which `free_block_bytes` free bytes follow. 0:
 * impossible. */
static uint64_t block_bytes(const struct torch *self, const struct ar_policy_range *range,
                            uint64_t free_block_bytes, bool small)
{
    uint64_t rounded_bytes = torch_round(&self->settings, range->requested_bytes);
    uint64_t bytes = rounded_bytes < range->bytes ? range->bytes : rounded_bytes;
    if (bytes > range->bytes + free_block_bytes ||
        (small && range->requested_bytes > TORCH_SMALL_BYTES))
        return 0;
    uint64_t rest_bytes = range->bytes + free_block_bytes - bytes;
    bool whole =
        !small && !self->settings.expandable &&
        (rest_bytes <= TORCH_SMALL_BYTES || rounded_bytes >= self->settings.max_split_bytes);
    return whole ? bytes + rest_bytes : bytes;
}

/* Appends a block after `*last`. */
static uint32_t append(struct torch *self, uint32_t segment, uint32_t *last, uint64_t address,
                       uint64_t bytes, bool mapped)
{
    uint32_t block =
        torch_block_new(self, address, bytes, self->segments[segment].arena, segment, mapped);
    self->spans.at[block].previous = *last;
    if (*last)
        self->spans.at[*last].next = block;
    else
        self->segments[segment].first = block;
    *last = block;
    return block;
}

static void take_in_use(struct torch *self, uint32_t block, const struct ar_policy_range *range,
                        struct ar_policy_block *out)
{
    uint64_t bytes = self->spans.at[block].bytes;
    enum torch_kind kind = torch_kind_of(self, self->spans.at[block].owner);
    self->spans.at[block].used = 1;
    self->blocks[block].requested_bytes = range->requested_bytes;
    torch_usage_add(self->usage, kind, bytes, range->requested_bytes);
    if (bytes >= self->settings.max_split_bytes)
        torch_count(&self->oversize_allocations, 1);
    out->requested_bytes = range->requested_bytes;
    ar_policy_grant(&self->base, out, range->address, bytes, block);
}

/* The blocks of a segment, used and free. */
static enum ar_status make_blocks(struct torch *self, const struct given *given, uint32_t segment,
                                  struct ar_policy_block **out)
{
    bool small = self->arenas[self->segments[segment].arena]->small;
    uint64_t at = self->segments[segment].address;
    uint32_t last = 0;
    for (size_t i = 0; i < given->count; i++) {
        const struct ar_policy_range *range = &given->ranges[i];
        bool used = range->state == AR_POLICY_RANGE_USED;
        bool before_free_block = i + 1 < given->count && range[1].state == AR_POLICY_RANGE_FREE;
        bool grows = given->expandable || range->state != AR_POLICY_RANGE_UNMAPPED;
        if (range->address > at || (used && range->address != at) || !grows)
            return AR_INVALID;
        AR_TRY_HOST(torch_reserve_blocks(self, 2));
        uint64_t bytes = end_of(range) - at;
        if (used)
            bytes = block_bytes(self, range, before_free_block ? range[1].bytes : 0, small);
        if (!bytes && used)
            return AR_INVALID;
        if (bytes) { /* free bytes may have become part of the block before them */
            uint32_t block =
                append(self, segment, &last, at, bytes, range->state != AR_POLICY_RANGE_UNMAPPED);
            if (used)
                take_in_use(self, block, range, (*out)++);
        }
        at += bytes;
    }
    if (at < self->segments[segment].address + self->segments[segment].bytes) {
        if (!given->expandable)
            return AR_INVALID;
        append(self, segment, &last, at,
               self->segments[segment].address + self->segments[segment].bytes - at, false);
    }
    return AR_OK;
}

/* Inserts free blocks into their sets and counts. */
static enum ar_status take_free(struct torch *self, const struct given *given, uint32_t segment)
{
    enum torch_kind kind = torch_kind_of(self, self->segments[segment].arena);
    struct ar_span *at = self->spans.at;
    for (uint32_t block = self->segments[segment].first; block; block = at[block].next) {
        if (!self->blocks[block].mapped) {
            AR_TRY_HOST(torch_unmapped_add(self, block));
            continue;
        }
        self->base.totals.reserved_bytes += at[block].bytes;
        torch_add(self, TORCH_RESERVED_BYTES, kind, at[block].bytes);
        if (at[block].used)
            continue;
        torch_free_insert(self, block);
        if (given->expandable || !(at[block].previous | at[block].next))
            continue;
        torch_add(self, TORCH_INACTIVE_SPLIT, kind, 1);
        torch_add(self, TORCH_INACTIVE_SPLIT_BYTES, kind, at[block].bytes);
    }
    if (given->expandable)
        return torch_adopt_pages(self, segment);
    torch_add(self, TORCH_SEGMENT, kind, 1);
    if (self->segments[segment].bytes >= self->settings.max_split_bytes)
        torch_count(&self->oversize_segments, 1);
    return AR_OK;
}

static enum ar_status adopt_segment(struct torch *self, const struct given *given,
                                    struct ar_policy_block **out)
{
    const struct ar_policy_range *first = given->ranges;
    bool failed = false;
    uint32_t arena =
        torch_arena_of(self, first->stream, first->pool, is_small(self, given), &failed);
    if (failed)
        return AR_HOST_MEMORY;
    uint64_t bytes = end_of(&first[given->count - 1]) - first->segment_address;
    if (given->expandable) {
        uint64_t range_bytes = torch_range_bytes(self, arena);
        if (bytes > range_bytes)
            return AR_INVALID;
        bytes = range_bytes;
    }
    uint32_t segment =
        torch_segment_new(self, first->segment_address, bytes, arena, given->expandable);
    if (segment == UINT32_MAX)
        return AR_HOST_MEMORY;
    AR_TRY(make_blocks(self, given, segment, out));
    return take_free(self, given, segment);
}

enum ar_status torch_adopt(struct ar_policy *base, const struct ar_policy_range *ranges,
                           size_t count, struct ar_policy_block *blocks)
{
    struct torch *self = (struct torch *)base;
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < count && !status;) {
        struct given given = next_segment(self, ranges + i, count - i);
        status = adopt_segment(self, &given, &blocks);
        i += given.count;
    }
    return status;
}
