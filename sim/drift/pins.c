/* Which blocks keep segments that have free memory: groups of live blocks by tag or size. */

#include "allocators/base/array.h"
#include "allocators/base/map.h"
#include "allocators/base/size.h"
#include "sim/drift/drift.h"

#define PAGE_BYTES (2 * AR_MIB) /* of the driver */

struct group {
    struct drift_pin pin;
    uint64_t segment; /* 1 + the number of the last segment that counted */
};

struct finder {
    struct group *groups;
    size_t count, room;
    struct ar_map group_of_address;
    struct ar_policy_range *ranges;
    size_t range_count, range_room;
    bool failed;
};

static bool keep_range(void *argument, const struct ar_policy_range *range)
{
    struct finder *self = argument;
    self->failed = !AR_ARRAY_ADD(self->ranges, self->range_count, self->range_room, *range);
    return !self->failed;
}

static size_t group_of(struct finder *self, const struct learned_live *live)
{
    size_t i = 0;
    struct group group = {
        .pin = {.block_bytes = live->bytes, .first_step = live->born, .last_step = live->born}};
    if (live->tag)
        strncpy(group.pin.tag, live->tag, sizeof group.pin.tag - 1);
    while (i < self->count && (strcmp(self->groups[i].pin.tag, group.pin.tag) != 0 ||
                               (!live->tag && self->groups[i].pin.block_bytes != live->bytes)))
        i++;
    if (i == self->count && !AR_ARRAY_ADD(self->groups, self->count, self->room, group)) {
        self->failed = true;
        return 0;
    }
    struct drift_pin *pin = &self->groups[i].pin;
    pin->blocks++;
    pin->bytes += live->bytes;
    if (pin->block_bytes != live->bytes)
        pin->block_bytes = 0;
    AR_LOWER(pin->first_step, live->born);
    AR_RAISE(pin->last_step, live->born);
    return i;
}

static void group_blocks(struct finder *self, const struct replay *run,
                         const struct trace_source *source)
{
    struct learned_live live;
    for (size_t slot = 0; slot < learned_slots(source) && !self->failed; slot++) {
        const struct ar_policy_block *block = replay_block(run, slot);
        if (!block || !learned_slot(source, slot, &live))
            continue;
        size_t group = group_of(self, &live);
        self->failed |= ar_map_put(&self->group_of_address, block->address, group) != AR_OK;
    }
}

/* The group of a live block; NULL: the range is none. */
static struct group *group_at(struct finder *self, const struct ar_policy_range *range)
{
    uint64_t group;
    return range->state == AR_POLICY_RANGE_USED &&
                   ar_map_get(&self->group_of_address, range->address, &group)
               ? &self->groups[group]
               : NULL;
}

/* A segment that grows by pages: a block keeps the free bytes beside it in its own page. */
static void count_beside(struct finder *self, const struct ar_policy_range *block,
                         const struct ar_policy_range *free_range, uint64_t bytes)
{
    struct group *group = group_at(self, block);
    if (!group)
        return;
    uint64_t kept = bytes < free_range->bytes ? bytes : free_range->bytes;
    group->pin.free_bytes += kept;
    group->pin.alone_bytes += kept;
}

static void count_pages(struct finder *self, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++) {
        const struct ar_policy_range *range = &self->ranges[i];
        struct group *group = group_at(self, range);
        if (group && group->segment != first + 1) {
            group->segment = first + 1;
            group->pin.segments++;
        }
        if (range->state != AR_POLICY_RANGE_FREE)
            continue;
        uint64_t after = range->address + range->bytes;
        if (i > first)
            count_beside(self, range - 1, range, -range->address & (PAGE_BYTES - 1));
        if (i + 1 < end)
            count_beside(self, range + 1, range, after & (PAGE_BYTES - 1));
    }
}

/* The ranges [first, end) are a segment. */
static void count_segment(struct finder *self, size_t first, size_t end)
{
    uint64_t bytes = 0, free_bytes = 0, groups = 0;
    struct group *last = NULL;
    for (size_t i = first; i < end; i++) {
        if (self->ranges[i].state == AR_POLICY_RANGE_UNMAPPED) {
            count_pages(self, first, end);
            return;
        }
        bytes += self->ranges[i].bytes;
        if (self->ranges[i].state == AR_POLICY_RANGE_FREE)
            free_bytes += self->ranges[i].bytes;
    }
    for (size_t i = first; i < end; i++) {
        struct group *group = group_at(self, &self->ranges[i]);
        if (!group || group->segment == first + 1)
            continue;
        group->segment = first + 1;
        group->pin.segments++;
        group->pin.segment_bytes += bytes;
        group->pin.free_bytes += free_bytes;
        groups++;
        last = group;
    }
    if (groups == 1)
        last->pin.alone_bytes += free_bytes;
}

static int compare_groups(const void *a, const void *b)
{
    const struct drift_pin *one = &((const struct group *)a)->pin,
                           *other = &((const struct group *)b)->pin;
    AR_ORDER(other->free_bytes, one->free_bytes);
    AR_ORDER(one->first_step, other->first_step);
    AR_ORDER(other->block_bytes, one->block_bytes);
    return strcmp(one->tag, other->tag);
}

enum ar_status drift_find_pins(const struct ar_policy *policy, const struct replay *run,
                               const struct trace_source *source, struct drift_run *out,
                               struct ar_error *error)
{
    struct finder self = {0};
    out->cached_bytes = policy->totals.releasable_bytes;
    ar_policy_walk(policy, keep_range, &self);
    if (!self.failed)
        group_blocks(&self, run, source);
    for (size_t first = 0, end; !self.failed && first < self.range_count; first = end) {
        for (end = first + 1; end < self.range_count && self.ranges[end].segment_address ==
                                                            self.ranges[first].segment_address;)
            end++;
        count_segment(&self, first, end);
    }
    if (self.count)
        qsort(self.groups, self.count, sizeof *self.groups, compare_groups);
    for (size_t i = 0; i < self.count && out->pin_count < DRIFT_PINS; i++)
        if (self.groups[i].pin.free_bytes)
            out->pins[out->pin_count++] = self.groups[i].pin;
    free(self.groups);
    free(self.ranges);
    ar_map_close(&self.group_of_address);
    return self.failed ? ar_no_memory(error, "pinning blocks") : AR_OK;
}
