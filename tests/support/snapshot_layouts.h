/* Memory snapshots in the layouts of PyTorch's versions, from the image of a run: which keys they
 * have, and in which form. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "workloads/formats/torch/snapshot_image.h"

enum snapshot_layout_keys {
    LAYOUT_REQUESTED = 1 << 0,   /* `requested_size` of segments and blocks */
    LAYOUT_HISTORY = 1 << 1,     /* `history` of blocks, with `real_size` */
    LAYOUT_POOLS = 1 << 2,       /* `segment_pool_id` */
    LAYOUT_ADDRESSES = 1 << 3,   /* `address` and `frames` of blocks, `is_expandable` */
    LAYOUT_TIMES = 1 << 4,       /* `time_us` */
    LAYOUT_SETTINGS = 1 << 5,    /* `allocator_settings` */
    LAYOUT_ANNOTATIONS = 1 << 6, /* `external_annotations` */
    LAYOUT_CONTEXT = 1 << 7,     /* `compile_context` */
    LAYOUT_METADATA = 1 << 8,    /* `user_metadata` */
    LAYOUT_ENTRY_POOLS = 1 << 9, /* `pool_id` of entries, and fields of the host */
    LAYOUT_NO_HISTORY = 1 << 10, /* the segments alone, torch.cuda.memory_snapshot() */
};

struct snapshot_layout {
    const char *name; /* the first version that wrote it */
    unsigned keys;
};

extern const struct snapshot_layout snapshot_layouts[];
extern const size_t snapshot_layout_count;

enum snapshot_form {
    SNAPSHOT_PICKLE_2, /* as PyTorch's C++ writes it (torch::cuda::_memory_snapshot_pickled) */
    SNAPSHOT_PICKLE_4, /* as Python does */
    SNAPSHOT_JSON,     /* as json.dump does */
};

struct snapshot_layout_options {
    enum snapshot_form form;
    size_t dropped;      /* the number of earlier entries that are missing, as in a ring buffer */
    bool no_completions; /* free_completed was not recorded (skip_actions) */
    unsigned library_frames; /* of each stack, above the line of the program */
};

/* `image` is settled. Fails the test if the file cannot be written. */
void snapshot_layout_write(const char *path, const struct snapshot_layout *layout,
                           const struct snapshot_image *image,
                           const struct snapshot_layout_options *options);
