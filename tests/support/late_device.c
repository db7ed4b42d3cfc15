#include "tests/support/late_device.h"

#include "allocators/base/array.h"
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
    size_t done, queued, room;
};

struct late_ticket {
    struct ar_backing_ticket here, inner;
};

/* Work of a stream that may use a range. */
struct late_use {
    uint64_t physical, bytes;
    struct ar_backing_ticket until;
};

/* The simulated device with some of its calls replaced. */
struct late_device {
    struct ar_device_ops ops;
    struct ar_backing_ops backing_ops;
    const struct ar_device_ops *inner;
    const struct ar_backing_ops *inner_backing;
    struct late_memory memory;
    struct late_stream *streams;
    size_t stream_count;
    struct late_ticket *tickets; /* a ticket of the backing is an index */
    size_t ticket_count, ticket_room;
    struct ar_map events; /* to the index of a ticket */
    struct late_use *uses;
    size_t use_count, use_room;
    struct ar_rng rng;
    struct ar_device_wrong wrong;
    struct late_counts counts;
    char problem[160];
};

static struct late_device *late(struct ar_device *device)
{
    return (struct late_device *)((char *)(uintptr_t)device->ops -
                                  offsetof(struct late_device, ops));
}

static struct late_device *behind(struct ar_backing *backing)
{
    return (struct late_device *)((char *)(uintptr_t)backing->ops -
                                  offsetof(struct late_device, backing_ops));
}

static struct late_stream *stream_of(struct late_device *self, uint32_t stream)
{
    assert_true(AR_ARRAY_REACH(self->streams, self->stream_count, stream));
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
    assert_true(AR_ARRAY_ADD(to->ops, to->queued, to->room, op));
    run_early(self);
}

static void run_all(struct late_device *self)
{
    for (uint32_t i = 0; i < self->stream_count; i++)
        run(self, here(self, i));
}

/* ---- what the backing is asked ---- */

static enum ar_status segment_free(struct ar_backing *backing, uint64_t address)
{
    struct late_device *self = behind(backing);
    run_all(self);
    return self->inner_backing->segment_free(backing, address);
}

static enum ar_status create(struct ar_backing *backing, uint64_t bytes, ar_backing_handle *handle)
{
    struct late_device *self = behind(backing);
    enum ar_status status = self->inner_backing->create(backing, bytes, handle);
    if (status == AR_OK)
        late_memory_handle(&self->memory, *handle, bytes);
    return status;
}

static enum ar_status map(struct ar_backing *backing, uint64_t address, ar_backing_handle handle)
{
    struct late_device *self = behind(backing);
    enum ar_status status = self->inner_backing->map(backing, address, handle);
    if (status == AR_OK)
        late_memory_map(&self->memory, address, handle);
    return status;
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
    enum ar_status status = self->inner_backing->unmap(backing, address, bytes);
    if (status == AR_OK)
        late_memory_unmap(&self->memory, address, bytes);
    return status;
}

static struct ar_backing_ticket fence(struct ar_backing *backing, uint32_t stream)
{
    struct late_device *self = behind(backing);
    const struct late_ticket ticket = {here(self, stream),
                                       self->inner_backing->fence(backing, stream)};
    assert_true(AR_ARRAY_ADD(self->tickets, self->ticket_count, self->ticket_room, ticket));
    return (struct ar_backing_ticket){stream, self->ticket_count - 1};
}

static void wait(struct ar_backing *backing, struct ar_backing_ticket ticket)
{
    struct late_device *self = behind(backing);
    run(self, self->tickets[ticket.value].here);
    run_early(self);
    self->inner_backing->wait(backing, self->tickets[ticket.value].inner);
}

static bool done(struct ar_backing *backing, struct ar_backing_ticket ticket)
{
    struct late_device *self = behind(backing);
    if (!is_done(self, self->tickets[ticket.value].here) && ar_rng_next(&self->rng) % 4)
        return false;
    wait(backing, ticket);
    return true;
}

static void order(struct ar_backing *backing, uint32_t stream, struct ar_backing_ticket ticket)
{
    struct late_device *self = behind(backing);
    queue(self, stream,
          (struct late_op){.kind = LATE_WAIT, .wait = self->tickets[ticket.value].here});
    self->inner_backing->order(backing, stream, self->tickets[ticket.value].inner);
}

static enum ar_status pool_alloc(struct ar_backing *backing, uint64_t bytes, uint32_t stream,
                                 uint64_t *address)
{
    struct late_device *self = behind(backing);
    run_all(self);
    return self->inner_backing->pool_alloc(backing, bytes, stream, address);
}

