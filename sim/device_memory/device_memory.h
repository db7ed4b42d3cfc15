/* Which memory which stream may still use: ranges of physical memory, each with the last use
 * of every stream (and, for mapped memory, of every mapping that the use went through).
 *
 * A use is recorded when the program lets a block go and forgotten when its memory is handed
 * out again or goes back to the device, so there are at most a few entries per free block. */
#ifndef SIM_DEVICE_MEMORY_DEVICE_MEMORY_H
#define SIM_DEVICE_MEMORY_DEVICE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/backing.h"
#include "sim/device_memory/ranges.h"
#include "sim/device_memory/small_pages.h"

struct sim_use {
    uint64_t mapping;  /* that it went through; 0: none, a driver allocation */
    uint64_t sequence; /* of the stream's work: all up to it may use the range */
    uint64_t time_ns;  /* when that work is done */
    uint64_t event;    /* of the trace, for reports */
    uint32_t stream;
};

struct sim_hazards {
    struct ranges ranges;
};

/* Returns false to stop. `start` and `end` are those of the part looked at. */
typedef bool sim_hazard_visit(void *argument, const struct sim_use *use, uint64_t start,
                              uint64_t end);

void sim_hazards_close(struct sim_hazards *self);
/* False: no memory. */
bool sim_hazards_use(struct sim_hazards *self, uint64_t start, uint64_t end,
                     const struct sim_use *use);
/* Every use that overlaps the range, by address; false where the visitor stopped. */
bool sim_hazards_visit(const struct sim_hazards *self, uint64_t start, uint64_t end,
                       sim_hazard_visit *visit, void *argument);
/* Forgets the range. False: no memory to divide an entry; then the rest of it stays. */
bool sim_hazards_forget(struct sim_hazards *self, uint64_t start, uint64_t end);

/* What both devices, the simulated one and the card, know of their memory: segments, physical
 * pieces, where these are mapped, and who may still use which memory. What a call may do, what it
 * costs and what a card must be asked is the device's affair.
 *
 * Uses are kept by the memory and not by where it is mapped: physical pieces have addresses of
 * their own, above all others and never used again. */

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
    uint64_t page_bytes;
    char *problem; /* the device's sentence about the last misuse */
    size_t problem_bytes;
    bool lost; /* the host had no memory for a use: what was entered is not all any more */
};

/* Begins without memory; the device sets `page_bytes`. Misuse is described in `problem`, which the
 * caller owns. */
void device_memory_open(struct device_memory *self, char *problem, size_t problem_bytes);
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

/* Misuse (misuse.c): each returns OK and what the call is about, or INVALID with a sentence. `what`
 * begins it. `bytes` must be a multiple of the page above 0. */
enum ar_status memory_check_bytes(const struct device_memory *self, const char *what,
                                  uint64_t bytes);
enum ar_status memory_check_free(const struct device_memory *self, uint64_t address,
                                 struct memory_segment **segment);
enum ar_status memory_check_release(const struct device_memory *self, uint64_t address,
                                    struct memory_segment **range);
enum ar_status memory_check_destroy(const struct device_memory *self, backing_handle handle,
                                    struct memory_physical **physical);
enum ar_status memory_check_map(const struct device_memory *self, uint64_t address,
                                backing_handle handle, struct memory_physical **physical,
                                struct memory_segment **range);
/* Access and unmap: whole mappings must fill the addresses without gaps. */
enum ar_status memory_check_run(const struct device_memory *self, const char *what,
                                uint64_t address, uint64_t bytes);

#endif
