/* Statistics, the walk over all blocks, what can be served, and the check of every invariant. */

#include "allocators/policies/torch/torch.h"

/* The largest request that is served from `small_bytes` of the small pool or `large_bytes` of the
 * large one. A request of up to 1 MiB is for the small pool, however large the free blocks of the
 * other are; with divisions so is one that is rounded to 1 MiB. */
static uint64_t largest_of_pools(const struct torch *self, uint64_t small_bytes,
                                 uint64_t large_bytes)
{
    if (small_bytes > TORCH_SMALL_BYTES)
        small_bytes = TORCH_SMALL_BYTES;
    if (self->settings.has_divisions) {
        small_bytes = torch_largest_request(&self->settings, small_bytes);
        large_bytes = torch_largest_request(&self->settings, large_bytes);
    }
    return large_bytes > TORCH_SMALL_BYTES ? large_bytes : small_bytes;
}

/* Only free blocks of the stream and pool of the last request can serve a request like it. */
struct usable {
    uint64_t largest_bytes;
    uint64_t stranded_bytes; /* free bytes of all other streams and pools */
};

static inline struct usable usable_now(const struct torch *self)
{
    uint64_t largest_bytes[2] = {0};
    uint64_t stranded_bytes = ar_policy_free_bytes(&self->base.totals);
    for (int small = 0; small <= 1; small++) {
        if (self->last_arena[small] == UINT32_MAX)
            continue;
        const struct torch_arena *arena = self->arenas[self->last_arena[small]];
        largest_bytes[small] = ar_span_index_largest(&arena->index, self->spans.at);
        stranded_bytes -= arena->free_bytes;
    }
    return (struct usable){largest_of_pools(self, largest_bytes[true], largest_bytes[false]),
                           stranded_bytes};
}

void torch_stats(const struct ar_policy *base, struct ar_policy_stats *out)
{
    const struct torch *self = (const struct torch *)base;
    *out = (struct ar_policy_stats){.totals = self->base.totals};
    out->count.splits = self->splits;
    out->count.merges = self->merges;
    out->count.segments_made = self->num_device_alloc;
    out->count.segments_freed = self->num_device_free;
    out->count.flushes = self->flushes;
    out->count.retries = self->num_alloc_retries;
    out->count.failures = self->num_ooms;
}

/* The four figures of a counter. */
static bool report_counter(const struct torch_counter *counter, size_t field, const char *metric,
                           const char *pool, char *name, size_t name_bytes, uint64_t *value)
{
    static const char *const fields[] = {"current", "peak", "allocated", "freed"};
    const uint64_t values[] = {counter->current, counter->peak, counter->allocated,
                               counter->allocated - counter->current};
    snprintf(name, name_bytes, "%s%s.%s", metric, pool, fields[field]);
    *value = values[field];
    return true;
}

void torch_usage_raise_peaks(struct torch_usage usage[TORCH_KIND_COUNT])
{
    for (int kind = 0; kind < TORCH_KIND_COUNT; kind++) {
        struct torch_usage *u = &usage[kind];
        const uint64_t now[] = {u->blocks - u->pending_blocks, u->bytes - u->pending_bytes,
                                u->blocks, u->bytes, u->requested_bytes};
        uint64_t *peaks[] = {&u->peak.allocated_blocks, &u->peak.allocated_bytes,
                             &u->peak.active_blocks, &u->peak.active_bytes,
                             &u->peak.requested_bytes};
        for (size_t i = 0; i < AR_COUNT(now); i++)
            if (now[i] > *peaks[i])
                *peaks[i] = now[i];
    }
}

