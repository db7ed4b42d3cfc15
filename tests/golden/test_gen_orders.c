/* Checks the order of policies that each page of a reported problem expects. One simulated card,
 * one run for each pair of workload and policy; a row says which of two runs has the lower metric,
 * or how a figure is bounded by others. The pages have the reasons. */
#include "tests/support/experiment_rig.h"
#include "tests/support/test.h"

#define EXPANDABLE "torch:expandable_segments=true"

struct figures {
    bool passed;
    enum replay_cause cause;
    uint64_t failed_event;
    struct metric_values metrics;
};

static struct figures run_on(const char *device, const char *policy, const char *workload)
{
    struct experiment_rig rig;
    experiment_rig_open(&rig, policy, device, workload);
    experiment_rig_run(&rig);
    struct figures figures = {.passed = rig.result.passed,
                              .cause = rig.result.cause,
                              .failed_event = rig.result.first_failed_event,
                              .metrics = rig.result.metrics};
    experiment_rig_close(&rig);
    return figures;
}

/* A metric of a run that must pass. */
static double figure(const char *policy, const char *workload, enum metric metric)
{
    struct figures figures = run_on("sim:profile=h100", policy, workload);
    if (!figures.passed)
        fail_msg("%s under %s does not pass", workload, policy);
    if (figures.metrics.at[metric].kind == METRIC_NULL)
        fail_msg("%s under %s has no %s", workload, policy, metric_info(metric)->name);
    return metric_number(&figures.metrics, metric, 0);
}

static double physical(const char *policy, const char *workload)
{
    return figure(policy, workload, METRIC_peak_physical_bytes);
}

static double reserved(const char *policy, const char *workload)
{
    return figure(policy, workload, METRIC_peak_reserved_bytes);
}

static void must_be_less(double less, double more, const char *what)
{
    if (!(less < more))
        fail_msg("%s: %.6g is not below %.6g", what, less, more);
}

static void passes(const char *device, const char *policy, const char *workload)
{
    if (!run_on(device, policy, workload).passed)
        fail_msg("%s does not pass under %s on %s", workload, policy, device);
}

/* Fails by fragmentation, at that event. */
static void fails(const char *device, const char *policy, const char *workload, uint64_t event)
{
    struct figures figures = run_on(device, policy, workload);
    if (figures.passed)
        fail_msg("%s passes under %s on %s", workload, policy, device);
    assert_int_equal(figures.cause, REPLAY_CAUSE_FRAGMENTATION);
    assert_int_equal(figures.failed_event, event);
}

/* ---- models of frameworks ---- */

TEST(rnn_buckets)
{
    must_be_less(reserved("best-fit", "rnn_buckets"), reserved("growth", "rnn_buckets"),
                 "rnn_buckets, arena and regions");
    must_be_less(physical(EXPANDABLE, "rnn_buckets"), physical("torch", "rnn_buckets"),
                 "rnn_buckets, range and segments");
    passes("sim:profile=h100", "greedy:limit=4GiB", "rnn_buckets");
    struct figures growth = run_on("sim:profile=h100", "growth:limit=4GiB", "rnn_buckets");
    assert_false(growth.passed);
    assert_int_equal(growth.cause, REPLAY_CAUSE_FRAGMENTATION);
}

TEST(varlen_transformer)
{
    static const char drawn[] = "varlen_transformer:steps=20";
    static const char fixed[] = "varlen_transformer:steps=20,lengths='1024'";
    must_be_less(physical(EXPANDABLE, drawn), physical("torch", drawn), drawn);
    must_be_less(figure("torch", fixed, METRIC_overhead), figure("torch", drawn, METRIC_overhead),
                 "varlen_transformer, one length and many");
}

