/* One side of a comparison: the runs of one or several results (allocrig.result/1) and counts of
 * instructions (allocrig.instructions/1), as they stand in files.
 *
 * Runs of the same policy, workload, device, way to free, host time and seed are repetitions of
 * one cell, in whichever file they stand: so the repetitions of interleaved measuring come
 * together from one file for each. */
#ifndef BENCH_REGRESS_SIDE_H
#define BENCH_REGRESS_SIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/base/status.h"
#include "sim/metrics/metrics.h"

/* One repetition. All texts are borrowed from the side's files. */
struct side_run {
    const char *file; /* the path that it stands in */
    size_t number;    /* in that file's runs, from 1 */
    bool passed;
    bool played;                 /* a request failed; else: not started, crashed, timed out */
    uint64_t first_failed_event; /* where it was played and has not passed */
    const char *cause;           /* NULL: passed */
    bool there[METRIC_COUNT];    /* the file names the metric, be it as null */
    struct metric_values metrics;
};

struct side_cell {
    const char *policy, *workload, *workload_name, *device, *frees, *host;
    const char *sha256; /* of the workload */
    bool on_card;
    uint64_t seed;
    struct side_run *runs;
    size_t run_count, run_room;
};

/* One count of instructions. */
struct side_count {
    const char *file;
    size_t number; /* in that file's rows, from 1 */
    const char *policy, *trace, *kind, *measure, *compiler;
    double value; /* per operation */
};

struct side_file {
    void *root; /* its tree */
    char *path;
};

struct side {
    struct side_cell *cells;
    size_t cell_count, cell_room;
    struct side_count *counts;
    size_t count_count, count_room;
    const char *machine; /* "host, cpu"; "": the files are of several machines */
    const char *commit;  /* of the last result; NULL: none was read */
    const char *time;    /* of the last result, ISO 8601 */
    const char *flags;   /* of the compiler, of the last result */
    bool dirty;
    struct side_file *files;
    size_t file_count, file_room;
    char machine_text[320];
};

/* Reads a file, or every file NAME.json of a folder in the order of the names. IO or
 * FORMAT. On success the caller closes it. */
enum ar_status side_read(struct side *self, const char *path,
                         struct ar_error *error) AR_STATUS_CHECKED;
void side_close(struct side *self);

/* True where both are the same cell of two sides. */
bool side_same_cell(const struct side_cell *a, const struct side_cell *b);

/* The repetition that got least far. */
const struct side_run *side_least_far(const struct side_cell *cell);

bool side_same_count(const struct side_count *a, const struct side_count *b);

/* A value for a reader: all its digits, or "null". */
void side_value_text(const struct metric_value *value, char text[40]);

/* True also where both are null. */
bool side_same_value(const struct metric_value *a, const struct metric_value *b);

/* The first repetition that has another value of the metric than the first of all; NULL: there is
 * none. */
const struct side_run *side_differs(const struct side_cell *cell, enum metric metric);

/* The first repetition that ended in another way, or at another event, than the first; NULL:
 * none. */
const struct side_run *side_ends_apart(const struct side_cell *cell);

/* Is it timed by what it is: of that class, or on a card a time, a rate or a slowdown. */
bool side_is_timed(const struct side_cell *cell, enum metric metric);

#endif
