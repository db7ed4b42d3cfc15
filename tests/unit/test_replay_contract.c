/* Policies that break their contract, and events that no reader accepts: the engine stops with an
 * error that names the event. */
#include "tests/support/rig.h"
#include "tests/support/test.h"

static struct ar_policy_ops broken; /* the hooks of the policy under test */
static const struct ar_policy_ops *sound;

static void break_policy(const char *events)
{
    rig_open(&rig, "direct", UINT64_MAX, events);
    sound = rig.policy->ops;
    broken = *sound;
    rig.policy->ops = &broken;
}

static void expect(enum ar_status status, const char *words)
{
    enum ar_status got = replay_run(&rig.config, &rig.result, &rig.error);
    assert_int_equal(got, status);
    if (!strstr(rig.error.text, words))
        fail_msg("\"%s\" is not in: %s", words, rig.error.text);
}

static enum ar_status grants_less(struct ar_policy *self, const struct ar_policy_request *request,
                                  struct ar_policy_block *out)
{
    enum ar_status status = sound->alloc(self, request, out);
    out->granted_bytes = request->bytes - 1;
    return status;
}

static enum ar_status finds_corruption(struct ar_policy *self,
                                       const struct ar_policy_request *request,
                                       struct ar_policy_block *out)
{
    return AR_CORRUPT;
}

static enum ar_status frees_nothing(struct ar_policy *self, const struct ar_policy_block *block,
                                    uint32_t stream)
{
    return AR_OK;
}

static enum ar_status misuses_the_device(struct ar_policy *self,
                                         const struct ar_policy_request *request,
                                         struct ar_policy_block *out)
{
    (void)ar_backing_segment_free(&rig.device->memory.base, 12345);
    return request->bytes > 50 ? AR_NO_MEMORY : sound->alloc(self, request, out);
}

RIG_TEST(a_policy_that_breaks_the_contract_stops_the_run)
{
    break_policy("m,x a,0,8");
    broken.alloc = grants_less;
    expect(AR_CORRUPT, "tiny: event 1: policy direct: it granted less than was asked for");
    break_policy("m,x m,y a,0,8");
    broken.alloc = finds_corruption;
    expect(AR_CORRUPT, "event 2");
    break_policy("a,0,8 a,1,8 f,0");
    broken.free = frees_nothing;
    expect(AR_CORRUPT, "counts 2 blocks of 16 bytes live at the end, there are 1 of 8");
}

RIG_TEST(misuse_of_the_device_does_not_pass_as_an_outcome)
{
    break_policy("a,0,80");
    broken.alloc = misuses_the_device;
    expect(AR_INVALID, "no segment starts at 12345");
    break_policy("a,0,8");
    broken.alloc = misuses_the_device;
    expect(AR_CORRUPT, "no segment starts at 12345");
}

/* A source without the checks of a reader. */
struct raw {
    struct trace_source base;
    const struct trace_event *events;
    size_t count;
};

static enum ar_status raw_next(struct trace_source *base, const struct trace_event **events,
                               size_t *count, struct ar_error *error)
{
    struct raw *self = (struct raw *)base;
    *events = self->events;
    *count = self->count;
    self->count = 0;
    return AR_OK;
}

static void expect_bad(const struct trace_event *events, size_t count, bool careful,
                       const char *words)
{
    static const struct trace_source_ops ops = {.next = raw_next};
    struct raw raw = {.base = {.ops = &ops, .info = {.name = "raw"}}};
    raw.events = events;
    raw.count = count;
    rig_open(&rig, "direct", UINT64_MAX, "a,0,1");
    rig.config.source = &raw.base;
    if (!careful) {
        rig.config.observer = NULL;
        rig.config.measure = REPLAY_METRICS_NONE;
    }
    expect(AR_INVALID, words);
}

