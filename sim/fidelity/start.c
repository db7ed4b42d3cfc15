/* The state in which a recording begins, from its notes (FORMAT.md, "Notes"):
 *
 * 1. Segments, ranges and pages are areas; pages lie in the last range at or below them.
 * 2. Blocks lie in segments or pages. Memory without a block is free.
 * 3. The address space between the pages of a range, and before the first page, has no memory. */

#include "allocators/base/array.h"
#include "allocators/base/size.h"
#include "allocators/decorators/forward.h"
#include "sim/fidelity/recording.h"

static enum ar_status misread(const char *text, struct ar_error *error)
{
    return ar_invalid(error,
                      "the line \"!,%.80s\" before the first event is not one of "
                      "!,segment,ADDRESS,BYTES,STREAM[,POOL], !,range,ADDRESS,STREAM[,POOL], "
                      "!,pages,ADDRESS,BYTES and !,block,ADDRESS,BYTES,ID|free",
                      text);
}

static enum ar_status take_area(struct recorded_start *start, const char *text,
                                struct ar_error *error)
{
    struct recorded_area area = {.pages = recording_is_verb(text, "pages")};
    bool is_range = recording_is_verb(text, "range");
    const char *at = text + strcspn(text, ",");
    if (!recording_number(&at, &area.address) ||
        (!is_range && (!recording_number(&at, &area.bytes) || !area.bytes)) ||
        (area.pages ? *at != '\0' : !recording_owner(at, &area)) ||
        area.bytes > UINT64_MAX - area.address)
        return misread(text, error);
    AR_TRY(AR_APPEND(start->areas, start->area_count, start->area_room, area, error,
                     "what was recorded"));
    start->held_bytes += area.bytes;
    return AR_OK;
}

static enum ar_status take_block(struct recorded_start *start, const char *text,
                                 struct ar_error *error)
{
    struct recorded_block block = {.request = RECORDED_NONE};
    const char *at = text + strcspn(text, ",");
    uint64_t id;
    if (!recording_number(&at, &block.address) || !recording_number(&at, &block.bytes))
        return misread(text, error);
    if (recording_number(&at, &id))
        block.request = (size_t)id; /* ids number the requests */
    else if (strcmp(at, ",free") == 0)
        at += strlen(at);
    if (*at || !block.bytes || block.bytes > UINT64_MAX - block.address)
        return misread(text, error);
    return AR_APPEND(start->blocks, start->block_count, start->block_room, block, error,
                     "what was recorded");
}

enum ar_status recorded_start_note(struct recorded_start *start, const char *text, bool *known,
                                   struct ar_error *error)
{
    *known = true;
    if (recording_is_verb(text, "segment") || recording_is_verb(text, "range") ||
        recording_is_verb(text, "pages"))
        return take_area(start, text, error);
    if (recording_is_verb(text, "block"))
        return take_block(start, text, error);
    *known = false;
    return AR_OK;
}

/* A range sorts before pages at the same address. */
static int areas_by_address(const void *left, const void *right)
{
    const struct recorded_area *a = left, *b = right;
    AR_ORDER(a->address, b->address);
    return a->pages - b->pages;
}

/* The state of the construction of ranges. */
struct making {
    struct recorded_start *start;
    struct recording *recording;
    size_t block;                      /* the next one */
    const struct recorded_area *owner; /* the current segment or range */
    uint64_t end;                      /* of the ranges made so far */
};

static void add(struct making *making, uint64_t address, uint64_t bytes,
                enum ar_policy_range_state state)
{
    struct recorded_start *start = making->start;
    struct ar_policy_range *last =
        start->range_count ? &start->ranges[start->range_count - 1] : NULL;
    if (!bytes)
        return;
    making->end = address + bytes;
    if (last && state != AR_POLICY_RANGE_USED && last->state == state &&
        last->segment_address == making->owner->address) {
        last->bytes += bytes;
        return;
    }
    start->ranges[start->range_count++] = (struct ar_policy_range){
        .address = address,
        .bytes = bytes,
        .segment_address = making->owner->address,
        .stream = making->owner->stream,
        .pool = making->owner->pool,
        .state = state,
    };
}

static enum ar_status add_used(struct making *making, const struct recorded_block *block,
                               struct ar_error *error)
{
    struct recorded_start *start = making->start;
    struct recorded_request *request = block->request < making->recording->request_count
                                           ? &making->recording->requests[block->request]
                                           : NULL;
    if (!request || request->event >= making->recording->first_event || request->initial)
        return ar_invalid(error,
                          "the block at %" PRIu64 " before the first event is request %zu, which "
                          "must be one of the first events, with initial=yes, and of one block",
                          block->address, block->request);
    if (request->request.bytes > block->bytes || !request->request.bytes)
        return ar_invalid(error,
                          "the block at %" PRIu64 " before the first event has %" PRIu64
                          " bytes, and request %zu asks for %" PRIu64,
                          block->address, block->bytes, block->request, request->request.bytes);
    request->initial = request->known = true;
    request->start = start->used_count;
    request->address = block->address;
    add(making, block->address, block->bytes, AR_POLICY_RANGE_USED);
    start->ranges[start->range_count - 1].requested_bytes = request->request.bytes;
    start->used[start->used_count++] = block->request;
    return AR_OK;
}

