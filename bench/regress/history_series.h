/* A history as rows of figures, one for each cell and metric, and their changes, judged.
 *
 * 1. A series is one metric of one cell over the lines that have a value of it; the outcome of a
 *    cell is one too (how far it got), and so is a count of instructions. Times of different
 *    machines or compiler flags are different series, counts by another compiler too. A metric that
 *    is timed in one line is timed in all.
 * 2. A series begins anew where the workload is another, and, but for the outcome, where the run
 *    got further or less far than before: what lies on both sides is of different events.
 * 3. In each such stretch changes are looked for (change_points.h): exact figures at any
 *    difference, counts at 1 %, times at `effect`, with `alpha` divided by the number of timed
 *    series.
 * 4. A change is WORSE or BETTER by the metric's direction. Between two lines of one commit it is
 *    AMBIGUOUS: the program is the same.
 * 5. It stands where the newest value of the series, or level of a time, is still on the same side
 *    of the one before the change. It counts as a regression where it is WORSE, stands, is of the
 *    newest `last` commits and has no waiver. */
#ifndef BENCH_REGRESS_HISTORY_SERIES_H
#define BENCH_REGRESS_HISTORY_SERIES_H

#include "bench/statistics/change_points.h"
#include "bench/regress/history.h"
#include "bench/regress/verdict.h"
#include "bench/regress/waivers.h"

struct history_point {
    size_t line; /* index in the history's lines */
    double value;
    bool begins;  /* nothing before it is of the same stretch */
    double level; /* of its stretch between two changes: a median for times; set by the judge */
};

/* Texts are the history's or constant. */
struct history_series {
    const char *policy, *workload, *workload_name, *where;
    const char *figure, *unit;
    enum metric_better better;
    enum change_kind kind;
    const char *machine, *flags; /* of times; compiler in `flags` of counts */
    struct history_point *points;
    size_t count, room;
    size_t cell;  /* series of one cell have one number */
    size_t epoch; /* of the last point, while they are made */
    size_t other; /* one more than the index of the next one of this metric; 0: none */
};

struct history_change {
    size_t series, point; /* the first point of the new level */
    size_t line;
    enum verdict verdict; /* BETTER, WORSE or AMBIGUOUS */
    double before, after;
    double change; /* as a fraction; below 0: it has no size */
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
    struct history_change *changes; /* of the newest commit first, and there what is worse */
    size_t change_count, change_room;
    size_t commits;
    size_t longest;         /* measurements in the longest series of times */
    size_t timed;           /* series of times */
    size_t unjudged;        /* of them with a value that is not above 0 */
    size_t delay;           /* after so many commits a clear change of a time is seen; 0: too few */
    size_t ended;           /* cells that the newest line does not have */
    size_t counted, waived; /* regressions; WORSE and recent with a waiver */
};

/* HOST_MEMORY. On success the caller closes it; texts stay the history's and the waivers'. */
enum ar_status history_judge(struct history_judged *self, const struct history *history,
                             const struct history_rules *rules, struct waivers *waivers,
                             struct ar_error *error) AR_STATUS_CHECKED;
void history_judged_close(struct history_judged *self);

/* True for what ends with status 1. */
bool history_counts(const struct history_change *change);

/* Makes the series. For history_judge. */
enum ar_status history_series_make(struct history_judged *self, const struct history *history,
                                   const struct history_rules *rules,
                                   struct ar_error *error) AR_STATUS_CHECKED;

/* Values of an outcome: the event that failed first, or one of these. */
#define HISTORY_NO_RUN (-1.0)
#define HISTORY_PASSED ((double)INFINITY)

/* A value of a series as text: bytes and counts whole, an outcome in words. Returns `text`. */
const char *history_value_text(const struct history_series *series, double value, char text[40]);

#endif
