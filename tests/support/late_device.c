#include "tests/support/late_device.h"

#include "allocators/base/map.h"
#include "allocators/base/rng.h"
#include "tests/support/late_memory.h"
#include "tests/support/test.h"
#include "workloads/trace/event.h"

enum late_kind { LATE_FILL, LATE_READ, LATE_WAIT };

struct late_op {
    enum late_kind kind;
    uint64_t address, bytes, block;
    struct ar_backing_ticket wait; /* stream, and how many of its ops must be done */
};

struct late_stream {
    struct late_op *ops;
    uint64_t done, queued, room;
};

/* Work of a stream that may use a range. */
struct late_use {
    uint64_t physical, bytes;
    struct ar_backing_ticket until;
};

struct late_device {
    struct ar_device base;
    struct ar_backing backing;
    struct ar_device *inner;
    struct late_memory memory;
    struct late_stream *streams;
    uint32_t stream_count;
    struct ar_backing_ticket *tickets, *inner_tickets; /* a ticket of the backing is an index */
    size_t ticket_count, ticket_room;
    struct ar_map events; /* to the index of a ticket */
    struct late_use *uses;
    size_t use_count, use_room;
    struct ar_rng rng;
    struct ar_device_wrong wrong;
    struct late_counts counts;
    char problem[160];
};

static struct late_device *late(struct ar_device *base)
{
    return (struct late_device *)base;
}

static struct late_device *behind(struct ar_backing *backing)
{
    return (struct late_device *)((char *)backing - offsetof(struct late_device, backing));
}

/* After each call of the inner device; returns `status`. */
static enum ar_status synced(struct late_device *self, enum ar_status status)
{
    self->base.counters = self->inner->counters;
    return status;
}

static void *grown(void *array, size_t *room, size_t element_bytes)
{
    *room = *room ? *room * 2 : 64;
    array = realloc(array, *room * element_bytes);
    assert_non_null(array);
    return array;
}

static struct late_stream *stream_of(struct late_device *self, uint32_t stream)
{
    if (stream >= self->stream_count) {
        self->streams = realloc(self->streams, (stream + 1) * sizeof *self->streams);
        assert_non_null(self->streams);
        memset(self->streams + self->stream_count, 0,
               (stream + 1 - self->stream_count) * sizeof *self->streams);
        self->stream_count = stream + 1;
    }
    return &self->streams[stream];
}

static bool is_done(struct late_device *self, struct ar_backing_ticket point)
{
    return stream_of(self, point.stream)->done >= point.value;
}

/* ---- running ---- */

static void read_block(struct late_device *self, const struct late_op *op)
{
    uint64_t offset, other;
    uint64_t bytes =
        late_memory_wrong(&self->memory, op->address, op->bytes, op->block, &offset, &other);
    self->counts.readings++;
    if (bytes && !self->wrong.count)
        self->wrong = (struct ar_device_wrong){.address = op->address + offset,
                                               .block = op->block,
                                               .offset = offset,
                                               .expected = (uint8_t)op->block,
                                               .found = (uint8_t)other};
    self->wrong.count += bytes;
}

static void run(struct late_device *self, struct ar_backing_ticket until)
{
    while (!is_done(self, until)) {
        struct late_op op = self->streams[until.stream].ops[self->streams[until.stream].done];
        if (op.kind == LATE_WAIT)
            run(self, op.wait);
        else if (op.kind == LATE_FILL)
            late_memory_write(&self->memory, op.address, op.bytes, op.block);
        else
            read_block(self, &op);
        self->streams[until.stream].done++;
    }
}

/* Rule 2: what may run and is no reading runs now. */
static void run_early(struct late_device *self)
{
    for (bool again = true; again;) {
        again = false;
        for (uint32_t i = 0; i < self->stream_count; i++) {
            struct late_stream *stream = &self->streams[i];
            if (stream->done == stream->queued)
                continue;
            const struct late_op *op = &stream->ops[stream->done];
            if (op->kind == LATE_FILL || (op->kind == LATE_WAIT && is_done(self, op->wait))) {
                run(self, (struct ar_backing_ticket){i, stream->done + 1});
                again = true;
            }
        }
    }
}

