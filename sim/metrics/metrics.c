/* The table of metrics, from the one list in metrics.def. */
#include "sim/metrics/metrics.h"

const struct metric_info *metric_info(enum metric metric)
{
    static const struct metric_info table[METRIC_COUNT] = {
#define METRIC(name, unit, better, class, definition)                                              \
    [METRIC_##name] = {#name, unit, METRIC_##better, METRIC_##class, definition},
#include "sim/metrics/metrics.def"
#undef METRIC
    };
    return &table[metric];
}