RIG_TEST(impossible_events_are_bad_input)
{
    const struct trace_event alloc = {.kind = TRACE_ALLOC, .slot = 1, .value = 8, .id = 7};
    const struct trace_event whole = {
        .kind = TRACE_FREE_COMPLETED, .flags = TRACE_WHOLE, .slot = 1, .id = 7};
    const struct trace_event free_requested = {.kind = TRACE_FREE_REQUESTED, .slot = 1, .id = 7};
    const struct trace_event complete = {.kind = TRACE_FREE_COMPLETED, .slot = 1, .id = 7};
    const struct trace_event enormous = {.kind = TRACE_ALLOC, .value = TRACE_BYTES_LIMIT, .id = 7};
    const struct trace_event far = {.kind = TRACE_ALLOC, .slot = UINT32_MAX, .value = 8};
    const struct trace_event unknown = {.kind = TRACE_KIND_LAST + 1};
    const struct trace_event use = {.kind = TRACE_USE, .slot = 900, .id = 7};
    for (int careful = 0; careful < 2; careful++) {
        expect_bad((struct trace_event[]){alloc, alloc}, 2, careful, "raw: event 1, block 7: ");
        expect_bad(&whole, 1, careful, "event 0, block 7: freed, but not live");
        expect_bad((struct trace_event[]){alloc, whole, whole}, 3, careful, "event 2");
        expect_bad((struct trace_event[]){alloc, free_requested, free_requested}, 3, careful,
                   "event 2");
        expect_bad((struct trace_event[]){alloc, free_requested, whole}, 3, careful,
                   "its free was requested before");
        expect_bad((struct trace_event[]){alloc, complete}, 2, careful, "but not requested");
        expect_bad(&enormous, 1, careful, "2^60 bytes or more");
        expect_bad(&far, 1, careful, "out of range");
        expect_bad(&unknown, 1, careful, "not a kind of event");
        expect_bad(&use, 1, careful, "used, but not live");
    }
}

/* ---- calls to the policy, as observers see them ------------------------------------------- */

struct calls {
    unsigned count;
    struct observer_policy_call at[16];
    struct ar_policy_request request; /* of the last alloc */
    bool has_block[16];
};

static void note_call(void *argument, const struct observer_policy_call *call)
{
    struct calls *calls = argument;
    assert_true(calls->count < 16);
    if (call->request)
        calls->request = *call->request;
    calls->has_block[calls->count] = call->block != NULL;
    calls->at[calls->count++] = *call;
}

RIG_TEST(an_observer_sees_each_call_to_the_policy)
{
    static const struct {
        enum observer_policy_kind kind;
        uint64_t event;
        uint32_t stream;
        bool block;
    } wanted[] = {
        {OBSERVER_POLICY_ALLOC, 0, 0, true}, {OBSERVER_POLICY_ALLOC, 1, 0, false},
        {OBSERVER_POLICY_USE, 2, 7, true},   {OBSERVER_POLICY_FREE, 3, 0, true},
        {OBSERVER_POLICY_TRIM, 4, 0, false},
    };
    struct calls calls = {0};
    rig_open(&rig, "torch:limit=4MiB", UINT64_MAX, "a,0,1048576 a,1,8388608 u,0,7 f,0 c");
    const struct observer second = {.policy_call = note_call, .argument = &calls};
    const struct observer first = {.next = &second}; /* wants nothing */
    rig.config.observer = &first;
    rig_run(&rig);
    assert_int_equal(calls.count, COUNT(wanted));
    for (unsigned i = 0; i < calls.count; i++) {
        assert_int_equal(calls.at[i].kind, wanted[i].kind);
        assert_int_equal(calls.at[i].event, wanted[i].event);
        assert_int_equal(calls.at[i].stream, wanted[i].stream);
        assert_int_equal(calls.has_block[i], wanted[i].block);
    }
    assert_int_equal(calls.at[0].status, AR_OK);
    assert_int_equal(calls.at[1].status, AR_NO_MEMORY);
    assert_int_equal(calls.request.bytes, 8388608);
}

static bool once_more(void *argument, const struct ar_policy_request *request)
{
    unsigned *times = argument;
    return (*times)++ < 2;
}

/* A request that is tried again is a call each time. */
RIG_TEST(an_observer_sees_each_try)
{
    struct calls calls = {0};
    unsigned times = 0;
    rig_open(&rig, "direct", 100, "a,0,60 a,1,60");
    const struct observer observer = {.policy_call = note_call, .argument = &calls};
    rig.config.observer = &observer;
    rig.config.again = once_more;
    rig.config.again_argument = &times;
    rig_run(&rig);
    assert_int_equal(calls.count, 4);
    for (unsigned i = 0; i < calls.count; i++) {
        assert_int_equal(calls.at[i].kind, OBSERVER_POLICY_ALLOC);
        assert_int_equal(calls.at[i].event, i > 0);
        assert_int_equal(calls.at[i].status, i ? AR_NO_MEMORY : AR_OK);
        assert_int_equal(calls.has_block[i], i == 0);
    }
}