struct torch_counter torch_statistic(const struct torch *self, enum torch_stat stat,
                                     enum torch_kind kind)
{
    if (stat < TORCH_COUNTED)
        return self->stats[stat][kind];
    const struct torch_usage *u = &self->usage[kind];
    struct torch_usage ever = *u;
    if (kind == TORCH_ALL) {
        const struct torch_usage *small = &self->usage[TORCH_SMALL];
        const struct torch_usage *large = &self->usage[TORCH_LARGE];
        ever.ever_blocks = small->ever_blocks + large->ever_blocks;
        ever.ever_bytes = small->ever_bytes + large->ever_bytes;
        ever.ever_requested_bytes = small->ever_requested_bytes + large->ever_requested_bytes;
    }
    switch (stat) {
    case TORCH_ALLOCATION:
        return (struct torch_counter){u->blocks - u->pending_blocks, u->peak.allocated_blocks,
                                      ever.ever_blocks};
    case TORCH_ALLOCATED_BYTES:
        return (struct torch_counter){u->bytes - u->pending_bytes, u->peak.allocated_bytes,
                                      ever.ever_bytes};
    case TORCH_ACTIVE:
        return (struct torch_counter){u->blocks, u->peak.active_blocks, ever.ever_blocks};
    case TORCH_ACTIVE_BYTES:
        return (struct torch_counter){u->bytes, u->peak.active_bytes, ever.ever_bytes};
    default:
        return (struct torch_counter){u->requested_bytes, u->peak.requested_bytes,
                                      ever.ever_requested_bytes};
    }
}

void torch_reset_peaks(struct ar_policy *base)
{
    struct torch *self = (struct torch *)base;
    for (int stat = 0; stat < TORCH_COUNTED; stat++)
        for (int kind = 0; kind < TORCH_KIND_COUNT; kind++)
            self->stats[stat][kind].peak = self->stats[stat][kind].current;
    self->oversize_allocations.peak = self->oversize_allocations.current;
    self->oversize_segments.peak = self->oversize_segments.current;
    for (int kind = 0; kind < TORCH_KIND_COUNT; kind++)
        memset(&self->usage[kind].peak, 0, sizeof self->usage[kind].peak);
    torch_usage_raise_peaks(self->usage);
}

/* The keys of torch.cuda.memory_stats(). */
bool torch_report(const struct ar_policy *base, size_t index, char *name, size_t name_bytes,
                  uint64_t *value)
{
    static const char *const metrics[TORCH_STAT_COUNT] = {
        [TORCH_ALLOCATION] = "allocation",
        [TORCH_SEGMENT] = "segment",
        [TORCH_ACTIVE] = "active",
        [TORCH_INACTIVE_SPLIT] = "inactive_split",
        [TORCH_ALLOCATED_BYTES] = "allocated_bytes",
        [TORCH_RESERVED_BYTES] = "reserved_bytes",
        [TORCH_ACTIVE_BYTES] = "active_bytes",
        [TORCH_INACTIVE_SPLIT_BYTES] = "inactive_split_bytes",
        [TORCH_REQUESTED_BYTES] = "requested_bytes",
    };
    static const char *const pools[TORCH_KIND_COUNT] = {".all", ".small_pool", ".large_pool"};
    const struct torch *self = (const struct torch *)base;
    size_t metric = index / (TORCH_KIND_COUNT * 4), kind = index / 4 % TORCH_KIND_COUNT;
    if (metric < TORCH_STAT_COUNT) {
        struct torch_counter counter =
            torch_statistic(self, (enum torch_stat)metric, (enum torch_kind)kind);
        return report_counter(&counter, index % 4, metrics[metric], pools[kind], name, name_bytes,
                              value);
    }
    index -= (size_t)TORCH_STAT_COUNT * TORCH_KIND_COUNT * 4;
    if (index < 4)
        return report_counter(&self->oversize_allocations, index, "oversize_allocations", "", name,
                              name_bytes, value);
    if (index < 8)
        return report_counter(&self->oversize_segments, index - 4, "oversize_segments", "", name,
                              name_bytes, value);
    const struct {
        const char *name;
        uint64_t value;
    } single[] = {
        {"num_alloc_retries", self->num_alloc_retries},
        {"num_ooms", self->num_ooms},
        {"num_sync_all_streams", self->num_sync_all_streams},
        {"num_device_alloc", self->num_device_alloc},
        {"num_device_free", self->num_device_free},
    };
    if (index - 8 >= AR_COUNT(single))
        return false;
    snprintf(name, name_bytes, "%s", single[index - 8].name);
    *value = single[index - 8].value;
    return true;
}

