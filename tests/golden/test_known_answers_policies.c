/* Known answers through the whole program: the reserved memory of PyTorch's allocator, with and
 * without expandable segments, of the buddy system, and of the policies that map pages after small
 * programs. Sources: PyTorch's developer notes on expandable segments and its issue 123548;
 * Robson's bound (1971). workloads/gen/known_answer.md describes the generators. */
#include "allocators/registry.h"
#include "tests/support/experiment_rig.h"
#include "tests/support/test.h"
#include "tests/support/tiny_trace.h"

#define DEFAULT    "torch"
#define EXPANDABLE "torch:expandable_segments=true"
#define CARD       "sim:profile=h100"

static uint64_t metric(const struct experiment_rig *rig, enum metric which)
{
    assert_int_equal(rig->result.metrics.at[which].kind, METRIC_INTEGER);
    return rig->result.metrics.at[which].integer;
}

static void holds(const char *policy, const char *workload, uint64_t mib, uint64_t driver_calls)
{
    CLOSED(experiment_rig_close) struct experiment_rig rig;
    experiment_rig_open(&rig, policy, CARD, workload);
    experiment_rig_run(&rig);
    assert_true(rig.result.passed);
    if (metric(&rig, METRIC_peak_reserved_bytes) != mib * AR_MIB)
        fail_msg("%s under %s holds %llu bytes, not %llu MiB", workload, policy,
                 (unsigned long long)metric(&rig, METRIC_peak_reserved_bytes),
                 (unsigned long long)mib);
    assert_int_equal(metric(&rig, METRIC_peak_physical_bytes), mib * AR_MIB);
    if (driver_calls)
        assert_int_equal(metric(&rig, METRIC_driver_calls), driver_calls);
}

/* Segments never join: one for each block of 16 MiB, one for each of 32. A range has pages of 20
 * MiB, and seven hold 128 MiB. */
TEST(order_flip)
{
    holds(DEFAULT, "order_flip", 256, 12);
    holds(EXPANDABLE, "order_flip", 140, 0);
    holds(DEFAULT, "order_flip:reverse=yes", 128, 4);
    holds(EXPANDABLE, "order_flip:reverse=yes", 140, 0);
}

/* A second pool for requests of up to 1 MiB: 20 MiB and 2. */
TEST(pool_boundary)
{
    holds(DEFAULT, "pool_boundary", 22, 2);
    holds(DEFAULT, "pool_boundary:first=2MiB,second=2MiB", 20, 1);
    holds(EXPANDABLE, "pool_boundary", 22, 0);
    holds(EXPANDABLE, "pool_boundary:first=2MiB,second=2MiB", 20, 0);
}

/* 16 K (K + 1) / 2 MiB for K = 40 segments; in a range the need of one block, or of three. */
TEST(linear_ramp)
{
    holds(DEFAULT, "linear_ramp:live=1", 13120, 40);
    holds(EXPANDABLE, "linear_ramp:live=1", 640, 0);
    holds(DEFAULT, "linear_ramp:live=2", 13120, 40);
    holds(EXPANDABLE, "linear_ramp:live=2", 1880, 0);
}

/* A doubled block never fits into freed memory: 16 (2^9 - 1) MiB, and the same in pages of 20. */
TEST(sawtooth)
{
    holds(DEFAULT, "sawtooth:factor=2", 8176, 9);
    holds(EXPANDABLE, "sawtooth:factor=2", 8180, 0);
}

/* 514 MiB rounded up to the next of k steps between 512 and 1024 (pytorch/pytorch#161139). */
TEST(steps_between_powers_of_two)
{
    static const struct {
        const char *policy;
        uint64_t granted_mib;
    } rows[] = {
        {DEFAULT, 514},
        {"torch:roundup_power2_divisions=1", 514}, /* it has no effect there, as reported */
        {"torch:roundup_power2_divisions=2", 768},
        {"torch:roundup_power2_divisions=4", 640},
        {"torch:roundup_power2_divisions=8", 576},
        {"torch:roundup_power2_divisions=16", 544},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLOSED(experiment_rig_close) struct experiment_rig rig;
        experiment_rig_open(&rig, rows[i].policy, CARD,
                            "jitter_batch:rows='514',row=1MiB,tensors=1,overlap=1,steps=2");
        experiment_rig_run(&rig);
        assert_int_equal(metric(&rig, METRIC_peak_granted_bytes), rows[i].granted_mib * AR_MIB);
    }
}

