#ifndef SIM_EXPLAIN_PINNING_BLOCKS_H
#define SIM_EXPLAIN_PINNING_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/explain/explain.h"

/* From which request each live block came: a table by address that grows. */
struct birth {
    uint64_t event;
    uint64_t asked_bytes; /* by all requests up to and with this one */
};

struct births_entry;

/* Zeroed is empty. */
struct births {
    struct births_entry *entries;
    size_t room, used; /* `used` counts entries that were given up, too */
    size_t live;
};

/* False: no host memory; nothing changed. A second add at an address replaces the first. */
bool births_add(struct births *self, uint64_t address, const struct birth *birth);
void births_remove(struct births *self, uint64_t address);
/* NULL: no live block starts there. */
const struct birth *births_find(const struct births *self, uint64_t address);
void births_close(struct births *self);

/* Which live blocks stand between the free ranges of a policy. */
/* Fills free blocks, indices, stretch and pins of `out`, whose event and bytes are those of the
 * failure; `asked_bytes` are those of all requests until then. HOST_MEMORY. */
enum ar_status pins_find(const struct ar_policy *policy, const struct births *births,
                         uint64_t asked_bytes, struct explain_result *out,
                         struct ar_error *error) AR_STATUS_CHECKED;

#endif
