/* Ranges in an array. What is added takes in the ranges that it touches: one stays, those behind it
 * close up. Mostly a range comes at the end or joins another, and nothing moves. */
#include "allocators/planning/taken.h"

#include <string.h>

uint32_t taken_above(const struct taken *self, uint32_t from, uint64_t address)
{
    uint32_t step = 1, low = from;
    while (from < self->count && self->ranges[from].end <= address) {
        low = from + 1;
        from = self->count - from > step ? from + step : self->count;
        step *= 2;
    }
    while (low < from) {
        uint32_t middle = low + (from - low) / 2;
        if (self->ranges[middle].end <= address)
            low = middle + 1;
        else
            from = middle;
    }
    return low;
}

static bool make_room(struct taken *self, struct ar_host *host)
{
    if (self->count < self->room)
        return true;
    uint32_t room = self->room ? 2 * self->room : 2;
    struct taken_range *ranges = ar_host_alloc(host, room * sizeof *ranges);
    if (!ranges)
        return false;
    if (self->count)
        memcpy(ranges, self->ranges, self->count * sizeof *ranges);
    ar_host_free(host, self->ranges, self->room * sizeof *ranges);
    self->ranges = ranges;
    self->room = room;
    return true;
}

bool taken_add(struct taken *self, struct ar_host *host, uint64_t begin, uint64_t end)
{
    /* The first that ends at `begin` or later; 0 is an end of none. */
    bool last = !self->count || self->ranges[self->count - 1].end < begin;
    uint32_t at = last ? self->count : taken_above(self, 0, begin ? begin - 1 : 0);
    uint32_t past = at;
    while (past < self->count && self->ranges[past].begin <= end)
        past++;
    if (past == at) {
        if (!make_room(self, host))
            return false;
        memmove(self->ranges + at + 1, self->ranges + at,
                (self->count - at) * sizeof *self->ranges);
        self->ranges[at] = (struct taken_range){begin, end};
        self->count++;
        return true;
    }
    struct taken_range *range = &self->ranges[at];
    uint64_t reached = self->ranges[past - 1].end;
    range->begin = begin < range->begin ? begin : range->begin;
    range->end = end > reached ? end : reached;
    memmove(range + 1, self->ranges + past, (self->count - past) * sizeof *range);
    self->count -= past - at - 1;
    return true;
}

void taken_close(struct taken *self, struct ar_host *host)
{
    ar_host_free(host, self->ranges, self->room * sizeof *self->ranges);
    *self = (struct taken){0};
}
