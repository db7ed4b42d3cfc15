#include "sim/advise/advise.h"

#include <math.h>

#include "allocators/base/array.h"
#include "sim/experiment/session.h"

/* Two passes: the first finds the event of the peak, the second stops there and groups the live
 * blocks. */

struct live_block {
    uint64_t bytes;      /* 0: none */
    uint32_t attributes; /* of its request */
};

/* The live blocks of a trace that is read. */
struct live {
    struct trace_source *source;
    struct live_block *slots;
    size_t slot_count;
    uint64_t bytes, late_bytes;
};

/* Follows an event of a block. Probes are requests if `probes`. */
static enum ar_status follow(struct live *self, const struct trace_event *event, bool probes,
                             struct ar_error *error)
{
    AR_TRY_MEMORY(AR_ARRAY_REACH(self->slots, self->slot_count, event->slot), error, "%u blocks",
                  event->slot);
    struct live_block *block = &self->slots[event->slot];
    if (event->kind == TRACE_FREE_REQUESTED && block->bytes > self->late_bytes)
        self->late_bytes = block->bytes;
    self->bytes -= block->bytes;
    *block = (struct live_block){0};
    if ((event->kind == TRACE_ALLOC || (probes && event->kind == TRACE_PROBE)) &&
        trace_attributes_of(self->source, event->attributes)->space != TRACE_SPACE_PINNED)
        *block = (struct live_block){event->value, event->attributes};
    self->bytes += block->bytes;
    return AR_OK;
}

struct pass {
    struct live live;
    uint64_t number, step;
};

static enum ar_status take(struct pass *pass, const struct trace_event *event,
                           struct ar_error *error)
{
    if (trace_ends_step(event))
        pass->step++;
    if (!trace_kind_has_block(event->kind) || event->kind == TRACE_USE)
        return AR_OK;
    return follow(&pass->live, event, false, error);
}

static enum ar_status find_probed(struct trace_source *source, uint64_t *bytes,
                                  struct ar_error *error)
{
    struct survey_peak peak = {0};
    uint64_t card_bytes = source->info.capacity_bytes;
    if (source->info.probes)
        AR_TRY(survey_peak_live(source, card_bytes ? card_bytes : UINT64_MAX, &peak, error));
    *bytes = peak.bytes;
    return AR_OK;
}

/* Replays events [0, end) and records the peak if `peak` is not NULL. */
static enum ar_status run(struct pass *pass, uint64_t end, struct holders *peak,
                          struct ar_error *error)
{
    struct trace_cursor cursor = {.source = pass->live.source};
    const struct trace_event *event;
    pass->number = 0;
    pass->step = 1;
    enum ar_status status = trace_rewind(pass->live.source, error);
    for (; pass->number < end && (event = trace_read(&cursor, &status, error)) != NULL;
         pass->number++) {
        status = take(pass, event, error);
        if (peak && pass->live.bytes > peak->bytes) {
            peak->bytes = pass->live.bytes;
            peak->event = pass->number;
            peak->step = pass->step;
        }
    }
    return status;
}

/* Sorts blocks of one group next to each other. */
struct named_block {
    const char *tag, *at; /* "": none */
    uint64_t bytes;
};

static struct named_block name_of(const struct live *live, const struct live_block *block)
{
    const struct trace_attributes *attributes =
        trace_attributes_of(live->source, block->attributes);
    const char *at = attributes->rest ? attributes->rest : "";
    while (*at && strncmp(at, "at=", 3) != 0)
        at += at[strcspn(at, ",")] ? strcspn(at, ",") + 1 : strlen(at);
    return (struct named_block){attributes->tag ? attributes->tag : "", *at ? at + 3 : "",
                                block->bytes};
}

/* The tag of a group in `out`: with a line, its numbers are *. */
static void write_tag(const struct named_block *block, char *out, size_t room)
{
    size_t used = 0;
    for (const char *at = block->tag; *at && used + 2 < room;) {
        size_t length = strcspn(at, ".:"), digits = strspn(at, "0123456789");
        bool number = block->at[0] && length && digits == length && at[length];
        int written = snprintf(out + used, room - used, "%.*s%.1s", number ? 1 : (int)length,
                               number ? "*" : at, at + length);
        used += (size_t)written < room - used ? (size_t)written : room - used - 1;
        at += length + (at[length] != '\0');
    }
    out[used] = '\0';
}

static int compare_names(const struct named_block *a, const struct named_block *b)
{
    char left[sizeof((struct holder *)0)->tag], right[sizeof left];
    size_t size_a = strcspn(a->at, ","), size_b = strcspn(b->at, ",");
    if (!size_a && !size_b)
        return strcmp(a->tag, b->tag);
    int order = size_a == size_b ? strncmp(a->at, b->at, size_a) : size_a < size_b ? -1 : 1;
    if (order || a->tag == b->tag)
        return order;
    write_tag(a, left, sizeof left);
    write_tag(b, right, sizeof right);
    return strcmp(left, right);
}

