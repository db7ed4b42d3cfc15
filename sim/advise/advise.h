/* Finds the settings with which a recorded program would run in less memory, and their cost.
 *
 * 1. The recording is compared with the policy that imitates its allocator
 *    (sim/fidelity/fidelity.h). Releases of the cache by the program are inserted into the trace,
 *    because the program would make them under any setting. Memory that the allocator released
 *    under pressure is distinguished from them (pressure_find).
 * 2. The candidates are the recorded setting, the defaults of the recorder's framework, every
 *    setting that a user can change, and pairs of them. Other policies are a separate group.
 * 3. Each candidate is replayed with all of the card, for its peaks, and at the capacity in
 *    question, for fit and slowdown. Then trial_safe searches for the lowest capacity above which
 *    all tried capacities pass. These trials replay the trace in fewer events (trial.h). A pair is
 *    searched only if it passes with 1 % less memory than the better of its halves, or if no single
 *    setting fits.
 * 4. The framework's settings and the other policies are each ranked by that capacity. Candidates
 *    that take more than twice the time come last. Those that differ by no more than the
 *    uncertainty have the same rank. Within a rank the defaults are first, and what takes much
 *    more memory or time than the others is last; then fewer keys are first, then what is
 *    recommended (the order in candidates.c), then less reserved memory.
 * 5. A trace that ends in a failure contains only the events before it. The live bytes of its
 *    completed steps are reported, and nothing about the rest. */
#pragma once

#include "sim/advise/candidates.h"
#include "sim/advise/trial.h"
#include "sim/experiment/recorded_card.h"
#include "sim/fidelity/fidelity.h"
#include "workloads/trace/source.h"

/* ---- recording.c: prepares a recording for a replay under other settings ---- */

/* The trace with the program's own releases of the cache as events. */
struct prepared {
    struct trace_source *trace; /* the caller closes it */
    const uint64_t *releases;   /* what was inserted, of the caller */
    size_t release_count;
    bool has_failed_request;             /* the recording ends with a failed request */
    uint64_t failed_event, failed_bytes; /* the number of the event in the recording */
    uint64_t survived;                   /* failed requests after which the program continued */
    bool has_outside;                    /* the trace has memory outside of its allocator */
    bool has_pools;                      /* private pools, of CUDA graphs or made by the program */
    uint64_t last_step_end; /* events up to and including the last completed step; 0: none */
};

/* Copies the trace into memory and inserts a release of the cache before each event in `releases`
 * (ascending), which stay the caller's. */
enum ar_status prepare_trace(struct trace_source *source, const uint64_t *releases, size_t count,
                             struct prepared *out, struct ar_error *error);

/* The number in the recording of an event of `trace`; of an inserted release that of the event
 * after it. */
uint64_t prepared_event(const struct prepared *self, uint64_t event);

/* A limit, or a full card, that the recording does not mention. It explains memory that was
 * released without a release of the cache by the program. */
struct pressure {
    uint64_t least_bytes, most_bytes; /* bounds of the limit; 0, 0: there is none */
};

/* Searches for a limit under which the policy spec `text` agrees with the recording with fewer
 * releases by the program. `compared` is the comparison without a limit and becomes the one with
 * it. */
enum ar_status pressure_find(struct trace_source *source, const char *text, uint64_t seed,
                             struct fidelity_result *compared, struct pressure *out,
                             struct ar_error *error);

/* A recording has a probe where a request failed and the program went on: the trace with requests
 * in place of these, for the caller to close. NULL: there are none. */
enum ar_status caught_as_requests(struct trace_source *trace, struct trace_source **out,
                                  struct ar_error *error);

/* Tries (autotuning): before the first product or convolution of a kind, a library requests the
 * workspace of one algorithm after another, measures the algorithm, and frees the workspace. If
 * such a request fails, the library continues without that algorithm. If all of them were served,
 * only their order distinguishes them from requests that the program needs. */
struct tries {
    struct trace_source *trace; /* with these requests as probes, which may fail; NULL: none */
    uint64_t count, most_bytes; /* the number of tries; the largest */
};

/* Finds sequences of at least three requests of different sizes, each freed before the next event
 * of a block, while other blocks are live. The caller closes `out`. */
enum ar_status tries_find(struct trace_source *trace, struct tries *out, struct ar_error *error);
void tries_close(struct tries *self);

