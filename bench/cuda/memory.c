/* The real card's memory for policies: driver allocations, the driver's pool, virtual memory, and
 * the order between streams. Driver allocations, cuMemAlloc and cuMemFree, are charged as the
 * simulated device charges them, so that both say the same of the same run.
 *
 * 1. From a page on, sizes are charged as whole pages; smaller ones share pages, and a page is
 *    charged once, while one of them lies in it.
 * 2. What the capacity forbids is refused without asking the driver. Whether a small one needs a
 *    page of its own shows only when the driver has said where it lies: then it is freed again.
 * 3. cuMemFree waits for all work on the card, whoever queued it. So the device is synchronised
 *    first, and that time is counted as a wait, apart from what the call itself takes. */

#include "allocators/base/size.h"
#include "bench/cuda/state.h"

/* ---- pages that small allocations share ----------------------------------------------------- */

static struct cuda_small_page *page_of(const struct cuda_device *self, uint64_t address)
{
    return (struct cuda_small_page *)ranges_find(&self->small_pages, address);
}

/* The segment moves into the pages it lies in; returns the bytes of those that it is the first
 * in, or UINT64_MAX: the host has no memory, nothing changed. */
static uint64_t pages_enter(struct cuda_device *self, uint64_t address, uint64_t bytes)
{
    uint64_t first = ar_size_round_down(address, self->page_bytes), new_bytes = 0;
    for (uint64_t at = first; at < address + bytes; at += self->page_bytes) {
        struct cuda_small_page *page = page_of(self, at);
        if (!page && !(page = calloc(1, sizeof *page)))
            return UINT64_MAX;
        if (!page->segments++) {
            page->range.start = at;
            page->range.end = at + self->page_bytes;
            ranges_insert(&self->small_pages, &page->range);
            new_bytes += self->page_bytes;
        }
    }
    return new_bytes;
}

/* Returns the bytes of the pages that nothing lies in any more. */
static uint64_t pages_leave(struct cuda_device *self, uint64_t address, uint64_t bytes)
{
    uint64_t first = ar_size_round_down(address, self->page_bytes), left_bytes = 0;
    for (uint64_t at = first; at < address + bytes; at += self->page_bytes) {
        struct cuda_small_page *page = page_of(self, at);
        if (page && !--page->segments) {
            ranges_remove(&self->small_pages, &page->range);
            free(page);
            left_bytes += self->page_bytes;
        }
    }
    return left_bytes;
}

/* ---- allocation ----------------------------------------------------------------------------- */

/* Enters the driver's allocation into the bookkeeping, or frees it. */
static enum ar_status take(struct cuda_device *self, struct memory_segment *segment,
                           uint64_t address, uint64_t bytes, uint64_t begun_ns, uint64_t ended_ns)
{
    uint64_t charge_bytes = sim_ledger_units(&self->ledger, bytes);
    uint64_t end = address + charge_bytes;
    if (bytes < self->page_bytes) {
        charge_bytes = pages_enter(self, address, bytes);
        end = address + bytes;
    }
    if (charge_bytes == UINT64_MAX || charge_bytes > sim_ledger_free(&self->ledger)) {
        bool host = charge_bytes == UINT64_MAX;
        if (!host)
            (void)pages_leave(self, address, bytes);
        free(segment);
        (void)cuda_worked(self, self->api.mem_free(address), "cuMemFree");
        return host ? AR_HOST_MEMORY : cuda_refuse(self, AR_DEVICE_CALL_alloc, bytes);
    }
    memory_segment_enter(&self->memory, segment, self->base.counters.segments_made++, address, end,
                         bytes, false);
    sim_ledger_charge(&self->ledger, charge_bytes);
    ar_device_count(&self->base, AR_DEVICE_CALL_alloc, bytes, ended_ns - begun_ns, 0, false);
    cuda_show_memory(self);
    return cuda_record_row(self, &self->record_segments, bytes, address);
}

