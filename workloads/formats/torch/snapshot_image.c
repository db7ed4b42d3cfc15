/* Areas, and an image. Settling it: the segments at the end.
 *
 * 1. Segments made and not freed, by address, each as it was made.
 * 2. Pages mapped and not unmapped. Runs that touch are one segment, because a block may be in
 *    both. The viewer goes backwards through the trace from here: an entry must find what it
 *    undoes.
 * 3. A block goes into the segment that it begins in. A block outside of all of them, of a policy
 *    that takes its memory from nowhere, gets a segment of its own. A recording that has no
 *    segments at all gets them for all its blocks, also those that were freed.
 * 4. Bytes that no block fills are a free block, so that the blocks of a segment add up to it.
 *
 * Writing: the layout is that of PyTorch 2.11, with every key that readers since 2.0 use: a
 * dictionary of segments with their blocks, of a list of entries for each device, and of the
 * allocator's settings. Streams and pools are the ordinals of the trace. A tag takes the place of
 * the stack of the request: one frame, named like the tag, of a file named like the trace. */
#include "workloads/formats/torch/snapshot_image.h"

#include "allocators/base/array.h"
#include "allocators/base/map.h"
#include "allocators/base/size.h"
#include "workloads/formats/torch/snapshot_tree.h"

#define SMALL_SEGMENT_BYTES (2 * AR_MIB)
#define SMALL_BLOCK_BYTES   AR_MIB
#define ROUND_BYTES         512u

void snapshot_image_close(struct snapshot_image *self)
{
    free(self->entries);
    free(self->blocks);
    free(self->segments);
    free(self->annotations);
    texts_close(&self->tags);
    *self = (struct snapshot_image){0};
}

enum ar_status snapshot_add_entry(struct snapshot_image *self, const struct snapshot_entry *entry,
                                  struct ar_error *error)
{
    return AR_APPEND(self->entries, self->entry_count, self->entry_room, *entry, error,
                     "a snapshot");
}

enum ar_status snapshot_add_block(struct snapshot_image *self, const struct snapshot_block *block,
                                  struct ar_error *error)
{
    return AR_APPEND(self->blocks, self->block_count, self->block_room, *block, error,
                     "a snapshot");
}

static enum ar_status add_segment(struct snapshot_image *self,
                                  const struct snapshot_segment *segment, struct ar_error *error)
{
    return AR_APPEND(self->segments, self->segment_count, self->segment_room, *segment, error,
                     "a snapshot");
}

enum ar_status snapshot_tag(struct snapshot_image *self, const char *text, uint32_t *tag,
                            struct ar_error *error)
{
    enum ar_status status = texts_intern(&self->tags, text, strlen(text), tag, error);
    *tag += !status;
    return status;
}

static enum ar_status annotate(struct snapshot_image *self, const char *name, const char *stage,
                               uint16_t device, uint64_t time_us, struct ar_error *error)
{
    struct snapshot_annotation annotation = {
        .time_us = time_us, .entry = self->entry_count, .device = device};
    AR_TRY(snapshot_tag(self, name, &annotation.name, error));
    AR_TRY(snapshot_tag(self, stage, &annotation.stage, error));
    return AR_APPEND(self->annotations, self->annotation_count, self->annotation_room, annotation,
                     error, "a snapshot");
}

enum ar_status snapshot_add_mark(struct snapshot_image *self, const char *label, const char *keys,
                                 uint16_t device, uint64_t time_us, struct ar_error *error)
{
    struct snapshot_words words;
    snapshot_words_of(label, keys, &words);
    return annotate(self, words.name, words.stage, device, time_us, error);
}

enum ar_status snapshot_add_change(struct snapshot_image *self, const char *note, uint64_t time_us,
                                   struct ar_error *error)
{
    char name[SNAPSHOT_CHANGE_BYTES];
    if (!snapshot_change_name(note, self->conf, name))
        return ar_invalid(error,
                          "the note \"!,%.60s\", after settings of \"%.60s\", would not come back "
                          "from a snapshot: settings there have fewer than %zu bytes and no arrow "
                          "(->), and a limit is a number of bytes",
                          note, self->conf, sizeof self->conf);
    if (strncmp(note, "settings,", 9) == 0)
        (void)snprintf(self->conf, sizeof self->conf, "%s", note + 9);
    AR_TRY(annotate(self, name, "START", 0, time_us, error));
    return annotate(self, name, "END", 0, time_us, error);
}

