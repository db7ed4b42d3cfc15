/* The parts of advice: candidates, texts of settings, tries, batches. Known advice on traces and
 * recordings is in tests/steps/advise. */
#include <math.h>

#include "sim/advise/advise.h"
#include "tests/support/test.h"
#include "tests/support/tiny_trace.h"
#include "workloads/formats/formats.h"
#include "workloads/trace/trace.h"

#define DATA "workloads/data/"

/* "a=20" is not in "a=2048". */
static bool has_word(const char *text, const char *word)
{
    const char *at = strstr(text, word);
    return at && !(at[strlen(word)] >= '0' && at[strlen(word)] <= '9');
}

/* What a release knows, and what it does not: texts with blanks between. */
TEST(settings_are_those_of_the_release)
{
    EACH_ROW (row, 3) {
        CLOSED(candidates_close) struct candidates list;
        assert_ok(candidates_list(row.field[0], "torch", false, &list, &test_error));
        assert_int_equal(list.left_out_count, cases_number(&row, 1));
        for (char *has = strtok(row.field[2], " "); has; has = strtok(NULL, " ")) {
            bool found = false;
            for (size_t c = 0; c < list.count; c++)
                found |= strcmp(list.at[c].spec, has) == 0;
            if (!found)
                fail_msg("%s: no %s", row.field[0], has);
        }
        for (char *lacks = row.field[3] ? strtok(row.field[3], " ") : NULL; lacks;
             lacks = strtok(NULL, " "))
            for (size_t c = 0; c < list.count; c++)
                if (has_word(list.at[c].spec, lacks) || has_word(list.at[c].text, lacks))
                    fail_msg("%s: %s", row.field[0], list.at[c].spec);
    }
}

TEST(a_text_is_that_of_the_release)
{
#define CONF "PYTORCH_CUDA_ALLOC_CONF="
#define CALL "torch.cuda.set_per_process_memory_fraction"
    EACH_ROW (row, 5) {
        const struct candidate candidate = {.own = true};
        char text[256];
        candidate_setting(&candidate, torch_release_read(row.field[0]), row.field[1], text,
                          sizeof text);
        assert_string_equal(text, row.field[2]);
        struct torch_release needs = candidate_needs(text);
        assert_int_equal(needs.major, (unsigned)cases_number(&row, 3));
        assert_int_equal(needs.minor, (unsigned)cases_number(&row, 4));
    }
}

TEST(settings_pair_across_options_only)
{
    CLOSED(candidates_close) struct candidates list;
    assert_ok(candidates_list("torch 2.11.0", "torch", false, &list, &test_error));
    size_t pairs = 0;
    for (size_t i = 0; i < list.count; i++) {
        const char *spec = list.at[i].spec;
        const char *first = strstr(spec, "max_split_size_mb");
        assert_true(!first || !strstr(first + 1, "max_split_size_mb"));
        pairs += list.at[i].half[0] || list.at[i].half[1];
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(spec, list.at[j].spec);
    }
    assert_true(list.at[0].given);
    /* expandable 1, split 8, round 5, collect 3, segment 4, and 2 that need a split size. */
    assert_int_equal(pairs, 8 + 5 + 3 + 4 + 8 * (5 + 3 + 4) + 5 * (3 + 4) + 3 * 4 + 8 * 2);
}

