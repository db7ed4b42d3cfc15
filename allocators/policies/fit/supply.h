/* Where the one arena of the textbook fits gets its memory: it only ever grows at its top. */
#ifndef ALLOCATORS_POLICIES_FIT_SUPPLY_H
#define ALLOCATORS_POLICIES_FIT_SUPPLY_H

#include "allocators/base/size.h"
#include "allocators/policy.h"

/* One driver allocation, or one handle mapped into the range. */
struct supply_piece {
    uint64_t address, bytes;
    ar_backing_handle handle;
};

struct supply {
    struct ar_backing *backing;
    struct ar_host *host;
    uint64_t range_address, range_bytes; /* reserved addresses; 0 bytes: not yet, or no pages */
    struct supply_piece *pieces;         /* by address */
    uint32_t count, room;
    uint32_t streams; /* those that memory was used on are below it */
};

/* UNSUPPORTED where the backing has neither virtual memory nor segments that may touch. */
enum ar_status supply_open(struct supply *self, const struct ar_policy_context *context,
                           const char *owner, struct ar_error *error) AR_STATUS_CHECKED;
void supply_close(struct supply *self);

/* Gets [*top, *top + bytes), or, where the memory that comes does not touch the top, `apart`
 * bytes above it: *top is then where they start. REFUSED: no memory, nothing changed. */
enum ar_status supply_grow(struct supply *self, uint64_t *top, uint64_t bytes, uint64_t apart,
                           uint64_t most_apart) AR_STATUS_CHECKED;

/* Gives the last piece back if it starts at `floor` or above; REFUSED: there is none such. */
enum ar_status supply_shrink(struct supply *self, uint64_t floor,
                             uint64_t *new_end) AR_STATUS_CHECKED;

/* Bytes of [low, high) in whole pages, or in whole segments, that is what could be cut out. */
uint64_t supply_whole_bytes(const struct supply *self, uint64_t low, uint64_t high);

#endif
