#ifndef SIM_TENANTS_MACHINE_H
#define SIM_TENANTS_MACHINE_H

#include "sim/tenants/tenants.h"
#include "workloads/trace/source.h"

/* Where a process goes when it comes: its card by its placement, and its pools by its settings. */
/* `cards` are as they are now; its context, `context_bytes`, is not yet taken from what is free on
 * them. As process_configure, and REFUSED where no card has room for what it needs. */
enum ar_status tenant_place(const struct tenant_setup *setup, const struct process_card *cards,
                            size_t card_count, uint64_t context_bytes, struct process *process,
                            struct ar_error *error) AR_STATUS_CHECKED;

/* What a pool of pinned host memory sees of a workload: its pinned requests as requests of a pool,
 * and the card's as requests of zero bytes, which no policy sees. All other events stay, so that
 * both pools of a process come to the same step at the same time. */
/* A source over `source`, which it takes over and closes, also where it fails. */
enum ar_status pinned_view_open(struct trace_source *source, struct trace_source **out,
                                struct ar_error *error) AR_STATUS_CHECKED;

#endif
