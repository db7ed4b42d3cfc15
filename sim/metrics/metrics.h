/* The metrics as data: their list and the values of one run. The engine computes them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum metric {
#define METRIC(name, unit, better, class, definition) METRIC_##name,
#include "sim/metrics/metrics.def"
#undef METRIC
    METRIC_COUNT
};
/* From here on null metrics are left out (metrics.def). */
#define METRIC_FIRST_OPTIONAL METRIC_peak_pinned_live_bytes

enum metric_better { METRIC_LOWER, METRIC_HIGHER, METRIC_NEITHER };
enum metric_class { METRIC_EXACT, METRIC_TIMED };

struct metric_info {
    const char *name;
    const char *unit;
    enum metric_better better;
    enum metric_class class;
    const char *definition;
};

const struct metric_info *metric_info(enum metric metric);

enum metric_kind { METRIC_NULL, METRIC_INTEGER, METRIC_REAL };

struct metric_value {
    enum metric_kind kind;
    uint64_t integer;
    double real;
};

struct metric_values {
    struct metric_value at[METRIC_COUNT];
};

static inline void metric_set(struct metric_values *values, enum metric metric, uint64_t integer)
{
    values->at[metric] = (struct metric_value){.kind = METRIC_INTEGER, .integer = integer};
}

static inline void metric_set_real(struct metric_values *values, enum metric metric, double real)
{
    values->at[metric] = (struct metric_value){.kind = METRIC_REAL, .real = real};
}

/* part / whole, or null if whole is 0. */
static inline void metric_set_ratio(struct metric_values *values, enum metric metric, double part,
                                    double whole)
{
    if (whole > 0)
        metric_set_real(values, metric, part / whole);
    else
        values->at[metric] = (struct metric_value){.kind = METRIC_NULL};
}

/* The value as a number; `absent` if it is null. */
static inline double metric_number(const struct metric_values *values, enum metric metric,
                                   double absent)
{
    const struct metric_value *value = &values->at[metric];
    return value->kind == METRIC_INTEGER ? (double)value->integer
           : value->kind == METRIC_REAL  ? value->real
                                         : absent;
}
