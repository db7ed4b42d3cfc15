/* The files that a suite writes in addition to its tables, and those of them that hold the events
 * of runs: the functions that fill them in during a run or at its end. */
#pragma once

#include "bench/report/output_file.h"
#include "bench/report/result_writers.h"
#include "bench/report/run_output.h"
#include "bench/suite/plan.h"

/* The name of the option, and whether the file holds the events of one run. (`chrome` holds events
 * too: of all runs in this process, or of one in a process of its own.) */
#define SUITE_FILES(X)                                                                             \
    X(json, false)                                                                                 \
    X(csv, false)                                                                                  \
    X(placements, true)                                                                            \
    X(series, true)                                                                                \
    X(stats, true)                                                                                 \
    X(calls, true)                                                                                 \
    X(snapshot, true)                                                                              \
    X(chrome, false)                                                                               \
    X(hdr, true)                                                                                   \
    X(latex, false)                                                                                \
    X(junit, false)                                                                                \
    X(openmetrics, false)

enum suite_file {
#define X(name, one_run) SUITE_FILE_##name,
    SUITE_FILES(X)
#undef X
        SUITE_FILE_COUNT
};

#define SUITE_CHROME_MOST 100000

/* The path of each; NULL: not wanted; "-": standard output, and then no table. */
struct suite_files {
    const char *path[SUITE_FILE_COUNT];
    const char *hdr_of;   /* the histogram of `hdr`; NULL: alloc_ns */
    uint64_t chrome_most; /* values and driver calls of `chrome`; 0: all */
    const char *journal;  /* of the finished runs; NULL: not wanted */
};

const char *suite_file_name(enum suite_file file);
bool suite_file_holds_one_run(enum suite_file file);

/* The first file wanted that holds one run; SUITE_FILE_COUNT: none. */
enum suite_file suite_files_of_one_run(const struct suite_files *files);

struct run_files {
    FILE *const *streams; /* by enum suite_file; NULL: not wanted */
    const char *hdr_of;
    struct call_list calls; /* not yet written */
    size_t calls_most;      /* so many are kept */
    struct run_snapshot snapshot;
    size_t count;                      /* runs of the plan */
    struct chrome_trace *chromes;      /* of each; NULL: not wanted */
    struct observer *chrome_observers; /* of each */
    /* Of all runs: for the streams, the snapshot, the end, the histograms. */
    struct observer events, memory, end, timed;
    bool alone; /* the run has a process of its own */
};

/* INVALID for an unknown histogram. The caller keeps `streams`. HOST_MEMORY. */
enum ar_status run_files_open(struct run_files *self, FILE *const *streams,
                              const struct suite_files *files, const struct plan *plan,
                              struct ar_error *error);
void run_files_close(struct run_files *self);

/* The observers of the run of that index; and those of the pass that reads the clock, if it is a
 * run of its own. NULL: none. */
const struct observer *run_files_observer(const struct run_files *self, size_t index);
const struct observer *run_files_timed(const struct run_files *self);

/* Writes what is left when all runs have ended. */
enum ar_status run_files_finish(const struct run_files *self, struct ar_error *error);

/* Writes the header lines. */
void run_files_headers(FILE *const *streams);

/* ---- the folder of results ----------------------------------------------------------------- */

/* The folder that a suite writes: results.json, results.csv, summary.md, and in data/
 * the plain files that the figures are drawn from (bench/report/results_csv.c). */

struct result_folder {
    char *path; /* NULL: not open */
    struct output_set *outputs;
    FILE *json, *csv, *summary;
    bool made, made_data; /* did not exist before */
};

/* Checks, before anything runs, that the folder can be created or written to, and that its files do
 * not replace the files of `outputs` or the journal (NULL: none). IO; INVALID. */
enum ar_status result_folder_check(const char *path, const struct output_set *outputs,
                                   const char *journal, struct ar_error *error);

/* Creates the folder and opens the three files in it as part of `outputs`. */
enum ar_status result_folder_open(struct result_folder *self, const char *path,
                                  struct output_set *outputs, struct ar_error *error);

/* The head of summary.md; the caller adds its tables to self->summary. */
void result_folder_summary(struct result_folder *self, const struct results *results);

/* Writes the rest. series[i] is the series of run i, or NULL; `series` NULL: there are none. */
enum ar_status result_folder_write(struct result_folder *self, const struct results *results,
                                   const struct thin_series *const *series, struct ar_error *error);

/* Puts all of `outputs` in their places and names them on `stream` unless that is NULL. If the
 * folder (which need not be open) contained results, reports on standard error which ones are
 * replaced; removes series and pairs of earlier suites from its data/, because they would mix with
 * these. */
enum ar_status result_folder_commit(const struct result_folder *self, struct output_set *outputs,
                                    FILE *stream, struct ar_error *error);

/* If nothing was written: removes the folders that were created for it. */
void result_folder_take_away(const struct result_folder *self);

/* The files belong to `outputs`. */
void result_folder_close(struct result_folder *self);