static struct ar_backing_ticket here(struct late_device *self, uint32_t stream)
{
    return (struct ar_backing_ticket){stream, stream_of(self, stream)->queued};
}

static void queue(struct late_device *self, uint32_t stream, struct late_op op)
{
    struct late_stream *to = stream_of(self, stream);
    if (to->queued == to->room) {
        size_t room = (size_t)to->room;
        to->ops = grown(to->ops, &room, sizeof *to->ops);
        to->room = room;
    }
    to->ops[to->queued++] = op;
    run_early(self);
}

static void run_all(struct late_device *self)
{
    for (uint32_t i = 0; i < self->stream_count; i++)
        run(self, here(self, i));
}

/* ---- what the backing is asked ---- */

#define INNER(self) ((self)->inner->backing)

static enum ar_status segment_alloc(struct ar_backing *backing, uint64_t bytes, uint64_t *address)
{
    struct late_device *self = behind(backing);
    return synced(self, ar_backing_segment_alloc(INNER(self), bytes, address));
}

static enum ar_status segment_free(struct ar_backing *backing, uint64_t address)
{
    struct late_device *self = behind(backing);
    run_all(self);
    return synced(self, ar_backing_segment_free(INNER(self), address));
}

static enum ar_status reserve(struct ar_backing *backing, uint64_t bytes, uint64_t *address)
{
    struct late_device *self = behind(backing);
    return synced(self, ar_backing_reserve(INNER(self), bytes, address));
}

static enum ar_status release(struct ar_backing *backing, uint64_t address)
{
    struct late_device *self = behind(backing);
    return synced(self, ar_backing_release(INNER(self), address));
}

static enum ar_status create(struct ar_backing *backing, uint64_t bytes, ar_backing_handle *handle)
{
    struct late_device *self = behind(backing);
    enum ar_status status = ar_backing_create(INNER(self), bytes, handle);
    if (status == AR_OK)
        late_memory_handle(&self->memory, *handle, bytes);
    (void)synced(self, AR_OK);
    return status;
}

static enum ar_status destroy(struct ar_backing *backing, ar_backing_handle handle)
{
    struct late_device *self = behind(backing);
    return synced(self, ar_backing_destroy(INNER(self), handle));
}

static enum ar_status map(struct ar_backing *backing, uint64_t address, ar_backing_handle handle)
{
    struct late_device *self = behind(backing);
    enum ar_status status = ar_backing_map(INNER(self), address, handle);
    if (status == AR_OK)
        late_memory_map(&self->memory, address, handle);
    (void)synced(self, AR_OK);
    return status;
}

static enum ar_status access(struct ar_backing *backing, uint64_t address, uint64_t bytes)
{
    struct late_device *self = behind(backing);
    return synced(self, ar_backing_access(INNER(self), address, bytes));
}

static bool touches(const struct late_op *op, uint64_t address, uint64_t bytes)
{
    return op->kind != LATE_WAIT && op->address < address + bytes &&
           address < op->address + op->bytes;
}

static enum ar_status unmap(struct ar_backing *backing, uint64_t address, uint64_t bytes)
{
    struct late_device *self = behind(backing);
    for (uint32_t i = 0; i < self->stream_count; i++)
        for (uint64_t at = self->streams[i].done; at < self->streams[i].queued; at++)
            if (touches(&self->streams[i].ops[at], address, bytes)) {
                snprintf(self->problem, sizeof self->problem,
                         "pages are unmapped that queued work of stream %u on block %llu touches",
                         i, (unsigned long long)self->streams[i].ops[at].block);
                return AR_INVALID;
            }
    enum ar_status status = ar_backing_unmap(INNER(self), address, bytes);
    if (status == AR_OK)
        late_memory_unmap(&self->memory, address, bytes);
    (void)synced(self, AR_OK);
    return status;
}

