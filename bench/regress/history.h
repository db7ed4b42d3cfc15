/* The history of a project's results: a file with one line for each commit. Lines are only added.
 *
 * 1. A line is one JSON object, schema allocrig.history/1: the commit and its time, the machine,
 *    the names of the metrics, a run for each row of the result set (with the values of these
 *    metrics; for timed ones the median of the repetitions), and counts of instructions. Metrics
 *    without a better direction are left out. The same results give the same line.
 * 2. A line is added under a lock, with one write and a sync to disk. A last line without its end
 *    is the rest of an interrupted write: readers ignore it, and the next writer removes it.
 * 3. Lines of different branches can be merged in any order (git: merge=union). They are read in
 *    the order of their times; lines with equal times keep the order of the file.
 * 4. Any other line that is not such an object is an error with its number, and the file is not
 *    changed. */
#pragma once

#include "bench/regress/result_set.h"
#include "bench/regress/verdict.h"
#include "bench/report/table.h"
#include "bench/statistics/statistics.h"
#include "workloads/trace/tables.h"

#define HISTORY_SCHEMA "allocrig.history/1"

/* One run of a line. The history owns the texts. */
struct history_run {
    const char *policy, *workload, *workload_name, *device, *frees, *host, *sha256;
    const char *resolved_device; /* as in struct result_row; of an earlier version `device` */
    const char *cause;           /* NULL: passed, or unknown */
    uint64_t seed;
    bool passed, played; /* as in struct result_run */
    uint64_t first_failed_event;
    double values[METRIC_COUNT]; /* NAN: none */
    bool timed[METRIC_COUNT];
};

/* As result_row_same, of one history, which has each text once. Of an earlier version only the spec
 * of the device is known. */
bool history_run_same(const struct history_run *a, const struct history_run *b);

struct history_line {
    size_t number; /* in the file, from 1 */
    const char *commit, *time, *machine, *flags;
    struct history_run *runs;
    size_t run_count;
    struct instruction_count *counts;
    size_t count_count;
};

struct history {
    struct history_line *lines; /* oldest first */
    size_t count, room;
    size_t torn_bytes;  /* of a last line without its end, which is ignored */
    size_t unknown;     /* columns of metrics that this program does not have */
    struct texts texts; /* every text once */
};

/* IO; FORMAT names the file and the line. On success the caller closes it. */
enum ar_status history_read(struct history *self, const char *path, struct ar_error *error);
void history_close(struct history *self);

struct history_stamp {
    const char *commit; /* NULL: the commit of the results */
    const char *time;   /* of the commit, YYYY-MM-DDTHH:MM:SSZ; NULL: the time of the results */
};

struct history_added {
    bool added;       /* false: the commit already has a line with the same figures */
    size_t cut_bytes; /* of a torn last line that was cut off */
};

/* Adds a line for the results; creates the file if it does not exist. INVALID: the results are of a
 * tree with uncommitted changes, of no commit, or of several machines, or the time is malformed.
 * Otherwise errors as history_read. */
enum ar_status history_append(const char *path, const struct result_set *results,
                              const struct history_stamp *stamp, struct history_added *added,
                              struct ar_error *error);

/* ---- series and changes ---------------------------------------------------------------------- */

/* A history as time series, one for each run and metric, and the changes in them.
 *
 * 1. A series is one metric of one run over the lines that have a value of it. The outcome of a run
 *    (how far it got) and a count of instructions are series too. Times of different machines or
 *    compiler flags, and counts of different compilers, are different series. A metric that is
 *    timed in one line is timed in all.
 * 2. A series is cut into stretches when the workload changes and, except for the outcome, when the
 *    run gets further or less far than before, because the values are then of different events.
 * 3. Changes are found in each stretch (statistics.h): exact figures at any difference, counts
 *    at 1 %, times at `effect`, with `alpha` divided by the number of timed series.
 * 4. A change is WORSE or BETTER by the direction of the metric. Between two lines of one commit it
 *    is AMBIGUOUS, because the program is the same.
 * 5. A change stands if the newest value of the series (for times, the newest level) still differs
 *    in the same direction from the value before the change. It counts as a regression if it is
 *    WORSE, stands, is of the newest `last` commits and has no waiver. */

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
                             struct ar_error *error);
void history_judged_close(struct history_judged *self);

/* True for a regression that ends the command with status 1. */
bool history_counts(const struct history_change *change);

/* Values of an outcome: the first failed event, or one of these. */
#define HISTORY_NO_RUN (-1.0)
#define HISTORY_PASSED ((double)INFINITY)

/* A value of a series as text: bytes and counts as integers, an outcome in words. Returns
 * `text`. */
const char *history_value_text(const struct history_series *series, double value, char text[40]);

/* ---- pages ----------------------------------------------------------------------------------- */

/* Writes the changes in a history as a table, JSON, annotations and data of a figure. */

struct history_view {
    const struct history *history;
    const struct history_judged *judged;
    const struct history_rules *rules;
    bool all; /* a row for every figure; false: one row for those that share a policy or figure */
};

/* Prints the changes by commit, newest first; then the number of series and of changes, and the
 * lines and values that were ignored. */
enum ar_status history_page(const struct history_view *view, FILE *stream, enum table_form form,
                            struct ar_error *error);

/* All changes as JSON, schema allocrig.history-changes/1. */
void history_json(const struct history_view *view, FILE *stream);

/* A line for each regression that counts, as a workflow command of GitHub. */
void history_annotations(const struct history_view *view, FILE *stream);

/* The data of plots/history.gp:
 * panel,workload,policy,figure,unit,kind,place,commit,value,level,change. At most `panels` series,
 * at most one for each run, with as many different figures as possible: first series with changes
 * that count, then those with the largest other changes; without any change, the peak physical
 * bytes of the first runs. */
enum ar_status history_figure(const struct history_view *view, size_t panels, FILE *stream,
                              struct ar_error *error);
