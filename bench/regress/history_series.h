/* A history as time series, one for each run and metric, and the changes in them.
 *
 * 1. A series is one metric of one run over the lines that have a value of it. The outcome of a run
 *    (how far it got) and a count of instructions are series too. Times of different machines or
 *    compiler flags, and counts of different compilers, are different series. A metric that is
 *    timed in one line is timed in all.
 * 2. A series is cut into stretches when the workload changes and, except for the outcome, when the
 *    run gets further or less far than before, because the values are then of different events.
 * 3. Changes are found in each stretch (change_points.h): exact figures at any difference, counts
 *    at 1 %, times at `effect`, with `alpha` divided by the number of timed series.
 * 4. A change is WORSE or BETTER by the direction of the metric. Between two lines of one commit it
 *    is AMBIGUOUS, because the program is the same.
 * 5. A change stands if the newest value of the series (for times, the newest level) still differs
 *    in the same direction from the value before the change. It counts as a regression if it is
 *    WORSE, stands, is of the newest `last` commits and has no waiver. */
#ifndef BENCH_REGRESS_HISTORY_SERIES_H
#define BENCH_REGRESS_HISTORY_SERIES_H

#include "bench/regress/history.h"
#include "bench/regress/verdict.h"
#include "bench/regress/waivers.h"
#include "bench/statistics/change_points.h"

struct history_point {
    size_t line; /* index of the line in the history */
    double value;
    bool begins;  /* it is the first of a stretch */
    double level; /* between two changes: for times a median; set by history_judge */
};

/* Texts belong to the history or are constant. */
struct history_series {
    const char *policy, *workload, *workload_name, *where;
    const char *figure, *unit;
    enum metric_better better;
    enum change_kind kind;
    const char *machine, *flags; /* of times; compiler in `flags` of counts */
    struct history_point *points;
    size_t count, room;
    size_t run;   /* the same number for all series of one run */
    size_t epoch; /* of the last point, while points are added */
    size_t other; /* 1 + the index of the next series of this metric; 0: none */
};

struct history_change {
    size_t series, point; /* the first point of the new level */
    size_t line;
    enum verdict verdict; /* BETTER, WORSE or AMBIGUOUS */
    double before, after;
    double change; /* its size, as a fraction; below 0: it has none */
    double p;      /* of times */
    bool stands, recent;
    const struct waiver *waiver;
};

struct history_rules {
    double effect, alpha;                   /* of times */
    size_t last;                            /* commits whose changes count; 0: all */
    const char *policy, *workload, *figure; /* patterns of a shell; NULL: all */
};

struct history_judged {
    struct history_series *series;
    size_t count, room;
    struct history_change *changes; /* of the newest commit first, WORSE ones first */
    size_t change_count, change_room;
    size_t commits;
    size_t longest;         /* the number of points of the longest series of times */
    size_t timed;           /* the number of series of times */
    size_t unjudged;        /* series of times with a value that is not above 0 */
    size_t delay;           /* commits until a clear change of a time is detected; 0: too few */
    size_t ended;           /* runs that the newest line does not have */
    size_t counted, waived; /* regressions; WORSE and recent with a waiver */
};

/* HOST_MEMORY. On success the caller closes it. It borrows texts from the history and `waivers`. */
enum ar_status history_judge(struct history_judged *self, const struct history *history,
                             const struct history_rules *rules, struct waivers *waivers,
                             struct ar_error *error) AR_STATUS_CHECKED;
void history_judged_close(struct history_judged *self);

/* True for a regression that ends the command with status 1. */
bool history_counts(const struct history_change *change);

/* Makes the series. For history_judge. */
enum ar_status history_series_make(struct history_judged *self, const struct history *history,
                                   const struct history_rules *rules,
                                   struct ar_error *error) AR_STATUS_CHECKED;

/* Values of an outcome: the first failed event, or one of these. */
#define HISTORY_NO_RUN (-1.0)
#define HISTORY_PASSED ((double)INFINITY)

/* A value of a series as text: bytes and counts as integers, an outcome in words. Returns
 * `text`. */
const char *history_value_text(const struct history_series *series, double value, char text[40]);

#endif
