/* The history of a project's results: a file that only grows, one line a commit.
 *
 * 1. A line is one JSON object, schema allocrig.history/1: the commit and its time, the machine,
 *    the metrics that it has columns for, a run for each cell of the results (figures that have a
 *    better direction, in that order; of timed ones the median of the repetitions), and counts of
 *    instructions. The same results give the same line.
 * 2. Lines are added whole, under a lock, by one write, and brought to the disk. What a process
 *    that died while it wrote has left, a last line without its end, is passed over by readers and
 *    cut off by the next one that adds.
 * 3. Lines of different branches can be merged in any order (git: merge=union): they are read in
 *    the order of their times, equal times in that of the file.
 * 4. Any other line that is no such object is an error with its number, and nothing is changed. */
#ifndef BENCH_REGRESS_HISTORY_H
#define BENCH_REGRESS_HISTORY_H

#include <stdio.h>

#include "bench/regress/result_set.h"

#define HISTORY_SCHEMA "allocrig.history/1"

/* One run of a line. Texts are the history's. */
struct history_run {
    const char *policy, *workload, *workload_name, *device, *frees, *host, *sha256;
    const char *cause; /* NULL: passed, or not known */
    uint64_t seed;
    bool passed, played; /* as in struct side_run */
    uint64_t first_failed_event;
    double values[METRIC_COUNT]; /* NAN: none */
    bool timed[METRIC_COUNT];
};

struct history_line {
    size_t number; /* in the file, from 1 */
    const char *commit, *time, *machine, *flags;
    struct history_run *runs;
    size_t run_count;
    struct side_count *counts;
    size_t count_count;
};

struct history {
    struct history_line *lines; /* oldest first */
    size_t count;
    size_t torn_bytes; /* of a last line without its end, which was left out */
    size_t unknown;    /* columns of metrics that this program does not have */
    char **texts;      /* every text once */
    size_t text_count, text_room, text_next;
};

/* IO; FORMAT names file and line. On success the caller closes it. */
enum ar_status history_read(struct history *self, const char *path,
                            struct ar_error *error) AR_STATUS_CHECKED;
void history_close(struct history *self);

struct history_stamp {
    const char *commit; /* NULL: what the results say */
    const char *time;   /* of the commit, YYYY-MM-DDTHH:MM:SSZ; NULL: when the results were made */
};

struct history_added {
    bool added;       /* false: the commit has a line with these very figures */
    size_t cut_bytes; /* of a torn last line that was cut off */
};

/* Adds a line for the results; makes the file where it is not there. INVALID: results of a tree
 * with changes, of no commit, or of several machines; no such time. Errors as history_read. */
enum ar_status history_append(const char *path, const struct side *results,
                              const struct history_stamp *stamp, struct history_added *added,
                              struct ar_error *error) AR_STATUS_CHECKED;

/* Writes the line, with its end. For history_append. */
void history_write_line(FILE *stream, const struct side *results,
                        const struct history_stamp *stamp);

/* Reads the line of `bytes` bytes without its end into `line`. For history_read. */
enum ar_status history_parse_line(struct history *self, const char *text, size_t bytes,
                                  struct history_line *line,
                                  struct ar_error *error) AR_STATUS_CHECKED;
void history_drop_line(struct history_line *line);

/* True for YYYY-MM-DDTHH:MM:SSZ. */
bool history_is_time(const char *text);

/* True where both hold the same figures, made on the same machine. */
bool history_same_figures(const struct history_line *a, const struct history_line *b);

#endif
