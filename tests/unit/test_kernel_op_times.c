/* Times of kernel ops on the simulated device: the two limits of an operation, by its shape and its
 * operands; and that a run and its baseline use them as the lengths of kernels. */
#include <unistd.h>

#include "sim/experiment/session.h"
#include "sim/sim_device/kernel_limits.h"
#include "tests/support/experiment_rig.h"
#include "tests/support/sim.h"
#include "tests/support/test.h"
#include "tests/support/trace_rig.h"

/* An operand of that size. */
#define OF(count)                                                                                  \
    {                                                                                              \
        4096, count                                                                                \
    }

TEST(what_bounds_a_work)
{
    static const struct {
        struct ar_kernel_op op;
        struct sim_kernel_limit limits[3]; /* the end has size 0 */
    } rows[] = {
        {{AR_KERNEL_OP_matmul, AR_DEVICE_BF16, 0, 2, 100, 20, 30, OF(4000), {OF(6000), OF(1200)}},
         {{SIM_KERNEL_OP_matmul_bf16, 2 * 100 * 20 * 30}, {SIM_KERNEL_OP_thin_bf16, 11200}}},
        /* cut to the rows of the left operand, to k of the right one, to the output */
        {{AR_KERNEL_OP_matmul, AR_DEVICE_F32, 0, 2, 100, 20, 30, OF(8000), {OF(1200), OF(2400)}},
         {{SIM_KERNEL_OP_matmul_f32, 2 * 10 * 20 * 30},
          {SIM_KERNEL_OP_thin_f32, 4 * (200 + 300 + 600)}}},
        {{AR_KERNEL_OP_matmul, AR_DEVICE_TF32, 0, 2, 100, 20, 30, OF(8000), {OF(12000), OF(800)}},
         {{SIM_KERNEL_OP_matmul_tf32, 2 * 100 * 20 * 10},
          {SIM_KERNEL_OP_thin_tf32, 4 * (2000 + 1000 + 200)}}},
        {{AR_KERNEL_OP_matmul, AR_DEVICE_F16, 0, 2, 100, 20, 30, OF(200), {OF(6000), OF(1200)}},
         {{SIM_KERNEL_OP_matmul_f16, 2 * 5 * 20 * 30},
          {SIM_KERNEL_OP_thin_f16, 2 * (100 + 150 + 600)}}},
        {{AR_KERNEL_OP_matmul, AR_DEVICE_I8, 0, 2, 9, 9, 9, OF(81), {OF(81), OF(81)}}, {{0}}},
        {{AR_KERNEL_OP_elementwise, AR_DEVICE_F32, 0, 2, 0, 0, 0, OF(400), {OF(800), OF(404)}},
         {{SIM_KERNEL_OP_elementwise, 1200}}},
        {{AR_KERNEL_OP_elementwise, AR_DEVICE_I64, 0, 2, 5, 2, 0, OF(400), {OF(800), OF(0)}},
         {{SIM_KERNEL_OP_elementwise, 2 * 80}}}, /* one is not there */
        {{AR_KERNEL_OP_copy, AR_DEVICE_I8, 0, 1, 0, 0, 0, OF(400), {OF(300)}},
         {{SIM_KERNEL_OP_copy, 600}}},
        {{AR_KERNEL_OP_set, AR_DEVICE_F16, 0, 0, 30, 0, 0, OF(400), {OF(0)}},
         {{SIM_KERNEL_OP_set, 60}}},
        {{AR_KERNEL_OP_set, AR_DEVICE_F16, 0, 0, 0, 0, 0, OF(400), {OF(0)}},
         {{SIM_KERNEL_OP_set, 400}}},
        {{AR_KERNEL_OP_reduce, AR_DEVICE_BF16, 0, 1, 1000, 64, 0, OF(128), {OF(128000)}},
         {{SIM_KERNEL_OP_reduce, 128000}, {SIM_KERNEL_OP_strip_16, 32000}}},
        {{AR_KERNEL_OP_reduce, AR_DEVICE_F32, 0, 1, 1000, 8, 0, OF(32), {OF(16000)}},
         {{SIM_KERNEL_OP_reduce, 16000}, {SIM_KERNEL_OP_strip_32, 4000}}},
        {{AR_KERNEL_OP_reduce, AR_DEVICE_I64, 0, 1, 10, 8, 0, OF(64), {OF(640)}}, {{0}}},
        {{AR_KERNEL_OP_gather, AR_DEVICE_F32, 0, 2, 50, 16, 0, OF(6400), {OF(64000), OF(240)}},
         {{SIM_KERNEL_OP_gather, 2 * 50 * 64},
          {SIM_KERNEL_OP_gather_rows, 50}}}, /* names of 4 bytes */
        {{AR_KERNEL_OP_gather, AR_DEVICE_F32, 0, 2, 50, 16, 0, OF(640), {OF(64000), OF(400)}},
         {{SIM_KERNEL_OP_gather, 2 * 10 * 64}, {SIM_KERNEL_OP_gather_rows, 10}}},
        {{AR_KERNEL_OP_scatter_add,
          AR_DEVICE_BF16,
          0,
          2,
          50,
          16,
          0,
          OF(64000),
          {OF(1600), OF(400)}},
         {{SIM_KERNEL_OP_scatter_add_bf16, 50 * 32}, {SIM_KERNEL_OP_scatter_rows, 50}}},
        /* addresses do not matter, even unaligned ones */
        {{AR_KERNEL_OP_reduce, AR_DEVICE_F32, 0, 1, 1000, 8, 0, {4097, 32}, {{4098, 16000}}},
         {{SIM_KERNEL_OP_reduce, 16000}, {SIM_KERNEL_OP_strip_32, 4000}}},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct sim_kernel_limit limits[SIM_KERNEL_LIMITS];
        unsigned count = sim_kernel_limits(&rows[i].op, limits), expected = 0;
        while (rows[i].limits[expected].size)
            expected++;
        if (count != expected)
            print_error("row %zu\n", i);
        assert_int_equal(count, expected);
        for (unsigned k = 0; k < count; k++) {
            if (limits[k].size != rows[i].limits[k].size)
                print_error("row %zu, limit %u\n", i, k);
            assert_int_equal(limits[k].op, rows[i].limits[k].op);
            assert_int_equal(limits[k].size, rows[i].limits[k].size);
        }
    }
}