static enum ar_status segment_alloc(struct ar_backing *backing, uint64_t bytes, uint64_t *address)
{
    struct cuda_device *self = cuda_of_backing(backing);
    if (bytes == 0)
        return cuda_misuse(self, "a driver allocation of no bytes");
    AR_TRY(cuda_ready(self));
    if (bytes >= self->page_bytes &&
        sim_ledger_units(&self->ledger, bytes) > sim_ledger_free(&self->ledger))
        return cuda_refuse(self, AR_DEVICE_CALL_alloc, bytes);
    struct memory_segment *segment = malloc(sizeof *segment);
    AR_TRY_HOST(segment);
    *segment = (struct memory_segment){0}; /* faster than calloc, inside the timed part */
    CUdeviceptr pointer;
    uint64_t begun_ns = cuda_clock_ns(self);
    CUresult result = self->api.mem_alloc(&pointer, bytes);
    uint64_t ended_ns = cuda_clock_ns(self);
    enum ar_status status = cuda_answer(self, result, "cuMemAlloc", bytes);
    if (status != AR_OK) {
        free(segment);
        if (status == AR_REFUSED)
            ar_device_count(&self->base, AR_DEVICE_CALL_alloc, bytes, ended_ns - begun_ns, 0, true);
        return status;
    }
    status = take(self, segment, pointer, bytes, begun_ns, ended_ns);
    if (status == AR_OK)
        *address = pointer;
    return status;
}

/* ---- freeing -------------------------------------------------------------------------------- */

static enum ar_status segment_free(struct ar_backing *backing, uint64_t address)
{
    struct cuda_device *self = cuda_of_backing(backing);
    struct memory_segment *segment;
    AR_TRY(cuda_ready(self));
    AR_TRY(memory_check_free(&self->memory, address, &segment));
    uint64_t waited_ns = cuda_stream_sync(self, CUDA_ALL_STREAMS);
    AR_TRY(cuda_ready(self));
    uint64_t bytes = segment->bytes, begun_ns = cuda_clock_ns(self);
    CUresult result = self->api.mem_free(address);
    uint64_t ended_ns = cuda_clock_ns(self);
    if (!cuda_worked(self, result, "cuMemFree"))
        return AR_INVALID;
    uint64_t back_bytes = bytes < self->page_bytes ? pages_leave(self, address, bytes)
                                                   : segment->range.end - segment->range.start;
    memory_segment_remove(&self->memory, segment);
    ar_device_count(&self->base, AR_DEVICE_CALL_free, bytes, ended_ns - begun_ns, waited_ns, false);
    sim_ledger_release(&self->ledger, back_bytes, 0);
    cuda_pool_charge(self);
    cuda_show_memory(self);
    return AR_OK;
}

void cuda_segments_close(struct cuda_device *self)
{
    while (self->memory.segments.root) {
        struct memory_segment *segment = (struct memory_segment *)self->memory.segments.root;
        if (segment->reserved)
            (void)self->api.mem_address_free(segment->range.start, segment->bytes);
        else
            (void)self->api.mem_free(segment->range.start);
        memory_segment_remove(&self->memory, segment);
    }
    while (self->small_pages.root) {
        struct range *page = self->small_pages.root;
        ranges_remove(&self->small_pages, page);
        free(page);
    }
    cuda_record_close(&self->record_segments);
    cuda_record_close(&self->record_ranges);
}

/* The driver's stream-ordered pool: a CUmemPool of this device's own.
 *
 * 1. Its settings are the driver's attributes; if a capacity is given, the pool may reserve only
 *    what it leaves.
 * 2. After each call that can change it, the reserved bytes are queried and charged as physical
 *    memory, outside of the call's time. Policies get the last answer. The bytes in use are counted
 *    here.
 * 3. The driver places the blocks: for placements the pool is one segment from address 0. */

/* The first driver with a maximum size of a pool; older ones need 0. */
#define POOL_MAXIMUM_LEAST 12020

