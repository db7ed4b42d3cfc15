/* The folder that a suite leaves behind: results.json, results.csv, summary.md, and in data/
 * the plain files that the figures are drawn from (figure_data.h). */
#ifndef BENCH_SUITE_RESULT_FOLDER_H
#define BENCH_SUITE_RESULT_FOLDER_H

#include <stdbool.h>
#include <stdio.h>

#include "bench/report/output_file.h"
#include "bench/report/results_json.h"
#include "bench/report/thin_series.h"

struct result_folder {
    char *path; /* NULL: not open */
    struct output_set *outputs;
    FILE *json, *csv, *summary;
    bool made, made_data; /* were not there before */
};

/* Looks, before anything runs, whether the folder can be made or written to, and whether it would
 * replace what is written beside it: the files of `outputs`, or the journal (NULL: none). IO;
 * INVALID. */
enum ar_status result_folder_check(const char *path, const struct output_set *outputs,
                                   const char *journal, struct ar_error *error) AR_STATUS_CHECKED;

/* Makes the folder and opens the three files in it as part of `outputs`. */
enum ar_status result_folder_open(struct result_folder *self, const char *path,
                                  struct output_set *outputs,
                                  struct ar_error *error) AR_STATUS_CHECKED;

/* The head of summary.md; the caller adds its tables to self->summary. */
void result_folder_summary(struct result_folder *self, const struct result_set *set);

/* Writes the rest. thin[i] is the series of record i, or NULL. */
enum ar_status result_folder_write(struct result_folder *self, const struct result_set *set,
                                   const struct thin_series *const *thin,
                                   struct ar_error *error) AR_STATUS_CHECKED;

/* Puts all of `outputs` in their places and names them on `stream` (NULL: does not). Where the folder
 * (which need not be open) held results, says on standard error which ones these replaced; series and
 * pairs of earlier suites, which would mix into these results, are removed from its data/. */
enum ar_status result_folder_commit(const struct result_folder *self, struct output_set *outputs,
                                    FILE *stream, struct ar_error *error) AR_STATUS_CHECKED;

/* Where nothing was written: folders that were made for it go again. */
void result_folder_take_away(const struct result_folder *self);

/* Frees what it holds; the files belong to `outputs`. */
void result_folder_close(struct result_folder *self);

#endif
