/* Workloads learned from recordings: whatever the recording, the trace is valid, goes on as the
 * recording does, and is the same again for the same seed. */
#include "sim/drift/drift.h"
#include "tests/support/amount.h"
#include "tests/support/test.h"
#include "workloads/trace/trace.h"
#include "workloads/workload.h"

/* Recordings with 4 to 200 steps, of every kind: files, models of programs, phases and leaks. */
static const char *const recordings[] = {
    "workloads/data/tape_small.default.csv.gz",
    "workloads/data/gpt2_train.default.csv.gz",
    "workloads/data/streams_prefetch.default.csv.gz",
    "workloads/data/dlrm_embedding.expandable.csv.gz",
    "varlen_transformer:steps=30,layers=1",
    "varlen_transformer:steps=30,layers=1,draw=cycle,lengths='128;512;1024'",
    "gnn_minibatch:steps=60",
    "jitter_batch:steps=100",
    "jitter_batch:steps=100,overlap=1",
    "rnn_buckets:repeat=3",
    "rnn_buckets:buckets='5;10;20;5;10;20;5;10;20',repeat=2",
    "fsdp_runahead:steps=12",
    "stash_restore",
    "phases:cycles=10,leak=2",
    "phases:cycles=10,leak=0,trim=no",
    "embedding",
    "gradient_tape:steps=8",
};
#define RECORDINGS COUNT(recordings)

static struct trace_source *open_workload(const char *text)
{
    struct trace_source *source = NULL;
    if (workload_open(text, &source, &test_error) != AR_OK)
        fail_msg("%s: %s", text, test_error.text);
    return source;
}

static struct trace_source *open_learned(const char *recording, unsigned steps, unsigned seed)
{
    char text[300];
    snprintf(text, sizeof text, "learned:trace=\"%s\",steps=%u,seed=%u", recording, steps, seed);
    return open_workload(text);
}

static struct learned_model *learn(const char *recording)
{
    struct trace_source *source = open_workload(recording);
    struct learned_model *model = NULL;
    if (learned_model_make(source, NULL, &model, &test_error) != AR_OK)
        fail_msg("%s: %s", recording, test_error.text);
    trace_close(source);
    return model;
}

/* The range of live bytes at the ends of steps `first` to the last, from 1, and those of blocks. */
struct live {
    uint64_t steps, least_bytes, most_bytes, least_blocks, most_blocks, last_bytes;
};

static struct live live_of(struct trace_source *source, uint64_t first)
{
    struct live out = {.least_bytes = UINT64_MAX, .least_blocks = UINT64_MAX};
    struct trace_source *copy = NULL;
    const struct trace_event *events;
    uint64_t bytes = 0, blocks = 0, *of_slot = NULL;
    size_t count;
    /* The copy checks all events again, and finds blocks by their ids, not by their slots. */
    if (trace_memory_copy(source, &copy, &test_error) != AR_OK)
        fail_msg("%s: %s", source->info.name, test_error.text);
    assert_memory_equal(copy->info.sha256, source->info.sha256, sizeof copy->info.sha256);
    of_slot = calloc(copy->info.slots + 1u, sizeof *of_slot);
    assert_non_null(of_slot);
    while (trace_next(copy, &events, &count, &test_error) == AR_OK && count)
        for (size_t i = 0; i < count; i++) {
            const struct trace_event *event = &events[i];
            if (event->kind == TRACE_ALLOC || event->kind == TRACE_PROBE) {
                of_slot[event->slot] = event->value;
                bytes += event->value;
                blocks++;
            } else if (event->kind == TRACE_FREE_REQUESTED ||
                       (event->kind == TRACE_FREE_COMPLETED && event->flags & TRACE_WHOLE)) {
                bytes -= of_slot[event->slot];
                blocks--;
            } else if (event->kind == TRACE_MARK && event->flags & TRACE_STEP) {
                if (++out.steps < first)
                    continue;
                out.least_bytes = bytes < out.least_bytes ? bytes : out.least_bytes;
                out.most_bytes = bytes > out.most_bytes ? bytes : out.most_bytes;
                out.least_blocks = blocks < out.least_blocks ? blocks : out.least_blocks;
                out.most_blocks = blocks > out.most_blocks ? blocks : out.most_blocks;
                out.last_bytes = bytes;
            }
        }
    free(of_slot);
    trace_close(copy);
    return out;
}

/* A recording with the steps that were found in it, all of which the learned trace begins with. */
static struct live recorded_live(const char *recording, const struct learned_model *model)
{
    struct trace_source *source = open_learned(recording, (unsigned)model->step_count, 1);
    struct live live = live_of(source, model->warmup ? model->warmup : 1);
    trace_close(source);
    assert_int_equal(live.steps, model->step_count);
    return live;
}

