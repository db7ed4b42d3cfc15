/* Spans: the pieces that ranges of memory are cut into, used or free. Policies that keep
 * contiguous blocks build on these records.
 *
 * All records of a policy lie in one array and name each other by index, so that the array
 * may move when it grows and a record stays small (40 bytes). Record 0 is no span: it stands
 * for "no neighbour" and "no child" and counts as used, which spares the hot paths a test
 * each. A record's priority is drawn once, from its index, and shapes the trees of
 * span_index.h. */
#ifndef ALLOCATORS_BASE_SPAN_H
#define ALLOCATORS_BASE_SPAN_H

#include <stdbool.h>
#include <stdint.h>

#include "allocators/base/api.h"
#include "allocators/base/host.h"

AR_BEGIN_DECLS

struct ar_span {
    uint64_t address;
    uint64_t bytes;
    union {
        uint64_t requested_bytes; /* while used */
        __extension__ struct {
            uint32_t left, right; /* while free: children in the index */
        };
        uint64_t children; /* both of them, 0 where there is none */
    };
    uint32_t previous, next; /* neighbours in the range; 0 at its ends. Spare records
                                are linked through next */
    uint32_t owner;          /* the policy's: which region, which arena */
    uint16_t priority;       /* 0 in record 0 only */
    uint8_t used;
    uint8_t mark; /* the policy's */
};

struct ar_spans {
    struct ar_span *at;
    uint32_t count; /* records in the array, record 0 among them */
    uint32_t spare; /* the first of those that stand for nothing now */
    uint32_t spare_count;
};

/* Makes sure that `wanted` records are spare. Moves the array; false where the host has no
 * memory, and then nothing changed. */
AR_API bool ar_spans_reserve(struct ar_spans *self, struct ar_host *host, uint32_t wanted);
AR_API void ar_spans_close(struct ar_spans *self, struct ar_host *host);

/* Takes a spare record; there must be one. */
static inline uint32_t ar_spans_take(struct ar_spans *self)
{
    uint32_t taken = self->spare;
    self->spare = self->at[taken].next;
    self->spare_count--;
    return taken;
}

static inline void ar_spans_drop(struct ar_spans *self, uint32_t span)
{
    self->at[span].next = self->spare;
    self->spare = span;
    self->spare_count++;
}

AR_END_DECLS

#endif
