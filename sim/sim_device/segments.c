/* Driver allocations, as cuMemAlloc and cuMemFree.
 *
 * 1. From a page on, sizes are rounded up to whole pages; smaller ones share pages.
 * 2. An allocation costs `alloc` if it needs as many pages as the last free released and no other
 *    allocation came between: the driver has them cached. Else it costs `alloc_held`. The costs
 *    were measured this way: one block allocated and freed repeatedly, and forty allocated
 *    together.
 * 3. A free waits for all work on the device, unless the profile says that it does not. It costs
 *    `free` if it frees the latest segment, else `free_held`: the same two measurements.
 * 4. A small allocation in an existing page costs `alloc_shared` and `free_shared`. The one that
 *    adds the page, or releases it, costs as a page does. */

#include "sim/sim_device/state.h"

struct memory_segment *sim_segment_add(struct sim_device *self, uint64_t address, uint64_t end,
                                       uint64_t bytes, bool reserved)
{
    struct memory_segment *segment = calloc(1, sizeof *segment);
    if (!segment)
        return NULL;
    memory_segment_enter(&self->memory, segment, self->base.counters.segments_made++, address, end,
                         bytes, reserved);
    return segment;
}

/* The address of a new segment, and its charge. */
struct place {
    uint64_t address, end;
    uint64_t charge_bytes; /* 0: it shares an existing page */
    bool small;
    struct small_page *page; /* the shared page */
};

static bool place_is_taken(const struct sim_device *self, const struct place *place)
{
    if (ranges_overlap(&self->memory.segments, place->address, place->end))
        return true;
    return !place->small && ranges_overlap(&self->small.pages, place->address, place->end);
}

/* Whether the request will be refused and so has no row in the list, which has only segments that
 * were allocated. A small one may still be served when no page is left: then its row shows it. */
static bool place_has_no_row(const struct sim_device *self, uint64_t bytes,
                             const struct place *place)
{
    const struct sim_addresses *list = &self->addresses;
    if (list->form != SIM_ADDRESSES_LIST || place->charge_bytes <= sim_ledger_free(&self->ledger))
        return false;
    if (!place->small || list->row_next == list->row_count)
        return true;
    const struct sim_address_row *row = &list->rows[list->row_next];
    return row->bytes != bytes || !ranges_find(&self->small.pages, row->address) ||
           ranges_overlap(&self->memory.segments, row->address, row->address + bytes);
}

/* The recorded address, if there is a list. OK with `found` false: there is none. */
static enum ar_status place_recorded(struct sim_device *self, uint64_t bytes, struct place *place,
                                     bool *found)
{
    *found = self->addresses.form == SIM_ADDRESSES_LIST;
    if (!*found)
        return AR_OK;
    enum ar_status status = sim_addresses_recorded(&self->addresses, bytes, &place->address,
                                                   self->problem, sizeof self->problem);
    if (status != AR_OK) {
        self->base.bad_input = true;
        return status;
    }
    uint64_t length = place->small ? bytes : sim_ledger_units(&self->ledger, bytes);
    place->end = place->address + length;
    if (place_is_taken(self, place)) {
        self->base.bad_input = true;
        return sim_misuse(self,
                          "segment %zu of %s lies at %" PRIu64 ", where another segment still "
                          "is: the policy keeps one that was freed in the recording; give the "
                          "list of a recording of the same policy and workload, or none",
                          self->addresses.row_next, self->addresses.path, place->address);
    }
    if (place->small) {
        place->page = (struct small_page *)ranges_find(&self->small.pages, place->address);
        if (place->page)
            place->charge_bytes = 0;
    }
    return AR_OK;
}

/* Chooses the address, after the check that there is memory. */
static enum ar_status place_new(struct sim_device *self, uint64_t bytes, struct place *place)
{
    if (place->page)
        return AR_OK;
    enum ar_status status =
        sim_addresses_new(&self->addresses, place->charge_bytes, &self->memory.segments,
                          &self->small.pages, &place->address);
    place->end = place->address + (place->small ? bytes : place->charge_bytes);
    return status;
}