/* As usable_now when all pending blocks are free: from the longest runs of free and pending
 * blocks. */
static uint64_t largest_after_waiting(const struct torch *self)
{
    uint64_t longest_bytes[2] = {0};
    for (uint32_t i = 0; i < self->order_count; i++) {
        const struct torch_segment *segment = &self->segments[self->order[i]];
        const struct torch_arena *arena = self->arenas[segment->arena];
        uint64_t run = 0;
        if (segment->arena != self->last_arena[arena->small])
            continue;
        for (uint32_t b = segment->first; b; b = self->spans.at[b].next) {
            bool usable =
                self->blocks[b].mapped && (!self->spans.at[b].used || self->blocks[b].retired);
            run = usable ? run + self->spans.at[b].bytes : 0;
            if (run > longest_bytes[arena->small])
                longest_bytes[arena->small] = run;
        }
    }
    return largest_of_pools(self, longest_bytes[true], longest_bytes[false]);
}

/* The largest request of at most `most_bytes` for which a segment of at most `room_bytes` is
 * enough. */
static uint64_t largest_of_segment(const struct torch_settings *settings, uint64_t most_bytes,
                                   uint64_t room_bytes)
{
    uint64_t whole_bytes = room_bytes / TORCH_ROUND_LARGE_BYTES * TORCH_ROUND_LARGE_BYTES;
    uint64_t bytes = torch_largest_request(settings, whole_bytes);
    bytes = bytes < most_bytes ? bytes : most_bytes;
    if (torch_device_request(settings, torch_round(settings, bytes)) <= room_bytes)
        return bytes;
    return room_bytes < TORCH_SMALL_SEGMENT_BYTES ? 0 : TORCH_SMALL_BYTES;
}

/* Without a limit the policy does not know what it can obtain, and a segment of any size counts. */
static uint64_t largest_after_release(const struct torch *self)
{
    uint64_t bytes = self->base.totals.releasable_bytes;
    if (self->divides && self->last_arena[0] != UINT32_MAX)
        return torch_tight_servable(self, self->arenas[self->last_arena[0]]);
    if (!self->limited)
        return self->settings.has_divisions ? torch_largest_request(&self->settings, bytes) : bytes;
    uint64_t kept_bytes = self->base.totals.reserved_bytes - bytes;
    uint64_t room_bytes = self->allowed_bytes > kept_bytes ? self->allowed_bytes - kept_bytes : 0;
    bool is_near = room_bytes < bytes + self->settings.large_segment_bytes;
    return self->settings.has_divisions || is_near
               ? largest_of_segment(&self->settings, bytes, room_bytes)
               : bytes;
}

void torch_room(const struct ar_policy *base, struct ar_policy_room *out)
{
    const struct torch *self = (const struct torch *)base;
    struct usable usable = usable_now(self);
    uint64_t waited_bytes =
        base->totals.pending_bytes ? largest_after_waiting(self) : usable.largest_bytes;
    uint64_t released_bytes = largest_after_release(self);
    *out = (struct ar_policy_room){
        .largest_free_block_bytes = usable.largest_bytes,
        .stranded_by_stream_bytes = usable.stranded_bytes,
        .servable_bytes = {[AR_POLICY_EFFORT_NONE] = usable.largest_bytes,
                           [AR_POLICY_EFFORT_MAP] = usable.largest_bytes,
                           [AR_POLICY_EFFORT_WAIT] = waited_bytes,
                           [AR_POLICY_EFFORT_TRIM] =
                               released_bytes > waited_bytes ? released_bytes : waited_bytes},
    };
}

