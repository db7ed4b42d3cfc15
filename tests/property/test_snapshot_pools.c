/* Random programs with private pools, side streams and releases, as snapshots that do not tell the
 * pools: whichever pools are found, the policy must come to every address with them. */
#include "allocators/base/rng.h"
#include "bench/report/run_output.h"
#include "sim/fidelity/fidelity.h"
#include "tests/support/amount.h"
#include "tests/support/cases.h"
#include "tests/support/experiment_rig.h"
#include "tests/support/test.h"
#include "tests/support/trace_rig.h"
#include "workloads/formats/formats.h"

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

/* A program with up to three streams, pools of several kinds, and sizes that settings compare. */
static void write_mixed_program(const char *path, uint64_t seed)
{
    static const char *const kinds[] = {"", "", "", ",mempool=no_split", ",mempool=plain"};
    struct ar_rng rng = ar_rng_of(seed);
    struct live live[LIVE_MOST];
    const char *kind_of[8];
    size_t count = 0;
    uint64_t id = 0;
    unsigned given_up = 0;
    bool uses = ar_rng_below(&rng, 2), gives_up = ar_rng_below(&rng, 2);
    uint64_t sizes = ar_rng_below(&rng, 3), streams = 1 + ar_rng_below(&rng, 3);
    uint64_t trims = 20 + ar_rng_below(&rng, 100), events = 100 + ar_rng_below(&rng, 500);
    uint64_t pools = 2 + ar_rng_below(&rng, 4);
    for (size_t i = 0; i < COUNT(kind_of); i++)
        kind_of[i] = kinds[ar_rng_below(&rng, COUNT(kinds))];
    bool of_kinds = ar_rng_below(&rng, 2);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "# allocrig-trace 1\nt,0\n");
    for (uint64_t i = 0; i < events; i++) {
        if (ar_rng_below(&rng, trims) == 0)
            fprintf(file, "c\n");
        if (gives_up && ar_rng_below(&rng, 80) == 0)
            fprintf(file, "c,pool=%u\n", ++given_up);
        if (count == LIVE_MOST || (count && ar_rng_below(&rng, 2))) {
            size_t which = ar_rng_below(&rng, count);
            if (uses && ar_rng_below(&rng, 3) == 0)
                fprintf(file, "u,%" PRIu64 ",5\nk,5,300000\n", live[which].id);
            fprintf(file, "f,%" PRIu64 "\n", live[which].id);
            live[which] = live[--count];
            continue;
        }
        unsigned pool = (unsigned)(ar_rng_below(&rng, 3) ? 0 : ar_rng_below(&rng, pools));
        pool += pool ? given_up : 0;
        uint64_t stream = pool ? seed & 1 : ar_rng_below(&rng, streams), bytes;
        if (sizes == 0)
            bytes = (1 + ar_rng_below(&rng, 64)) << (9 + ar_rng_below(&rng, 14));
        else if (sizes == 1)
            bytes = (1 + ar_rng_below(&rng, 24)) * AR_MIB;
        else
            bytes = ar_rng_below(&rng, 3) ? (1 + ar_rng_below(&rng, 12)) * 2 * AR_MIB
                                          : 1 + ar_rng_below(&rng, 2 * AR_MIB);
        fprintf(file, "a,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",pool=%u%s\n", id, bytes, stream, pool,
                pool && of_kinds ? kind_of[pool % COUNT(kind_of)] : "");
        live[count++] = (struct live){id++, pool};
    }
    assert_int_equal(fclose(file), 0);
}

/* ---- its snapshot ---------------------------------------------------------------------------- */

static enum ar_status at_the_end(void *argument, const struct ar_policy *policy,
                                 struct ar_error *error)
{
    FILE *nowhere = fopen("/dev/null", "wb");
    assert_non_null(nowhere);
    enum ar_status status = run_snapshot_write(argument, policy, nowhere, error);
    fclose(nowhere);
    return status;
}

/* Runs a policy over a program. The caller closes the snapshot. */
static void run_program(struct run_snapshot *out, const char *policy, const char *path)
{
    CLOSED(experiment_rig_close) struct experiment_rig rig;
    const struct observer observer = {
        .memory = run_snapshot_observe, .finished = at_the_end, .argument = out};
    run_snapshot_open(out, "run");
    experiment_rig_open(&rig, policy, "sim", path);
    rig.experiment.observer = &observer;
    experiment_rig_run(&rig);
    assert_true(out->image.entry_count && out->image.block_count);
}

/* What a layout has; tests/cli/snapshot_layouts.py says more of each. */
enum { HISTORY = 1, POOLS = 2, ADDRESSES = 4, TIMES = 8, SETTINGS = 16, ENTRY_POOLS = 32 };

