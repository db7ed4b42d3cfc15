/* Advice: from recordings under one setting, the results recorded under another; from small traces,
 * known results; a recording that ends in a failure is not treated as complete. */
#include <math.h>

#include "sim/advise/advise.h"
#include "tests/support/amount.h"
#include "tests/support/test.h"
#include "tests/support/tiny_trace.h"
#include "workloads/formats/formats.h"
#include "workloads/trace/trace.h"

#define DATA "workloads/data/"

struct rig {
    struct trace_source *source;
    struct ar_spec device;
    struct advise_result result;
};

static void advise_over(struct rig *rig, struct trace_source *source, uint64_t capacity_bytes)
{
    rig->source = source;
    assert_ok(ar_spec_parse("sim", &rig->device, &test_error));
    const struct advise_config config = {.source = source,
                                         .device = &rig->device,
                                         .capacity_bytes = capacity_bytes,
                                         .frees = REPLAY_ORDERED,
                                         .seed = 1,
                                         .jobs = 2};
    assert_ok(advise_run(&config, &rig->result, &test_error));
}

static void advise_file(struct rig *rig, const char *path, uint64_t capacity_bytes)
{
    struct trace_source *source;
    assert_ok(trace_open_recording(path, &source, &test_error));
    advise_over(rig, source, capacity_bytes);
}

/* Ranks never decrease, needs of one rank are within the uncertainty, those of the next are not,
 * the defaults are first in theirs, and nothing that takes 10 % more than another comes before
 * it. */
static void ranks_hold(const struct advise_result *result)
{
    for (size_t i = 0; i < result->count; i++) {
        const struct advise_row *row = &result->rows[i], *first = row;
        size_t place = i < result->own_count ? i : i - result->own_count;
        assert_true(row->rank >= 1 && row->rank <= place + 1);
        while (first > result->rows && first[-1].candidate.own == row->candidate.own &&
               first[-1].rank == row->rank)
            first--;
        assert_int_equal(row->rank, place + 1 - (size_t)(row - first));
        for (const struct advise_row *other = first; other < row; other++) {
            uint64_t least =
                other->safe_bytes < row->safe_bytes ? other->safe_bytes : row->safe_bytes;
            uint64_t most = other->safe_bytes + row->safe_bytes - least;
            assert_true(most - least <= advise_uncertain_bytes(result, least));
            if (row->candidate.own && !row->candidate.text[0]) {
                assert_true(row->candidate.keys > 0 || other->candidate.keys == 0);
                assert_true(other->candidate.keys == 0 || !other->wasteful || row->wasteful);
            }
        }
    }
}

static void done(struct rig *rig)
{
    ranks_hold(&rig->result);
    advise_result_close(&rig->result);
    ar_spec_close(&rig->device);
    trace_close(rig->source);
}

static const struct advise_row *row_of(const struct rig *rig, const char *spec)
{
    for (size_t i = 0; i < rig->result.tried; i++)
        if (strcmp(rig->result.rows[i].candidate.spec, spec) == 0)
            return &rig->result.rows[i];
    fail_msg("no row %s", spec);
    return NULL;
}

static void predict(const char *path, const char *policy, struct trial *out)
{
    CLOSED(done) struct rig rig = {0};
    assert_ok(ar_spec_parse("sim", &rig.device, &test_error));
    assert_ok(trace_open_recording(path, &rig.source, &test_error));
    const struct advise_config config = {
        .source = rig.source, .device = &rig.device, .frees = REPLAY_ORDERED, .seed = 1};
    assert_ok(advise_predict(&config, policy, 0, out, &test_error));
}

/* Predicts the recorded peak of one setting from a recording under another. */
TEST(other_settings_are_predicted_to_the_byte)
{
    size_t at = 0;
    EACH_ROW (row, 3) {
        struct trial trial;
        if (at++ % (3 / test_amount(3, 3)))
            continue;
        predict(row.field[0], row.field[1], &trial);
        assert_true(trial.passed);
        assert_int_equal(trial.peak_reserved_bytes, cases_number(&row, 2));
    }
}

/* The program releases its cache 136 times; without this the default settings would reserve twice
 * as much. The program requests other workspaces under them, so the prediction is not exact. */
