/* Which runs of pages at the start are of one range, and where it begins. PyTorch reserves a range of
 * addresses as long as 9/8 of the card's memory and maps pages in it from the lower end up; a snapshot
 * tells of the pages only.
 *
 * 1. Runs of one stream, kind and pool are of one range, since a pool has no second one while the first
 *    has room.
 * 2. Where the pool is not told they may be those of two private ones: then only where no more lies
 *    between them than was ever held at once, since pages once filled it.
 * 3. A range begins at the lowest page that the history maps or unmaps in it. */
#include <stdlib.h>

#include "allocators/base/size.h"
#include "workloads/formats/torch/snapshot_world.h"

#define RANGE_MOST       (256 * AR_GIB) /* 9/8 of the largest card */
#define LARGE_PAGE_BYTES (20 * AR_MIB)

bool snapshot_world_joins(const struct snapshot_world *world, size_t index)
{
    const struct snapshot_area *area = &world->areas[index], *before = area - 1;
    if (!index || !before->expandable || before->stream != area->stream ||
        before->pool != area->pool || before->small != area->small)
        return false;
    uint64_t most_bytes = world->most_held_bytes > AR_GIB ? world->most_held_bytes : AR_GIB;
    if (before->pool_told && area->pool_told)
        most_bytes = RANGE_MOST;
    return area->address - before->address - before->bytes < most_bytes;
}

/* Below it is what lies under the range of a run that begins one. */
static uint64_t floor_of(const struct snapshot_world *world, size_t index)
{
    const struct snapshot_area *of = &world->areas[index];
    uint64_t floor = index ? of[-1].address + of[-1].bytes : 0;
    bool shared = index && of[-1].expandable && of[-1].stream == of->stream &&
                  of[-1].small == of->small; /* what lies between may be of the range below */
    if (shared)
        floor += (of->address - floor) / 2;
    if (of->address > RANGE_MOST && floor < of->address - RANGE_MOST)
        floor = of->address - RANGE_MOST;
    return floor;
}

uint64_t *snapshot_world_bases(const struct snapshot_world *world, const struct snapshot_tree *tree)
{
    uint64_t *bases = malloc((world->area_count + 1) * sizeof *bases);
    if (!bases)
        return NULL;
    for (size_t i = 0; i < world->area_count; i++)
        bases[i] = world->areas[i].address;
    for (size_t i = 0; i < world->event_count && world->area_count; i++) {
        const struct snapshot_record *record = snapshot_world_event(world, tree, i);
        bool pages = record && (record->action == SNAPSHOT_SEGMENT_MAP ||
                                record->action == SNAPSHOT_SEGMENT_UNMAP);
        size_t at = pages ? snapshot_area_above(world, record->address) : world->area_count;
        if (at == world->area_count)
            continue;
        const struct snapshot_area *of = &world->areas[at];
        if (record->stream == of->stream && record->address < bases[at] &&
            record->address >= floor_of(world, at) &&
            (record->bytes % LARGE_PAGE_BYTES != 0) == of->small)
            bases[at] = record->address;
    }
    return bases;
}
