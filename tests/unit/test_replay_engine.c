/* The engine's rules, one by one, on a fake device. */
#include "tests/support/rig.h"
#include "tests/support/test.h"

/* `address`: of the block, in an arena of neighbouring segments. -1: none. */
static void check_row(unsigned at, uint64_t event, char op, int64_t address, uint64_t total)
{
    assert_true(at < rig.row_count);
    const struct replay_row *row = &rig.rows[at];
    assert_int_equal(row->event, event);
    assert_int_equal(row->op, op);
    if (address < 0) {
        assert_int_equal(row->segment, -1);
        assert_int_equal(row->offset, -1);
    } else {
        assert_true(row->segment >= 0 && (uint64_t)row->segment < rig.device->memory.made);
        uint64_t start = rig.device->memory.segments[row->segment].address;
        assert_int_equal(start + (uint64_t)row->offset, address);
    }
    assert_int_equal(row->granted_total_bytes, total);
}

RIG_TEST(rows_say_where_blocks_lie)
{
    rig_open(&rig, "first-fit:granule=1", UINT64_MAX, "a,0,100 a,1,50 f,0 m,x a,2,60 p,3,40 f,1");
    rig_run(&rig);
    assert_int_equal(rig.row_count, 6);
    check_row(0, 0, 'a', 0, 100);
    check_row(1, 1, 'a', 100, 150);
    check_row(2, 2, 'f', 0, 50);
    check_row(3, 4, 'a', 0, 110);
    check_row(4, 5, 'p', 60, 150);
    check_row(5, 6, 'f', 100, 100);
    assert_int_equal(rig.rows[4].requested_bytes, 40);
    assert_int_equal(rig.rows[4].granted_bytes, 40);
    assert_int_equal(rig.rows[4].id, 3);
    assert_int_equal(rig.sample_count, 7);
    assert_true(rig.result.passed);
    assert_true(rig_metric(&rig, METRIC_events) == 7);
    assert_true(rig_metric(&rig, METRIC_allocs) == 4);
    assert_true(rig_metric(&rig, METRIC_frees) == 2);
}

RIG_TEST(nothing_and_pinned_memory_have_no_block)
{
    rig_open(&rig, "first-fit", UINT64_MAX, "a,0,0 a,1,64,space=pinned f,0 r,1 f,1");
    rig_run(&rig);
    assert_int_equal(rig.row_count, 4);
    check_row(0, 0, 'a', -1, 0);
    check_row(1, 1, 'a', -1, 0);
    check_row(2, 2, 'f', -1, 0);
    check_row(3, 3, 'f', -1, 0);
    assert_true(rig.result.passed);
    assert_int_equal(rig.device->memory.calls, 0);
    assert_true(rig_metric(&rig, METRIC_peak_live_bytes) == 0);
}

RIG_TEST(a_choice_of_sizes_remembers_the_one_that_was_served)
{
    rig_open(&rig, "direct", 100,
             "a,0,30 p,1,90,plans=3:90/80/60/0 r,1 f,1 r,0 f,0 p,2,90,plans=3:90/80/60/0 a,3,40 "
             "p,4,90,x=1,plans=3:90/80/60/0,y=2 r,4 f,4 p,5,90,plans=4:90/80");
    rig_run(&rig);
    assert_true(rig_metric(&rig, METRIC_peak_live_bytes) == 100);
    assert_true(rig_metric(&rig, METRIC_failed_probes) == 2 + 4 + 1);
    assert_true(rig_metric(&rig, METRIC_failed_allocs) == 1);
    assert_false(rig.result.passed);
    assert_int_equal(rig.result.first_failed_event, 11);
    assert_int_equal(rig.result.first_failed_bytes, 80); /* the last size */
    static const char *const malformed[] = {"1", "1:", "1:5/", "1:/5", "x:5", "1048576:5", "1:5;6"};
    for (size_t i = 0; i < COUNT(malformed); i++) {
        char text[80];
        snprintf(text, sizeof text, "p,0,5,plans=%s", malformed[i]);
        rig_open(&rig, "direct", 100, text);
        assert_int_not_equal(replay_run(&rig.config, &rig.result, &rig.error), AR_OK);
        assert_non_null(strstr(rig.error.text, "its key plans is not CHOICE:BYTES/BYTES/..."));
    }
}

