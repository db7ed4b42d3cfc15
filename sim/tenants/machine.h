#ifndef SIM_TENANTS_MACHINE_H
#define SIM_TENANTS_MACHINE_H

#include "sim/tenants/tenants.h"
#include "workloads/trace/source.h"

/* Places an arriving process: its card by its placement, its pools by its settings. `cards` is the
 * present state, from which `context_bytes` of the process is not yet subtracted. Statuses as of
 * process_configure, and REFUSED if no card has enough free memory. */
enum ar_status tenant_place(const struct tenant_setup *setup, const struct process_card *cards,
                            size_t card_count, uint64_t context_bytes, struct process *process,
                            struct ar_error *error) AR_STATUS_CHECKED;

/* Makes a view of a workload for a pool of pinned host memory. Pinned requests become requests of
 * the pool, and requests of device memory get zero bytes, so that no policy sees them. All other
 * events stay, so both pools of a process reach the same step at the same time. The view owns
 * `source`; a failure closes it too. */
enum ar_status pinned_view_open(struct trace_source *source, struct trace_source **out,
                                struct ar_error *error) AR_STATUS_CHECKED;

#endif
