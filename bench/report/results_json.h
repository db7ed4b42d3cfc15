/* The result record, `allocrig.result/1`: results/schema.json describes it. */
#ifndef BENCH_REPORT_RESULTS_JSON_H
#define BENCH_REPORT_RESULTS_JSON_H

#include <stddef.h>
#include <stdio.h>

#include "bench/report/run_record.h"
#include "bench/statistics/statistics.h"
#include "bench/machine/environment.h"

#define RESULT_SCHEMA "allocrig.result/1"

/* One point of the curve "slowdown against capacity". */
struct slowdown_point {
    const char *workload; /* names for people, borrowed */
    const char *policy_spec;
    double capacity_ratio;        /* capacity / peak live */
    uint64_t capacity_bytes;      /* of the first draw */
    bool passed;                  /* in all draws */
    struct metric_value slowdown; /* over draws the median */
    struct metric_value flushes, remapped_bytes;
    struct statistic over_draws; /* of the slowdown; count 0: of one draw, or not passed */
    size_t draws, passed_draws;
};

struct result_set {
    const struct environment *environment;
    const char *suite; /* its name, or NULL */
    const struct run_record *records;
    size_t record_count;
    const struct slowdown_point *points;
    size_t point_count;
};

/* All that differs from machine to machine is in `context` and in the timed metrics. Errors
 * show in the stream. */
void results_json_write(FILE *stream, const struct result_set *set);

#endif
