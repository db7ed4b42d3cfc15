/* Pinned host memory, as cuMemHostAlloc and cuMemFreeHost: a backing of its own on the same clock.
 *
 * 1. It takes nothing of the card. The option `host` is the most that can be pinned.
 * 2. Requests below 2 MiB share pages of 2 MiB, as recorded on an H200: a run of them has addresses
 *    512 bytes apart, and one in 16 of 128 KiB takes 300 times as long as the others.
 * 3. Each call costs the host what the profile says for its bytes: `pinned_alloc`, `pinned_free`,
 *    or `pinned_alloc_shared`, `pinned_free_shared` if the page stays. Every free may wait for all
 *    work of the card (`waits: pinned_free`). */

#include "allocators/base/size.h"
#include "sim/sim_device/state.h"

#define PAGE_BYTES         (2 * AR_MIB)
#define GRANULE_BYTES      UINT64_C(512)
#define HOST_FIRST_ADDRESS (UINT64_C(1) << 46)

static struct sim_device *sim_of_pinned(struct ar_backing *backing)
{
    return (struct sim_device *)((char *)backing - offsetof(struct sim_device, pinned.backing));
}

/* A small block in a page; `shared`: in one that was there. */
static enum ar_status place_small(struct sim_pinned *self, uint64_t bytes, uint64_t *address,
                                  bool *shared)
{
    if (!self->small && !(self->small = calloc(1, sizeof *self->small)))
        return AR_HOST_MEMORY;
    self->small->granule_bytes = GRANULE_BYTES;
    self->small->page_bytes = PAGE_BYTES;
    struct small_page *page = small_pages_room(self->small, bytes, address);
    *shared = page != NULL;
    if (!page) {
        *address = self->next_address;
        page = small_pages_add(self->small, *address);
        AR_TRY_HOST(page);
        self->next_address += PAGE_BYTES;
    }
    small_pages_take(self->small, page, *address, bytes);
    return AR_OK;
}

static enum ar_status make(struct sim_device *self, uint64_t bytes, uint64_t *address)
{
    struct ar_device_counters *counters = &self->base.counters;
    struct sim_pinned *pinned = &self->pinned;
    bool shared = false;
    AR_TRY(sim_check_complete(self));
    if (ar_map_reserve(&pinned->blocks) != AR_OK)
        return AR_HOST_MEMORY;
    if (bytes > pinned->most_bytes - counters->pinned_bytes)
        return sim_refuse(self, AR_DEVICE_CALL_pinned_alloc, SIM_COST_pinned_alloc, bytes);
    if (bytes < PAGE_BYTES) {
        AR_TRY(place_small(pinned, bytes, address, &shared));
    } else {
        *address = pinned->next_address;
        pinned->next_address += ar_size_round_up(bytes, PAGE_BYTES);
    }
    *ar_map_add(&pinned->blocks, *address) = bytes;
    sim_charge(self, AR_DEVICE_CALL_pinned_alloc, SIM_COST_pinned_alloc,
               shared ? SIM_COST_pinned_alloc_shared : SIM_COST_pinned_alloc, bytes, bytes);
    counters->pinned_bytes += bytes;
    return AR_OK;
}

/* Whether the page of a small block stays without it. */
static bool leave_small(struct sim_pinned *self, uint64_t address, uint64_t bytes)
{
    struct small_page *page = (struct small_page *)ranges_find(&self->small->pages, address);
    small_pages_leave(self->small, page, address, bytes);
    if (page->used)
        return true;
    small_pages_remove(self->small, page);
    return false;
}

static enum ar_status drop(struct sim_device *self, uint64_t address)
{
    const uint64_t *found = ar_map_find(&self->pinned.blocks, address);
    if (!found)
        return sim_misuse(self, "a free of pinned memory at %" PRIu64 ", where none begins",
                          address);
    uint64_t bytes = *found;
    bool shared = bytes < PAGE_BYTES && leave_small(&self->pinned, address, bytes);
    ar_map_remove(&self->pinned.blocks, address);
    sim_charge(self, AR_DEVICE_CALL_pinned_free, SIM_COST_pinned_free,
               shared ? SIM_COST_pinned_free_shared : SIM_COST_pinned_free, bytes, bytes);
    self->base.counters.pinned_bytes -= bytes;
    return AR_OK;
}

/* The hooks count the driver's time in them as that of pinned memory. */
static uint64_t begin(const struct sim_device *self)
{
    return self->base.counters.driver_ns;
}

static void end(struct sim_device *self, uint64_t begun_ns)
{
    self->base.counters.pinned_ns += self->base.counters.driver_ns - begun_ns;
}

static enum ar_status pinned_alloc(struct ar_backing *backing, uint64_t bytes, uint64_t *address)
{
    struct sim_device *self = sim_of_pinned(backing);
    uint64_t begun_ns = begin(self);
    enum ar_status status = make(self, bytes, address);
    end(self, begun_ns);
    return status;
}

static enum ar_status pinned_free(struct ar_backing *backing, uint64_t address)
{
    struct sim_device *self = sim_of_pinned(backing);
    uint64_t begun_ns = begin(self);
    enum ar_status status = drop(self, address);
    end(self, begun_ns);
    return status;
}

static struct ar_backing_ticket pinned_fence(struct ar_backing *backing, uint32_t stream)
{
    struct sim_device *self = sim_of_pinned(backing);
    uint64_t begun_ns = begin(self);
    struct ar_backing_ticket ticket = ar_backing_fence(&self->backing, stream);
    end(self, begun_ns);
    return ticket;
}

static bool pinned_done(struct ar_backing *backing, struct ar_backing_ticket ticket)
{
    struct sim_device *self = sim_of_pinned(backing);
    uint64_t begun_ns = begin(self);
    bool done = ar_backing_done(&self->backing, ticket);
    end(self, begun_ns);
    return done;
}

static void pinned_wait(struct ar_backing *backing, struct ar_backing_ticket ticket)
{
    ar_backing_wait(&sim_of_pinned(backing)->backing, ticket);
}

static void pinned_memory(struct ar_backing *backing, uint64_t *free_bytes, uint64_t *total_bytes)
{
    const struct sim_device *self = sim_of_pinned(backing);
    *total_bytes = self->pinned.most_bytes;
    *free_bytes = self->pinned.most_bytes - self->base.counters.pinned_bytes;
}

static const char *pinned_problem(struct ar_backing *backing)
{
    return sim_of_pinned(backing)->problem;
}

void sim_pinned_open(struct sim_device *self, uint64_t most_bytes)
{
    static const struct ar_backing_ops ops = {
        .segment_alloc = pinned_alloc,
        .segment_free = pinned_free,
        .fence = pinned_fence,
        .done = pinned_done,
        .wait = pinned_wait,
        .memory = pinned_memory,
        .problem = pinned_problem,
    };
    self->pinned.backing = (struct ar_backing){.ops = &ops, .granule_bytes = GRANULE_BYTES};
    self->pinned.most_bytes = most_bytes ? most_bytes : UINT64_MAX;
    self->pinned.next_address = HOST_FIRST_ADDRESS;
    self->base.pinned = &self->pinned.backing;
}

void sim_pinned_close(struct sim_device *self)
{
    struct small_pages *small = self->pinned.small;
    while (small && small->pages.root)
        small_pages_remove(small, (struct small_page *)small->pages.root);
    free(small);
    ar_map_close(&self->pinned.blocks);
}
