/* Memory that the program holds beside the pool (o events): really taken, so that what is left
 * for the policy is what it would be. The newest piece is given up first; one that is larger
 * than what is to go is made anew in the smaller size. */
#include <stdlib.h>

#include "bench/cuda/state.h"

static uint64_t held_bytes(const struct cuda_device *self)
{
    uint64_t bytes = 0;
    for (const struct cuda_outside *piece = self->outside; piece; piece = piece->older)
        bytes += piece->bytes;
    return bytes;
}

static enum ar_status piece_make(struct cuda_device *self, uint64_t bytes)
{
    struct cuda_outside *piece = calloc(1, sizeof *piece);
    if (!piece)
        return AR_HOST_MEMORY;
    bool is_virtual = self->base.props.has_virtual_memory;
    const CUmemAllocationProp kind = cuda_memory_kind(self);
    CUresult result = is_virtual ? self->api.mem_create(&piece->driver_handle, bytes, &kind, 0)
                                 : self->api.mem_alloc(&piece->address, bytes);
    enum ar_status status =
        cuda_answer(self, result, is_virtual ? "cuMemCreate" : "cuMemAlloc", bytes);
    if (status != AR_OK) {
        free(piece);
        return status;
    }
    piece->bytes = bytes;
    piece->older = self->outside;
    self->outside = piece;
    return AR_OK;
}

static enum ar_status piece_end(struct cuda_device *self)
{
    struct cuda_outside *piece = self->outside;
    self->outside = piece->older;
    CUresult result = piece->address ? self->api.mem_free(piece->address)
                                     : self->api.mem_release(piece->driver_handle);
    bool worked = cuda_worked(self, result, piece->address ? "cuMemFree" : "cuMemRelease");
    free(piece);
    return worked ? AR_OK : AR_INVALID;
}

enum ar_status cuda_outside(struct ar_device *device, uint64_t bytes)
{
    struct cuda_device *self = cuda_of(device);
    enum ar_status status = cuda_ready(self);
    uint64_t before_bytes = self->ledger.outside_bytes;
    if (status != AR_OK)
        return status;
    if (!sim_ledger_outside(&self->ledger, bytes))
        return AR_REFUSED;
    uint64_t begun_ns = latency_clock_ns(), wanted_bytes = self->ledger.outside_bytes;
    while (status == AR_OK && held_bytes(self) > wanted_bytes)
        status = piece_end(self);
    uint64_t have_bytes = held_bytes(self);
    if (status == AR_OK && have_bytes < wanted_bytes)
        status = piece_make(self, wanted_bytes - have_bytes);
    if (status == AR_REFUSED)
        self->ledger.outside_bytes = before_bytes < have_bytes ? before_bytes : have_bytes;
    self->program_waited_ns += latency_clock_ns() - begun_ns;
    cuda_show_memory(self);
    return status;
}

void cuda_outside_close(struct cuda_device *self)
{
    while (self->outside)
        (void)piece_end(self);
}
