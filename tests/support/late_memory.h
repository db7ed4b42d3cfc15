/* What lies where, for a device that runs late: the writer of each byte. Addresses that are mapped
 * stand for the bytes of their handle, so memory that is seen at two places, or moves from one to
 * another, is the same memory. Everything is kept in sorted arrays. */
#ifndef TESTS_SUPPORT_LATE_MEMORY_H
#define TESTS_SUPPORT_LATE_MEMORY_H

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
/* How many bytes of the range are not the block's, and where the first lies and who wrote it. */
uint64_t late_memory_wrong(const struct late_memory *memory, uint64_t address, uint64_t bytes,
                           uint64_t block, uint64_t *offset, uint64_t *other);

#endif
