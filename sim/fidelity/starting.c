/* The device holds what was there before the policy adopts it. */
#include "sim/fidelity/starting.h"

#include <inttypes.h>

#include "allocators/base/size.h"
#include "allocators/decorators/forward.h"

struct starting {
    struct forward forward;
    struct recorded_device *device;
    struct ar_policy_block *blocks; /* of the start; granted_bytes 0: could not be served */
    size_t block_bytes;
};

static enum ar_status starting_alloc(struct ar_policy *base,
                                     const struct ar_policy_request *request,
                                     struct ar_policy_block *out)
{
    struct starting *self = (struct starting *)base;
    const struct recorded_request *recorded = self->device->request;
    if (!recorded || !recorded->initial)
        return forward_alloc(base, request, out);
    *out = self->blocks[recorded->start];
    return out->granted_bytes ? AR_OK : AR_NO_MEMORY;
}

static void starting_destroy(struct ar_policy *base)
{
    struct starting *self = (struct starting *)base;
    ar_host_free(self->forward.host, self->blocks, self->block_bytes);
    forward_destroy(base);
}

/* A range reaches to the next one, or as far as an allocator may have reserved. */
static uint64_t range_bytes(const struct recorded_device *device, size_t index)
{
    const struct recorded_start *start = &device->recording->start;
    const uint64_t address = start->areas[index].address;
    uint64_t bytes = ar_size_round_up(2 * device->base.props.total_bytes, AR_GIB), top = address;
    for (size_t i = index + 1; i < start->area_count; i++) {
        const struct recorded_area *area = &start->areas[i];
        if (!area->pages && area->address - address < bytes)
            bytes = area->address - address;
        if (!area->pages)
            break;
        top = area->address + area->bytes;
    }
    /* What was mapped before, and given back, is not known: a near place is of this one. */
    return recorded_range_bytes(device->recording, address, top, AR_GIB, bytes);
}

static enum ar_status put_places(struct recorded_device *device)
{
    const struct recorded_start *start = &device->recording->start;
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < start->area_count && !status; i++) {
        const struct recorded_area *area = &start->areas[i];
        bool is_range = !area->bytes;
        if (area->pages) {
            struct recorded_place *place = recorded_place_at(device, area->address);
            if (!place || !place->range)
                return AR_INVALID; /* pages above all that the range can be */
            if (!place->mapped_bytes)
                place->ordinal = device->base.counters.segments_made++;
            place->mapped_bytes += area->bytes;
            continue;
        }
        status = recorded_place_add(
            device, (struct recorded_place){
                        .address = area->address,
                        .bytes = is_range ? range_bytes(device, i) : area->bytes,
                        .ordinal = is_range ? UINT64_MAX : device->base.counters.segments_made++,
                        .pool = area->pool,
                        .range = is_range,
                    });
    }
    return status;
}

static enum ar_status adopt(struct ar_policy *inner, struct recorded_device *device,
                            struct ar_policy_block *blocks, struct ar_error *error)
{
    const struct recorded_start *start = &device->recording->start;
    enum ar_status status = put_places(device);
    if (!status)
        status = inner->ops->adopt(inner, start->ranges, start->range_count, blocks);
    if (status == AR_INVALID)
        return ar_error_set(error, status,
                            "policy %s can never have come to the state in which the recording "
                            "begins; does the recording name its settings?",
                            inner->ops->name);
    return status ? ar_error_set(error, status, "policy %s cannot take over what was there: %s",
                                 inner->ops->name, ar_status_meaning(status))
                  : AR_OK;
}

static enum ar_status request_all(struct ar_policy *inner, struct recorded_device *device,
                                  struct ar_policy_block *blocks, struct ar_error *error)
{
    const struct recording *recording = device->recording;
    enum ar_status status = AR_OK;
    device->step = STEP_START;
    for (size_t i = 0; i < recording->start.used_count && !status; i++) {
        status = ar_policy_alloc(inner, &recording->requests[recording->start.used[i]].request,
                                 &blocks[i]);
        if (status == AR_NO_MEMORY) {
            blocks[i] = (struct ar_policy_block){0};
            status = AR_OK;
        }
    }
    device->step = STEP_OTHER;
    return status ? ar_error_set(error, status, "policy %s cannot serve what was there: %s",
                                 inner->ops->name, ar_status_meaning(status))
                  : AR_OK;
}

enum ar_status starting_wrap(struct ar_host *host, struct ar_policy *inner,
                             struct recorded_device *device, struct ar_policy **out,
                             struct ar_error *error)
{
    const struct recorded_start *start = &device->recording->start;
    struct fidelity_result *result = device->result;
    *out = inner;
    if (!start->area_count)
        return AR_OK;
    size_t block_bytes = (start->used_count + 1) * sizeof(struct ar_policy_block);
    struct ar_policy_block *blocks = ar_host_alloc(host, block_bytes);
    if (!blocks)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for the state at the start");
    result->start = inner->ops->adopt ? FIDELITY_ADOPTED : FIDELITY_REQUESTED;
    result->start_blocks = start->used_count;
    for (size_t i = 0; i < start->area_count; i++)
        result->start_segments += start->areas[i].bytes != 0;
    enum ar_status status = inner->ops->adopt ? adopt(inner, device, blocks, error)
                                              : request_all(inner, device, blocks, error);
    struct starting *self =
        status ? NULL : forward_create(host, sizeof *self, "starting", inner, error);
    if (!self) {
        ar_host_free(host, blocks, block_bytes);
        return status ? status : AR_HOST_MEMORY;
    }
    self->device = device;
    self->blocks = blocks;
    self->block_bytes = block_bytes;
    self->forward.ops.alloc = starting_alloc;
    self->forward.ops.destroy = starting_destroy;
    *out = &self->forward.base;
    return AR_OK;
}