/* ---- watched runs and shortcuts do the same ----------------------------------------------- */

static struct fake_device *device;

static enum ar_status takes_100_ns(struct ar_policy *self, const struct ar_policy_request *request,
                                   struct ar_policy_block *out)
{
    device->host_ns += 100;
    device->base.counters.driver_ns += 100;
    return sound->alloc(self, request, out);
}

RIG_TEST(a_pause_is_that_of_the_first_try)
{
    for (int watched = 0; watched < 2; watched++) {
        unsigned times = 0;
        break_policy("a,0,200");
        device = rig.device;
        device->memory.cap_bytes = 100;
        broken.alloc = takes_100_ns;
        rig.config.observer = watched ? &rig.observer : NULL;
        rig.config.again = once_more;
        rig.config.again_argument = &times;
        rig_run(&rig);
        assert_int_equal(times, 3);
        assert_true(rig_metric(&rig, METRIC_longest_pause_ns) == 100);
    }
}

static enum ar_status loses_the_driver(struct ar_policy *self,
                                       const struct ar_policy_request *request,
                                       struct ar_policy_block *out)
{
    device->base.failed = request->bytes == 9;
    if (!device->base.failed)
        return sound->alloc(self, request, out);
    (void)strcpy(device->memory.problem, "the driver is lost");
    return AR_INVALID;
}

static void kernel_loses_the_driver(struct ar_device *self, uint32_t stream, uint64_t ns)
{
    self->failed = true;
}

RIG_TEST(a_driver_that_fails_leaves_the_counts_and_the_event_right)
{
    static const char *const cases[] = {"a,0,9", "a,0,8 f,0 a,1,9 m,x", "a,0,8 f,0 k,0,5 m,x",
                                        "a,0,8 f,0 a,1,9,pool=1 m,x"};
    for (unsigned i = 0; i < 2 * COUNT(cases); i++) {
        break_policy(cases[i / 2]);
        device = rig.device;
        broken.alloc = loses_the_driver;
        static struct ar_device_ops ops; /* until the rig closes */
        ops = *device->base.ops;
        ops.kernel = kernel_loses_the_driver;
        device->base.ops = &ops;
        rig.config.observer = i % 2 ? &rig.observer : NULL;
        rig.config.measure = i % 2 ? REPLAY_METRICS_EXACT : REPLAY_METRICS_NONE;
        rig_run(&rig);
        assert_int_equal(rig.result.cause, REPLAY_CAUSE_DRIVER);
        assert_int_equal(rig.result.first_failed_event, i / 2 > 0 ? 2 : 0);
        assert_true(rig_metric(&rig, METRIC_frees) == (i / 2 > 0));
        assert_true(rig_metric(&rig, METRIC_allocs) == (i / 2 == 1 || i / 2 == 3 ? 2 : 1));
    }
}

/* The outcome is the first failure; that the run ended early is said beside it. */
RIG_TEST(a_driver_that_fails_after_a_request_is_reported)
{
    for (int watched = 0; watched < 2; watched++) {
        break_policy("a,0,200 f,0 a,1,50 a,2,9 f,2 f,1");
        device = rig.device;
        device->memory.cap_bytes = 100;
        broken.alloc = loses_the_driver;
        rig.config.observer = watched ? &rig.observer : NULL;
        rig_run(&rig);
        assert_false(rig.result.passed);
        assert_int_equal(rig.result.cause, REPLAY_CAUSE_CAPACITY);
        assert_int_equal(rig.result.first_failed_event, 0);
        assert_string_equal(rig.result.problem, "the driver is lost");
        assert_true(rig_metric(&rig, METRIC_allocs) == 3);
    }
}

static void count_own_time(struct ar_device *self)
{
    ((struct fake_device *)self)->host_ns++;
}

RIG_TEST(a_timeless_run_leaves_out_the_own_time_with_observers_too)
{
    struct calls calls = {0};
    const struct observer observer = {.policy_call = note_call, .argument = &calls};
    for (int timeless = 0; timeless < 2; timeless++) {
        rig_open(&rig, "direct", UINT64_MAX, "a,0,8 f,0");
        static struct ar_device_ops ops; /* until the rig closes */
        ops = *rig.device->base.ops;
        ops.requested = count_own_time;
        rig.device->base.ops = &ops;
        rig.config.observer = &observer;
        rig.config.timeless = timeless;
        rig_run(&rig);
        assert_int_equal(rig.device->host_ns, timeless ? 0 : 2);
    }
}