static enum ar_status collect_made(struct snapshot_image *self, struct ar_error *error)
{
    /* From address to the entry that made the segment. Addresses of several GPUs may be equal. */
    struct ar_map made[SNAPSHOT_DEVICES] = {{0}};
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < self->entry_count && !status; i++) {
        const struct snapshot_entry *entry = &self->entries[i];
        struct ar_map *map = &made[entry->device];
        if (entry->action == SNAPSHOT_SEGMENT_ALLOC)
            status = ar_map_put(map, entry->address, i);
        else if (entry->action == SNAPSHOT_SEGMENT_FREE)
            ar_map_remove(map, entry->address);
    }
    if (status)
        (void)ar_no_memory(error, "a snapshot");
    for (size_t i = 0; i < self->entry_count && !status; i++) {
        const struct snapshot_entry *entry = &self->entries[i];
        uint64_t last;
        if (entry->action != SNAPSHOT_SEGMENT_ALLOC ||
            !ar_map_get(&made[entry->device], entry->address, &last) || last != i)
            continue;
        const struct snapshot_segment segment = {.address = entry->address,
                                                 .bytes = entry->bytes,
                                                 .stream = entry->stream,
                                                 .pool = entry->pool,
                                                 .device = entry->device};
        status = add_segment(self, &segment, error);
    }
    for (size_t i = 0; i < SNAPSHOT_DEVICES; i++)
        ar_map_close(&made[i]);
    return status;
}

static int compare_places(uint16_t left_device, uint64_t left, uint16_t right_device,
                          uint64_t right)
{
    AR_ORDER(left_device, right_device);
    return (left > right) - (left < right);
}

/* Joins an area with the one before it if they touch. */
static void join(struct snapshot_areas *areas, size_t at)
{
    if (!at || at >= areas->count ||
        areas->items[at - 1].address + areas->items[at - 1].bytes != areas->items[at].address)
        return;
    areas->items[at - 1].bytes += areas->items[at].bytes;
    snapshot_areas_drop(areas, at);
}

static enum ar_status map(struct snapshot_areas *runs, const struct snapshot_entry *entry,
                          struct ar_error *error)
{
    const struct snapshot_area run = {.address = entry->address,
                                      .bytes = entry->bytes,
                                      .stream = entry->stream,
                                      .pool = entry->pool};
    enum ar_status status = snapshot_areas_add(runs, &run, error);
    size_t after = snapshot_areas_above(runs, entry->address);
    join(runs, after);
    join(runs, after - 1);
    return status;
}

/* The runs of pages of each device; of a device without any the list is empty. */
static enum ar_status collect_mapped(struct snapshot_image *self, struct ar_error *error)
{
    struct snapshot_areas devices[SNAPSHOT_DEVICES] = {{0}};
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < self->entry_count && !status; i++) {
        const struct snapshot_entry *entry = &self->entries[i];
        if (entry->action == SNAPSHOT_SEGMENT_MAP)
            status = map(&devices[entry->device], entry, error);
        else if (entry->action == SNAPSHOT_SEGMENT_UNMAP)
            status =
                snapshot_areas_cut(&devices[entry->device], entry->address, entry->bytes, error);
    }
    for (uint16_t device = 0; device < SNAPSHOT_DEVICES; device++) {
        const struct snapshot_areas *runs = &devices[device];
        for (size_t i = 0; i < runs->count && !status; i++) {
            const struct snapshot_segment segment = {.address = runs->items[i].address,
                                                     .bytes = runs->items[i].bytes,
                                                     .stream = runs->items[i].stream,
                                                     .pool = runs->items[i].pool,
                                                     .device = device,
                                                     .expandable = true};
            status = add_segment(self, &segment, error);
        }
        free(runs->items);
    }
    return status;
}

static int by_segment_place(const void *left, const void *right)
{
    const struct snapshot_segment *a = left, *b = right;
    return compare_places(a->device, a->address, b->device, b->address);
}

static int by_block_place(const void *left, const void *right)
{
    const struct snapshot_block *a = left, *b = right;
    return compare_places(a->device, a->address, b->device, b->address);
}

static void sort_segments(struct snapshot_image *self)
{
    if (self->segment_count)
        qsort(self->segments, self->segment_count, sizeof *self->segments, by_segment_place);
}

static bool is_of_segment(const struct snapshot_entry *entry)
{
    return entry->action >= SNAPSHOT_SEGMENT_ALLOC && entry->action <= SNAPSHOT_SEGMENT_UNMAP;
}

