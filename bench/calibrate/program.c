/* What the program around the allocator takes of the host: requests and frees beside the driver's
 * calls, marks of steps, its own events and waits.
 *
 * 1. It is measured where it happens, in the engine: that replays a trace which is made here, under
 *    `torch` as it comes, its clock read around each call as in any run on a card. The trace reads
 *    the clock too, when the engine comes for more of it: so each span is timed.
 * 2. A span of requests frees one of a few dozen blocks of many sizes and makes another, over and over,
 *    less what the driver's calls among them took. The policy's own time is in it, which other
 *    policies may need a little less or more of.
 * 3. All else comes behind kernels that the host runs ahead of, less a span of kernels alone; a wait
 *    needs an event, and is what it adds to one.
 * 4. All spans take turns, so that a host that changes its speed does not tell them apart. */
#include "allocators/base/rng.h"
#include "allocators/base/size.h"
#include "allocators/registry.h"
#include "bench/calibrate/parts.h"
#include "sim/replay.h"

#define ROUNDS      40u /* and one before, in which the policy gets its memory */
#define BLOCKS      32u
#define BYTES_LEAST 512u
#define BYTES_MOST  (4 * MIB)
#define PAIRS       64u
#define REPEATS     16u
#define KERNEL_NS   UINT64_C(20000) /* longer than all that the host does meanwhile */
#define EVENTS_MOST (2 * PAIRS + 3 * REPEATS)

enum span { SPAN_requests, SPAN_kernels, SPAN_marks, SPAN_records, SPAN_waits, SPAN_COUNT };

struct program {
    struct trace_source base;
    struct meter *meter;
    struct rng rng;
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
        put(self,
            (struct trace_event){
                .kind = TRACE_FREE, .flags = TRACE_WHOLE, .slot = slot, .id = self->ids[slot] - 1});
    self->ids[slot] = 0;
}

static void put_alloc(struct program *self, uint32_t slot)
{
    uint64_t bytes = rng_log_uniform(&self->rng, BYTES_LEAST, BYTES_MOST);
    put(self, (struct trace_event){
                  .kind = TRACE_ALLOC, .slot = slot, .value = bytes, .id = self->next_id});
    self->ids[slot] = ++self->next_id;
}

static void put_requests(struct program *self)
{
    for (uint32_t i = 0; i < PAIRS; i++) {
        put_free(self, self->slot);
        put_alloc(self, self->slot);
        self->slot = (self->slot + 1) % BLOCKS;
    }
}

/* Kernels, each with what the span is of. */
static void put_kernels(struct program *self, enum span span)
{
    for (uint32_t i = 0; i < REPEATS; i++) {
        put(self,
            (struct trace_event){.kind = TRACE_KERNEL, .stream = METER_STREAM, .value = KERNEL_NS});
        if (span == SPAN_marks)
            put(self, (struct trace_event){.kind = TRACE_MARK, .flags = TRACE_STEP});
        if (span == SPAN_records || span == SPAN_waits)
            put(self, (struct trace_event){.kind = TRACE_RECORD, .stream = METER_STREAM});
        if (span == SPAN_waits)
            put(self, (struct trace_event){.kind = TRACE_WAIT, .stream = METER_BUSY_STREAM});
    }
}

static uint64_t driver_ns(const struct program *self)
{
    const struct device_counters *counters = &self->meter->device->counters;
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
    add(&self->requests, took_ns[SPAN_requests], 0, 2 * PAIRS);
    add(&self->marks, took_ns[SPAN_marks], took_ns[SPAN_kernels], REPEATS);
    add(&self->records, took_ns[SPAN_records], took_ns[SPAN_kernels], REPEATS);
    add(&self->waits, took_ns[SPAN_waits], took_ns[SPAN_records], REPEATS);
}

/* The span that was given out last is done with. */
static void span_end(struct program *self)
{
    if (!self->given)
        return;
    uint32_t span = (self->given - 1) % SPAN_COUNT, round = (self->given - 1) / SPAN_COUNT;
    uint64_t passed_ns = meter_now(self->meter) - self->begun_ns;
    uint64_t called_ns = driver_ns(self) - self->driver_ns;
    self->took_ns[span] = passed_ns > called_ns ? passed_ns - called_ns : 0;
    if (span == SPAN_COUNT - 1 && round > 0)
        round_end(self);
}

static enum status program_next(struct trace_source *base, const struct trace_event **events,
                                size_t *count, struct error *error)
{
    struct program *self = (struct program *)base;
    (void)error;
    span_end(self);
    meter_sync(self->meter);
    self->count = 0;
    enum span span = (enum span)(self->given % SPAN_COUNT);
    if (self->given++ == (ROUNDS + 1) * SPAN_COUNT)
        for (uint32_t slot = 0; slot < BLOCKS; slot++)
            put_free(self, slot);
    else if (self->given > (ROUNDS + 1) * SPAN_COUNT + 1)
        ;
    else if (span == SPAN_requests)
        put_requests(self);
    else
        put_kernels(self, span);
    *events = self->events;
    *count = self->count;
    self->driver_ns = driver_ns(self);
    self->begun_ns = meter_now(self->meter);
    return STATUS_OK;
}

static const char *program_text(struct trace_source *base, uint64_t index)
{
    (void)base;
    (void)index;
    return "step";
}

static const struct trace_source_ops program_ops = {.next = program_next, .text = program_text};

static enum status replay(struct program *self, struct error *error)
{
    struct host host = {0};
    struct policy_context context = {.backing = self->meter->backing, .host = &host};
    struct spec torch;
    struct replay_config config = {
        .device = self->meter->device,
        .source = &self->base,
        .measure = REPLAY_METRICS_EXACT,
        .measure_time = true,
        .policy_host = &host,
    };
    struct replay_result result;
    enum status status = spec_parse("torch", &torch, error);
    if (status != STATUS_OK)
        return status;
    status = registry_create(&torch, &context, &config.policy, error);
    if (status == STATUS_OK) {
        status = replay_run(&config, &result, error);
        replay_result_close(&result);
    }
    meter_sync(self->meter);
    policy_destroy(config.policy);
    spec_close(&torch);
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
    struct error error;
    rng_seed(&self.rng, 1);
    enum status status = replay(&self, &error);
    if (status != STATUS_OK) {
        meter->status = status;
        meter->call = "a replay";
        return;
    }
    parts_point(meter, out, SIM_COST_request, bytes, &self.requests);
    parts_point(meter, out, SIM_COST_mark, bytes, &self.marks);
    parts_point(meter, out, SIM_COST_record, bytes, &self.records);
    parts_point(meter, out, SIM_COST_wait, bytes, &self.waits);
}
