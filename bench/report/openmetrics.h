/* Runs as OpenMetrics text, which Prometheus and its kin take in: a gauge for each metric. */
#ifndef BENCH_REPORT_OPENMETRICS_H
#define BENCH_REPORT_OPENMETRICS_H

#include <stddef.h>
#include <stdio.h>

#include "bench/report/run_record.h"

#define OPENMETRICS_NAME_BYTES 96

/* Names are those of the metrics with `allocrig_` before them, in base units: `alloc_ns_p50` becomes
 * allocrig_alloc_p50_seconds. Metrics that no run has are left out. */
void openmetrics_write(FILE *stream, const struct run_record *records, size_t count);

/* The name of a metric, its unit ("" where it has none) and what its values are divided by. */
const char *openmetrics_name(const struct metric_info *info, char name[OPENMETRICS_NAME_BYTES],
                             const char **unit, double *divisor);

#endif