/* Adds the blocks of a segment or a run of pages, and the free blocks between them. */
static enum ar_status fill(struct making *making, const struct recorded_area *area,
                           struct ar_error *error)
{
    struct recorded_start *start = making->start;
    uint64_t end = area->address + area->bytes;
    making->end = area->address;
    for (; making->block < start->block_count; making->block++) {
        const struct recorded_block *block = &start->blocks[making->block];
        if (block->address >= end)
            break;
        if (block->address < making->end || block->bytes > end - block->address)
            return ar_invalid(error,
                              "the block at %" PRIu64 " before the first event lies in no segment, "
                              "or in another block",
                              block->address);
        add(making, making->end, block->address - making->end, AR_POLICY_RANGE_FREE);
        if (block->request == RECORDED_NONE)
            add(making, block->address, block->bytes, AR_POLICY_RANGE_FREE);
        else
            AR_TRY(add_used(making, block, error));
    }
    add(making, making->end, end - making->end, AR_POLICY_RANGE_FREE);
    return AR_OK;
}

static enum ar_status make_area(struct making *making, const struct recorded_area *area,
                                struct ar_error *error)
{
    bool in_range = area->pages && making->owner && !making->owner->bytes;
    if (area->address < making->end || (area->pages && !in_range))
        return ar_invalid(error,
                          "the segment or run of pages at %" PRIu64 " before the first event lies "
                          "in another one, or in no range",
                          area->address);
    if (in_range)
        add(making, making->end, area->address - making->end, AR_POLICY_RANGE_UNMAPPED);
    else
        making->owner = area;
    if (area->bytes)
        return fill(making, area, error);
    making->end = area->address;
    return AR_OK;
}

enum ar_status recorded_start_finish(struct recording *recording, struct ar_error *error)
{
    struct recorded_start *start = &recording->start;
    struct making making = {.start = start, .recording = recording};
    /* Each block may have a free block before it; each area may have one at its end and unmapped
     * space before it. */
    start->ranges = calloc(2 * (start->block_count + start->area_count) + 1, sizeof *start->ranges);
    start->used = calloc(start->block_count + 1, sizeof *start->used);
    AR_TRY_MEMORY(start->ranges && start->used, error, "the state at the start");
    qsort(start->areas, start->area_count, sizeof *start->areas, areas_by_address);
    AR_ARRAY_SORT(start->blocks, start->block_count, address);
    for (size_t i = 0; i < start->area_count; i++)
        AR_RAISE(recording->highest_address, start->areas[i].address + start->areas[i].bytes);
    for (size_t i = 0; i < start->area_count; i++)
        AR_TRY(make_area(&making, &start->areas[i], error));
    if (making.block < start->block_count)
        return ar_invalid(error,
                          "the block at %" PRIu64 " before the first event lies in no segment",
                          start->blocks[making.block].address);
    return AR_OK;
}

void recorded_start_close(struct recorded_start *start)
{
    free(start->areas);
    free(start->blocks);
    free(start->ranges);
    free(start->used);
}

/* Before the policy adopts the state, the device gets its memory. */

struct starting {
    struct forward forward;
    struct recorded_device *device;
    struct ar_policy_block *blocks; /* of the start; granted_bytes 0: the request failed */
    size_t block_bytes;
};

static enum ar_status starting_alloc(struct ar_policy *base,
                                     const struct ar_policy_request *request,
                                     struct ar_policy_block *out)
{
    struct starting *self = (struct starting *)base;
    const struct recorded_request *recorded = self->device->request;
    if (!recorded || !recorded->initial)
        return forward_alloc(base, request, out);
    *out = self->blocks[recorded->start];
    return out->granted_bytes ? AR_OK : AR_NO_MEMORY;
}

static void starting_destroy(struct ar_policy *base)
{
    struct starting *self = (struct starting *)base;
    ar_host_free(self->forward.host, self->blocks, self->block_bytes);
    forward_destroy(base);
}