static struct ar_backing_ticket fence(struct ar_backing *backing, uint32_t stream)
{
    struct late_device *self = behind(backing);
    if (self->ticket_count == self->ticket_room) {
        size_t room = self->ticket_room;
        self->tickets = grown(self->tickets, &self->ticket_room, sizeof *self->tickets);
        self->inner_tickets = grown(self->inner_tickets, &room, sizeof *self->inner_tickets);
    }
    self->tickets[self->ticket_count] = here(self, stream);
    self->inner_tickets[self->ticket_count] = ar_backing_fence(INNER(self), stream);
    (void)synced(self, AR_OK);
    return (struct ar_backing_ticket){stream, self->ticket_count++};
}

static void wait(struct ar_backing *backing, struct ar_backing_ticket ticket)
{
    struct late_device *self = behind(backing);
    run(self, self->tickets[ticket.value]);
    run_early(self);
    ar_backing_wait(INNER(self), self->inner_tickets[ticket.value]);
    (void)synced(self, AR_OK);
}

static bool done(struct ar_backing *backing, struct ar_backing_ticket ticket)
{
    struct late_device *self = behind(backing);
    if (!is_done(self, self->tickets[ticket.value]) && ar_rng_next(&self->rng) % 4)
        return false;
    wait(backing, ticket);
    return true;
}

static void order(struct ar_backing *backing, uint32_t stream, struct ar_backing_ticket ticket)
{
    struct late_device *self = behind(backing);
    queue(self, stream, (struct late_op){.kind = LATE_WAIT, .wait = self->tickets[ticket.value]});
    ar_backing_order(INNER(self), stream, self->inner_tickets[ticket.value]);
    (void)synced(self, AR_OK);
}

static void memory(struct ar_backing *backing, uint64_t *free_bytes, uint64_t *total_bytes)
{
    ar_backing_memory(INNER(behind(backing)), free_bytes, total_bytes);
}

static enum ar_status pool_alloc(struct ar_backing *backing, uint64_t bytes, uint32_t stream,
                                 uint64_t *address)
{
    struct late_device *self = behind(backing);
    run_all(self);
    return synced(self, INNER(self)->ops->pool_alloc(INNER(self), bytes, stream, address));
}

static enum ar_status pool_free(struct ar_backing *backing, uint64_t address, uint32_t stream)
{
    struct late_device *self = behind(backing);
    return synced(self, INNER(self)->ops->pool_free(INNER(self), address, stream));
}

static enum ar_status pool_trim(struct ar_backing *backing, uint64_t keep_bytes)
{
    struct late_device *self = behind(backing);
    run_all(self);
    return synced(self, INNER(self)->ops->pool_trim(INNER(self), keep_bytes));
}

static void pool_memory(struct ar_backing *backing, uint64_t *used_bytes, uint64_t *reserved_bytes)
{
    INNER(behind(backing))->ops->pool_memory(INNER(behind(backing)), used_bytes, reserved_bytes);
}

static enum ar_status pool_open(struct ar_backing *backing, const struct ar_backing_pool *settings)
{
    return INNER(behind(backing))->ops->pool_open(INNER(behind(backing)), settings);
}

static const char *problem_of(struct late_device *self)
{
    return self->problem[0] ? self->problem : self->inner->ops->problem(self->inner);
}

static const char *backing_says(struct ar_backing *backing)
{
    return problem_of(behind(backing));
}

/* ---- what the device is asked ---- */

static void late_close(struct ar_device *base)
{
    struct late_device *self = late(base);
    ar_device_close(self->inner);
    late_memory_close(&self->memory);
    ar_map_close(&self->events);
    for (uint32_t i = 0; i < self->stream_count; i++)
        free(self->streams[i].ops);
    free(self->streams);
    free(self->tickets);
    free(self->inner_tickets);
    free(self->uses);
    free(self);
}

