/* The folder that a suite writes: results.json, results.csv, summary.md, and in data/
 * the plain files that the figures are drawn from (bench/report/results_csv.c). */
#ifndef BENCH_SUITE_RESULT_FOLDER_H
#define BENCH_SUITE_RESULT_FOLDER_H

#include <stdbool.h>
#include <stdio.h>

#include "bench/report/output_file.h"
#include "bench/report/result_writers.h"

struct result_folder {
    char *path; /* NULL: not open */
    struct output_set *outputs;
    FILE *json, *csv, *summary;
    bool made, made_data; /* did not exist before */
};

/* Checks, before anything runs, that the folder can be created or written to, and that its files do
 * not replace the files of `outputs` or the journal (NULL: none). IO; INVALID. */
enum ar_status result_folder_check(const char *path, const struct output_set *outputs,
                                   const char *journal, struct ar_error *error) AR_STATUS_CHECKED;

/* Creates the folder and opens the three files in it as part of `outputs`. */
enum ar_status result_folder_open(struct result_folder *self, const char *path,
                                  struct output_set *outputs,
                                  struct ar_error *error) AR_STATUS_CHECKED;

/* The head of summary.md; the caller adds its tables to self->summary. */
void result_folder_summary(struct result_folder *self, const struct results *results);

/* Writes the rest. series[i] is the series of run i, or NULL; `series` NULL: there are none. */
enum ar_status result_folder_write(struct result_folder *self, const struct results *results,
                                   const struct thin_series *const *series,
                                   struct ar_error *error) AR_STATUS_CHECKED;

/* Puts all of `outputs` in their places and names them on `stream` unless that is NULL. If the
 * folder (which need not be open) contained results, reports on standard error which ones are
 * replaced; removes series and pairs of earlier suites from its data/, because they would mix with
 * these. */
enum ar_status result_folder_commit(const struct result_folder *self, struct output_set *outputs,
                                    FILE *stream, struct ar_error *error) AR_STATUS_CHECKED;

/* If nothing was written: removes the folders that were created for it. */
void result_folder_take_away(const struct result_folder *self);

/* The files belong to `outputs`. */
void result_folder_close(struct result_folder *self);

#endif
