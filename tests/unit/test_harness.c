/* Launches that are recorded and repeated, on a device that logs them; and the time that the engine
 * adds, on a simulated device with a known answer. */
#include <math.h>

#include "bench/host/harness.h"
#include "tests/support/fake_device.h"
#include "tests/support/sim.h"
#include "tests/support/test.h"

#define LOG_MOST 64

/* A fake device with kernel ops. It does not call its observer, whose argument is the log. */
struct logging {
    struct fake_device *device;
    struct ar_device_ops ops;
    struct ar_kernel_op log[LOG_MOST];
    size_t count, refused_from; /* operations from this number (from 1) on are refused; 0: none */
};

static enum ar_status log_work(struct ar_device *base, const struct ar_kernel_op *op)
{
    struct logging *self = base->observer.argument;
    if (self->refused_from && self->count + 1 >= self->refused_from)
        return AR_REFUSED;
    if (self->count < LOG_MOST)
        self->log[self->count] = *op;
    self->count++;
    self->ops.kernel(base, op->stream, 1000);
    return AR_OK;
}

static struct ar_device *logging_open(struct logging *self, uint64_t cap_bytes)
{
    memset(self, 0, sizeof *self);
    self->device = fake_device_open(cap_bytes);
    assert_non_null(self->device);
    self->ops = *self->device->base.ops;
    self->ops.kernel_op = log_work;
    self->device->base.ops = &self->ops;
    self->device->base.observer.argument = self;
    return &self->device->base;
}

static struct ar_kernel_op work_on(uint64_t out, uint64_t in)
{
    return (struct ar_kernel_op){.kind = AR_KERNEL_OP_copy,
                                 .input_count = 2,
                                 .out = {out, 4096},
                                 .in = {{in, 4096}, {0, 0}}};
}

/* Two operations that share a block, and one apart; events, a wait and marks between them. */
static void launch_some(struct ar_device *device)
{
    struct ar_kernel_op kernel_ops[] = {work_on(100 * AR_MIB + 512, 100 * AR_MIB + 512 + 4096),
                                        work_on(100 * AR_MIB + 512 + 4096, 900 * AR_MIB + 1024),
                                        work_on(900 * AR_MIB + 1024, 100 * AR_MIB + 512)};
    device->ops->mark(device);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(device->ops->kernel_op(device, &kernel_ops[i]), AR_OK);
        device->ops->event_record(device, i, 0);
        device->ops->stream_wait(device, 1, i);
    }
    device->ops->kernel(device, 1, 500);
    device->ops->sync(device, 1);
    device->ops->mark(device);
}

TEST(kernel_ops_are_launched_again_on_memory_of_their_own)
{
    FREED struct logging *logging = malloc(sizeof *logging);
    struct launch_recorder recorder;
    struct launches launches = {0};
    uint64_t mark_ns[2];
    struct ar_device *device = logging_open(logging, UINT64_MAX);
    launches_record(&recorder, &launches, device);
    launch_some(device);
    assert_ok(launches_end(&recorder, device, &test_error));
    assert_ptr_equal(device->ops, &logging->ops);
    assert_int_equal(launches.kernel_op_count, 3);
    assert_int_equal(launches.marks, 2);
    assert_int_equal(launches.kernels, 1);

    assert_ok(launches_fix(&launches, device, &test_error));
    assert_int_equal(launches.extent_count, 2);
    assert_int_equal(logging->count, 3);
    uint64_t records = logging->device->records, waits = logging->device->waits;
    assert_ok(launches_run(&launches, device, mark_ns, &test_error));
    assert_int_equal(logging->count, 6);
    assert_int_equal(logging->device->records - records, 3);
    assert_int_equal(logging->device->waits - waits, 3);
    assert_true(mark_ns[1] - mark_ns[0] >= 3 * 1000 + 500);

    const struct ar_kernel_op *again = &logging->log[3];
    for (size_t i = 0; i < 3; i++) {
        const struct ar_kernel_op *first = &logging->log[i];
        assert_int_equal(again[i].kind, first->kind);
        assert_int_equal(again[i].out.bytes, 4096);
        assert_int_equal(again[i].out.address % (2 * AR_MIB), first->out.address % (2 * AR_MIB));
        assert_int_equal(again[i].in[0].address % (2 * AR_MIB),
                         first->in[0].address % (2 * AR_MIB));
        assert_int_equal(again[i].in[1].bytes, 0);
        /* In memory that the loop owns. */
        struct ar_device_segment segment;
        assert_true(device->ops->segment_of(device, again[i].out.address, &segment));
        assert_true(again[i].out.address + 4096 <= segment.address + segment.bytes);
    }
    /* What was shared is shared, what was apart is apart. */
    assert_int_equal(again[1].out.address, again[0].in[0].address);
    assert_int_equal(again[2].in[0].address, again[0].out.address);
    assert_int_equal(again[2].out.address, again[1].in[0].address);
    assert_int_equal(again[0].in[0].address - again[0].out.address, 4096);
    assert_true(logging->device->memory.held_bytes > 0);
    launches_close(&launches, device);
    assert_int_equal(logging->device->memory.held_bytes, 0);
    fake_device_close(logging->device);
}