static enum ar_status outside(struct ar_device *base, uint64_t bytes)
{
    struct late_device *self = late(base);
    return synced(self, self->inner->ops->outside(self->inner, bytes));
}

static void advance(struct ar_device *base, uint64_t nanoseconds)
{
    late(base)->inner->ops->advance(late(base)->inner, nanoseconds);
}

static uint64_t now(struct ar_device *base)
{
    return late(base)->inner->ops->now(late(base)->inner);
}

static uint64_t idle_at(struct ar_device *base)
{
    return late(base)->inner->ops->idle_at(late(base)->inner);
}

static void kernel(struct ar_device *base, uint32_t stream, uint64_t nanoseconds)
{
    late(base)->counts.kernels++;
    late(base)->inner->ops->kernel(late(base)->inner, stream, nanoseconds);
}

static void event_record(struct ar_device *base, uint64_t event, uint32_t stream)
{
    struct late_device *self = late(base);
    struct ar_backing_ticket ticket = fence(&self->backing, stream);
    assert_int_equal(ar_map_put(&self->events, event, ticket.value), AR_OK);
    self->inner->ops->event_record(self->inner, event, stream);
}

static void stream_wait(struct ar_device *base, uint32_t stream, uint64_t event)
{
    struct late_device *self = late(base);
    uint64_t ticket;
    if (ar_map_get(&self->events, event, &ticket))
        queue(self, stream, (struct late_op){.kind = LATE_WAIT, .wait = self->tickets[ticket]});
    self->inner->ops->stream_wait(self->inner, stream, event);
}

static void sync_stream(struct ar_device *base, uint32_t stream)
{
    struct late_device *self = late(base);
    if (stream == TRACE_NO_STREAM)
        run_all(self);
    else
        run(self, here(self, stream));
    run_early(self);
    self->inner->ops->sync(self->inner, stream);
    (void)synced(self, AR_OK);
}

struct using
{
    struct late_device *self;
    uint32_t stream;
    bool order;
};

static void use_one(void *argument, uint64_t physical, uint64_t bytes, uint64_t at)
{
    struct using *using = argument;
    struct late_device *self = using->self;
    if (self->use_count == self->use_room)
        self->uses = grown(self->uses, &self->use_room, sizeof *self->uses);
    self->uses[self->use_count++] = (struct late_use){physical, bytes, here(self, using->stream)};
}

static void used(struct ar_device *base, uint64_t address, uint64_t bytes, uint32_t stream,
                 uint64_t event)
{
    struct using using = {late(base), stream, false};
    late_memory_each(&late(base)->memory, address, bytes, use_one, &using);
    late(base)->inner->ops->used(late(base)->inner, address, bytes, stream, event);
}

/* The stream waits for what others do to these bytes; what is done is forgotten. */
static void order_one(void *argument, uint64_t physical, uint64_t bytes, uint64_t at)
{
    struct using *using = argument;
    struct late_device *self = using->self;
    size_t kept = 0;
    for (size_t i = 0; i < self->use_count; i++) {
        struct late_use use = self->uses[i];
        if (is_done(self, use.until))
            continue;
        self->uses[kept++] = use;
        if (using->order && use.until.stream != using->stream && use.physical < physical + bytes &&
            physical < use.physical + use.bytes)
            queue(self, using->stream, (struct late_op){.kind = LATE_WAIT, .wait = use.until});
    }
    self->use_count = kept;
}

static uint64_t handed_out(struct ar_device *base, uint64_t address, uint64_t bytes,
                           uint32_t stream, bool order, uint64_t event)
{
    struct late_device *self = late(base);
    struct using using = {self, stream, order};
    late_memory_each(&self->memory, address, bytes, order_one, &using);
    uint64_t waited =
        self->inner->ops->handed_out(self->inner, address, bytes, stream, order, event);
    (void)synced(self, AR_OK);
    return waited;
}

