/* How: a caching allocator in small. Blocks of each size class lie in segments of 64; a freed one
 * is given out again first. Stacks are drawn from 4096 that share 8192 frames. */
#include "tests/support/snapshot_maker.h"

#include "allocators/base/rng.h"
#include "tests/support/test.h"

enum {
    CLASSES = 24,
    PER_SEGMENT = 64,
    SEGMENTS = 4096,
    FRAMES = 8192,
    STACKS = 4096,
    LIVE_MOST = 3000,
    BATCH = 1000,
    TEXTS = 64
};

struct piece {
    uint64_t address, requested;
    unsigned class;
    bool used;
};

struct maker {
    FILE *file;
    struct ar_rng rng;
    struct snapshot_maker_options options;
    uint64_t memo, time_us, written;
    uint64_t texts[TEXTS];   /* 1 + memo number, by the caller's number of the text */
    uint64_t frames[FRAMES]; /* the same, of a frame that was written */
    struct piece *pieces;    /* all, by segment */
    size_t piece_count;
    size_t *spare[CLASSES]; /* pieces that are free; the last is given out first */
    size_t spare_count[CLASSES];
    size_t live[LIVE_MOST + 1];
    size_t live_count;
};

/* ---- the pickle ------------------------------------------------------------------------ */

static void put(struct maker *self, const void *bytes, size_t count)
{
    if (fwrite(bytes, 1, count, self->file) != count)
        fail_msg("the snapshot cannot be written");
}

static void op(struct maker *self, unsigned char opcode, uint64_t operand, size_t bytes)
{
    unsigned char text[9] = {opcode};
    for (size_t i = 0; i < bytes; i++)
        text[1 + i] = (unsigned char)(operand >> 8 * i);
    put(self, text, 1 + bytes);
}

static void memoize(struct maker *self)
{
    op(self, 0x94, 0, 0);
    self->memo++;
}

static void get(struct maker *self, uint64_t number)
{
    op(self, number < 256 ? 'h' : 'j', number, number < 256 ? 1 : 4);
}

/* `number`: its own, below TEXTS, for one that comes again. */
static void text(struct maker *self, unsigned number, const char *string)
{
    if (self->texts[number]) {
        get(self, self->texts[number] - 1);
        return;
    }
    op(self, 0x8c, strlen(string), 1);
    put(self, string, strlen(string));
    self->texts[number] = self->memo + 1;
    memoize(self);
}

static void number(struct maker *self, uint64_t value)
{
    size_t bytes = 1;
    if (value < 256)
        op(self, 'K', value, 1);
    else if (value < 65536)
        op(self, 'M', value, 2);
    else if (value < UINT64_C(1) << 31)
        op(self, 'J', value, 4);
    else {
        while (bytes < 8 && value >> (8 * bytes - 1))
            bytes++;
        op(self, 0x8a, bytes, 1);
        for (size_t i = 0; i < bytes; i++)
            fputc((int)(value >> 8 * i & 255), self->file);
    }
}

static void begin(struct maker *self, unsigned char opcode)
{
    op(self, opcode, 0, 0);
    memoize(self);
    op(self, '(', 0, 0);
}

enum name {
    N_ACTION,
    N_ADDR,
    N_SIZE,
    N_STREAM,
    N_TIME,
    N_CONTEXT,
    N_METADATA,
    N_FRAMES,
    N_NA,
    N_EMPTY,
    N_ALLOC,
    N_REQUESTED,
    N_COMPLETED,
    N_SEGMENT,
    N_FILE,
    N_LINE,
    N_NAME,
    N_FUNCTION,
    N_ADDRESS,
    N_TOTAL,
    N_BLOCKS,
    N_STATE,
    N_ACTIVE,
    N_INACTIVE,
    N_ASKED,
    N_DEVICE,
    N_TYPE,
    N_SMALL,
    N_LARGE,
    N_SEGMENTS,
    N_TRACES,
    N_OTHER_FILE,
    N_POOL,
};

static void named(struct maker *self, enum name key, const char *key_text, uint64_t value)
{
    text(self, key, key_text);
    number(self, value);
}

static void frame(struct maker *self, unsigned which)
{
    if (self->frames[which]) {
        get(self, self->frames[which] - 1);
        return;
    }
    self->frames[which] = self->memo + 1;
    begin(self, '}');
    text(self, N_FILE, "filename");
    if (which % 8)
        text(self, N_OTHER_FILE, "/usr/lib/python3/dist-packages/torch/nn/modules/module.py");
    else
        text(self, N_FUNCTION, "/srv/job/train.py");
    named(self, N_LINE, "line", which + 1);
    text(self, N_NAME, "name");
    text(self, N_NAME, "name");
    op(self, 'u', 0, 0);
}

static void stack(struct maker *self)
{
    struct ar_rng rng;
    text(self, N_FRAMES, "frames");
    begin(self, ']');
    ar_rng_seed(&rng, ar_rng_below(&self->rng, STACKS));
    for (unsigned i = 0; i < self->options.frames; i++)
        frame(self, (unsigned)ar_rng_below(&rng, FRAMES));
    op(self, 'e', 0, 0);
}

/* ---- what happens ---------------------------------------------------------------------- */

static uint64_t class_bytes(unsigned class)
{
    return UINT64_C(512) << class;
}