static int compare_blocks(const void *left, const void *right)
{
    const struct named_block *a = left, *b = right;
    int order = compare_names(a, b);
    return order ? order : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

static void insert(struct holders *out, const struct holder *holder)
{
    size_t at = out->count;
    while (at > 0 && out->at[at - 1].bytes < holder->bytes)
        at--;
    if (at == HOLDERS_ROOM)
        return;
    if (out->count == HOLDERS_ROOM)
        out->count--;
    AR_ARRAY_INSERT(out->at, out->count, at, *holder);
}

static void group(const struct named_block *blocks, size_t count, struct holders *out)
{
    struct holder now = {0};
    for (size_t i = 0; i < count; i++) {
        bool same = i > 0 && compare_names(&blocks[i], &blocks[i - 1]) == 0 &&
                    (blocks[i].tag[0] || blocks[i].bytes == blocks[i - 1].bytes);
        if (!same && now.blocks)
            insert(out, &now);
        if (!same) {
            now = (struct holder){.block_bytes = blocks[i].bytes};
            write_tag(&blocks[i], now.tag, sizeof now.tag);
            snprintf(now.at, sizeof now.at, "%.*s", (int)strcspn(blocks[i].at, ","), blocks[i].at);
        }
        now.block_bytes = now.block_bytes == blocks[i].bytes ? now.block_bytes : 0;
        now.bytes += blocks[i].bytes;
        now.blocks++;
    }
    if (now.blocks)
        insert(out, &now);
}

/* Drops what is not worth a row. */
static void keep_largest(struct holders *out)
{
    double rest = (double)out->bytes;
    size_t kept = 0;
    for (; kept < out->count; kept++) {
        bool tied = kept && out->at[kept].bytes == out->at[kept - 1].bytes;
        if (!tied && (kept >= HOLDERS_MOST || rest < HOLDERS_REST * (double)out->bytes))
            break;
        rest -= (double)out->at[kept].bytes;
    }
    out->count = kept;
}

static enum ar_status name(const struct live *live, struct holders *out, struct ar_error *error)
{
    size_t count = 0;
    struct named_block *blocks = calloc(live->slot_count + 1, sizeof *blocks);
    AR_TRY_MEMORY(blocks, error, "the live blocks");
    for (size_t i = 0; i < live->slot_count; i++)
        if (live->slots[i].bytes)
            blocks[count++] = name_of(live, &live->slots[i]);
    qsort(blocks, count, sizeof *blocks, compare_blocks);
    out->blocks = count;
    group(blocks, count, out);
    keep_largest(out);
    free(blocks);
    return AR_OK;
}

enum ar_status holders_find(struct trace_source *source, uint64_t end, struct holders *out,
                            struct ar_error *error)
{
    struct pass first = {.live.source = source}, second = first;
    *out = (struct holders){0};
    enum ar_status status = run(&first, end, out, error);
    out->steps = first.step - 1;
    out->late_bytes = first.live.late_bytes;
    if (!status && out->bytes)
        status = run(&second, out->event + 1, NULL, error);
    AR_THEN(status, name(&second.live, out, error));
    AR_THEN(status, find_probed(source, &out->probed_bytes, error));
    free(first.live.slots);
    free(second.live.slots);
    return status;
}

/* The batch curve: both traces are read in parallel, and only events of blocks count. Each request
 * adds a line. Whenever enough lines have been added, those that are not the highest for any batch
 * of at least 1 are dropped. */

#define LINES_LEAST 4096 /* before lines are dropped */

/* One of the two traces. */
struct side {
    struct trace_cursor cursor;
    struct live live;
    uint64_t peak_bytes;
};

struct pairing {
    struct side sides[2];
    const uint64_t *batches;
    struct batch_line *lines;
    size_t count, room, kept; /* kept: the number left by the last drop */
};

static bool is_of_block(const struct trace_event *event)
{
    return trace_requests(event) || trace_frees(event);
}

/* The next event of a block; NULL at the end. */
static enum ar_status next_event(struct side *self, const struct trace_event **out,
                                 struct ar_error *error)
{
    enum ar_status status = AR_OK;
    do
        *out = trace_read(&self->cursor, &status, error);
    while (*out && !is_of_block(*out));
    return status;
}

static struct batch_line line_through(const uint64_t batches[2], uint64_t first, uint64_t second)
{
    double apart = (double)batches[1] - (double)batches[0];
    double each = ((double)second - (double)first) / apart;
    return (struct batch_line){(double)first - each * (double)batches[0], each};
}

static int compare_lines(const void *left, const void *right)
{
    const struct batch_line *a = left, *b = right;
    AR_ORDER(a->each_bytes, b->each_bytes);
    return (a->fixed_bytes > b->fixed_bytes) - (a->fixed_bytes < b->fixed_bytes);
}

static double meet(const struct batch_line *a, const struct batch_line *b)
{
    return (a->fixed_bytes - b->fixed_bytes) / (b->each_bytes - a->each_bytes);
}

/* Keeps the upper envelope of the lines for batches of at least 1. */
static size_t keep_highest(struct batch_line *lines, size_t count)
{
    size_t kept = 0;
    qsort(lines, count, sizeof *lines, compare_lines);
    for (size_t i = 0; i < count; i++) {
        struct batch_line line = lines[i];
        while (kept && (lines[kept - 1].each_bytes >= line.each_bytes ||
                        meet(&lines[kept - 1], &line) <= 1))
            kept--;
        while (kept > 1 &&
               meet(&lines[kept - 2], &line) <= meet(&lines[kept - 2], &lines[kept - 1]))
            kept--;
        lines[kept++] = line;
    }
    return kept;
}

static enum ar_status add_line(struct pairing *self, struct batch_line line, struct ar_error *error)
{
    if (self->count == self->room && self->count >= LINES_LEAST && self->count > 2 * self->kept)
        self->count = self->kept = keep_highest(self->lines, self->count);
    return AR_APPEND(self->lines, self->count, self->room, line, error, "%zu events", self->count);
}

/* Reads both traces to their ends. `*aligned` is false if their events differ; then only the peaks
 * are valid. */
static enum ar_status pair(struct pairing *self, bool *aligned, struct ar_error *error)
{
    const struct trace_event *events[2] = {NULL, NULL};
    enum ar_status status = AR_OK;
    *aligned = true;
    do {
        for (int i = 0; i < 2 && !status; i++) {
            status = next_event(&self->sides[i], &events[i], error);
            struct side *side = &self->sides[i];
            if (!status && events[i])
                status = follow(&side->live, events[i], true, error);
            AR_RAISE(side->peak_bytes, side->live.bytes);
        }
        AR_TRY(status);
        *aligned = *aligned && !events[0] == !events[1] &&
                   (!events[0] ||
                    (events[0]->kind == events[1]->kind && events[0]->slot == events[1]->slot));
        if (*aligned && events[0] && events[0]->kind == TRACE_ALLOC)
            status = add_line(
                self,
                line_through(self->batches, self->sides[0].live.bytes, self->sides[1].live.bytes),
                error);
    } while (!status && (events[0] || events[1]));
    return status;
}

enum ar_status batch_curve_find(struct trace_source *const traces[2], const uint64_t batches[2],
                                struct batch_curve *out, struct ar_error *error)
{
    struct pairing pairing = {.batches = batches};
    enum ar_status status = AR_OK;
    *out = (struct batch_curve){0};
    for (int i = 0; i < 2 && !status; i++) {
        pairing.sides[i].cursor.source = pairing.sides[i].live.source = traces[i];
        status = trace_rewind(traces[i], error);
    }
    AR_THEN(status, pair(&pairing, &out->aligned, error));
    if (!status && !out->aligned)
        pairing.count = 0;
    if (!status && !pairing.count) {
        out->aligned = false;
        status = add_line(
            &pairing,
            line_through(batches, pairing.sides[0].peak_bytes, pairing.sides[1].peak_bytes), error);
    }
    out->lines = pairing.lines;
    out->count = status ? 0 : keep_highest(pairing.lines, pairing.count);
    free(pairing.sides[0].live.slots);
    free(pairing.sides[1].live.slots);
    return status;
}

void batch_curve_close(struct batch_curve *self)
{
    free(self->lines);
    *self = (struct batch_curve){0};
}

static double batch_curve_peak(const struct batch_curve *self, double batch)
{
    double peak = 0;
    for (size_t i = 0; i < self->count; i++)
        peak = fmax(peak, self->lines[i].fixed_bytes + self->lines[i].each_bytes * batch);
    return peak;
}

double batch_curve_largest(const struct batch_curve *self, double over, double bytes)
{
    double largest = INFINITY;
    for (size_t i = 0; i < self->count; i++) {
        const struct batch_line *line = &self->lines[i];
        if (line->each_bytes > 0)
            largest = fmin(largest, (bytes / over - line->fixed_bytes) / line->each_bytes);
        else if (batch_curve_peak(self, 1) * over > bytes)
            return 0;
    }
    return largest > 0 ? floor(largest) : 0;
}
