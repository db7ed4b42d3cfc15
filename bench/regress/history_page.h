/* The changes in a history for people and for programs. */
#ifndef BENCH_REGRESS_HISTORY_PAGE_H
#define BENCH_REGRESS_HISTORY_PAGE_H

#include <stdio.h>

#include "bench/regress/history_series.h"
#include "bench/report/table.h"

struct history_view {
    const struct history *history;
    const struct history_judged *judged;
    const struct history_rules *rules;
    bool all; /* a row for every figure; else those that share a policy or a figure are one */
};

/* Changes by commit, newest first; then what was looked at, and what could not be told. */
enum ar_status history_page(const struct history_view *view, FILE *stream, enum table_form form,
                            struct ar_error *error) AR_STATUS_CHECKED;

/* All changes as JSON, schema allocrig.history-changes/1. */
void history_json(const struct history_view *view, FILE *stream);

/* A line for each regression that counts, as GitHub shows them. */
void history_annotations(const struct history_view *view, FILE *stream);

/* The data of plots/history.gp:
 * panel,workload,policy,figure,unit,kind,place,commit,value,level,change. At most `panels` series,
 * one for each cell, as many different figures as there are: those with changes that count, then
 * those with the largest others; where none has changed, peak physical bytes of the first cells. */
enum ar_status history_figure(const struct history_view *view, size_t panels, FILE *stream,
                              struct ar_error *error) AR_STATUS_CHECKED;

#endif
