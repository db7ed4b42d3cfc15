/* Compares two result sets, OLD and NEW: a verdict for every figure.
 *
 * 1. Rows are matched by policy, workload, device, free mode, host time and seed. A row that only
 *    one result set has, or whose workload has changed (by its hash), is NO-DATA. Rows that only
 *    OLD has are counted as missing.
 * 2. The outcome is compared first. A run that fails and passed before, or fails at an earlier
 *    event, is WORSE; a run that fails later, or passes now, is BETTER. If the two runs did not get
 *    equally far, their other figures are of different events: NO-DATA, once for the row.
 * 3. An exact metric is compared exactly; the metric table says which direction is better. If the
 *    table names none, or only one value is null, a difference is AMBIGUOUS.
 * 4. Timed figures are the metrics of that class; on a card also those in nanoseconds or per second
 *    and slowdowns; and any metric that differs between repetitions. They need RANK_TEST_LEAST
 *    repetitions in each result set, all on one machine; otherwise they are NO-DATA. `effect` is
 *    the smallest change that counts, `alpha` the probability of any false alarm in the whole
 *    comparison. WORSE or BETTER: the rank test is significant at alpha, corrected for the number
 *    of tests, and the change is at least `effect`. SAME: the interval lies within `effect`, or the
 *    change is significant and smaller. Otherwise AMBIGUOUS. If no test is possible and a figure
 *    that is not timed differs between repetitions, or repetitions end differently, the note names
 *    two runs that contradict each other.
 * 5. Counts of instructions may differ by VERDICT_INSTRUCTIONS. They are NO-DATA if the compiler
 *    changed, or if a result set has two counts of the same operation that differ by more.
 * 6. A figure that is WORSE and has a waiver that has not expired is waived. Waivers are applied
 *    last, when the size of the change is known. */
#pragma once

#include "allocators/base/status.h"
#include "bench/regress/result_set.h"
#include "bench/report/table.h"
#include "bench/statistics/statistics.h"

/* Waivers: regressions that are accepted until a date. The file has sections
 *
 *   [waiver NAME]
 *   metric = PATTERN      (default *: every figure)
 *   policy = PATTERN      (a spec; default *)
 *   workload = PATTERN    (a name or spec; default *)
 *   commit = PATTERN      (that made it worse; in a comparison the one of NEW; default *)
 *   at-most = 5%          (the largest change that it covers; default: any)
 *   reason = TEXT         (required)
 *   until = 2027-01-31    (required; the last day on which it counts)
 *
 * Patterns are those of file names in a shell: * ? [..]. */

struct waiver {
    char *name, *metric, *policy, *workload, *commit, *reason;
    char until[11];
    double at_most; /* as a fraction; below 0: no limit */
    bool expired;
    bool used;
    bool exceeded; /* a change that it names is above at_most, and no other waiver covers it */
};

struct waivers {
    struct waiver *items;
    size_t count, room;
};

/* Reads the file. Errors name the file and the waiver. On success the caller closes it. */
enum ar_status waivers_read(struct waivers *self, const char *path, struct ar_error *error);
/* Marks those that have expired; `today` is YYYY-MM-DD. Until then none has. */
void waivers_expire(struct waivers *self, const char *today);
void waivers_close(struct waivers *self);

/* A change for the worse. */
struct waiver_case {
    const char *metric, *policy, *workload, *workload_name;
    const char *commit; /* NULL: unknown; only waivers without a commit cover it */
    double change;      /* its size, as a fraction; below 0: it has none */
};

/* The first waiver that covers the change, marked as used. An expired one is returned only if no
 * other covers it. NULL: none. */
const struct waiver *waivers_find(struct waivers *self, const struct waiver_case *of);

/* True for YYYY-MM-DD. */
bool waivers_is_date(const char *text);

#define VERDICT_INSTRUCTIONS 0.01

/* Two values with all their digits, and " and ". */
#define CHANGE_VALUE_ROOM 88

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

/* One figure. Exact figures that are SAME are only counted. */
struct verdict_row {
    enum verdict verdict;
    const char *policy, *workload, *workload_name, *where; /* borrowed from the result sets */
    const char *device, *frees, *host; /* as in struct result_row, the device resolved; NULL: a
                                          count of instructions */
    uint64_t seed;                     /* if `frees` */
    const char *figure;                /* a metric's name, or "outcome" */
    char old[CHANGE_VALUE_ROOM], new[CHANGE_VALUE_ROOM]; /* as texts; "-": none */
    double change;     /* its size, as a fraction of the old value; below 0: it has none */
    double difference; /* of a share of a whole (change_is_share); below 0: it is none */
    char note[320];
    bool timed;
    struct rank_test test; /* if `timed` */
    double p;              /* its `p`, corrected for the number of tests: the verdict's */
    const struct waiver *waiver;
    bool missing; /* a run or count that only OLD has */
    bool added;   /* a run that only NEW has */
    bool lost;    /* a figure of OLD of which NEW has no value, or two: not of a missing run */
};

struct verdicts {
    const struct result_set *old, *new; /* borrowed */
    struct verdict_row *rows;
    size_t count, room;
    size_t figures[VERDICT_COUNT];
    size_t runs, counts;           /* those that both have */
    size_t waived;                 /* WORSE figures with a waiver */
    size_t timed;                  /* figures with a rank test */
    double sees_median, sees_most; /* the smallest change that these tests detect */
    size_t missing;                /* runs and counts that only OLD has */
    size_t lost;                   /* figures */
    bool require_all;              /* of the rules */
};

struct verdict_rules {
    double alpha;     /* 0.05 */
    double effect;    /* 0.05 */
    bool require_all; /* what is missing or lost fails, as what is WORSE */
};

/* INVALID if the two have no run in common. On success the caller closes it. It borrows texts from
 * the result sets and waivers from `waivers` (may be NULL). */
enum ar_status verdicts_make(struct verdicts *self, const struct result_set *old,
                             const struct result_set *new, const struct verdict_rules *rules,
                             struct waivers *waivers, struct ar_error *error);
void verdicts_close(struct verdicts *self);

/* ---- pages ----------------------------------------------------------------------------------- */

/* Writes a comparison as a table, as JUnit XML, as JSON, and as annotations of GitHub. */

/* Prints the figures that changed or have no data; then a line for each policy with figures that
 * are better or worse, the number of figures by verdict, the smallest change that is detected,
 * waivers that expired or cover nothing, and missing runs. `all`: a row for every figure; otherwise
 * one row for those that share a policy or a figure. */
enum ar_status compare_page(const struct verdicts *verdicts, const struct waivers *waivers,
                            bool all, FILE *stream, enum table_form form, struct ar_error *error);

/* A test case for every row. Those with which `compare` ends with status 1 are failures; other
 * waived, AMBIGUOUS and NO-DATA rows are skipped. */
void compare_junit(const struct verdicts *verdicts, FILE *stream);

/* The numbers of figures, and a row for each that is not an exact SAME; README.md describes it. */
void compare_json(const struct verdicts *verdicts, FILE *stream);

/* A line for every row that fails, ::error, and for every waived one, ::warning. */
void compare_annotations(const struct verdicts *verdicts, FILE *stream);

/* Prints a workflow command, which GitHub shows at the commit. `level` is "error" or "warning",
 * `what` such as "worse". Special characters in `figure` and `text` become percent codes. */
void annotation_of(FILE *stream, const char *level, const char *figure, const char *what,
                   const char *text);
