#include "bench/host/launches.h"

#include <stdlib.h>

#include "allocators/base/array.h"
#include "allocators/base/size.h"
#include "workloads/trace/event.h"

#define PLACE_BYTES (2 * AR_MIB) /* operands keep their place within it */

/* ---- recording ------------------------------------------------------------------------------- */

static void add(struct launches *self, enum launch_kind kind, uint32_t stream, uint64_t value)
{
    struct launch *items = ar_array_grow(self->items, self->count, &self->room, sizeof *items);
    self->lost |= !items;
    if (!items)
        return;
    self->items = items;
    self->items[self->count++] = (struct launch){kind, stream, value};
    self->marks += kind == LAUNCH_MARK;
    self->kernels += kind == LAUNCH_KERNEL;
}

/* The table that the device has now is the first member of the recorder. */
static struct launch_recorder *recorder_of(const struct ar_device *device)
{
    return (struct launch_recorder *)device->ops;
}

static void record_kernel(struct ar_device *device, uint32_t stream, uint64_t nanoseconds)
{
    struct launch_recorder *recorder = recorder_of(device);
    add(recorder->launches, LAUNCH_KERNEL, stream, nanoseconds);
    recorder->device_ops->kernel(device, stream, nanoseconds);
}

static void record_event(struct ar_device *device, uint64_t event, uint32_t stream)
{
    struct launch_recorder *recorder = recorder_of(device);
    add(recorder->launches, LAUNCH_RECORD, stream, event);
    recorder->device_ops->event_record(device, event, stream);
}

static void record_wait(struct ar_device *device, uint32_t stream, uint64_t event)
{
    struct launch_recorder *recorder = recorder_of(device);
    add(recorder->launches, LAUNCH_WAIT, stream, event);
    recorder->device_ops->stream_wait(device, stream, event);
}

static void record_sync(struct ar_device *device, uint32_t stream)
{
    struct launch_recorder *recorder = recorder_of(device);
    add(recorder->launches, LAUNCH_SYNC, stream, 0);
    recorder->device_ops->sync(device, stream);
}

static uint64_t record_mark(struct ar_device *device)
{
    struct launch_recorder *recorder = recorder_of(device);
    add(recorder->launches, LAUNCH_MARK, 0, 0);
    return recorder->device_ops->mark(device);
}

/* Work that the device refused is no part of the program. */
static enum ar_status record_kernel_op(struct ar_device *device, const struct ar_kernel_op *op)
{
    struct launch_recorder *recorder = recorder_of(device);
    struct launches *self = recorder->launches;
    enum ar_status status = recorder->device_ops->kernel_op(device, op);
    if (status != AR_OK)
        return status;
    struct ar_kernel_op *kernel_ops = ar_array_grow(self->kernel_ops, self->kernel_op_count,
                                                    &self->work_room, sizeof *kernel_ops);
    self->lost |= !kernel_ops;
    if (!kernel_ops)
        return status;
    self->kernel_ops = kernel_ops;
    self->kernel_ops[self->kernel_op_count] = *op;
    add(self, LAUNCH_WORK, op->stream, self->kernel_op_count++);
    return status;
}

void launches_record(struct launch_recorder *recorder, struct launches *launches,
                     struct ar_device *device)
{
    *recorder = (struct launch_recorder){
        .ops = *device->ops, .device_ops = device->ops, .launches = launches};
    recorder->ops.kernel = record_kernel;
    recorder->ops.event_record = record_event;
    recorder->ops.stream_wait = record_wait;
    recorder->ops.sync = record_sync;
    recorder->ops.mark = record_mark;
    if (device->ops->kernel_op)
        recorder->ops.kernel_op = record_kernel_op;
    device->ops = &recorder->ops;
}

enum ar_status launches_end(struct launch_recorder *recorder, struct ar_device *device,
                            struct ar_error *error)
{
    device->ops = recorder->device_ops;
    if (recorder->launches->lost)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for the launches of a run");
    return AR_OK;
}

/* ---- fixing ---------------------------------------------------------------------------------- */

static void visit_operands(struct launches *self,
                           void (*visit)(struct launches *, struct ar_device_operand *))
{
    for (size_t i = 0; i < self->kernel_op_count; i++) {
        struct ar_kernel_op *op = &self->kernel_ops[i];
        if (op->out.bytes)
            visit(self, &op->out);
        for (uint32_t k = 0; k < op->input_count; k++)
            if (op->in[k].bytes)
                visit(self, &op->in[k]);
    }
}

static void add_extent(struct launches *self, struct ar_device_operand *operand)
{
    self->extents[self->extent_count++] =
        (struct launch_extent){.begin = operand->address, .end = operand->address + operand->bytes};
}

