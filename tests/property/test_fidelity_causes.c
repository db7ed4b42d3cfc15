/* Recordings of `torch` by itself, made by random programs under every option that gives memory
 * back, compared with `torch`: all rows and all statistics must be met, whatever was behind
 * what was released, and where only the program can have been, each of its releases is found. */
#include "sim/fidelity/fidelity.h"
#include "tests/support/amount.h"
#include "tests/support/recorder.h"
#include "tests/support/test.h"

#define SEEDS test_amount(6, 6)

/* What must be met for a recording. */
enum expected {
    ALL_MET,
    ONLY_RELEASES, /* and the releases are found as they were, in one replay */
    PLACES_MET,    /* all but peaks: two explanations may leave the same events and counts */
    LIMIT_FOUND,   /* places, without the limit at the policy's end, and none above it is found */
};

static void check_figures(const struct recorder_program *program,
                          const struct fidelity_result *result, enum expected expected)
{
    for (size_t i = 0; i < result->figure_count; i++) {
        const struct fidelity_figure *figure = &result->figures[i];
        if (!figure->agrees && !(expected == PLACES_MET && strstr(figure->name, ".peak")))
            fail_msg("%s seed %" PRIu64 ": %s %" PRIu64 ", recorded %" PRIu64, program->policy,
                     program->seed, figure->name, figure->replayed, figure->recorded);
    }
}

/* Returns whether everything was met. */
static bool check(const struct recorder_program *program, enum expected expected)
{
    struct recorder_result recorded;
    struct fidelity_result result;
    struct ar_spec spec;
    char policy[160];
    const char *limit = expected == LIMIT_FOUND ? strstr(program->policy, ",limit=") : NULL;
    snprintf(policy, sizeof policy, "%.*s", limit ? (int)(limit - program->policy) : 159,
             program->policy);
    recorder_run(program, &recorded);
    assert_ok(ar_spec_parse(policy, &spec, &test_error));
    const struct fidelity config = {.policy = &spec,
                                    .source = recorded.trace,
                                    .stats = recorded.stats,
                                    .stat_count = recorded.stat_count,
                                    .seed = 1};
    if (fidelity_run(&config, &result, &test_error))
        fail_msg("%s seed %" PRIu64 ": %s", program->policy, program->seed, test_error.text);
    if (result.difference.found)
        fail_msg("%s seed %" PRIu64 ", %u streams: event %" PRIu64
                 ": the policy %s, the recording %s",
                 program->policy, program->seed, program->streams, result.difference.event,
                 result.difference.policy, result.difference.recording);
    if (limit)
        assert_true(result.limit_bytes <= strtoull(limit + 7, NULL, 10));
    else
        check_figures(program, &result, expected);
    assert_int_equal(result.figure_count, recorded.stat_count);
    if (expected == ONLY_RELEASES) {
        assert_int_equal(result.release_count, recorded.releases);
        assert_int_equal(result.unseen_releases, recorded.unseen_releases);
        assert_int_equal(result.replays, 1);
    }
    bool agrees = result.agrees;
    fidelity_result_close(&result);
    ar_spec_close(&spec);
    recorder_close(&recorded);
    return agrees;
}

/* Returns the number of recordings that were not met completely. */
static unsigned each_on(const char *policy, uint64_t capacity_bytes, enum expected expected)
{
    static const struct {
        unsigned streams, uses, releases;
    } modes[] = {{1, 0, 0}, {1, 0, 20}, {3, 0, 20}, {3, 30, 0}, {3, 30, 20}};
    unsigned differ = 0;
    for (size_t mode = 0; mode < COUNT(modes); mode++)
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            const struct recorder_program program = {
                .policy = policy,
                .seed = seed,
                .capacity_bytes = capacity_bytes,
                .ops = 1500,
                .most_live_bytes = 700 * AR_MIB,
                .streams = modes[mode].streams,
                .use_percent = modes[mode].uses,
                .release_permille = modes[mode].releases,
                .large_percent = 40,
            };
            differ += !check(&program, expected);
        }
    return differ;
}

static void each(const char *policy, bool only_releases)
{
    assert_int_equal(each_on(policy, 70 * AR_GIB, only_releases ? ONLY_RELEASES : ALL_MET), 0);
}

TEST(test_releases)
{
    each("torch", true);
    each("torch:expandable_segments=true", true);
    each("torch:max_split_size_mb=64", true);
}

TEST(test_limit)
{
    each("torch:limit=1000M", false);
    each("torch:roundup_power2_divisions=4,limit=1000M", false);
    each("torch:expandable_segments=true,limit=1000M", false);
}

TEST(test_large_blocks)
{
    each("torch:max_split_size_mb=64,limit=1000M", false);
}

TEST(test_collection)
{
    each("torch:garbage_collection_threshold=0.6,limit=1200M", false);
    each("torch:garbage_collection_threshold=0.8,max_split_size_mb=40,limit=1100M", false);
}

TEST(test_limit_is_found)
{
    (void)each_on("torch:garbage_collection_threshold=0.6,limit=1258291200", 70 * AR_GIB,
                  LIMIT_FOUND);
}

/* No limit: it is the device that refuses, also in the middle of a request that grows by pages. */
TEST(test_device_is_full)
{
    unsigned differ = 0;
    for (uint64_t capacity = 800 * AR_MIB; capacity <= 1100 * AR_MIB; capacity += 100 * AR_MIB) {
        assert_int_equal(each_on("torch:expandable_segments=true", capacity, ALL_MET), 0);
        differ += each_on("torch", capacity, PLACES_MET);
    }
    assert_int_equal(
        each_on("torch:expandable_segments=true,max_split_size_mb=64", 1000 * AR_MIB, ALL_MET), 0);
    differ += each_on("torch:max_split_size_mb=64", 1000 * AR_MIB, PLACES_MET);
    assert_true(differ <= 1); /* of 150 */
}
