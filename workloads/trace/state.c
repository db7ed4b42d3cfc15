/* How: segments, ranges and runs of mapped pages are areas in one list by address.
 *
 * A recording does not tell where a range begins or ends. But an allocator maps the pages of a
 * range from its start on, so pages that are mapped at or below the highest address that the range
 * ever reached belong to it, and all others begin a range of their own. A range without pages is
 * given up.
 *
 * Nor does it tell how long the block is that was given for a request, and later it cannot be seen:
 * PyTorch, whose recordings these are, rounds to 512 bytes, and leaves up to 1 MiB that is over
 * with the block in a segment of its large pool (any but those of 2 MiB). What is over shows
 * when the block is placed: it ends where the next block or the segment does. */
#include "workloads/trace/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/array.h"
#include "allocators/base/size.h"

#define ROUND_BYTES         512u
#define SMALL_SEGMENT_BYTES (2 * AR_MIB)
#define REST_BYTES          AR_MIB /* that is not cut off */

enum area_kind { AREA_SEGMENT, AREA_RANGE, AREA_PAGES };

struct trace_state_area {
    uint64_t address;
    uint64_t end; /* of a range: the highest that it ever reached */
    uint32_t stream, pool;
    enum area_kind kind;
};

struct trace_state_block {
    uint64_t address, end;
};

void trace_state_close(struct trace_state *self)
{
    free(self->areas);
    free(self->blocks);
    *self = (struct trace_state){0};
}

static enum ar_status insert(struct trace_state *self, size_t at, struct trace_state_area area,
                             struct ar_error *error)
{
    struct trace_state_area *grown =
        ar_array_grow(self->areas, self->count, &self->room, sizeof *grown);
    if (!grown)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for %zu segments", self->count);
    self->areas = grown;
    memmove(self->areas + at + 1, self->areas + at, (self->count - at) * sizeof *self->areas);
    self->areas[at] = area;
    self->count++;
    return AR_OK;
}

static void drop(struct trace_state *self, size_t at)
{
    self->count--;
    memmove(self->areas + at, self->areas + at + 1, (self->count - at) * sizeof *self->areas);
}

/* The first area above an address. */
static size_t above(const struct trace_state *self, uint64_t address)
{
    return ar_array_above(self->areas, self->count, sizeof *self->areas,
                          offsetof(struct trace_state_area, address), address);
}

/* The range that pages at an address belong to; count: none. */
static size_t range_of(const struct trace_state *self, uint64_t address, uint32_t stream)
{
    for (size_t i = above(self, address); i-- > 0;) {
        const struct trace_state_area *area = &self->areas[i];
        if (area->kind == AREA_RANGE)
            return address <= area->end && area->stream == stream ? i : self->count;
    }
    return self->count;
}

static enum ar_status map(struct trace_state *self, struct trace_state_area pages,
                          struct ar_error *error)
{
    enum ar_status status = AR_OK;
    size_t range = range_of(self, pages.address, pages.stream);
    if (range == self->count) {
        struct trace_state_area new_range = pages;
        new_range.kind = AREA_RANGE;
        range = above(self, pages.address);
        status = insert(self, range, new_range, error);
    } else if (self->areas[range].end < pages.end) {
        self->areas[range].end = pages.end;
    }
    size_t at = above(self, pages.address);
    if (status)
        return status;
    if (at > range + 1 && self->areas[at - 1].end == pages.address)
        self->areas[--at].end = pages.end;
    else
        status = insert(self, at, pages, error);
    if (!status && at + 1 < self->count && self->areas[at + 1].kind == AREA_PAGES &&
        self->areas[at + 1].address == self->areas[at].end) {
        self->areas[at].end = self->areas[at + 1].end;
        drop(self, at + 1);
    }
    return status;
}

static enum ar_status unmap(struct trace_state *self, uint64_t address, uint64_t end,
                            struct ar_error *error)
{
    size_t at = above(self, address);
    if (!at || self->areas[at - 1].kind != AREA_PAGES || self->areas[at - 1].end < end)
        return AR_OK; /* of what was never mapped: the recording contradicts itself */
    struct trace_state_area rest = self->areas[--at];
    rest.address = end;
    if (self->areas[at].address == address)
        drop(self, at);
    else
        self->areas[at++].end = address;
    enum ar_status status = rest.address < rest.end ? insert(self, at, rest, error) : AR_OK;
    size_t before = at ? at - 1 : 0;
    bool ends_here = at == self->count || self->areas[at].kind != AREA_PAGES;
    if (!status && at && ends_here && self->areas[before].kind == AREA_RANGE)
        drop(self, before);
    return status;
}

