/* Makes a trace from spools: addresses become blocks, handles become ordinals. */
#ifndef WORKLOADS_RECORD_RECORDING_H
#define WORKLOADS_RECORD_RECORDING_H

#include "workloads/record/spools.h"
#include "workloads/trace/source.h"

/* Counts of the records, for the report. */
struct recording_counts {
    uint64_t allocs, frees; /* served requests, including mappings; frees of live blocks */
    uint64_t failed_allocs, failed_frees;
    uint64_t unknown_frees; /* of addresses that were not in use, except 0 */
    uint64_t reused;        /* requests at addresses whose free was not recorded */
    uint64_t pinned, managed, mappings;
    uint64_t dropped_waits; /* for events that were not recorded before */
    uint64_t kernels, untimed_kernels, unplaced_kernels;
    uint64_t lost;
    uint32_t processes, threads;
    uint64_t cost_samples, cost_total_ns;
};

/* Makes a trace from `spools`, which still belong to the caller. `name` is its name in tables.
 * `died`: a signal ended the program, or its exit status is not 0. Fills `counts`. The caller
 * closes `out`. */
enum ar_status recording_make(const struct spools *spools, const char *name, bool died,
                              struct trace_source **out, struct recording_counts *counts,
                              struct ar_error *error) AR_STATUS_CHECKED;

#endif
