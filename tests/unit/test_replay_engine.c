/* The engine's rules on a fake device: what it tells the device, means, and failures of operations.
 * Rows, samples and frees, step by step: tests/steps/replay. */
#include "tests/support/rig.h"
#include "tests/support/test.h"

RIG_TEST(the_device_is_told_who_uses_what)
{
    rig_open(&rig, "first-fit:granule=1", UINT64_MAX,
             "a,0,64,1 u,0,2 u,0,2 u,0,1 r,0,3 a,1,32,0 f,1");
    rig_run(&rig);
    static const struct fake_call expected[] = {
        {'h', 0, 64, 0, 1}, {'u', 0, 64, 4, 1}, {'u', 0, 64, 4, 2},
        {'u', 0, 64, 4, 3}, {'h', 0, 32, 5, 0}, {'u', 0, 32, 6, 0},
    };
    assert_int_equal(rig.device->call_count, 6);
    for (int i = 0; i < 6; i++) {
        const struct fake_call *call = &rig.device->calls[i];
        assert_int_equal(call->what, expected[i].what);
        assert_int_equal(call->bytes, expected[i].bytes);
        assert_int_equal(call->event, expected[i].event);
        assert_int_equal(call->stream, expected[i].stream);
    }
    rig_open(&rig, "first-fit", UINT64_MAX, "a,0,64,1 u,0,2 r,0,3 a,1,32,0 f,1");
    rig.config.frees = REPLAY_AT_ONCE;
    rig_run(&rig);
    assert_int_equal(rig.device->call_count, 0);
    static const char *const needless[][2] = {
        {"null", "a,0,64,1 u,0,2 r,0,3 a,1,32,0 f,1"},       /* memory that is not there */
        {"first-fit", "a,0,64,1 u,0,1 k,0,5 f,0 a,1,32,1"}}; /* blocks on one stream only */
    for (int i = 0; i < 2; i++) {
        rig_open(&rig, needless[i][0], UINT64_MAX, needless[i][1]);
        rig_run(&rig);
        assert_int_equal(rig.device->call_count, 0);
    }
}

RIG_TEST(kernels_and_steps_make_the_timeline)
{
    rig_open(&rig, "direct", UINT64_MAX,
             "a,0,8 k,0,100 m,step k,0,10 s m,step e,1,0 w,0,1 k,0,30 f,0 m,step k,0,20 m,step");
    rig_run(&rig);
    static const uint64_t ends[] = {100, 110, 140, 160};
    assert_int_equal(rig.result.steps, 4);
    assert_memory_equal(rig.result.step_end_ns, ends, sizeof ends);
    assert_true(rig_metric(&rig, METRIC_device_time_ns) == 160);
    assert_true(rig_metric(&rig, METRIC_first_step_ns) == 100);
    assert_true(rig_metric(&rig, METRIC_steady_step_ns) == 20); /* of 30 and 20 the lower */
    assert_true(rig_metric(&rig, METRIC_steps_per_s) == 4e9 / 160);
    assert_int_equal(rig.device->syncs, 1);
    assert_int_equal(rig.device->records, 1);
    assert_int_equal(rig.device->waits, 1);
}

static double part_that_is_lacking(uint64_t part, uint64_t whole)
{
    return part >= whole ? 0 : 1 - (double)part / (double)whole;
}

/* The sums of a run with observers are those of one without, and of its samples, each of which has
 * the weight of the state before it. */