TEST(what_is_refused_ends_with_a_sentence)
{
    FREED struct logging *logging = malloc(sizeof *logging);
    struct launch_recorder recorder;
    struct launches launches = {0};
    uint64_t mark_ns[2];
    struct ar_device *device = logging_open(logging, 5 * AR_MIB);
    launches_record(&recorder, &launches, device);
    launch_some(device);
    logging->refused_from = 1;
    struct ar_kernel_op refused = work_on(0, 4096);
    assert_int_equal(device->ops->kernel_op(device, &refused), AR_REFUSED);
    logging->refused_from = 0;
    assert_ok(launches_end(&recorder, device, &test_error));
    assert_int_equal(launches.kernel_op_count, 3);
    /* Memory for one of two extents: it is released. */
    assert_says(launches_fix(&launches, device, &test_error), AR_NO_MEMORY, "hand-written loop");
    logging->refused_from = logging->count + 2;
    assert_int_equal(launches_run(&launches, device, mark_ns, &test_error), AR_REFUSED);
    launches_close(&launches, device);
    assert_int_equal(logging->device->memory.held_bytes, 0);
    fake_device_close(logging->device);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static const char tape[] = "gradient_tape:layers=3,width=512,batches=64,lengths=1,steps=6";

static enum ar_status measure(const char *policy, const char *workload,
                              struct harness_result *result, struct ar_error *error)
{
    struct ar_device *device = sim_test_open("sim:profile=h100");
    struct ar_spec spec;
    uint64_t free_before, free_after, total_bytes;
    ar_backing_memory(device->backing, &free_before, &total_bytes);
    assert_int_equal(ar_spec_parse(policy, &spec, error), AR_OK);
    struct harness_config config = {
        .policy = &spec, .workload = workload, .device = device, .blocks = 6};
    enum ar_status status = harness_measure(&config, result, error);
    ar_spec_close(&spec);
    ar_backing_memory(device->backing, &free_after, &total_bytes);
    assert_int_equal(device->counters.physical_bytes, 0);
    assert_int_equal(free_after, free_before);
    ar_device_close(device);
    return status;
}

/* A simulated policy takes no host time; one that makes no driver calls in its steps adds
 * nothing. */
TEST(a_policy_that_makes_no_calls_adds_nothing)
{
    static const char *const policies[] = {"growth", "torch", "vmm"};
    struct harness_result result;
    for (size_t i = 0; i < 3; i++) {
        assert_ok(measure(policies[i], tape, &result, &test_error));
        assert_int_equal(result.steps, 6);
        assert_int_equal(result.block_count, 6);
        assert_true(result.kernel_ops + result.kernels > 6 * 20);
        assert_true(result.loop_ns > 0);
        assert_true(fabs(result.added) < 1e-9);
        assert_true(result.most < 0.03);
        assert_true(result.confidence >= 0.95);
        harness_close(&result);
    }
}

/* On a device with memory the engine launches work, and the loop launches all of it again. */
TEST(the_loop_launches_what_the_engine_launched)
{
    FREED struct logging *logging = malloc(sizeof *logging);
    struct ar_device *device = logging_open(logging, 8 * AR_GIB);
    struct harness_result result;
    CLOSED(ar_spec_close) struct ar_spec spec = spec_of("growth");
    struct harness_config config = {
        .policy = &spec, .workload = tape, .device = device, .blocks = 6};
    assert_ok(harness_measure(&config, &result, &test_error));
    assert_true(result.kernel_ops > 6 * 3 * 3);
    assert_true(result.fixed_bytes > 0);
    /* One run is recorded, one of each warms up, and each block has two of each. */
    assert_int_equal(logging->count, (1 + 2 + 6 * 4) * result.kernel_ops);
    assert_true(fabs(result.added) < 1e-9);
    assert_int_equal(logging->device->memory.held_bytes, 0);
    harness_close(&result);
    fake_device_close(logging->device);
}

/* And one that asks the driver each time adds a great deal: the bar can be missed. */
TEST(a_policy_that_asks_the_driver_adds_its_calls)
{
    CLOSED(harness_close) struct harness_result result;
    assert_ok(measure("direct", tape, &result, &test_error));
    assert_true(result.least > 0.03);
    assert_true(result.engine_ns > 1.03 * result.loop_ns);
    assert_true(fabs(result.engine_ns / result.loop_ns - 1 - result.added) < 1e-9);
}

TEST(what_cannot_be_measured_is_said)
{
    struct harness_result result;
    assert_int_equal(measure("growth:limit=1MiB", tape, &result, &test_error), AR_NEGATIVE);
    assert_says(measure("growth", "gradient_tape:steps=1,layers=1,width=64", &result, &test_error),
                AR_INVALID, "two steps");
    assert_int_equal(measure("growth", "no_such_thing", &result, &test_error), AR_INVALID);
}

/* Known: the sign interval of 10 values is the 2nd and the 9th, at 1 - 2 * 11 / 1024; of 5 all. */
TEST(the_interval_is_that_of_the_sign_test)
{
    double values[] = {7, 3, 9, 1, 5, 2, 8, 10, 4, 6}, five[] = {5, 4, 3, 2, 1};
    double least, most, confidence;
    assert_true(harness_median(values, 10) == 5.5);
    harness_interval(values, 10, &least, &most, &confidence);
    assert_true(least == 2 && most == 9);
    assert_true(fabs(confidence - (1 - 22.0 / 1024)) < 1e-12);
    assert_true(harness_median(five, 5) == 3);
    harness_interval(five, 5, &least, &most, &confidence);
    assert_true(least == 1 && most == 5);
    assert_true(fabs(confidence - (1 - 2.0 / 32)) < 1e-12);
    harness_interval(five, 1, &least, &most, &confidence);
    assert_true(least == five[0] && most == five[0]);
}