static int by_begin(const void *left, const void *right)
{
    const struct launch_extent *a = left, *b = right;
    return (a->begin > b->begin) - (a->begin < b->begin);
}

/* Neighbours closer than a place are one, so that there are few segments. */
static void join(struct launches *self)
{
    size_t kept = 0;
    qsort(self->extents, self->extent_count, sizeof *self->extents, by_begin);
    for (size_t i = 0; i < self->extent_count; i++) {
        struct launch_extent *last = kept ? &self->extents[kept - 1] : NULL;
        if (last && self->extents[i].begin <= last->end + PLACE_BYTES) {
            if (self->extents[i].end > last->end)
                last->end = self->extents[i].end;
        } else {
            self->extents[kept++] = self->extents[i];
        }
    }
    self->extent_count = kept;
}

static void move_operand(struct launches *self, struct ar_device_operand *operand)
{
    size_t low = 0, high = self->extent_count;
    while (high - low > 1) { /* the last that begins no later */
        size_t middle = low + (high - low) / 2;
        if (self->extents[middle].begin <= operand->address)
            low = middle;
        else
            high = middle;
    }
    operand->address += self->extents[low].moved;
}

enum ar_status launches_fix(struct launches *launches, struct ar_device *device,
                            struct ar_error *error)
{
    size_t most = launches->kernel_op_count * (1 + AR_KERNEL_OP_INPUTS);
    launches->extents = calloc(most ? most : 1, sizeof *launches->extents);
    if (!launches->extents)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for %zu operands", most);
    visit_operands(launches, add_extent);
    join(launches);
    for (size_t i = 0; i < launches->extent_count; i++) {
        struct launch_extent *extent = &launches->extents[i];
        uint64_t place = extent->begin % PLACE_BYTES;
        uint64_t bytes = extent->end - extent->begin + 2 * PLACE_BYTES;
        if (ar_backing_segment_alloc(device->backing, bytes, &extent->segment) != AR_OK)
            return ar_error_set(error, AR_NO_MEMORY,
                                "the device has no %llu bytes more for the hand-written loop; %llu "
                                "are its already",
                                (unsigned long long)bytes,
                                (unsigned long long)launches->fixed_bytes);
        extent->held = true;
        extent->moved = ar_size_round_up(extent->segment, PLACE_BYTES) + place - extent->begin;
        launches->fixed_bytes += bytes;
    }
    visit_operands(launches, move_operand);
    return AR_OK;
}

/* ---- running --------------------------------------------------------------------------------- */

static enum ar_status launch_all(const struct launches *launches, struct ar_device *device,
                                 uint64_t *marks)
{
    const struct ar_device_ops *ops = device->ops;
    size_t marked = 0;
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < launches->count && status == AR_OK; i++) {
        const struct launch *launch = &launches->items[i];
        switch (launch->kind) {
        case LAUNCH_WORK:
            status = ops->kernel_op(device, &launches->kernel_ops[launch->value]);
            break;
        case LAUNCH_KERNEL:
            ops->kernel(device, launch->stream, launch->value);
            break;
        case LAUNCH_RECORD:
            ops->event_record(device, launch->value, launch->stream);
            break;
        case LAUNCH_WAIT:
            ops->stream_wait(device, launch->stream, launch->value);
            break;
        case LAUNCH_SYNC:
            ops->sync(device, launch->stream);
            break;
        case LAUNCH_MARK:
            marks[marked++] = ops->mark(device);
            break;
        }
    }
    return status;
}

enum ar_status launches_run(const struct launches *launches, struct ar_device *device,
                            uint64_t *mark_ns, struct ar_error *error)
{
    enum ar_status status = launch_all(launches, device, mark_ns);
    if (status != AR_OK) {
        device->ops->sync(device, TRACE_NO_STREAM);
        return ar_error_set(error, status, "the hand-written loop could not launch its work: %s",
                            device->ops->problem(device));
    }
    for (size_t i = 0; i < launches->marks; i++)
        mark_ns[i] = device->ops->mark_ns(device, mark_ns[i]);
    device->ops->sync(device, TRACE_NO_STREAM);
    return AR_OK;
}

void launches_close(struct launches *launches, struct ar_device *device)
{
    for (size_t i = 0; i < launches->extent_count; i++)
        if (launches->extents[i].held)
            (void)ar_backing_segment_free(device->backing, launches->extents[i].segment);
    free(launches->items);
    free(launches->kernel_ops);
    free(launches->extents);
    *launches = (struct launches){0};
}