TEST(releases_by_the_program_are_kept)
{
    struct trial trial;
    predict(DATA "resnet50_train.expandable.csv.gz", "torch", &trial);
    const uint64_t recorded = 11274289152;
    assert_in_range(trial.peak_reserved_bytes, recorded / 100 * 95, recorded / 100 * 105);
}

TEST(a_recording_is_understood_first)
{
    CLOSED(done) struct rig rig;
    advise_file(&rig, DATA "tape_small.expandable.csv.gz", 1298 * AR_MIB);
    assert_int_equal(rig.result.fidelity, ADVISE_AGREES);
    assert_int_equal(rig.result.recorded_peak_reserved_bytes, 1367343104);
    assert_true(rig.result.complete);
    const struct advise_row *best = advise_best(&rig.result);
    assert_false(rig.result.rows[0].candidate.given);
    assert_string_equal(best->candidate.spec, "torch");
    assert_true(best->at.passed && best->safe_bytes <= 1298 * AR_MIB);
    for (size_t i = 0; i < rig.result.own_count; i++)
        if (rig.result.rows[i].candidate.given)
            assert_true(!rig.result.rows[i].at.passed &&
                        rig.result.rows[i].safe_bytes > 1298 * AR_MIB);
}

TEST(settings_within_the_error_are_one_rank)
{
    static const char *const paths[] = {
        DATA "graphs.default.csv.gz",
        "tests/golden/data/snapshots/tape_small.pickle.gz",
    };
    for (size_t i = 0; i < COUNT(paths); i++) {
        CLOSED(done) struct rig rig;
        advise_file(&rig, paths[i], 2 * AR_GIB);
        assert_true(rig.result.uncertainty >= ADVISE_UNCERTAINTY);
        assert_null(strstr(rig.result.rows[0].candidate.spec, "max_split_size_mb"));
    }
}

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

#define PINNED "a,0,41943040 a,1,20971520,0,tag=kept a,2,31457280 f,0 f,2 a,3,62914560 f,3 f,1"

TEST(unrecorded_traces_have_no_settings)
{
    CLOSED(done) struct rig rig;
    advise_over(&rig, tiny_trace(PINNED), 100 * AR_MIB);
    assert_int_equal(rig.result.fidelity, ADVISE_NOT_RECORDED);
    assert_int_equal(rig.result.own_count, 0);
    assert_null(advise_best(&rig.result));
    assert_true(row_of(&rig, "vmm")->at.passed);
    assert_false(row_of(&rig, "best-fit")->at.passed);
    assert_int_equal(rig.result.peak.bytes, 90 * AR_MIB);
    assert_int_equal(rig.result.peak.count, 3);
    assert_int_equal(rig.result.peak.at[0].bytes, 40 * AR_MIB);
    assert_string_equal(rig.result.peak.at[2].tag, "kept");
}

/* The second step fails: it requests 60 MiB while 50 MiB are live, of 100 MiB. */
static struct trace_source *dying(void)
{
    struct trace_source *source =
        tiny_trace("a,0,31457280 f,0 m,step a,1,52428800 a,2,62914560 !,oom,10485760 r,2");
    strcpy(source->info.recorder, "torch 2.11.0");
    source->info.limit_bytes = 100 * AR_MIB;
    return source;
}

TEST(a_trace_that_ends_in_a_failure_proves_its_beginning)
{
    struct rig rig;
    advise_over(&rig, dying(), 0);
    assert_false(rig.result.complete);
    assert_true(rig.result.has_failed_request);
    assert_int_equal(rig.result.failed_bytes, 60 * AR_MIB);
    assert_int_equal(rig.result.failed_event, 4);
    assert_int_equal(rig.result.step.bytes, 30 * AR_MIB);
    assert_int_equal(rig.result.peak.bytes, 110 * AR_MIB);
    assert_null(advise_best(&rig.result));
    assert_true(advise_none_fits(&rig.result));
    done(&rig);
    advise_over(&rig, dying(), 120 * AR_MIB);
    assert_non_null(advise_best(&rig.result));
    assert_false(advise_none_fits(&rig.result));
    done(&rig);
}

/* A recording is complete if the program continued after a failed request. */
TEST(a_survived_failure_is_none)
{
    CLOSED(done) struct rig rig;
    advise_over(&rig, tiny_trace("a,0,1048576 p,1,1073741824 !,oom,1 r,1 a,2,1048576"), AR_GIB);
    assert_true(rig.result.complete);
}