#define HEAD                                                                                       \
    "# allocrig-profile 1\nname: mine\ntotal_bytes: 17179869184\nusable_bytes: 17179869184\n"      \
    "page_bytes: 2097152\ngranule_bytes: 512\n"

struct card {
    char path[32], spec[64];
};

static struct card card_of(const char *text)
{
    struct card card = {.path = "/tmp/allocrig-works-XXXXXX"};
    FILE *file = fdopen(mkstemp(card.path), "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    snprintf(card.spec, sizeof card.spec, "sim:profile=%s", card.path);
    return card;
}

static struct ar_device *device_of(const char *text)
{
    struct card card = card_of(text);
    struct ar_device *device = sim_test_open(card.spec);
    unlink(card.path);
    return device;
}

/* The slower limit counts. Between points it is on a line. Without one of the two, or without any
 * points, it is not known. */
TEST(the_longer_of_both)
{
    struct ar_device *device = device_of(HEAD "work: gather 1000 100\nwork: gather 100000 10000\n"
                                              "work: gather_rows 10 300\nwork: reduce 64 7\n");
    struct ar_kernel_op op = {
        .kind = AR_KERNEL_OP_gather,
        .m = 20,
        .n = 16,
        .input_count = 2,
        .out = {512, 1 << 20},
        .in = {{512, 1 << 20}, {512, 1 << 20}},
    };
    assert_int_equal(device->ops->kernel_op_ns(device, &op), 300);
    op.m = 400;
    assert_int_equal(device->ops->kernel_op_ns(device, &op), 5120);
    op.in[1].bytes = 3;
    assert_int_equal(device->ops->kernel_op_ns(device, &op), 1); /* no row is named */
    op.kind = AR_KERNEL_OP_reduce;
    assert_int_equal(device->ops->kernel_op_ns(device, &op), 0);
    op.kind = AR_KERNEL_OP_set;
    assert_int_equal(device->ops->kernel_op_ns(device, &op), 0);
    ar_device_close(device);
    device = device_of(HEAD);
    assert_null(device->ops->kernel_op_ns); /* the profile has no such costs */
    ar_device_close(device);
}

#define WORKS                                                                                      \
    HEAD "work: elementwise 8000 800\nwork: elementwise 80000 8000\nwork: set 10000 500\n"         \
         "work: set 40000 2000\n"

/* Two steps of kernels, of which some are known. */
static const char trace_text[] = "# allocrig-trace 1\na,0,40000\na,1,40000\na,2,0\n"
                                 "k,0,500,op=elementwise,out=0,in=1,type=f32\n" /* 8000 */
                                 "k,0,600,op=set,out=~2,type=i8\n"              /* 2000 */
                                 "k,0,700,op=copy,out=0,in=1\n"                 /* not known: 700 */
                                 "k,0,800\n"                                    /* 800 */
                                 "k,0,900,op=set,out=2\n"                       /* no block: 900 */
                                 "k,0,1000,op=elementwise,out=0,in=2\n"         /* nothing: 1 */
                                 "m,step\nf,1\na,3,20000\n"
                                 "k,0,50,op=set,out=~1\n" /* half of it: 1000 */
                                 "m,step\nf,3\nf,0\nf,2\n";

#define ALL_NS (8000 + 2000 + 700 + 800 + 900 + 1 + 1000)

static struct trace_source *source_of(struct trace_rig *files, const char *text)
{
    struct trace_source *source;
    assert_ok(trace_rig_text(files, text, &source, &test_error));
    return source;
}

/* The time of the trace on a card with that profile, of the run and of its baseline. */
static void times_of(struct trace_rig *files, const char *policy, const char *profile,
                     uint64_t *run_ns, uint64_t *baseline_ns)
{
    struct experiment_rig rig;
    struct baseline baseline;
    struct card card = card_of(profile);
    experiment_rig_over(&rig, policy, card.spec, source_of(files, trace_text));
    experiment_rig_run(&rig);
    assert_true(rig.result.passed);
    *run_ns = (uint64_t)rig.result.metrics.at[METRIC_device_time_ns].integer;
    assert_int_equal(baseline_run(&rig.device, rig.source, REPLAY_HOST_NONE, &baseline, &rig.error),
                     AR_OK);
    *baseline_ns = baseline.time_ns;
    experiment_rig_close(&rig);
    unlink(card.path);
}

TRACE_TEST(run_and_baseline_take_it)
{
    static const char *const policies[] = {"first-fit", "torch", "direct", "null"};
    uint64_t run_ns, baseline_ns;
    for (size_t i = 0; i < COUNT(policies); i++) {
        times_of(*state, policies[i], WORKS, &run_ns, &baseline_ns);
        assert_int_equal(run_ns, ALL_NS);
        assert_int_equal(baseline_ns, ALL_NS);
    }
    times_of(*state, "torch", HEAD, &run_ns, &baseline_ns); /* events' own lengths */
    assert_int_equal(run_ns, 500 + 600 + 700 + 800 + 900 + 1000 + 50);
    assert_int_equal(baseline_ns, run_ns);
}

/* The operand of a failed request does not exist: its kernel keeps its length. */
TRACE_TEST(what_failed_has_no_size)
{
    struct experiment_rig rig;
    struct card card = card_of(WORKS);
    experiment_rig_over(&rig, "torch", card.spec,
                        source_of(*state, "# allocrig-trace 1\na,0,40000\np,1,34359738368\n"
                                          "k,0,70,op=set,out=1\nk,0,10,op=set,out=0\n"));
    experiment_rig_run(&rig);
    assert_true(rig.result.passed);
    assert_int_equal(rig.result.metrics.at[METRIC_device_time_ns].integer, 70 + 2000);
    experiment_rig_close(&rig);
    unlink(card.path);
}

/* As on a card, which performs the operation. */
TRACE_TEST(a_block_must_be_live)
{
    struct experiment_rig rig;
    struct card card = card_of(WORKS);
    struct baseline baseline;
    experiment_rig_over(&rig, "torch", card.spec,
                        source_of(*state, "# allocrig-trace 1\na,0,40000\nf,0\n"
                                          "k,0,70,op=set,out=0\n"));
    assert_int_equal(experiment_run(&rig.experiment, &rig.result, &rig.props, &rig.error),
                     AR_INVALID);
    assert_non_null(strstr(rig.error.text, "event 2: its operand is block 0, which is not live"));
    assert_int_equal(baseline_run(&rig.device, rig.source, REPLAY_HOST_NONE, &baseline, &rig.error),
                     AR_INVALID);
    assert_non_null(strstr(rig.error.text, "baseline, a kernel: its operand is block 0"));
    experiment_rig_close(&rig);
    unlink(card.path);
}
