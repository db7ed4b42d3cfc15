/* How: the policy's memory is a simulated device behind a backing that writes down each call. A
 * block that another stream uses is complete some operations after its free request, when the
 * policy polls its event, or when it waits for it. */
#include "tests/support/recorder.h"

#include "allocators/base/rng.h"
#include "allocators/registry.h"
#include "tests/support/sim.h"
#include "tests/support/test.h"

#define BLOCKS_MOST 4096

struct live {
    struct ar_policy_block block;
    uint64_t id;
    uint32_t stream;
};

struct pending {
    uint64_t id, due;
    bool done;
};

struct recorder {
    struct ar_backing_ops ops; /* of the device's backing, with some calls replaced */
    const struct ar_backing_ops *inner;
    struct ar_device *device;
    struct trace_memory *trace;
    const struct recorder_program *program;
    struct recorder_result *result;
    struct ar_rng rng;
    struct ar_policy *policy;
    struct live live[BLOCKS_MOST];
    size_t live_count;
    uint64_t live_bytes, next_id, now;
    struct pending *pending; /* by ticket */
    size_t pending_count;
    uint64_t freeing;                /* the block in a ar_policy_free */
    uint64_t frees;                  /* of segments and runs, so far */
    uint64_t run_address, run_bytes; /* being unmapped */
    bool refused;
};

static struct recorder *of(struct ar_backing *backing)
{
    return (struct recorder *)((char *)(uintptr_t)backing->ops - offsetof(struct recorder, ops));
}

static void append(struct recorder *self, struct trace_event event, const char *text)
{
    static const struct trace_attributes none = {0};
    assert_ok(trace_memory_append(self->trace, &event, &none, text, &test_error));
}

static void note(struct recorder *self, const char *verb, uint64_t address, uint64_t bytes)
{
    char text[96];
    snprintf(text, sizeof text, "%s,%" PRIu64 ",%" PRIu64 ",0", verb, address, bytes);
    append(self, (struct trace_event){.kind = TRACE_NOTE}, text);
}

/* A run of pages that was unmapped one by one is recorded as one. */
static void end_run(struct recorder *self)
{
    if (self->run_bytes) {
        note(self, "segment_unmap", self->run_address, self->run_bytes);
        self->frees++;
    }
    self->run_bytes = 0;
}

static void complete(struct recorder *self, struct ar_backing_ticket ticket)
{
    struct pending *pending = &self->pending[ticket.value];
    if (!pending->done)
        append(self, (struct trace_event){.kind = TRACE_FREE_COMPLETED, .id = pending->id}, NULL);
    pending->done = true;
}

static enum ar_status record_segment_alloc(struct ar_backing *backing, uint64_t bytes,
                                           uint64_t *address)
{
    struct recorder *self = of(backing);
    end_run(self);
    enum ar_status status = self->inner->segment_alloc(backing, bytes, address);
    if (status == AR_OK)
        note(self, "segment_alloc", *address, bytes);
    self->refused |= status == AR_REFUSED;
    return status;
}

static enum ar_status record_segment_free(struct ar_backing *backing, uint64_t address)
{
    struct recorder *self = of(backing);
    struct ar_device_segment segment;
    end_run(self);
    assert_true(self->device->ops->segment_of(self->device, address, &segment));
    note(self, "segment_free", address, segment.bytes);
    self->frees++;
    return self->inner->segment_free(backing, address);
}

static enum ar_status record_reserve(struct ar_backing *backing, uint64_t bytes, uint64_t *address)
{
    end_run(of(backing));
    return of(backing)->inner->reserve(backing, bytes, address);
}

static enum ar_status record_release(struct ar_backing *backing, uint64_t address)
{
    end_run(of(backing));
    return of(backing)->inner->release(backing, address);
}

static enum ar_status record_create(struct ar_backing *backing, uint64_t bytes,
                                    ar_backing_handle *handle)
{
    struct recorder *self = of(backing);
    end_run(self);
    enum ar_status status = self->inner->create(backing, bytes, handle);
    self->refused |= status == AR_REFUSED;
    return status;
}

