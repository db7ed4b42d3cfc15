/* A policy over a device that costs nothing; see rig.h. */
#include "bench/micro/rig.h"

#include "allocators/base/array.h"
#include "allocators/registry.h"
#include "workloads/formats/formats.h"

const char *rig_spec(const struct ar_policy_ops *ops, char *text, size_t text_bytes)
{
    bool limited = !(ops->capabilities & AR_POLICY_OVERLAPS);
    bool counted = ar_options_find(ops->options, "max_allocs") != NULL; /* it must not be reached */
    snprintf(text, text_bytes, "%s%s%s", ops->name, limited ? ":limit=64GiB" : "",
             counted ? ",max_allocs=1048576" : "");
    return text;
}

static enum ar_status make_on(struct rig *rig, const char *device, struct ar_error *error)
{
    AR_TRY(ar_device_open_text(device, &rig->device, error));
    struct ar_policy_context context = {
        .backing = rig->device->backing, .host = &rig->host, .unguarded = true};
    return registry_create(&rig->spec, &context, &rig->policy, error);
}

enum ar_status rig_open(struct rig *rig, const char *spec, struct ar_error *error)
{
    return rig_open_or(rig, spec, "sim:profile=h100", error);
}

enum ar_status rig_open_or(struct rig *rig, const char *spec, const char *other,
                           struct ar_error *error)
{
    *rig = (struct rig){0};
    AR_TRY(ar_spec_parse(spec, &rig->spec, error));
    enum ar_status status = make_on(rig, "sim:profile=bump", error);
    if (status == AR_UNSUPPORTED) {
        ar_device_close(rig->device);
        rig->device = NULL;
        status = make_on(rig, other, error);
    }
    if (status != AR_OK)
        rig_close(rig);
    return status;
}

enum ar_status rig_open_on(struct rig *rig, const char *spec, struct ar_backing *backing,
                           struct ar_error *error)
{
    *rig = (struct rig){0};
    struct ar_policy_context context = {.backing = backing, .host = &rig->host, .unguarded = true};
    enum ar_status status = ar_spec_parse(spec, &rig->spec, error);
    AR_THEN(status, registry_create(&rig->spec, &context, &rig->policy, error));
    if (status != AR_OK)
        rig_close(rig);
    return status;
}

void rig_close(struct rig *rig)
{
    ar_policy_destroy(rig->policy);
    ar_device_close(rig->device);
    ar_spec_close(&rig->spec);
    *rig = (struct rig){0};
}

/* ---- operations ------------------------------------------------------------------------------ */

/* Traces as arrays of operations (rig.h). */

struct reading {
    struct micro_ops *ops;
    size_t capacity;
    bool *live; /* by slot */
    struct ar_error *error;
};

static enum ar_status append(struct reading *reading, struct micro_op op)
{
    struct micro_ops *ops = reading->ops;
    return AR_APPEND(ops->at, ops->count, reading->capacity, op, reading->error, "%zu operations",
                     ops->count);
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
        AR_TRY(trace_next(source, &events, &count, reading->error));
        for (size_t i = 0; i < count; i++)
            AR_TRY(read_event(reading, &events[i]));
    } while (count > 0);
    for (uint32_t slot = 0; slot < reading->ops->slots; slot++) {
        if (!reading->live[slot])
            continue;
        AR_TRY(append(reading, (struct micro_op){.slot = slot}));
    }
    return AR_OK;
}

enum ar_status micro_ops_read(const char *path, struct micro_ops *out, struct ar_error *error)
{
    AR_CLOSED(trace_close_at) struct trace_source *source = NULL;
    AR_TRY(trace_open(path, &source, error));
    *out = (struct micro_ops){.slots = source->info.slots};
    struct reading reading = {.ops = out, .error = error};
    reading.live = calloc(out->slots ? out->slots : 1, sizeof *reading.live);
    enum ar_status status =
        reading.live ? read_all(&reading, source) : ar_no_memory(error, "%u slots", out->slots);
    free(reading.live);
    if (status != AR_OK)
        micro_ops_close(out);
    return status;
}

void micro_ops_close(struct micro_ops *ops)
{
    free(ops->at);
    *ops = (struct micro_ops){0};
}
