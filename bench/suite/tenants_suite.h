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
#pragma once

#include "bench/suite/suite.h"
#include "sim/tenants/tenants.h"

struct tenants_suite {
    char name[64];
    struct tenants_card cards[PROCESS_CARDS];
    size_t card_count;
    struct tenant_setup *setups;
    size_t count, room;
    struct text_list texts; /* what the setups point to */
    bool free;
    uint64_t replicates, seed, turn_events, host_bytes;
};

enum ar_status tenants_suite_read(const char *path, struct tenants_suite *suite,
                                  struct ar_error *error);
void tenants_suite_close(struct tenants_suite *suite);

/* The suite of several processes on real cards: each tenant is a process with a context of its own.
 *
 * 1. This process never calls the driver. It forks one child for each tenant when that arrives, and
 *    sends it orders through a pair of sockets; each answer reports the memory of the child.
 * 2. barriered: a child takes one step for each order, in the order of the simulation, and the next
 *    child gets its order when the answer is there. free: all children run to their ends at the
 *    same time, but none passes the step at which another one arrives before that is ready:
 *    creating a context takes longer than running many workloads.
 * 3. Cards are the driver's, in its order; the driver tells their capacity and the size of
 *    contexts. A default limit of a framework's settings is computed from what the card has free at
 *    that moment.
 * 4. A child that dies, or does not answer for `limit_s`, is an outcome of its own; its memory is
 *    released. */

/* Like tenants_run() on `cuda` with the options of `device` for all ("cuda" or
 * "cuda:matmul=plain"); does not use the devices of the cards and the samples. `limit_s` 0: 120. */
enum ar_status tenants_card_run(const struct tenants *tenants, const char *device, uint64_t limit_s,
                                struct tenant_result *results, struct ar_error *error);
