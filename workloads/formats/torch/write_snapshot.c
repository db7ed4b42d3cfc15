/* A recorded trace as a PyTorch memory snapshot. The notes of the trace say what the allocator did.
 *
 * 1. The state at the start of the trace has no entries: its segments exist before, its blocks are
 *    allocated.
 * 2. Every other request, free request, completion and note of a segment is an entry.
 * 3. Marks are external annotations.
 * 4. The segments at the end follow from the entries; the blocks are those without a completion. If
 *    notes have the state at the end (`final_block`), they have the bytes of the blocks. Else a
 *    block has the requested bytes rounded up to 512, and in a segment of the large pool the rest
 *    up to the next block if that is at most 1 MiB, as PyTorch does it. */

#include "allocators/base/map.h"
#include "allocators/base/size.h"
#include "workloads/formats/formats.h"
#include "workloads/formats/requests.h"
#include "workloads/formats/torch/snapshot_image.h"

#define ROUND_BYTES 512u

struct making {
    struct trace_source *source;
    struct snapshot_image image;
    struct ar_map initial;    /* by id: 1 + the address of a block of the state at the start */
    struct ar_map indexes;    /* by id of a block: its index in `image.blocks` */
    struct ar_map end_blocks; /* by address of a block at the end: its bytes */
    struct ar_map end_pools;  /* by address of a segment at the end: its pool */
    struct ar_map devices;    /* by stream, if it is not 0 */
    uint32_t range_stream, range_pool;
    bool placed; /* an address was recorded */
};

static enum ar_status no_memory(struct ar_error *error)
{
    return ar_no_memory(error, "a snapshot");
}

static enum ar_status add_entry(struct making *self, const struct request_moment *moment,
                                enum snapshot_action action, struct ar_error *error)
{
    const struct request_block *block = moment->block;
    struct snapshot_entry entry = {
        .address = action == SNAPSHOT_OOM ? moment->free_bytes : block->address,
        .bytes = block->bytes,
        .time_us = moment->time_ns / 1000,
        .stream = block->stream,
        .pool = block->pool,
        .device = (uint16_t)block->device,
        .action = (uint8_t)action,
    };
    if (moment->tag)
        AR_TRY(snapshot_tag(&self->image, moment->tag, &entry.tag, error));
    return snapshot_add_entry(&self->image, &entry, error);
}

static enum ar_status add_block(struct making *self, const struct request_moment *moment,
                                struct ar_error *error)
{
    const struct request_block *from = moment->block;
    struct snapshot_block block = {
        .address = from->address,
        .bytes = ar_size_round_up(from->bytes, ROUND_BYTES),
        .requested_bytes = from->bytes,
        .pool = from->pool,
        .device = (uint16_t)from->device,
        .state = SNAPSHOT_ACTIVE,
    };
    if (moment->tag)
        AR_TRY(snapshot_tag(&self->image, moment->tag, &block.tag, error));
    if (ar_map_put(&self->indexes, from->id, self->image.block_count))
        return no_memory(error);
    return snapshot_add_block(&self->image, &block, error);
}

static enum ar_status on_served(struct making *self, const struct request_moment *moment,
                                struct ar_error *error)
{
    struct request_block *block = moment->block;
    uint64_t address;
    if (!block->bytes || block->pinned)
        return AR_OK;
    if (block->device >= SNAPSHOT_DEVICES)
        return ar_invalid(error, "device %" PRIu32 " is above the %d of a snapshot", block->device,
                          SNAPSHOT_DEVICES - 1);
    if (block->initial && ar_map_get(&self->initial, block->id, &address)) {
        block->address = address;
        block->placed = true;
    }
    if (block->device && ar_map_put(&self->devices, block->stream, block->device))
        return no_memory(error);
    self->placed |= block->placed;
    AR_TRY(add_block(self, moment, error));
    return !block->initial ? add_entry(self, moment, SNAPSHOT_ALLOC, error) : AR_OK;
}

static void forget_block(struct making *self, uint64_t id, uint64_t index)
{
    ar_map_remove(&self->indexes, id);
    self->image.blocks[index].bytes = 0; /* keep_live removes it */
}

static enum ar_status on_free(struct making *self, const struct request_moment *moment,
                              struct ar_error *error)
{
    uint64_t index;
    if (!ar_map_get(&self->indexes, moment->block->id, &index))
        return AR_OK;
    self->image.blocks[index].state = SNAPSHOT_PENDING;
    if (moment->kind == REQUEST_FREE_REQUESTED)
        return moment->begun ? add_entry(self, moment, SNAPSHOT_FREE_REQUESTED, error) : AR_OK;
    forget_block(self, moment->block->id, index);
    return add_entry(self, moment, SNAPSHOT_FREE_COMPLETED, error);
}

