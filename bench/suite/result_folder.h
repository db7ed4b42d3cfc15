/* The folder that a suite leaves behind: results.json, results.csv, summary.md, and in data/
 * the plain files that the figures are drawn from (figure_data.h). */
#ifndef BENCH_SUITE_RESULT_FOLDER_H
#define BENCH_SUITE_RESULT_FOLDER_H

#include <stdio.h>

#include "bench/report/output_file.h"
#include "bench/report/results_json.h"
#include "bench/report/thin_series.h"

struct result_folder {
    char *path; /* NULL: not open */
    struct output_set *outputs;
    FILE *json, *csv, *summary;
};

/* Makes the folder and opens the three files in it as part of `outputs`. */
enum status result_folder_open(struct result_folder *self, const char *path,
                               struct output_set *outputs, struct error *error) STATUS_CHECKED;

/* The head of summary.md; the caller adds its tables to self->summary. */
void result_folder_summary(struct result_folder *self, const struct result_set *set);

/* Writes the rest. thin[i] is the series of record i, or NULL. Series of earlier suites that
 * are no longer true are removed from data/. */
enum status result_folder_write(struct result_folder *self, const struct result_set *set,
                                const struct thin_series *const *thin,
                                struct error *error) STATUS_CHECKED;

/* Frees what it holds; the files belong to `outputs`. */
void result_folder_close(struct result_folder *self);

#endif