static enum ar_status pool_trim(struct ar_backing *backing, uint64_t keep_bytes)
{
    struct late_device *self = behind(backing);
    run_all(self);
    return self->inner_backing->pool_trim(backing, keep_bytes);
}

/* ---- what the device is asked ---- */

static void late_close(struct ar_device *base)
{
    FREED struct late_device *self = late(base);
    base->ops = self->inner;
    base->backing->ops = self->inner_backing;
    ar_device_close(base);
    late_memory_close(&self->memory);
    ar_map_close(&self->events);
    for (uint32_t i = 0; i < self->stream_count; i++)
        free(self->streams[i].ops);
    free(self->streams);
    free(self->tickets);
    free(self->uses);
}

static void kernel(struct ar_device *base, uint32_t stream, uint64_t nanoseconds)
{
    late(base)->counts.kernels++;
    late(base)->inner->kernel(base, stream, nanoseconds);
}

static void event_record(struct ar_device *base, uint64_t event, uint32_t stream)
{
    struct late_device *self = late(base);
    struct ar_backing_ticket ticket = fence(base->backing, stream);
    assert_int_equal(ar_map_put(&self->events, event, ticket.value), AR_OK);
    self->inner->event_record(base, event, stream);
}

static void stream_wait(struct ar_device *base, uint32_t stream, uint64_t event)
{
    struct late_device *self = late(base);
    uint64_t ticket;
    if (ar_map_get(&self->events, event, &ticket))
        queue(self, stream,
              (struct late_op){.kind = LATE_WAIT, .wait = self->tickets[ticket].here});
    self->inner->stream_wait(base, stream, event);
}

static void sync_stream(struct ar_device *base, uint32_t stream)
{
    struct late_device *self = late(base);
    if (stream == TRACE_NO_STREAM)
        run_all(self);
    else
        run(self, here(self, stream));
    run_early(self);
    self->inner->sync(base, stream);
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
    const struct late_use use = {physical, bytes, here(self, using->stream)};
    assert_true(AR_ARRAY_ADD(self->uses, self->use_count, self->use_room, use));
}

static void used(struct ar_device *base, uint64_t address, uint64_t bytes, uint32_t stream,
                 uint64_t event)
{
    struct using using = {late(base), stream, false};
    late_memory_each(&late(base)->memory, address, bytes, use_one, &using);
    late(base)->inner->used(base, address, bytes, stream, event);
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
    return self->inner->handed_out(base, address, bytes, stream, order, event);
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
    return late(base)->problem[0] ? late(base)->problem : late(base)->inner->problem(base);
}

static const char *backing_problem(struct ar_backing *backing)
{
    struct late_device *self = behind(backing);
    return self->problem[0] ? self->problem : self->inner_backing->problem(backing);
}

static void replace_backing(struct ar_backing_ops *ops)
{
    ops->segment_free = segment_free;
    ops->create = create;
    ops->map = map;
    ops->unmap = unmap;
    ops->fence = fence;
    ops->done = done;
    ops->wait = wait;
    ops->wait_streams = NULL; /* it would not come by here */
    ops->order = order;
    ops->pool_alloc = pool_alloc;
    ops->pool_trim = pool_trim;
    ops->problem = backing_problem;
}

static void replace_device(struct ar_device_ops *ops)
{
    ops->close = late_close;
    ops->used_up = NULL;
    ops->others = NULL;
    ops->prepare = NULL;
    ops->requested = NULL;
    ops->kernel_op_ns = NULL;
    ops->kernel = kernel;
    ops->event_record = event_record;
    ops->stream_wait = stream_wait;
    ops->sync = sync_stream;
    ops->used = used;
    ops->handed_out = handed_out;
    ops->fill = fill;
    ops->verify = verify;
    ops->wrong = wrong;
    ops->touch = touch;
    ops->kernel_op = kernel_op;
    ops->problem = problem;
}

struct ar_device *late_device_open(const char *spec, uint64_t seed)
{
    struct late_device *self = calloc(1, sizeof *self);
    struct ar_device *device;
    assert_non_null(self);
    assert_ok(ar_device_open_text(spec, &device, &test_error));
    late_memory_open(&self->memory);
    ar_rng_seed(&self->rng, seed);
    self->inner = device->ops;
    self->inner_backing = device->backing->ops;
    self->ops = *self->inner;
    self->backing_ops = *self->inner_backing;
    replace_device(&self->ops);
    replace_backing(&self->backing_ops);
    device->ops = &self->ops;
    device->backing->ops = &self->backing_ops;
    return device;
}

const struct late_counts *late_device_counts(const struct ar_device *device)
{
    return &late((struct ar_device *)(uintptr_t)device)->counts;
}