/* "annotate,ADDRESS,TEXT" */
static enum ar_status add_annotation(struct making *self, const struct request_moment *moment,
                                     uint64_t address, struct ar_error *error)
{
    struct snapshot_entry entry = {
        .address = address, .time_us = moment->time_ns / 1000, .action = SNAPSHOT_ANNOTATE};
    const char *text = strchr(moment->text, ',');
    text = text ? strchr(text + 1, ',') : NULL;
    if (text && text[1])
        AR_TRY(snapshot_tag(&self->image, text + 1, &entry.tag, error));
    return snapshot_add_entry(&self->image, &entry, error);
}

static enum ar_status cannot_be(const struct request_moment *moment, struct ar_error *error)
{
    return ar_invalid(error,
                      "the note \"!,%.60s\" has an address or a size that no snapshot can hold",
                      moment->text);
}

static enum ar_status on_note(struct making *self, const struct request_moment *moment,
                              struct ar_error *error)
{
    static const struct {
        const char *verb;
        enum snapshot_action action;
        bool before;
    } verbs[] = {
        {"segment_alloc", SNAPSHOT_SEGMENT_ALLOC, false},
        {"segment_free", SNAPSHOT_SEGMENT_FREE, false},
        {"segment_map", SNAPSHOT_SEGMENT_MAP, false},
        {"segment_unmap", SNAPSHOT_SEGMENT_UNMAP, false},
        {"snapshot", SNAPSHOT_SNAPSHOT, false},
        {"segment", SNAPSHOT_SEGMENT_ALLOC, true},
        {"pages", SNAPSHOT_SEGMENT_MAP, true},
    };
    uint64_t numbers[4];
    if (request_note(moment->text, "range", numbers, 3)) {
        self->range_stream = (uint32_t)numbers[1];
        self->range_pool = (uint32_t)numbers[2];
    }
    bool block = request_note(moment->text, "block", numbers, 3) && !strstr(moment->text, ",free");
    if (block && !snapshot_range_can_be(numbers[0], 0))
        return cannot_be(moment, error);
    if (block && ar_map_put(&self->initial, numbers[2], numbers[0]))
        return no_memory(error);
    if (request_note(moment->text, "final_block", numbers, 2) &&
        ar_map_put(&self->end_blocks, numbers[0], numbers[1]))
        return no_memory(error);
    if (request_note(moment->text, "final_segment", numbers, 4) &&
        ar_map_put(&self->end_pools, numbers[0], numbers[3]))
        return no_memory(error);
    if (trace_is_change(moment->event))
        return snapshot_add_change(&self->image, moment->text, moment->time_ns / 1000, error);
    if (request_note(moment->text, "annotate", numbers, 1))
        return add_annotation(self, moment, numbers[0], error);
    for (size_t i = 0; i < AR_COUNT(verbs); i++) {
        if (!request_note(moment->text, verbs[i].verb, numbers, 4))
            continue;
        if (!snapshot_range_can_be(numbers[0], numbers[1]))
            return cannot_be(moment, error);
        bool pages = verbs[i].before && verbs[i].action == SNAPSHOT_SEGMENT_MAP;
        const struct snapshot_entry entry = {
            .address = numbers[0],
            .bytes = numbers[1],
            .stream = pages ? self->range_stream : (uint32_t)numbers[2],
            .pool = pages ? self->range_pool : (uint32_t)numbers[3],
            .time_us = moment->time_ns / 1000,
            .action = (uint8_t)verbs[i].action,
            .before = verbs[i].before,
        };
        return snapshot_add_entry(&self->image, &entry, error);
    }
    return AR_OK;
}

static enum ar_status on_mark(struct making *self, const struct request_moment *moment,
                              struct ar_error *error)
{
    const struct trace_event *event = moment->event;
    const struct trace_attributes *keys = trace_attributes_of(self->source, event->attributes);
    uint16_t device = keys->device < SNAPSHOT_DEVICES ? (uint16_t)keys->device : 0;
    if (event->kind != TRACE_MARK)
        return AR_OK;
    return snapshot_add_mark(&self->image, trace_text_of(self->source, event->value), keys->rest,
                             device, moment->time_ns / 1000, error);
}

static enum ar_status take(void *argument, struct request_moment *moment, struct ar_error *error)
{
    struct making *self = argument;
    switch (moment->kind) {
    case REQUEST_SERVED:
        return on_served(self, moment, error);
    case REQUEST_FAILED:
        return add_entry(self, moment, SNAPSHOT_OOM, error);
    case REQUEST_FREE_REQUESTED:
    case REQUEST_COMPLETE:
        return on_free(self, moment, error);
    case REQUEST_NOTE:
        return on_note(self, moment, error);
    case REQUEST_OTHER:
        return on_mark(self, moment, error);
    }
    return AR_OK;
}

/* Keeps only the blocks that are live at the end, with the bytes that they were granted. */
static void keep_live(struct making *self)
{
    struct snapshot_image *image = &self->image;
    uint64_t bytes;
    size_t kept = 0;
    for (size_t i = 0; i < image->block_count; i++)
        if (image->blocks[i].bytes)
            image->blocks[kept++] = image->blocks[i];
    image->block_count = kept;
    image->sizes_known = self->end_blocks.count != 0;
    for (size_t i = 0; i < kept; i++)
        if (ar_map_get(&self->end_blocks, image->blocks[i].address, &bytes))
            image->blocks[i].bytes = bytes;
}

