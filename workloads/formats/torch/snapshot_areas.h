/* Ranges of addresses in order, which do not overlap: segments, and runs of mapped pages. */
#ifndef WORKLOADS_FORMATS_TORCH_SNAPSHOT_AREAS_H
#define WORKLOADS_FORMATS_TORCH_SNAPSHOT_AREAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/base/status.h"

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
                                  struct ar_error *error) AR_STATUS_CHECKED;
void snapshot_areas_drop(struct snapshot_areas *self, size_t index);
/* Removes a range of addresses from all areas; one of them may be split. HOST_MEMORY. */
enum ar_status snapshot_areas_cut(struct snapshot_areas *self, uint64_t address, uint64_t bytes,
                                  struct ar_error *error) AR_STATUS_CHECKED;

#endif
