/* How: one walk over the image puts values; three forms write them down. The keys of each layout
 * are those of PyTorch's torch/csrc/cuda/Module.cpp and memory_snapshot.cpp at that version. */
#include "tests/support/snapshot_layouts.h"
#include "tests/support/test.h"

#define KEYS_2_0  (LAYOUT_REQUESTED | LAYOUT_HISTORY)
#define KEYS_2_1  (LAYOUT_REQUESTED | LAYOUT_POOLS | LAYOUT_ADDRESSES)
#define KEYS_2_2  (KEYS_2_1 | LAYOUT_TIMES)
#define KEYS_2_3  (KEYS_2_2 | LAYOUT_SETTINGS)
#define KEYS_2_5  (KEYS_2_3 | LAYOUT_ANNOTATIONS)
#define KEYS_2_7  (KEYS_2_5 | LAYOUT_CONTEXT)
#define KEYS_2_10 (KEYS_2_7 | LAYOUT_METADATA)
#define KEYS_NEXT (KEYS_2_10 | LAYOUT_ENTRY_POOLS)

const struct snapshot_layout snapshot_layouts[] = {
    {"1.12", LAYOUT_HISTORY | LAYOUT_NO_HISTORY},
    {"1.13", LAYOUT_HISTORY},
    {"2.0", KEYS_2_0},
    {"2.1 in the making", KEYS_2_0 | LAYOUT_POOLS},
    {"2.1", KEYS_2_1},
    {"2.2", KEYS_2_2},
    {"2.3", KEYS_2_3},
    {"2.5", KEYS_2_5},
    {"2.7", KEYS_2_7},
    {"2.10", KEYS_2_10},
    {"behind 2.11", KEYS_NEXT},
    {"segments of 2.11", KEYS_2_10 | LAYOUT_NO_HISTORY},
};
const size_t snapshot_layout_count = COUNT(snapshot_layouts);

#define DEPTH_MOST  16
#define TEXTS_MOST  256
#define FRAMES_MOST 64
#define BATCH       1000 /* items of a list that Python's pickler adds at once */

struct maker {
    FILE *file;
    const struct snapshot_layout *layout;
    const struct snapshot_image *image;
    const struct snapshot_layout_options *options;
    uint32_t memo;                /* the number of values in it */
    struct texts texts;           /* those in it */
    uint32_t places[TEXTS_MOST];  /* of the texts */
    uint32_t frames[FRAMES_MOST]; /* 1 + the places of frames */
    unsigned depth;
    bool first[DEPTH_MOST]; /* JSON: it is still empty */
    bool is_dict[DEPTH_MOST], after_key;
};

/* ---- forms ----------------------------------------------------------------------------- */

static bool is_json(const struct maker *self)
{
    return self->options->form == SNAPSHOT_JSON;
}

static void op(struct maker *self, unsigned char opcode, uint64_t operand, size_t bytes)
{
    fputc(opcode, self->file);
    for (size_t i = 0; i < bytes; i++)
        fputc((int)(operand >> 8 * i & 255), self->file);
}

static void memoize(struct maker *self)
{
    if (self->options->form == SNAPSHOT_PICKLE_4)
        op(self, 0x94, 0, 0);
    else
        op(self, self->memo < 256 ? 'q' : 'r', self->memo, self->memo < 256 ? 1 : 4);
    self->memo++;
}

static void again(struct maker *self, uint32_t place)
{
    op(self, place < 256 ? 'h' : 'j', place, place < 256 ? 1 : 4);
}

/* JSON: the separator between values. */
static void comma(struct maker *self)
{
    if (!is_json(self) || !self->depth || self->after_key) {
        self->after_key = false;
        return;
    }
    if (!self->first[self->depth - 1])
        fputs(", ", self->file);
    self->first[self->depth - 1] = false;
}

static void begin(struct maker *self, bool is_dict)
{
    comma(self);
    assert_true(self->depth < DEPTH_MOST);
    self->is_dict[self->depth] = is_dict;
    self->first[self->depth++] = true;
    if (is_json(self)) {
        fputc(is_dict ? '{' : '[', self->file);
        return;
    }
    op(self, is_dict ? '}' : ']', 0, 0);
    memoize(self);
    op(self, '(', 0, 0);
}

static void end(struct maker *self)
{
    bool is_dict = self->is_dict[--self->depth];
    if (is_json(self))
        fputc(is_dict ? '}' : ']', self->file);
    else
        op(self, is_dict ? 'u' : 'e', 0, 0);
}