/* The numbers after a verb; false: it is another one. */
static bool numbers_of(const char *text, const char *verb, uint64_t numbers[3])
{
    size_t length = strlen(verb);
    if (strncmp(text, verb, length) != 0 || text[length] != ',')
        return false;
    numbers[2] = 0;
    return sscanf(text + length, ",%" SCNu64 ",%" SCNu64 ",%" SCNu64, &numbers[0], &numbers[1],
                  &numbers[2]) >= 2 &&
           numbers[1] && numbers[1] <= UINT64_MAX - numbers[0];
}

enum ar_status trace_state_note(struct trace_state *self, const char *text, struct ar_error *error)
{
    uint64_t numbers[3];
    struct trace_state_area area = {0};
    bool made = numbers_of(text, "segment_alloc", numbers);
    bool gone = !made && numbers_of(text, "segment_free", numbers);
    bool mapped = !made && !gone && numbers_of(text, "segment_map", numbers);
    bool unmapped = !made && !gone && !mapped && numbers_of(text, "segment_unmap", numbers);
    if (!made && !gone && !mapped && !unmapped)
        return AR_OK;
    area.address = numbers[0];
    area.end = numbers[0] + numbers[1];
    area.stream = (uint32_t)numbers[2];
    area.kind = mapped ? AREA_PAGES : AREA_SEGMENT;
    size_t at = above(self, area.address);
    if (mapped)
        return map(self, area, error);
    if (unmapped)
        return unmap(self, area.address, area.end, error);
    if (made)
        return insert(self, at, area, error);
    if (at && self->areas[at - 1].address == area.address)
        drop(self, at - 1);
    return AR_OK;
}

/* The first block above an address. */
static size_t block_above(const struct trace_state *self, uint64_t address)
{
    return ar_array_above(self->blocks, self->block_count, sizeof *self->blocks,
                          offsetof(struct trace_state_block, address), address);
}

/* Where a block that begins at `address` ends. `next`: of the block above it. */
static uint64_t end_of(const struct trace_state_area *area, uint64_t address, uint64_t bytes,
                       uint64_t next)
{
    uint64_t end = address + ar_size_round_up(bytes, ROUND_BYTES);
    if (!area || area->kind != AREA_SEGMENT || area->end <= address)
        return end < next ? end : next;
    uint64_t limit = area->end < next ? area->end : next;
    bool keeps_rest = area->end - area->address != SMALL_SEGMENT_BYTES;
    return end > limit || (keeps_rest && limit - end <= REST_BYTES) ? limit : end;
}

enum ar_status trace_state_placed(struct trace_state *self, uint64_t address, uint64_t bytes,
                                  uint32_t pool, struct ar_error *error)
{
    size_t owner = above(self, address), at = block_above(self, address);
    struct trace_state_block *grown =
        ar_array_grow(self->blocks, self->block_count, &self->block_room, sizeof *grown);
    if (!grown)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for %zu blocks",
                            self->block_count);
    self->blocks = grown;
    while (owner && self->areas[owner - 1].kind == AREA_PAGES)
        owner--;
    struct trace_state_area *area = owner ? &self->areas[owner - 1] : NULL;
    uint64_t next = at < self->block_count ? self->blocks[at].address : UINT64_MAX;
    if (area)
        area->pool = pool;
    memmove(self->blocks + at + 1, self->blocks + at,
            (self->block_count - at) * sizeof *self->blocks);
    self->blocks[at] = (struct trace_state_block){address, end_of(area, address, bytes, next)};
    self->block_count++;
    return AR_OK;
}

void trace_state_freed(struct trace_state *self, uint64_t address)
{
    size_t at = block_above(self, address);
    if (!at || self->blocks[--at].address != address)
        return;
    self->block_count--;
    memmove(self->blocks + at, self->blocks + at + 1,
            (self->block_count - at) * sizeof *self->blocks);
}

uint64_t trace_state_bytes(const struct trace_state *self, uint64_t address)
{
    size_t at = block_above(self, address);
    return at && self->blocks[at - 1].address == address ? self->blocks[at - 1].end - address : 0;
}

bool trace_state_print(const struct trace_state *self, size_t index, char *text, size_t room)
{
    if (index >= self->count)
        return false;
    const struct trace_state_area *area = &self->areas[index];
    char pool[16] = "";
    if (area->pool)
        snprintf(pool, sizeof pool, ",%" PRIu32, area->pool);
    uint64_t bytes = area->end - area->address;
    if (area->kind == AREA_SEGMENT)
        snprintf(text, room, "segment,%" PRIu64 ",%" PRIu64 ",%" PRIu32 "%s", area->address, bytes,
                 area->stream, pool);
    else if (area->kind == AREA_RANGE)
        snprintf(text, room, "range,%" PRIu64 ",%" PRIu32 "%s", area->address, area->stream, pool);
    else
        snprintf(text, room, "pages,%" PRIu64 ",%" PRIu64, area->address, bytes);
    return true;
}
