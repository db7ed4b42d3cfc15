/* The comparison of modelled and measured runs, on made-up calls with known answers. */
#include <math.h>
#include <unistd.h>
#include <sys/mman.h>

#include "bench/report/model.h"
#include "tests/support/temporary_file.h"
#include "tests/support/test.h"

static struct driver_call call(enum ar_device_call kind, uint64_t bytes, uint64_t ns)
{
    return (struct driver_call){.call = kind, .bytes = bytes, .ns = ns, .waited_ns = ns / 10};
}

TEST(calls_are_paired_and_counted)
{
    struct driver_call card[] = {
        call(AR_DEVICE_CALL_alloc, 100, 1000), call(AR_DEVICE_CALL_alloc, 100, 1000),
        call(AR_DEVICE_CALL_free, 100, 50), call(AR_DEVICE_CALL_alloc, AR_GIB, 9000),
        call(AR_DEVICE_CALL_alloc, 100, 1000)};
    struct driver_call sim[] = {
        call(AR_DEVICE_CALL_alloc, 100, 2000), call(AR_DEVICE_CALL_alloc, 100, 2001),
        call(AR_DEVICE_CALL_free, 100, 25), call(AR_DEVICE_CALL_alloc, AR_GIB, 1),
        call(AR_DEVICE_CALL_alloc, 100, 499)};
    struct call_list left = {card, 5, 5};
    struct call_list right = {sim, 5, 5};
    struct model_cell cell = {.large = NULL};
    assert_ok(model_compare(&cell, &left, &right, &test_error));
    assert_true(cell.same_calls);
    const struct model_kind *alloc = &cell.kinds[AR_DEVICE_CALL_alloc];
    assert_int_equal(alloc->count, 4);
    assert_int_equal(alloc->small, 3);
    assert_int_equal(alloc->met, 1); /* 2.000 is within, 2.001 and 1 / 2.004 are not */
    assert_int_equal(cell.kinds[AR_DEVICE_CALL_free].met, 1);
    assert_true(cell.all.card_ns == 12050 && cell.all.sim_ns == 4526);
    assert_true(cell.all.card_waited_ns == 1205);
    assert_int_equal(cell.large_count, 1);
    assert_int_equal(cell.large[0].card.ns, 9000);
    model_cell_close(&cell);
    sim[2].bytes = 101;
    assert_ok(model_compare(&cell, &left, &right, &test_error));
    assert_false(cell.same_calls);
    model_cell_close(&cell);
    right.count = 1; /* what has no partner is left over */
    assert_ok(model_compare(&cell, &left, &right, &test_error));
    assert_false(cell.same_calls);
    assert_int_equal(cell.all.count, 1);
    model_cell_close(&cell);
}

/* Four runs, of which one made another call: three count. Each of these has one call that takes
 * long, so the calls' medians have none of that time, and the runs' sums do. */
TEST(repetitions_become_one)
{
    struct driver_call one[] = {call(AR_DEVICE_CALL_alloc, 100, 9000),
                                call(AR_DEVICE_CALL_alloc, 100, 1000),
                                call(AR_DEVICE_CALL_free, 100, 50)};
    struct driver_call two[] = {call(AR_DEVICE_CALL_alloc, 100, 1200),
                                call(AR_DEVICE_CALL_alloc, 100, 8000),
                                call(AR_DEVICE_CALL_free, 100, 60)};
    struct driver_call other[] = {call(AR_DEVICE_CALL_alloc, 100, 90),
                                  call(AR_DEVICE_CALL_alloc, 100, 90),
                                  call(AR_DEVICE_CALL_free, 200, 90)};
    struct driver_call three[] = {call(AR_DEVICE_CALL_alloc, 100, 1100),
                                  call(AR_DEVICE_CALL_alloc, 100, 1500),
                                  call(AR_DEVICE_CALL_free, 100, 8000)};
    struct driver_call sim[] = {call(AR_DEVICE_CALL_alloc, 100, 1000),
                                call(AR_DEVICE_CALL_alloc, 100, 1000),
                                call(AR_DEVICE_CALL_free, 100, 55)};
    struct call_list runs[] = {{one, 3, 3}, {two, 3, 3}, {other, 3, 3}, {three, 3, 3}};
    struct call_list modelled = {sim, 3, 3};
    CLOSED(model_cell_close) struct model_cell cell = {.large = NULL};
    assert_ok(model_repeat_compare(&cell, runs, 4, &modelled, &test_error));
    assert_true(one[0].ns == 1200 && one[1].ns == 1500 && one[2].ns == 60);
    assert_true(one[0].waited_ns == 120);
    assert_true(cell.kinds[AR_DEVICE_CALL_alloc].card_ns == 2700 && cell.all.met == 3);
    assert_true(cell.all.card_ns == 10050); /* of 10050, 9260, 10600 */
    assert_true(cell.all.card_waited_ns == 1005 && cell.all.sim_ns == 2055);
    assert_true(cell.runs == 4 && cell.again_count == 2 && cell.same_calls);
    assert_true(cell.again[0].card_ns == 10050 && cell.again[0].sim_ns == 9260);
    assert_true(cell.again[0].met == 1 && cell.again[1].small == 3);
}

