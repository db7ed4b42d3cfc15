/* The supply of the textbook fits, in two ways:
 * 1. On a backing with virtual memory a range as large as the device is reserved at the first
 *    request, and pages are mapped at its top as the arena grows.
 * 2. Elsewhere driver allocations are taken which touch the one before (the profile `bump`
 *    gives such). Where one does not touch, because something else came between, it is given
 *    back and one is taken that holds the request alone: the arena then has a gap.
 * Pages may be unmapped only when the work that uses them is done, so the streams seen are
 * waited for first. A driver free waits of itself. */
#include "allocators/policies/fit/supply.h"

/* The range where the device says no size: more than any card or host has. */
#define RANGE_MOST_BYTES (UINT64_C(1) << 44)

static bool paged(const struct supply *self)
{
    return self->backing->page_bytes != 0;
}

enum ar_status supply_open(struct supply *self, const struct ar_policy_context *context,
                           const char *owner, struct ar_error *error)
{
    *self = (struct supply){.backing = context->backing, .host = context->host};
    if (paged(self) || context->backing->adjacent)
        return AR_OK;
    return ar_error_set(error, AR_UNSUPPORTED,
                        "policy %s keeps one arena that grows, and this device offers neither "
                        "virtual memory nor allocations that touch; run it on sim",
                        owner);
}

static enum ar_status reserve_range(struct supply *self)
{
    if (self->range_bytes)
        return AR_OK;
    uint64_t page = self->backing->page_bytes;
    uint64_t free_bytes;
    uint64_t bytes;
    ar_backing_memory(self->backing, &free_bytes, &bytes);
    if (bytes == 0 || bytes > RANGE_MOST_BYTES)
        bytes = RANGE_MOST_BYTES;
    bytes = (bytes + page - 1) / page * page;
    enum ar_status status = ar_backing_reserve(self->backing, bytes, &self->range_address);
    if (!status)
        self->range_bytes = bytes;
    return status;
}

/* Where the last piece ends: the first byte without memory. */
static uint64_t supplied_end(const struct supply *self)
{
    if (!self->count)
        return self->range_address;
    const struct supply_piece *last = &self->pieces[self->count - 1];
    return last->address + last->bytes;
}

/* Maps what is missing up to `end`, as one handle. */
static enum ar_status map_up_to(struct supply *self, uint64_t end)
{
    struct ar_backing *backing = self->backing;
    struct supply_piece *piece = &self->pieces[self->count];
    uint64_t from = supplied_end(self);
    if (end <= from)
        return AR_OK;
    piece->bytes = ar_size_round_up(end - from, backing->page_bytes);
    if (from + piece->bytes > self->range_address + self->range_bytes)
        return AR_REFUSED;
    piece->address = from;
    enum ar_status status = ar_backing_create(backing, piece->bytes, &piece->handle);
    if (status)
        return status;
    status = ar_backing_map(backing, from, piece->handle);
    if (!status) {
        status = ar_backing_access(backing, from, piece->bytes);
        if (!status) {
            self->count++;
            return AR_OK;
        }
        if (ar_backing_unmap(backing, from, piece->bytes))
            return AR_CORRUPT;
    }
    return ar_backing_destroy(backing, piece->handle) ? AR_CORRUPT : status;
}

static enum ar_status grow_segments(struct supply *self, uint64_t *top, uint64_t bytes,
                                    uint64_t apart, uint64_t most_apart)
{
    struct supply_piece *piece = &self->pieces[self->count];
    enum ar_status status = ar_backing_segment_alloc(self->backing, bytes, &piece->address);
    if (status)
        return status;
    piece->bytes = bytes;
    bool touches = self->count == 0 || piece->address == *top;
    if (!touches) {
        if (ar_backing_segment_free(self->backing, piece->address))
            return AR_CORRUPT;
        if (apart > most_apart)
            return AR_REFUSED;
        status = ar_backing_segment_alloc(self->backing, apart, &piece->address);
        if (status)
            return status;
        piece->bytes = apart;
        if (piece->address < *top)
            return ar_backing_segment_free(self->backing, piece->address) ? AR_CORRUPT : AR_REFUSED;
    }
    *top = piece->address;
    self->count++;
    return AR_OK;
}

enum ar_status supply_grow(struct supply *self, uint64_t *top, uint64_t bytes, uint64_t apart,
                           uint64_t most_apart)
{
    if (self->count == self->room) {
        uint32_t room = self->room + self->room / 2 + 8;
        struct supply_piece *pieces =
            ar_host_grow(self->host, self->pieces, self->room, room, sizeof *pieces);
        if (!pieces)
            return AR_HOST_MEMORY;
        self->pieces = pieces;
        self->room = room;
    }
    if (!paged(self))
        return grow_segments(self, top, bytes, apart, most_apart);
    enum ar_status status = reserve_range(self);
    if (status)
        return status;
    /* Not only at the first call: a first one that was refused has left the arena empty. */
    if (!self->count)
        *top = self->range_address;
    return map_up_to(self, *top + bytes);
}

static void wait_for_work(struct supply *self)
{
    for (uint32_t stream = 0; stream < self->streams; stream++)
        ar_backing_wait(self->backing, ar_backing_fence(self->backing, stream));
    self->streams = 0;
}

enum ar_status supply_shrink(struct supply *self, uint64_t floor, uint64_t *new_end)
{
    if (!self->count || self->pieces[self->count - 1].address < floor)
        return AR_REFUSED;
    const struct supply_piece *last = &self->pieces[self->count - 1];
    enum ar_status status;
    if (paged(self)) {
        wait_for_work(self);
        status = ar_backing_unmap(self->backing, last->address, last->bytes);
        if (!status)
            status = ar_backing_destroy(self->backing, last->handle);
    } else {
        status = ar_backing_segment_free(self->backing, last->address);
    }
    if (status)
        return AR_CORRUPT;
    *new_end = last->address;
    self->count--;
    return AR_OK;
}

void supply_close(struct supply *self)
{
    uint64_t end;
    while (supply_shrink(self, 0, &end) == AR_OK) {
    }
    if (self->range_bytes)
        (void)ar_backing_release(self->backing, self->range_address);
    ar_host_free(self->host, self->pieces, self->room * sizeof *self->pieces);
}

/* The first piece from `from` on that starts at `address` or above. */
static uint32_t piece_from(const struct supply *self, uint32_t from, uint64_t address)
{
    uint32_t high = self->count;
    while (from < high) {
        uint32_t middle = from + (high - from) / 2;
        if (self->pieces[middle].address < address)
            from = middle + 1;
        else
            high = middle;
    }
    return from;
}

uint64_t supply_whole_bytes(const struct supply *self, uint64_t low, uint64_t high)
{
    if (paged(self)) {
        low = ar_size_round_up(low, self->backing->page_bytes);
        high = ar_size_round_down(high, self->backing->page_bytes);
        return high > low ? high - low : 0;
    }
    uint32_t first = piece_from(self, 0, low);
    if (first == self->count)
        return 0;
    const struct supply_piece *piece = &self->pieces[first];
    if (piece->address + piece->bytes > high)
        return 0;
    /* Of the pieces that start below `high`, the last may reach over it. */
    const struct supply_piece *last = &self->pieces[piece_from(self, first + 1, high) - 1];
    if (last->address + last->bytes > high)
        last--;
    return last->address + last->bytes - piece->address;
}
