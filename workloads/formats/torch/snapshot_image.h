/* A PyTorch memory snapshot in memory before it is written: the entries of an allocator and its
 * segments at the end. A simulated run or a recorded trace fills it in. */
#pragma once

#include "workloads/formats/torch/pickle.h"

/* By the names that snapshots have for them. */
#define SNAPSHOT_ACTIONS(X)                                                                        \
    X(ALLOC, "alloc")                                                                              \
    X(FREE_REQUESTED, "free_requested")                                                            \
    X(FREE_COMPLETED, "free_completed")                                                            \
    X(SEGMENT_ALLOC, "segment_alloc")                                                              \
    X(SEGMENT_FREE, "segment_free")                                                                \
    X(SEGMENT_MAP, "segment_map")                                                                  \
    X(SEGMENT_UNMAP, "segment_unmap")                                                              \
    X(SNAPSHOT, "snapshot")                                                                        \
    X(OOM, "oom")                                                                                  \
    X(ANNOTATE, "annotate")

enum snapshot_action {
#define X(name, text) SNAPSHOT_##name,
    SNAPSHOT_ACTIONS(X)
#undef X
        SNAPSHOT_ACTION_COUNT
};

#define SNAPSHOT_DEVICES 64 /* the most GPUs that one image holds */

/* Whether a snapshot can have a range of memory there. */
static inline bool snapshot_range_can_be(uint64_t address, uint64_t bytes)
{
    return address < UINT64_MAX / 2 && bytes < TRACE_BYTES_LIMIT;
}

/* One entry of the history. */
struct snapshot_entry {
    uint64_t address; /* of an OOM: the free bytes of the device */
    uint64_t bytes;   /* of allocs and frees the requested bytes */
    uint64_t time_us;
    uint32_t stream, pool;
    uint32_t tag;    /* 1 + the index of its text; 0: none */
    uint16_t device; /* below SNAPSHOT_DEVICES */
    uint8_t action;
    bool before; /* of a segment: it existed before the trace begins; not written */
};

enum snapshot_state { SNAPSHOT_ACTIVE, SNAPSHOT_PENDING, SNAPSHOT_INACTIVE };

/* A block at the end. The free ones are made from the rest. */
struct snapshot_block {
    uint64_t address, bytes, requested_bytes;
    uint32_t pool, tag;
    uint16_t device;
    uint8_t state;
};

struct snapshot_segment {
    uint64_t address, bytes;
    uint32_t stream, pool;
    uint16_t device;
    bool expandable, small;
    size_t first_block, block_count;
};

/* A mark of the program: an external annotation. */
struct snapshot_annotation {
    uint64_t time_us;
    size_t entry;         /* the next entry of the image */
    uint32_t name, stage; /* 1 + the index of its text */
    uint16_t device;
};

/* A zeroed struct is an empty image. */
struct snapshot_image {
    struct snapshot_entry *entries;
    size_t entry_count, entry_room;
    struct snapshot_block *blocks;
    size_t block_count, block_room;
    struct snapshot_segment *segments;
    size_t segment_count, segment_room;
    struct snapshot_annotation *annotations;
    size_t annotation_count, annotation_room;
    struct texts tags;
    /* Of another allocator: blocks have the requested bytes, rounded up, and segments no pools.
     * Settling adds the bytes that PyTorch leaves with a block, and pools. */
    bool recorded;
    bool sizes_known; /* recorded, but with the granted bytes of each block */
    char name[128];   /* of the trace; the file name of frames made from tags */
    char conf[512];   /* the allocator's settings in PyTorch's syntax, at the end */
};

void snapshot_image_close(struct snapshot_image *self);

/* HOST_MEMORY. */
enum ar_status snapshot_add_entry(struct snapshot_image *self, const struct snapshot_entry *entry,
                                  struct ar_error *error);
enum ar_status snapshot_add_block(struct snapshot_image *self, const struct snapshot_block *block,
                                  struct ar_error *error);
/* Adds a mark with its label and its unknown keys after the entries so far. HOST_MEMORY. */
enum ar_status snapshot_add_mark(struct snapshot_image *self, const char *label, const char *keys,
                                 uint16_t device, uint64_t time_us, struct ar_error *error);
/* The same for a note on a change of the settings ("settings,NEW"), which are `conf` from then on,
 * or of the limit ("limit,BYTES"). INVALID if it would not come back from a snapshot. */
enum ar_status snapshot_add_change(struct snapshot_image *self, const char *note, uint64_t time_us,
                                   struct ar_error *error);
/* The number of a tag in entries and blocks. */
enum ar_status snapshot_tag(struct snapshot_image *self, const char *text, uint32_t *tag,
                            struct ar_error *error);

/* Computes the segments at the end from the entries, sorts the blocks into them, and fills the rest
 * with free ones. Once, after the last entry and block. HOST_MEMORY. */
enum ar_status snapshot_settle(struct snapshot_image *self, struct ar_error *error);

/* Writes a settled image as a pickle that pytorch.org/memory_viz and PyTorch's own
 * torch/cuda/_memory_viz.py open. Errors of `output`, and HOST_MEMORY. */
enum ar_status snapshot_write(const struct snapshot_image *image, pickle_output *output,
                              void *argument, struct ar_error *error);

/* ---- areas: ranges of addresses in order, which do not overlap ---- */

/* A segment, or a run of mapped pages of one that grows. */
struct snapshot_area {
    uint64_t address, bytes;
    unsigned stream, pool;
    size_t entry; /* of an image: the entry that made it */
    bool expandable, small, pool_told;
};

/* A zeroed struct is empty. */
struct snapshot_areas {
    struct snapshot_area *items; /* by address */
    size_t count, room;
};

/* The index of the first area above an address, or `count`. */
size_t snapshot_areas_above(const struct snapshot_areas *self, uint64_t address);
/* The area that an address is in, or NULL. */
struct snapshot_area *snapshot_areas_at(const struct snapshot_areas *self, uint64_t address);

/* Adds an area that overlaps no other. HOST_MEMORY. */
enum ar_status snapshot_areas_add(struct snapshot_areas *self, const struct snapshot_area *area,
                                  struct ar_error *error);
void snapshot_areas_drop(struct snapshot_areas *self, size_t index);
/* Removes a range of addresses from all areas; one of them may be split. HOST_MEMORY. */
enum ar_status snapshot_areas_cut(struct snapshot_areas *self, uint64_t address, uint64_t bytes,
                                  struct ar_error *error);