/* Of two middle ones the mean; a call to whole ns, upwards. */
TEST(of_an_even_number_the_middle_counts)
{
    struct driver_call calls[4][1], sim[] = {call(AR_DEVICE_CALL_alloc, 100, 100)};
    static const uint64_t ns[] = {400, 103, 200, 100};
    struct call_list runs[4], modelled = {sim, 1, 1};
    struct model_cell cell = {.large = NULL};
    for (size_t i = 0; i < 4; i++) {
        calls[i][0] = call(AR_DEVICE_CALL_alloc, 100, ns[i]);
        runs[i] = (struct call_list){calls[i], 1, 1};
    }
    assert_ok(model_repeat_compare(&cell, runs, 4, &modelled, &test_error));
    assert_true(calls[0][0].ns == 152 && cell.all.card_ns == 151.5);
    model_cell_close(&cell);
    assert_ok(model_repeat_compare(&cell, &runs[2], 1, &modelled, &test_error));
    assert_true(cell.runs == 1 && cell.again_count == 0 && cell.all.card_ns == 200);
    model_cell_close(&cell);
    double three[] = {7, 1, 5};
    assert_true(model_median(three, 3) == 5 && isnan(model_median(three, 0)));
}

/* Its times are not computed with: as doubles these two would be one ns less, and more than there
 * is. */
TEST(one_run_is_as_it_was_read)
{
    static const uint64_t odd = (UINT64_C(1) << 53) + 1;
    struct driver_call card[] = {call(AR_DEVICE_CALL_alloc, 100, odd),
                                 call(AR_DEVICE_CALL_alloc, 100, UINT64_MAX)};
    struct driver_call again[] = {card[0], card[1]};
    struct driver_call sim[] = {card[0], card[1]};
    struct call_list runs[] = {{card, 2, 2}, {again, 2, 2}}, modelled = {sim, 2, 2};
    struct model_cell cell = {.large = NULL};
    assert_ok(model_repeat_compare(&cell, runs, 1, &modelled, &test_error));
    assert_true(card[0].ns == odd && card[1].ns == UINT64_MAX);
    assert_true(cell.all.card_ns == cell.all.sim_ns && cell.all.count == 2 && cell.runs == 1);
    model_cell_close(&cell);
    assert_ok(model_repeat_compare(&cell, runs, 2, &modelled, &test_error));
    assert_true(card[1].ns == UINT64_MAX && cell.all.met == 2);
    model_cell_close(&cell);
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
    struct call_list list;
    FILE *file = fopen(made.path, "w");
    assert_non_null(file);
    calls_csv_header(file);
    calls_csv_row(file, &wanted);
    fclose(file);
    assert_ok(calls_csv_read(made.path, &list, &test_error));
    assert_int_equal(list.count, 1);
    assert_int_equal(list.items[0].call, AR_DEVICE_CALL_pool_trim);
    assert_true(list.items[0].ns == UINT64_MAX && list.items[0].refused);
    call_list_close(&list);
    file = fopen(made.path, "a");
    assert_non_null(file);
    fputs("8,fly,1,2,3,0\n", file);
    fclose(file);
    assert_says(calls_csv_read(made.path, &list, &test_error), AR_FORMAT,
                ":3: \"8,fly,1,2,3,0\" is no driver call");
    call_list_close(&list);
    file = fopen(made.path, "w");
    assert_non_null(file);
    fputs("event,call\n", file);
    calls_csv_row(file, &wanted);
    fclose(file);
    assert_says(calls_csv_read(made.path, &list, &test_error), AR_FORMAT,
                ":1: is not a file of --calls");
    call_list_close(&list);
    remove(made.path);
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