static const struct layout {
    const char *name; /* the first version that wrote it */
    unsigned keys;
} layouts[] = {{"1.13", HISTORY},
               {"2.1 in the making", HISTORY | POOLS},
               {"2.1", POOLS | ADDRESSES},
               {"2.2", POOLS | ADDRESSES | TIMES},
               {"2.3", POOLS | ADDRESSES | TIMES | SETTINGS},
               {"behind 2.11", POOLS | ADDRESSES | TIMES | SETTINGS | ENTRY_POOLS}};

static void write_blocks(FILE *file, unsigned keys, const struct snapshot_image *image,
                         const struct snapshot_segment *segment)
{
    static const char *const states[] = {"active_allocated", "active_pending_free", "inactive"};
    for (size_t i = 0; i < segment->block_count; i++) {
        const struct snapshot_block *block = &image->blocks[segment->first_block + i];
        fprintf(file, "%s{\"size\": %" PRIu64 ", \"state\": \"%s\"", i ? ", " : "", block->bytes,
                states[block->state]);
        if (keys & ADDRESSES)
            fprintf(file, ", \"address\": %" PRIu64 ", \"requested_size\": %" PRIu64,
                    block->address, block->requested_bytes);
        if (keys & HISTORY && block->state != SNAPSHOT_INACTIVE)
            fprintf(file, ", \"history\": [{\"addr\": %" PRIu64 ", \"real_size\": %" PRIu64 "}]",
                    block->address, block->requested_bytes);
        fputs("}", file);
    }
}

static void write_segments(FILE *file, unsigned keys, const struct snapshot_image *image)
{
    for (size_t i = 0; i < image->segment_count; i++) {
        const struct snapshot_segment *segment = &image->segments[i];
        fprintf(file,
                "%s{\"device\": 0, \"address\": %" PRIu64 ", \"total_size\": %" PRIu64
                ", \"stream\": %u, \"segment_type\": \"%s\"",
                i ? ", " : "", segment->address, segment->bytes, segment->stream,
                segment->small ? "small" : "large");
        if (keys & POOLS)
            fprintf(file, ", \"segment_pool_id\": [%u, 0]", segment->pool);
        if (keys & ADDRESSES)
            fprintf(file, ", \"is_expandable\": %s", segment->expandable ? "true" : "false");
        fputs(", \"blocks\": [", file);
        write_blocks(file, keys, image, segment);
        fputs("]}", file);
    }
}

/* Without the first entries. */
static void write_entries(FILE *file, unsigned keys, const struct snapshot_image *image,
                          size_t dropped)
{
    static const char *const actions[] = {
#define X(name, text) [SNAPSHOT_##name] = (text),
        SNAPSHOT_ACTIONS(X)
#undef X
    };
    bool first = true;
    for (size_t i = 0; i < image->entry_count; i++) {
        const struct snapshot_entry *entry = &image->entries[i];
        if (entry->before || (dropped && dropped--))
            continue;
        fprintf(file,
                "%s{\"action\": \"%s\", \"%s\": %" PRIu64 ", \"size\": %" PRIu64 ", \"stream\": %u",
                first ? "" : ", ", actions[entry->action],
                entry->action == SNAPSHOT_OOM ? "device_free" : "addr", entry->address,
                entry->bytes, entry->stream);
        if (keys & TIMES)
            fprintf(file, ", \"time_us\": %" PRIu64, UINT64_C(1700000000000000) + entry->time_us);
        if (keys & ENTRY_POOLS)
            fprintf(file, ", \"pool_id\": [%u, 0]", entry->pool);
        fputs("}", file);
        first = false;
    }
}

static void write_snapshot(const char *path, unsigned keys, const struct snapshot_image *image,
                           size_t dropped)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("{\"segments\": [", file);
    write_segments(file, keys, image);
    fputs("], \"device_traces\": [[", file);
    write_entries(file, keys, image, dropped);
    fputs("]]", file);
    if (keys & SETTINGS)
        fprintf(file, ", \"allocator_settings\": {\"PYTORCH_CUDA_ALLOC_CONF\": \"%s\"}",
                image->conf);
    fputs("}", file);
    assert_int_equal(fclose(file), 0);
}

