/* Virtual memory, as cuMemAddressReserve, cuMemCreate, cuMemMap, cuMemSetAccess, cuMemUnmap.
 * Stricter than the driver: every misuse is refused with a sentence
 * (sim/device_memory/device_memory.h).
 *
 * 1. Physical memory is charged once, however often it is mapped, until it is destroyed and mapped
 *    nowhere.
 * 2. A mapping is the whole of a physical memory, inside one reserved range, over no other mapping.
 *    Access and unmap take whole mappings, without gaps, and cost the sum over them (measured: 512
 *    pages in one call cost 512 times one page); a profile may have another cost for the first one.
 * 3. An unmap is refused while work that uses the pages may still run: uses through this mapping
 *    that the host does not know to be done. Only uses that the engine reports (`used`) are known;
 *    the policy is responsible for others. */

#include "sim/sim_device/state.h"

/* The address of a reservation: that of the list, if there is one. */
static enum ar_status reserve_place(struct sim_device *self, uint64_t bytes, uint64_t *start)
{
    struct sim_addresses *list = &self->ranges;
    if (list->form != SIM_ADDRESSES_LIST)
        return sim_addresses_new(&self->addresses, bytes, &self->memory.segments,
                                 &self->small.pages, start);
    enum ar_status status =
        sim_addresses_recorded(list, bytes, start, self->problem, sizeof self->problem);
    if (status == AR_OK && (ranges_overlap(&self->memory.segments, *start, *start + bytes) ||
                            ranges_overlap(&self->small.pages, *start, *start + bytes)))
        status = sim_misuse(self,
                            "range %zu of %s lies at %" PRIu64 ", where a segment still is; give "
                            "the list of a recording of the same policy and workload, or none",
                            list->row_next, list->path, *start);
    self->base.bad_input = status != AR_OK;
    list->row_next += status == AR_OK;
    return status;
}

enum ar_status sim_reserve(struct ar_backing *backing, uint64_t bytes, uint64_t *address)
{
    struct sim_device *self = sim_of_backing(backing);
    AR_TRY(memory_check_bytes(&self->memory, "a reservation", bytes));
    uint64_t start;
    enum ar_status status = reserve_place(self, bytes, &start);
    if (status == AR_INVALID)
        return status;
    if (status != AR_OK)
        return sim_refuse(self, AR_DEVICE_CALL_reserve, SIM_COST_reserve, bytes);
    AR_TRY_HOST(sim_segment_add(self, start, start + bytes, bytes, true));
    sim_charge(self, AR_DEVICE_CALL_reserve, SIM_COST_reserve, SIM_COST_reserve, bytes, bytes);
    *address = start;
    return AR_OK;
}

enum ar_status sim_release(struct ar_backing *backing, uint64_t address)
{
    struct sim_device *self = sim_of_backing(backing);
    struct memory_segment *range;
    AR_TRY(memory_check_release(&self->memory, address, &range));
    uint64_t bytes = range->bytes;
    memory_segment_remove(&self->memory, range);
    sim_addresses_released(&self->addresses, address, bytes);
    sim_charge(self, AR_DEVICE_CALL_release, SIM_COST_release, SIM_COST_release, bytes, bytes);
    return AR_OK;
}

enum ar_status sim_create(struct ar_backing *backing, uint64_t bytes, ar_backing_handle *handle)
{
    struct sim_device *self = sim_of_backing(backing);
    AR_TRY(memory_check_bytes(&self->memory, "physical memory", bytes));
    AR_TRY(sim_check_complete(self));
    if (bytes > sim_ledger_free(&self->ledger))
        return sim_refuse(self, AR_DEVICE_CALL_create, SIM_COST_create, bytes);
    struct memory_physical *physical = calloc(1, sizeof *physical);
    AR_TRY_HOST(physical);
    sim_await_cleaning(self, bytes, SIM_COST_create);
    memory_physical_enter(&self->memory, physical, bytes);
    sim_ledger_charge(&self->ledger, bytes);
    sim_charge(self, AR_DEVICE_CALL_create, SIM_COST_create, SIM_COST_create, bytes, bytes);
    sim_show_memory(self);
    *handle = physical->handle.start;
    return AR_OK;
}

/* Releases physical memory that is destroyed and mapped nowhere. */
static void physical_settle(struct sim_device *self, struct memory_physical *physical)
{
    uint64_t bytes = physical->bytes;
    if (!memory_physical_settle(&self->memory, physical))
        return;
    sim_ledger_release(&self->ledger, bytes, self->clock.now_ns);
    sim_show_memory(self);
}

