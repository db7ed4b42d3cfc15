#include "bench/plugin/driver_memory.h"

#include "allocators/base/size.h"
#include "bench/cuda/cuda_device.h"
#include "bench/cuda/state.h"

static const struct cuda_api *api_of(const struct driver_memory *self)
{
    return &cuda_of(self->device)->api;
}

static void exchange_mode(struct driver_memory *self)
{
    if (api_of(self)->thread_exchange_capture_mode)
        (void)api_of(self)->thread_exchange_capture_mode(&self->mode);
}

void driver_memory_enter(struct driver_memory *self)
{
    if (self->inside)
        return;
    const struct cuda_device *card = cuda_of(self->device);
    self->inside = true;
    self->before = NULL;
    (void)api_of(self)->ctx_get_current(&self->before);
    if (self->before != card->context)
        cuda_device_enter(self->device);
    self->mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    exchange_mode(self);
}

void driver_memory_leave(struct driver_memory *self)
{
    if (!self->inside)
        return;
    self->inside = false;
    exchange_mode(self);
    if (self->before != cuda_of(self->device)->context)
        (void)api_of(self)->ctx_set_current(self->before);
}

/* ---- the hooks ------------------------------------------------------------------------------ */

static struct ar_backing *reach(struct ar_backing *base)
{
    struct driver_memory *self = (struct driver_memory *)base;
    driver_memory_enter(self);
    return self->inner;
}

static enum ar_status segment_alloc(struct ar_backing *base, uint64_t bytes, uint64_t *address)
{
    return ar_backing_segment_alloc(reach(base), bytes, address);
}

static enum ar_status segment_free(struct ar_backing *base, uint64_t address)
{
    return ar_backing_segment_free(reach(base), address);
}

static enum ar_status reserve(struct ar_backing *base, uint64_t bytes, uint64_t *address)
{
    return ar_backing_reserve(reach(base), bytes, address);
}

static enum ar_status release(struct ar_backing *base, uint64_t address)
{
    return ar_backing_release(reach(base), address);
}

static enum ar_status create(struct ar_backing *base, uint64_t bytes, ar_backing_handle *handle)
{
    return ar_backing_create(reach(base), bytes, handle);
}

static enum ar_status destroy(struct ar_backing *base, ar_backing_handle handle)
{
    return ar_backing_destroy(reach(base), handle);
}

static enum ar_status map(struct ar_backing *base, uint64_t address, ar_backing_handle handle)
{
    return ar_backing_map(reach(base), address, handle);
}

static enum ar_status access_run(struct ar_backing *base, uint64_t address, uint64_t bytes)
{
    return ar_backing_access(reach(base), address, bytes);
}

static enum ar_status unmap(struct ar_backing *base, uint64_t address, uint64_t bytes)
{
    return ar_backing_unmap(reach(base), address, bytes);
}

static struct ar_backing_ticket fence(struct ar_backing *base, uint32_t stream)
{
    return ar_backing_fence(reach(base), stream);
}

static bool done(struct ar_backing *base, struct ar_backing_ticket ticket)
{
    return ar_backing_done(reach(base), ticket);
}

static void wait(struct ar_backing *base, struct ar_backing_ticket ticket)
{
    ar_backing_wait(reach(base), ticket);
}

static void order(struct ar_backing *base, uint32_t stream, struct ar_backing_ticket ticket)
{
    ar_backing_order(reach(base), stream, ticket);
}

static void memory(struct ar_backing *base, uint64_t *free_bytes, uint64_t *total_bytes)
{
    ar_backing_memory(reach(base), free_bytes, total_bytes);
}

static enum ar_status pool_open(struct ar_backing *base, const struct ar_backing_pool *settings)
{
    struct ar_backing *inner = reach(base);
    return inner->ops->pool_open(inner, settings);
}

static enum ar_status pool_alloc(struct ar_backing *base, uint64_t bytes, uint32_t stream,
                                 uint64_t *address)
{
    struct ar_backing *inner = reach(base);
    return inner->ops->pool_alloc(inner, bytes, stream, address);
}

