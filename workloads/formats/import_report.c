/* The sentences of an import report, and its counts: blocks by their slot; the bytes that the
 * recorded allocator reserved follow from the notes of segments and pages. */
#include "workloads/formats/import_report.h"

#include "allocators/base/array.h"

void import_guess(struct import_report *report, const char *format, ...)
{
    char text[sizeof report->guesses[0]];
    AR_PRINT(text, sizeof text, format);
    for (unsigned i = 0; i < report->guess_count; i++)
        if (!strcmp(report->guesses[i], text))
            return;
    if (report->guess_count < IMPORT_GUESSES)
        memcpy(report->guesses[report->guess_count++], text, sizeof text);
}

void import_guess_count(struct import_report *report, uint64_t count, const char *text)
{
    if (count)
        import_guess(report, "%" PRIu64 " %s", count, text);
}

struct block {
    uint64_t bytes;
    bool live, initial;
};

struct counting {
    struct trace_source *source;
    struct import_counts *out;
    struct block *blocks; /* by slot */
    uint64_t event, live_bytes, held_bytes;
    struct block *last; /* of a request that may have failed: the next note says */
    uint64_t last_event;
};

static bool is_initial(struct trace_source *source, const struct trace_event *event)
{
    const char *rest = trace_attributes_of(source, event->attributes)->rest;
    return rest && strstr(rest, "initial=yes");
}

static void on_request(struct counting *self, const struct trace_event *event)
{
    struct import_counts *out = self->out;
    struct block *block = &self->blocks[event->slot];
    *block = (struct block){event->value, true, is_initial(self->source, event)};
    out->start_blocks += block->initial;
    out->start_bytes += block->initial ? event->value : 0;
    self->live_bytes += event->value;
    self->last = block;
    self->last_event = self->event;
}

/* The request before the current event was served, because no note of a failure followed. */
static void settle(struct counting *self)
{
    if (self->last && self->live_bytes > self->out->peak_bytes) {
        self->out->peak_bytes = self->live_bytes;
        self->out->peak_event = self->last_event;
    }
    self->last = NULL;
}

static void on_failure(struct counting *self)
{
    if (!self->last || !self->last->live)
        return;
    self->live_bytes -= self->last->bytes;
    self->last->live = false;
    self->last = NULL;
}

static void on_end(struct counting *self, const struct trace_event *event)
{
    struct block *block = &self->blocks[event->slot];
    self->live_bytes -= block->live ? block->bytes : 0;
    block->live = false;
}

/* Segments and pages of the recorded allocator: "VERB,ADDRESS,BYTES,..". */
static void on_note(struct counting *self, const char *text)
{
    static const struct {
        const char *verb;
        bool released;
    } verbs[] = {{"segment,", false},     {"pages,", false},       {"segment_alloc,", false},
                 {"segment_map,", false}, {"segment_free,", true}, {"segment_unmap,", true}};
    uint64_t address, bytes;
    if (strncmp(text, "oom", 3) == 0 && (text[3] == ',' || !text[3]))
        on_failure(self);
    for (size_t i = 0; i < AR_COUNT(verbs); i++) {
        size_t length = strlen(verbs[i].verb);
        if (strncmp(text, verbs[i].verb, length) != 0 ||
            sscanf(text + length, "%" SCNu64 ",%" SCNu64, &address, &bytes) != 2)
            continue;
        if (!verbs[i].released)
            self->held_bytes += bytes;
        else
            self->held_bytes -= bytes < self->held_bytes ? bytes : self->held_bytes;
        AR_RAISE(self->out->held_peak_bytes, self->held_bytes);
    }
}

static int by_bytes(const void *left, const void *right)
{
    const struct block *a = left, *b = right;
    return (a->bytes < b->bytes) - (a->bytes > b->bytes);
}

/* Inserts a size into the list of those with the most bytes. */
static void place_size(struct import_counts *out, struct import_size size)
{
    size_t at = out->size_count;
    if (!size.bytes)
        return;
    while (at && out->sizes[at - 1].bytes * out->sizes[at - 1].blocks < size.bytes * size.blocks)
        at--;
    struct import_size last = size;
    if (out->size_count == IMPORT_SIZES) {
        if (at < IMPORT_SIZES)
            last = out->sizes[--out->size_count];
        out->other_sizes++;
        out->other_bytes += last.bytes * last.blocks;
        if (at == IMPORT_SIZES)
            return;
    }
    AR_ARRAY_INSERT(out->sizes, out->size_count, at, size);
}

static void count_left(struct counting *self, uint32_t slots)
{
    struct import_counts *out = self->out;
    size_t left = 0;
    for (uint32_t i = 0; i < slots; i++) {
        const struct block block = self->blocks[i];
        if (!block.live)
            continue;
        out->end_blocks++;
        out->end_bytes += block.bytes;
        out->end_start_blocks += block.initial;
        self->blocks[left++] = block;
    }
    if (left)
        qsort(self->blocks, left, sizeof *self->blocks, by_bytes);
    for (size_t i = 0, next; i < left; i = next) {
        for (next = i; next < left && self->blocks[next].bytes == self->blocks[i].bytes;)
            next++;
        place_size(out, (struct import_size){self->blocks[i].bytes, next - i});
    }
}

enum ar_status import_count(struct trace_source *source, struct import_counts *out,
                            struct ar_error *error)
{
    uint32_t slots = source->info.slots;
    struct counting self = {.source = source, .out = out};
    struct trace_cursor cursor = {.source = source};
    const struct trace_event *event;
    *out = (struct import_counts){0};
    self.blocks = calloc((size_t)slots + 1, sizeof *self.blocks);
    AR_TRY_MEMORY(self.blocks, error, "the blocks of a trace");
    enum ar_status status = trace_rewind(source, error);
    for (; (event = trace_read(&cursor, &status, error)) != NULL; self.event++) {
        if (event->kind != TRACE_NOTE)
            settle(&self);
        if (event->kind == TRACE_ALLOC || event->kind == TRACE_PROBE)
            on_request(&self, event);
        else if (event->kind == TRACE_FREE_COMPLETED || event->kind == TRACE_FREE_REQUESTED)
            on_end(&self, event);
        else if (event->kind == TRACE_NOTE)
            on_note(&self, trace_text_of(source, event->value));
    }
    settle(&self);
    if (!status)
        count_left(&self, slots);
    free(self.blocks);
    return status ? status : trace_rewind(source, error);
}