static uint64_t pool_reserved_bytes(struct cuda_device *self)
{
    cuuint64_t value = 0;
    CUresult result = self->api.mem_pool_get_attribute(
        self->pool.handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value);
    return cuda_worked(self, result, "cuMemPoolGetAttribute") ? value : 0;
}

void cuda_pool_charge(struct cuda_device *self)
{
    if (!self->pool.handle || self->base.failed)
        return;
    self->pool.reserved_bytes = pool_reserved_bytes(self);
    self->pool.changed = false;
    uint64_t reserved_bytes = sim_ledger_units(&self->ledger, self->pool.reserved_bytes);
    uint64_t charged_bytes = self->pool.charged_bytes;
    /* The driver may give the pool more than the ledger has left, so this is cut to 0. */
    uint64_t most_bytes = charged_bytes + sim_ledger_free(&self->ledger);
    AR_LOWER(reserved_bytes, most_bytes);
    if (reserved_bytes > charged_bytes)
        sim_ledger_charge(&self->ledger, reserved_bytes - charged_bytes);
    else
        sim_ledger_release(&self->ledger, charged_bytes - reserved_bytes, 0);
    self->pool.charged_bytes = reserved_bytes;
    cuda_show_memory(self);
}

static bool pool_set(struct cuda_device *self, CUmemPool_attribute attribute, void *value)
{
    CUresult result = self->api.mem_pool_set_attribute(self->pool.handle, attribute, value);
    return cuda_worked(self, result, "cuMemPoolSetAttribute");
}

static bool pool_settings(struct cuda_device *self, const struct ar_backing_pool *settings)
{
    cuuint64_t threshold = settings->release_threshold_bytes;
    int follow = settings->follow_events, opportunistic = settings->opportunistic;
    int internal = settings->internal;
    return pool_set(self, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold) &&
           pool_set(self, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, &follow) &&
           pool_set(self, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &opportunistic) &&
           pool_set(self, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &internal);
}

static enum ar_status pool_make(struct cuda_device *self, uint64_t most_bytes)
{
    uint64_t left_bytes = sim_ledger_free(&self->ledger);
    CUmemPoolProps properties = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = self->card},
    };
    self->pool.most_bytes = most_bytes;
    if (self->capacity_given && (!most_bytes || most_bytes > left_bytes))
        most_bytes = left_bytes;
    if (self->api.driver_version >= POOL_MAXIMUM_LEAST)
        properties.maxSize = most_bytes;
    CUresult result = self->api.mem_pool_create(&self->pool.handle, &properties);
    if (result != CUDA_SUCCESS)
        self->pool.handle = NULL;
    if (!cuda_worked(self, result, "cuMemPoolCreate"))
        return AR_INVALID;
    self->pool.ordinal = self->base.counters.segments_made++;
    return AR_OK;
}

/* Ends an empty pool, which is to have another maximum: that of a CUmemPool never changes. */
static enum ar_status pool_end(struct cuda_device *self)
{
    cuda_pool_charge(self);
    AR_TRY(cuda_ready(self));
    if (self->pool.reserved_bytes)
        return cuda_misuse(self,
                           "a pool opened with another maximum while %" PRIu64
                           " bytes are reserved in it; free its blocks and trim it first",
                           self->pool.reserved_bytes);
    if (!cuda_worked(self, self->api.mem_pool_destroy(self->pool.handle), "cuMemPoolDestroy"))
        return AR_INVALID;
    self->pool.handle = NULL;
    return AR_OK;
}

static enum ar_status pool_open(struct ar_backing *backing, const struct ar_backing_pool *settings)
{
    struct cuda_device *self = cuda_of_backing(backing);
    AR_TRY(cuda_ready(self));
    if (self->pool.handle && self->pool.most_bytes != settings->most_bytes)
        AR_TRY(pool_end(self));
    if (!self->pool.handle)
        AR_TRY(pool_make(self, settings->most_bytes));
    return pool_settings(self, settings) ? AR_OK : AR_INVALID;
}

