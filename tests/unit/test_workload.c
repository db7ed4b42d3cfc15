/* The arguments of -w. */
#include "tests/support/test.h"
#include "workloads/workload.h"

TEST(paths_and_specs)
{
    struct trace_source *source;
    assert_ok(workload_open("workloads/data/graphs.default.csv.gz", &source, &test_error));
    assert_string_equal(source->info.name, "graphs");
    trace_close(source);
    assert_ok(workload_open("random:seed=3", &source, &test_error));
    assert_string_equal(source->info.name, "random:seed=3");
    assert_string_equal(source->info.format, "generator");
    trace_close(source);
}

struct kept {
    char texts[4][64], names[4][128];
    uint64_t peaks[4];
    size_t count;
    bool several;
};

static enum ar_status keep(void *argument, struct workload_part *part, struct ar_error *error)
{
    struct kept *kept = argument;
    size_t at = kept->count++;
    snprintf(kept->texts[at], sizeof kept->texts[at], "%s", part->text);
    snprintf(kept->names[at], sizeof kept->names[at], "%s", part->source->info.name);
    kept->peaks[at] = part->source->info.peak_live_bytes;
    kept->several = part->several;
    return AR_OK;
}

#define TWO_GPUS "tests/golden/data/two_gpus.trace"

TEST(gpus_are_workloads)
{
    CLOSED(close_trace) struct trace_source *source;
    struct kept kept = {0};
    const uint32_t second = 1;
    struct workload_choice choice = {0};
    assert_ok(workload_each(TWO_GPUS, &choice, keep, &kept, &test_error));
    assert_int_equal(kept.count, 2);
    assert_true(kept.several);
    assert_string_equal(kept.texts[1], TWO_GPUS ":device=1");
    assert_string_equal(kept.names[0], "two_gpus gpu0");
    assert_int_equal(kept.peaks[0], 12582912);
    assert_int_equal(kept.peaks[1], 7340032);
    choice.gpu = &second;
    kept = (struct kept){0};
    assert_ok(workload_each(TWO_GPUS, &choice, keep, &kept, &test_error));
    assert_int_equal(kept.count, 1);
    assert_false(kept.several);
    assert_string_equal(kept.names[0], "two_gpus gpu1");
    assert_ok(workload_each(TWO_GPUS ":device=1", &choice, keep, &kept, &test_error));
    choice.gpu = NULL;
    kept = (struct kept){0};
    assert_ok(workload_each("order_flip", &choice, keep, &kept, &test_error));
    assert_int_equal(kept.count, 1);
    assert_string_equal(kept.texts[0], "order_flip");
    assert_says(workload_open_single(TWO_GPUS, &source, &test_error), AR_INVALID, "several GPUs");
    assert_ok(workload_open_single(TWO_GPUS ":device=0", &source, &test_error));
}

struct refusal {
    const char *text, *part;
    enum ar_status status;
};

static enum ar_status open_text(const char *text, struct ar_error *error)
{
    struct trace_source *source;
    return workload_open(text, &source, error);
}

TEST(other_arguments_are_refused)
{
    cases_refused("workload", "other_arguments_are_refused", open_text);
}
