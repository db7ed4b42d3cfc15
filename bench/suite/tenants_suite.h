/* A suite of processes (tenants) that share a machine, read from an INI file:
 *
 *   [machine]      card = sim:profile=h100,capacity=8GiB   one line for each card, in order
 *                  compute_capability = 8                  of the card above; default 9
 *                  host = 64GiB                            host memory that can be pinned; default
 *                                                          1 TiB
 *   [run]          mode = barriered | free, replicates = N, seed = N, turn_events = N, name = TEXT
 *   [tenant NAME]  workload = SPEC (again for each further pool), context = SIZE, arrives = N,
 *                  leaves = N (rounds), stays = yes, needs = SIZE,
 *                  placement = given | first-fit | least-loaded,
 *                  pinned = yes | SPEC (a pool for the pinned requests of its first workload; yes:
 *                  its framework's), and either policy = SPEC and card = N, or the settings of its
 *                  framework (sim/tenants/process.h) */
#ifndef BENCH_SUITE_TENANTS_SUITE_H
#define BENCH_SUITE_TENANTS_SUITE_H

#include "sim/tenants/tenants.h"

struct tenants_suite {
    char name[64];
    struct tenants_card cards[PROCESS_CARDS];
    size_t card_count;
    struct tenant_setup *setups;
    size_t count;
    bool free;
    uint64_t replicates, seed, turn_events, host_bytes;
};

enum ar_status tenants_suite_read(const char *path, struct tenants_suite *suite,
                                  struct ar_error *error) AR_STATUS_CHECKED;
void tenants_suite_close(struct tenants_suite *suite);

#endif
