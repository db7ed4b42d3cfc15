/* Figures and results of modelled and measured runs; the room for calls. Calls with known answers
 * are in tests/steps/model_calls. */
#include <math.h>
#include <unistd.h>
#include <sys/mman.h>

#include "bench/report/model.h"
#include "tests/support/temporary_file.h"
#include "tests/support/test.h"

TEST(medians)
{
    double three[] = {7, 1, 5}, four[] = {7, 1, 5, 2};
    assert_true(model_median(three, 3) == 5 && model_median(four, 4) == 3.5);
    assert_true(isnan(model_median(three, 0)));
}

TEST(figures_of_repetitions_are_medians)
{
    struct model_result results[] = {
        {.passed = true, .slowdown = 3, .step_ns = (double)NAN, .device_time_ns = 10},
        {.passed = false, .slowdown = 1, .step_ns = 5, .device_time_ns = 30},
        {.passed = true, .slowdown = 2, .step_ns = 7, .device_time_ns = 20}};
    assert_ok(model_repeat_results(results, 3, &test_error));
    assert_true(results[0].slowdown == 2 && results[0].step_ns == 6);
    assert_true(results[0].device_time_ns == 20 && !results[0].passed);
}

/* Ranks 1 2 3 4 5 against 2 1 4 3 5: 1 - 6 * 4 / (5 * 24) = 0.8. */
TEST(ranks_correlate)
{
    static const double a[] = {1.0, 1.1, 1.2, 1.3, 9.0};
    static const double b[] = {1.5, 1.4, 1.9, 1.8, 2.0};
    static const double back[] = {5, 4, 3, 2, 1};
    static const double equal[] = {1, 1, 1, 1, 1};
    assert_true(fabs(model_rank_correlation(a, b, 5) - 0.8) < 1e-12);
    assert_true(fabs(model_rank_correlation(a, a, 5) - 1) < 1e-12);
    assert_true(fabs(model_rank_correlation(a, back, 5) + 1) < 1e-12);
    assert_true(isnan(model_rank_correlation(a, equal, 5)));
    assert_true(isnan(model_rank_correlation(a, b, 2)));
}

TEST(errors_are_shares_of_the_measured)
{
    assert_true(fabs(model_error(200, 150) + 0.25) < 1e-12);
    assert_true(isnan(model_error(0, 150)));
}

#define RESULT_HEADER "policy_spec,workload,passed,slowdown,steady_step_ns,device_time_ns\n"

TEST(results_are_read)
{
    static const struct {
        const char *text;
        enum ar_status status;
    } cases[] = {
        {RESULT_HEADER "\"a:x=1,y=\"\"2\"\"\",w,true,1.5,,30\n"
                       "\"a:x=1,y=\"\"2\"\"\",w,true,1.7,,10\n"
                       "\"a:x=1,y=\"\"2\"\"\",w,true,1.6,,20\n",
         AR_OK},
        {RESULT_HEADER, AR_FORMAT},
        {"policy_spec,workload\na,w\n", AR_FORMAT},
        {RESULT_HEADER "a,w,true,1,1,1\nb,w,true,1,1,1\n", AR_FORMAT},
        {RESULT_HEADER "a,w,true\n", AR_FORMAT},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct temporary_file file = temporary_file(cases[i].text);
        struct model_result result;
        assert_int_equal(model_result_read(file.path, &result, &test_error), cases[i].status);
        remove(file.path);
        if (cases[i].status)
            continue;
        assert_string_equal(result.policy, "a:x=1,y=\"2\"");
        assert_true(result.passed && result.slowdown == 1.6 && result.device_time_ns == 20);
        assert_true(isnan(result.step_ns));
    }
}

/* Two that differ in the last letter only are two, and what has no room is no name. */
TEST(long_names_are_not_cut)
{
    static char names[2][MODEL_NAME_ROOM + 8], text[2 * MODEL_NAME_ROOM + 256];
    static struct model_result results[2];
    for (size_t i = 0; i < 3; i++) {
        struct ar_error error;
        size_t length = i < 2 ? 300 : MODEL_NAME_ROOM;
        char *name = names[i % 2];
        memset(name, 'a', length);
        snprintf(name + length - 1, 3, "%zu,", i);
        name[length] = '\0';
        snprintf(text, sizeof text, RESULT_HEADER "%s,w,true,1,1,1\n", name);
        const struct temporary_file file = temporary_file(text);
        assert_int_equal(model_result_read(file.path, &results[i % 2], &error),
                         i < 2 ? AR_OK : AR_FORMAT);
        assert_true(i < 2 || strstr(error.text, ":2: policy_spec and workload have fewer"));
        assert_true(i > 1 || strcmp(results[i].policy, name) == 0);
        remove(file.path);
    }
}

TEST(calls_are_read_as_they_were_written)
{
    static const struct driver_call wanted = {7, AR_DEVICE_CALL_pool_trim, 1, UINT64_MAX, 3, true};
    const struct temporary_file made = temporary_file("");
    CLOSED(call_list_close) struct call_list list;
    FILE *file = fopen(made.path, "w");
    assert_non_null(file);
    calls_csv_header(file);
    calls_csv_row(file, &wanted);
    fclose(file);
    assert_ok(calls_csv_read(made.path, &list, &test_error));
    remove(made.path);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.items[0].call, wanted.call);
    assert_int_equal(list.items[0].event, wanted.event);
    assert_int_equal(list.items[0].bytes, wanted.bytes);
    assert_true(list.items[0].ns == wanted.ns && list.items[0].refused);
    assert_int_equal(list.items[0].waited_ns, wanted.waited_ns);
}

/* Pages of the room that are there; the first and last are shared with what lies around. */
static size_t pages_there(const struct call_list *list, size_t *all)
{
    static unsigned char there[4096];
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)list->items;
    size_t bytes = list->room * sizeof *list->items, count = 0;
    first = (first + page - 1) / page * page;
    *all = (bytes - page) / page;
    assert_true(*all > 10 && *all < sizeof there);
    assert_int_equal(mincore((void *)first, *all * page, there), 0);
    for (size_t i = 0; i < *all; i++)
        count += there[i] & 1;
    return count;
}

/* What is added then moves nothing and waits for no page. */
TEST(room_for_calls_is_there_before_them)
{
    const size_t room = 20000;
    CLOSED(call_list_close) struct call_list list = {0};
    size_t all, there;
    assert_true(call_list_ready(&list, room));
    assert_int_equal(list.count, 0);
    there = pages_there(&list, &all);
    assert_int_equal(there, all);
    const struct driver_call *items = list.items, row = {.event = 7, .ns = 9};
    for (size_t i = 0; i < room; i++)
        assert_true(call_list_add(&list, &row));
    assert_ptr_equal(list.items, items);
    assert_true(call_list_add(&list, &row));
    assert_int_equal(list.count, room + 1);
    assert_int_equal(list.items[room].event, 7);
}