static void entry(struct maker *self, enum name action, const char *action_text, uint64_t address,
                  uint64_t bytes)
{
    self->time_us += ar_rng_below(&self->rng, 9);
    if (self->written++ < self->options.dropped)
        return;
    uint64_t at = self->written - 1 - self->options.dropped;
    if (at && at % BATCH == 0) {
        op(self, 'e', 0, 0);
        op(self, '(', 0, 0);
    }
    begin(self, '}');
    text(self, N_ACTION, "action");
    text(self, action, action_text);
    named(self, N_ADDR, "addr", address);
    named(self, N_SIZE, "size", bytes);
    named(self, N_STREAM, "stream", 0);
    named(self, N_TIME, "time_us", self->time_us);
    text(self, N_CONTEXT, "compile_context");
    text(self, N_NA, "N/A");
    text(self, N_METADATA, "user_metadata");
    text(self, N_EMPTY, "");
    if (self->options.frames)
        stack(self);
    op(self, 'u', 0, 0);
}

static bool more(const struct maker *self)
{
    return self->written < self->options.events + self->options.dropped;
}

static void make_segment(struct maker *self, unsigned class)
{
    uint64_t segment = self->piece_count / PER_SEGMENT;
    uint64_t address = (UINT64_C(1) << 46) + (segment << 40);
    if (segment == SEGMENTS)
        fail_msg("too many segments");
    entry(self, N_SEGMENT, "segment_alloc", address, PER_SEGMENT * class_bytes(class));
    for (unsigned i = PER_SEGMENT; i-- > 0;) {
        self->spare[class][self->spare_count[class]++] = self->piece_count + i;
        self->pieces[self->piece_count + i] =
            (struct piece){.address = address + i * class_bytes(class), .class = class};
    }
    self->piece_count += PER_SEGMENT;
}

static void allocate(struct maker *self)
{
    unsigned class = (unsigned)ar_rng_below(&self->rng, CLASSES);
    if (!self->spare_count[class])
        make_segment(self, class);
    if (!more(self))
        return;
    size_t at = self->spare[class][--self->spare_count[class]];
    struct piece *piece = &self->pieces[at];
    piece->used = true;
    piece->requested = class_bytes(class) - ar_rng_below(&self->rng, class_bytes(class) / 4 + 1);
    self->live[self->live_count++] = at;
    entry(self, N_ALLOC, "alloc", piece->address, piece->requested);
}

static void release(struct maker *self)
{
    size_t which = ar_rng_below(&self->rng, self->live_count);
    size_t at = self->live[which];
    struct piece *piece = &self->pieces[at];
    if (self->written + 2 > self->options.events + self->options.dropped) {
        allocate(self); /* one entry is left, but a free needs two */
        return;
    }
    self->live[which] = self->live[--self->live_count];
    piece->used = false;
    self->spare[piece->class][self->spare_count[piece->class]++] = at;
    entry(self, N_REQUESTED, "free_requested", piece->address, piece->requested);
    entry(self, N_COMPLETED, "free_completed", piece->address, piece->requested);
}

static void put_history(struct maker *self)
{
    text(self, N_TRACES, "device_traces");
    begin(self, ']');
    begin(self, ']');
    while (more(self))
        if (self->live_count && ar_rng_below(&self->rng, LIVE_MOST) < self->live_count)
            release(self);
        else
            allocate(self);
    op(self, 'e', 0, 0);
    op(self, 'e', 0, 0);
}

static void put_segments(struct maker *self)
{
    text(self, N_SEGMENTS, "segments");
    begin(self, ']');
    for (size_t first = 0; first < self->piece_count; first += PER_SEGMENT) {
        uint64_t bytes = class_bytes(self->pieces[first].class);
        begin(self, '}');
        named(self, N_ADDRESS, "address", self->pieces[first].address);
        named(self, N_TOTAL, "total_size", PER_SEGMENT * bytes);
        named(self, N_STREAM, "stream", 0);
        named(self, N_DEVICE, "device", 0);
        text(self, N_TYPE, "segment_type");
        text(self, N_LARGE, "large");
        text(self, N_POOL, "segment_pool_id");
        number(self, 0);
        number(self, 0);
        op(self, 0x86, 0, 0);
        memoize(self);
        text(self, N_BLOCKS, "blocks");
        begin(self, ']');
        for (size_t i = first; i < first + PER_SEGMENT; i++) {
            const struct piece *piece = &self->pieces[i];
            begin(self, '}');
            named(self, N_ADDRESS, "address", piece->address);
            named(self, N_SIZE, "size", bytes);
            named(self, N_ASKED, "requested_size", piece->used ? piece->requested : 0);
            text(self, N_STATE, "state");
            if (piece->used)
                text(self, N_ACTIVE, "active_allocated");
            else
                text(self, N_INACTIVE, "inactive");
            op(self, 'u', 0, 0);
        }
        op(self, 'e', 0, 0);
        op(self, 'u', 0, 0);
    }
    op(self, 'e', 0, 0);
}

void snapshot_maker_write(const char *path, const struct snapshot_maker_options *options)
{
    FREED struct maker *self = calloc(1, sizeof *self);
    assert_non_null(self);
    self->options = *options;
    self->time_us = UINT64_C(1700000000000000);
    self->file = fopen(path, "wb");
    self->pieces = calloc(SEGMENTS * PER_SEGMENT, sizeof *self->pieces);
    assert_non_null(self->file);
    assert_non_null(self->pieces);
    for (unsigned i = 0; i < CLASSES; i++) {
        self->spare[i] = calloc(SEGMENTS, PER_SEGMENT * sizeof *self->spare[i]);
        assert_non_null(self->spare[i]);
    }
    ar_rng_seed(&self->rng, options->seed);
    op(self, 0x80, 4, 1);
    begin(self, '}');
    put_history(self);
    put_segments(self);
    op(self, 'u', 0, 0);
    op(self, '.', 0, 0);
    if (fclose(self->file))
        fail_msg("the snapshot cannot be written");
    for (unsigned i = 0; i < CLASSES; i++)
        free(self->spare[i]);
    free(self->pieces);
}