RIG_TEST(means_are_those_of_the_samples)
{
    static const char events[] =
        "t,5 a,0,800 k,0,3 t,9 !,x a,1,300 t,12 t,13 f,0 t,19 k,0,4 t,31 a,2,200 a,3,100 t,40 "
        "r,1 t,44 f,1 t,50 c t,57 s t,61 p,4,5000 t,63 f,2 t,70 m,step t,80 f,3 t,99";
    static const char *const policies[] = {
        "first-fit:granule=1", "growth", "torch", "slab", "cupy", "rmm-pool", "tlsf", "null"};
    for (size_t i = 0; i < COUNT(policies); i++) {
        double external = 0, stranded = 0, internal = 0;
        double free_weight = 0, weight = 0, granted_weight = 0;
        rig_open(&rig, policies[i], 64 * AR_MIB, events);
        rig_run(&rig);
        for (unsigned at = 1; at < rig.sample_count; at++) {
            const struct replay_sample *before = &rig.samples[at - 1];
            double by = (double)rig.samples[at].weight;
            external += by * part_that_is_lacking(before->servable_bytes[0], before->free_bytes);
            stranded += by * (double)before->stranded_bytes;
            internal += by * part_that_is_lacking(before->live_bytes, before->granted_bytes);
            free_weight += before->free_bytes ? by : 0;
            granted_weight += before->granted_bytes ? by : 0;
        }
        weight = 99;
        struct metric_values watched = rig.result.metrics;
        if (free_weight > 0)
            assert_true(metric_number(&watched, METRIC_external_fragmentation_mean, -1) ==
                        external / free_weight);
        assert_true(metric_number(&watched, METRIC_stranded_bytes_mean, -1) == stranded / weight);
        assert_true(metric_number(&watched, METRIC_internal_fragmentation_mean, -1) ==
                    internal / granted_weight);
        rig_open(&rig, policies[i], 64 * AR_MIB, events);
        rig.config.observer = NULL;
        rig_run(&rig);
        for (int metric = 0; metric < METRIC_COUNT; metric++)
            assert_true(metric_number(&rig.result.metrics, (enum metric)metric, -1) ==
                        metric_number(&watched, (enum metric)metric, -1));
    }
}

static uint64_t card_says(struct ar_device *device)
{
    struct fake_device *self = (struct fake_device *)device;
    return 1000 +
           10 * ++self->records; /* the fake counts events in it, which this trace has none of */
}

RIG_TEST(the_card_is_asked_at_the_ends_of_steps)
{
    rig_open(&rig, "direct", UINT64_MAX, "a,0,8 m,step m,step m,step m,step m,step m,step f,0");
    static struct ar_device_ops ops; /* until the rig closes */
    ops = *rig.device->base.ops;
    ops.card_bytes = card_says;
    rig.device->base.ops = &ops;
    rig.device->base.counters.physical_bytes = 400;
    rig_run(&rig);
    /* In the first four, then only after a new peak, and at the end. */
    assert_true(rig_metric(&rig, METRIC_peak_card_bytes) == 1050);
    assert_true(rig_metric(&rig, METRIC_peak_outside_bytes) == 650);
    rig_open(&rig, "direct", UINT64_MAX, "a,0,8 m,step f,0");
    rig_run(&rig);
    assert_true(rig_metric(&rig, METRIC_peak_card_bytes) == -1);
    assert_true(rig_metric(&rig, METRIC_peak_outside_bytes) == -1);
}

static enum ar_status refuse_work(struct ar_device *device, const struct ar_kernel_op *kernel_op)
{
    return kernel_op->stream == 1 ? AR_REFUSED : AR_UNSUPPORTED;
}

RIG_TEST(work_that_cannot_be_launched)
{
    rig_open(&rig, "direct", UINT64_MAX,
             "a,0,8,1 k,0,30,op=set,out=0 k,1,50,op=set,out=0 k,1,7 r,0");
    static struct ar_device_ops ops; /* until the rig closes */
    ops = *rig.device->base.ops;
    ops.kernel_op = refuse_work;
    rig.device->base.ops = &ops;
    rig_run(&rig);
    /* A device that does not support an operation runs a kernel of its length; one without memory
     * fails. */
    assert_int_equal(rig.device->idle_ns, 37);
    assert_false(rig.result.passed);
    assert_int_equal(rig.result.first_failed_event, 2);
    assert_int_equal(rig.result.first_failed_bytes, 0);
    assert_int_equal(rig.result.cause, REPLAY_CAUSE_OUTSIDE);
    assert_true(rig_metric(&rig, METRIC_failed_by_outside) == 1);
}

