/* A generator for tests: opens it from a text, reads it to its end, checks every event, and
 * sums the events up. */
#pragma once

#include "allocators/spec.h"
#include "workloads/trace/source.h"

#define GEN_RIG_STEPS 1024
#define GEN_RIG_BINS  64

struct gen_rig_sums {
    uint64_t events, allocs, probes, frees, kernels, kernel_ns, steps, spans;
    uint64_t live_bytes, peak_live_bytes, allocated_bytes;
    uint64_t outside_bytes, most_slots;
    uint64_t step_live_bytes[GEN_RIG_STEPS];         /* at each step's end */
    uint64_t step_peak_bytes[GEN_RIG_STEPS];         /* the maximum within it */
    uint64_t step_outside_bytes[GEN_RIG_STEPS];      /* at each step's end */
    uint64_t bin_bytes[GEN_RIG_STEPS][GEN_RIG_BINS]; /* requested in it, by log2 of the size */
    uint64_t free_requests, uses, records, waits, syncs, trims, streams;
};

/* The source of a generator's spec; fails the test if it cannot be made. */
struct trace_source *gen_rig_open(const char *text);

/* Each row of a section (tests/support/cases.h) is a spec that is refused, with a part of the
 * sentence. */
void gen_rig_refused(const char *file, const char *section);

/* Reads to the end. Fails the test if ids are not dense, a free has no block, a slot is
 * used twice, a stream is not the block's or is beyond the last, a wait has no record, or the
 * counts in info differ. Adaptive sources get address = 0. */
void gen_rig_pull(struct trace_source *source, struct gen_rig_sums *sums);
