/* The last writer of each byte, for a device that runs late. A mapped address means the bytes of
 * its handle, so memory that is mapped at two addresses, or moves from one to another, is the same
 * memory. Everything is in sorted arrays. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* [start, end) was written as bytes of `block` from its offset `offset` on. */
struct late_extent {
    uint64_t start, end, block, offset;
};

struct late_extents {
    struct late_extent *items;
    size_t count, room;
};

struct late_memory {
    struct late_extents written;  /* by physical address */
    struct late_extents mappings; /* by address; `block` is the physical address of its start */
    struct late_extents
        handles; /* start = the handle, block = its physical address, offset = bytes */
    uint64_t next_physical;
};

void late_memory_open(struct late_memory *memory);
void late_memory_close(struct late_memory *memory);

void late_memory_handle(struct late_memory *memory, uint64_t handle, uint64_t bytes);
void late_memory_map(struct late_memory *memory, uint64_t address, uint64_t handle);
void late_memory_unmap(struct late_memory *memory, uint64_t address, uint64_t bytes);

/* Each physical stretch of a range; `at` counts from its start. */
void late_memory_each(const struct late_memory *memory, uint64_t address, uint64_t bytes,
                      void (*visit)(void *argument, uint64_t physical, uint64_t bytes, uint64_t at),
                      void *argument);

void late_memory_write(struct late_memory *memory, uint64_t address, uint64_t bytes,
                       uint64_t block);
/* The number of bytes of the range that the block did not write; the first one and its writer. */
uint64_t late_memory_wrong(const struct late_memory *memory, uint64_t address, uint64_t bytes,
                           uint64_t block, uint64_t *offset, uint64_t *other);