/* Each choice fails once with 90 bytes; later the 60 that were served are asked for at once. */
RIG_TEST(many_choices_remember_their_sizes)
{
    static const unsigned choices[] = {0, 63, 64, 65, 128, 129, 1000, 1001};
    const unsigned count = COUNT(choices);
    char events[1024] = "a,0,30";
    for (unsigned i = 1; i <= 2 * count; i++) {
        size_t used = strlen(events);
        snprintf(events + used, sizeof events - used, " p,%u,90,plans=%u:90/60 r,%u f,%u", i,
                 choices[i % count], i, i);
    }
    rig_open(&rig, "direct", 100, events);
    rig_run(&rig);
    assert_true(rig.result.passed);
    assert_true(rig_metric(&rig, METRIC_failed_probes) == count);
}

RIG_TEST(a_failed_request_is_counted_and_its_later_events_are_ignored)
{
    rig_open(&rig, "direct", 100, "a,0,60 a,1,60 p,2,70 u,1,0 f,1 f,2 f,0 a,3,90 a,4,200");
    rig_run(&rig);
    assert_false(rig.result.passed);
    assert_int_equal(rig.result.first_failed_event, 1);
    assert_int_equal(rig.result.first_failed_bytes, 60);
    assert_int_equal(rig.result.cause, REPLAY_CAUSE_CAPACITY);
    assert_true(rig_metric(&rig, METRIC_failed_allocs) == 2);
    assert_true(rig_metric(&rig, METRIC_failed_probes) == 1);
    assert_true(rig_metric(&rig, METRIC_failed_by_capacity) == 2);
    assert_true(rig_metric(&rig, METRIC_frees) == 1);
    assert_true(rig_metric(&rig, METRIC_peak_live_bytes) == 90);
    check_row(1, 1, 'a', -1, 60);
    check_row(3, 4, 'f', -1, 60);
    assert_int_equal(rig.rows[3].requested_bytes, 60);
    assert_int_equal(rig.rows[1].granted_bytes, 0);
}

RIG_TEST(a_run_may_stop_at_its_first_failure)
{
    rig_open(&rig, "direct", 100, "a,0,60 p,1,60 a,2,60 f,0 a,3,60");
    rig.config.stop_on_failure = true;
    rig_run(&rig);
    assert_true(rig_metric(&rig, METRIC_events) == 3);
    assert_true(rig_metric(&rig, METRIC_first_failed_event) == 2);
    assert_true(rig_metric(&rig, METRIC_failed_allocs) == 1);
}

RIG_TEST(frees_come_when_the_mode_says)
{
    static const enum replay_frees modes[] = {REPLAY_ORDERED, REPLAY_AT_ONCE, REPLAY_RECORDED};
    for (int i = 0; i < 3; i++) {
        rig_open(&rig, "first-fit:granule=1", UINT64_MAX, "a,0,64 r,0 a,1,64 f,0 f,1");
        rig.config.frees = modes[i];
        rig_run(&rig);
        bool late = modes[i] == REPLAY_RECORDED;
        assert_int_equal(rig.row_count, 4);
        check_row(late ? 1 : 2, 2, 'a', late ? 64 : 0, 64);
        check_row(late ? 2 : 1, late ? 3 : 1, 'f', 0, late ? 64 : 0);
        check_row(3, 4, 'f', late ? 64 : 0, 0);
        assert_true(rig_metric(&rig, METRIC_peak_live_bytes) == 64); /* until the free request */
    }
}

