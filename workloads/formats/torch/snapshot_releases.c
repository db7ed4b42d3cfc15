/* What a run of released segments tells of their pools: rules 2 and 6 of snapshot_pools.c. */
#include "workloads/formats/torch/snapshot_passed.h"

/* Whether a segment is wholly free that is known to be of the common pool. */
static bool keeps_common(struct snapshot_passed *self)
{
    self->steps += self->segment_count;
    self->stuck |= self->steps >> SNAPSHOT_STEPS_BITS != 0;
    for (size_t i = 0; i < self->segment_count && !self->stuck; i++)
        if (self->segments[i].told && !self->segments[i].pool &&
            snapshot_passed_whole(self, &self->segments[i]))
            return true;
    return false;
}

/* Opposes a segment to those of the run before an event. */
static enum ar_status oppose_released(struct snapshot_passed *self, uint32_t segment, size_t event,
                                      struct ar_error *error)
{
    for (size_t k = self->back_from; k < event && self->giving_back && !self->stuck; k++) {
        self->stuck |= ++self->steps >> SNAPSHOT_STEPS_BITS != 0;
        if (self->of_event[k] != SNAPSHOT_NO_SEGMENT)
            AR_TRY(snapshot_passed_oppose(self, segment, self->of_event[k], error));
    }
    return AR_OK;
}

/* Private pools were deleted before an event, and their pending blocks completed: the released
 * segments are of other pools than those that are wholly free, or have a pending block. */
static enum ar_status take_deleted(struct snapshot_passed *self, size_t event,
                                   struct ar_error *error)
{
    for (size_t k = self->back_from; k < event; k++)
        if (self->of_event[k] != SNAPSHOT_NO_SEGMENT)
            self->segments[self->of_event[k]].is_not_common = true;
    for (uint32_t i = 0; i < self->segment_count && !self->stuck; i++)
        if (snapshot_passed_whole(self, &self->segments[i]) || self->segments[i].pending)
            AR_TRY(oppose_released(self, i, event, error));
    return AR_OK;
}

/* Old blocks of the common pool were collected before an event, or nothing was to be collected:
 * large segments that are wholly free, for as long as the youngest released one, are not of it. */
enum ar_status snapshot_passed_collected(struct snapshot_passed *self, size_t event,
                                         struct ar_error *error)
{
    size_t youngest = self->giving_back ? 0 : event;
    for (size_t k = self->back_from; k < event && self->giving_back; k++)
        if (self->of_event[k] != SNAPSHOT_NO_SEGMENT &&
            self->segments[self->of_event[k]].freed_at > youngest)
            youngest = self->segments[self->of_event[k]].freed_at;
    self->steps += self->segment_count;
    for (uint32_t i = 0; i < self->segment_count; i++) {
        struct snapshot_passed_segment *segment = &self->segments[i];
        if (i != self->fresh && !self->groups[segment->group].small &&
            segment->freed_at <= youngest && snapshot_passed_whole(self, segment)) {
            segment->is_not_common = true;
            AR_TRY(oppose_released(self, i, event, error));
        }
    }
    return AR_OK;
}

/* Whether PyTorch releases a segment after another one of the same pool and kind. */
static bool follows(const struct snapshot_passed *self, uint32_t segment, uint32_t before)
{
    const struct snapshot_passed_segment *a = &self->segments[before],
                                         *b = &self->segments[segment];
    uint64_t stream_a = self->tree->streams[self->groups[a->group].stream];
    uint64_t stream_b = self->tree->streams[self->groups[b->group].stream];
    if (stream_a != stream_b)
        return stream_a < stream_b;
    return a->bytes != b->bytes ? a->bytes < b->bytes : a->address < b->address;
}

static bool is_small(const struct snapshot_passed *self, uint32_t segment)
{
    return self->groups[self->segments[segment].group].small;
}

/* Whether two segments of a run must be of two pools: rule 6. `lead` pieces may have been released
 * before the cache. */
static bool are_apart(const struct snapshot_passed *self, uint32_t one, uint32_t other,
                      unsigned lead)
{
    unsigned from = self->segments[one].piece, to = self->segments[other].piece;
    if (from == to || from < lead)
        return false;
    if (is_small(self, one) == is_small(self, other))
        return true;
    return is_small(self, one) ? to != from + 1 : from || to != 1;
}

/* Rule 6, for the run before an event. `in_part`: large segments at its beginning may have been
 * released otherwise. `*deleted`: it begins as the release of a private pool does. */
