/* Writes the changes in a history as a table, JSON, annotations and data of a figure. */
#ifndef BENCH_REGRESS_HISTORY_PAGE_H
#define BENCH_REGRESS_HISTORY_PAGE_H

#include <stdio.h>

#include "bench/regress/history_series.h"
#include "bench/report/table.h"

struct history_view {
    const struct history *history;
    const struct history_judged *judged;
    const struct history_rules *rules;
    bool all; /* a row for every figure; false: one row for those that share a policy or figure */
};

/* Prints the changes by commit, newest first; then the number of series and of changes, and the
 * lines and values that were ignored. */
enum ar_status history_page(const struct history_view *view, FILE *stream, enum table_form form,
                            struct ar_error *error) AR_STATUS_CHECKED;

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
                              struct ar_error *error) AR_STATUS_CHECKED;

#endif
