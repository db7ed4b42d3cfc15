/* A result set: the results of one version of the program, from one file or a folder of files: runs
 * (allocrig.result/1) and counts of instructions (allocrig.instructions/1).
 *
 * Runs with the same policy, workload, device, free mode, host time and seed are repetitions of one
 * row, in any of the files: measurements in turn write a file for each repetition. */
#pragma once

#include "allocators/base/status.h"
#include "sim/metrics/metrics.h"

/* One repetition. Texts are borrowed from the files of the result set. */
struct result_run {
    const char *file; /* its path */
    size_t number;    /* among the runs of the file, from 1 */
    bool passed;
    bool played;                 /* a request failed; false: not started, crashed, timed out */
    uint64_t first_failed_event; /* if `played` */
    const char *cause;           /* NULL: passed */
    bool there[METRIC_COUNT];    /* the file has the metric, possibly as null */
    struct metric_values metrics;
};

struct result_row {
    const char *policy, *workload, *workload_name, *device, *frees, *host;
    const char *resolved_device; /* the same for each spec of it */
    const char *sha256;          /* of the workload */
    bool on_card;
    uint64_t seed;
    struct result_run *runs;
    size_t run_count, run_room;
};

/* One count of instructions. */
struct instruction_count {
    const char *file;
    size_t number; /* among the rows of the file, from 1 */
    const char *policy, *trace, *kind, *measure, *compiler;
    double value; /* per operation */
};

struct result_file {
    void *root; /* its tree */
    char *path;
};

struct result_set {
    struct result_row *rows;
    size_t row_count, row_room;
    struct instruction_count *counts;
    size_t count_count, count_room;
    const char *machine; /* "host, cpu"; "" for several machines */
    const char *commit;  /* of the last result; NULL: none was read */
    const char *time;    /* of the last result, ISO 8601 */
    const char *flags;   /* of the compiler, of the last result */
    bool dirty;
    struct result_file *files;
    size_t file_count, file_room;
    char machine_text[320];
};

/* Reads a file, or every file NAME.json of a folder, in the order of their names. IO or FORMAT. On
 * success the caller closes it. */
enum ar_status result_set_read(struct result_set *self, const char *path, struct ar_error *error);
void result_set_close(struct result_set *self);

/* True if the rows of two result sets are of the same run. */
bool result_row_same(const struct result_row *a, const struct result_row *b);

/* The repetition that failed first; if all passed, the first one. */
const struct result_run *result_row_least_far(const struct result_row *row);

bool instruction_count_same(const struct instruction_count *a, const struct instruction_count *b);

/* The value with all its digits, or "null". */
void result_value_text(const struct metric_value *value, char text[40]);

/* True also if both are null. */
bool result_value_same(const struct metric_value *a, const struct metric_value *b);

/* The first repetition whose value of the metric differs from the first one; NULL: none. */
const struct result_run *result_row_differs(const struct result_row *row, enum metric metric);

/* The first repetition that ended in another way, or at another event, than the first one; NULL:
 * none. */
const struct result_run *result_row_ends_apart(const struct result_row *row);

/* True for a metric of the timed class and, on a card, for times, rates and slowdowns. */
bool result_row_is_timed(const struct result_row *row, enum metric metric);
