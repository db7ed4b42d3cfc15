/* The layout is that of PyTorch 2.11, with every key that readers since 2.0 have looked for: a
 * dictionary of segments with their blocks, of a list of entries for each device, and of the
 * allocator's settings. Streams and pools are the ordinals of the trace. A tag stands where the
 * stack of the request would: as one frame, named like the tag, of a file named like the trace. */
#include "workloads/formats/torch/snapshot_writer.h"

#include <stdio.h>
#include <stdlib.h>

#include "workloads/formats/torch/snapshot_settings.h"

struct writer {
    struct pickle_writer pickle;
    const struct snapshot_image *image;
    uint32_t *frames; /* by tag: 1 + the place of its frames in the memo; 0: not written yet */
};

static void put_key_text(struct pickle_writer *pickle, const char *key, const char *text)
{
    pickle_put_text(pickle, key);
    pickle_put_text(pickle, text);
}

static void put_key_number(struct pickle_writer *pickle, const char *key, uint64_t number)
{
    pickle_put_text(pickle, key);
    pickle_put_unsigned(pickle, number);
}

static void put_key_bool(struct pickle_writer *pickle, const char *key, bool value)
{
    pickle_put_text(pickle, key);
    pickle_put_bool(pickle, value);
}

static void put_pool(struct pickle_writer *pickle, const char *key, uint32_t pool)
{
    pickle_put_text(pickle, key);
    pickle_put_unsigned(pickle, pool);
    pickle_put_unsigned(pickle, 0);
    pickle_make_pair(pickle);
}

static void put_frames(struct writer *self, uint32_t tag)
{
    struct pickle_writer *pickle = &self->pickle;
    pickle_put_text(pickle, "frames");
    if (tag && self->frames[tag - 1]) {
        pickle_put_again(pickle, self->frames[tag - 1] - 1);
        return;
    }
    pickle_begin_list(pickle);
    if (tag) {
        pickle_next_item(pickle);
        pickle_begin_dictionary(pickle);
        put_key_text(pickle, "filename", self->image->name);
        put_key_number(pickle, "line", 0);
        put_key_text(pickle, "name", self->image->tags.items[tag - 1]);
        pickle_end_dictionary(pickle);
    }
    pickle_end_list(pickle);
    if (tag)
        self->frames[tag - 1] = 1 + pickle_remember(pickle);
}

static void put_block(struct writer *self, const struct snapshot_block *block)
{
    static const char *const states[] = {"active_allocated", "active_pending_free", "inactive"};
    struct pickle_writer *pickle = &self->pickle;
    pickle_begin_dictionary(pickle);
    put_key_number(pickle, "address", block->address);
    put_key_number(pickle, "size", block->bytes);
    put_key_number(pickle, "requested_size", block->requested_bytes);
    put_key_text(pickle, "state", states[block->state]);
    put_frames(self, block->tag);
    pickle_end_dictionary(pickle);
}

static void put_segment(struct writer *self, const struct snapshot_segment *segment)
{
    struct pickle_writer *pickle = &self->pickle;
    const struct snapshot_block *blocks =
        segment->block_count ? self->image->blocks + segment->first_block : NULL;
    uint64_t allocated_bytes = 0, active_bytes = 0, requested_bytes = 0;
    for (size_t i = 0; i < segment->block_count; i++) {
        bool active = blocks[i].state != SNAPSHOT_INACTIVE;
        allocated_bytes += blocks[i].state == SNAPSHOT_ACTIVE ? blocks[i].bytes : 0;
        active_bytes += active ? blocks[i].bytes : 0;
        requested_bytes += active ? blocks[i].requested_bytes : 0;
    }
    pickle_begin_dictionary(pickle);
    put_key_number(pickle, "device", segment->device);
    put_key_number(pickle, "address", segment->address);
    put_key_number(pickle, "total_size", segment->bytes);
    put_key_number(pickle, "allocated_size", allocated_bytes);
    put_key_number(pickle, "active_size", active_bytes);
    put_key_number(pickle, "requested_size", requested_bytes);
    put_key_number(pickle, "stream", segment->stream);
    put_key_text(pickle, "segment_type", segment->small ? "small" : "large");
    put_pool(pickle, "segment_pool_id", segment->pool);
    put_key_bool(pickle, "is_expandable", segment->expandable);
    put_frames(self, 0);
    pickle_put_text(pickle, "blocks");
    pickle_begin_list(pickle);
    for (size_t i = 0; i < segment->block_count; i++) {
        pickle_next_item(pickle);
        put_block(self, &blocks[i]);
    }
    pickle_end_list(pickle);
    pickle_end_dictionary(pickle);
}

static void put_entry(struct writer *self, const struct snapshot_entry *entry)
{
    static const char *const actions[] = {
#define X(name, text) [SNAPSHOT_##name] = (text),
        SNAPSHOT_ACTIONS(X)
#undef X
    };
    struct pickle_writer *pickle = &self->pickle;
    pickle_begin_dictionary(pickle);
    put_key_text(pickle, "action", actions[entry->action]);
    put_key_number(pickle, entry->action == SNAPSHOT_OOM ? "device_free" : "addr", entry->address);
    put_key_number(pickle, "size", entry->bytes);
    put_key_number(pickle, "stream", entry->stream);
    put_key_number(pickle, "time_us", entry->time_us);
    put_key_text(pickle, "compile_context", "N/A");
    bool annotates = entry->action == SNAPSHOT_ANNOTATE && entry->tag;
    put_key_text(pickle, "user_metadata", annotates ? self->image->tags.items[entry->tag - 1] : "");
    put_pool(pickle, "pool_id", entry->pool);
    put_frames(self, annotates ? 0 : entry->tag);
    pickle_end_dictionary(pickle);
}

