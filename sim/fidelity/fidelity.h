/* Holds a recording against the policy that imitates the recorded allocator, event by event. */
#ifndef SIM_FIDELITY_FIDELITY_H
#define SIM_FIDELITY_FIDELITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/policy.h"
#include "allocators/spec.h"
#include "sim/replay.h"
#include "workloads/trace/source.h"

/* A figure that the recorded allocator gave at the end, under its own name for it. */
struct fidelity_stat {
    const char *name;
    uint64_t value;
};

struct fidelity {
    const struct ar_spec *policy;
    struct trace_source *source;       /* rewound as needed */
    const struct fidelity_stat *stats; /* in any order; NULL: none were recorded */
    size_t stat_count;
    uint64_t seed;
    /* A list, told of the rows of the last replay; NULL: none. `begin` comes before each replay. */
    const struct observer *observer;
};

/* The first place where policy and recording differ. */
struct fidelity_difference {
    bool found;
    uint64_t event, line; /* line of the file; 0: not known */
    char policy[256];     /* what the policy did, as the end of "the policy .." */
    char recording[256];  /* what the recording says, as the end of "the recording .." */
};

/* A statistic of which both have a figure. */
struct fidelity_figure {
    char name[64];
    uint64_t recorded, replayed;
    bool agrees;
};

/* How the policy came to what was there before a recording that begins in the middle. */
enum fidelity_start {
    FIDELITY_FROM_NOTHING, /* nothing was there */
    FIDELITY_ADOPTED,      /* it took over what was there, as it was */
    FIDELITY_REQUESTED,    /* it cannot: the blocks were requested first, by address */
};

struct fidelity_result {
    bool agrees; /* everything */
    struct fidelity_difference difference;
    uint64_t rows, rows_met; /* requests and frees; none is met after the first difference */
    uint64_t made, made_met; /* segments, and runs of pages mapped */
    uint64_t freed, freed_met;
    uint64_t peak_reserved_bytes, end_reserved_bytes; /* the policy's */
    uint64_t recorded_peak_reserved_bytes, recorded_end_reserved_bytes;
    uint64_t *releases; /* events before which the program released its cache, by inference */
    size_t release_count;
    uint64_t unseen_releases; /* that the statistics know of and that gave nothing back */
    uint64_t refusals;        /* requests that the recorded device is taken to have refused */
    uint64_t replays;         /* it took to find these */
    enum fidelity_start start;
    size_t start_segments, start_blocks; /* segments and runs of pages, blocks in use */
    uint64_t end_blocks, end_blocks_met; /* of the recorded state at the end; 0: none is told */
    struct fidelity_figure *figures;     /* where it began in the middle only present values */
    size_t figure_count, figures_met;
};

/* The spec of the policy that answers to a recording, with the recorded settings, such as
 * torch:conf='..',limit=N. INVALID if the trace is not a recording, or where no policy answers
 * to its recorder. */
enum ar_status fidelity_default_spec(const struct trace_info *info, char *text, size_t text_bytes,
                                     struct ar_error *error) AR_STATUS_CHECKED;

/* OK also where they differ: that is the result. INVALID for a trace that tells nothing of what
 * an allocator did, or that begins in the middle of a program without the state it was in. */
enum ar_status fidelity_run(const struct fidelity *config, struct fidelity_result *result,
                            struct ar_error *error) AR_STATUS_CHECKED;
void fidelity_result_close(struct fidelity_result *result);

#endif