/* The places of all blocks as segments; none if the entries say which segments there were. */
static enum ar_status add_places(struct snapshot_image *self, struct ar_error *error)
{
    for (size_t i = 0; i < self->entry_count; i++)
        if (is_of_segment(&self->entries[i]))
            return AR_OK;
    for (size_t i = 0; i < self->entry_count; i++) {
        const struct snapshot_entry *entry = &self->entries[i];
        const struct snapshot_segment place = {.address = entry->address,
                                               .bytes = ar_size_round_up(entry->bytes, ROUND_BYTES),
                                               .stream = entry->stream,
                                               .pool = entry->pool,
                                               .device = entry->device};
        if (entry->action == SNAPSHOT_ALLOC || entry->action == SNAPSHOT_FREE_REQUESTED ||
            entry->action == SNAPSHOT_FREE_COMPLETED)
            AR_TRY(add_segment(self, &place, error));
    }
    for (size_t i = 0; i < self->block_count; i++) {
        const struct snapshot_block *block = &self->blocks[i];
        const struct snapshot_segment place = {.address = block->address,
                                               .bytes = block->bytes,
                                               .pool = block->pool,
                                               .device = block->device};
        AR_TRY(add_segment(self, &place, error));
    }
    return AR_OK;
}

/* A recording without segments gets one for each run of addresses in which blocks overlap. */
static enum ar_status house_all(struct snapshot_image *self, struct ar_error *error)
{
    size_t kept = 0;
    AR_TRY(add_places(self, error));
    sort_segments(self);
    for (size_t i = 0; i < self->segment_count; i++) {
        const struct snapshot_segment one = self->segments[i];
        struct snapshot_segment *last = kept ? &self->segments[kept - 1] : NULL;
        if (!last || last->device != one.device || one.address - last->address >= last->bytes)
            self->segments[kept++] = one;
        else if (one.address - last->address + one.bytes > last->bytes)
            last->bytes = one.address - last->address + one.bytes;
    }
    self->segment_count = kept;
    return AR_OK;
}

/* Whether a block is in a segment. */
static bool holds(const struct snapshot_segment *segment, const struct snapshot_block *block)
{
    return segment->device == block->device && segment->address <= block->address &&
           block->address - segment->address < segment->bytes;
}

/* Rule 3: segments for blocks that are in none. */
static enum ar_status house_strays(struct snapshot_image *self, struct ar_error *error)
{
    size_t at = 0, known = self->segment_count;
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < self->block_count && !status; i++) {
        const struct snapshot_block *block = &self->blocks[i];
        while (at < known && compare_places(self->segments[at].device,
                                            self->segments[at].address + self->segments[at].bytes,
                                            block->device, block->address) <= 0)
            at++;
        if (at < known && holds(&self->segments[at], block))
            continue;
        const struct snapshot_segment own = {.address = block->address,
                                             .bytes = block->bytes,
                                             .pool = block->pool,
                                             .device = block->device};
        status = add_segment(self, &own, error);
    }
    sort_segments(self);
    return status;
}

/* Blocks and notes that contradict each other make segments that overlap. */
static enum ar_status check_apart(const struct snapshot_image *self, struct ar_error *error)
{
    for (size_t i = 1; i < self->segment_count; i++) {
        const struct snapshot_segment *one = &self->segments[i - 1], *next = one + 1;
        if (one->device == next->device && next->address - one->address < one->bytes)
            return ar_invalid(error,
                              "the segments at %" PRIu64 " and %" PRIu64
                              " overlap, which no snapshot can hold: addresses or sizes are wrong",
                              one->address, next->address);
    }
    return AR_OK;
}

/* PyTorch's small pool has segments of 2 MiB, or ranges in which no block is large. */
static void classify(struct snapshot_segment *segment, uint64_t largest_bytes)
{
    segment->small = segment->expandable ? largest_bytes && largest_bytes <= SMALL_BLOCK_BYTES
                                         : segment->bytes <= SMALL_SEGMENT_BYTES;
}

static enum ar_status add_free(struct snapshot_image *out, const struct snapshot_segment *segment,
                               uint64_t from, uint64_t to, struct ar_error *error)
{
    const struct snapshot_block block = {.address = from,
                                         .bytes = to - from,
                                         .pool = segment->pool,
                                         .device = segment->device,
                                         .state = SNAPSHOT_INACTIVE};
    return from < to ? snapshot_add_block(out, &block, error) : AR_OK;
}

/* PyTorch does not split off a small rest of a free block, except in its small pool and in ranges
 * that grow. */
static bool keeps_rest(const struct snapshot_segment *segment, uint64_t rest_bytes)
{
    return !segment->expandable && segment->bytes != SMALL_SEGMENT_BYTES &&
           rest_bytes <= SMALL_BLOCK_BYTES;
}

