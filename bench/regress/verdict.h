/* Two sides of results, compared: a verdict for every figure.
 *
 * 1. Cells are matched by policy, workload, device, way to free, host time and seed. One that only
 *    one side has is said: NO-DATA; those that only the old side has are counted too. So is one
 *    whose workload is another (by its hash).
 * 2. The outcome first. A run that failed where it passed before, or at an earlier event, is WORSE;
 *    one that fails later, or passes now, BETTER. Where both sides did not get equally far, their
 *    other figures are of different events: NO-DATA, once for the cell.
 * 3. An exact metric is compared exactly, and its direction is the metric table's. Where that names
 *    none, or a value has become null, or was, a difference is AMBIGUOUS.
 * 4. What is timed: metrics of that class, and on a card those in nanoseconds, per second, and
 *    slowdowns, and any other that is not the same in all repetitions of a side. Only with at least
 *    RANK_TEST_LEAST repetitions a side, on one machine; else NO-DATA. With `effect` the least
 *    change that counts and `alpha` the chance of any false alarm in the whole comparison: WORSE or
 *    BETTER where the rank test says so at alpha, corrected for all the tests that were made, and
 *    the change is at least `effect`; SAME where the interval lies within `effect`, or the change
 *    is surely there and smaller; else AMBIGUOUS. A figure that nothing times and that is not the
 *    same in all repetitions, where no test is made, names two runs that contradict each other, as
 *    do repetitions that do not end alike.
 * 5. Counts of instructions: over or under by more than VERDICT_INSTRUCTIONS; NO-DATA where another
 *    compiler made the program, or a side has two counts of the same that are further apart than
 *    that.
 * 6. A figure that is WORSE and has a waiver that has not expired is waived. Waivers are looked for
 *    at the end, with how much worse it is. */
#ifndef BENCH_REGRESS_VERDICT_H
#define BENCH_REGRESS_VERDICT_H

#include <stddef.h>
#include <stdio.h>

#include "allocators/base/status.h"
#include "bench/regress/result_set.h"
#include "bench/regress/waivers.h"
#include "bench/report/table.h"
#include "bench/statistics/rank_test.h"

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

/* Rows of one cause as one: a policy that became worse does so in many figures and workloads, a
 * figure that is counted otherwise does under many policies.
 *
 * 1. Rows of different kinds (verdict, waiver, commit) are never one.
 * 2. Of what is left of a kind, the policy or the figure with the most rows is the next group; of
 *    equal ones a policy, then the earlier. The rest goes on without its rows.
 * 3. What has at most GROUPS_LISTED rows stays rows: they tell more than their number.
 * 4. The worst of a group is its row with the largest change; one without a size, as an outcome, is
 *    before all others. */
#define GROUPS_LISTED 3

/* Texts are borrowed. */
struct group_item {
    size_t kind;
    const char *policy, *workload, *figure;
    double change; /* how much, as a fraction; below 0: it has no size */
};

struct group {
    enum { GROUP_ROW, GROUP_OF_POLICY, GROUP_OF_FIGURE } by;
    size_t worst; /* index of an item; of a row the row itself */
    size_t count;
    size_t policies, workloads, figures; /* different ones among its rows */
};

struct groups {
    struct group *items;
    size_t count;
    size_t folded; /* rows that stand in groups of several */
};

/* Groups in the order of the first rows of their kinds. HOST_MEMORY. On success the caller closes
 * it. */
enum ar_status groups_make(struct groups *self, const struct group_item *items, size_t count,
                           struct ar_error *error) AR_STATUS_CHECKED;
void groups_close(struct groups *self);

/* What a group is of, up to the values of its worst row: "policy torch, 12 figures in 6 workloads;
 * largest: driver_time_ns of embedding". Returns `text`. */
const char *group_text(const struct group *group, const struct group_item *worst, char *text,
                       size_t room);

/* The table of groups: verdict, rows, what. The caller closes it. NULL: no host memory. */
struct table *groups_table(void);
/* Says behind it how to see the rows that were folded, where some were. */
void groups_note(size_t folded, FILE *stream);

/* A side that contradicts itself: two runs of one cell, or two counts of the same, that cannot both
 * be right. Each of these says so in the row's note, with both places, and returns true; else it
 * leaves the row as it was. */
/* Repetitions that end in different ways, or at different events. */
bool contradiction_of_ends(const struct side_cell *old, const struct side_cell *new_,
                           struct verdict_row *row);

/* A metric that nothing times and that is not the same in all repetitions; both values are written
 * into the row. */
bool contradiction_of_metric(const struct side_cell *old, const struct side_cell *new_,
                             enum metric metric, struct verdict_row *row);

/* Two counts of the same on one side that are further apart than VERDICT_INSTRUCTIONS. */
bool contradiction_of_count(const struct side *side, bool in_old, const struct side_count *count,
                            struct verdict_row *row);

#endif
