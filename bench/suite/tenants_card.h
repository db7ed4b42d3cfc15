/* The suite of several processes on real cards: each process is one, with a context of its own.
 *
 * 1. This process never touches the driver. It forks one child for each tenant when that arrives, and
 *    tells it what to do through a pair of sockets; each answer carries what the child holds.
 * 2. barriered: a child takes one step when it is told, in the same order as in the simulation, and
 *    the next one is told when it has answered. free: each runs to its end, all at once, but nobody
 *    past the step at which another one arrives before that is ready to go: a context takes longer
 *    to make than many a workload to run.
 * 3. Cards are the driver's, in its order; their capacity, and the suite's contexts, are what the
 *    driver says. A settings' default limit is computed from what the card has free just then.
 * 4. A child that dies, or is silent for `limit_s`, is an outcome of its own; nothing of it stays. */
#ifndef BENCH_SUITE_TENANTS_CARD_H
#define BENCH_SUITE_TENANTS_CARD_H

#include "sim/tenants/tenants.h"

/* As tenants_run, on `cuda` with the options of `device` for all ("cuda" or "cuda:matmul=plain");
 * the cards' devices and the samples are not used. `limit_s` 0: 120. */
enum ar_status tenants_card_run(const struct tenants *tenants, const char *device, uint64_t limit_s,
                                struct tenant_result *results,
                                struct ar_error *error) AR_STATUS_CHECKED;

#endif