static enum ar_status record_access(struct ar_backing *backing, uint64_t address, uint64_t bytes)
{
    struct recorder *self = of(backing);
    note(self, "segment_map", address, bytes);
    return self->inner->access(backing, address, bytes);
}

static enum ar_status record_unmap(struct ar_backing *backing, uint64_t address, uint64_t bytes)
{
    struct recorder *self = of(backing);
    if (self->run_bytes && self->run_address + self->run_bytes != address)
        end_run(self);
    if (!self->run_bytes)
        self->run_address = address;
    self->run_bytes += bytes;
    return self->inner->unmap(backing, address, bytes);
}

static struct ar_backing_ticket record_fence(struct ar_backing *backing, uint32_t stream)
{
    struct recorder *self = of(backing);
    if (self->freeing == UINT64_MAX) /* it waits for a stream's own work: done */
        return (struct ar_backing_ticket){stream, UINT64_MAX};
    struct pending *grown =
        realloc(self->pending, (self->pending_count + 1) * sizeof *self->pending);
    assert_non_null(grown);
    self->pending = grown;
    grown[self->pending_count] =
        (struct pending){.id = self->freeing, .due = self->now + ar_rng_below(&self->rng, 20)};
    return (struct ar_backing_ticket){stream, self->pending_count++};
}

static bool record_done(struct ar_backing *backing, struct ar_backing_ticket ticket)
{
    struct recorder *self = of(backing);
    if (ticket.value == UINT64_MAX)
        return true;
    bool done = self->pending[ticket.value].due <= self->now;
    if (done)
        complete(self, ticket);
    return done;
}

static void record_wait(struct ar_backing *backing, struct ar_backing_ticket ticket)
{
    if (ticket.value != UINT64_MAX)
        complete(of(backing), ticket);
}

static void request(struct recorder *self)
{
    struct ar_policy_block block;
    bool large = ar_rng_below(&self->rng, 100) < self->program->large_percent;
    const struct ar_policy_request wanted = {
        .bytes = large ? ar_rng_log_uniform(&self->rng, AR_MIB, 200 * AR_MIB)
                       : ar_rng_log_uniform(&self->rng, 1, 2 * AR_MIB),
        .stream = (uint32_t)ar_rng_below(&self->rng, self->program->streams),
    };
    uint64_t frees = self->frees;
    self->refused = false;
    enum ar_status status = ar_policy_alloc(self->policy, &wanted, &block);
    assert_true(status == AR_OK || status == AR_NO_MEMORY);
    end_run(self);
    self->result->own_releases += self->frees > frees;
    self->result->refusals += self->refused && status == AR_OK;
    struct trace_event event = {.kind = status ? TRACE_PROBE : TRACE_ALLOC,
                                .id = self->next_id++,
                                .value = wanted.bytes,
                                .stream = wanted.stream};
    append(self, event, NULL);
    if (status) {
        append(self, (struct trace_event){.kind = TRACE_NOTE}, "oom,0");
        event = (struct trace_event){
            .kind = TRACE_FREE_REQUESTED, .id = event.id, .stream = TRACE_NO_STREAM};
        append(self, event, NULL);
        self->result->failures++;
        return;
    }
    char text[64];
    snprintf(text, sizeof text, "alloc,%" PRIu64, block.address);
    append(self, (struct trace_event){.kind = TRACE_NOTE}, text);
    self->live[self->live_count++] = (struct live){block, event.id, wanted.stream};
    self->live_bytes += wanted.bytes;
}

static void free_requested(struct recorder *self)
{
    size_t at = (size_t)ar_rng_below(&self->rng, self->live_count);
    struct live block = self->live[at];
    self->live[at] = self->live[--self->live_count];
    self->live_bytes -= block.block.requested_bytes;
    bool used = ar_rng_below(&self->rng, 100) < self->program->use_percent;
    uint32_t other = (block.stream + 1) % (self->program->streams + 1);
    if (used)
        assert_int_equal(ar_policy_use(self->policy, &block.block, other), AR_OK);
    append(self,
           (struct trace_event){.kind = used ? TRACE_FREE_REQUESTED : TRACE_FREE_COMPLETED,
                                .id = block.id,
                                .stream = used ? TRACE_NO_STREAM : 0},
           NULL);
    self->freeing = block.id;
    assert_int_equal(ar_policy_free(self->policy, &block.block, block.stream), AR_OK);
    self->freeing = UINT64_MAX;
}

