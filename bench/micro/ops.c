/* Traces as arrays of operations; see ops.h. */
#include "bench/micro/ops.h"

#include <stdbool.h>
#include <stdlib.h>

#include "allocators/base/array.h"
#include "workloads/formats/formats.h"
#include "workloads/trace/trace.h"

struct reading {
    struct micro_ops *ops;
    size_t capacity;
    bool *live; /* by slot */
    struct ar_error *error;
};

static enum ar_status append(struct reading *reading, struct micro_op op)
{
    struct micro_ops *ops = reading->ops;
    if (!AR_ARRAY_ADD(ops->at, ops->count, reading->capacity, op))
        return ar_error_set(reading->error, AR_HOST_MEMORY, "no host memory for %zu operations",
                            ops->count);
    return AR_OK;
}

static enum ar_status read_event(struct reading *reading, const struct trace_event *event)
{
    struct micro_op op = {.slot = event->slot, .stream = event->stream};
    switch (event->kind) {
    case TRACE_ALLOC:
    case TRACE_PROBE:
        if (event->value == 0)
            return AR_OK;
        op.bytes = event->value;
        reading->live[event->slot] = true;
        return append(reading, op);
    case TRACE_FREE_REQUESTED:
    case TRACE_FREE_COMPLETED:
        /* A free completed event after free requested finds the slot free already. */
        if (!reading->live[event->slot])
            return AR_OK;
        reading->live[event->slot] = false;
        return append(reading, op);
    default:
        return AR_OK;
    }
}

static enum ar_status read_all(struct reading *reading, struct trace_source *source)
{
    const struct trace_event *events;
    size_t count = 0;
    do {
        enum ar_status status = trace_next(source, &events, &count, reading->error);
        for (size_t i = 0; status == AR_OK && i < count; i++)
            status = read_event(reading, &events[i]);
        if (status != AR_OK)
            return status;
    } while (count > 0);
    for (uint32_t slot = 0; slot < reading->ops->slots; slot++) {
        if (!reading->live[slot])
            continue;
        enum ar_status status = append(reading, (struct micro_op){.slot = slot});
        if (status != AR_OK)
            return status;
    }
    return AR_OK;
}

enum ar_status micro_ops_read(const char *path, struct micro_ops *out, struct ar_error *error)
{
    struct trace_source *source = NULL;
    enum ar_status status = trace_open(path, &source, error);
    if (status != AR_OK)
        return status;
    *out = (struct micro_ops){.slots = source->info.slots};
    struct reading reading = {.ops = out, .error = error};
    reading.live = calloc(out->slots ? out->slots : 1, sizeof *reading.live);
    if (reading.live)
        status = read_all(&reading, source);
    else
        status = ar_error_set(error, AR_HOST_MEMORY, "no host memory for %u slots", out->slots);
    free(reading.live);
    trace_close(source);
    if (status != AR_OK)
        micro_ops_close(out);
    return status;
}

void micro_ops_close(struct micro_ops *ops)
{
    free(ops->at);
    *ops = (struct micro_ops){0};
}
