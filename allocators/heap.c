#include "allocators/heap.h"

#include <inttypes.h>
#include <string.h>

void heap_open(struct heap *self, struct ar_policy *policy, const struct ar_policy_context *context)
{
    *self = (struct heap){.policy = policy, .backing = context->backing, .host = context->host};
}

void heap_close(struct heap *self)
{
    for (uint32_t i = 0; i < self->segment_count; i++)
        (void)ar_backing_segment_free(self->backing, self->segments[i].address);
    for (uint32_t i = 0; i < self->list_room; i++)
        ar_host_free(self->host, self->lists[i], sizeof **self->lists);
    ar_host_free(self->host, self->lists, self->list_room * sizeof *self->lists);
    ar_host_free(self->host, self->segments, self->segment_room * sizeof *self->segments);
    ar_spans_close(&self->spans, self->host);
}

static bool list_exists(struct heap *self, uint32_t list)
{
    if (list >= self->list_room) {
        uint32_t room = list + 1 > self->list_room * 2 ? list + 1 : self->list_room * 2;
        struct heap_list **grown =
            ar_host_grow(self->host, self->lists, self->list_room, room, sizeof *grown);
        if (!grown)
            return false;
        self->lists = grown;
        self->list_room = room;
    }
    if (!self->lists[list])
        self->lists[list] = ar_host_alloc(self->host, sizeof **self->lists);
    return self->lists[list] != NULL;
}

enum ar_status heap_reserve(struct heap *self, uint32_t count, uint32_t list)
{
    if (self->spans.spare_count < count && !ar_spans_reserve(&self->spans, self->host, count))
        return AR_HOST_MEMORY;
    if ((list >= self->list_room || !self->lists[list]) && !list_exists(self, list))
        return AR_HOST_MEMORY;
    return AR_OK;
}

