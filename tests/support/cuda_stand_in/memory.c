/* Memory of the stand-in: allocations, virtual memory, pools. Records only. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/cuda_stand_in/stand_in.h"

#define PLAIN_START   (UINT64_C(0x7f) << 40)
#define VIRTUAL_START (UINT64_C(0x7e) << 40)
#define POOL_START    (UINT64_C(0x7d) << 40)
#define GRANULE_BYTES UINT64_C(512)
#define POOL_UNIT     (UINT64_C(32) << 20)

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

uint64_t stand_in_free_bytes(int card)
{
    const struct stand_in *self = stand_in();
    uint64_t used_bytes = self->used_bytes;
    if (self->shared)
        used_bytes = self->others_bytes + __atomic_load_n(&self->shared[card], __ATOMIC_SEQ_CST);
    return self->card_bytes - used_bytes;
}

bool stand_in_take_of(int card, uint64_t bytes)
{
    struct stand_in *self = stand_in();
    if (!self->shared) {
        if (bytes > stand_in_free_bytes(card))
            return false;
    } else {
        uint64_t most_bytes = self->card_bytes - self->others_bytes;
        uint64_t held_bytes = __atomic_load_n(&self->shared[card], __ATOMIC_SEQ_CST);
        do
            if (bytes > most_bytes - held_bytes)
                return false;
        while (!__atomic_compare_exchange_n(&self->shared[card], &held_bytes, held_bytes + bytes,
                                            false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    }
    self->own_bytes[card] += bytes;
    self->used_bytes += bytes;
    return true;
}

void stand_in_give_of(int card, uint64_t bytes)
{
    struct stand_in *self = stand_in();
    self->own_bytes[card] -= bytes;
    self->used_bytes -= bytes;
    if (self->shared)
        (void)__atomic_fetch_sub(&self->shared[card], bytes, __ATOMIC_SEQ_CST);
}

bool stand_in_take(uint64_t bytes)
{
    return stand_in_take_of(stand_in_card(), bytes);
}

void stand_in_give(uint64_t bytes)
{
    stand_in_give_of(stand_in_card(), bytes);
}

/* ---- lists of ranges ------------------------------------------------------------------------ */

/* The place in the list before which a range at that address comes. */
static struct stand_in_range **place(struct stand_in_range **list, uint64_t address)
{
    while (*list && (*list)->start < address)
        list = &(*list)->next;
    return list;
}

static struct stand_in_range *find(struct stand_in_range *list, uint64_t address)
{
    for (; list && list->start <= address; list = list->next)
        if (address < list->start + list->bytes)
            return list;
    return NULL;
}

/* Enters a range; its address is that, or with 0 the lowest free one from `from` on. */
static struct stand_in_range *enter(struct stand_in_range **list, uint64_t address, uint64_t bytes,
                                    uint64_t from, uint64_t alignment)
{
    struct stand_in_range *range = calloc(1, sizeof *range);
    if (!range)
        abort();
    uint64_t at = from;
    for (const struct stand_in_range *other = *list; !address && other; other = other->next) {
        if (at + bytes <= other->start)
            break;
        uint64_t end = round_up(other->start + other->bytes, alignment);
        at = end > at ? end : at;
    }
    range->start = address ? address : at;
    range->bytes = bytes;
    struct stand_in_range **where = place(list, range->start);
    range->next = *where;
    *where = range;
    return range;
}

static void leave(struct stand_in_range **list, struct stand_in_range *range)
{
    struct stand_in_range **where = place(list, range->start);
    *where = range->next;
    free(range);
}

static bool overlaps(const struct stand_in_range *list, uint64_t start, uint64_t bytes)
{
    for (; list && list->start < start + bytes; list = list->next)
        if (list->start + list->bytes > start)
            return true;
    return false;
}

/* ---- allocations ---------------------------------------------------------------------------- */

/* Whether another allocation lies in the page. */
static bool page_is_held(uint64_t page)
{
    return overlaps(stand_in()->allocations, page, STAND_IN_PAGE_BYTES);
}

/* Where a small allocation goes: the start of a page that is held, or behind another one there;
 * 0: there is no room. */
