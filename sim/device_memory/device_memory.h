/* The bookkeeping of a device's memory, which the simulated and the CUDA device share: segments,
 * physical memory, its mappings, and the uses by streams. It decides nothing about costs and calls
 * no driver; it checks what a call may do (misuse).
 *
 * Uses: ranges of physical memory, each with the last use of every stream (for mapped memory, of
 * every mapping too). A use is recorded when a block is freed, and removed when its memory belongs
 * to the next block or is released to the device, so there are a few entries for each free block.
 * Uses belong to the memory, not to the addresses where it is mapped: physical memory has addresses
 * of its own, above all others and never used again. */
#pragma once

#include "allocators/backing.h"

/* Ranges of numbers that do not overlap, in order of their start: segments, mappings, uses.
 *
 * A treap: a search tree by start, and a heap by a rank, which is a hash of the start. So its shape
 * depends on the contents only, and every step takes O(log n) on average (Seidel and Aragon,
 * "Randomized search trees", 1996). Nodes are the first members of the caller's structs, and the
 * caller owns them. */

struct range {
    uint64_t start, end; /* half-open, start < end */
    uint64_t rank;
    struct range *left, *right;
};

struct ranges {
    struct range *root;
    size_t count;
};

/* Adds a range that overlaps no other. */
void ranges_insert(struct ranges *self, struct range *range);
/* Removes a range of the tree. */
void ranges_remove(struct ranges *self, struct range *range);

/* The lowest range that ends above `address`, or NULL. */
struct range *ranges_from(const struct ranges *self, uint64_t address);
/* The range that contains `address`, or NULL. */
struct range *ranges_find(const struct ranges *self, uint64_t address);
bool ranges_overlap(const struct ranges *self, uint64_t start, uint64_t end);

/* Driver allocations smaller than a page share pages, as the driver's do: a page is charged once
 * and released with its last allocation.
 *
 * 1. A page is a row of granules, one bit each.
 * 2. A new allocation goes to the page whose longest free run is the shortest that is long enough,
 *    and there to the lowest such run. If there is no such page, a new one is made. It is measured
 *    that small allocations share pages and what each costs; how the driver chooses the page is not
 *    known. Pages are in lists by their longest free run, so every step takes the same time for any
 *    number of pages. */

#define SMALL_SLOTS 4096

struct small_page {
    struct range range;                /* its addresses */
    struct small_page *before, *after; /* in the list for its longest run */
    uint32_t longest;                  /* free slots next to each other */
    uint32_t used;                     /* slots */
    uint64_t taken[SMALL_SLOTS / 64];
};

struct small_pages {
    uint64_t granule_bytes, page_bytes;
    struct ranges pages;
    struct small_page *by_longest[SMALL_SLOTS + 1];
    uint64_t some[SMALL_SLOTS / 64 + 1]; /* which lists hold a page */
};

/* A page with space for `bytes`, and the address there; or NULL. No change. */
struct small_page *small_pages_room(const struct small_pages *self, uint64_t bytes,
                                    uint64_t *address);
/* A new, empty page at that address. NULL: no host memory. */
struct small_page *small_pages_add(struct small_pages *self, uint64_t address);
/* Marks a range of a page as used, or as free. */
void small_pages_take(struct small_pages *self, struct small_page *page, uint64_t address,
                      uint64_t bytes);
void small_pages_leave(struct small_pages *self, struct small_page *page, uint64_t address,
                       uint64_t bytes);
void small_pages_remove(struct small_pages *self, struct small_page *page);

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

/* Misuse. Each returns OK and the object of the call, or INVALID with a sentence, which
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
/* A copy: all of the addresses must be mapped and usable. */
enum ar_status memory_check_usable(const struct device_memory *self, const char *what,
                                   uint64_t address, uint64_t bytes);
/* Access and unmap: whole mappings must fill the addresses without gaps. */
enum ar_status memory_check_run(const struct device_memory *self, const char *what,
                                uint64_t address, uint64_t bytes);

/* The pages of the card and their owners, and the freed memory that is not clean yet.
 *
 * 1. capacity >= physical + outside + others, always.
 * 2. Freed pages join a backlog, which is cleaned at the profile's rate in virtual time. They count
 *    as free, as the driver reports them.
 * 3. A request waits until enough of the free memory is clean. A large one (from a size in the
 *    profile for its kind of call) waits until the backlog is empty. */

struct sim_ledger {
    uint64_t unit_bytes;     /* of a charge: the page, or the granule */
    uint64_t capacity_bytes; /* whole units; UINT64_MAX: no limit */
    uint64_t physical_bytes, peak_physical_bytes, outside_bytes, others_bytes;
    uint64_t backlog_bytes; /* freed and not clean, at cleaned_at_ns */
    uint64_t cleaned_at_ns;
    uint64_t cleaning_bytes_per_us; /* 0: cleaned at once */
};

/* `bytes` in whole units; UINT64_MAX beyond 2^62. */
uint64_t sim_ledger_units(const struct sim_ledger *self, uint64_t bytes);
uint64_t sim_ledger_free(const struct sim_ledger *self);

void sim_ledger_charge(struct sim_ledger *self, uint64_t unit_bytes);
void sim_ledger_release(struct sim_ledger *self, uint64_t unit_bytes, uint64_t now_ns);

/* How long a request for that many bytes, which is about to be charged, waits for cleaning. From
 * `all_from_bytes` on it waits for all of the backlog; 0: never for all. */
uint64_t sim_ledger_cleaning_ns(struct sim_ledger *self, uint64_t unit_bytes,
                                uint64_t all_from_bytes, uint64_t now_ns);

/* Sets the memory that the program holds outside of the pool. False: refused, no change. */
bool sim_ledger_outside(struct sim_ledger *self, uint64_t bytes);
/* The same for the memory of other processes on the card. */
bool sim_ledger_others(struct sim_ledger *self, uint64_t bytes);