/* The place of the first segment at or above `address`. */
static uint32_t segment_place(const struct heap *self, uint64_t address)
{
    uint32_t low = 0;
    uint32_t high = self->segment_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (self->segments[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct heap_segment *heap_segment_of(const struct heap *self, uint64_t address)
{
    return &self->segments[segment_place(self, address + 1) - 1];
}

enum ar_status heap_grow(struct heap *self, uint64_t bytes, uint32_t *piece)
{
    if (self->spans.spare_count < 2 && !ar_spans_reserve(&self->spans, self->host, 2))
        return AR_HOST_MEMORY;
    if (self->segment_count == self->segment_room) {
        uint32_t room = self->segment_room + self->segment_room / 4 + 8;
        struct heap_segment *grown =
            ar_host_grow(self->host, self->segments, self->segment_room, room, sizeof *grown);
        if (!grown)
            return AR_HOST_MEMORY;
        self->segments = grown;
        self->segment_room = room;
    }
    uint64_t address;
    enum ar_status status = ar_backing_segment_alloc(self->backing, bytes, &address);
    if (status != AR_OK)
        return status;
    uint32_t made = ar_spans_take(&self->spans);
    struct ar_span *span = &self->spans.at[made];
    span->address = address;
    span->bytes = bytes;
    span->previous = 0;
    span->next = 0;
    span->used = 1;
    uint32_t place = segment_place(self, address);
    memmove(self->segments + place + 1, self->segments + place,
            (self->segment_count - place) * sizeof *self->segments);
    self->segments[place] =
        (struct heap_segment){.address = address, .bytes = bytes, .first = made};
    self->segment_count++;
    self->segments_made++;
    self->policy->totals.reserved_bytes += bytes;
    *piece = made;
    return AR_OK;
}

enum ar_status heap_release(struct heap *self, uint32_t piece)
{
    const struct ar_span *span = &self->spans.at[piece];
    uint32_t place = segment_place(self, span->address);
    heap_remove(self, piece);
    enum ar_status status = ar_backing_segment_free(self->backing, span->address);
    self->policy->totals.reserved_bytes -= span->bytes;
    self->segment_count--;
    memmove(self->segments + place, self->segments + place + 1,
            (self->segment_count - place) * sizeof *self->segments);
    self->segments_freed++;
    ar_spans_drop(&self->spans, piece);
    return status;
}

uint32_t heap_next(struct heap *self, uint32_t list, uint64_t bytes, uint64_t address)
{
    struct ar_span_place place;
    if (list >= self->list_room || !self->lists[list])
        return 0;
    return ar_span_index_find(&self->lists[list]->index, self->spans.at, bytes, address, &place)
               ? *place.link
               : 0;
}

void heap_walk(const struct heap *self, bool stream_of_list, ar_policy_visit *visit, void *argument)
{
    for (uint32_t i = 0; i < self->segment_count; i++) {
        for (uint32_t p = self->segments[i].first; p; p = self->spans.at[p].next) {
            const struct ar_span *span = &self->spans.at[p];
            struct ar_policy_range range = {
                .address = span->address,
                .bytes = span->bytes,
                .requested_bytes = span->used ? span->requested_bytes : 0,
                .segment_address = self->segments[i].address,
                .stream = stream_of_list ? span->owner : 0,
                .state = span->used ? AR_POLICY_RANGE_USED : AR_POLICY_RANGE_FREE,
            };
            if (!visit(argument, &range))
                return;
        }
    }
}

struct check { /* recomputed by validate */
    uint64_t granted_bytes, live_bytes, live_blocks, releasable_bytes, usable_bytes, free_blocks;
};

static enum ar_status check_piece(const struct heap *self, const char *name, uint32_t piece,
                                  uint64_t address, struct check *check, struct ar_error *error)
{
    const struct ar_span *at = self->spans.at;
    const struct ar_span *span = &at[piece];
    struct ar_span_place place;
    if (span->address != address || !span->bytes)
        return ar_error_set(error, AR_CORRUPT,
                            "%s: a piece starts at %" PRIu64 ", the one before it ends at %" PRIu64,
                            name, span->address, address);
    if (span->next && at[span->next].previous != piece)
        return ar_error_set(error, AR_CORRUPT,
                            "%s: neighbours at %" PRIu64 " do not know each other", name, address);
    if (span->used) {
        check->granted_bytes += span->bytes;
        check->live_bytes += span->requested_bytes;
        check->live_blocks++;
        return AR_OK;
    }
    if (!self->keeps_apart && span->next && !at[span->next].used &&
        at[span->next].owner == span->owner)
        return ar_error_set(error, AR_CORRUPT,
                            "%s: two free pieces at %" PRIu64 " should have been merged", name,
                            address);
    if (!ar_span_index_find(&self->lists[span->owner]->index, self->spans.at, span->bytes,
                            span->address, &place) ||
        *place.link != piece)
        return ar_error_set(error, AR_CORRUPT,
                            "%s: the free piece at %" PRIu64 " is not in its list", name, address);
    check->free_blocks++;
    if (!span->previous && !span->next)
        check->releasable_bytes += span->bytes;
    if (self->policy->watch)
        check->usable_bytes += span->bytes - span->bytes % self->policy->watch->unit_bytes;
    return AR_OK;
}

static uint64_t count_tree(const struct heap *self, uint32_t node)
{
    return node ? 1 + count_tree(self, self->spans.at[node].left) +
                      count_tree(self, self->spans.at[node].right)
                : 0;
}

static enum ar_status check_totals(const struct heap *self, const char *name,
                                   uint64_t reserved_bytes, const struct check *check,
                                   struct ar_error *error)
{
    const struct ar_policy_totals *totals = &self->policy->totals;
    uint64_t held = 0;
    for (uint32_t i = 0; i < self->list_room; i++)
        for (unsigned r = 0; self->lists[i] && r < AR_SPAN_INDEX_CLASSES; r++)
            held += count_tree(self, self->lists[i]->index.roots[r]);
    if (held != check->free_blocks)
        return ar_error_set(error, AR_CORRUPT,
                            "%s: the lists hold %" PRIu64 " pieces, the segments %" PRIu64, name,
                            held, check->free_blocks);
    if (totals->reserved_bytes != reserved_bytes || totals->granted_bytes != check->granted_bytes ||
        totals->live_bytes != check->live_bytes || totals->live_blocks != check->live_blocks ||
        totals->releasable_bytes != check->releasable_bytes)
        return ar_error_set(error, AR_CORRUPT,
                            "%s: the totals (reserved %" PRIu64 ", granted %" PRIu64
                            ", live %" PRIu64 ", releasable %" PRIu64
                            ") differ from the pieces (%" PRIu64 ", %" PRIu64 ", %" PRIu64
                            ", %" PRIu64 ")",
                            name, totals->reserved_bytes, totals->granted_bytes, totals->live_bytes,
                            totals->releasable_bytes, reserved_bytes, check->granted_bytes,
                            check->live_bytes, check->releasable_bytes);
    if (self->policy->watch && self->policy->watch->usable_bytes != check->usable_bytes)
        return ar_error_set(error, AR_CORRUPT, "%s: the hole watch is off", name);
    return AR_OK;
}

enum ar_status heap_validate(const struct heap *self, const char *name, struct ar_error *error)
{
    struct check check = {0};
    uint64_t reserved_bytes = 0;
    uint64_t end_before = 0;
    for (uint32_t i = 0; i < self->segment_count; i++) {
        const struct heap_segment *segment = &self->segments[i];
        uint64_t address = segment->address;
        if (address < end_before)
            return ar_error_set(error, AR_CORRUPT, "%s: segments overlap at %" PRIu64, name,
                                address);
        for (uint32_t p = segment->first; p; p = self->spans.at[p].next) {
            enum ar_status status = check_piece(self, name, p, address, &check, error);
            if (status != AR_OK)
                return status;
            address += self->spans.at[p].bytes;
        }
        if (address != segment->address + segment->bytes)
            return ar_error_set(error, AR_CORRUPT,
                                "%s: the pieces of the segment at %" PRIu64 " do not fill it", name,
                                segment->address);
        reserved_bytes += segment->bytes;
        end_before = address;
    }
    return check_totals(self, name, reserved_bytes, &check, error);
}

void heap_stats(const struct heap *self, struct ar_policy_stats *out)
{
    *out = (struct ar_policy_stats){.totals = self->policy->totals};
    out->count.splits = self->splits;
    out->count.merges = self->merges;
    out->count.segments_made = self->segments_made;
    out->count.segments_freed = self->segments_freed;
}