/* Every address and the end are those of the policy of its settings. */
static void check_agrees(struct trace_source *source, const char *what)
{
    CLOSED(ar_spec_close) struct ar_spec policy = {0};
    CLOSED(fidelity_result_close) struct fidelity_result result;
    char text[1024];
    assert_ok(fidelity_default_spec(&source->info, text, sizeof text, &test_error));
    assert_ok(ar_spec_parse(text, &policy, &test_error));
    const struct fidelity config = {.policy = &policy, .source = source, .seed = 1};
    assert_ok(fidelity_run(&config, &result, &test_error));
    if (result.difference.found)
        fail_msg("%s: event %" PRIu64 ": the policy %s, the recording %s", what,
                 result.difference.event, result.difference.policy, result.difference.recording);
    assert_true(result.agrees && result.rows && result.end_blocks);
    assert_int_equal(result.rows, result.rows_met);
    assert_int_equal(result.end_blocks, result.end_blocks_met);
}

/* A snapshot in a layout agrees; written again it is the same trace. */
static void check_layout(struct trace_rig *rig, const struct run_snapshot *run,
                         const struct layout *layout, size_t dropped, const char *program)
{
    char what[160];
    snprintf(what, sizeof what, "%s, layout %s, %zu entries dropped", program, layout->name,
             dropped);
    write_snapshot(rig->path[1], layout->keys, &run->image, dropped);
    CLOSED(close_trace) struct trace_source *source = trace_rig_source(rig->path[1]);
    check_agrees(source, what);
    assert_ok(format_write(&format_writer_snapshot, source, rig->path[2], false, &test_error));
    CLOSED(close_trace) struct trace_source *again = trace_rig_source(rig->path[2]);
    if (memcmp(source->info.sha256, again->info.sha256, sizeof source->info.sha256) != 0)
        fail_msg("%s: written as a snapshot and read it is another trace", what);
}

/* Tests a run of such a program in each layout that has all of `keys`, complete and as a ring. */
static void check_program(struct trace_rig *rig, const char *policy, uint64_t seed, unsigned keys)
{
    CLOSED(run_snapshot_close) struct run_snapshot run;
    char program[80];
    snprintf(program, sizeof program, "%s, seed %" PRIu64, policy, seed);
    run_program(&run, policy, rig->path[0]);
    for (size_t i = 0; i < COUNT(layouts); i++)
        for (size_t part = 0; part < 3; part++)
            if ((layouts[i].keys & keys) == keys)
                check_layout(rig, &run, &layouts[i], part * run.image.entry_count / 3, program);
}

TEST(pools_are_found_again)
{
    CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
    for (uint64_t seed = 1; seed <= test_amount(60, 18); seed++) {
        write_program(rig.path[0], seed, false, seed % 2);
        check_program(&rig, "torch", seed, 0);
    }
}

/* Under a limit releases tell less. In each of two layouts, programs 1 to 10, the last three
 * without their first quarter: 1 is found, 0 may be. */
TEST(most_pools_are_found_under_a_limit)
{
    static const struct {
        const char *policy, *found[2];
    } cases[] = {
        {"torch:limit=1200MiB,conf='garbage_collection_threshold:0.5'",
         {"1101111111", "1111111011"}},
        {"torch:limit=1200MiB,conf='max_split_size_mb:20,garbage_collection_threshold:0.6'",
         {"1101011111", "0111010101"}},
        {"torch:limit=1200MiB,conf='max_split_size_mb:20'", {"1111110111", "0110010101"}},
        {"torch:limit=1200MiB,expandable_segments=true", {"1111111111", "1111111111"}},
    };
    CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
    for (size_t i = 0; i < 10 * COUNT(cases); i++) {
        uint64_t seed = i % 10 + 1;
        write_program(rig.path[0], seed, seed % 2, seed % 3 != 0);
        CLOSED(run_snapshot_close) struct run_snapshot run;
        run_program(&run, cases[i / 10].policy, rig.path[0]);
        for (size_t k = 0; k < 2; k++)
            if (cases[i / 10].found[k][i % 10] == '1')
                check_layout(&rig, &run, &layouts[4 + k], seed > 7 ? run.image.entry_count / 4 : 0,
                             cases[i / 10].policy);
    }
}

/* Of thousands of such programs, those in which a small change of the rules loses the pools. */
TEST(close_decisions_are_right)
{
    CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
    EACH_ROW (row, 4) {
        CLOSED(run_snapshot_close) struct run_snapshot run;
        write_mixed_program(rig.path[0], cases_number(&row, 0));
        run_program(&run, row.field[3], rig.path[0]);
        for (size_t i = 0; i < COUNT(layouts); i++)
            if (strcmp(layouts[i].name, row.field[1]) == 0)
                check_layout(&rig, &run, &layouts[i], cases_number(&row, 2), row.text);
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
            check_program(&rig, policies[i], seed, SETTINGS);
        }
}
