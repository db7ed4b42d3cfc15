/* The pages of the card and their owners, and the freed memory that is not clean yet.
 *
 * 1. capacity >= physical + outside + others, always.
 * 2. Freed pages join a backlog, which is cleaned at the profile's rate in virtual time. They count
 *    as free, as the driver reports them.
 * 3. A request waits until enough of the free memory is clean. A large one (from a size in the
 *    profile for its kind of call) waits until the backlog is empty. */
#ifndef SIM_DEVICE_MEMORY_LEDGER_H
#define SIM_DEVICE_MEMORY_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

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

#endif