/* Two programs of MindSpore whose lifetimes SOMAS saved, over the live peak: what another model of
 * PyTorch's allocator reserves, and granted over reserved. Known with three decimals, which were
 * rounded from four. The larger one under expandable segments is not compared with its 1.188
 * (.842): that is two pages of 20 MiB less than here, see known_answers.md. */
TEST(saved_programs)
{
    static const struct {
        const char *policy, *workload;
        double overhead, utilisation;
    } rows[] = {
        {DEFAULT, "tests/golden/data/planning/somas-resnet50.csv", 1.114, .908},
        {EXPANDABLE, "tests/golden/data/planning/somas-resnet50.csv", 1.021, .979},
        {DEFAULT, "tests/golden/data/planning/somas-pangu_2.6B.csv.gz", 1.466, .691},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLOSED(experiment_rig_close) struct experiment_rig rig;
        experiment_rig_open(&rig, rows[i].policy, CARD, rows[i].workload);
        experiment_rig_run(&rig);
        assert_true(rig.result.passed);
        double overhead = metric_number(&rig.result.metrics, METRIC_overhead, 0);
        double utilisation = metric_number(&rig.result.metrics, METRIC_utilisation, 0);
        assert_true(overhead > rows[i].overhead - 0.00055 && overhead < rows[i].overhead + 0.00055);
        assert_true(utilisation > rows[i].utilisation - 0.00055 &&
                    utilisation < rows[i].utilisation + 0.00055);
    }
}

/* ---- small programs -------------------------------------------------------------------------- */

struct watch {
    uint64_t after[1024]; /* reserved bytes after each request and free */
    size_t count;
};

static enum ar_status watch_row(void *argument, const struct replay_row *row,
                                struct ar_error *error)
{
    struct watch *watch = argument;
    assert_true(watch->count < 1024);
    watch->after[watch->count++] = row->reserved_bytes;
    return AR_OK;
}

static void watched(struct watch *watch, const char *policy, const char *device, const char *events)
{
    CLOSED(experiment_rig_close) struct experiment_rig rig;
    experiment_rig_over(&rig, policy, device, tiny_trace(events));
    *watch = (struct watch){.count = 0};
    const struct observer observer = {.row = watch_row, .argument = watch};
    rig.experiment.observer = &observer;
    experiment_rig_run(&rig);
    assert_true(rig.result.passed);
}

/* Two free blocks of 16 MiB next to live blocks do not serve 32; after all is freed, a range
 * does. */
TEST(live_free_block)
{
    static const char events[] =
        "a,0,16777216 a,1,16777216 a,2,16777216 a,3,16777216 f,0 f,2 a,4,33554432 "
        "f,1 f,3 f,4 a,5,33554432 f,5";
    static struct watch watch;
    watched(&watch, DEFAULT, CARD, events);
    assert_int_equal(watch.after[6], 96 * AR_MIB);
    assert_int_equal(watch.after[10], 96 * AR_MIB);
    watched(&watch, EXPANDABLE, CARD, events);
    assert_int_equal(watch.after[6], 100 * AR_MIB);
    assert_int_equal(watch.after[10], 100 * AR_MIB);
}

/* 64 MiB if there is a base, then for each cycle 91 and 45.5 MiB, a pinning block of 2 MiB, and the
 * frees of the two. */