/* ---- pools of segments ----------------------------------------------------------------- */

/* Pages are mapped for the request that follows on their stream. */
static enum ar_status take_mapped_pools(struct snapshot_image *image, struct ar_error *error)
{
    struct ar_map pools = {0}; /* by stream */
    enum ar_status status = AR_OK;
    uint64_t pool;
    for (size_t i = image->entry_count; i-- > 0 && !status;) {
        struct snapshot_entry *entry = &image->entries[i];
        if (entry->action == SNAPSHOT_ALLOC || entry->action == SNAPSHOT_OOM)
            status = ar_map_put(&pools, entry->stream, entry->pool);
        else if (entry->action == SNAPSHOT_SEGMENT_MAP && !entry->before &&
                 ar_map_get(&pools, entry->stream, &pool))
            entry->pool = (uint32_t)pool;
    }
    ar_map_close(&pools);
    return status ? no_memory(error) : AR_OK;
}

/* Notes of segments name no pool: a segment has the pool of its blocks. */
static enum ar_status take_segment_pools(struct snapshot_image *image, struct ar_error *error)
{
    struct snapshot_areas live = {0}; /* segments and runs of pages at the current entry */
    enum ar_status status = take_mapped_pools(image, error);
    for (size_t i = 0; i < image->entry_count && !status; i++) {
        struct snapshot_entry *entry = &image->entries[i];
        const struct snapshot_area *area = snapshot_areas_at(&live, entry->address);
        struct snapshot_entry *made = area ? &image->entries[area->entry] : NULL;
        if (entry->action == SNAPSHOT_SEGMENT_ALLOC || entry->action == SNAPSHOT_SEGMENT_MAP) {
            const struct snapshot_area new = {
                .address = entry->address, .bytes = entry->bytes, .entry = i};
            status = snapshot_areas_add(&live, &new, error);
        } else if (entry->action == SNAPSHOT_ALLOC && made &&
                   made->action == SNAPSHOT_SEGMENT_ALLOC) {
            made->pool = entry->pool;
        } else if ((entry->action == SNAPSHOT_SEGMENT_FREE ||
                    entry->action == SNAPSHOT_SEGMENT_UNMAP) &&
                   made) {
            entry->pool = made->pool;
            status = snapshot_areas_cut(&live, entry->address, entry->bytes, error);
        }
    }
    free(live.items);
    return status;
}

/* Notes name no device: a stream belongs to the device of its blocks. */
static void take_devices(struct making *self)
{
    uint64_t device;
    for (size_t i = 0; i < self->image.entry_count; i++) {
        struct snapshot_entry *entry = &self->image.entries[i];
        bool of_segment =
            entry->action >= SNAPSHOT_SEGMENT_ALLOC && entry->action <= SNAPSHOT_SEGMENT_UNMAP;
        if (of_segment && ar_map_get(&self->devices, entry->stream, &device))
            entry->device = (uint16_t)device;
    }
}

static void take_end_pools(struct making *self)
{
    uint64_t pool;
    for (size_t i = 0; i < self->image.segment_count; i++)
        if (ar_map_get(&self->end_pools, self->image.segments[i].address, &pool))
            self->image.segments[i].pool = (uint32_t)pool;
}

static enum ar_status to_output(void *output, const void *bytes, size_t count,
                                struct ar_error *error)
{
    return trace_output_write(output, bytes, count, error);
}

static enum ar_status write_snapshot(struct trace_source *source, struct trace_output *output,
                                     struct ar_error *error)
{
    struct making self = {.source = source, .image.recorded = true};
    memcpy(self.image.name, source->info.name, sizeof self.image.name);
    memcpy(self.image.conf, source->info.conf, sizeof self.image.conf);
    enum ar_status status = requests_read(source, take, &self, error);
    if (!status && source->info.allocs && !self.placed)
        status = ar_invalid(error,
                            "%s holds no addresses, so it is no recording of an allocator; `run -p "
                            "POLICY -w TRACE --snapshot FILE` writes a snapshot of a replay",
                            source->info.name);
    keep_live(&self);
    take_devices(&self);
    AR_THEN(status, take_segment_pools(&self.image, error));
    AR_THEN(status, snapshot_settle(&self.image, error));
    take_end_pools(&self);
    AR_THEN(status, snapshot_write(&self.image, to_output, output, error));
    snapshot_image_close(&self.image);
    ar_map_close(&self.initial);
    ar_map_close(&self.indexes);
    ar_map_close(&self.devices);
    ar_map_close(&self.end_blocks);
    ar_map_close(&self.end_pools);
    return status;
}

const struct format_writer format_writer_snapshot = {
    .name = "snapshot",
    .ending = ".pickle",
    .summary = "a recorded trace as a PyTorch memory snapshot, written (.pickle)",
    .binary = true,
    .write = write_snapshot,
};
