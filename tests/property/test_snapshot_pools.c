/* Random programs with private pools, side streams and releases, as snapshots that do not tell the
 * pools: whichever pools are found, the policy must come to every address with them. */
#include "allocators/base/rng.h"
#include "tests/support/amount.h"
#include "tests/support/snapshot_layouts.h"
#include "tests/support/snapshot_runs.h"
#include "tests/support/test.h"
#include "tests/support/trace_rig.h"

enum { EVENTS = 400, LIVE_MOST = 40 };

struct live {
    uint64_t id;
    unsigned pool;
};

/* A program in which a pool is on a stream of its own, as with graphs, or not. `uses`: blocks are
 * also used on other streams, which still have queued work. `gives_up`: the program gives up
 * pools. */
static void write_program(const char *path, uint64_t seed, bool uses, bool gives_up)
{
    struct live live[LIVE_MOST];
    size_t count = 0;
    uint64_t id = 0;
    unsigned given_up = 0; /* pools up to it */
    struct ar_rng rng = ar_rng_of(seed);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "# allocrig-trace 1\nt,0\n");
    for (unsigned i = 0; i < EVENTS; i++) {
        if (ar_rng_below(&rng, 60) == 0)
            fprintf(file, "c\n");
        if (gives_up && ar_rng_below(&rng, 120) == 0)
            fprintf(file, "c,pool=%u\n", ++given_up);
        if (count == LIVE_MOST || (count && ar_rng_below(&rng, 2))) {
            size_t which = ar_rng_below(&rng, count);
            if (uses && ar_rng_below(&rng, 3) == 0)
                fprintf(file, "u,%" PRIu64 ",%u\nk,%u,%u\n", live[which].id, 2u, 2u, 300000u);
            fprintf(file, "f,%" PRIu64 "\n", live[which].id);
            live[which] = live[--count];
            continue;
        }
        unsigned pool = (unsigned)(ar_rng_below(&rng, 3) ? 0 : ar_rng_below(&rng, 4));
        pool += pool ? given_up : 0;
        unsigned stream = pool ? (seed & 1) : (unsigned)ar_rng_below(&rng, 2);
        uint64_t units = 1 + ar_rng_below(&rng, 64);
        uint64_t bytes = units << (9 + ar_rng_below(&rng, 14));
        fprintf(file, "a,%" PRIu64 ",%" PRIu64 ",%u,pool=%u\n", id, bytes, stream, pool);
        live[count++] = (struct live){id++, pool};
    }
    assert_int_equal(fclose(file), 0);
}

/* Tests a run of such a program in each layout that has all of `keys`, complete and as a ring. */
static void check_program(struct trace_rig *rig, const char *policy, uint64_t seed, unsigned keys)
{
    CLOSED(run_snapshot_close) struct run_snapshot run;
    snapshot_run(&run, policy, rig->path[0]);
    for (size_t i = 0; i < snapshot_layout_count; i++)
        for (size_t part = 0; part < 3; part++) {
            const struct snapshot_layout *layout = &snapshot_layouts[i];
            const struct snapshot_layout_options options = {
                .form = SNAPSHOT_PICKLE_4, .dropped = part * run.image.entry_count / 3};
            char what[160];
            if (layout->keys & LAYOUT_NO_HISTORY || (layout->keys & keys) != keys)
                continue;
            snprintf(what, sizeof what, "%s, seed %" PRIu64 ", layout %s, %zu entries dropped",
                     policy, seed, layout->name, options.dropped);
            snapshot_layout_write(rig->path[1], layout, &run.image, &options);
            CLOSED(close_trace)
            struct trace_source *source = snapshot_open(rig->path[1], NULL, what);
            snapshot_check_agrees(source, what);
            snapshot_check_comes_back(source, rig->path[2], what);
        }
}

TEST(pools_are_found_again)
{
    CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
    for (uint64_t seed = 1; seed <= test_amount(60, 18); seed++) {
        write_program(rig.path[0], seed, false, seed % 2);
        check_program(&rig, "torch", seed, 0);
    }
}

/* Under a limit releases tell less. In each of three layouts, programs 1 to 10, the last three
 * without their first quarter: 1 is found, 0 may be. */
TEST(most_pools_are_found_under_a_limit)
{
    static const struct {
        const char *policy, *found;
    } cases[] = {
        {"torch:limit=1200MiB,conf='garbage_collection_threshold:0.5'",
         "111111001111111111111110111111"},
        {"torch:limit=1200MiB,conf='max_split_size_mb:20,garbage_collection_threshold:0.6'",
         "110111001111000111110111110111"},
        {"torch:limit=1200MiB,conf='max_split_size_mb:20'", "110111111110110111000111110111"},
        {"torch:limit=1200MiB,expandable_segments=true", "111111111111111111111111111111"},
    };
    static const char *const layouts[] = {"2.3", "2.10", "behind 2.11"};
    CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
    for (size_t i = 0; i < 10 * COUNT(cases); i++) {
        uint64_t seed = i % 10 + 1;
        write_program(rig.path[0], seed, seed % 2, seed % 3 != 0);
        CLOSED(run_snapshot_close) struct run_snapshot run;
        snapshot_run(&run, cases[i / 10].policy, rig.path[0]);
        const struct snapshot_layout_options options = {
            .form = SNAPSHOT_PICKLE_4, .dropped = seed > 7 ? run.image.entry_count / 4 : 0};
        for (size_t k = 0, at = 3 * (seed - 1); k < snapshot_layout_count; k++) {
            bool wanted = false;
            for (size_t n = 0; n < COUNT(layouts); n++)
                wanted |= strcmp(snapshot_layouts[k].name, layouts[n]) == 0;
            if (!wanted || cases[i / 10].found[at++] == '0')
                continue;
            char what[160];
            snprintf(what, sizeof what, "%s, seed %" PRIu64 ", layout %s", cases[i / 10].policy,
                     seed, snapshot_layouts[k].name);
            snapshot_layout_write(rig.path[1], &snapshot_layouts[k], &run.image, &options);
            CLOSED(close_trace)
            struct trace_source *source = snapshot_open(rig.path[1], NULL, what);
            snapshot_check_agrees(source, what);
        }
    }
}

/* Settings that change placements: the snapshot has them, and the pools too. */
TEST(settings_are_followed)
{
    static const char *const policies[] = {
        "torch",
        "torch:conf='roundup_power2_divisions:8'",
        "torch:conf='max_split_size_mb:64'",
        "torch:conf='garbage_collection_threshold:0.5'",
        "torch:expandable_segments=true",
        "torch:conf='expandable_segments:True,roundup_power2_divisions:8'",
    };
    CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
    for (uint64_t seed = 1; seed <= test_amount(15, 6); seed++)
        for (size_t i = 0; i < COUNT(policies); i++) {
            write_program(rig.path[0], seed, true, true);
            check_program(&rig, policies[i], seed, LAYOUT_SETTINGS);
        }
}
