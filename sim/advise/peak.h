#ifndef SIM_ADVISE_PEAK_H
#define SIM_ADVISE_PEAK_H

#include "workloads/trace/source.h"

/* The live blocks at the live peak, and the live peak at other batch sizes. */
#define HOLDERS_MOST 5

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
    uint64_t late_bytes;  /* the largest block whose free completed later than requested; 0: none */
    uint64_t step, steps; /* the step of the peak, from 1; the number of steps, 0: not marked */
    struct holder at[HOLDERS_MOST]; /* descending */
    size_t count;
};

/* Finds the peak in events [0, end). Pinned memory and probes do not count. */
enum ar_status holders_find(struct trace_source *source, uint64_t end, struct holders *out,
                            struct ar_error *error) AR_STATUS_CHECKED;

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
                                struct batch_curve *out, struct ar_error *error) AR_STATUS_CHECKED;
void batch_curve_close(struct batch_curve *self);

double batch_curve_peak(const struct batch_curve *self, double batch);

/* The largest batch, as a whole number, whose peak times `over` is at most `bytes`; 0: none;
 * INFINITY: the peak does not grow. */
double batch_curve_largest(const struct batch_curve *self, double over, double bytes);

#endif