static struct ar_device_operand seen[3];

static enum ar_status see_work(struct ar_device *device, const struct ar_kernel_op *kernel_op)
{
    seen[0] = kernel_op->out;
    seen[1] = kernel_op->in[0];
    seen[2] = kernel_op->in[1];
    assert_int_equal(kernel_op->input_count, 2);
    assert_int_equal(kernel_op->kind, AR_KERNEL_OP_matmul);
    assert_int_equal(kernel_op->type, AR_DEVICE_BF16);
    assert_true(kernel_op->m == 2 && kernel_op->n == 3 && kernel_op->k == 5);
    return AR_OK;
}

RIG_TEST(operands_lie_where_the_policy_put_them)
{
    rig_open(&rig, "first-fit:granule=1", 100,
             "a,0,40 p,1,90 a,2,30 k,0,9,op=matmul,out=~1,in=0+1,shape=2x3x5,type=bf16");
    static struct ar_device_ops ops; /* until the rig closes */
    ops = *rig.device->base.ops;
    ops.kernel_op = see_work;
    rig.device->base.ops = &ops;
    rig_run(&rig);
    assert_int_equal(seen[0].address - seen[1].address, 40);
    assert_int_equal(seen[0].bytes, 30);
    assert_int_equal(seen[1].bytes, 40);
    assert_int_equal(seen[2].bytes, 0); /* its request failed */
    assert_int_equal(rig.device->idle_ns, 0);
}

static enum ar_status fail_outside(struct ar_device *device, uint64_t bytes)
{
    return bytes == 50 ? AR_IO : AR_OK;
}

/* Too little memory is an outcome; another failure of the driver ends the run with its sentence. */
RIG_TEST(memory_outside_of_the_pool_may_fail)
{
    rig_open(&rig, "direct", 100, "a,0,60 o,40 o,50 a,1,1");
    static struct ar_device_ops ops; /* until the rig closes */
    ops = *rig.device->base.ops;
    ops.outside = fail_outside;
    rig.device->base.ops = &ops;
    assert_says(replay_run(&rig.config, &rig.result, &test_error), AR_IO,
                "event 2: policy direct: memory outside of the pool");
}

RIG_TEST(a_recording_without_uses_is_replayed_in_two_modes)
{
    enum replay_frees modes[2];
    struct trace_info info = {.has_split_frees = true};
    assert_int_equal(replay_frees_choices(&info, REPLAY_ORDERED, modes), 2);
    assert_string_equal(replay_frees_name(modes[0]), "at-once");
    assert_string_equal(replay_frees_name(modes[1]), "recorded");
    assert_int_equal(replay_frees_choices(&info, REPLAY_RECORDED, modes), 1);
    assert_int_equal(modes[0], REPLAY_RECORDED);
    info.has_uses = true;
    assert_int_equal(replay_frees_choices(&info, REPLAY_ORDERED, modes), 1);
    assert_string_equal(replay_frees_name(modes[0]), "ordered");
    info = (struct trace_info){.has_uses = false};
    assert_int_equal(replay_frees_choices(&info, REPLAY_ORDERED, modes), 1);
    assert_int_equal(modes[0], REPLAY_ORDERED);
    assert_string_equal(replay_host_name(REPLAY_HOST_RECORDED), "recorded");
    assert_string_equal(replay_host_name(REPLAY_HOST_NONE), "none");
    assert_string_equal(replay_host_name(REPLAY_HOST_OPEN), "open");
    assert_string_equal(replay_cause_name(REPLAY_CAUSE_FRAGMENTATION), "fragmentation");
    assert_string_equal(replay_cause_name(REPLAY_CAUSE_CAPACITY), "capacity");
}