RIG_TEST(a_free_requested_without_completions_ends_the_block)
{
    static const enum replay_frees modes[] = {REPLAY_ORDERED, REPLAY_AT_ONCE, REPLAY_RECORDED};
    for (int i = 0; i < 3; i++) {
        rig_open(&rig, "first-fit", UINT64_MAX, "a,0,64 r,0 a,1,64 r,1 a,2,0 r,2");
        rig.config.frees = modes[i];
        rig_run(&rig);
        assert_int_equal(rig.row_count, 6);
        check_row(2, 2, 'a', 0, 64);
        check_row(5, 5, 'f', -1, 0);
    }
}

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

RIG_TEST(recorded_host_time_passes_if_asked_for)
{
    for (int recorded = 0; recorded < 2; recorded++) {
        rig_open(&rig, "direct", UINT64_MAX, "t,1000 k,0,5 t,3000 a,0,8 f,0");
        rig.config.host = recorded ? REPLAY_HOST_RECORDED : REPLAY_HOST_NONE;
        rig_run(&rig);
        assert_true(rig_metric(&rig, METRIC_device_time_ns) == (recorded ? 3000 : 5));
    }
}

RIG_TEST(states_weigh_until_the_next_request_or_recorded_time)
{
    rig_open(&rig, "first-fit", UINT64_MAX, "a,0,8 f,0 a,1,0 p,2,16 m,x");
    rig_run(&rig);
    static const uint64_t by_bytes[] = {8, 0, 0, 16, 0};
    for (int i = 0; i < 5; i++)
        assert_int_equal(rig.samples[i].weight, by_bytes[i]);
    /* A request weighs the same whichever of its sizes is served. */
    rig_open(&rig, "direct", 100, "a,0,30 p,1,90,plans=3:90/80/60");
    rig_run(&rig);
    assert_int_equal(rig.samples[1].weight, 90);
    rig_open(&rig, "first-fit", UINT64_MAX, "t,5 a,0,8 t,9 f,0 t,9 t,20");
    rig_run(&rig);
    static const uint64_t by_time[] = {5, 0, 4, 0, 0, 11};
    for (int i = 0; i < 6; i++)
        assert_int_equal(rig.samples[i].weight, by_time[i]);
    assert_int_equal(rig.samples[5].time_ns, 20);
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

RIG_TEST(the_first_greatest_moment_is_kept)
{
    /* 30 live twice; at the first moment 10 bytes are free, at the second none. */
    rig_open(&rig, "first-fit:granule=1", UINT64_MAX, "a,0,10 a,1,20 f,0 a,2,10 f,2 a,3,5 a,4,5");
    rig_run(&rig);
    assert_true(rig_metric(&rig, METRIC_peak_live_bytes) == 30);
    assert_true(rig_metric(&rig, METRIC_stranded_bytes_at_peak) == 0);
    assert_true(rig_metric(&rig, METRIC_external_fragmentation_at_peak) == -1);
    rig_open(&rig, "first-fit:granule=1", UINT64_MAX, "a,0,10 a,1,20 f,0 a,2,40 f,1 a,3,20");
    rig.config.unit_bytes = 4;
    rig_run(&rig);
    assert_true(rig_metric(&rig, METRIC_peak_live_bytes) == 60);
    assert_true(rig_metric(&rig, METRIC_unusable_free_index_at_peak) >= 0.19999);
    assert_true(rig_metric(&rig, METRIC_unusable_free_index_at_peak) <= 0.20001);
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

RIG_TEST(memory_outside_of_the_pool_may_not_fit)
{
    rig_open(&rig, "direct", 100, "a,0,60 o,50 o,40 a,1,1");
    rig_run(&rig);
    assert_int_equal(rig.result.first_failed_event, 1);
    assert_int_equal(rig.result.cause, REPLAY_CAUSE_CAPACITY);
    assert_true(rig_metric(&rig, METRIC_failed_by_outside) == 1); /* event 3: 40 outside */
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