static void text(struct maker *self, const char *string)
{
    comma(self);
    if (is_json(self)) {
        fprintf(self->file, "\"%s\"", string);
        return;
    }
    uint32_t index;
    const size_t known = self->texts.count;
    assert_ok(texts_intern(&self->texts, string, strlen(string), &index, &test_error));
    assert_true(index < TEXTS_MOST);
    if (index < known) {
        again(self, self->places[index]);
        return;
    }
    self->places[index] = self->memo;
    if (self->options->form == SNAPSHOT_PICKLE_4)
        op(self, 0x8c, strlen(string), 1);
    else
        op(self, 'X', strlen(string), 4);
    fputs(string, self->file);
    memoize(self);
}

static void key(struct maker *self, const char *name)
{
    text(self, name);
    if (is_json(self))
        fputs(": ", self->file);
    self->after_key = is_json(self);
}

static void number(struct maker *self, uint64_t value)
{
    comma(self);
    if (is_json(self))
        fprintf(self->file, "%" PRIu64, value);
    else if (value < 256)
        op(self, 'K', value, 1);
    else if (value < 65536)
        op(self, 'M', value, 2);
    else if (value < UINT64_C(1) << 31)
        op(self, 'J', value, 4);
    else {
        op(self, 0x8a, 8, 1);
        for (size_t i = 0; i < 8; i++)
            fputc((int)(value >> 8 * i & 255), self->file);
    }
}

static void truth(struct maker *self, bool value)
{
    comma(self);
    if (is_json(self))
        fputs(value ? "true" : "false", self->file);
    else
        op(self, value ? 0x88 : 0x89, 0, 0);
}

static void pool(struct maker *self, uint32_t pool)
{
    if (is_json(self)) {
        begin(self, false);
        number(self, pool);
        number(self, 0);
        end(self);
        return;
    }
    op(self, '(', 0, 0);
    number(self, pool);
    number(self, 0);
    op(self, 't', 0, 0);
    memoize(self);
}

static void named(struct maker *self, const char *name, uint64_t value)
{
    key(self, name);
    number(self, value);
}

static void worded(struct maker *self, const char *name, const char *value)
{
    key(self, name);
    text(self, value);
}

/* ---- contents of snapshots -------------------------------------------------------------- */

static bool has(const struct maker *self, enum snapshot_layout_keys keys)
{
    return self->layout->keys & (unsigned)keys;
}

/* One line of the program, under lines of libraries. Python writes a frame once, and then its place
 * in the memo. */
static void frames(struct maker *self)
{
    const unsigned last = self->options->library_frames;
    assert_true(last < FRAMES_MOST);
    key(self, "frames");
    begin(self, false);
    for (unsigned i = 0; i <= last; i++) {
        if (self->frames[i]) {
            again(self, self->frames[i] - 1);
            continue;
        }
        self->frames[i] = self->options->form == SNAPSHOT_PICKLE_4 ? self->memo + 1 : 0;
        begin(self, true);
        worded(self, "name", "step");
        worded(self, "filename",
               i < last ? "/usr/lib/python3/dist-packages/torch/nn/modules/module.py"
                        : "/srv/job/train.py");
        named(self, "line", 7 + last - i);
        end(self);
    }
    end(self);
}

static void block(struct maker *self, const struct snapshot_block *block)
{
    static const char *const states[] = {"active_allocated", "active_pending_free", "inactive"};
    begin(self, true);
    if (has(self, LAYOUT_ADDRESSES))
        named(self, "address", block->address);
    named(self, "size", block->bytes);
    if (has(self, LAYOUT_REQUESTED))
        named(self, "requested_size", block->requested_bytes);
    worded(self, "state", states[block->state]);
    if (has(self, LAYOUT_ADDRESSES))
        frames(self);
    if (has(self, LAYOUT_HISTORY) && block->state != SNAPSHOT_INACTIVE) {
        key(self, "history");
        begin(self, false);
        begin(self, true);
        named(self, "addr", block->address);
        named(self, "real_size", block->requested_bytes);
        frames(self);
        end(self);
        end(self);
    }
    end(self);
}

static void segment(struct maker *self, const struct snapshot_segment *segment)
{
    const struct snapshot_block *blocks = self->image->blocks + segment->first_block;
    begin(self, true);
    named(self, "device", segment->device);
    named(self, "address", segment->address);
    named(self, "total_size", segment->bytes);
    named(self, "allocated_size", 0); /* no reader uses the sums */
    named(self, "active_size", 0);
    if (has(self, LAYOUT_REQUESTED))
        named(self, "requested_size", 0);
    named(self, "stream", segment->stream);
    worded(self, "segment_type", segment->small ? "small" : "large");
    if (has(self, LAYOUT_POOLS)) {
        key(self, "segment_pool_id");
        pool(self, segment->pool);
    }
    if (has(self, LAYOUT_ADDRESSES)) {
        key(self, "is_expandable");
        truth(self, segment->expandable);
        frames(self);
    }
    key(self, "blocks");
    begin(self, false);
    for (size_t i = 0; i < segment->block_count; i++)
        block(self, &blocks[i]);
    end(self);
    end(self);
}