static enum ar_status pool_alloc(struct ar_backing *backing, uint64_t bytes, uint32_t ordinal,
                                 uint64_t *address)
{
    static const struct ar_backing_pool as_the_driver = {
        .follow_events = true, .opportunistic = true, .internal = true};
    struct cuda_device *self = cuda_of_backing(backing);
    enum ar_status status = cuda_ready(self);
    if (bytes == 0)
        return cuda_misuse(self, "a stream-ordered allocation of no bytes");
    if (status == AR_OK && !self->pool.handle)
        status = pool_open(backing, &as_the_driver);
    struct cuda_stream *stream = status == AR_OK ? cuda_stream(self, ordinal) : NULL;
    if (!stream)
        return status == AR_OK ? cuda_ready(self) : status;
    /* Inside a program no maximum is set when the pool is made: the limit may change later. */
    uint64_t room = self->pool.reserved_bytes - self->pool.used_bytes;
    if (self->streams.embedded && bytes > room + sim_ledger_free(&self->ledger))
        return cuda_refuse(self, AR_DEVICE_CALL_pool_alloc, bytes);
    struct range *block = malloc(sizeof *block);
    AR_TRY_HOST(block);
    CUdeviceptr pointer;
    uint64_t begun_ns = cuda_clock_ns(self);
    CUresult result =
        self->api.mem_alloc_from_pool_async(&pointer, bytes, self->pool.handle, stream->handle);
    status = cuda_answer(self, result, "cuMemAllocFromPoolAsync", bytes);
    if (status != AR_INVALID)
        cuda_count(self, AR_DEVICE_CALL_pool_alloc, bytes, begun_ns, 0, status == AR_REFUSED);
    if (status != AR_OK) {
        self->pool.changed = true; /* it may have released memory that it could not use */
        free(block);
        return status;
    }
    stream->sequence++;
    *block = (struct range){.start = pointer, .end = pointer + bytes};
    ranges_insert(&self->pool.blocks, block);
    self->pool.used_bytes += bytes;
    cuda_pool_charge(self);
    *address = pointer;
    return AR_OK;
}

static enum ar_status pool_free(struct ar_backing *backing, uint64_t address, uint32_t ordinal)
{
    struct cuda_device *self = cuda_of_backing(backing);
    struct range *block = ranges_find(&self->pool.blocks, address);
    if (!block || block->start != address)
        return cuda_misuse(self,
                           "a stream-ordered free of %" PRIu64 ", where no block of the pool "
                           "starts: it was freed before, or never allocated",
                           address);
    enum ar_status status = cuda_ready(self);
    struct cuda_stream *stream = status == AR_OK ? cuda_stream(self, ordinal) : NULL;
    if (!stream)
        return status == AR_OK ? cuda_ready(self) : status;
    uint64_t begun_ns = cuda_clock_ns(self);
    if (!cuda_worked(self, self->api.mem_free_async(address, stream->handle), "cuMemFreeAsync"))
        return AR_INVALID;
    cuda_count(self, AR_DEVICE_CALL_pool_free, block->end - block->start, begun_ns, 0, false);
    self->pool.used_bytes -= block->end - block->start;
    stream->sequence++;
    ranges_remove(&self->pool.blocks, block);
    free(block);
    return AR_OK;
}

static enum ar_status pool_trim(struct ar_backing *backing, uint64_t keep_bytes)
{
    struct cuda_device *self = cuda_of_backing(backing);
    enum ar_status status = cuda_ready(self);
    if (status != AR_OK || !self->pool.handle) {
        if (status == AR_OK)
            ar_device_count(&self->base, AR_DEVICE_CALL_pool_trim, 0, 0, 0, false);
        return status;
    }
    uint64_t begun_ns = cuda_clock_ns(self);
    CUresult result = self->api.mem_pool_trim_to(self->pool.handle, keep_bytes);
    if (!cuda_worked(self, result, "cuMemPoolTrimTo"))
        return AR_INVALID;
    cuda_count(self, AR_DEVICE_CALL_pool_trim, 0, begun_ns, 0, false);
    cuda_pool_charge(self);
    return AR_OK;
}

