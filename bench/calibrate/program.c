/* What the program around the allocator takes of the host: requests and frees beside the driver's
 * calls, marks of steps, its own events and waits.
 *
 * 1. It is measured where it happens, in the engine: that replays a trace which is made here, under
 *    `torch` as it comes, its clock read around each call as in any run on a card. The trace reads
 *    the clock too, when the engine comes for more of it: so each span is timed.
 * 2. A program that waits for its host launches short kernels and does all else between them. So all
 *    spans have the same kernels, and what a span is of besides: requests, of which one frees one of
 *    a few dozen blocks of many sizes and the next makes another; marks, one for every ten kernels,
 *    behind a longer one; events; events and waits for them. What it takes beyond a span of kernels
 *    alone, or of events, less the driver's calls in it, is that of so many. The policy's own time is in a
 *    request's, of which other policies need a little less or more.
 * 3. The host waits for the card before the first of the spans only, which does not count: launches
 *    just after that take long, and on an H100 requests between them came out as nothing.
 * 4. All spans take turns, so that a host that changes its speed does not tell them apart. */
#include "allocators/base/rng.h"
#include "allocators/base/size.h"
#include "allocators/registry.h"
#include "bench/calibrate/parts.h"
#include "sim/replay.h"

#define ROUNDS      40u /* and one before, in which the policy gets its memory */
#define SPANS       ((ROUNDS + 1) * SPAN_COUNT)
#define BLOCKS      32u
#define BYTES_LEAST 512u
#define BYTES_MOST  (4 * AR_MIB)
#define KERNELS     60u
#define TEN         10u
#define EVENTS_MOST (3 * KERNELS)

/* Where the device does not say how short its kernels may be: so long that it is never idle. */
#define KERNEL_NS UINT64_C(20000)

/* The first is of kernels too, and does not count. Requests come last: the policy's calls of the
 * driver, after which the card is idle, are among them. */
enum ar_span {
    SPAN_first,
    SPAN_kernels,
    SPAN_marks,
    SPAN_records,
    SPAN_waits,
    SPAN_requests,
    SPAN_COUNT
};

struct program {
    struct trace_source base;
    struct meter *meter;
    struct ar_rng rng;
    uint64_t next_id, ids[BLOCKS]; /* of each slot's block, + 1; 0: it has none */
    uint32_t slot;
    uint32_t given; /* spans so far */
    uint64_t begun_ns, driver_ns;
    uint64_t took_ns[SPAN_COUNT];
    struct meter_samples requests, marks, records, waits;
    struct trace_event events[EVENTS_MOST];
    size_t count;
};

static void put(struct program *self, struct trace_event event)
{
    self->events[self->count++] = event;
}

static void put_free(struct program *self, uint32_t slot)
{
    if (self->ids[slot])
        put(self, (struct trace_event){.kind = TRACE_FREE_COMPLETED,
                                       .flags = TRACE_WHOLE,
                                       .slot = slot,
                                       .id = self->ids[slot] - 1});
    self->ids[slot] = 0;
}

static void put_alloc(struct program *self, uint32_t slot)
{
    uint64_t bytes = ar_rng_log_uniform(&self->rng, BYTES_LEAST, BYTES_MOST);
    put(self, (struct trace_event){
                  .kind = TRACE_ALLOC, .slot = slot, .value = bytes, .id = self->next_id});
    self->ids[slot] = ++self->next_id;
}

/* A little longer than the shortest, the last of ten four times as long. */
static uint64_t kernel_ns(const struct program *self, bool last)
{
    uint64_t least_ns = self->meter->device->props.kernel_least_ns;
    if (!least_ns)
        return KERNEL_NS;
    return last ? 4 * least_ns : least_ns + least_ns / 4;
}

static void put_span(struct program *self, enum ar_span span)
{
    for (uint32_t i = 0; i < KERNELS; i++) {
        bool last = i % TEN == TEN - 1;
        put(self, (struct trace_event){.kind = TRACE_KERNEL,
                                       .stream = METER_STREAM,
                                       .value = kernel_ns(self, last)});
        if (span == SPAN_requests) {
            put_free(self, self->slot);
            put_alloc(self, self->slot);
            self->slot = (self->slot + 1) % BLOCKS;
        }
        if (span == SPAN_marks && last)
            put(self, (struct trace_event){.kind = TRACE_MARK, .flags = TRACE_STEP});
        if (span == SPAN_records || span == SPAN_waits)
            put(self, (struct trace_event){.kind = TRACE_RECORD, .stream = METER_STREAM});
        if (span == SPAN_waits)
            put(self, (struct trace_event){.kind = TRACE_WAIT, .stream = METER_BUSY_STREAM});
    }
}

