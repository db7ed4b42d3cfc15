/* The order of streams by the engine and by every policy, on a device that runs as late as allowed,
 * with verified contents; and that planted errors are found. */
#include "allocators/registry.h"
#include "sim/replay.h"
#include "sim/experiment/session.h"
#include "tests/support/amount.h"
#include "tests/support/late_device.h"
#include "tests/support/policy_rig.h"
#include "tests/support/test.h"
#include "tests/support/tiny_trace.h"
#include "workloads/workload.h"

#define DEVICE "sim:capacity=16GiB"

struct outcome {
    enum ar_status status;
    struct ar_error error;
    struct late_counts counts;
    uint64_t races;
};

/* Replays `source` with an existing policy. */
static void replay(struct session *session, struct trace_source *source, enum replay_frees frees,
                   bool verify, struct outcome *out)
{
    struct replay_result result;
    struct replay_config config = {.policy = session->policy,
                                   .device = session->device,
                                   .source = source,
                                   .frees = frees,
                                   .verify = verify};
    memset(out, 0, sizeof *out);
    out->status = session_plan(session, source, frees, &out->error);
    if (out->status == AR_OK)
        out->status = trace_rewind(source, &out->error);
    if (out->status == AR_OK) {
        out->status = replay_run(&config, &result, &out->error);
        replay_result_close(&result);
    }
    out->counts = *late_device_counts(session->device);
    out->races = session->device->counters.races;
}

/* False: the policy does not run on this device. */
static bool run(const char *policy, struct trace_source *source, enum replay_frees frees,
                uint64_t seed, bool verify, struct outcome *out)
{
    struct session session = {.device = late_device_open(DEVICE, seed)};
    struct ar_spec spec;
    session.context = (struct ar_policy_context){
        .backing = session.device->backing, .host = &session.host, .seed = seed};
    assert_ok(ar_spec_parse(policy, &spec, &test_error));
    enum ar_status status = registry_create(&spec, &session.context, &session.policy, &test_error);
    if (status != AR_OK && status != AR_UNSUPPORTED)
        fail_msg("%s: %s", policy, test_error.text);
    if (status == AR_OK)
        replay(&session, source, frees, verify, out);
    session_close(&session);
    ar_spec_close(&spec);
    return status == AR_OK;
}

static struct trace_source *open(const char *workload)
{
    struct trace_source *source;
    if (workload_open(workload, &source, &test_error) != AR_OK)
        fail_msg("%s: %s", workload, test_error.text);
    return source;
}

/* Two streams: blocks allocated on one, used on the other and freed on either, with and without a
 * wait for the other; and the same bytes requested again immediately. */
static const char *const streams[] = {
    "a,0,4096 k,0,9 u,0,1 k,1,9 r,0 a,1,4096 a,2,4096,1 r,1 r,2 a,3,4096,1 a,4,4096",
    "a,0,4096,1 a,1,8192 u,0,0 r,0 r,1,1 a,2,8192,1 a,3,4096 u,3,1 r,3,1 a,4,4096 r,2 r,4",
    "a,0,3000000 u,0,1 u,0,2 r,0 a,1,3000000,1 r,1 a,2,3000000,2 r,2 a,3,3000000 s r,3",
    "a,0,3000000 e,1,0 w,1,1 u,0,1 e,2,1 w,0,2 r,0 a,1,3000000 r,1 a,2,3000000,1",
};

static void every_policy(const char *name, struct trace_source *source, enum replay_frees frees)
{
    const uint64_t seeds = test_amount(2, 2);
    unsigned ran = 0;
    const char *policy;
    for (size_t i = 0; (policy = policy_rig_each(i)); i++) {
        if (policy_rig_has(policy, AR_POLICY_OVERLAPS))
            continue;
        for (uint64_t seed = 1; seed <= seeds; seed++) {
            struct outcome outcome;
            if (!run(policy, source, frees, seed, true, &outcome))
                continue;
            if (outcome.status != AR_OK)
                fail_msg("%s under %s: %s", name, policy, outcome.error.text);
            assert_true(outcome.counts.fills > 0);
            assert_true(outcome.counts.readings >= outcome.counts.fills);
            assert_int_equal(outcome.races, 0);
            ran++;
        }
    }
    if (getenv("POLICY"))
        print_message("%s, %s: %u replays verified\n", getenv("POLICY"), name, ran);
    else
        assert_true(ran >= seeds * 16); /* all that are in the tree but null */
}