static void put_traces(struct writer *self)
{
    struct pickle_writer *pickle = &self->pickle;
    const struct snapshot_image *image = self->image;
    unsigned devices = 1;
    for (size_t i = 0; i < image->entry_count; i++)
        if (image->entries[i].device >= devices)
            devices = image->entries[i].device + 1u;
    for (size_t i = 0; i < image->segment_count; i++)
        if (image->segments[i].device >= devices)
            devices = image->segments[i].device + 1u;
    pickle_put_text(pickle, "device_traces");
    pickle_begin_list(pickle);
    for (unsigned device = 0; device < devices; device++) {
        pickle_next_item(pickle);
        pickle_begin_list(pickle);
        for (size_t i = 0; i < image->entry_count; i++) {
            if (image->entries[i].device != device || image->entries[i].before)
                continue;
            pickle_next_item(pickle);
            put_entry(self, &image->entries[i]);
        }
        pickle_end_list(pickle);
    }
    pickle_end_list(pickle);
}

/* `entry`: how many entries of its device's history come before, so that a reader need not guess
 * among those of one time. */
static void put_annotations(struct writer *self)
{
    struct pickle_writer *pickle = &self->pickle;
    const struct snapshot_image *image = self->image;
    uint64_t entries[SNAPSHOT_DEVICES] = {0};
    size_t at = 0;
    pickle_put_text(pickle, "external_annotations");
    pickle_begin_list(pickle);
    for (size_t i = 0; i < image->annotation_count; i++) {
        const struct snapshot_annotation *annotation = &image->annotations[i];
        for (; at < annotation->entry && at < image->entry_count; at++)
            entries[image->entries[at].device] += !image->entries[at].before;
        pickle_next_item(pickle);
        pickle_begin_dictionary(pickle);
        put_key_text(pickle, "name", image->tags.items[annotation->name - 1]);
        put_key_text(pickle, "stage", image->tags.items[annotation->stage - 1]);
        put_key_number(pickle, "device", annotation->device);
        put_key_number(pickle, "time_us", annotation->time_us);
        put_key_number(pickle, "entry", entries[annotation->device]);
        pickle_end_dictionary(pickle);
    }
    pickle_end_list(pickle);
}

static void put_settings(struct writer *self)
{
    struct pickle_writer *pickle = &self->pickle;
    struct snapshot_settings settings;
    snapshot_settings_read(self->image->conf, &settings);
    pickle_put_text(pickle, "allocator_settings");
    pickle_begin_dictionary(pickle);
    put_key_text(pickle, "PYTORCH_CUDA_ALLOC_CONF", self->image->conf);
    pickle_put_text(pickle, "max_split_size");
    pickle_put_integer(pickle, settings.max_split_bytes);
    pickle_put_text(pickle, "garbage_collection_threshold");
    pickle_put_real(pickle, settings.garbage_collection_threshold);
    put_key_bool(pickle, "expandable_segments", settings.expandable_segments);
    put_key_number(pickle, "pinned_num_register_threads", 1);
    put_key_bool(pickle, "release_lock_on_cudamalloc", false);
    put_key_bool(pickle, "pinned_use_cuda_host_register", false);
    pickle_put_text(pickle, "roundup_power2_divisions");
    pickle_begin_dictionary(pickle);
    for (unsigned i = 0; i < SNAPSHOT_DIVISIONS; i++) {
        char name[12];
        (void)snprintf(name, sizeof name, "%u", 1u << i);
        put_key_number(pickle, name, settings.roundup_power2_divisions[i]);
    }
    pickle_end_dictionary(pickle);
    pickle_end_dictionary(pickle);
}

enum ar_status snapshot_write(const struct snapshot_image *image, pickle_sink *sink, void *argument,
                              struct ar_error *error)
{
    struct writer *self = calloc(1, sizeof *self);
    if (self)
        self->frames = calloc(image->tags.count + 1, sizeof *self->frames);
    if (!self || !self->frames) {
        free(self);
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory to write a snapshot");
    }
    self->image = image;
    struct pickle_writer *pickle = &self->pickle;
    pickle_begin(pickle, sink, argument, error);
    pickle_begin_dictionary(pickle);
    pickle_put_text(pickle, "segments");
    pickle_begin_list(pickle);
    for (size_t i = 0; i < image->segment_count; i++) {
        pickle_next_item(pickle);
        put_segment(self, &image->segments[i]);
    }
    pickle_end_list(pickle);
    put_traces(self);
    put_settings(self);
    put_annotations(self);
    pickle_end_dictionary(pickle);
    enum ar_status status = pickle_end(pickle);
    free(self->frames);
    free(self);
    return status;
}
