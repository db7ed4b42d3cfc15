#include "allocators/heap.h"

#include "allocators/base/array.h"

void heap_open(struct heap *self, struct ar_policy *policy, const struct ar_policy_context *context)
{
    *self = (struct heap){.policy = policy, .backing = context->backing, .host = context->host};
}

void heap_close(struct heap *self)
{
    /* The last first: a backing that keeps them in an array then moves none. */
    for (uint32_t i = self->segment_count; i > 0; i--)
        (void)ar_backing_segment_free(self->backing, self->segments[i - 1].address);
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
        if (!ar_host_extend(self->host, &self->lists, &self->list_room, room, sizeof *self->lists))
            return false;
    }
    if (!self->lists[list])
        self->lists[list] = ar_host_alloc(self->host, sizeof **self->lists);
    if (self->lists[list] && self->by_record)
        self->lists[list]->index.address_flip = AR_SPAN_INDEX_BY_RECORD;
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
    return (uint32_t)ar_array_from(self->segments, self->segment_count, sizeof *self->segments,
                                   offsetof(struct heap_segment, address), address);
}

const struct heap_segment *heap_segment_of(const struct heap *self, uint64_t address)
{
    return &self->segments[segment_place(self, address + 1) - 1];
}

enum ar_status heap_grow(struct heap *self, uint64_t bytes, uint32_t *piece)
{
    if (self->spans.spare_count < 2 && !ar_spans_reserve(&self->spans, self->host, 2))
        return AR_HOST_MEMORY;
    if (self->segment_count == self->segment_room &&
        !ar_host_extend(self->host, &self->segments, &self->segment_room,
                        self->segment_room + self->segment_room / 4 + 8, sizeof *self->segments))
        return AR_HOST_MEMORY;
    uint64_t address;
    AR_TRY(ar_backing_segment_alloc(self->backing, bytes, &address));
    uint32_t made = ar_spans_new(&self->spans, address, bytes);
    self->spans.at[made].used = 1;
    uint32_t place = segment_place(self, address);
    AR_ARRAY_INSERT(self->segments, self->segment_count, place,
                    (struct heap_segment){.address = address, .bytes = bytes, .first = made});
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
    AR_ARRAY_REMOVE(self->segments, self->segment_count, place);
    self->segments_freed++;
    ar_spans_drop(&self->spans, piece);
    return status;
}

uint32_t heap_give_between(struct heap *self, struct heap_list *list, uint32_t piece)
{
    struct ar_span *at = self->spans.at;
    uint32_t previous = at[piece].previous, next = at[piece].next;
    uint64_t bytes = at[previous].bytes + at[piece].bytes + at[next].bytes;
    ar_policy_free_removed(self->policy, at[next].bytes);
    ar_span_index_remove(&list->index, at, next);
    heap_link_past(self, piece, next);
    heap_link_past(self, previous, piece);
    heap_moved(self, list, previous, previous, bytes);
    return previous;
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

uint32_t heap_next_whole(struct heap *self, uint32_t list, uint64_t *bytes, uint64_t *rank)
{
    uint32_t piece = 0;
    if (list >= self->list_room || !self->lists[list])
        return 0;
    do
        piece = ar_span_index_next(&self->lists[list]->index, self->spans.at, bytes, rank);
    while (piece && !heap_is_segment(&self->spans.at[piece]));
    return piece;
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

static const char *piece_fault(const struct heap *self, uint32_t piece, uint64_t address)
{
    const struct ar_span *at = self->spans.at;
    const struct ar_span *span = &at[piece];
    if (span->address != address || !span->bytes)
        return "a piece is empty or does not start where the one before it ends";
    if (span->next && at[span->next].previous != piece)
        return "the links of two neighbours differ";
    if (span->used)
        return NULL;
    if (!self->keeps_apart && span->next && heap_joins(&at[span->next], span->owner))
        return "two free pieces of one list are not merged";
    if (!ar_span_index_has(&self->lists[span->owner]->index, at, piece))
        return "a free piece is not in its list";
    return NULL;
}

enum ar_status heap_check(const struct heap *self, uint64_t *releasable_bytes,
                          struct ar_error *error)
{
    uint64_t reserved_bytes = 0, end_before = 0, free_pieces = 0, listed = 0;
    *releasable_bytes = 0;
    for (uint32_t i = 0; i < self->segment_count; i++) {
        const struct heap_segment *segment = &self->segments[i];
        uint64_t address = segment->address;
        if (address < end_before)
            return ar_policy_broken(self->policy, "two segments overlap", address, error);
        for (uint32_t p = segment->first; p; p = self->spans.at[p].next) {
            const struct ar_span *span = &self->spans.at[p];
            const char *fault = piece_fault(self, p, address);
            if (fault)
                return ar_policy_broken(self->policy, fault, address, error);
            free_pieces += !span->used;
            *releasable_bytes += !span->used && heap_is_segment(span) ? span->bytes : 0;
            address += span->bytes;
        }
        if (address != segment->address + segment->bytes)
            return ar_policy_broken(self->policy, "the pieces do not fill their segment",
                                    segment->address, error);
        reserved_bytes += segment->bytes;
        end_before = address;
    }
    for (uint32_t i = 0; i < self->list_room; i++) {
        uint64_t count = 0;
        if (self->lists[i] &&
            ar_span_index_fault(&self->lists[i]->index, self->spans.at, free_pieces, &count))
            return ar_policy_broken(self->policy, "the index of a list is broken", i, error);
        listed += count;
    }
    if (listed != free_pieces || self->policy->totals.reserved_bytes != reserved_bytes)
        return ar_policy_broken(
            self->policy,
            "the lists or the reserved bytes differ from the segments, the last of which ends",
            end_before, error);
    return AR_OK;
}

enum ar_status heap_validate(const struct heap *self, struct ar_error *error)
{
    uint64_t releasable_bytes;
    AR_TRY(heap_check(self, &releasable_bytes, error));
    return ar_policy_check_totals(self->policy, releasable_bytes, error);
}

void heap_stats(const struct heap *self, struct ar_policy_stats *out)
{
    *out = (struct ar_policy_stats){.totals = self->policy->totals};
    out->count.splits = self->splits;
    out->count.merges = self->merges;
    out->count.segments_made = self->segments_made;
    out->count.segments_freed = self->segments_freed;
}
