/* The segments of a history, for the files that infer the pools of a snapshot. */
#pragma once

#include "allocators/base/range_tree.h"
#include "allocators/policies/torch/torch.h"
#include "workloads/formats/torch/snapshot_world.h"

#define SNAPSHOT_NO_SEGMENT UINT32_MAX
#define SNAPSHOT_STEPS_BITS 25 /* 2^25 blocks passed over in all: a hostile file ends there */

struct snapshot_passed_segment {
    uint64_t address, bytes;
    uint32_t group;
    unsigned pool; /* of the tree */
    bool told, coloured, live;
    bool is_not_common;
    bool divided;     /* a block begins within it */
    uint32_t like;    /* one that is likely of the same pool, or SNAPSHOT_NO_SEGMENT */
    uint32_t pending; /* blocks */
    size_t freed_at;  /* the event since which it is wholly free, if it is */
    unsigned piece;   /* of the run of released segments that it is in: read_order */
};

/* Free blocks of one stream and kind, all pools together. */
struct snapshot_passed_group {
    unsigned stream;
    bool small;
    uint32_t root;
};

struct snapshot_passed {
    struct snapshot_world *world;
    struct snapshot_tree *tree;
    struct torch_settings settings; /* in force */
    struct snapshot_changes changes;
    struct ar_host host;
    struct ar_range_pool blocks; /* extra: segment * 4, USED, PENDING */
    struct ar_map at;            /* from address to block */
    struct ar_map pages;         /* of ranges, by address / PAGE: their blocks are not followed */
    struct ar_map waiting;       /* blocks in them whose free is requested, by address */
    struct ar_map final_at;      /* from address to final area */
    struct ar_map made_at;       /* from address to the last event that makes a segment there */
    struct snapshot_passed_group *groups;
    size_t group_count, group_room;
    struct snapshot_passed_segment *segments;
    size_t segment_count, segment_room;
    uint32_t *of_event;      /* the segment of each request and segment entry */
    struct ar_map opposites; /* pairs of segments, the lower one in the upper half */
    uint64_t *pairs;
    size_t pair_count, pair_room;
    uint64_t steps;
    uint64_t pending;       /* blocks */
    uint32_t fresh;         /* the segment that was made for the next request */
    bool in_part;           /* a request may collect old blocks */
    bool loose;             /* or release the largest although it was below the limit */
    uint32_t lent;          /* released for the next request; or SNAPSHOT_NO_SEGMENT */
    bool giving_back;       /* in a run of released segments */
    size_t back_from;       /* its first event */
    uint64_t held_bytes;    /* of all segments */
    uint64_t back_bytes;    /* held before that run */
    uint64_t collects_from; /* so many held bytes start a collection of old blocks */
    uint64_t smallest_back; /* bytes of the smallest of that run */
    unsigned back_stream;   /* of the last of them */
    bool back_mixed;        /* they are of several streams */
    bool back_unmaps;       /* pages were unmapped in that run too */
    unsigned new_pools;     /* that ranges have */
    unsigned whole;         /* a pool that must hand out whole blocks; 0: none */
    bool stuck;             /* the history contradicts the assumptions: rule 5 */
};

static inline enum ar_status snapshot_passed_no_memory(struct ar_error *error)
{
    return ar_no_memory(error, "the pools of a snapshot");
}

/* Two segments are of different pools. HOST_MEMORY. */
enum ar_status snapshot_passed_oppose(struct snapshot_passed *self, uint32_t one, uint32_t other,
                                      struct ar_error *error);
/* The block that fills a segment, if it is free; else 0. */
uint32_t snapshot_passed_whole(struct snapshot_passed *self,
                               const struct snapshot_passed_segment *segment);
/* A run of segments was released before an event: `next`, or NULL for the end. HOST_MEMORY. */
enum ar_status snapshot_passed_released(struct snapshot_passed *self,
                                        const struct snapshot_record *next, size_t event,
                                        struct ar_error *error);
/* Old blocks were collected before an event, or there were none. HOST_MEMORY. */
enum ar_status snapshot_passed_collected(struct snapshot_passed *self, size_t event,
                                         struct ar_error *error);

/* Gives each segment a pool. Sets `stuck` if there are too many pools, or a contradiction. */
enum ar_status snapshot_passed_colour(struct snapshot_passed *self, struct ar_error *error);