static void pool_memory(struct ar_backing *backing, uint64_t *used_bytes, uint64_t *reserved_bytes)
{
    struct cuda_device *self = cuda_of_backing(backing);
    if (self->pool.changed)
        cuda_pool_charge(self);
    *used_bytes = self->base.failed ? 0 : self->pool.used_bytes;
    *reserved_bytes = self->base.failed ? 0 : self->pool.reserved_bytes;
}

bool cuda_pool_has(const struct cuda_device *self, uint64_t address)
{
    return ranges_find(&self->pool.blocks, address);
}

void cuda_pool_close(struct cuda_device *self)
{
    while (self->pool.blocks.root) {
        struct range *block = self->pool.blocks.root;
        /* On the null stream, because all work is done. */
        (void)self->api.mem_free_async(block->start, NULL);
        ranges_remove(&self->pool.blocks, block);
        free(block);
    }
    if (self->pool.handle)
        (void)self->api.mem_pool_destroy(self->pool.handle);
    self->pool.handle = NULL;
}

/* Virtual memory: reserved ranges, physical memory, and mappings of one into the other.
 *
 * 1. Handles are numbers of this device's own, never used again.
 * 2. Misuse that the bookkeeping shows (sim/device_memory/device_memory.h) is refused with a
 *    sentence before the driver is called. Pages must not be unmapped under pending work: that is
 *    up to the policy. The simulated device checks it, and the driver does not wait (unlike
 *    cuMemFree). */

CUmemAllocationProp cuda_memory_kind(const struct cuda_device *self)
{
    return (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = self->card},
    };
}