static enum ar_status read_order(struct snapshot_passed *self, size_t event, bool in_part,
                                 bool *deleted, struct ar_error *error)
{
    uint32_t last = SNAPSHOT_NO_SEGMENT, segment;
    unsigned piece = 0, lead = 0;
    bool from_large = false;
    *deleted = false;
    for (size_t k = self->back_from; k < event && !self->stuck; k++) {
        if ((segment = self->of_event[k]) == SNAPSHOT_NO_SEGMENT)
            continue;
        bool small = is_small(self, segment);
        if (last != SNAPSHOT_NO_SEGMENT)
            piece += small != is_small(self, last) || !follows(self, segment, last);
        from_large |= last == SNAPSHOT_NO_SEGMENT && !small;
        *deleted |= piece == 1 && !small && !from_large;
        lead = in_part && !small && lead == piece ? piece + 1 : lead;
        self->segments[segment].piece = piece;
        self->segments[segment].is_not_common |= piece > lead + (small && !lead && from_large);
        for (size_t i = self->back_from; i < k && !self->stuck; i++) {
            self->stuck |= ++self->steps >> SNAPSHOT_STEPS_BITS != 0;
            if (self->of_event[i] != SNAPSHOT_NO_SEGMENT &&
                are_apart(self, self->of_event[i], segment, lead))
                AR_TRY(snapshot_passed_oppose(self, self->of_event[i], segment, error));
        }
        last = segment;
    }
    return AR_OK;
}

/* Whether a request released a part of the common pool: the oldest blocks, or (`*known` false) as
 * many of the largest as it needed beyond the limit, which is at least the most that was held. */
static bool releases_part(const struct snapshot_passed *self, const struct snapshot_record *next,
                          bool *known)
{
    bool in_limit = next && next->action == SNAPSHOT_SEGMENT_ALLOC &&
                    next->bytes <= self->world->most_held_bytes - self->back_bytes;
    bool divides = self->settings.max_split_bytes != UINT64_MAX;
    *known = self->in_part && self->settings.gc_threshold > 0 &&
             self->smallest_back > TORCH_SMALL_SEGMENT_BYTES &&
             (double)self->back_bytes >
                 self->settings.gc_threshold * (double)self->world->most_held_bytes;
    if (divides && next && !self->back_mixed && next->stream == self->back_stream &&
        self->smallest_back >= self->settings.max_split_bytes && (!in_limit || self->loose)) {
        *known = false;
        return true;
    }
    return *known;
}

/* The largest blocks of its pool were released for a request that failed all the same: in the
 * common pool all others would have been released too. */
static void take_failure(struct snapshot_passed *self, size_t event)
{
    bool rest = false;
    self->steps += self->segment_count;
    for (size_t i = 0; i < self->segment_count; i++)
        rest |= snapshot_passed_whole(self, &self->segments[i]) != 0;
    for (size_t k = self->back_from; k < event && rest; k++)
        if (self->of_event[k] != SNAPSHOT_NO_SEGMENT)
            self->segments[self->of_event[k]].is_not_common = true;
}

/* Whether the ranges tell that the run before an event is of deleted pools. */
static bool deletes_pages(const struct snapshot_passed *self, size_t event)
{
    uint64_t seen;
    for (size_t k = self->back_from; k < event && self->back_unmaps; k++)
        if (ar_map_get(&self->world->deletions, k, &seen))
            return true;
    return false;
}

/* Segments were released, and these were not: they are neither of the common pool nor of one that
 * ever released any, which a private pool does when the program releases it. `next`: the next
 * entry, `event`; NULL: the end. */
enum ar_status snapshot_passed_released(struct snapshot_passed *self,
                                        const struct snapshot_record *next, size_t event,
                                        struct ar_error *error)
{
    bool in_request =
        !next || next->action == SNAPSHOT_SEGMENT_ALLOC || next->action == SNAPSHOT_OOM;
    bool known, deleted;
    bool in_part =
        in_request && !self->back_unmaps &&
        (self->settings.gc_threshold > 0 || self->settings.max_split_bytes != UINT64_MAX);
    AR_TRY(read_order(self, event, in_part, &deleted, error));
    deleted |= deletes_pages(self, event);
    if (in_request && !deleted && !self->back_unmaps && releases_part(self, next, &known)) {
        if (known && self->back_bytes < self->collects_from)
            self->collects_from = self->back_bytes;
        if (!known && next->action == SNAPSHOT_OOM)
            take_failure(self, event);
        else if (!known)
            self->lent = self->of_event[event - 1];
        return known ? snapshot_passed_collected(self, event, error) : AR_OK;
    }
    if (deleted || self->pending || self->waiting.count || keeps_common(self))
        return in_part && !deleted && self->smallest_back > TORCH_SMALL_SEGMENT_BYTES
                   ? AR_OK
                   : take_deleted(self, event, error);
    for (uint32_t i = 0; i < self->segment_count && !self->stuck; i++) {
        if (i == self->fresh || !snapshot_passed_whole(self, &self->segments[i]))
            continue;
        self->segments[i].is_not_common = true;
        for (uint32_t k = 0; k < self->segment_count && !self->stuck; k++) {
            if (!self->segments[k].live)
                AR_TRY(snapshot_passed_oppose(self, i, k, error));
            self->stuck |= ++self->steps >> SNAPSHOT_STEPS_BITS != 0;
        }
    }
    return AR_OK;
}