/* It is not complete if the program died, even if it made a few more requests while it ended. A
 * step after the failure shows that the program continued. */
TEST(a_failure_near_the_end_was_the_end)
{
    struct rig rig;
    struct trace_source *source =
        tiny_trace("a,0,1048576 p,1,1073741824 !,oom,1 r,1 a,2,512 f,0 f,2");
    source->info.complete = false;
    advise_over(&rig, source, AR_GIB);
    assert_true(rig.result.has_failed_request);
    assert_int_equal(rig.result.failed_bytes, AR_GIB);
    assert_int_equal(rig.result.failed_event, 1);
    assert_false(row_of(&rig, "torch")->at.passed);
    done(&rig);
    source = tiny_trace("a,0,1048576 p,1,1073741824 !,oom,1 r,1 m,step a,2,512 f,0 f,2");
    source->info.complete = false;
    advise_over(&rig, source, AR_GIB);
    assert_false(rig.result.complete || rig.result.has_failed_request);
    assert_true(row_of(&rig, "torch")->at.passed);
    done(&rig);
}

/* On a card of 100 MiB, 60 MiB are freed but complete only after a request of 60 MiB. PyTorch waits
 * for them; other policies can reuse them at once on the requesting stream. */
TEST(pending_frees_are_waited_for)
{
    CLOSED(done) struct rig rig = {0};
    rig.source = tiny_trace("a,0,62914560 r,0 a,1,62914560 f,0 a,2,1048576 r,1 f,2 f,1");
    assert_ok(ar_spec_parse("sim", &rig.device, &test_error));
    const struct advise_config config = {.source = rig.source,
                                         .device = &rig.device,
                                         .capacity_bytes = 100 * AR_MIB,
                                         .frees = REPLAY_RECORDED,
                                         .jobs = 1};
    assert_ok(advise_run(&config, &rig.result, &test_error));
    assert_true(row_of(&rig, "torch")->at.passed);
    assert_int_equal(row_of(&rig, "torch")->at.flushes, 1);
    assert_true(row_of(&rig, "vmm")->at.passed);
    assert_true(row_of(&rig, "cupy")->at.passed);
    assert_int_equal(row_of(&rig, "torch")->alone.peak_reserved_bytes, 122 * AR_MIB);
}

/* TensorFlow leaves 1800 MiB of this card to the system, so a setting needs more than its peak. */
TEST(what_is_left_to_the_system_is_needed_too)
{
    CLOSED(done) struct rig rig;
    struct trace_source *source = tiny_trace("a,0,2147483648 f,0");
    strcpy(source->info.recorder, "tensorflow 2.16");
    advise_over(&rig, source, 6 * AR_GIB);
    assert_true(row_of(&rig, "growth")->at.passed);
    assert_int_equal(row_of(&rig, "growth")->alone.peak_reserved_bytes, 2 * AR_GIB);
    assert_int_equal(row_of(&rig, "growth")->safe_bytes, 2 * AR_GIB + 1800 * AR_MIB);
    assert_int_equal(row_of(&rig, "growth:fraction=0.95")->safe_bytes, 2156 * AR_MIB);
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

/* A trace of one block at a time, each used by a kernel of so many ns. */
static struct trace_source *kernels_of(uint64_t kernel_ns, const char *bytes)
{
    static char events[64 * 64];
    size_t used = 0;
    for (unsigned i = 0; i < 40; i++)
        used += (size_t)snprintf(events + used, sizeof events - used,
                                 "a,%u,%s u,%u,0 k,0,%" PRIu64 " f,%u ", i, bytes, i, kernel_ns, i);
    events[used - 1] = 0;
    struct trace_source *source = tiny_trace(events);
    strcpy(source->info.recorder, "torch 2.11.0");
    return source;
}

TEST(what_takes_twice_the_time_comes_last)
{
    EACH_ROW (row, 3) {
        CLOSED(done) struct rig rig;
        advise_over(&rig, kernels_of(cases_number(&row, 0), "20971520"), AR_GIB);
        const struct advise_row *direct = row_of(&rig, "direct"), *torch = row_of(&rig, "torch");
        assert_int_equal(direct->safe_bytes, torch->safe_bytes);
        assert_int_equal(torch->rank, 1);
        assert_int_equal(direct->rank > 1, cases_number(&row, 1));
        assert_int_equal(direct->wasteful, cases_number(&row, 2));
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