static void entry(struct maker *self, const struct snapshot_entry *entry)
{
    static const char *const actions[] = {
#define X(name, text) [SNAPSHOT_##name] = (text),
        SNAPSHOT_ACTIONS(X)
#undef X
    };
    begin(self, true);
    if (!has(self, LAYOUT_TIMES)) /* old ones put the stack first */
        frames(self);
    worded(self, "action", actions[entry->action]);
    named(self, entry->action == SNAPSHOT_OOM ? "device_free" : "addr", entry->address);
    named(self, "size", entry->bytes);
    named(self, "stream", entry->stream);
    if (has(self, LAYOUT_TIMES))
        named(self, "time_us", UINT64_C(1700000000000000) + entry->time_us);
    if (has(self, LAYOUT_CONTEXT))
        worded(self, "compile_context", "N/A");
    if (has(self, LAYOUT_METADATA))
        worded(self, "user_metadata", "");
    if (has(self, LAYOUT_ENTRY_POOLS)) {
        key(self, "pool_id");
        pool(self, entry->pool);
    }
    if (has(self, LAYOUT_TIMES))
        frames(self);
    end(self);
}

static void traces(struct maker *self)
{
    const struct snapshot_image *image = self->image;
    uint16_t devices = 0;
    for (size_t i = 0; i < image->entry_count; i++)
        devices = image->entries[i].device > devices ? image->entries[i].device : devices;
    begin(self, false);
    for (unsigned device = 0; device <= devices; device++) {
        size_t dropped = 0;
        begin(self, false);
        for (size_t i = 0; i < image->entry_count; i++) {
            const struct snapshot_entry *made = &image->entries[i];
            bool skipped = self->options->no_completions && made->action == SNAPSHOT_FREE_COMPLETED;
            if (made->device != device || made->before || skipped ||
                dropped++ < self->options->dropped)
                continue;
            if (!is_json(self) && dropped % BATCH == 0) {
                op(self, 'e', 0, 0);
                op(self, '(', 0, 0);
            }
            entry(self, made);
        }
        end(self);
    }
    end(self);
}

static void annotations(struct maker *self)
{
    const struct snapshot_image *image = self->image;
    begin(self, false);
    for (size_t i = 0; i < image->annotation_count; i++) {
        begin(self, true);
        worded(self, "name", image->tags.items[image->annotations[i].name - 1]);
        worded(self, "stage", image->tags.items[image->annotations[i].stage - 1]);
        named(self, "device", image->annotations[i].device);
        named(self, "time_us", UINT64_C(1700000000000000) + image->annotations[i].time_us);
        end(self);
    }
    end(self);
}

static void settings(struct maker *self)
{
    begin(self, true);
    worded(self, "PYTORCH_CUDA_ALLOC_CONF", self->image->conf);
    key(self, "expandable_segments");
    truth(self, strstr(self->image->conf, "expandable_segments:True") != NULL);
    worded(self, "a_setting_of_tomorrow", "x");
    end(self);
}

static void segments(struct maker *self)
{
    begin(self, false);
    for (size_t i = 0; i < self->image->segment_count; i++)
        segment(self, &self->image->segments[i]);
    end(self);
}

static void host(struct maker *self)
{
    key(self, "host_segments");
    begin(self, false);
    end(self);
    key(self, "host_traces");
    begin(self, false);
    begin(self, false);
    end(self);
    end(self);
}

static void whole(struct maker *self)
{
    if (has(self, LAYOUT_NO_HISTORY)) {
        segments(self);
        return;
    }
    begin(self, true);
    key(self, "segments");
    segments(self);
    key(self, "device_traces");
    traces(self);
    if (has(self, LAYOUT_SETTINGS)) {
        key(self, "allocator_settings");
        settings(self);
    }
    if (has(self, LAYOUT_ANNOTATIONS)) {
        key(self, "external_annotations");
        annotations(self);
    }
    if (has(self, LAYOUT_ENTRY_POOLS))
        host(self);
    end(self);
}

void snapshot_layout_write(const char *path, const struct snapshot_layout *layout,
                           const struct snapshot_image *image,
                           const struct snapshot_layout_options *options)
{
    struct maker self = {
        .file = fopen(path, "wb"), .layout = layout, .image = image, .options = options};
    assert_non_null(self.file);
    if (!is_json(&self))
        op(&self, 0x80, options->form == SNAPSHOT_PICKLE_2 ? 2 : 4, 1);
    whole(&self);
    if (!is_json(&self))
        op(&self, '.', 0, 0);
    texts_close(&self.texts);
    if (fclose(self.file))
        fail_msg("the snapshot cannot be written");
}