static const char *race_text(struct ar_device *base)
{
    return late(base)->inner->ops->race_text(late(base)->inner);
}

static bool segment_of(struct ar_device *base, uint64_t address, struct ar_device_segment *out)
{
    return late(base)->inner->ops->segment_of(late(base)->inner, address, out);
}

static enum ar_status fill(struct ar_device *base, uint64_t address, uint64_t bytes, uint64_t block,
                           uint32_t stream)
{
    late(base)->counts.fills++;
    queue(late(base), stream,
          (struct late_op){.kind = LATE_FILL, .address = address, .bytes = bytes, .block = block});
    return AR_OK;
}

static enum ar_status verify(struct ar_device *base, uint64_t address, uint64_t bytes,
                             uint64_t block, uint32_t stream)
{
    queue(late(base), stream,
          (struct late_op){.kind = LATE_READ, .address = address, .bytes = bytes, .block = block});
    return AR_OK;
}

static enum ar_status wrong(struct ar_device *base, struct ar_device_wrong *out)
{
    run_all(late(base));
    *out = late(base)->wrong;
    return AR_OK;
}

static enum ar_status touch(struct ar_device *base, uint64_t address, uint64_t bytes,
                            uint32_t stream)
{
    late(base)->counts.touches++;
    return fill(base, address, bytes, 0, stream);
}

static enum ar_status kernel_op(struct ar_device *base, const struct ar_kernel_op *what)
{
    late(base)->counts.kernel_ops++;
    return what->out.bytes ? AR_OK : AR_INVALID;
}

static const char *problem(struct ar_device *base)
{
    return problem_of(late(base));
}

static uint64_t mark(struct ar_device *base)
{
    return late(base)->inner->ops->mark(late(base)->inner);
}

static uint64_t mark_ns(struct ar_device *base, uint64_t mark_number)
{
    return late(base)->inner->ops->mark_ns(late(base)->inner, mark_number);
}

static const struct ar_backing_ops backing_calls = {
    .segment_alloc = segment_alloc,
    .segment_free = segment_free,
    .reserve = reserve,
    .release = release,
    .create = create,
    .destroy = destroy,
    .map = map,
    .access = access,
    .unmap = unmap,
    .fence = fence,
    .done = done,
    .wait = wait,
    .order = order,
    .memory = memory,
    .pool_alloc = pool_alloc,
    .pool_free = pool_free,
    .pool_trim = pool_trim,
    .pool_memory = pool_memory,
    .problem = backing_says,
    .pool_open = pool_open,
};

static const struct ar_device_ops device_calls = {
    .close = late_close,
    .outside = outside,
    .advance = advance,
    .now = now,
    .idle_at = idle_at,
    .kernel = kernel,
    .event_record = event_record,
    .stream_wait = stream_wait,
    .sync = sync_stream,
    .used = used,
    .handed_out = handed_out,
    .race_text = race_text,
    .segment_of = segment_of,
    .fill = fill,
    .verify = verify,
    .wrong = wrong,
    .touch = touch,
    .kernel_op = kernel_op,
    .problem = problem,
    .mark = mark,
    .mark_ns = mark_ns,
};

struct ar_device *late_device_open(const char *spec, uint64_t seed)
{
    struct late_device *self = calloc(1, sizeof *self);
    assert_non_null(self);
    assert_ok(ar_device_open_text(spec, &self->inner, &test_error));
    late_memory_open(&self->memory);
    ar_rng_seed(&self->rng, seed);
    self->backing = *self->inner->backing;
    self->backing.ops = &backing_calls;
    self->base = *self->inner;
    self->base.ops = &device_calls;
    self->base.backing = &self->backing;
    return &self->base;
}

const struct late_counts *late_device_counts(const struct ar_device *device)
{
    return &((const struct late_device *)device)->counts;
}
