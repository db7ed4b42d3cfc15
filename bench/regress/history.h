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
#ifndef BENCH_REGRESS_HISTORY_H
#define BENCH_REGRESS_HISTORY_H

#include <stdio.h>

#include "bench/regress/result_set.h"

#define HISTORY_SCHEMA "allocrig.history/1"

/* One run of a line. The history owns the texts. */
struct history_run {
    const char *policy, *workload, *workload_name, *device, *frees, *host, *sha256;
    const char *cause; /* NULL: passed, or unknown */
    uint64_t seed;
    bool passed, played; /* as in struct result_run */
    uint64_t first_failed_event;
    double values[METRIC_COUNT]; /* NAN: none */
    bool timed[METRIC_COUNT];
};

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
    size_t count;
    size_t torn_bytes; /* of a last line without its end, which is ignored */
    size_t unknown;    /* columns of metrics that this program does not have */
    char **texts;      /* every text once */
    size_t text_count, text_room, text_next;
};

/* IO; FORMAT names the file and the line. On success the caller closes it. */
enum ar_status history_read(struct history *self, const char *path,
                            struct ar_error *error) AR_STATUS_CHECKED;
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
                              struct ar_error *error) AR_STATUS_CHECKED;

/* Writes the line, with its end. For history_append. */
void history_write_line(FILE *stream, const struct result_set *results,
                        const struct history_stamp *stamp);

/* Reads the line of `bytes` bytes without its end into `line`. For history_read. */
enum ar_status history_parse_line(struct history *self, const char *text, size_t bytes,
                                  struct history_line *line,
                                  struct ar_error *error) AR_STATUS_CHECKED;
void history_drop_line(struct history_line *line);

/* True for YYYY-MM-DDTHH:MM:SSZ. */
bool history_is_time(const char *text);

/* True if both have the same figures, measured on the same machine. */
bool history_same_figures(const struct history_line *a, const struct history_line *b);

#endif