void torch_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument)
{
    const struct torch *self = (const struct torch *)base;
    for (uint32_t i = 0; i < self->order_count; i++) {
        const struct torch_segment *segment = &self->segments[self->order[i]];
        const struct torch_arena *arena = self->arenas[segment->arena];
        for (uint32_t b = segment->first; b; b = self->spans.at[b].next) {
            const struct ar_span *span = &self->spans.at[b];
            const struct torch_block *extra = &self->blocks[b];
            struct ar_policy_range range = {
                .address = span->address,
                .bytes = span->bytes,
                .segment_address = segment->address,
                .stream = arena->stream,
                .pool = self->pools[arena->pool].id,
                .part = segment->arena,
                .state = !extra->mapped   ? AR_POLICY_RANGE_UNMAPPED
                         : !span->used    ? AR_POLICY_RANGE_FREE
                         : extra->retired ? AR_POLICY_RANGE_PENDING
                                          : AR_POLICY_RANGE_USED,
            };
            if (span->used)
                range.requested_bytes = extra->requested_bytes;
            if (!visit(argument, &range))
                return;
        }
    }
}

static const char *block_fault(const struct torch *self, const struct torch_segment *segment,
                               uint32_t b, uint64_t address)
{
    const struct ar_span *span = &self->spans.at[b];
    const struct torch_block *extra = &self->blocks[b];
    const struct ar_span *next = span->next ? &self->spans.at[span->next] : NULL;
    if (span->address != address || span->bytes == 0 || span->owner != segment->arena)
        return "a block is empty or does not follow the one before it";
    if (next && next->previous != b)
        return "the links of two neighbours differ";
    if (next && !span->used && !next->used && extra->mapped == self->blocks[span->next].mapped)
        return "two free blocks are not merged";
    return !extra->mapped || span->used ||
                   ar_span_index_has(&self->arenas[span->owner]->index, self->spans.at, b)
               ? NULL
               : "a free block is not in its set";
}

static enum ar_status check_sets(const struct torch *self, uint64_t free_blocks,
                                 struct ar_error *error)
{
    const struct ar_policy_totals *totals = &self->base.totals;
    const struct torch_usage *usage = &self->usage[TORCH_ALL];
    uint64_t listed = 0;
    for (uint32_t i = 0; i < self->arena_count; i++) {
        uint64_t count = 0;
        if (ar_span_index_fault(&self->arenas[i]->index, self->spans.at, free_blocks, &count))
            return ar_policy_broken(&self->base, "a free set is broken", i, error);
        listed += count;
    }
    if (listed != free_blocks)
        return ar_error_set(error, AR_CORRUPT,
                            "policy torch: the free sets hold %" PRIu64
                            " blocks, the segments %" PRIu64,
                            listed, free_blocks);
    if (totals->live_blocks != usage->blocks - usage->pending_blocks ||
        totals->granted_bytes != usage->bytes - usage->pending_bytes ||
        totals->pending_bytes != usage->pending_bytes ||
        totals->reserved_bytes != self->stats[TORCH_RESERVED_BYTES][TORCH_ALL].current)
        return ar_error_set(error, AR_CORRUPT,
                            "policy torch: the statistics and the totals differ");
    return AR_OK;
}

enum ar_status torch_validate(const struct ar_policy *base, struct ar_error *error)
{
    const struct torch *self = (const struct torch *)base;
    uint64_t end_before = 0, free_blocks = 0, releasable_bytes = 0;
    for (uint32_t i = 0; i < self->order_count; i++) {
        const struct torch_segment *segment = &self->segments[self->order[i]];
        uint64_t address = segment->address;
        const char *fault = address < end_before ? "two segments overlap" : NULL;
        for (uint32_t b = segment->first; b && !fault; b = self->spans.at[b].next) {
            fault = block_fault(self, segment, b, address);
            address += self->spans.at[b].bytes;
            if (self->spans.at[b].used || !self->blocks[b].mapped)
                continue;
            free_blocks++;
            releasable_bytes += torch_releasable(self, b);
        }
        if (!fault && address != segment->address + segment->bytes)
            fault = "the blocks of a segment do not fill it";
        if (fault)
            return ar_policy_broken(base, fault, address, error);
        end_before = address;
    }
    AR_TRY(check_sets(self, free_blocks, error));
    return ar_policy_check_totals(base, releasable_bytes, error);
}