static enum ar_status pool_free(struct ar_backing *base, uint64_t address, uint32_t stream)
{
    struct ar_backing *inner = reach(base);
    return inner->ops->pool_free(inner, address, stream);
}

static enum ar_status pool_trim(struct ar_backing *base, uint64_t keep_bytes)
{
    struct ar_backing *inner = reach(base);
    return inner->ops->pool_trim(inner, keep_bytes);
}

static void pool_memory(struct ar_backing *base, uint64_t *used_bytes, uint64_t *reserved_bytes)
{
    struct ar_backing *inner = reach(base);
    inner->ops->pool_memory(inner, used_bytes, reserved_bytes);
}

static const char *problem(struct ar_backing *base)
{
    return ar_backing_problem(((struct driver_memory *)base)->inner);
}

/* ---- opening -------------------------------------------------------------------------------- */

/* What the card has not, its backing has not either. */
static void describe(struct driver_memory *self)
{
    const struct ar_backing_ops *inner = self->inner->ops;
    self->ops = (struct ar_backing_ops){
        .segment_alloc = segment_alloc,
        .segment_free = segment_free,
        .fence = fence,
        .done = done,
        .wait = wait,
        .order = order,
        .memory = memory,
        .problem = problem,
    };
    if (inner->reserve) {
        self->ops.reserve = reserve;
        self->ops.release = release;
        self->ops.create = create;
        self->ops.destroy = destroy;
        self->ops.map = map;
        self->ops.access = access_run;
        self->ops.unmap = unmap;
    }
    if (inner->pool_alloc) {
        self->ops.pool_open = pool_open;
        self->ops.pool_alloc = pool_alloc;
        self->ops.pool_free = pool_free;
        self->ops.pool_trim = pool_trim;
        self->ops.pool_memory = pool_memory;
    }
    self->base = *self->inner;
    self->base.ops = &self->ops;
}

enum ar_status driver_memory_open(struct driver_memory *self, unsigned ordinal,
                                  struct ar_error *error)
{
    const struct cuda_options options = {.ordinal = ordinal, .embedded = true};
    *self = (struct driver_memory){0};
    enum ar_status status = cuda_device_open(&options, &self->device, error);
    if (status != AR_OK)
        return status;
    self->inner = self->device->backing;
    self->inside = true; /* the context is current since, and the thread's own is known */
    self->before = cuda_of(self->device)->context_before;
    self->mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    exchange_mode(self);
    describe(self);
    return AR_OK;
}

void driver_memory_close(struct driver_memory *self)
{
    if (!self->device)
        return;
    driver_memory_leave(self);
    ar_device_close(self->device);
    self->device = NULL;
}

uint64_t driver_memory_free_bytes(struct driver_memory *self)
{
    uint64_t free_bytes = 0, total_bytes = 0;
    if (self->device->failed)
        return 0;
    driver_memory_enter(self);
    ar_backing_memory(self->inner, &free_bytes, &total_bytes);
    return free_bytes;
}

void driver_memory_limit(struct driver_memory *self, uint64_t bytes)
{
    struct cuda_device *card = cuda_of(self->device);
    struct sim_ledger *ledger = &card->ledger;
    uint64_t page_bytes = ar_size_round_down(bytes, card->page_bytes);
    ledger->capacity_bytes =
        page_bytes > ledger->physical_bytes ? page_bytes : ledger->physical_bytes;
}

void driver_memory_reset_peak(struct driver_memory *self)
{
    struct cuda_device *card = cuda_of(self->device);
    card->ledger.peak_physical_bytes = card->ledger.physical_bytes;
    cuda_show_memory(card);
}

bool driver_memory_has_uses(const struct driver_memory *self)
{
    return cuda_of(self->device)->memory.hazards.ranges.root != NULL;
}

bool driver_memory_is_captured(struct driver_memory *self, CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (!api_of(self)->stream_is_capturing || self->device->failed)
        return false;
    driver_memory_enter(self);
    return api_of(self)->stream_is_capturing(stream, &status) == CUDA_SUCCESS &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}
