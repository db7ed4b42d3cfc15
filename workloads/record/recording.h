/* Spools as a trace: addresses become blocks, handles become ordinals. */
#ifndef WORKLOADS_RECORD_RECORDING_H
#define WORKLOADS_RECORD_RECORDING_H

#include "workloads/record/spools.h"
#include "workloads/trace/source.h"

/* What became of the records, for the report. */
struct recording_counts {
    uint64_t allocs, frees; /* served requests, mappings among them; frees of what was there */
    uint64_t failed_allocs, failed_frees;
    uint64_t unknown_frees; /* of addresses that were not in use; freeing 0 is none */
    uint64_t reused;        /* addresses given out again that were never seen freed */
    uint64_t pinned, managed, mappings;
    uint64_t dropped_waits; /* for events that were not recorded before */
    uint64_t kernels, untimed_kernels, unplaced_kernels;
    uint64_t lost;
    uint32_t processes, threads;
    uint64_t cost_samples, cost_total_ns;
};

/* Makes a trace from `spools`, which stay the caller's. `name`: what tables call it. `died`: the
 * program ended by a signal or said that it failed. `counts` is filled. The caller closes `out`. */
enum ar_status recording_make(const struct spools *spools, const char *name, bool died,
                              struct trace_source **out, struct recording_counts *counts,
                              struct ar_error *error) AR_STATUS_CHECKED;

#endif
