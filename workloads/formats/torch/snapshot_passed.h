/* Which free blocks the recorded allocator passed over: what tells segments of different pools apart. */
#ifndef WORKLOADS_FORMATS_TORCH_SNAPSHOT_PASSED_H
#define WORKLOADS_FORMATS_TORCH_SNAPSHOT_PASSED_H

#include "allocators/base/range_tree.h"
#include "allocators/policies/torch/torch.h"
#include "workloads/formats/torch/snapshot_world.h"

#define SNAPSHOT_NO_SEGMENT UINT32_MAX

struct snapshot_passed_segment {
    uint64_t address, bytes;
    uint32_t group;
    unsigned pool; /* of the tree */
    bool told, coloured, live;
    bool is_not_common;
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
    struct torch_settings settings;
    struct ar_host host;
    struct ar_range_pool blocks; /* extra: segment * 2 + used */
    struct ar_map at;            /* from address to block */
    struct ar_map final_at;      /* from address to final area */
    struct snapshot_passed_group *groups;
    size_t group_count, group_room;
    struct snapshot_passed_segment *segments;
    size_t segment_count, segment_room;
    uint32_t *of_event;      /* segment of each request and segment entry */
    struct ar_map opposites; /* pairs of segments, the lower one in the upper half */
    uint64_t *pairs;
    size_t pair_count, pair_room;
    uint64_t steps;
    uint32_t fresh;         /* the segment that was made for the next request */
    bool in_part;           /* what a request gave back may be a part of what was free */
    bool giving_back;       /* in a run of segments given back */
    uint64_t smallest_back; /* bytes of the smallest of that run */
    bool stuck;
};

/* Goes through the history from its start; `world`, `tree`, `settings` and `in_part` are set, all else is
 * zero. `stuck`: it contradicts itself. HOST_MEMORY. The caller closes it, also after a failure. */
enum ar_status snapshot_passed_find(struct snapshot_passed *self,
                                    struct ar_error *error) AR_STATUS_CHECKED;
void snapshot_passed_close(struct snapshot_passed *self);

#endif