static char *pinned_pairs(unsigned cycles, bool base)
{
    size_t room = 64 + (size_t)cycles * 128;
    char *text = malloc(room);
    assert_non_null(text);
    size_t used = base ? (size_t)snprintf(text, room, "a,0,67108864 ") : 0;
    for (unsigned i = 0, id = base; i < cycles; i++, id += 3)
        used += (size_t)snprintf(text + used, room - used,
                                 "a,%u,95420416 a,%u,47710208 a,%u,2097152 f,%u f,%u ", id, id + 1,
                                 id + 2, id, id + 1);
    return text;
}

/* A split limit and a growing range together: free blocks above the limit serve no smaller request,
 * and the pinning blocks keep them from merging. */
TEST(pinned_pair)
{
    static const uint64_t reported_mib[] = {220, 2980, 5760, 8520, 11300, 14060};
    static struct watch watch;
    char *events = pinned_pairs(101, true);
    watched(&watch, "torch:expandable_segments=true,max_split_size_mb=128", CARD, events);
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(watch.after[5 + i * 20 * 5], reported_mib[i] * AR_MIB);
    /* Either setting alone stays below 500 MiB. */
    watched(&watch, "torch:max_split_size_mb=128", CARD, events);
    assert_true(watch.after[watch.count - 1] < 500 * AR_MIB);
    watched(&watch, EXPANDABLE, CARD, events);
    assert_true(watch.after[watch.count - 1] < 500 * AR_MIB);
    free(events);
    /* Without the base the range has 101 pinning blocks and a pair, 338.5 MiB, in pages of 20. */
    events = pinned_pairs(101, false);
    watched(&watch, EXPANDABLE, CARD, events);
    assert_int_equal(watch.after[watch.count - 1], 340 * AR_MIB);
    watched(&watch, DEFAULT, CARD, events);
    assert_int_equal(watch.after[watch.count - 1], 358 * AR_MIB);
    free(events);
}

static bool passes(const char *policy, const char *device, const char *workload)
{
    struct experiment_rig rig;
    experiment_rig_open(&rig, policy, device, workload);
    experiment_rig_run(&rig);
    bool passed = rig.result.passed;
    if (!passed)
        assert_int_equal(rig.result.cause, REPLAY_CAUSE_FRAGMENTATION);
    experiment_rig_close(&rig);
    return passed;
}

/* Stitching: free blocks serve a larger request of at least 512 MiB together, by a second mapping
 * of their pages. Two of 300 and 400 MiB serve 600 and leave 100; 500 is below the limit, so new
 * memory is obtained. */
TEST(stitching)
{
    static const char events[] = "a,0,314572800 a,1,419430400 f,0 f,1 a,2,629145600 a,3,524288000 "
                                 "f,2 f,3";
    static struct watch watch;
    if (!registry_find("gmlake"))
        skip();
    watched(&watch, "gmlake", CARD, events);
    assert_int_equal(watch.after[4], 734003200);
    assert_int_equal(watch.after[5], 1258291200);
    holds("gmlake", "order_flip:bytes=512MiB", 4096, 0);
    holds("gmlake", "order_flip:bytes=16MiB", 256, 0);
    assert_true(passes("gmlake", CARD ",capacity=4GiB", "checkerboard:count=8,bytes=512MiB"));
}

/* ---- bounds ---------------------------------------------------------------------------------- */

/* The extent of the buddy system on Robson's program, M (1 + log2(n) / 2), for any chunk size. */
TEST(buddy_on_robson)
{
    static const struct {
        unsigned m, n, extent;
    } rows[] = {{1024, 16, 3072},   {1024, 64, 4096},    {1024, 256, 5120},   {4096, 64, 16384},
                {4096, 256, 20480}, {4096, 1024, 24576}, {16384, 1024, 98304}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (unsigned whole = 0; whole < 2; whole++) {
            char policy[64], workload[64];
            CLOSED(experiment_rig_close) struct experiment_rig rig;
            snprintf(policy, sizeof policy, "buddy:min=1,chunk=%u", whole ? rows[i].m : rows[i].n);
            snprintf(workload, sizeof workload, "robson:m=%u,n=%u", rows[i].m, rows[i].n);
            experiment_rig_open(&rig, policy, "sim:profile=bump", workload);
            experiment_rig_run(&rig);
            assert_true(rig.result.passed);
            assert_int_equal(metric(&rig, METRIC_peak_reserved_bytes), rows[i].extent);
        }
    }
}