TEST(no_policy_gives_a_block_to_another_stream_too_early)
{
    for (size_t i = 0; i < COUNT(streams); i++) {
        CLOSED(close_trace) struct trace_source *source = tiny_trace(streams[i]);
        every_policy(streams[i], source, REPLAY_ORDERED);
        every_policy(streams[i], source, REPLAY_RECORDED);
        every_policy(streams[i], source, REPLAY_AT_ONCE);
    }
}

TEST(no_policy_on_workloads_of_several_streams)
{
    static const char *const workloads[] = {
        "fsdp_runahead:steps=2",
        "workloads/data/side_streams.default.csv.gz",
        "stash_restore:steps=3",
        "workloads/data/streams_prefetch.default.csv.gz",
    };
    for (size_t i = 0; i < test_amount(COUNT(workloads), COUNT(workloads)); i++) {
        CLOSED(close_trace) struct trace_source *source = open(workloads[i]);
        enum replay_frees modes[2];
        unsigned count = replay_frees_choices(&source->info, REPLAY_ORDERED, modes);
        for (unsigned mode = 0; mode < count; mode++)
            every_policy(workloads[i], source, modes[mode]);
    }
}

TEST(no_policy_on_one_stream)
{
    static const char *const workloads[] = {
        "random:events=3000,target=256MiB,max=24MiB",
        "gradient_tape:steps=2,layers=3,width=256,batches=64",
        "matmul_cache:shapes=64;512;1000,repeat=2",
    };
    for (size_t i = 0; i < COUNT(workloads); i++) {
        CLOSED(close_trace) struct trace_source *source = open(workloads[i]);
        every_policy(workloads[i], source, REPLAY_ORDERED);
    }
}

/* ---- what is planted ---- */

/* Blocks of one size from one segment; the latest free one is served first. It claims to be
 * stream-ordered and ignores streams. */
struct hasty {
    struct ar_policy base;
    struct ar_backing *backing;
    uint64_t segment, next, freed;
};

#define HASTY_BYTES 65536u

static enum ar_status hasty_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                                  struct ar_policy_block *out)
{
    struct hasty *self = (struct hasty *)base;
    out->address = self->freed ? self->freed : self->segment + HASTY_BYTES * self->next++;
    out->granted_bytes = HASTY_BYTES;
    self->freed = 0;
    base->totals.live_blocks++;
    base->totals.live_bytes += request->bytes;
    return AR_OK;
}

static enum ar_status hasty_free(struct ar_policy *base, const struct ar_policy_block *block,
                                 uint32_t stream)
{
    ((struct hasty *)base)->freed = block->address;
    base->totals.live_blocks--;
    base->totals.live_bytes -= block->requested_bytes;
    return AR_OK;
}

static void hasty_destroy(struct ar_policy *base)
{
}

static void hasty_stats(const struct ar_policy *base, struct ar_policy_stats *out)
{
    *out = (struct ar_policy_stats){.totals = base->totals};
}

static const struct ar_policy_ops hasty_ops = {
    .name = "hasty",
    .capabilities = AR_POLICY_STREAM_ORDERED,
    .alloc = hasty_alloc,
    .free = hasty_free,
    .destroy = hasty_destroy,
    .stats = hasty_stats,
};

static void run_hasty(const char *events, bool ordered_by_engine, struct outcome *out)
{
    struct ar_policy_ops ops = hasty_ops;
    CLOSED(close_trace) struct trace_source *source = tiny_trace(events);
    CLOSED(session_close) struct session session = {.device = late_device_open(DEVICE, 1)};
    struct hasty hasty = {.base = {.ops = &ops}, .backing = session.device->backing};
    if (ordered_by_engine)
        ops.capabilities = 0;
    assert_int_equal(ar_backing_segment_alloc(hasty.backing, 16 * AR_MIB, &hasty.segment), AR_OK);
    session.policy = &hasty.base;
    replay(&session, source, REPLAY_ORDERED, true, out);
}

TEST(a_planted_race_is_found)
{
    static const char *const races[] = {
        "a,0,4096 u,0,1 r,0 a,1,4096",      /* the other stream still reads */
        "a,0,4096 r,0 a,1,4096,1",          /* its own does */
        "a,0,4096,1 r,0,0 a,1,4096 m,step", /* freed on another stream than it was used on */
        "a,0,4096 r,0 e,1,1 w,0,1 a,1,9,1", /* an order in the wrong direction */
    };
    for (size_t i = 0; i < COUNT(races); i++) {
        struct outcome outcome;
        run_hasty(races[i], false, &outcome);
        assert_int_equal(outcome.status, AR_CORRUPT);
        assert_non_null(strstr(outcome.error.text, "policy hasty: block 0 of event 0, stream "));
        assert_non_null(strstr(outcome.error.text, "byte 0 is 0x01, where 0x00 was written"));
        assert_non_null(strstr(outcome.error.text, "Block 1 of event "));
        /* The same policy if the engine orders the streams. */
        run_hasty(races[i], true, &outcome);
        if (outcome.status != AR_OK)
            fail_msg("%s: %s", races[i], outcome.error.text);
    }
}