enum ar_status sim_destroy(struct ar_backing *backing, ar_backing_handle handle)
{
    struct sim_device *self = sim_of_backing(backing);
    struct memory_physical *physical;
    AR_TRY(memory_check_destroy(&self->memory, handle, &physical));
    physical->destroyed = true;
    uint64_t bytes = physical->bytes;
    sim_charge(self, AR_DEVICE_CALL_destroy, SIM_COST_destroy, SIM_COST_destroy, bytes, bytes);
    physical_settle(self, physical);
    return AR_OK;
}

enum ar_status sim_map(struct ar_backing *backing, uint64_t address, ar_backing_handle handle)
{
    struct sim_device *self = sim_of_backing(backing);
    struct memory_physical *physical;
    struct memory_segment *range;
    AR_TRY(memory_check_map(&self->memory, address, handle, &physical, &range));
    struct memory_mapping *mapping = calloc(1, sizeof *mapping);
    AR_TRY_HOST(mapping);
    enum sim_cost kind = physical->mappings ? SIM_COST_map_again : SIM_COST_map;
    memory_mapping_enter(&self->memory, mapping, physical, range, address);
    sim_charge(self, AR_DEVICE_CALL_map, SIM_COST_map, kind, physical->bytes, physical->bytes);
    return AR_OK;
}

/* The cost of a mapping's part in a call: `kind` for the first of the call, `more` for others. */
static uint64_t mapping_cost(struct sim_device *self, const struct memory_mapping *mapping,
                             uint64_t address, enum sim_cost kind, enum sim_cost more)
{
    const struct range *range = &mapping->range;
    return sim_cost_now(self, range->start == address ? kind : more, range->end - range->start);
}

enum ar_status sim_access(struct ar_backing *backing, uint64_t address, uint64_t bytes)
{
    struct sim_device *self = sim_of_backing(backing);
    uint64_t cost_ns = 0;
    AR_TRY(memory_check_run(&self->memory, "an access", address, bytes));
    for (uint64_t at = address; at < address + bytes;) {
        struct memory_mapping *mapping = memory_mapping_find(&self->memory, at);
        cost_ns = sim_time_plus(
            cost_ns, mapping_cost(self, mapping, address, SIM_COST_access, SIM_COST_access_more));
        mapping->usable = true;
        at = mapping->range.end;
    }
    sim_await_work(self, SIM_COST_access);
    sim_call(self, AR_DEVICE_CALL_access, SIM_COST_access, bytes, cost_ns);
    return AR_OK;
}

struct pending_use {
    const struct sim_device *self;
    uint64_t mapping;
    struct sim_use use;
};

/* Stops at a use through this mapping that the host does not know to be done. */
static bool use_is_past(void *argument, const struct sim_use *use, uint64_t start AR_UNUSED,
                        uint64_t end AR_UNUSED)
{
    struct pending_use *pending = argument;
    if (use->mapping != pending->mapping ||
        sim_clock_known(&pending->self->clock, use->stream, use->sequence))
        return true;
    pending->use = *use;
    return false;
}

static enum ar_status check_unused(struct sim_device *self, const struct memory_mapping *mapping)
{
    const struct memory_physical *physical = mapping->physical;
    struct pending_use pending = {.self = self, .mapping = mapping->number};
    if (sim_hazards_visit(&self->memory.hazards, physical->address,
                          physical->address + physical->bytes, use_is_past, &pending))
        return AR_OK;
    return sim_misuse(self,
                      "an unmap of %" PRIu64 " while work of stream %" PRIu32
                      " may still use it (the block was freed at event %" PRIu64
                      "); wait for that work first",
                      mapping->range.start, pending.use.stream, pending.use.event);
}

enum ar_status sim_unmap(struct ar_backing *backing, uint64_t address, uint64_t bytes)
{
    struct sim_device *self = sim_of_backing(backing);
    uint64_t cost_ns = 0;
    enum ar_status status = memory_check_run(&self->memory, "an unmap", address, bytes);
    for (uint64_t at = address; status == AR_OK && at < address + bytes;) {
        const struct memory_mapping *mapping = memory_mapping_find(&self->memory, at);
        status = check_unused(self, mapping);
        cost_ns = sim_time_plus(
            cost_ns, mapping_cost(self, mapping, address, SIM_COST_unmap, SIM_COST_unmap_more));
        at = mapping->range.end;
    }
    AR_TRY(status);
    sim_await_work(self, SIM_COST_unmap);
    sim_call(self, AR_DEVICE_CALL_unmap, SIM_COST_unmap, bytes, cost_ns);
    for (uint64_t at = address; at < address + bytes;) {
        struct memory_mapping *mapping = memory_mapping_find(&self->memory, at);
        at = mapping->range.end;
        physical_settle(self, memory_mapping_remove(&self->memory, mapping));
    }
    return AR_OK;
}
