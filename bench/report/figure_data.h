/* The plain files that the figures in plots/ are drawn from. */
#ifndef BENCH_REPORT_FIGURE_DATA_H
#define BENCH_REPORT_FIGURE_DATA_H

#include <stddef.h>
#include <stdio.h>

#include "bench/report/results_json.h"
#include "bench/report/run_record.h"
#include "bench/report/thin_series.h"

/* series-<workload>.csv: policy,event,time_s,live_bytes,reserved_bytes,physical_bytes, and draws
 * where it is the first of several: of how many. */
void figure_series_header(FILE *stream, size_t draws);
void figure_series_rows(FILE *stream, const char *policy_spec, size_t draws,
                        const struct thin_series *series);

/* slowdown.csv: workload,policy,capacity_ratio,slowdown,passed,flushes,remapped_bytes. No value
 * where it is null. With draws also those below. */
void figure_slowdown(FILE *stream, const struct slowdown_point *points, size_t count);

/* The next three have a row for each workload and policy. Of draws, else repetitions, it holds
 * medians, and further columns: runs,over (draws, repetitions),level, and for each figure _low and
 * _high: the interval of its median, held at `level`, or least and most where that is empty, since
 * the runs are too few for one. HOST_MEMORY.
 * fragmentation.csv: workload,policy,internal_mean,external_mean,unusable_mean,overhead. Runs
 * that did not finish, in any draw, have no values. */
enum ar_status figure_fragmentation(FILE *stream, const struct run_record *records, size_t count,
                                    struct ar_error *error) AR_STATUS_CHECKED;

/* latency.csv: workload,policy and percentiles in nanoseconds. */
enum ar_status figure_latency(FILE *stream, const struct run_record *records, size_t count,
                              struct ar_error *error) AR_STATUS_CHECKED;

/* pareto.csv: workload,policy,overhead,driver_share: peak physical / peak live, and the driver's
 * part of the time of the run; no value where the workload has no time but the driver's. */
enum ar_status figure_pareto(FILE *stream, const struct run_record *records, size_t count,
                             struct ar_error *error) AR_STATUS_CHECKED;

/* A workload's name as part of a file name: what is neither letter, digit, dot nor dash
 * becomes a dash; the folders of a path are dropped. Returns `text`. */
const char *figure_file_name(const char *name, char *text, size_t text_bytes);

#endif
