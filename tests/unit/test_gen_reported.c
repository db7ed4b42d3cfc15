/* The generators that imitate programs and reported problems: what is refused, what is drawn, the
 * scratch of the libraries, and that those with several streams are the same in both forms of a
 * trace. Their memory, step by step: tests/steps/gen_models, gen_reported. */
#include "tests/support/gen_rig.h"
#include "tests/support/test.h"
#include "tests/support/trace_rig.h"
#include "workloads/formats/formats.h"
#include "workloads/gen/eager.h"
#include "workloads/gen/embedding_table.h"
#include "workloads/trace/trace.h"

static struct gen_rig_sums sums, other;

static void pull(const char *text, struct gen_rig_sums *into)
{
    CLOSED(close_trace) struct trace_source *source = gen_rig_open(text);
    gen_rig_pull(source, into);
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Without spread all steps are equal; with it the peaks of the steps spread about that value. */
TRACE_TEST(samples_are_log_normal)
{
    pull("gnn_minibatch:node_sigma=0,degree_sigma=0,steps=5", &other);
    assert_int_equal(other.step_peak_bytes[4], other.step_peak_bytes[3]);
    uint64_t fixed = other.step_peak_bytes[4];
    pull("gnn_minibatch", &sums);
    qsort(sums.step_peak_bytes, 400, sizeof sums.step_peak_bytes[0], by_size);
    assert_in_range(sums.step_peak_bytes[200], fixed * 9 / 10, fixed * 11 / 10);
    assert_true(sums.step_peak_bytes[399] > 2 * fixed);
    assert_true(sums.step_peak_bytes[0] < fixed / 2 + 65 * AR_MIB);
    /* Other depths and types. */
    pull("gnn_minibatch:layers=5,steps=3,nodes=1000,shrink=0.5,dtype=float16,optimizer=sgd", &sums);
    assert_int_equal(sums.steps, 3);
}

/* Figures of the libraries, for n ids, and of a sum of 2048 rows. */
TRACE_TEST(scratch_sizes)
{
    assert_int_equal(embedding_sort_scratch(2048), 1);
    /* 8 x 256 bins of 8, keys and values again, 6 tiles of 1024, counters, alignment. */
    assert_int_equal(embedding_sort_scratch(26624), 16384 + 2 * 26624 * 8 + 6 * 1024 + 256 + 255);
    assert_int_equal(embedding_select_scratch(26624), 1279);
    assert_int_equal(embedding_scan_scratch(22353), 1535);
    uint64_t partial;
    uint64_t counters;
    eager_sum_scratch(2048, 512, &partial, &counters);
    assert_int_equal(partial, 4 * 512 * 32 * 128);
    assert_int_equal(counters, 16);
    eager_sum_scratch(8192, 512, &partial, &counters);
    assert_int_equal(partial, 4 * 512 * 128 * 128);
    eager_sum_scratch(100, 100, &partial, &counters);
    assert_int_equal(partial, 0);
    assert_int_equal(counters, 0);
}

TRACE_TEST(refused)
{
    gen_rig_refused("gen_reported", "refused");
}

TRACE_TEST(seeds_differ)
{
    static const char *const drawn[] = {"varlen_transformer:steps=3", "jitter_batch:steps=9",
                                        "gnn_minibatch:steps=3", "kv_concat:rounds=1",
                                        "kv_paged:rounds=1"};
    for (size_t i = 0; i < COUNT(drawn); i++) {
        char text[64];
        snprintf(text, sizeof text, "%s,seed=2", drawn[i]);
        CLOSED(close_trace) struct trace_source *one = gen_rig_open(drawn[i]);
        CLOSED(close_trace) struct trace_source *two = gen_rig_open(text);
        gen_rig_pull(one, &sums);
        gen_rig_pull(two, &sums);
        assert_memory_not_equal(one->info.sha256, two->info.sha256, 32);
    }
}

/* Generator, text, binary, text: the same hash and the same text. */
TRACE_TEST(both_forms_hold_them)
{
    struct trace_rig *rig = *state;
    static const char *const workloads[] = {
        "fsdp_runahead:steps=2,layers=5",
        "fsdp_runahead:steps=2,layers=5,hold=stash,ahead=1",
        "stash_restore:steps=2,variant=side",
        "stash_restore:steps=2,trim=forward",
        "stash_restore:variant=interleaved,steps=2,trim=restore",
        "giant_then_crumbs:trim=yes",
        "phases:cycles=2,leak=1"};
    for (size_t i = 0; i < COUNT(workloads); i++) {
        static const struct trace_write_options options = {.format = TRACE_FORMAT_BINARY};
        CLOSED(close_trace) struct trace_source *source = gen_rig_open(workloads[i]);
        CLOSED(close_trace) struct trace_source *binary = NULL;
        CLOSED(close_trace) struct trace_source *again;
        FREED char *first = trace_rig_print(rig, source);
        assert_int_equal(trace_rewind(source, &test_error), AR_OK);
        if (trace_write(source, rig->path[1], &options, &test_error) != AR_OK ||
            trace_open(rig->path[1], &binary, &test_error) != AR_OK)
            fail_msg("%s", test_error.text);
        assert_memory_equal(source->info.sha256, binary->info.sha256, 32);
        assert_int_equal(source->info.streams, binary->info.streams);
        assert_int_equal(source->info.slots, binary->info.slots);
        assert_int_equal(source->info.peak_live_bytes, binary->info.peak_live_bytes);
        FREED char *second = trace_rig_print(rig, binary);
        assert_string_equal(first, second);
        assert_int_equal(trace_rig_text(rig, first, &again, &test_error), AR_OK);
        assert_memory_equal(source->info.sha256, again->info.sha256, 32);
    }
}