static void release(struct recorder *self)
{
    uint64_t frees = self->frees;
    assert_int_equal(ar_policy_trim(self->policy, 0), AR_OK);
    end_run(self);
    if (self->frees > frees)
        self->result->releases++;
    else
        self->result->unseen_releases++;
}

static void keep_stats(struct recorder *self)
{
    struct recorder_result *result = self->result;
    char name[64];
    uint64_t value;
    for (size_t i = 0; ar_policy_report(self->policy, i, name, sizeof name, &value); i++) {
        struct fidelity_stat *grown = realloc(result->stats, (i + 1) * sizeof *grown);
        assert_non_null(grown);
        result->stats = grown;
        grown[i] = (struct fidelity_stat){strdup(name), value};
        result->stat_count = i + 1;
    }
}

static void play(struct recorder *self)
{
    const struct recorder_program *program = self->program;
    for (unsigned i = 0; i < program->ops; i++, self->now++) {
        if (ar_rng_below(&self->rng, 1000) < program->release_permille)
            release(self);
        bool full = self->live_bytes >= program->most_live_bytes || self->live_count == BLOCKS_MOST;
        if (self->live_count && (full || ar_rng_below(&self->rng, 100) < 45))
            free_requested(self);
        else
            request(self);
    }
}

static void record_calls(struct recorder *self)
{
    self->inner = self->device->backing->ops;
    self->ops = *self->inner;
    self->ops.segment_alloc = record_segment_alloc;
    self->ops.segment_free = record_segment_free;
    self->ops.reserve = record_reserve;
    self->ops.release = record_release;
    self->ops.create = record_create;
    self->ops.access = record_access;
    self->ops.unmap = record_unmap;
    self->ops.fence = record_fence;
    self->ops.done = record_done;
    self->ops.wait = record_wait;
    self->ops.wait_streams = NULL;
    self->ops.order = NULL;
    self->device->backing->ops = &self->ops;
}

void recorder_run(const struct recorder_program *program, struct recorder_result *result)
{
    FREED struct recorder *self = calloc(1, sizeof *self);
    struct ar_host host = {0};
    char text[96];
    assert_non_null(self);
    snprintf(text, sizeof text, "sim:capacity=%" PRIu64, program->capacity_bytes);
    *result = (struct recorder_result){0};
    self->device = sim_test_open(text);
    record_calls(self);
    self->program = program;
    self->freeing = UINT64_MAX;
    self->result = result;
    ar_rng_seed(&self->rng, program->seed);
    const struct trace_info info = {.name = "recorded",
                                    .recorder = "torch",
                                    .complete = true,
                                    .capacity_bytes = program->capacity_bytes};
    self->trace = trace_memory_create(&info);
    assert_non_null(self->trace);
    const struct ar_policy_context context = {
        .backing = self->device->backing, .host = &host, .seed = 1};
    CLOSED(ar_spec_close) struct ar_spec spec = spec_of(program->policy);
    assert_ok(registry_create(&spec, &context, &self->policy, &test_error));
    append(self, (struct trace_event){.kind = TRACE_TIME}, NULL);
    play(self);
    keep_stats(self);
    /* The calls while the policy is destroyed are not part of the recording. */
    struct trace_memory *trace = self->trace;
    self->trace = trace_memory_create(NULL);
    ar_policy_destroy(self->policy);
    trace_memory_discard(self->trace);
    assert_ok(trace_memory_open(trace, &result->trace, &test_error));
    ar_device_close(self->device);
    free(self->pending);
}

void recorder_close(struct recorder_result *result)
{
    trace_close(result->trace);
    for (size_t i = 0; i < result->stat_count; i++)
        free((char *)result->stats[i].name);
    free(result->stats);
}
