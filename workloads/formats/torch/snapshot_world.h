/* What the allocator of one GPU held: at the end, as the snapshot's segments say, and at the start
 * of the history, worked out from that by going back through it. */
#ifndef WORKLOADS_FORMATS_TORCH_SNAPSHOT_WORLD_H
#define WORKLOADS_FORMATS_TORCH_SNAPSHOT_WORLD_H

#include "workloads/formats/formats.h"
#include "workloads/formats/torch/snapshot_marks.h"
#include "workloads/formats/torch/snapshot_tree.h"
#include "workloads/trace/event.h"
#include "allocators/base/map.h"
#include "workloads/trace/trace.h"

/* A segment, or a run of mapped pages of one that grows. */
struct snapshot_area {
    uint64_t address, bytes;
    unsigned stream, pool; /* the tree's numbers */
    bool expandable, small, pool_told;
};

struct snapshot_place {
    uint64_t address;
    uint64_t granted_bytes; /* 0: not known */
    uint64_t requested_bytes;
    unsigned stream;
    unsigned pool;
    uint32_t tag;
    uint8_t state;   /* enum snapshot_state */
    bool was_freed;  /* the history frees it */
    bool gone;       /* while going back: it was not there yet */
    bool size_known; /* that it asked for */
};

struct snapshot_world {
    uint64_t device;
    size_t event_count;
    uint32_t first_record; /* of its events, which follow each other */
    uint32_t *records;     /* where they do not: one for each event */
    bool has_times, lacks_times, has_pages;
    uint64_t most_held_bytes;          /* of memory at once, while the history was recorded */
    bool no_completions;               /* of frees: they are complete where they are asked for */
    struct snapshot_area *final_areas; /* by address */
    size_t final_area_count, final_area_room;
    struct snapshot_place *final_places; /* by address, free ones too */
    size_t final_place_count, final_place_room;
    struct snapshot_area *areas; /* at the start, by address */
    size_t area_count, area_room;
    struct snapshot_place *places; /* at the start, by address */
    size_t place_count, place_room;
    struct ar_map at;       /* while going back: place by address */
    bool tells_pools;       /* the final segments do, or it was found out */
    uint64_t unknown_pools; /* segments given back of a pool that is not told */
    uint64_t private_pools; /* segments taken for those of private pools */
    uint64_t unknown_sizes; /* blocks whose request is not told */
    uint64_t contradictions;
    uint64_t unmatched_frees;
};

void snapshot_world_close(struct snapshot_world *world);

/* Takes a segment and its blocks. INVALID where it cannot be. */
enum ar_status snapshot_world_segment(struct snapshot_world *world, struct snapshot_tree *tree,
                                      uint64_t segment, struct ar_error *error) AR_STATUS_CHECKED;

/* Takes its events: the items of a list. FORMAT where one of them stands there before. */
enum ar_status snapshot_world_events(struct snapshot_world *world, const struct snapshot_tree *tree,
                                     uint64_t list, struct ar_error *error) AR_STATUS_CHECKED;
/* NULL: it is no entry of a history, or was forgotten. */
struct snapshot_record *snapshot_world_event(const struct snapshot_world *world,
                                             const struct snapshot_tree *tree, size_t event);

/* Once, after the last segment and the events: goes back through these. */
enum ar_status snapshot_world_rewind(struct snapshot_world *world, struct snapshot_tree *tree,
                                     struct ar_error *error) AR_STATUS_CHECKED;

/* Of the areas at the start: the first one above an address, `area_count` where there is none; and the
 * one that an address lies in, NULL where it lies in none. */
size_t snapshot_area_above(const struct snapshot_world *world, uint64_t address);
struct snapshot_area *snapshot_area_at(const struct snapshot_world *world, uint64_t address);

/* For each run of pages of the start that begins a range, the lowest address that this was ever seen to
 * have; in one pass over the history. The caller frees it. NULL: no memory. */
uint64_t *snapshot_world_bases(const struct snapshot_world *world,
                               const struct snapshot_tree *tree);
/* Does a run of the start belong to the same range as the one before it? */
bool snapshot_world_joins(const struct snapshot_world *world, size_t area);

/* A snapshot's history as a trace. */

/* Appends the state at the start, all events and marks, and the state at the end. Lets go of the tree's
 * records on the way. */
enum ar_status snapshot_trace(struct snapshot_tree *tree, struct snapshot_world *worlds,
                              size_t count, const struct snapshot_marks *marks,
                              struct format_reading *reading,
                              struct ar_error *error) AR_STATUS_CHECKED;

/* Which pool a range of growing pages is of, where the snapshot does not say: ranges all of whose pages
 * were unmapped are not among its segments. */

/* Once, after the rewind. `conf`: the settings of the allocator. Where it cannot tell, or need not, all stay as they are. HOST_MEMORY; INVALID
 * for too many pools. */
enum ar_status snapshot_ranges_tell(struct snapshot_world *world, struct snapshot_tree *tree,
                                    const char *conf, struct ar_error *error) AR_STATUS_CHECKED;

/* Which pool a segment is of, where the snapshot does not say: PyTorch 2.0 and before tell it of none,
 * later ones not of those that were given back. */

/* Once, after the rewind. `conf`: the settings of the allocator. Where it cannot tell, or need not, all
 * stay as they are. HOST_MEMORY; INVALID for too many pools. */
enum ar_status snapshot_pools_tell(struct snapshot_world *world, struct snapshot_tree *tree,
                                   const char *conf, struct ar_error *error) AR_STATUS_CHECKED;

/* A pool that the snapshot does not name, by its number from 0. */
enum ar_status snapshot_new_pool(struct snapshot_tree *tree, unsigned number, unsigned *pool,
                                 struct ar_error *error) AR_STATUS_CHECKED;

#endif
