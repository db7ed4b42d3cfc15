/* The generators of workloads with a known answer: they are listed, repeat, and hold their targets.
 * With policies: tests/steps/known_answers. */
#include "tests/support/gen_rig.h"
#include "tests/support/test.h"
#include "workloads/gen/gen.h"

static struct gen_rig_sums sums;

TEST(all_are_listed)
{
    size_t count = 0;
    for (const struct gen_ops *ops; (ops = gen_at(count)) != NULL; count++) {
        assert_ptr_equal(gen_find(ops->name), ops);
        assert_non_null(ops->summary);
        CLOSED(close_trace) struct trace_source *source = gen_rig_open(ops->name);
        assert_true(((ops->capabilities & GEN_ADAPTIVE) != 0) == source->info.adaptive);
        gen_rig_pull(source, &sums);
        if (ops->capabilities & GEN_ADAPTIVE)
            assert_int_equal(sums.spans, sums.events);
    }
    assert_true(count >= 20);
    assert_null(gen_find("nothing"));
}

/* A second pass gives the same events; another seed gives others. */
TEST(same_again)
{
    for (size_t i = 0; gen_at(i); i++) {
        CLOSED(close_trace) struct trace_source *source = gen_rig_open(gen_at(i)->name);
        struct trace_source *fresh = gen_rig_open(gen_at(i)->name);
        gen_rig_pull(source, &sums);
        gen_rig_pull(fresh, &sums);
        assert_memory_equal(source->info.sha256, fresh->info.sha256, 32);
        /* A rewind in the middle of a pass starts again, too. */
        const struct trace_event *events;
        size_t count;
        trace_close(fresh);
        fresh = gen_rig_open(gen_at(i)->name);
        assert_ok(trace_next(fresh, &events, &count, &test_error));
        assert_ok(trace_rewind(fresh, &test_error));
        gen_rig_pull(fresh, &sums);
        assert_memory_equal(source->info.sha256, fresh->info.sha256, 32);
        uint64_t events_before = sums.events;
        assert_ok(trace_rewind(fresh, &test_error));
        gen_rig_pull(fresh, &sums);
        assert_int_equal(sums.events, events_before);
        trace_close(fresh);
    }
    CLOSED(close_trace) struct trace_source *one = gen_rig_open("random:seed=1");
    CLOSED(close_trace) struct trace_source *two = gen_rig_open("random:seed=2");
    gen_rig_pull(one, &sums);
    gen_rig_pull(two, &sums);
    assert_memory_not_equal(one->info.sha256, two->info.sha256, 32);
}

TEST(random_holds_its_target)
{
    struct trace_source *source =
        gen_rig_open("random:events=20000,min=1KiB,max=1MiB,target=32MiB");
    gen_rig_pull(source, &sums);
    trace_close(source);
    assert_int_equal(sums.events, 20000);
    assert_true(sums.peak_live_bytes <= 32 * AR_MIB);
    assert_true(sums.live_bytes + AR_MIB > 31 * AR_MIB);
    /* Ten doublings, equally likely: each has a tenth of the requests, so sizes double the
     * bytes of the one below. */
    uint64_t small = sums.bin_bytes[0][10];
    uint64_t large = sums.bin_bytes[0][19];
    assert_true(large > small * 400 && large < small * 650);
    for (unsigned bin = 0; bin < 10; bin++)
        assert_int_equal(sums.bin_bytes[0][bin], 0);
}

TEST(refused)
{
    gen_rig_refused("gen_known_answer", "refused");
}
