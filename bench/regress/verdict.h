/* Two sides of results, held against each other: a verdict for every figure.
 *
 * 1. Cells are matched by policy, workload, device, way to free, host time and seed. One that only
 *    one side has is said: NO-DATA; those that only the old side has are counted too. So is one whose
 *    workload is another (by its hash).
 * 2. The outcome first. A run that failed where it passed before, or at an earlier event, is WORSE;
 *    one that fails later, or passes now, BETTER. Where both sides did not get equally far, their
 *    other figures are of different events: NO-DATA, once for the cell.
 * 3. An exact metric is compared exactly, and its direction is the metric table's. Where that names
 *    none, or a value has become null, or was, a difference is AMBIGUOUS.
 * 4. What is timed: metrics of that class, and on a card those in nanoseconds, per second, and
 *    slowdowns, and any other that is not the same in all repetitions of a side. Only with at
 *    least RANK_TEST_LEAST repetitions a side, on one machine; else NO-DATA. With `effect` the
 *    least change that counts and `alpha` the chance of any false alarm in the whole comparison:
 *    WORSE or BETTER where the rank test says so at alpha, corrected for all the tests that were
 *    made, and the change is at least `effect`; SAME where the interval lies within `effect`, or
 *    the change is surely there and smaller; else AMBIGUOUS. A figure that nothing times and that is
 *    not the same in all repetitions, where no test is made, names two runs that contradict each
 *    other, as do repetitions that do not end alike.
 * 5. Counts of instructions: over or under by more than VERDICT_INSTRUCTIONS; NO-DATA where another
 *    compiler made the program, or a side has two counts of the same that are further apart than that.
 * 6. A figure that is WORSE and has a waiver that has not expired is waived. Waivers are looked for
 *    at the end, with how much worse it is. */
#ifndef BENCH_REGRESS_VERDICT_H
#define BENCH_REGRESS_VERDICT_H

#include "bench/statistics/rank_test.h"
#include "bench/regress/side.h"
#include "bench/regress/waivers.h"

#define VERDICT_INSTRUCTIONS 0.01

enum verdict {
    VERDICT_SAME,
    VERDICT_BETTER,
    VERDICT_WORSE,
    VERDICT_AMBIGUOUS,
    VERDICT_NO_DATA,
    VERDICT_COUNT
};

/* "SAME", "BETTER", "WORSE", "AMBIGUOUS", "NO-DATA" */
const char *verdict_name(enum verdict verdict);

/* One figure. Rows of exact figures that are SAME are counted, not kept. */
struct verdict_row {
    enum verdict verdict;
    const char *policy, *workload, *workload_name, *where; /* borrowed from the sides */
    const char *figure;                                    /* a metric's name, or "outcome" */
    char old[40], new_[40];                                /* as texts */
    double change; /* how much worse, as a fraction; below 0: it has no size */
    char note[320];
    bool timed;
    struct rank_test test; /* where it is timed and there are data */
    const struct waiver *waiver;
    bool missing; /* a run or count that only the old side has */
};

struct verdicts {
    struct verdict_row *rows;
    size_t count, room;
    size_t figures[VERDICT_COUNT];
    size_t cells;                  /* that both sides have */
    size_t waived;                 /* of those that are WORSE */
    size_t timed;                  /* figures that were tested */
    double sees_median, sees_most; /* of them: the smallest change that would be seen */
    size_t missing;                /* runs and counts that only the old side has */
};

struct verdict_rules {
    double alpha;  /* 0.05 */
    double effect; /* 0.05 */
};

/* INVALID where the sides have nothing in common. On success the caller closes it; texts stay
 * those of the sides, waivers those of `waivers` (may be NULL). */
enum ar_status verdicts_make(struct verdicts *self, const struct side *old, const struct side *new_,
                             const struct verdict_rules *rules, struct waivers *waivers,
                             struct ar_error *error) AR_STATUS_CHECKED;
void verdicts_close(struct verdicts *self);

#endif
