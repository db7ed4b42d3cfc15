/* Virtual memory: reserved ranges, physical memory, and mappings of one into the other.
 *
 * 1. Handles are numbers of this device's own, never used again.
 * 2. Misuse that the bookkeeping shows (sim/device_memory/misuse.c) is refused with a sentence
 *    before the driver is called. Pages must not be unmapped under pending work: that is up to the
 *    policy. The simulated device checks it, and the driver does not wait (unlike cuMemFree). */
#include <stdlib.h>

#include "bench/cuda/state.h"

CUmemAllocationProp cuda_memory_kind(const struct cuda_device *self)
{
    return (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = self->card},
    };
}

enum ar_status cuda_reserve(struct ar_backing *backing, uint64_t bytes, uint64_t *address)
{
    struct cuda_device *self = cuda_of_backing(backing);
    enum ar_status status = cuda_ready(self);
    if (status == AR_OK)
        status = memory_check_bytes(&self->memory, "a reservation", bytes);
    if (status != AR_OK)
        return status;
    struct memory_segment *segment = calloc(1, sizeof *segment);
    if (!segment)
        return AR_HOST_MEMORY;
    CUdeviceptr pointer;
    uint64_t begun_ns = cuda_clock_ns(self);
    CUresult result = self->api.mem_address_reserve(&pointer, bytes, 0, 0, 0);
    status = cuda_answer(self, result, "cuMemAddressReserve", bytes);
    if (status != AR_INVALID)
        cuda_count(self, AR_DEVICE_CALL_reserve, bytes, begun_ns, 0, status == AR_REFUSED);
    if (status != AR_OK) {
        free(segment);
        return status;
    }
    memory_segment_enter(&self->memory, segment, self->base.counters.segments_made++, pointer,
                         pointer + bytes, bytes, true);
    *address = pointer;
    return cuda_record_row(self, &self->record_ranges, bytes, pointer);
}

enum ar_status cuda_release(struct ar_backing *backing, uint64_t address)
{
    struct cuda_device *self = cuda_of_backing(backing);
    struct memory_segment *range;
    AR_TRY(cuda_ready(self));
    AR_TRY(memory_check_release(&self->memory, address, &range));
    uint64_t begun_ns = cuda_clock_ns(self);
    if (!cuda_worked(self, self->api.mem_address_free(address, range->bytes), "cuMemAddressFree"))
        return AR_INVALID;
    cuda_count(self, AR_DEVICE_CALL_release, range->bytes, begun_ns, 0, false);
    memory_segment_remove(&self->memory, range);
    return AR_OK;
}

enum ar_status cuda_create(struct ar_backing *backing, uint64_t bytes, ar_backing_handle *handle)
{
    struct cuda_device *self = cuda_of_backing(backing);
    enum ar_status status = cuda_ready(self);
    if (status == AR_OK)
        status = memory_check_bytes(&self->memory, "physical memory", bytes);
    if (status != AR_OK)
        return status;
    if (bytes > sim_ledger_free(&self->ledger))
        return cuda_refuse(self, AR_DEVICE_CALL_create);
    struct memory_physical *physical = calloc(1, sizeof *physical);
    if (!physical)
        return AR_HOST_MEMORY;
    const CUmemAllocationProp kind = cuda_memory_kind(self);
    CUmemGenericAllocationHandle driver_handle = 0;
    uint64_t begun_ns = cuda_clock_ns(self);
    CUresult result = self->api.mem_create(&driver_handle, bytes, &kind, 0);
    status = cuda_answer(self, result, "cuMemCreate", bytes);
    if (status != AR_INVALID)
        cuda_count(self, AR_DEVICE_CALL_create, bytes, begun_ns, 0, status == AR_REFUSED);
    if (status != AR_OK) {
        free(physical);
        return status;
    }
    physical->driver_handle = driver_handle;
    memory_physical_enter(&self->memory, physical, bytes);
    sim_ledger_charge(&self->ledger, bytes);
    cuda_show_memory(self);
    *handle = physical->handle.start;
    return AR_OK;
}

/* Memory that is destroyed and mapped nowhere is the card's again. */
static void physical_settle(struct cuda_device *self, struct memory_physical *physical)
{
    uint64_t bytes = physical->bytes;
    if (!memory_physical_settle(&self->memory, physical))
        return;
    sim_ledger_release(&self->ledger, bytes, 0);
    cuda_show_memory(self);
}