/* The live blocks at the live peak, and the live peak at other batch sizes. */
#define HOLDERS_MOST 10   /* named; more only if equally large ones follow */
#define HOLDERS_ROOM 20   /* for those */
#define HOLDERS_REST 0.10 /* of the peak; the rest is smaller if so many are not needed */

/* The blocks of one tag; without tags, the blocks of one size. If the trace has lines of the
 * program (key `at`, of the tracer), the blocks of one line and tag, and parts of the tag that are
 * numbers are *: the layers of a model are one group. */
struct holder {
    char tag[160];
    char at[96];          /* FILE:LINE; or "" */
    uint64_t bytes;       /* of all of them */
    uint64_t block_bytes; /* of one; 0: they differ */
    uint64_t blocks;
};

struct holders {
    uint64_t bytes, event, blocks;
    uint64_t
        probed_bytes; /* the peak with the probes that the recorded card can serve; 0: no probes */
    uint64_t late_bytes;  /* the largest block whose free completed later than requested; 0: none */
    uint64_t step, steps; /* the step of the peak, from 1; the number of steps, 0: not marked */
    struct holder at[HOLDERS_ROOM]; /* descending */
    size_t count;
};

/* Finds the peak in events [0, end). Pinned memory does not count, and probes only in
 * `probed_bytes`. */
enum ar_status holders_find(struct trace_source *source, uint64_t end, struct holders *out,
                            struct ar_error *error);

/* The live peak of a program as a function of the batch size, from the traces of two sizes. If both
 * traces request and free in the same order, the live bytes after each event are a linear function
 * of their own, so the peak may move to another event as the batch grows. Otherwise one line goes
 * through the two peaks. */

/* The live bytes at one event: a constant, and an amount for each element of the batch. */
struct batch_line {
    double fixed_bytes, each_bytes;
};

struct batch_curve {
    struct batch_line *lines; /* by slope; the peak is the highest of them */
    size_t count;
    bool aligned; /* false: one line, through both peaks */
};

/* The two batch sizes differ. The caller closes `out`. */
enum ar_status batch_curve_find(struct trace_source *const traces[2], const uint64_t batches[2],
                                struct batch_curve *out, struct ar_error *error);
void batch_curve_close(struct batch_curve *self);

/* The largest batch, as a whole number, whose peak times `over` is at most `bytes`; 0: none;
 * INFINITY: the peak does not grow. */
double batch_curve_largest(const struct batch_curve *self, double over, double bytes);

struct advise_config {
    struct trace_source *source;  /* a file: opened with trace_open_recording */
    const struct ar_spec *device; /* its capacity is ignored */
    uint64_t capacity_bytes;      /* in question; 0: see advise_capacity_from */
    bool as_limit;                /* the capacity is a limit that the program sets for itself */
    bool card_asked; /* capacity_bytes 0 means the device's, even if one was recorded */
    enum replay_frees frees;
    enum replay_host host;
    uint64_t seed;
    unsigned jobs;
    /* Optional progress callback. Calls never overlap. */
    void (*tried)(void *argument, size_t done, size_t total);
    void *tried_argument;
};

/* Where the capacity in question is from; capacity_of (advise.c) has the order. */
enum advise_capacity_from {
    ADVISE_FROM_CONFIG,   /* the caller, or the profile that the device names */
    ADVISE_FROM_LIMIT,    /* the recorded limit of the program */
    ADVISE_FROM_DRIVER,   /* free bytes at a failed request (recorded_card.h) */
    ADVISE_FROM_PRESSURE, /* a limit that explains the releases */
    ADVISE_FROM_TOTAL,    /* the recorded memory of the card, for a process */
    ADVISE_FROM_NAME,     /* the profile of the recorded card */
    ADVISE_FROM_DEFAULT   /* the default profile: the card is not known */
};

enum advise_fidelity { ADVISE_NOT_RECORDED, ADVISE_AGREES, ADVISE_DIFFERS, ADVISE_NOT_COMPARED };

struct advise_row {
    struct candidate candidate;
    struct trial alone;   /* with all of the card */
    struct trial at;      /* at the capacity in question */
    uint64_t safe_bytes;  /* 0: not searched, or none up to the end of the grid */
    double safe_slowdown; /* at that capacity; 0: not known */
    bool listed;          /* false: a pair that is not better than its halves */
    size_t rank;          /* of listed rows, from 1, own ones and others each; may be shared. Rows
                             that are the same as the recorded one are not counted */
    bool wasteful;        /* takes 10 % more memory or time than the least of its rank */
    char setting[640];    /* what a user sets, in the recorder's release; or "" */
    struct torch_release needs; /* the first release of PyTorch that accepts it, if the recorder's
                                   is not known and the recorded setting does not tell it */
};

