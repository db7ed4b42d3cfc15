#include "sim/twin/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/array.h"
#include "allocators/base/size.h"

static struct regions *of(struct ar_backing *base)
{
    return (struct regions *)base; /* the relay is the first member, and its base its own */
}

/* New memory at a reserved range. Nothing is left after a failure. */
static enum ar_status fill(struct ar_backing *inner, uint64_t address, uint64_t bytes,
                           ar_backing_handle *handle)
{
    AR_TRY(ar_backing_create(inner, bytes, handle));
    enum ar_status status = ar_backing_map(inner, address, *handle);
    if (status == AR_OK) {
        status = ar_backing_access(inner, address, bytes);
        if (status != AR_OK && ar_backing_unmap(inner, address, bytes) != AR_OK)
            return AR_CORRUPT;
    }
    if (status != AR_OK && ar_backing_destroy(inner, *handle) != AR_OK)
        return AR_CORRUPT;
    return status;
}

static enum ar_status empty(struct ar_backing *inner, const struct regions_segment *segment)
{
    AR_TRY(ar_backing_unmap(inner, segment->address, segment->bytes));
    return ar_backing_destroy(inner, segment->handle);
}

static size_t place_of(const struct regions *self, uint64_t address)
{
    return ar_array_from(self->segments, self->segment_count, sizeof *self->segments,
                         offsetof(struct regions_segment, address), address);
}

static void insert(struct regions *self, const struct regions_segment *segment)
{
    size_t at = place_of(self, segment->address);
    memmove(&self->segments[at + 1], &self->segments[at],
            (self->segment_count - at) * sizeof *segment);
    self->segments[at] = *segment;
    self->segment_count++;
}

static enum ar_status segment_alloc(struct ar_backing *base, uint64_t bytes, uint64_t *address)
{
    struct regions *self = of(base);
    struct ar_backing *inner = self->relay.inner;
    if (!self->target)
        return ar_backing_segment_alloc(inner, bytes, address);
    if (!ar_array_make_room(&self->segments, self->segment_count, &self->segment_room,
                            sizeof *self->segments))
        return AR_HOST_MEMORY;
    struct regions_segment segment = {.bytes = ar_size_round_up(bytes, inner->page_bytes),
                                      .region = self->target - 1};
    AR_TRY(ar_backing_reserve(inner, segment.bytes, &segment.address));
    enum ar_status status = fill(inner, segment.address, segment.bytes, &segment.handle);
    if (status != AR_OK)
        return ar_backing_release(inner, segment.address) == AR_OK ? status : AR_CORRUPT;
    insert(self, &segment);
    *address = segment.address;
    return AR_OK;
}

static enum ar_status free_host_copy(struct regions *self, struct regions_segment *segment)
{
    if (!segment->host_address)
        return AR_OK;
    uint64_t address = segment->host_address;
    segment->host_address = 0;
    self->host_freed(self->argument, segment->host_account, segment->bytes);
    return ar_backing_segment_free(self->device->pinned, address);
}

static enum ar_status segment_free(struct ar_backing *base, uint64_t address)
{
    struct regions *self = of(base);
    struct ar_backing *inner = self->relay.inner;
    size_t at = place_of(self, address);
    if (at == self->segment_count || self->segments[at].address != address)
        return ar_backing_segment_free(inner, address);
    struct regions_segment *segment = &self->segments[at];
    enum ar_status status = AR_OK;
    self->device->ops->sync(self->device, UINT32_MAX);
    if (segment->state == REGIONS_AWAKE)
        status = empty(inner, segment);
    else
        self->asleep_bytes -= segment->bytes;
    AR_THEN(status, free_host_copy(self, segment));
    struct twin_blocks *orphans = &self->orphans;
    if (segment->copy.held &&
        !AR_ARRAY_ADD(orphans->items, orphans->count, orphans->room, segment->copy))
        status = AR_HOST_MEMORY;
    AR_THEN(status, ar_backing_release(inner, address));
    memmove(segment, segment + 1, (self->segment_count - at - 1) * sizeof *segment);
    self->segment_count--;
    return status;
}

void regions_open(struct regions *self, struct ar_device *device)
{
    *self = (struct regions){.device = device};
    relay_open(&self->relay, device->backing);
    self->relay.ops.segment_alloc = segment_alloc;
    self->relay.ops.segment_free = segment_free;
}

void regions_close(struct regions *self)
{
    free(self->kinds);
    free(self->segments);
    free(self->orphans.items);
    *self = (struct regions){0};
}

static uint32_t find_kind(const struct regions *self, const struct twin_region *region)
{
    for (size_t i = 0; i < self->kind_count; i++) {
        const struct regions_kind *kind = &self->kinds[i];
        if (kind->kind == region->kind && kind->backup == region->backup &&
            strcmp(kind->tag, region->tag) == 0)
            return (uint32_t)i + 1;
    }
    return 0;
}

enum ar_status regions_begin(struct regions *self, const struct twin_region *region, uint32_t *pool,
                             uint32_t new_pool, struct ar_error *error)
{
    uint32_t known =
        region->kind == TWIN_REGION_POOL && !region->keeps_pool ? 0 : find_kind(self, region);
    if (!known) {
        struct regions_kind kind = {
            .kind = region->kind, .backup = region->backup, .keeps_pool = region->keeps_pool};
        kind.pool = region->kind == TWIN_REGION_PRELOAD ? 0 : new_pool;
        snprintf(kind.tag, sizeof kind.tag, "%s", region->tag);
        if (!AR_ARRAY_ADD(self->kinds, self->kind_count, self->kind_room, kind))
            return ar_error_set(error, AR_HOST_MEMORY, "no host memory for a region");
        known = (uint32_t)self->kind_count;
    }
    self->open = known;
    *pool = self->kinds[known - 1].pool;
    return AR_OK;
}

struct regions_segment *regions_find(const struct regions *self, uint64_t address)
{
    size_t above = ar_array_above(self->segments, self->segment_count, sizeof *self->segments,
                                  offsetof(struct regions_segment, address), address);
    if (!above)
        return NULL;
    struct regions_segment *segment = &self->segments[above - 1];
    return address - segment->address < segment->bytes ? segment : NULL;
}

enum ar_status regions_sleep(struct regions *self, struct regions_segment *segment,
                             enum regions_state state)
{
    AR_TRY(empty(self->relay.inner, segment));
    segment->state = state;
    self->asleep_bytes += segment->bytes;
    return AR_OK;
}

enum ar_status regions_wake(struct regions *self, struct regions_segment *segment)
{
    AR_TRY(fill(self->relay.inner, segment->address, segment->bytes, &segment->handle));
    segment->state = REGIONS_AWAKE;
    self->asleep_bytes -= segment->bytes;
    return AR_OK;
}