/* Adds the segment to the bookkeeping. */
static enum ar_status place_take(struct sim_device *self, uint64_t bytes, const struct place *place)
{
    struct small_page *page = place->page;
    if (place->small && !page) {
        uint64_t start = place->address - place->address % self->profile->page_bytes;
        page = small_pages_add(&self->small, start);
        AR_TRY_HOST(page);
    }
    struct memory_segment *segment =
        sim_segment_add(self, place->address, place->end, bytes, false);
    if (!segment) {
        if (page && !place->page)
            small_pages_remove(&self->small, page);
        return AR_HOST_MEMORY;
    }
    segment->page = page;
    if (page)
        small_pages_take(&self->small, page, place->address, bytes);
    if (place->charge_bytes)
        sim_ledger_charge(&self->ledger, place->charge_bytes);
    self->last_made = segment->ordinal + 1;
    if (self->addresses.form == SIM_ADDRESSES_LIST)
        self->addresses.row_next++;
    return AR_OK;
}

enum ar_status sim_segment_alloc(struct ar_backing *backing, uint64_t bytes, uint64_t *address)
{
    struct sim_device *self = sim_of_backing(backing);
    if (bytes == 0)
        return sim_misuse(self, "a driver allocation of no bytes");
    AR_TRY(sim_check_complete(self));
    struct place place = {.small = bytes < self->profile->page_bytes,
                          .charge_bytes = sim_ledger_units(&self->ledger, bytes)};
    bool recorded;
    if (place_has_no_row(self, bytes, &place))
        return sim_refuse(self, AR_DEVICE_CALL_alloc, SIM_COST_alloc, bytes);
    AR_TRY(place_recorded(self, bytes, &place, &recorded));
    if (!recorded && place.small &&
        (place.page = small_pages_room(&self->small, bytes, &place.address))) {
        place.charge_bytes = 0;
        place.end = place.address + bytes;
    }
    enum sim_cost kind = !place.charge_bytes                        ? SIM_COST_alloc_shared
                         : place.charge_bytes == self->cached_bytes ? SIM_COST_alloc
                                                                    : SIM_COST_alloc_held;
    if (place.charge_bytes > sim_ledger_free(&self->ledger))
        return sim_refuse(self, AR_DEVICE_CALL_alloc, SIM_COST_alloc, bytes);
    if (!recorded && place_new(self, bytes, &place) != AR_OK)
        return sim_refuse(self, AR_DEVICE_CALL_alloc, SIM_COST_alloc, bytes);
    if (place.charge_bytes)
        sim_await_cleaning(self, place.charge_bytes, SIM_COST_alloc);
    AR_TRY(place_take(self, bytes, &place));
    if (kind == SIM_COST_alloc)
        self->cached_bytes = 0;
    uint64_t cost_bytes = place.small ? bytes : place.charge_bytes;
    sim_charge(self, AR_DEVICE_CALL_alloc, SIM_COST_alloc, kind, bytes, cost_bytes);
    sim_show_memory(self);
    *address = place.address;
    return AR_OK;
}

enum ar_status sim_segment_free(struct ar_backing *backing, uint64_t address)
{
    struct sim_device *self = sim_of_backing(backing);
    struct memory_segment *segment;
    AR_TRY(memory_check_free(&self->memory, address, &segment));
    uint64_t bytes = segment->bytes;
    uint64_t back_bytes = segment->range.end - segment->range.start;
    uint64_t cost_bytes = back_bytes;
    if (segment->page) {
        small_pages_leave(&self->small, segment->page, address, bytes);
        back_bytes = segment->page->used ? 0 : self->profile->page_bytes;
        address -= address % self->profile->page_bytes;
        if (back_bytes)
            small_pages_remove(&self->small, segment->page);
    }
    if (back_bytes)
        sim_addresses_released(&self->addresses, address, back_bytes);
    enum sim_cost kind = !back_bytes                               ? SIM_COST_free_shared
                         : self->last_made == segment->ordinal + 1 ? SIM_COST_free
                                                                   : SIM_COST_free_held;
    if (self->last_made == segment->ordinal + 1)
        self->last_made = 0;
    memory_segment_remove(&self->memory, segment);
    sim_charge(self, AR_DEVICE_CALL_free, SIM_COST_free, kind, bytes, cost_bytes);
    if (back_bytes) {
        self->cached_bytes = back_bytes;
        sim_ledger_release(&self->ledger, back_bytes, self->clock.now_ns);
        sim_show_memory(self);
    }
    return AR_OK;
}
