#ifndef SIM_ADVISE_PEAK_H
#define SIM_ADVISE_PEAK_H

#include "workloads/trace/source.h"

/* What is live at the moment of the most live bytes. */
#define HOLDERS_MOST 4

/* Blocks of one tag, or where there are no tags of one size. */
struct holder {
    char tag[64];
    uint64_t bytes;       /* of all of them */
    uint64_t block_bytes; /* of one; 0 where they differ */
    uint64_t blocks;
};

struct holders {
    uint64_t bytes, event, blocks;
    uint64_t late_bytes;  /* the largest block that was freed and completed later; 0: none */
    uint64_t step, steps; /* in which step, from 1; of how many, 0: none are marked */
    struct holder at[HOLDERS_MOST]; /* the largest first */
    size_t count;
};

/* Finds them in events [0, end). Pinned memory and probes do not count. */
enum ar_status holders_find(struct trace_source *source, uint64_t end, struct holders *out,
                            struct ar_error *error) AR_STATUS_CHECKED;

/* The live peak of a program at other batch sizes, from traces of two. If both request and free in
 * the same order, bytes live at each event are taken to lie on a straight line of their own, so
 * that the peak may move elsewhere as the batch grows; else only both peaks are. */
/* Bytes live at one event: fixed, and for each of the batch. */
struct batch_line {
    double fixed_bytes, each_bytes;
};

struct batch_curve {
    struct batch_line *lines; /* of which the highest counts; in the order of their slopes */
    size_t count;
    bool aligned; /* false: one line, through both peaks */
};

/* The batches differ. The caller closes it. */
enum ar_status batch_curve_find(struct trace_source *const traces[2], const uint64_t batches[2],
                                struct batch_curve *out, struct ar_error *error) AR_STATUS_CHECKED;
void batch_curve_close(struct batch_curve *self);

double batch_curve_peak(const struct batch_curve *self, double batch);

/* The largest whole batch whose peak, times `over`, is at most so many bytes; 0: none. INFINITY
 * where nothing grows. */
double batch_curve_largest(const struct batch_curve *self, double over, double bytes);

#endif
