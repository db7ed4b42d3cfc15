/* The memory of the allocator of one GPU: at the end, as the segments of the snapshot say, and at
 * the start of the history, computed from that by going back through the entries. */
#pragma once

#include "allocators/base/map.h"
#include "workloads/formats/formats.h"
#include "workloads/formats/torch/snapshot_tree.h"

struct snapshot_place {
    uint64_t address;
    uint64_t granted_bytes; /* 0: unknown */
    uint64_t requested_bytes;
    uint64_t free_behind; /* the lowest address of its area behind it that it does not have; 0 */
    unsigned stream;
    unsigned pool;
    uint32_t tag;
    uint8_t state;   /* enum snapshot_state */
    bool was_freed;  /* the history frees it */
    bool gone;       /* while going back: it did not exist yet */
    bool size_known; /* requested_bytes is exact */
};

struct snapshot_world {
    uint64_t device;
    bool is_host; /* of the cache of pinned host memory, which has only a history */
    size_t event_count;
    uint32_t first_record; /* of its events, if their records are consecutive */
    uint32_t *records;     /* else: one for each event */
    bool has_times, lacks_times, has_pages;
    uint64_t large_page_bytes;         /* from the settings; 0: not known */
    uint64_t most_held_bytes;          /* the most memory reserved during the history */
    bool no_completions;               /* frees are completed when they are requested */
    struct snapshot_area *final_areas; /* by address */
    size_t final_area_count, final_area_room;
    struct snapshot_place *final_places; /* by address, free ones too */
    size_t final_place_count, final_place_room;
    struct snapshot_areas areas;   /* at the start */
    struct snapshot_place *places; /* at the start, by address */
    size_t place_count, place_room;
    struct ar_map at;        /* while going back: place by address */
    struct ar_map deletions; /* events that begin the release of deleted pools' pages alone */
    bool tells_pools;        /* the final segments have pools, or they were inferred */
    uint64_t unknown_pools;  /* released segments of an unknown pool */
    uint64_t private_pools;  /* segments inferred to be of private pools */
    uint64_t unknown_sizes;  /* blocks of which the requested bytes are unknown */
    uint64_t contradictions;
    uint64_t unmatched_frees;
};

void snapshot_world_close(struct snapshot_world *world);

/* Whether so many bytes are whole pages of the large pool. Small pages are smaller. */
bool snapshot_in_large_pages(const struct snapshot_world *world, uint64_t bytes);

/* Adds a segment and its blocks. FORMAT or INVALID if it cannot be. */
enum ar_status snapshot_world_segment(struct snapshot_world *world, struct snapshot_tree *tree,
                                      uint64_t segment, struct ar_error *error);

/* Sets its events: the items of a list. FORMAT if one of them is there twice. */
enum ar_status snapshot_world_events(struct snapshot_world *world, const struct snapshot_tree *tree,
                                     uint64_t list, struct ar_error *error);
/* The same: all records of the tree. */
enum ar_status snapshot_world_records(struct snapshot_world *world,
                                      const struct snapshot_tree *tree, struct ar_error *error);
/* NULL if it is no entry of a history, or was forgotten. */
struct snapshot_record *snapshot_world_event(const struct snapshot_world *world,
                                             const struct snapshot_tree *tree, size_t event);

/* Once, after the last segment and the events: goes back through the events. */
enum ar_status snapshot_world_rewind(struct snapshot_world *world, struct snapshot_tree *tree,
                                     struct ar_error *error);

/* For each run of pages of the start that begins a range, the lowest address that the range ever
 * has, in one pass over the history. The caller frees it. NULL: no host memory. */
uint64_t *snapshot_world_bases(const struct snapshot_world *world,
                               const struct snapshot_tree *tree);
/* Whether a run of the start belongs to the same range as the one before it. */
bool snapshot_world_joins(const struct snapshot_world *world, size_t area);

/* Appends to the trace the state at the start, all events and marks, and the state at the end.
 * Frees the records of the tree on the way. */
enum ar_status snapshot_trace(struct snapshot_tree *tree, struct snapshot_world *worlds,
                              size_t count, const struct snapshot_marks *marks,
                              struct format_reading *reading, struct ar_error *error);

/* Infers the pools that the snapshot does not name: those of ranges of which all pages were
 * unmapped, and those of segments. PyTorch 2.0 and earlier versions name no pools, later ones not
 * those of released segments. Once, after the rewind. `conf`: the settings at the start; `marks`
 * have their changes. If nothing can be inferred, nothing changes. HOST_MEMORY; INVALID for too
 * many pools. */
enum ar_status snapshot_tell(struct snapshot_world *world, struct snapshot_tree *tree,
                             const struct snapshot_marks *marks, const char *conf,
                             struct ar_error *error);
/* The part of the ranges. */
enum ar_status snapshot_ranges_tell(struct snapshot_world *world, struct snapshot_tree *tree,
                                    const struct snapshot_marks *marks, const char *conf,
                                    struct ar_error *error);

struct torch_settings;

/* Whether a pool that the snapshot names is a torch.cuda.MemPool: 0,N. That of a graph is N,0. */
bool snapshot_is_mempool(const struct snapshot_tree *tree, unsigned pool);

/* Which named pools hand out whole blocks, from the state at the end. `settings`: at the start. */
void snapshot_find_whole(const struct snapshot_world *world, struct snapshot_tree *tree,
                         const struct snapshot_marks *marks, const struct torch_settings *settings);

/* A new pool that the snapshot does not name, by its number from 0. */
enum ar_status snapshot_new_pool(struct snapshot_tree *tree, unsigned number, unsigned *pool,
                                 struct ar_error *error);
