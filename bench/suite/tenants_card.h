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
#ifndef BENCH_SUITE_TENANTS_CARD_H
#define BENCH_SUITE_TENANTS_CARD_H

#include "sim/tenants/tenants.h"

/* Like tenants_run() on `cuda` with the options of `device` for all ("cuda" or
 * "cuda:matmul=plain"); does not use the devices of the cards and the samples. `limit_s` 0: 120. */
enum ar_status tenants_card_run(const struct tenants *tenants, const char *device, uint64_t limit_s,
                                struct tenant_result *results,
                                struct ar_error *error) AR_STATUS_CHECKED;

#endif
