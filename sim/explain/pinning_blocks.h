#ifndef SIM_EXPLAIN_PINNING_BLOCKS_H
#define SIM_EXPLAIN_PINNING_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/explain/explain.h"

/* The request of each live block, and the pinning blocks of a policy. */

/* The request of a live block. */
struct birth {
    uint64_t event;
    uint64_t asked_bytes; /* requested so far, including this request */
};

struct births_entry;

/* A growing table by address. All zeroes is an empty table. */
struct births {
    struct births_entry *entries;
    size_t room, used; /* `used` includes deleted entries */
    size_t live;
};

/* False: no host memory, and the table is unchanged. A second add at an address replaces the
 * first. */
bool births_add(struct births *self, uint64_t address, const struct birth *birth);
void births_remove(struct births *self, uint64_t address);
/* NULL: no live block begins at the address. */
const struct birth *births_find(const struct births *self, uint64_t address);
void births_close(struct births *self);

/* Fills the free blocks, indices, stretch and pinning blocks of `out`. Its event, request and
 * ladder must be those of the failure; `asked_bytes` is the sum of all requests until then.
 * HOST_MEMORY. */
enum ar_status pinning_blocks_find(const struct ar_policy *policy, const struct births *births,
                                   uint64_t asked_bytes, struct explain_result *out,
                                   struct ar_error *error) AR_STATUS_CHECKED;

#endif
