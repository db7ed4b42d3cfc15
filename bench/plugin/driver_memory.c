#include "bench/plugin/card.h"

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

static enum ar_status enter_before(struct relay *relay, enum relay_hook hook AR_UNUSED)
{
    driver_memory_enter((struct driver_memory *)relay);
    return AR_OK;
}

enum ar_status driver_memory_open(struct driver_memory *self, unsigned ordinal,
                                  struct ar_error *error)
{
    const struct cuda_options options = {.ordinal = ordinal, .embedded = true};
    *self = (struct driver_memory){.relay.before = enter_before};
    AR_TRY(cuda_device_open(&options, &self->device, error));
    self->inside = true; /* opening made the context current and noted the thread's own */
    self->before = cuda_of(self->device)->context_before;
    self->mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    exchange_mode(self);
    relay_open(&self->relay, self->device->backing);
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
    ar_backing_memory(self->relay.inner, &free_bytes, &total_bytes);
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