/* Of the settings that change as little, the first of those within 1 % of the least slowdown. */
TEST(one_percent_of_time_decides_nothing)
{
    static const struct {
        double slowdowns[3];
        size_t best;
    } cases[] = {
        {{1.009, 1.0, 1.0}, 0}, {{1.02, 1.0, 1.0}, 1}, {{1.02, 1.015, 1.005}, 1},
        {{3.0, 2.0, 1.0}, 2},   {{1.0, 1.0, 1.0}, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct advise_row rows[3];
        memset(rows, 0, sizeof rows);
        for (size_t r = 0; r < 3; r++) {
            rows[r].candidate.own = true;
            rows[r].at =
                (struct trial){.begun = true, .passed = true, .slowdown = cases[i].slowdowns[r]};
        }
        const struct advise_result result = {.rows = rows, .count = 3, .own_count = 3};
        assert_ptr_equal(advise_best(&result), &rows[cases[i].best]);
    }
}

TEST(a_spec_that_is_none_has_no_limit_to_remove)
{
    char text[64];
    assert_says(candidates_without_limit("torch:=1", text, sizeof text, &test_error), AR_INVALID,
                "torch:=1");
    assert_ok(candidates_without_limit("torch:limit=1GiB,expandable_segments=true", text,
                                       sizeof text, &test_error));
    assert_string_equal(text, "torch:expandable_segments=true");
}

/* The largest batch under lines of memory: the lowest of them counts, also one that grows by less
 * than a byte; a program that needs too much at any size has none. */
TEST(the_largest_batch_is_under_all_lines)
{
    struct batch_line lines[2] = {{100, 0.5}, {10, 10}};
    const struct batch_curve both = {lines, 2, true}, slow = {lines, 1, true};
    assert_true(batch_curve_largest(&slow, 1, 150) == 100);
    assert_true(batch_curve_largest(&both, 1, 150) == 14);
    assert_true(batch_curve_largest(&both, 1, 100) == 0);
    lines[0] = (struct batch_line){100, 0};
    assert_true(batch_curve_largest(&slow, 1, 99) == 0);
    assert_true(isinf(batch_curve_largest(&slow, 1, 100)));
    assert_true(batch_curve_largest(&slow, 1.5, 149) == 0);
    assert_true(isinf(batch_curve_largest(&slow, 1.5, 150)));
}

/* Three tries of different sizes in a row, each freed before the next event of a block, beside a
 * block that stays. */
TEST(tries_are_told_from_requests)
{
    EACH_ROW (row, 3) {
        CLOSED(close_trace) struct trace_source *trace = tiny_trace(row.field[0]);
        CLOSED(tries_close) struct tries tries;
        assert_ok(tries_find(trace, &tries, &test_error));
        if (tries.count != cases_number(&row, 1) || tries.most_bytes != cases_number(&row, 2))
            fail_msg("%s: %" PRIu64 " tries, %" PRIu64 " bytes", row.field[0], tries.count,
                     tries.most_bytes);
        assert_int_equal(tries.trace != NULL, cases_number(&row, 1) > 0);
    }
}

/* A recording that is cut is complete up to the end of its last step; other marks end none. */
TEST(the_last_step_of_a_cut_recording)
{
    static const struct {
        const char *events;
        uint64_t last_step_end;
    } cases[] = {{"a,0,8 m,step f,0 m,other a,1,8", 2}, {"a,0,8 m,other f,0", 0}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        CLOSED(close_trace) struct trace_source *trace = tiny_trace(cases[i].events);
        struct prepared prepared;
        assert_ok(prepare_trace(trace, NULL, 0, &prepared, &test_error));
        assert_int_equal(prepared.last_step_end, cases[i].last_step_end);
        trace_close(prepared.trace);
    }
}

/* Requests are compared by size, in any order. */
TEST(requests_are_compared_by_size)
{
    CLOSED(close_trace)
    struct trace_source *from = tiny_trace("a,0,4194304 a,1,4096 a,2,5000 a,3,4194304 a,4,4096");
    CLOSED(close_trace) struct trace_source *to;
    struct whatif whatif;
    CLOSED(ar_spec_close) struct ar_spec device = spec_of("sim");
    assert_ok(trace_open_recording(DATA "graphs.default.csv.gz", &to, &test_error));
    strcpy(from->info.recorder, "torch 2.11.0");
    const struct advise_config config = {
        .source = from, .device = &device, .frees = REPLAY_ORDERED, .seed = 1};
    assert_ok(whatif_predict(&config, to, &whatif, &test_error));
    assert_int_equal(whatif.requests_from, 5);
    assert_int_equal(whatif.only_from, 1);
    assert_int_equal(whatif.only_to, whatif.requests_to - 4);
    assert_true(whatif.has_peak && whatif.recorded_passed);
}

/* A policy whose spec is too long to be tried is refused, not cut. */
TEST(a_spec_that_is_too_long)
{
    char spec[CANDIDATE_SPEC_ROOM + 64], text[CANDIDATE_SPEC_ROOM];
    memset(spec, 'x', sizeof spec);
    memcpy(spec, "torch:conf='", 12);
    memcpy(spec + sizeof spec - 2, "'", 2);
    assert_says(candidates_without_limit(spec, text, sizeof text, &test_error), AR_INVALID,
                "has more than");
    assert_says(candidates_without_limit("torch:limit=1GiB", text, 4, &test_error), AR_INVALID,
                "the policy \"torch:limit=1GiB..\" has more than 3 bytes");
}