TEST(gnn_minibatch)
{
    static const char workload[] = "gnn_minibatch:steps=200";
    static const char *const others[] = {"best-fit", "growth", "torch", EXPANDABLE, "cupy",
                                         "rmm-pool", "tlsf",   "buddy", "slab",     "vmm"};
    must_be_less(physical(EXPANDABLE, workload), physical("torch", workload), workload);
    assert_true(reserved("best-fit", workload) <= reserved("growth", workload));
    struct figures direct = run_on("sim:profile=h100", "direct", workload);
    assert_true(direct.passed);
    for (size_t i = 0; i < COUNT(others); i++) {
        struct figures other = run_on("sim:profile=h100", others[i], workload);
        assert_true(other.passed);
        must_be_less(metric_number(&direct.metrics, METRIC_peak_physical_bytes, 0),
                     metric_number(&other.metrics, METRIC_peak_physical_bytes, 0), others[i]);
        must_be_less(metric_number(&other.metrics, METRIC_driver_calls, 0),
                     metric_number(&direct.metrics, METRIC_driver_calls, 0), others[i]);
        must_be_less(metric_number(&other.metrics, METRIC_slowdown, 0),
                     metric_number(&direct.metrics, METRIC_slowdown, 0), others[i]);
    }
}

TEST(kv_caches)
{
    static const char concat[] = "kv_concat:rounds=2";
    static const char paged[] = "kv_paged:rounds=2";
    static const char *const policies[] = {"torch", EXPANDABLE, "cupy", "best-fit"};
    must_be_less(physical(EXPANDABLE, concat), physical("torch", concat), concat);
    must_be_less(reserved("torch", concat), reserved("cupy", concat), concat);
    assert_true(figure("best-fit", concat, METRIC_overhead) <= 1.1);
    assert_true(figure("best-fit", paged, METRIC_overhead) <= 1.01);
    assert_true(figure("torch", paged, METRIC_overhead) <= 1.01);
    for (size_t i = 0; i < COUNT(policies); i++)
        must_be_less(figure(policies[i], paged, METRIC_overhead),
                     figure(policies[i], concat, METRIC_overhead), policies[i]);
}

/* ---- streams ---- */

static struct figures ahead(const char *policy, unsigned layers, const char *more)
{
    char workload[96];
    snprintf(workload, sizeof workload, "fsdp_runahead:steps=6,ahead=%u%s", layers, more);
    struct figures figures = run_on("sim:profile=h100", policy, workload);
    if (!figures.passed)
        fail_msg("%s under %s does not pass", workload, policy);
    assert_int_equal(figures.metrics.at[METRIC_races].integer, 0);
    return figures;
}

static uint64_t reserved_of(const struct figures *figures)
{
    return figures->metrics.at[METRIC_peak_reserved_bytes].integer;
}

TEST(fsdp_runahead)
{
    static const unsigned layers[] = {0, 2, 8, 31};
    static const char *const pending[] = {"torch", EXPANDABLE};
    static const char *const waiting[] = {"best-fit", "cupy"};
    for (unsigned p = 0; p < 2; p++) {
        struct figures before = ahead(pending[p], 0, "");
        for (unsigned i = 1; i < 4; i++) {
            struct figures now = ahead(pending[p], layers[i], "");
            uint64_t more = (layers[i] - layers[i - 1]) * 128 * AR_MIB;
            if (reserved_of(&now) < reserved_of(&before) + more)
                fail_msg("%s: %u layers ahead reserve no %u layers more than %u", pending[p],
                         layers[i], layers[i] - layers[i - 1], layers[i - 1]);
            before = now;
        }
    }
    struct figures stash = ahead("torch", 0, ",hold=stash");
    for (unsigned i = 1; i < 4; i++) {
        struct figures record = ahead("torch", layers[i], "");
        struct figures other = ahead("torch", layers[i], ",hold=stash");
        assert_int_equal(reserved_of(&stash), reserved_of(&other));
        assert_true(reserved_of(&stash) < reserved_of(&record));
        for (unsigned p = 0; p < 2; p++) {
            struct figures none = ahead(waiting[p], 0, "");
            struct figures some = ahead(waiting[p], layers[i], "");
            assert_int_equal(reserved_of(&none), reserved_of(&some));
            assert_true(some.metrics.at[METRIC_stall_ns].integer >
                        record.metrics.at[METRIC_stall_ns].integer);
        }
    }
}

