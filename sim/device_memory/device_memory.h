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
struct book_segment {
    struct range range;
    uint64_t ordinal;
    uint64_t bytes;          /* as asked for */
    bool reserved;           /* address space only */
    bool pool;               /* the addresses of the simulated stream-ordered pool */
    uint64_t mapped_bytes;   /* of a reserved range */
    struct small_page *page; /* of a small simulated allocation */
};

/* Physical memory made by create. */
struct book_physical {
    struct range handle; /* start is the handle, which is never used again */
    uint64_t bytes;
    uint64_t address;
    uint64_t driver_handle; /* of a card */
    uint32_t mappings;
    bool destroyed; /* given up, but still mapped */
};

/* All of a physical piece at one place. */
struct book_mapping {
    struct range range;
    uint64_t number; /* from 1, never used again */
    struct book_physical *physical;
    bool usable; /* access was given */
};

struct book {
    struct ranges segments, physicals, mappings;
    struct sim_hazards hazards;
    uint64_t next_handle, next_mapping, next_physical_address;
    bool lost; /* the host had no memory for a use: what was entered is not all any more */
};

/* Starts an empty book. */
void book_open(struct book *self);
/* Forgets uses; the trees are emptied by who gives their memory back. */
void book_close(struct book *self);

/* Enters a segment, zeroed by the caller and from now on the book's. */
void book_segment_enter(struct book *self, struct book_segment *segment, uint64_t ordinal,
                        uint64_t address, uint64_t end, uint64_t bytes, bool reserved);
/* The segment that an address lies in, or NULL. */
struct book_segment *book_segment_find(const struct book *self, uint64_t address);
/* Takes it out and frees it; the uses of a driver allocation are forgotten. */
void book_segment_remove(struct book *self, struct book_segment *segment);

/* Enters a piece, zeroed by the caller and from now on the book's, with the next handle. */
void book_physical_enter(struct book *self, struct book_physical *physical, uint64_t bytes);
/* The piece that a handle names, or NULL: never made, or given up. */
struct book_physical *book_physical_find(const struct book *self, backing_handle handle);
/* True where the piece is given up and mapped nowhere: it is forgotten then, with its uses, and
 * `physical` is gone. */
bool book_physical_settle(struct book *self, struct book_physical *physical);

/* Enters a mapping, zeroed by the caller and from now on the book's, of the piece in a range. */
void book_mapping_enter(struct book *self, struct book_mapping *mapping,
                        struct book_physical *physical, struct book_segment *range,
                        uint64_t address);
/* The mapping that an address lies in, or NULL. */
struct book_mapping *book_mapping_find(const struct book *self, uint64_t address);
/* Takes it out of its range, frees it and returns its piece, which may be settled now. */
struct book_physical *book_mapping_remove(struct book *self, struct book_mapping *mapping);

/* The physical memory behind the start of a range of addresses. */
struct book_piece {
    uint64_t start, end;
    uint64_t mapping; /* 0: a driver allocation */
    bool usable;      /* mapped, with access, or a driver allocation */
    uint64_t length;  /* of the part of the range that it is behind */
};

struct book_piece book_piece_at(const struct book *self, uint64_t address, uint64_t bytes);

/* Enters a use of all memory behind a range; its `mapping` is filled in. */
void book_use(struct book *self, uint64_t address, uint64_t bytes, struct sim_use use);
/* Shows the uses of a piece to `visit` and forgets them: what comes is a new owner's. */
void book_pass_on(struct book *self, const struct book_piece *piece, sim_hazard_visit *visit,
                  void *argument);

#endif
