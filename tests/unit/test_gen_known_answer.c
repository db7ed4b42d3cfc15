/* The workloads with a known answer, replayed with real policies on a backing whose allocations are
 * adjacent: the reserved bytes are known. The sums are derived in known_answer.md. */
#include "tests/support/fake_backing.h"
#include "tests/support/gen_rig.h"
#include "tests/support/policy_rig.h"
#include "tests/support/test.h"
#include "workloads/gen/gen.h"

#define SLOTS 65536

static struct fake_backing backing;
static struct gen_rig_sums sums;

struct played {
    uint64_t peak_reserved_bytes, peak_live_bytes, failures, failed_bytes;
};

/* Replays a generator with a policy; each request has its result before the next event. */
static struct played play(const char *workload, const char *policy, uint64_t cap_bytes)
{
    static struct ar_policy_block blocks[SLOTS];
    static bool given[SLOTS];
    struct policy_rig rig;
    struct played played = {0};
    struct trace_source *source = gen_rig_open(workload);
    fake_backing_open(&backing, cap_bytes);
    assert_int_equal(policy_rig_open(&rig, policy, &backing.base, 0), AR_OK);
    for (;;) {
        const struct trace_event *event;
        size_t count;
        assert_ok(trace_next(source, &event, &count, &test_error));
        if (count == 0)
            break;
        for (const struct trace_event *end = event + count; event < end; event++) {
            assert_true(event->slot < SLOTS);
            if (event->kind == TRACE_FREE_COMPLETED) {
                if (given[event->slot])
                    (void)policy_rig_free(&rig, &blocks[event->slot]);
                continue;
            }
            given[event->slot] =
                policy_rig_alloc(&rig, event->value, &blocks[event->slot]) == AR_OK;
            if (!given[event->slot]) {
                played.failures++;
                played.failed_bytes = event->value;
            }
            struct trace_served served = {.served = given[event->slot],
                                          .address = blocks[event->slot].address};
            if (source->info.adaptive)
                trace_answer(source, event, &served);
            if (rig.policy->totals.reserved_bytes > played.peak_reserved_bytes)
                played.peak_reserved_bytes = rig.policy->totals.reserved_bytes;
        }
    }
    played.peak_live_bytes = source->info.peak_live_bytes;
    assert_int_equal(policy_rig_close(&rig), 0);
    trace_close(source);
    return played;
}

TEST(both_fits)
{
    EACH_ROW (row, 3) {
        for (int fit = 0; fit < 2; fit++) {
            struct played played = play(row.field[0], fit ? "best-fit" : "first-fit", UINT64_MAX);
            assert_int_equal(played.peak_reserved_bytes, cases_number(&row, 1) * AR_MIB);
            assert_int_equal(played.peak_live_bytes, cases_number(&row, 2) * AR_MIB);
            assert_int_equal(played.failures, 0);
        }
    }
}

TEST(growth)
{
    assert_int_equal(play("order_flip", "growth", UINT64_MAX).peak_reserved_bytes, 256 * AR_MIB);
    assert_int_equal(play("pool_boundary", "growth", UINT64_MAX).peak_reserved_bytes, 2 * AR_MIB);
    assert_int_equal(play("linear_ramp", "growth", UINT64_MAX).peak_reserved_bytes, 2032 * AR_MIB);
    assert_int_equal(play("linear_ramp:live=2", "growth", UINT64_MAX).peak_reserved_bytes,
                     4144 * AR_MIB);
    assert_int_equal(play("sawtooth", "growth", UINT64_MAX).peak_reserved_bytes, 8176 * AR_MIB);
}

/* The textbook fits reach Robson's bound exactly. */
TEST(robson)
{
    EACH_ROW (row, 2)
        for (int fit = 0; fit < 2; fit++)
            assert_int_equal(
                play(row.field[0], fit ? "best-fit" : "first-fit", UINT64_MAX).peak_reserved_bytes,
                cases_number(&row, 1));
    /* The same program in larger units. */
    assert_int_equal(play("robson:unit=256", "best-fit", UINT64_MAX).peak_reserved_bytes,
                     3057 * 256);
}

/* Half of 512 MiB is free and the largest free block has 8. */
TEST(checkerboard_at_capacity)
{
    for (int fit = 0; fit < 2; fit++) {
        struct played played = play("checkerboard", fit ? "best-fit" : "first-fit", 512 * AR_MIB);
        assert_int_equal(played.failures, 1);
        assert_int_equal(played.failed_bytes, 16 * AR_MIB);
        assert_int_equal(played.peak_reserved_bytes, 512 * AR_MIB);
    }
}

/* Growth by 1.5 reuses its own memory, growth by 2 never does. */
TEST(sawtooth_factors)
{
    struct played half = play("sawtooth:factor=1.5,to=1GiB", "best-fit", UINT64_MAX);
    struct played twice = play("sawtooth:factor=2,to=1GiB", "best-fit", UINT64_MAX);
    assert_int_equal(twice.peak_reserved_bytes, 16 * 127 * AR_MIB);
    struct trace_source *source = gen_rig_open("sawtooth:factor=1.5,to=1GiB");
    gen_rig_pull(source, &sums);
    trace_close(source);
    assert_true(half.peak_reserved_bytes < sums.allocated_bytes);
}

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
