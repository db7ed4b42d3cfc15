/* What the results of a suite are written as. Every writer takes grouped results (results.h);
 * errors of the stream show in the stream. */
#pragma once

#include "bench/report/data_writer.h"
#include "bench/report/results.h"
#include "bench/report/run_output.h"
#include "bench/report/table.h"

/* ---- all runs ------------------------------------------------------------------------------- */

#define RESULT_SCHEMA "allocrig.result/1"

/* results.json: the object that results/schema.json describes. All that differs from machine to
 * machine is in `context` and in the timed metrics. */
void results_json_write(FILE *stream, const struct results *results);

/* Its `context`: where and how the results were made. */
void context_json_write(struct json_writer *json, const struct environment *environment);

/* The card of the environment for people, with warnings if its clocks were reduced or other
 * processes used it. Nothing without a card. */
void context_card_print(FILE *stream, const struct environment *environment);

/* results.csv: a row for each run, a column for each metric. */
void results_csv_write(FILE *stream, const struct results *results);
/* The columns before those of the metrics, which describe the run. NULL: no more. */
const char *results_csv_run_column(size_t index, const char **definition);

/* JUnit XML, which services for continuous integration show: a suite for each group, a case for
 * each run. A run that did not finish is a failure, one whose process died or exceeded its time an
 * error; one that the device cannot serve is skipped. */
void junit_xml_write(FILE *stream, const struct results *results);

/* Writes a text as an XML attribute; a character that XML does not allow becomes U+FFFD. */
void xml_text(FILE *stream, const char *text);
void xml_attribute(FILE *stream, const char *name, const char *value); /* ` NAME="VALUE"` */

/* OpenMetrics text for Prometheus: a gauge for each metric, named `allocrig_` and its name in base
 * units: `alloc_ns_p50` becomes allocrig_alloc_p50_seconds. Metrics that no run has are left
 * out. */
void openmetrics_write(FILE *stream, const struct results *results);

#define OPENMETRICS_NAME_BYTES 96
/* The name of a metric, its unit ("" if it has none) and the divisor of its values. */
const char *openmetrics_name(const struct metric_info *info, char name[OPENMETRICS_NAME_BYTES],
                             const char **unit, double *divisor);

/* ---- data of the figures in plots/ ---------------------------------------------------------- */

/* pairs.csv: a row for each policy, workload and metric, compared in pairs with the first policy of
 * its group: medians of differences and ratios with their intervals at `level` (empty: too few
 * pairs for an interval). */
void pairs_csv_write(FILE *stream, const struct results *results);

/* series-<workload>.csv: policy,event,time_s,live_bytes,reserved_bytes,physical_bytes,passed, and
 * the number of replicates if this is the first of several. If `passed` is false, the last row of
 * the policy is the event of the first failed request. */
void figure_series_header(FILE *stream, size_t replicates);
void figure_series_rows(FILE *stream, const struct run_record *record, size_t replicates,
                        const struct thin_series *series);

/* The other files. slowdown.csv has a row for each point of the curve; the others have one for each
 * workload and policy on the first device: its run, or the medians of its replicates, else of its
 * repetitions. Medians have further columns: runs,over (draws, repetitions),level, and for each
 * figure _low and _high: the interval of the median at `level`, or, if `level` is empty because
 * there are too few runs, the least and the most.
 *
 *   fragmentation.csv  internal_mean,external_mean,unusable_mean,overhead
 *   slowdown.csv       capacity_ratio,slowdown,passed,flushes,remapped_bytes
 *   latency.csv        percentiles of host time in ns
 *   pareto.csv         overhead,driver_share (driver time / time of the run); only ranked policies
 *                      that finished; no driver_share if only the driver takes time */
enum figure_file {
    FIGURE_FRAGMENTATION,
    FIGURE_SLOWDOWN,
    FIGURE_LATENCY,
    FIGURE_PARETO,
    FIGURE_FILES
};
void figure_write(FILE *stream, const struct results *results, enum figure_file file);
/* The metric of a column of one of the files; METRIC_COUNT: there is no such column. `share`: the
 * column is that divided by the time of the run. */
enum metric figure_column_metric(const char *name, bool *share);

/* The name of a workload as part of a file name, without folders: characters other than letters,
 * digits, dots and dashes become dashes. Returns `text`. */
const char *figure_file_name(const char *name, char *text, size_t text_bytes);

/* ---- tables --------------------------------------------------------------------------------- */

#define RESULTS_TITLE_ROOM 512
/* "frees ordered, host none, sim h100 addresses=random": what the line above a table says of a run
 * beside its capacity. Returns `text`. */
const char *results_conditions(const struct run_record *record, char text[RESULTS_TITLE_ROOM]);

typedef enum ar_status result_table(const struct results *results, FILE *stream,
                                    enum table_form form, struct ar_error *error);

/* What `run` prints first: memory, fragmentation and driver cost of each policy, best first. */
result_table results_table_print;
/* Host latency and throughput. */
result_table latency_table_print;
/* Repeated runs: medians of what was timed, with their intervals. */
result_table repetitions_table_print;
/* Replicates: the median with its interval from six on, least and most. */
result_table spread_table_print;
/* Every policy compared in pairs of replicates with the first one of its group. */
result_table pairs_table_print;

/* The metric of a column of the memory table, by its heading: the nth from 0 of that heading;
 * METRIC_COUNT past the last. */
enum metric results_column_metric(const char *heading, size_t nth);

/* Sentences under the tables: workloads without a slowdown and why (`verified`: the memory was
 * checked); replicates that are all the same. Nothing if there are none. */
void results_notes_print(FILE *stream, const struct results *results, bool verified);
/* Under the table of host times: workloads that are too short for their throughput, if any. */
void throughput_note_print(FILE *stream, const struct results *results);