TEST(stash_restore)
{
    static const char reverse[] = "stash_restore:steps=10";
    static const char interleaved[] = "stash_restore:steps=10,variant=interleaved";
    static const char side[] = "stash_restore:steps=10,variant=side";
    const double activations = 60 * (72.0 + 4.0) / 2 * (double)AR_MIB;
    must_be_less(physical("torch", reverse), physical("torch", interleaved), "hard, by segments");
    must_be_less(physical("torch", reverse) + activations / 2, physical("torch", side), "stream");
    must_be_less(physical(EXPANDABLE, reverse) + activations / 2, physical(EXPANDABLE, side),
                 "stream, one range");
    assert_true(physical("best-fit", reverse) == physical("best-fit", side));
    /* The opposite may seem natural: the page has the reason. */
    assert_true(physical(EXPANDABLE, reverse) >= physical("torch", reverse));
    assert_true(physical("torch", reverse) == physical("best-fit", reverse));
    static const char card[] = "sim:profile=h100,capacity=3400MiB";
    assert_false(run_on(card, "torch", reverse).passed);
    assert_false(run_on(card, "best-fit", reverse).passed);
    passes(card, EXPANDABLE, reverse);
    passes(card, "vmm", reverse);
    must_be_less(physical(EXPANDABLE, interleaved), physical("torch", interleaved), "soft");
}

/* ---- large cached blocks ---- */

TEST(giant_then_crumbs)
{
    static const char card[] = "sim:profile=h100,capacity=16GiB";
    static const char *const divided[] = {"torch", "cupy"};
    static const char *const whole[] = {EXPANDABLE, "best-fit", "torch:max_split_size_mb=20",
                                        "vmm"};
    const double giant = 11643387904.0, crumbs = 499214336.0;
    for (unsigned i = 0; i < 2; i++) {
        double physical_bytes = physical(divided[i], "giant_then_crumbs");
        assert_true(physical_bytes >= 2 * giant);
        double overhead = physical_bytes / (giant + crumbs);
        assert_true(overhead > 1.915 && overhead < 1.925);
        /* The giant, its kernel and its free, 31 small blocks with a kernel each, the step; the
         * next giant. */
        fails(card, divided[i], "giant_then_crumbs", 3 + 2 * 31 + 1);
    }
    for (unsigned i = 0; i < 4; i++) {
        must_be_less(physical(whole[i], "giant_then_crumbs"), (giant + crumbs) * 1.02, whole[i]);
        passes(card, whole[i], "giant_then_crumbs");
    }
    passes(card, "torch", "giant_then_crumbs:trim=yes");
}

TEST(a_b_a)
{
    static const char card[] = "sim:profile=h100,capacity=8GiB";
    static const char *const failing[] = {"torch", "cupy", "growth:limit=8GiB"};
    static const char *const passing[] = {
        EXPANDABLE, "best-fit",          "direct",
        "vmm",      "greedy:limit=8GiB", "torch:max_split_size_mb=512"};
    for (size_t i = 0; i < COUNT(failing); i++)
        fails(card, failing[i], "a_b_a", 5);
    for (size_t i = 0; i < COUNT(passing); i++)
        passes(card, passing[i], "a_b_a");
    passes(card, "torch", "a_b_a:trim=yes");
    passes(card, "cupy", "a_b_a:trim=yes");
}

TEST(jitter_batch)
{
    static const char workload[] = "jitter_batch:steps=300";
    static const unsigned steps[] = {16, 8, 4, 2};
    double before = figure("torch", workload, METRIC_internal_fragmentation_mean);
    double calls = figure("torch", workload, METRIC_driver_calls);
    for (unsigned i = 0; i < 4; i++) {
        char policy[64];
        snprintf(policy, sizeof policy, "torch:roundup_power2_divisions=%u", steps[i]);
        double waste = figure(policy, workload, METRIC_internal_fragmentation_mean);
        must_be_less(before, waste, policy);
        must_be_less(waste, 1 - 1 / (1 + 1.0 / steps[i]), policy);
        if (steps[i] <= 8)
            must_be_less(figure(policy, workload, METRIC_driver_calls), calls, policy);
        before = waste;
    }
    must_be_less(physical(EXPANDABLE, workload), physical("torch", workload), workload);
}