static uint64_t remapped(const char *policy, const char *device, const char *workload, bool passes)
{
    struct experiment_rig rig;
    experiment_rig_open(&rig, policy, device, workload);
    experiment_rig_run(&rig);
    assert_int_equal(rig.result.passed, passes);
    uint64_t bytes = metric(&rig, METRIC_remapped_bytes);
    experiment_rig_close(&rig);
    return bytes;
}

/* Every second block is freed and blocks of twice the size are requested. With a capacity of all
 * blocks this needs pages to be remapped, and free blocks with whole pages. */
TEST(checkerboard)
{
    /* Free blocks of 8 MiB have no whole page of 20; those of 40 do. */
    assert_false(passes(EXPANDABLE, CARD ",capacity=480MiB", "checkerboard:count=60,bytes=8MiB"));
    assert_true(passes(EXPANDABLE, CARD ",capacity=2400MiB", "checkerboard:count=60,bytes=40MiB"));
    static const char *const fixed[] = {"first-fit", "best-fit", "buddy"};
    for (size_t i = 0; i < COUNT(fixed); i++)
        assert_false(passes(fixed[i], CARD ",capacity=512MiB", "checkerboard"));
    assert_true(passes("vmm", CARD ",capacity=514MiB", "checkerboard"));
    assert_true(passes("vmm", CARD ",capacity=2402MiB", "checkerboard:count=60,bytes=40MiB"));
    assert_int_equal(remapped("vmm", CARD ",capacity=514MiB", "checkerboard", true), 16 * AR_MIB);
    /* Free blocks of 1 MiB have no whole page of 2: nothing can be remapped. */
    assert_int_equal(remapped("vmm", CARD ",capacity=64MiB", "checkerboard:bytes=1MiB", false), 0);
}

/* No policy that does not move blocks has an extent below Robson's bound. */
TEST(robsons_bound_holds)
{
    static const char *const staying[] = {"first-fit", "best-fit", "buddy:min=1", "tlsf", "growth",
                                          "rmm-pool",  "torch",    EXPANDABLE,    "cupy", "bfc"};
    static const struct {
        const char *workload;
        uint64_t bound;
    } rows[] = {{"robson:m=1024,n=16,unit=2MiB", 3057},
                {"robson:m=1024,n=64,unit=2MiB", 4033},
                {"robson:m=1024,n=256,unit=2MiB", 4865}};
    for (size_t i = 0; i < COUNT(staying); i++)
        for (size_t j = 0; j < COUNT(rows); j++) {
            CLOSED(experiment_rig_close) struct experiment_rig rig;
            experiment_rig_open(&rig, staying[i], CARD, rows[j].workload);
            experiment_rig_run(&rig);
            assert_true(rig.result.passed);
            if (metric(&rig, METRIC_peak_reserved_bytes) < rows[j].bound * 2 * AR_MIB)
                fail_msg("%s holds less than the bound of %s", staying[i], rows[j].workload);
        }
}

/* Robson's bound holds for policies that cannot move memory: 3057 units of 2 MiB for 1024 live
 * ones. Remapped pages break it. */
TEST(mapping_breaks_robsons_bound)
{
    static const char workload[] = "robson:m=1024,n=16,unit=2MiB";
    static const char just_below[] = CARD ",capacity=6112MiB"; /* 3056 units */
    static const char *const fixed[] = {"first-fit", "best-fit"};
    for (size_t i = 0; i < COUNT(fixed); i++) {
        assert_false(passes(fixed[i], just_below, workload));
        assert_true(passes(fixed[i], CARD ",capacity=6114MiB", workload));
    }
    /* The live peak, 2 %, and a page. */
    assert_true(passes("vmm", CARD ",capacity=2092MiB", workload));
}