/* Rule 4 for one segment, whose blocks begin at `*next`. They go to `out`. */
static enum ar_status tile(const struct snapshot_image *self, struct snapshot_segment *segment,
                           size_t *next, struct snapshot_image *out, struct ar_error *error)
{
    uint64_t at = segment->address, end = segment->address + segment->bytes, largest_bytes = 0;
    enum ar_status status = AR_OK;
    segment->first_block = out->block_count;
    for (; *next < self->block_count && holds(segment, &self->blocks[*next]) && !status; ++*next) {
        struct snapshot_block block = self->blocks[*next];
        bool is_last = *next + 1 == self->block_count || !holds(segment, &self->blocks[*next + 1]);
        uint64_t limit = is_last ? end : self->blocks[*next + 1].address;
        if (block.address < at || block.address == limit)
            continue; /* two at one place: a recording that contradicts itself */
        if (self->recorded && !self->sizes_known &&
            keeps_rest(segment, limit - block.address - block.bytes))
            block.bytes = limit - block.address;
        AR_LOWER(block.bytes, limit - block.address);
        AR_LOWER(block.requested_bytes, block.bytes);
        AR_RAISE(largest_bytes, block.requested_bytes);
        if (block.pool)
            segment->pool = block.pool;
        status = add_free(out, segment, at, block.address, error);
        AR_THEN(status, snapshot_add_block(out, &block, error));
        at = block.address + block.bytes;
    }
    AR_THEN(status, add_free(out, segment, at, end, error));
    segment->block_count = out->block_count - segment->first_block;
    classify(segment, largest_bytes);
    return status;
}

/* The segment that an address is in, or NULL. The segments are sorted. */
static struct snapshot_segment *segment_at(const struct snapshot_image *self, uint16_t device,
                                           uint64_t address)
{
    size_t low = 0, high = self->segment_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct snapshot_segment *segment = &self->segments[middle];
        if (compare_places(segment->device, segment->address, device, address) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    struct snapshot_segment *segment = low ? &self->segments[low - 1] : NULL;
    bool inside =
        segment && segment->device == device && address - segment->address < segment->bytes;
    return inside ? segment : NULL;
}

/* In recordings only blocks have pools: a segment has that of its last block. */
static void take_pools(struct snapshot_image *self)
{
    for (size_t i = 0; i < self->entry_count; i++) {
        const struct snapshot_entry *entry = &self->entries[i];
        struct snapshot_segment *segment = entry->action == SNAPSHOT_ALLOC
                                               ? segment_at(self, entry->device, entry->address)
                                               : NULL;
        if (segment)
            segment->pool = entry->pool;
    }
}

static enum ar_status tile_all(struct snapshot_image *self, struct ar_error *error)
{
    struct snapshot_image out = {0};
    size_t next = 0;
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < self->segment_count && !status; i++)
        status = tile(self, &self->segments[i], &next, &out, error);
    if (status) {
        free(out.blocks);
        return status;
    }
    free(self->blocks);
    self->blocks = out.blocks;
    self->block_count = out.block_count;
    self->block_room = out.block_room;
    return AR_OK;
}

enum ar_status snapshot_settle(struct snapshot_image *self, struct ar_error *error)
{
    AR_TRY(collect_made(self, error));
    AR_TRY(collect_mapped(self, error));
    if (self->recorded && !self->segment_count)
        AR_TRY(house_all(self, error));
    sort_segments(self);
    if (self->block_count)
        qsort(self->blocks, self->block_count, sizeof *self->blocks, by_block_place);
    if (self->recorded)
        take_pools(self);
    AR_TRY(house_strays(self, error));
    AR_TRY(check_apart(self, error));
    return tile_all(self, error);
}

/* ---- writing --------------------------------------------------------------------------- */

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

/* `entry` is the number of entries of its device before it, so that a reader need not guess among
 * those of one time. */
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
    for (unsigned i = 0; i < TORCH_DIVISION_INTERVALS; i++) {
        char name[12];
        (void)snprintf(name, sizeof name, "%u", 1u << i);
        put_key_number(pickle, name, settings.roundup_power2_divisions[i]);
    }
    pickle_end_dictionary(pickle);
    pickle_end_dictionary(pickle);
}

enum ar_status snapshot_write(const struct snapshot_image *image, pickle_output *output,
                              void *argument, struct ar_error *error)
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
    pickle_begin(pickle, output, argument, error);
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
    AR_TRY_MEMORY(ar_array_make_room(&self->items, self->count, &self->room, sizeof added), error,
                  "the state of a snapshot");
    AR_ARRAY_INSERT(self->items, self->count, at, added);
    return AR_OK;
}

void snapshot_areas_drop(struct snapshot_areas *self, size_t index)
{
    AR_ARRAY_REMOVE(self->items, self->count, index);
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
    if (to > from)
        memmove(self->items + from, self->items + to, (self->count - to) * sizeof *self->items);
    self->count -= to - from;
    return status;
}