TEST(what_the_program_orders_is_no_race)
{
    static const char *const fine[] = {
        "a,0,4096 r,0 a,1,4096",                     /* one stream after itself */
        "a,0,4096 r,0 e,1,0 w,1,1 a,1,4096,1 r,1 s", /* the other waits */
        "a,0,4096 u,0,1 r,0 s a,1,4096",             /* the host waits */
    };
    for (size_t i = 0; i < COUNT(fine); i++) {
        struct outcome outcome;
        run_hasty(fine[i], false, &outcome);
        if (outcome.status != AR_OK)
            fail_msg("%s: %s", fine[i], outcome.error.text);
    }
}

TEST(null_cannot_be_verified)
{
    struct outcome outcome;
    CLOSED(close_trace) struct trace_source *source = tiny_trace("a,0,8");
    assert_true(run("null", source, REPLAY_ORDERED, 1, true, &outcome));
    assert_int_equal(outcome.status, AR_UNSUPPORTED);
}

/* ---- work and touches ---- */

static void count_of(const char *events, bool verify, struct outcome *out)
{
    CLOSED(close_trace) struct trace_source *source = tiny_trace(events);
    assert_true(run("torch", source, REPLAY_ORDERED, 1, verify, out));
}

TEST(kernels_work_on_their_blocks)
{
    static const char events[] = "a,0,4096 a,1,4096 k,0,5,op=copy,out=~1,in=0 "
                                 "k,0,5,op=set,out=0,type=i64 k,0,5 k,0,5,x=1 f,0";
    struct outcome outcome;
    count_of(events, false, &outcome);
    if (outcome.status != AR_OK)
        fail_msg("%s", outcome.error.text);
    assert_int_equal(outcome.counts.kernel_ops, 1);
    assert_int_equal(outcome.counts.fills, 1); /* numbers of rows */
    assert_int_equal(outcome.counts.kernels, 2);
    assert_int_equal(outcome.counts.touches, 0);
    count_of(events, true, &outcome);
    assert_int_equal(outcome.status, AR_OK);
    assert_int_equal(outcome.counts.kernel_ops, 0);
    assert_int_equal(outcome.counts.kernels, 4);
}

TEST(keys_that_cannot_be_stop_the_run)
{
    EACH_ROW (row, 2) {
        struct outcome outcome;
        count_of(row.field[0], false, &outcome);
        assert_int_equal(outcome.status, AR_INVALID);
        if (!strstr(outcome.error.text, row.field[1]))
            fail_msg("\"%s\" does not say \"%s\"", outcome.error.text, row.field[1]);
    }
}

TEST(blocks_are_touched_where_there_are_no_kernels)
{
    struct outcome outcome;
    count_of("a,0,4096 a,1,0 p,2,8 f,0", false, &outcome);
    assert_int_equal(outcome.counts.touches, 2);
    count_of("a,0,4096 k,0,9 f,0", false, &outcome);
    assert_int_equal(outcome.counts.touches, 0);
    assert_int_equal(outcome.counts.kernels, 1);
}

TEST(the_document_generators_work)
{
    static const char *const workloads[] = {
        "gradient_tape:steps=2,layers=3,width=256,batches=64",
        "embedding:steps=12,tables=2,rows=1000,batches=64,bags=3",
        "matmul_cache:shapes=64;512,repeat=2",
    };
    for (size_t i = 0; i < COUNT(workloads); i++) {
        CLOSED(close_trace) struct trace_source *source = open(workloads[i]);
        struct outcome outcome;
        assert_true(run("torch", source, REPLAY_ORDERED, 1, false, &outcome));
        if (outcome.status != AR_OK)
            fail_msg("%s: %s", workloads[i], outcome.error.text);
        /* matmul_cache: a probe without scratch memory for each of two shapes. */
        assert_int_equal(outcome.counts.kernels, i == 2 ? 2 : 0);
        assert_true(outcome.counts.kernel_ops > 10);
    }
}