static uint64_t driver_ns(const struct program *self)
{
    const struct ar_device_counters *counters = &self->meter->device->counters;
    return counters->driver_ns + counters->stall_ns;
}

/* What one of `count` takes, by a span's time beyond another's. */
static void add(struct meter_samples *into, uint64_t ns, uint64_t without_ns, uint64_t count)
{
    uint64_t more_ns = ns > without_ns ? ns - without_ns : 0;
    meter_samples_add(into, (more_ns + count / 2) / count);
}

static void round_end(struct program *self)
{
    const uint64_t *took_ns = self->took_ns;
    add(&self->requests, took_ns[SPAN_requests], took_ns[SPAN_kernels], 2 * KERNELS);
    add(&self->marks, took_ns[SPAN_marks], took_ns[SPAN_kernels], KERNELS / TEN);
    add(&self->records, took_ns[SPAN_records], took_ns[SPAN_kernels], KERNELS);
    add(&self->waits, took_ns[SPAN_waits], took_ns[SPAN_records], KERNELS);
}

/* The span that was given out last is done with. */
static void span_end(struct program *self)
{
    if (!self->given || self->given > SPANS)
        return;
    uint32_t span = (self->given - 1) % SPAN_COUNT, round = (self->given - 1) / SPAN_COUNT;
    uint64_t passed_ns = meter_now(self->meter) - self->begun_ns;
    uint64_t called_ns = driver_ns(self) - self->driver_ns;
    self->took_ns[span] = passed_ns > called_ns ? passed_ns - called_ns : 0;
    if (span == SPAN_COUNT - 1 && round > 0)
        round_end(self);
}

static enum ar_status program_next(struct trace_source *base, const struct trace_event **events,
                                   size_t *count, struct ar_error *error)
{
    struct program *self = (struct program *)base;
    (void)error;
    span_end(self);
    if (self->given % SPAN_COUNT == SPAN_first)
        meter_sync(self->meter);
    self->count = 0;
    if (self->given < SPANS)
        put_span(self, (enum ar_span)(self->given % SPAN_COUNT));
    else if (self->given == SPANS)
        for (uint32_t slot = 0; slot < BLOCKS; slot++)
            put_free(self, slot);
    self->given++;
    *events = self->events;
    *count = self->count;
    self->driver_ns = driver_ns(self);
    self->begun_ns = meter_now(self->meter);
    return AR_OK;
}

static const char *program_text(struct trace_source *base, uint64_t index)
{
    (void)base;
    (void)index;
    return "step";
}

static const struct trace_source_ops program_ops = {.next = program_next, .text = program_text};

static enum ar_status replay(struct program *self, struct ar_error *error)
{
    struct ar_host host = {0};
    struct ar_policy_context context = {.backing = self->meter->backing, .host = &host};
    struct ar_spec torch;
    struct replay_config config = {
        .device = self->meter->device,
        .source = &self->base,
        .measure = REPLAY_METRICS_EXACT,
        .measure_time = true,
        .policy_host = &host,
    };
    struct replay_result result;
    enum ar_status status = ar_spec_parse("torch", &torch, error);
    if (status != AR_OK)
        return status;
    status = registry_create(&torch, &context, &config.policy, error);
    if (status == AR_OK) {
        status = replay_run(&config, &result, error);
        replay_result_close(&result);
    }
    meter_sync(self->meter);
    ar_policy_destroy(config.policy);
    ar_spec_close(&torch);
    return status;
}

void parts_program(struct meter *meter, struct sim_profile *out, uint64_t bytes)
{
    struct program self = {
        .base = {.ops = &program_ops,
                 .info = {.name = "calibrate",
                          .format = "generator",
                          .complete = true,
                          .slots = BLOCKS,
                          .streams = METER_BUSY_STREAM + 1,
                          .one_block_stream = true}},
        .meter = meter,
    };
    struct ar_error error;
    ar_rng_seed(&self.rng, 1);
    enum ar_status status = replay(&self, &error);
    if (status != AR_OK) {
        meter->status = status;
        meter->call = "a replay";
        return;
    }
    parts_point(meter, out, SIM_COST_request, bytes, &self.requests);
    parts_point(meter, out, SIM_COST_mark, bytes, &self.marks);
    parts_point(meter, out, SIM_COST_record, bytes, &self.records);
    parts_point(meter, out, SIM_COST_wait, bytes, &self.waits);
}
