/* Compares a recording with the policy that imitates the recorded allocator, event by event. */
#pragma once

#include "allocators/policy.h"
#include "allocators/spec.h"
#include "sim/replay.h"
#include "workloads/trace/source.h"

/* A statistic of the recorded allocator at the end, under the allocator's name. */
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
    /* A list of observers of the rows; NULL: none. `begin` is called before each replay, so the
     * rows after the last `begin` are those of the result. */
    const struct observer *observer;
};

/* The first place where policy and recording differ. */
struct fidelity_difference {
    bool found;
    uint64_t event, line; /* line: of the file; 0: not known */
    char policy[256];     /* completes "the policy .." */
    char recording[256];  /* completes "the recording .." */
};

/* A statistic that both have. */
struct fidelity_figure {
    char name[64];
    uint64_t recorded, replayed;
    bool agrees;
};

/* How the policy gets the state at the start of a recording that begins in the middle. */
enum fidelity_start {
    FIDELITY_FROM_NOTHING, /* the recording begins with an empty allocator */
    FIDELITY_ADOPTED,      /* the policy adopted the state */
    FIDELITY_REQUESTED, /* the policy cannot adopt: the blocks were requested first, by address */
};

struct fidelity_result {
    bool agrees; /* no difference, and all figures agree */
    struct fidelity_difference difference;
    uint64_t rows, rows_met; /* requests and frees; those before the first difference agree */
    uint64_t made, made_met; /* segments and mapped runs of pages */
    uint64_t freed, freed_met;
    uint64_t peak_reserved_bytes, end_reserved_bytes; /* the policy's */
    uint64_t recorded_peak_reserved_bytes, recorded_end_reserved_bytes;
    uint64_t *releases; /* events before which the program released its cache, as inferred */
    size_t release_count;
    uint64_t unseen_releases; /* counted in the statistics, but without released memory */
    uint64_t limit_bytes;     /* of the program, at least; 0: it is recorded, or not needed */
    uint64_t refusals;        /* inferred refusals of the recorded device */
    uint64_t replays;         /* the number of replays */
    enum fidelity_start start;
    /* At the start: segments and runs of pages; blocks in use. */
    size_t start_segments, start_blocks;
    uint64_t end_blocks, end_blocks_met; /* of the recorded state at the end; 0: not recorded */
    struct fidelity_figure *figures;     /* if it began in the middle, only present values */
    size_t figure_count, figures_met;
};

/* Writes the spec of the policy that imitates the recorded allocator, with the recorded settings,
 * such as torch:conf='..',limit=N. INVALID if the trace is not a recording, or if no policy
 * imitates its allocator. */
enum ar_status fidelity_default_spec(const struct trace_info *info, char *text, size_t text_bytes,
                                     struct ar_error *error);

/* OK also if they differ. INVALID if the trace does not record the work of an allocator, or if it
 * begins in the middle of a program without the state at that point. */
enum ar_status fidelity_run(const struct fidelity *config, struct fidelity_result *result,
                            struct ar_error *error);
void fidelity_result_close(struct fidelity_result *result);