static uint64_t shared_place(uint64_t bytes)
{
    const struct stand_in_range *first = NULL, *before = NULL, *last = NULL;
    uint64_t page = 0; /* the first range in it is `first`, and `before` comes before that */
    for (const struct stand_in_range *range = stand_in()->allocations; range; range = range->next) {
        if (!first || range->start - page >= STAND_IN_PAGE_BYTES) {
            page = range->start / STAND_IN_PAGE_BYTES * STAND_IN_PAGE_BYTES;
            first = range;
            before = last;
        }
        last = range;
        if (range->bytes >= STAND_IN_PAGE_BYTES)
            continue;
        if (first->start >= page + bytes && (!before || before->start + before->bytes <= page))
            return page;
        uint64_t end = round_up(range->start + range->bytes, GRANULE_BYTES);
        if (end + bytes <= page + STAND_IN_PAGE_BYTES &&
            (!range->next || range->next->start >= end + bytes))
            return end;
    }
    return 0;
}

CUresult CUDAAPI cuMemAlloc(CUdeviceptr *address, size_t bytes)
{
    struct stand_in *self = stand_in();
    STAND_IN_CALL(mem_alloc);
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t at = bytes < STAND_IN_PAGE_BYTES ? shared_place(bytes) : 0;
    uint64_t paged_bytes = round_up(bytes, STAND_IN_PAGE_BYTES);
    if (!at && !stand_in_take(paged_bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct stand_in_range *range =
        enter(&self->allocations, at, paged_bytes, PLAIN_START, STAND_IN_PAGE_BYTES);
    if (bytes < STAND_IN_PAGE_BYTES)
        range->bytes = bytes;
    self->held[STAND_IN_HELD_allocation]++;
    *address = range->start;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemFree(CUdeviceptr address)
{
    struct stand_in *self = stand_in();
    STAND_IN_CALL(mem_free);
    struct stand_in_range *range = find(self->allocations, address);
    if (!range || range->start != address)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t bytes = range->bytes;
    leave(&self->allocations, range);
    self->held[STAND_IN_HELD_allocation]--;
    if (self->leaks)
        return CUDA_SUCCESS;
    if (bytes >= STAND_IN_PAGE_BYTES)
        stand_in_give(bytes);
    else if (!page_is_held(address / STAND_IN_PAGE_BYTES * STAND_IN_PAGE_BYTES))
        stand_in_give(STAND_IN_PAGE_BYTES);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    const struct stand_in *self = stand_in();
    STAND_IN_CALL(mem_get_info);
    *free_bytes = stand_in_free_bytes(stand_in_card());
    *total_bytes = self->card_bytes;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags)
{
    (void)flags;
    STAND_IN_CALL(mem_host_alloc);
    *pointer = stand_in_keep(bytes);
    stand_in()->held[STAND_IN_HELD_host_memory]++;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemFreeHost(void *pointer)
{
    STAND_IN_CALL(mem_free_host);
    stand_in_drop(pointer);
    stand_in()->held[STAND_IN_HELD_host_memory]--;
    return CUDA_SUCCESS;
}

/* ---- virtual memory ------------------------------------------------------------------------- */

static bool whole_pages(uint64_t bytes)
{
    return bytes && bytes % STAND_IN_PAGE_BYTES == 0;
}

CUresult CUDAAPI cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *kind,
                                               CUmemAllocationGranularity_flags flags)
{
    (void)kind;
    (void)flags;
    STAND_IN_CALL(mem_get_allocation_granularity);
    *bytes = STAND_IN_PAGE_BYTES;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment,
                                     CUdeviceptr wanted, unsigned long long flags)
{
    struct stand_in *self = stand_in();
    STAND_IN_CALL(mem_address_reserve);
    if (!whole_pages(bytes) || alignment || wanted || flags)
        return CUDA_ERROR_INVALID_VALUE;
    *address = enter(&self->reservations, 0, bytes, VIRTUAL_START, STAND_IN_PAGE_BYTES)->start;
    self->held[STAND_IN_HELD_reservation]++;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
    struct stand_in *self = stand_in();
    STAND_IN_CALL(mem_address_free);
    struct stand_in_range *range = find(self->reservations, address);
    if (!range || range->start != address || range->bytes != bytes ||
        overlaps(self->mappings, address, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    leave(&self->reservations, range);
    self->held[STAND_IN_HELD_reservation]--;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                             const CUmemAllocationProp *kind, unsigned long long flags)
{
    STAND_IN_CALL(mem_create);
    if (!whole_pages(bytes) || flags || kind->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
        kind->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    if (!stand_in_take(bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct stand_in_physical *physical = stand_in_keep(sizeof *physical);
    physical->bytes = bytes;
    stand_in()->held[STAND_IN_HELD_physical]++;
    *handle = (CUmemGenericAllocationHandle)(uintptr_t)physical;
    return CUDA_SUCCESS;
}

static struct stand_in_physical *physical_of(CUmemGenericAllocationHandle handle)
{
    return (struct stand_in_physical *)(uintptr_t)handle;
}

static void settle(struct stand_in_physical *physical)
{
    if (!physical->released || physical->mappings)
        return;
    stand_in_give(physical->bytes);
    stand_in_drop(physical);
}

CUresult CUDAAPI cuMemRelease(CUmemGenericAllocationHandle handle)
{
    STAND_IN_CALL(mem_release);
    struct stand_in_physical *physical = physical_of(handle);
    if (physical->released)
        return CUDA_ERROR_INVALID_VALUE;
    physical->released = true;
    stand_in()->held[STAND_IN_HELD_physical]--;
    settle(physical);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                          CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    struct stand_in *self = stand_in();
    STAND_IN_CALL(mem_map);
    struct stand_in_physical *physical = physical_of(handle);
    const struct stand_in_range *range = find(self->reservations, address);
    if (!range || address + bytes > range->start + range->bytes || physical->released || offset ||
        flags || bytes != physical->bytes || address % STAND_IN_PAGE_BYTES ||
        overlaps(self->mappings, address, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    enter(&self->mappings, address, bytes, 0, 1)->physical = physical;
    physical->mappings++;
    self->held[STAND_IN_HELD_mapping]++;
    return CUDA_SUCCESS;
}

/* Whether whole mappings fill the range. */
static bool whole_mappings(uint64_t address, uint64_t bytes)
{
    for (uint64_t at = address; at < address + bytes;) {
        const struct stand_in_range *mapping = find(stand_in()->mappings, at);
        if (!mapping || mapping->start != at || at + mapping->bytes > address + bytes)
            return false;
        at += mapping->bytes;
    }
    return bytes != 0;
}

CUresult CUDAAPI cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access,
                                size_t count)
{
    struct stand_in *self = stand_in();
    STAND_IN_CALL(mem_set_access);
    if (!whole_mappings(address, bytes) || count != 1 ||
        access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        return CUDA_ERROR_INVALID_VALUE;
    for (uint64_t at = address; at < address + bytes;) {
        struct stand_in_range *mapping = find(self->mappings, at);
        mapping->accessible = true;
        at += mapping->bytes;
    }
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemUnmap(CUdeviceptr address, size_t bytes)
{
    struct stand_in *self = stand_in();
    STAND_IN_CALL(mem_unmap);
    if (!whole_mappings(address, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    for (uint64_t at = address; at < address + bytes;) {
        struct stand_in_range *mapping = find(self->mappings, at);
        struct stand_in_physical *physical = mapping->physical;
        at += mapping->bytes;
        leave(&self->mappings, mapping);
        self->held[STAND_IN_HELD_mapping]--;
        physical->mappings--;
        settle(physical);
    }
    return CUDA_SUCCESS;
}

/* ---- pools ---------------------------------------------------------------------------------- */

static struct stand_in_pool *pool_of(CUmemoryPool pool)
{
    return (struct stand_in_pool *)(void *)pool;
}

CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *properties)
{
    struct stand_in *self = stand_in();
    STAND_IN_CALL(mem_pool_create);
    struct stand_in_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        abort();
    pool->most_bytes = properties->maxSize;
    pool->next = self->pools;
    self->pools = pool;
    self->held[STAND_IN_HELD_pool]++;
    *out = (CUmemoryPool)(void *)pool;
    return CUDA_SUCCESS;
}

static void pool_shrink(struct stand_in_pool *pool, uint64_t keep_bytes)
{
    uint64_t least_bytes = round_up(pool->used_bytes + pool->unseen_bytes, POOL_UNIT);
    uint64_t wanted_bytes = keep_bytes / POOL_UNIT * POOL_UNIT;
    if (wanted_bytes < least_bytes)
        wanted_bytes = least_bytes;
    if (pool->reserved_bytes <= wanted_bytes)
        return;
    stand_in_give(pool->reserved_bytes - wanted_bytes);
    pool->reserved_bytes = wanted_bytes;
}

CUresult CUDAAPI cuMemPoolDestroy(CUmemoryPool handle)
{
    struct stand_in *self = stand_in();
    STAND_IN_CALL(mem_pool_destroy);
    struct stand_in_pool **at = &self->pools;
    while (*at && *at != pool_of(handle))
        at = &(*at)->next;
    if (!*at || (*at)->used_bytes)
        return CUDA_ERROR_INVALID_VALUE;
    struct stand_in_pool *pool = *at;
    *at = pool->next;
    pool->unseen_bytes = 0;
    pool_shrink(pool, 0);
    free(pool);
    self->held[STAND_IN_HELD_pool]--;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                                       void *value)
{
    STAND_IN_CALL(mem_pool_set_attribute);
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        pool_of(pool)->threshold_bytes = *(const cuuint64_t *)value;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                                       void *value)
{
    STAND_IN_CALL(mem_pool_get_attribute);
    cuuint64_t *bytes = value;
    if (attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT)
        *bytes = pool_of(pool)->used_bytes;
    else if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)
        *bytes = pool_of(pool)->reserved_bytes;
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolTrimTo(CUmemoryPool pool, size_t keep_bytes)
{
    STAND_IN_CALL(mem_pool_trim_to);
    pool_shrink(pool_of(pool), keep_bytes);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool handle,
                                         CUstream stream)
{
    struct stand_in *self = stand_in();
    struct stand_in_pool *pool = pool_of(handle);
    (void)stream;
    STAND_IN_CALL(mem_alloc_from_pool_async);
    uint64_t taken_bytes = round_up(bytes, GRANULE_BYTES);
    uint64_t wanted_bytes = round_up(pool->used_bytes + taken_bytes, POOL_UNIT);
    uint64_t more_bytes =
        wanted_bytes > pool->reserved_bytes ? wanted_bytes - pool->reserved_bytes : 0;
    if ((pool->most_bytes && pool->reserved_bytes + more_bytes > pool->most_bytes) ||
        !stand_in_take(more_bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    pool->reserved_bytes += more_bytes;
    pool->used_bytes += taken_bytes;
    struct stand_in_range *block =
        enter(&self->pool_blocks, 0, taken_bytes, POOL_START, GRANULE_BYTES);
    self->held[STAND_IN_HELD_pool_block]++;
    *address = block->start;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    struct stand_in *self = stand_in();
    (void)stream;
    STAND_IN_CALL(mem_free_async);
    struct stand_in_range *block = find(self->pool_blocks, address);
    if (!block || block->start != address || !self->pools)
        return CUDA_ERROR_INVALID_VALUE;
    self->pools->used_bytes -= block->bytes; /* there is one at a time */
    self->pools->unseen_bytes += block->bytes;
    leave(&self->pool_blocks, block);
    self->held[STAND_IN_HELD_pool_block]--;
    return CUDA_SUCCESS;
}

void stand_in_pools_settle(void)
{
    for (struct stand_in_pool *pool = stand_in()->pools; pool; pool = pool->next) {
        pool->unseen_bytes = 0;
        pool_shrink(pool, pool->threshold_bytes);
    }
}

/* ---- all of it ------------------------------------------------------------------------------ */

bool stand_in_accessible(uint64_t address, uint64_t bytes)
{
    const struct stand_in *self = stand_in();
    while (bytes) {
        const struct stand_in_range *range = find(self->allocations, address);
        if (!range)
            range = find(self->pool_blocks, address);
        if (!range && (range = find(self->mappings, address)) && !range->accessible)
            return false;
        if (!range)
            return false;
        uint64_t part_bytes = range->start + range->bytes - address;
        if (part_bytes > bytes)
            part_bytes = bytes;
        address += part_bytes;
        bytes -= part_bytes;
    }
    return true;
}

static void end_list(struct stand_in_range **list)
{
    while (*list)
        leave(list, *list);
}

void *stand_in_keep(uint64_t bytes)
{
    struct stand_in *self = stand_in();
    struct stand_in_kept *kept = calloc(1, sizeof *kept + bytes);
    if (!kept)
        abort();
    kept->next = self->kept;
    kept->link = &self->kept;
    if (kept->next)
        kept->next->link = &kept->next;
    self->kept = kept;
    return kept + 1;
}

void stand_in_drop(void *record)
{
    struct stand_in_kept *kept = record ? (struct stand_in_kept *)record - 1 : NULL;
    if (!kept)
        return;
    *kept->link = kept->next;
    if (kept->next)
        kept->next->link = kept->link;
    free(kept);
}

void stand_in_memory_end(void)
{
    struct stand_in *self = stand_in();
    end_list(&self->allocations);
    end_list(&self->reservations);
    end_list(&self->mappings);
    end_list(&self->pool_blocks);
    while (self->kept)
        stand_in_drop(self->kept + 1);
    while (self->pools) {
        struct stand_in_pool *pool = self->pools;
        self->pools = pool->next;
        free(pool);
    }
    for (int card = 0; card < STAND_IN_CARDS_MOST; card++)
        stand_in_give_of(card, self->own_bytes[card]);
}
