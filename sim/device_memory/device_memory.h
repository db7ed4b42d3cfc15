/* What both devices, the simulated one and the card, know of their memory: segments, physical
 * pieces, where these are mapped, and who may still use which memory. What a call may do, what it
 * costs and what a card must be asked is the device's affair.
 *
 * Uses are kept by the memory and not by where it is mapped: physical pieces have addresses of
 * their own, above all others and never used again. */
#ifndef SIM_DEVICE_MEMORY_DEVICE_MEMORY_H
#define SIM_DEVICE_MEMORY_DEVICE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "allocators/backing.h"
#include "sim/device_memory/hazards.h"
#include "sim/device_memory/ranges.h"
#include "sim/device_memory/small_pages.h"

/* A driver allocation or a reserved range. Its addresses: to the end of the last page, of a
 * small one to its own end. */
struct memory_segment {
    struct range range;
    uint64_t ordinal;
    uint64_t bytes;          /* as asked for */
    bool reserved;           /* address space only */
    bool pool;               /* the addresses of the simulated stream-ordered pool */
    uint64_t mapped_bytes;   /* of a reserved range */
    struct small_page *page; /* of a small simulated allocation */
};

/* Physical memory made by create. */
struct memory_physical {
    struct range handle; /* start is the handle, which is never used again */
    uint64_t bytes;
    uint64_t address;
    uint64_t driver_handle; /* of a card */
    uint32_t mappings;
    bool destroyed; /* given up, but still mapped */
};

/* All of a physical piece at one place. */
struct memory_mapping {
    struct range range;
    uint64_t number; /* from 1, never used again */
    struct memory_physical *physical;
    bool usable; /* access was given */
};

struct device_memory {
    struct ranges segments, physicals, mappings;
    struct sim_hazards hazards;
    uint64_t next_handle, next_mapping, next_physical_address;
    bool lost; /* the host had no memory for a use: what was entered is not all any more */
};

/* Starts an empty book. */
void device_memory_open(struct device_memory *self);
/* Forgets uses; the trees are emptied by who gives their memory back. */
void device_memory_close(struct device_memory *self);

/* Enters a segment, zeroed by the caller and from now on the book's. */
void memory_segment_enter(struct device_memory *self, struct memory_segment *segment,
                          uint64_t ordinal, uint64_t address, uint64_t end, uint64_t bytes,
                          bool reserved);
/* The segment that an address lies in, or NULL. */
struct memory_segment *memory_segment_find(const struct device_memory *self, uint64_t address);
/* Takes it out and frees it; the uses of a driver allocation are forgotten. */
void memory_segment_remove(struct device_memory *self, struct memory_segment *segment);

/* Enters a piece, zeroed by the caller and from now on the book's, with the next handle. */
void memory_physical_enter(struct device_memory *self, struct memory_physical *physical,
                           uint64_t bytes);
/* The piece that a handle names, or NULL: never made, or given up. */
struct memory_physical *memory_physical_find(const struct device_memory *self,
                                             ar_backing_handle handle);
/* True where the piece is given up and mapped nowhere: it is forgotten then, with its uses, and
 * `physical` is gone. */
bool memory_physical_settle(struct device_memory *self, struct memory_physical *physical);

/* Enters a mapping, zeroed by the caller and from now on the book's, of the piece in a range. */
void memory_mapping_enter(struct device_memory *self, struct memory_mapping *mapping,
                          struct memory_physical *physical, struct memory_segment *range,
                          uint64_t address);
/* The mapping that an address lies in, or NULL. */
struct memory_mapping *memory_mapping_find(const struct device_memory *self, uint64_t address);
/* Takes it out of its range, frees it and returns its piece, which may be settled now. */
struct memory_physical *memory_mapping_remove(struct device_memory *self,
                                              struct memory_mapping *mapping);

/* The physical memory behind the start of a range of addresses. */
struct memory_piece {
    uint64_t start, end;
    uint64_t mapping; /* 0: a driver allocation */
    bool usable;      /* mapped, with access, or a driver allocation */
    uint64_t length;  /* of the part of the range that it is behind */
};

struct memory_piece memory_piece_at(const struct device_memory *self, uint64_t address,
                                    uint64_t bytes);

/* Enters a use of all memory behind a range; its `mapping` is filled in. */
void memory_use(struct device_memory *self, uint64_t address, uint64_t bytes, struct sim_use use);
/* Shows the uses of a piece to `visit` and forgets them: what comes is a new owner's. */
void memory_pass_on(struct device_memory *self, const struct memory_piece *piece,
                    sim_hazard_visit *visit, void *argument);

#endif
