/* The live peak of a program at other batch sizes, from traces of two. Where both ask and let go in
 * the same order, bytes live at each event are taken to lie on a straight line of their own, so
 * that the peak may move elsewhere as the batch grows; else only both peaks are. */
#ifndef SIM_ADVISE_BATCHES_H
#define SIM_ADVISE_BATCHES_H

#include "workloads/trace/source.h"

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