/* Carried blocks whose sizes vary may be somewhat larger than any recorded one: the tail. */
TEST(stays_in_the_recorded_range)
{
    for (size_t i = 0; i < RECORDINGS; i++) {
        struct learned_model *model = learn(recordings[i]);
        unsigned steps = 4 * (unsigned)model->step_count;
        struct live recorded = recorded_live(recordings[i], model);
        bool carries_tail = strncmp(recordings[i], "jitter_batch", 12) == 0;
        for (unsigned seed = 1; seed <= test_amount(3, 3); seed++) {
            struct trace_source *source = open_learned(recordings[i], steps, seed);
            struct live live = live_of(source, model->warmup ? model->warmup : 1);
            trace_close(source);
            assert_int_equal(live.steps, steps);
            if (model->leaked_bytes > 0) {
                assert_true(live.last_bytes > recorded.last_bytes);
                continue;
            }
            if (live.least_blocks < recorded.least_blocks ||
                live.most_blocks > recorded.most_blocks)
                fail_msg("%s: blocks %" PRIu64 " to %" PRIu64 ", recorded %" PRIu64 " to %" PRIu64,
                         recordings[i], live.least_blocks, live.most_blocks, recorded.least_blocks,
                         recorded.most_blocks);
            uint64_t beyond = carries_tail ? recorded.most_bytes / 4 : 0;
            if (live.least_bytes + beyond < recorded.least_bytes ||
                live.most_bytes > recorded.most_bytes + beyond)
                fail_msg("%s: live %" PRIu64 " to %" PRIu64 ", recorded %" PRIu64 " to %" PRIu64,
                         recordings[i], live.least_bytes, live.most_bytes, recorded.least_bytes,
                         recorded.most_bytes);
        }
        learned_model_close(model);
    }
}

static void hash_of(struct trace_source *source, uint8_t hash[32])
{
    const struct trace_event *events;
    size_t count;
    do
        assert_ok(trace_next(source, &events, &count, &test_error));
    while (count);
    memcpy(hash, source->info.sha256, 32);
}

TEST(same_seed_same_bytes)
{
    uint8_t first[32], again[32], other[32];
    for (size_t i = 0; i < RECORDINGS; i += 3 / test_amount(3, 3)) {
        struct learned_model *model = learn(recordings[i]);
        unsigned steps = 3 * (unsigned)model->step_count;
        bool varies = model->order == LEARNED_FOLLOW && model->classes[0].members;
        learned_model_close(model);
        struct trace_source *source = open_learned(recordings[i], steps, 7);
        hash_of(source, first);
        assert_ok(trace_rewind(source, &test_error));
        source->info.counted = false; /* count and hash the second pass too */
        assert_ok(trace_rewind(source, &test_error));
        hash_of(source, again);
        trace_close(source);
        assert_memory_equal(first, again, 32);
        source = open_learned(recordings[i], steps, 8);
        hash_of(source, other);
        trace_close(source);
        if (varies)
            assert_memory_not_equal(first, other, 32);
    }
}

/* What a policy reserves in a lean run with and without skipped steps is the same after each step,
 * for any recording. */
TEST(skipped_steps_change_nothing)
{
    static struct drift_run skipped, replayed;
    static struct drift_run both[2];
    struct ar_spec policies[2], device;
    uint64_t saved = 0;
    assert_ok(ar_spec_parse("torch", &policies[0], &test_error));
    assert_ok(ar_spec_parse("torch:expandable_segments=true", &policies[1], &test_error));
    assert_ok(ar_spec_parse("sim", &device, &test_error));
    for (size_t i = 0; i < RECORDINGS; i += 3 / test_amount(3, 3)) {
        struct learned_model *model = learn(recordings[i]);
        for (int policy = 0; policy < 2; policy++) {
            struct drift_setup setup = {.model = model,
                                        .policy = &policies[policy],
                                        .device = &device,
                                        .steps = 3 * model->step_count + 40,
                                        .seed = 5};
            if (drift_run_all(&setup, &skipped, 1, 1, NULL, &test_error) != AR_OK)
                fail_msg("%s: %s", recordings[i], test_error.text);
            setup.every_step = true;
            assert_ok(drift_run_all(&setup, &replayed, 1, 1, NULL, &test_error));
            assert_int_equal(skipped.sample_count, replayed.sample_count);
            assert_memory_equal(skipped.samples, replayed.samples, sizeof skipped.samples);
            assert_int_equal(skipped.least_live_bytes, replayed.least_live_bytes);
            assert_int_equal(skipped.most_live_bytes, replayed.most_live_bytes);
            assert_int_equal(replayed.replayed_steps, setup.steps);
            saved += replayed.replayed_steps - skipped.replayed_steps;
            /* Two runs that share what they know. */
            struct drift_setup pair[2] = {setup, setup};
            pair[0].seed = 6;
            pair[0].every_step = pair[1].every_step = false;
            assert_ok(drift_run_all(pair, both, 2, 2, NULL, &test_error));
            assert_memory_equal(both[1].samples, replayed.samples, sizeof replayed.samples);
        }
        learned_model_close(model);
    }
    assert_true(saved > 100);
    for (int policy = 0; policy < 2; policy++)
        ar_spec_close(&policies[policy]);
    ar_spec_close(&device);
}
