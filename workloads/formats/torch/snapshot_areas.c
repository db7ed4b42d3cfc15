#include "workloads/formats/torch/snapshot_areas.h"

#include <string.h>

#include "allocators/base/array.h"

size_t snapshot_areas_above(const struct snapshot_areas *self, uint64_t address)
{
    return ar_array_above(self->items, self->count, sizeof *self->items,
                          offsetof(struct snapshot_area, address), address);
}

struct snapshot_area *snapshot_areas_at(const struct snapshot_areas *self, uint64_t address)
{
    size_t above = snapshot_areas_above(self, address);
    struct snapshot_area *area = above ? &self->items[above - 1] : NULL;
    return area && address - area->address < area->bytes ? area : NULL;
}

enum ar_status snapshot_areas_add(struct snapshot_areas *self, const struct snapshot_area *area,
                                  struct ar_error *error)
{
    const struct snapshot_area added = *area; /* may be an item */
    size_t at = snapshot_areas_above(self, added.address);
    if (!ar_array_make_room(&self->items, self->count, &self->room, sizeof added))
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for the state of a snapshot");
    memmove(self->items + at + 1, self->items + at, (self->count - at) * sizeof added);
    self->items[at] = added;
    self->count++;
    return AR_OK;
}

void snapshot_areas_drop(struct snapshot_areas *self, size_t index)
{
    self->count--;
    memmove(self->items + index, self->items + index + 1,
            (self->count - index) * sizeof *self->items);
}

enum ar_status snapshot_areas_cut(struct snapshot_areas *self, uint64_t address, uint64_t bytes,
                                  struct ar_error *error)
{
    struct snapshot_area *first = snapshot_areas_at(self, address);
    enum ar_status status = AR_OK;
    if (first) {
        struct snapshot_area rest = *first;
        first->bytes = address - first->address;
        rest.address = address;
        rest.bytes -= first->bytes;
        if (!first->bytes)
            snapshot_areas_drop(self, (size_t)(first - self->items));
        status = snapshot_areas_add(self, &rest, error); /* begins at the range now */
    }
    size_t from = snapshot_areas_above(self, address), to;
    from -= from && self->items[from - 1].address == address;
    for (to = from; to < self->count && self->items[to].address - address < bytes; to++) {
        struct snapshot_area *area = &self->items[to];
        uint64_t inside = bytes - (area->address - address);
        if (area->bytes <= inside)
            continue;
        area->address += inside;
        area->bytes -= inside;
        break;
    }
    memmove(self->items + from, self->items + to, (self->count - to) * sizeof *self->items);
    self->count -= to - from;
    return status;
}