/* A range ends at the next one, or at the largest size that an allocator may have reserved. */
static uint64_t range_bytes(const struct recorded_device *device, size_t index)
{
    const struct recorded_start *start = &device->recording->start;
    const uint64_t address = start->areas[index].address;
    uint64_t bytes = ar_size_round_up(2 * device->base.props.total_bytes, AR_GIB), top = address;
    uint64_t mapped_bytes = 0;
    for (size_t i = index + 1; i < start->area_count; i++) {
        const struct recorded_area *area = &start->areas[i];
        if (!area->pages && area->address - address < bytes)
            bytes = area->address - address;
        if (!area->pages)
            break;
        top = area->address + area->bytes;
        mapped_bytes += area->bytes;
    }
    /* Pages that were unmapped before the start are not known, so a nearby range is assumed to be
     * this range. */
    return recorded_range_bytes(device->recording, 0, address, top, mapped_bytes, AR_GIB, bytes);
}

static enum ar_status put_places(struct recorded_device *device)
{
    const struct recorded_start *start = &device->recording->start;
    for (size_t i = 0; i < start->area_count; i++) {
        const struct recorded_area *area = &start->areas[i];
        bool is_range = !area->bytes;
        if (area->pages) {
            struct recorded_place *place = recorded_place_at(device, area->address);
            if (!place || !place->range)
                return AR_INVALID; /* pages above the largest end of the range */
            if (!place->mapped_bytes)
                place->ordinal = device->base.counters.segments_made++;
            place->mapped_bytes += area->bytes;
            continue;
        }
        AR_TRY(recorded_place_add(
            device, (struct recorded_place){
                        .address = area->address,
                        .bytes = is_range ? range_bytes(device, i) : area->bytes,
                        .ordinal = is_range ? UINT64_MAX : device->base.counters.segments_made++,
                        .pool = area->pool,
                        .range = is_range,
                    }));
    }
    return AR_OK;
}

static enum ar_status adopt(struct ar_policy *inner, struct recorded_device *device,
                            struct ar_policy_block *blocks, struct ar_error *error)
{
    const struct recorded_start *start = &device->recording->start;
    enum ar_status status = put_places(device);
    AR_THEN(status, inner->ops->adopt(inner, start->ranges, start->range_count, blocks));
    if (status == AR_INVALID)
        return ar_error_set(error, status,
                            "policy %s can never have reached the state in which the recording "
                            "begins; does the recording name its settings?",
                            inner->ops->name);
    return status ? ar_error_set(error, status, "policy %s cannot adopt the state at the start: %s",
                                 inner->ops->name, ar_status_meaning(status))
                  : AR_OK;
}

static enum ar_status request_all(struct ar_policy *inner, struct recorded_device *device,
                                  struct ar_policy_block *blocks, struct ar_error *error)
{
    const struct recording *recording = device->recording;
    enum ar_status status = AR_OK;
    device->step = STEP_START;
    for (size_t i = 0; i < recording->start.used_count && !status; i++) {
        status = ar_policy_alloc(inner, &recording->requests[recording->start.used[i]].request,
                                 &blocks[i]);
        if (status == AR_NO_MEMORY) {
            blocks[i] = (struct ar_policy_block){0};
            status = AR_OK;
        }
    }
    device->step = STEP_OTHER;
    return status
               ? ar_error_set(error, status, "policy %s cannot serve the blocks of the start: %s",
                              inner->ops->name, ar_status_meaning(status))
               : AR_OK;
}

enum ar_status starting_wrap(struct ar_host *host, struct ar_policy *inner,
                             struct recorded_device *device, struct ar_policy **out,
                             struct ar_error *error)
{
    const struct recorded_start *start = &device->recording->start;
    struct fidelity_result *result = device->result;
    *out = inner;
    if (!start->area_count)
        return AR_OK;
    size_t block_bytes = (start->used_count + 1) * sizeof(struct ar_policy_block);
    struct ar_policy_block *blocks = ar_host_alloc(host, block_bytes);
    AR_TRY_MEMORY(blocks, error, "the state at the start");
    result->start = inner->ops->adopt ? FIDELITY_ADOPTED : FIDELITY_REQUESTED;
    result->start_blocks = start->used_count;
    for (size_t i = 0; i < start->area_count; i++)
        result->start_segments += start->areas[i].bytes != 0;
    enum ar_status status = inner->ops->adopt ? adopt(inner, device, blocks, error)
                                              : request_all(inner, device, blocks, error);
    struct starting *self =
        status ? NULL : forward_create(host, sizeof *self, "starting", inner, error);
    if (!self) {
        ar_host_free(host, blocks, block_bytes);
        return status ? status : AR_HOST_MEMORY;
    }
    self->device = device;
    self->blocks = blocks;
    self->block_bytes = block_bytes;
    self->forward.ops.alloc = starting_alloc;
    self->forward.ops.destroy = starting_destroy;
    *out = &self->forward.base;
    return AR_OK;
}