enum ar_status cuda_destroy(struct ar_backing *backing, ar_backing_handle handle)
{
    struct cuda_device *self = cuda_of_backing(backing);
    struct memory_physical *physical;
    AR_TRY(cuda_ready(self));
    AR_TRY(memory_check_destroy(&self->memory, handle, &physical));
    uint64_t begun_ns = cuda_clock_ns(self);
    if (!cuda_worked(self, self->api.mem_release(physical->driver_handle), "cuMemRelease"))
        return AR_INVALID;
    cuda_count(self, AR_DEVICE_CALL_destroy, physical->bytes, begun_ns, 0, false);
    physical->destroyed = true;
    physical_settle(self, physical);
    return AR_OK;
}

enum ar_status cuda_map(struct ar_backing *backing, uint64_t address, ar_backing_handle handle)
{
    struct cuda_device *self = cuda_of_backing(backing);
    struct memory_physical *physical;
    struct memory_segment *range;
    enum ar_status status = cuda_ready(self);
    if (status == AR_OK)
        status = memory_check_map(&self->memory, address, handle, &physical, &range);
    if (status != AR_OK)
        return status;
    struct memory_mapping *mapping = calloc(1, sizeof *mapping);
    if (!mapping)
        return AR_HOST_MEMORY;
    uint64_t bytes = physical->bytes, begun_ns = cuda_clock_ns(self);
    CUresult result = self->api.mem_map(address, bytes, 0, physical->driver_handle, 0);
    status = cuda_answer(self, result, "cuMemMap", bytes);
    if (status != AR_INVALID)
        cuda_count(self, AR_DEVICE_CALL_map, bytes, begun_ns, 0, status == AR_REFUSED);
    if (status != AR_OK) {
        free(mapping);
        return status;
    }
    mapping->usable = true; /* whether access was given the driver knows */
    memory_mapping_enter(&self->memory, mapping, physical, range, address);
    return AR_OK;
}

enum ar_status cuda_access(struct ar_backing *backing, uint64_t address, uint64_t bytes)
{
    struct cuda_device *self = cuda_of_backing(backing);
    enum ar_status status = cuda_ready(self);
    if (status == AR_OK)
        status = memory_check_run(&self->memory, "an access", address, bytes);
    if (status != AR_OK)
        return status;
    const CUmemAccessDesc access = {
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = self->card},
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
    uint64_t begun_ns = cuda_clock_ns(self);
    CUresult result = self->api.mem_set_access(address, bytes, &access, 1);
    status = cuda_answer(self, result, "cuMemSetAccess", bytes);
    if (status != AR_INVALID)
        cuda_count(self, AR_DEVICE_CALL_access, bytes, begun_ns, 0, status == AR_REFUSED);
    return status;
}

enum ar_status cuda_unmap(struct ar_backing *backing, uint64_t address, uint64_t bytes)
{
    struct cuda_device *self = cuda_of_backing(backing);
    AR_TRY(cuda_ready(self));
    AR_TRY(memory_check_run(&self->memory, "an unmap", address, bytes));
    uint64_t begun_ns = cuda_clock_ns(self);
    if (!cuda_worked(self, self->api.mem_unmap(address, bytes), "cuMemUnmap"))
        return AR_INVALID;
    cuda_count(self, AR_DEVICE_CALL_unmap, bytes, begun_ns, 0, false);
    for (uint64_t at = address; at < address + bytes;) {
        struct memory_mapping *mapping = memory_mapping_find(&self->memory, at);
        at = mapping->range.end;
        physical_settle(self, memory_mapping_remove(&self->memory, mapping));
    }
    return AR_OK;
}

void cuda_virtual_memory_close(struct cuda_device *self)
{
    while (self->memory.mappings.root) {
        struct range *mapping = self->memory.mappings.root;
        (void)self->api.mem_unmap(mapping->start, mapping->end - mapping->start);
        ranges_remove(&self->memory.mappings, mapping);
        free(mapping);
    }
    while (self->memory.physicals.root) {
        struct memory_physical *physical = (struct memory_physical *)self->memory.physicals.root;
        if (!physical->destroyed)
            (void)self->api.mem_release(physical->driver_handle);
        ranges_remove(&self->memory.physicals, &physical->handle);
        free(physical);
    }
}
