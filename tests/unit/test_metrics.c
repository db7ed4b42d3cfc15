/* The table of metrics: unique names, all fields present, values with and without bytes. */
#include "sim/metrics/metrics.h"
#include "tests/support/test.h"

TEST(every_metric_is_described)
{
    for (int i = 0; i < METRIC_COUNT; i++) {
        const struct metric_info *info = metric_info((enum metric)i);
        assert_true(info->name[0] && info->unit[0] && info->definition[0]);
        for (int other = 0; other < i; other++)
            assert_string_not_equal(info->name, metric_info((enum metric)other)->name);
    }
    const struct metric_info *physical = metric_info(METRIC_peak_physical_bytes);
    assert_string_equal(physical->name, "peak_physical_bytes");
    assert_string_equal(physical->unit, "bytes");
    assert_int_equal(physical->better, METRIC_LOWER);
    assert_int_equal(physical->class, METRIC_EXACT);
    assert_int_equal(metric_info(METRIC_ops_per_s)->class, METRIC_TIMED);
}

/* Reports of latencies fill five metrics from the first on. */
TEST(percentiles_stand_side_by_side)
{
    static const enum metric first[] = {METRIC_alloc_ns_p50, METRIC_free_ns_p50,
                                        METRIC_alloc_total_ns_p50, METRIC_free_total_ns_p50};
    static const char *const endings[] = {"_p50", "_p90", "_p99", "_p999", "_max"};
    for (size_t i = 0; i < COUNT(first); i++)
        for (int j = 0; j < 5; j++) {
            const char *name = metric_info((enum metric)(first[i] + (enum metric)j))->name;
            size_t length = strlen(name), ending = strlen(endings[j]);
            assert_string_equal(name + length - ending, endings[j]);
        }
}

TEST(a_ratio_of_nothing_is_null)
{
    struct metric_values values;
    memset(&values, 0, sizeof values);
    metric_set_ratio(&values, METRIC_overhead, 3, 2);
    assert_int_equal(values.at[METRIC_overhead].kind, METRIC_REAL);
    assert_true(metric_number(&values, METRIC_overhead, -1) > 1.49);
    metric_set_ratio(&values, METRIC_overhead, 3, 0);
    assert_int_equal(values.at[METRIC_overhead].kind, METRIC_NULL);
    assert_true(metric_number(&values, METRIC_overhead, -1) < 0);
    metric_set(&values, METRIC_allocs, 7);
    assert_true(metric_number(&values, METRIC_allocs, -1) > 6.9);
}