#define ADVISE_UNCERTAINTY 0.01 /* the least; pairs need as much less than their halves */

struct advise_result {
    enum advise_fidelity fidelity;
    struct fidelity_difference difference;
    char fidelity_why[256];          /* NOT_COMPARED */
    size_t releases;                 /* of the cache by the program */
    size_t start_blocks;             /* that existed before a recording that begins in the middle */
    const char *framework;           /* whose settings are tried; NULL: none */
    uint64_t survived;               /* failed requests after which the program continued */
    struct pressure pressure;        /* a limit that the recording does not mention */
    char given[CANDIDATE_SPEC_ROOM]; /* the recorded setting */
    uint64_t recorded_peak_reserved_bytes; /* 0: not known */
    uint64_t capacity_bytes;
    enum advise_capacity_from capacity_from;
    struct recorded_card card;
    char profile[64], costs_of[64]; /* of the device at that capacity, see ar_device_props */
    bool as_limit;
    bool timed;    /* slowdowns are known: the trace has kernels, or host time is modelled */
    bool complete; /* false: the recording says that the program died */
    bool has_failed_request;
    bool has_outside;                    /* the recording has memory outside of its allocator */
    uint64_t failed_event, failed_bytes; /* of that request */
    /* Requests with which a library tries algorithms; the largest. */
    uint64_t tries, tries_most_bytes;
    struct holders peak;     /* the live blocks at the live peak */
    struct holders step;     /* the same within the completed steps */
    struct advise_row *rows; /* the listed ones first, ranked, own before others */
    size_t count, own_count; /* of listed rows; those of the recorder's framework */
    size_t tried;            /* all rows */
    bool all_tried;          /* needs are from the grid of `capacity`; false: from wider steps */
    /* Of the needs, as a fraction: ADVISE_UNCERTAINTY, or the difference of the recorded setting's
     * peak from the recorded one if that is more. */
    double uncertainty;
    struct torch_release release; /* of the recorder; {0, 0}: not known, or not PyTorch */
    const struct torch_conf_key *left_out[CANDIDATE_LEFT_OUT_MOST]; /* keys that it does not know */
    size_t left_out_count;
};

/* INVALID if the trace is adaptive. */
enum ar_status advise_run(const struct advise_config *config, struct advise_result *result,
                          struct ar_error *error);
/* Predicts one setting from a recording prepared as above: `policy`, with its own limit, at a
 * capacity (0: all of the card). */
enum ar_status advise_predict(const struct advise_config *config, const char *policy,
                              uint64_t capacity_bytes, struct trial *out, struct ar_error *error);
void advise_result_close(struct advise_result *result);

/* Whether a row fits at the capacity in question. */
enum advise_fit { ADVISE_FITS, ADVISE_FITS_NOT, ADVISE_UNSURE };
enum advise_fit advise_fits(const struct advise_row *row);

/* Whether no setting of the recorder's framework fits, for sure; without one, no policy. */
bool advise_none_fits(const struct advise_result *result);

/* The difference below which two needs of about `bytes` are equal. */
uint64_t advise_uncertain_bytes(const struct advise_result *result, uint64_t bytes);

/* The recorded setting, or NULL. */
const struct advise_row *advise_given(const struct advise_result *result);

/* Whether another setting of the same allocator does exactly what was recorded. */
bool advise_does_as_recorded(const struct advise_row *row, const struct advise_row *given);

/* The row to advise, among those of the recorder's framework that fit: the recorded setting; else,
 * of the single settings whose slowdown at the capacity in question is within 1 % of the least, the
 * first in the order of ranks; else such a pair. NULL: none fits. */
const struct advise_row *advise_best(const struct advise_result *result);

/* How well one recorded setting is predicted from another, for a program recorded under both. */
struct whatif {
    /* Requests of both recordings, and those whose sizes only one of them has. */
    uint64_t requests_from, requests_to, only_from, only_to;
    struct trial predicted; /* the setting and limit of `to` with the requests of `from` */
    bool recorded_passed;
    bool has_peak;
    uint64_t recorded_peak_reserved_bytes;
    char spec[1024]; /* of `to` */
};

/* Predicts `to` from the recording in `config`, whose capacity is not used. */
enum ar_status whatif_predict(const struct advise_config *config, struct trace_source *to,
                              struct whatif *out, struct ar_error *error);