static enum ar_status reserve(struct ar_backing *backing, uint64_t bytes, uint64_t *address)
{
    struct cuda_device *self = cuda_of_backing(backing);
    AR_TRY(cuda_ready(self));
    AR_TRY(memory_check_bytes(&self->memory, "a reservation", bytes));
    struct memory_segment *segment = calloc(1, sizeof *segment);
    AR_TRY_HOST(segment);
    CUdeviceptr pointer;
    uint64_t begun_ns = cuda_clock_ns(self);
    CUresult result = self->api.mem_address_reserve(&pointer, bytes, 0, 0, 0);
    enum ar_status status = cuda_answer(self, result, "cuMemAddressReserve", bytes);
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

static enum ar_status release(struct ar_backing *backing, uint64_t address)
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

static enum ar_status create(struct ar_backing *backing, uint64_t bytes, ar_backing_handle *handle)
{
    struct cuda_device *self = cuda_of_backing(backing);
    AR_TRY(cuda_ready(self));
    AR_TRY(memory_check_bytes(&self->memory, "physical memory", bytes));
    if (bytes > sim_ledger_free(&self->ledger))
        return cuda_refuse(self, AR_DEVICE_CALL_create, bytes);
    struct memory_physical *physical = calloc(1, sizeof *physical);
    AR_TRY_HOST(physical);
    const CUmemAllocationProp kind = cuda_memory_kind(self);
    CUmemGenericAllocationHandle driver_handle = 0;
    uint64_t begun_ns = cuda_clock_ns(self);
    CUresult result = self->api.mem_create(&driver_handle, bytes, &kind, 0);
    enum ar_status status = cuda_answer(self, result, "cuMemCreate", bytes);
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

static enum ar_status destroy(struct ar_backing *backing, ar_backing_handle handle)
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

static enum ar_status map(struct ar_backing *backing, uint64_t address, ar_backing_handle handle)
{
    struct cuda_device *self = cuda_of_backing(backing);
    struct memory_physical *physical;
    struct memory_segment *range;
    AR_TRY(cuda_ready(self));
    AR_TRY(memory_check_map(&self->memory, address, handle, &physical, &range));
    struct memory_mapping *mapping = calloc(1, sizeof *mapping);
    AR_TRY_HOST(mapping);
    uint64_t bytes = physical->bytes, begun_ns = cuda_clock_ns(self);
    CUresult result = self->api.mem_map(address, bytes, 0, physical->driver_handle, 0);
    enum ar_status status = cuda_answer(self, result, "cuMemMap", bytes);
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

static enum ar_status access(struct ar_backing *backing, uint64_t address, uint64_t bytes)
{
    struct cuda_device *self = cuda_of_backing(backing);
    AR_TRY(cuda_ready(self));
    AR_TRY(memory_check_run(&self->memory, "an access", address, bytes));
    const CUmemAccessDesc access = {
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = self->card},
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
    uint64_t begun_ns = cuda_clock_ns(self);
    CUresult result = self->api.mem_set_access(address, bytes, &access, 1);
    enum ar_status status = cuda_answer(self, result, "cuMemSetAccess", bytes);
    if (status != AR_INVALID)
        cuda_count(self, AR_DEVICE_CALL_access, bytes, begun_ns, 0, status == AR_REFUSED);
    return status;
}

static enum ar_status unmap(struct ar_backing *backing, uint64_t address, uint64_t bytes)
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

/* Waits for all work, also on streams that the device does not know, such as those of the program
 * around it. */
static enum ar_status copy_begins(struct cuda_device *self, uint64_t address, uint64_t bytes,
                                  uint64_t *begun_ns)
{
    AR_TRY(cuda_ready(self));
    AR_TRY(memory_check_usable(&self->memory, "a copy", address, bytes));
    *begun_ns = cuda_clock_ns(self);
    return cuda_worked(self, self->api.ctx_synchronize(), "cuCtxSynchronize") ? AR_OK : AR_INVALID;
}

static enum ar_status copy_ends(struct cuda_device *self, CUresult result, const char *call,
                                uint64_t begun_ns)
{
    if (!cuda_worked(self, result, call) ||
        !cuda_worked(self, self->api.ctx_synchronize(), "cuCtxSynchronize"))
        return AR_INVALID;
    cuda_count(self, AR_DEVICE_CALL_event, 0, begun_ns, cuda_clock_ns(self) - begun_ns, false);
    return AR_OK;
}

static enum ar_status copy(struct ar_backing *backing, uint64_t to, uint64_t from, uint64_t bytes)
{
    struct cuda_device *self = cuda_of_backing(backing);
    uint64_t begun_ns;
    AR_TRY(memory_check_usable(&self->memory, "a copy", to, bytes));
    AR_TRY(copy_begins(self, from, bytes, &begun_ns));
    return copy_ends(self, self->api.memcpy_dtod_async(to, from, bytes, NULL), "cuMemcpyDtoDAsync",
                     begun_ns);
}

static enum ar_status copy_out(struct ar_backing *backing, void *to, uint64_t from, uint64_t bytes)
{
    struct cuda_device *self = cuda_of_backing(backing);
    uint64_t begun_ns;
    AR_TRY(copy_begins(self, from, bytes, &begun_ns));
    return copy_ends(self, self->api.memcpy_dtoh_async(to, from, bytes, NULL), "cuMemcpyDtoHAsync",
                     begun_ns);
}

static enum ar_status copy_in(struct ar_backing *backing, uint64_t to, const void *from,
                              uint64_t bytes)
{
    struct cuda_device *self = cuda_of_backing(backing);
    uint64_t begun_ns;
    AR_TRY(copy_begins(self, to, bytes, &begun_ns));
    return copy_ends(self, self->api.memcpy_htod_async(to, from, bytes, NULL), "cuMemcpyHtoDAsync",
                     begun_ns);
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

/* ---- order, for policies -------------------------------------------------------------------- */

static struct ar_backing_ticket hook_fence(struct ar_backing *backing, uint32_t stream)
{
    struct cuda_device *self = cuda_of_backing(backing);
    uint64_t begun_ns = cuda_clock_ns(self);
    uint64_t sequence = cuda_stream_fence(self, stream);
    cuda_count(self, AR_DEVICE_CALL_event, 0, begun_ns, 0, false);
    return (struct ar_backing_ticket){.stream = stream, .value = sequence};
}

/* Polls are frequent: one with a known answer reads no clock. */
static bool hook_done(struct ar_backing *backing, struct ar_backing_ticket ticket)
{
    struct cuda_device *self = cuda_of_backing(backing);
    if (ticket.stream >= self->streams.count ||
        ticket.value <= self->streams.streams[ticket.stream].known) {
        ar_device_count(&self->base, AR_DEVICE_CALL_event, 0, 0, 0, false);
        return true;
    }
    uint64_t begun_ns = cuda_clock_ns(self);
    bool done = cuda_stream_done(self, ticket.stream, ticket.value);
    cuda_count(self, AR_DEVICE_CALL_event, 0, begun_ns, 0, false);
    return done;
}

static void hook_wait(struct ar_backing *backing, struct ar_backing_ticket ticket)
{
    struct cuda_device *self = cuda_of_backing(backing);
    uint64_t begun_ns = cuda_clock_ns(self);
    cuda_stream_await(self, ticket.stream, ticket.value);
    uint64_t waited_ns = cuda_clock_ns(self) - begun_ns;
    ar_device_count(&self->base, AR_DEVICE_CALL_event, 0, 0, waited_ns, false);
    cuda_pool_charge(self);
}

static void hook_order(struct ar_backing *backing, uint32_t stream, struct ar_backing_ticket ticket)
{
    struct cuda_device *self = cuda_of_backing(backing);
    uint64_t begun_ns = cuda_clock_ns(self);
    cuda_stream_order(self, ticket.stream, ticket.value, stream);
    cuda_count(self, AR_DEVICE_CALL_event, 0, begun_ns, 0, false);
}

/* All bytes that are not this process's, except the context, are other processes'. */
static void look_at_others(struct cuda_device *self, uint64_t used_bytes)
{
    uint64_t context_bytes = self->held_at_open_bytes - self->others_at_open_bytes;
    uint64_t own_bytes = context_bytes + self->ledger.physical_bytes + self->ledger.outside_bytes;
    self->card_others_bytes = used_bytes > own_bytes ? used_bytes - own_bytes : 0;
    cuda_show_memory(self);
}

/* Without a given capacity, the card's free bytes if these are fewer. */
static void hook_memory(struct ar_backing *backing, uint64_t *free_bytes, uint64_t *total_bytes)
{
    struct cuda_device *self = cuda_of_backing(backing);
    size_t card_free_bytes = 0, card_total_bytes = 0;
    *free_bytes = sim_ledger_free(&self->ledger);
    *total_bytes = self->base.props.total_bytes;
    if (self->capacity_given || self->base.failed)
        return;
    CUresult result = self->api.mem_get_info(&card_free_bytes, &card_total_bytes);
    if (!cuda_worked(self, result, "cuMemGetInfo"))
        return;
    AR_LOWER(*free_bytes, card_free_bytes);
    if (self->shared && self->others_known)
        look_at_others(self, card_total_bytes - card_free_bytes);
}

static const char *hook_backing_problem(struct ar_backing *backing)
{
    return cuda_of_backing(backing)->problem;
}

const struct ar_backing_ops cuda_backing_ops = {
    .segment_alloc = segment_alloc,
    .segment_free = segment_free,
    .reserve = reserve,
    .release = release,
    .create = create,
    .destroy = destroy,
    .map = map,
    .access = access,
    .unmap = unmap,
    .copy = copy,
    .copy_out = copy_out,
    .copy_in = copy_in,
    .fence = hook_fence,
    .done = hook_done,
    .wait = hook_wait,
    .order = hook_order,
    .memory = hook_memory,
    .pool_alloc = pool_alloc,
    .pool_free = pool_free,
    .pool_trim = pool_trim,
    .pool_memory = pool_memory,
    .problem = hook_backing_problem,
    .pool_open = pool_open,
};
