/* Which slowdown a group of runs is held against each other by. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bench/report/slowdown_metric.h"

static struct metric_value real(double value)
{
    return (struct metric_value){.kind = METRIC_REAL, .real = value};
}

/* A run that passed, with so many steps in two seconds. */
static struct run_record run_of(double steps)
{
    struct run_record record = {.passed = true};
    record.metrics.at[METRIC_device_time_ns] = real(2e9);
    record.metrics.at[METRIC_steps_per_s] = real(steps / 2);
    record.metrics.at[METRIC_slowdown] = real(1.3);
    record.metrics.at[METRIC_steady_slowdown] = real(1.01);
    return record;
}

static void steady_where_all_have_it(void **state)
{
    (void)state;
    struct run_record runs[] = {run_of(2), run_of(100), run_of(7)};
    assert_int_equal(slowdown_metric_of(runs, runs + 3), METRIC_steady_slowdown);
    assert_int_equal(slowdown_metric_of(runs, runs + 1), METRIC_steady_slowdown);
}

static void whole_where_one_lacks_it(void **state)
{
    (void)state;
    struct run_record runs[] = {run_of(7), run_of(7), run_of(7)};
    runs[1].metrics.at[METRIC_steady_slowdown] = (struct metric_value){.kind = METRIC_NULL};
    assert_int_equal(slowdown_metric_of(runs, runs + 3), METRIC_slowdown);
    assert_int_equal(slowdown_metric_of(runs + 2, runs + 3), METRIC_steady_slowdown);
}

/* The only step is the first one, with all that libraries load in it. */
static void one_step_is_not_steady(void **state)
{
    (void)state;
    struct run_record runs[] = {run_of(1), run_of(1)};
    assert_int_equal(slowdown_metric_of(runs, runs + 2), METRIC_slowdown);
}

static void who_did_not_finish_does_not_count(void **state)
{
    (void)state;
    struct run_record runs[] = {{.passed = false}, run_of(7), {.passed = false}};
    assert_int_equal(slowdown_metric_of(runs, runs + 3), METRIC_steady_slowdown);
    assert_int_equal(slowdown_metric_of(runs, runs + 1), METRIC_slowdown);
    assert_int_equal(slowdown_metric_of(runs, runs), METRIC_slowdown);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steady_where_all_have_it),
        cmocka_unit_test(whole_where_one_lacks_it),
        cmocka_unit_test(one_step_is_not_steady),
        cmocka_unit_test(who_did_not_finish_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
