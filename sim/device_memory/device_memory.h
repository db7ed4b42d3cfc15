/* The bookkeeping of a device's memory, which the simulated and the CUDA device share: segments,
 * physical memory, its mappings, and the uses by streams. It decides nothing about costs and calls
 * no driver; it checks what a call may do (misuse.c).
 *
 * Uses: ranges of physical memory, each with the last use of every stream (for mapped memory, of
 * every mapping too). A use is recorded when a block is freed, and removed when its memory belongs
 * to the next block or is released to the device, so there are a few entries for each free block.
 * Uses belong to the memory, not to the addresses where it is mapped: physical memory has addresses
 * of its own, above all others and never used again. */
#ifndef SIM_DEVICE_MEMORY_DEVICE_MEMORY_H
#define SIM_DEVICE_MEMORY_DEVICE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/backing.h"
#include "sim/device_memory/ranges.h"
#include "sim/device_memory/small_pages.h"

struct sim_use {
    uint64_t mapping;  /* of the memory; 0: none, a driver allocation */
    uint64_t sequence; /* the stream's work up to it may use the range */
    uint64_t time_ns;  /* when that work is done */
    uint64_t event;    /* of the trace, for errors */
    uint32_t stream;
};

struct sim_hazards {
    struct ranges ranges;
};

/* Returns false to stop. `start` and `end`: the part of the use in the range. */
typedef bool sim_hazard_visit(void *argument, const struct sim_use *use, uint64_t start,
                              uint64_t end);

void sim_hazards_close(struct sim_hazards *self);
/* False: no host memory. */
bool sim_hazards_use(struct sim_hazards *self, uint64_t start, uint64_t end,
                     const struct sim_use *use);
/* Visits every use that overlaps the range, by address. False: the visitor stopped. */
bool sim_hazards_visit(const struct sim_hazards *self, uint64_t start, uint64_t end,
                       sim_hazard_visit *visit, void *argument);
/* Removes the uses of a range. False: no host memory to split an entry; the rest stays. */
bool sim_hazards_forget(struct sim_hazards *self, uint64_t start, uint64_t end);

/* A driver allocation or a reserved range. Its addresses extend to the end of its last page, or, if
 * it is small, to its own end. */
struct memory_segment {
    struct range range;
    uint64_t ordinal;
    uint64_t bytes;          /* as requested */
    bool reserved;           /* address space only */
    bool pool;               /* the addresses of the simulated stream-ordered pool */
    uint64_t mapped_bytes;   /* of a reserved range */
    struct small_page *page; /* of a small simulated allocation */
};

/* Physical memory made by create. */
struct memory_physical {
    struct range handle; /* start is the handle, never used again */
    uint64_t bytes;
    uint64_t address;
    uint64_t driver_handle; /* of a card */
    uint32_t mappings;
    bool destroyed; /* destroyed, but still mapped */
};

/* A mapping of all of a physical memory at one address. */
struct memory_mapping {
    struct range range;
    uint64_t number; /* from 1, never used again */
    struct memory_physical *physical;
    bool usable; /* access was set */
};

struct device_memory {
    struct ranges segments, physicals, mappings;
    struct sim_hazards hazards;
    uint64_t next_handle, next_mapping, next_physical_address;
    uint64_t page_bytes;
    char *problem; /* the device's sentence about the last misuse */
    size_t problem_bytes;
    bool lost; /* no host memory for a use: the uses are incomplete */
};

/* Begins without memory; the device sets `page_bytes`. Misuse is described in `problem`, which the
 * caller owns. */
void device_memory_open(struct device_memory *self, char *problem, size_t problem_bytes);
/* Removes the uses. The device frees the contents of the trees. */
void device_memory_close(struct device_memory *self);

/* Adds a segment, which the caller has zeroed, and takes ownership of it. */
void memory_segment_enter(struct device_memory *self, struct memory_segment *segment,
                          uint64_t ordinal, uint64_t address, uint64_t end, uint64_t bytes,
                          bool reserved);
/* The segment that an address lies in, or NULL. */
struct memory_segment *memory_segment_find(const struct device_memory *self, uint64_t address);
/* Removes and frees it; the uses of a driver allocation are removed too. */
void memory_segment_remove(struct device_memory *self, struct memory_segment *segment);

/* Adds physical memory, zeroed by the caller, with the next handle, and takes ownership. */
void memory_physical_enter(struct device_memory *self, struct memory_physical *physical,
                           uint64_t bytes);
/* The physical memory of a handle, or NULL: never created, or destroyed. */
struct memory_physical *memory_physical_find(const struct device_memory *self,
                                             ar_backing_handle handle);
/* Frees physical memory that is destroyed and mapped nowhere, with its uses. Returns true if it
 * did: `physical` is invalid then. */
bool memory_physical_settle(struct device_memory *self, struct memory_physical *physical);

/* Adds a mapping in a range, zeroed by the caller, and takes ownership of it. */
void memory_mapping_enter(struct device_memory *self, struct memory_mapping *mapping,
                          struct memory_physical *physical, struct memory_segment *range,
                          uint64_t address);
/* The mapping that an address lies in, or NULL. */
struct memory_mapping *memory_mapping_find(const struct device_memory *self, uint64_t address);
/* Removes and frees a mapping. Returns its physical memory, which may have to be settled. */
struct memory_physical *memory_mapping_remove(struct device_memory *self,
                                              struct memory_mapping *mapping);

/* The physical memory behind the start of a range of addresses. */
struct memory_piece {
    uint64_t start, end;
    uint64_t mapping; /* 0: a driver allocation */
    bool usable;      /* mapped, with access, or a driver allocation */
    uint64_t length;  /* of the part of the range */
};

struct memory_piece memory_piece_at(const struct device_memory *self, uint64_t address,
                                    uint64_t bytes);

/* Adds a use of all memory behind a range; fills in its `mapping`. */
void memory_use(struct device_memory *self, uint64_t address, uint64_t bytes, struct sim_use use);
/* Visits the uses of a piece and removes them: the next uses are those of a new block. */
void memory_pass_on(struct device_memory *self, const struct memory_piece *piece,
                    sim_hazard_visit *visit, void *argument);

/* Misuse (misuse.c). Each returns OK and the object of the call, or INVALID with a sentence, which
 * begins with `what`. `bytes` must be a multiple of the page, above 0. */
enum ar_status memory_check_bytes(const struct device_memory *self, const char *what,
                                  uint64_t bytes);
enum ar_status memory_check_free(const struct device_memory *self, uint64_t address,
                                 struct memory_segment **segment);
enum ar_status memory_check_release(const struct device_memory *self, uint64_t address,
                                    struct memory_segment **range);
enum ar_status memory_check_destroy(const struct device_memory *self, ar_backing_handle handle,
                                    struct memory_physical **physical);
enum ar_status memory_check_map(const struct device_memory *self, uint64_t address,
                                ar_backing_handle handle, struct memory_physical **physical,
                                struct memory_segment **range);
/* Access and unmap: whole mappings must fill the addresses without gaps. */
enum ar_status memory_check_run(const struct device_memory *self, const char *what,
                                uint64_t address, uint64_t bytes);

#endif
