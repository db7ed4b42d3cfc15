/* The smallest trace that still shows a condition.
 *
 * 1. Notes and operations of kernels have no effect on a simulated device: they are left out.
 * 2. ddmin removes steps, then blocks, then single events: in halves, quarters and so on down to
 *    single ones, as long as the condition holds. A step is removed with the blocks that it
 *    requests, a block with its frees and uses, and a wait without an earlier record of its event
 *    alone. So every candidate is a valid trace.
 * 3. Sizes become rounder: the fewest leading binary digits for which the condition holds, for all
 *    blocks of a size together, else for each.
 * 4. This is repeated until a round removes nothing. Then no block and no event can be removed
 *    alone.
 *
 * Source: Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE
 * Transactions on Software Engineering 28(2), 2002; of its two steps the reduction to
 * complements. */
#include "sim/search/search.h"

#include "allocators/base/array.h"
#include "allocators/base/map.h"
#include "sim/experiment/session.h"
#include "workloads/trace/check.h"
#include "workloads/trace/trace.h"

enum { KEPT, TRIED, GONE }; /* the state of an event or a block */

struct item {
    struct trace_event event;
    const struct trace_attributes *keys; /* NULL: none */
    const char *text;
    uint8_t state;
};

struct block {
    uint64_t bytes, new_id;
    uint8_t state;
    bool made; /* in the candidate */
};

enum phase { STEPS, BLOCKS, EVENTS };

struct unit { /* items that are removed together */
    size_t begin, end;
};

struct search {
    const struct experiment *experiment;
    const struct condition *condition;
    struct trace_info info; /* of all candidates */
    struct item *items;
    size_t item_count, item_capacity;
    struct block *blocks; /* by id */
    size_t block_count;
    enum phase phase;
    bool changed; /* in this round */
    struct minimize_result *result;
};

static bool is_request(const struct item *item)
{
    return item->event.kind == TRACE_ALLOC || item->event.kind == TRACE_PROBE;
}

static bool follows_block(const struct item *item)
{
    return item->event.kind >= TRACE_FREE_REQUESTED && item->event.kind <= TRACE_USE;
}

/* ---- candidates -------------------------------------------------------------------------- */

static enum ar_status append_item(struct search *s, struct trace_memory *memory,
                                  const struct item *item, uint64_t *next_id,
                                  struct ar_map *recorded, struct ar_error *error)
{
    struct trace_event event = item->event;
    uint64_t ignored;
    if (is_request(item)) {
        struct block *block = &s->blocks[event.id];
        block->made = block->state == KEPT;
        if (!block->made)
            return AR_OK;
        block->new_id = *next_id;
        event.id = (*next_id)++;
        event.value = block->bytes;
    } else if (follows_block(item)) {
        if (!s->blocks[event.id].made)
            return AR_OK;
        event.id = s->blocks[event.id].new_id;
    }
    if (event.kind == TRACE_RECORD && ar_map_put(recorded, event.value, 0))
        return ar_no_memory(error, "a trace");
    if (event.kind == TRACE_WAIT && !ar_map_get(recorded, event.value, &ignored))
        return AR_OK;
    return trace_memory_append(memory, &event, item->keys, item->text, error);
}

/* The trace of the kept events. INVALID if it is not a valid trace. */
static enum ar_status make_candidate(struct search *s, struct trace_source **out,
                                     struct ar_error *error)
{
    struct ar_map recorded = {0};
    uint64_t next_id = 0;
    struct trace_memory *memory = trace_memory_create(&s->info);
    enum ar_status status = memory ? AR_OK : ar_no_memory(error, "a trace");
    for (size_t i = 0; i < s->item_count && !status; i++)
        if (s->items[i].state == KEPT)
            status = append_item(s, memory, &s->items[i], &next_id, &recorded, error);
    ar_map_close(&recorded);
    return trace_memory_finish(memory, status, out, error);
}

/* Whether the kept events show the condition. */
static enum ar_status try_candidate(struct search *s, bool *holds, struct ar_error *error)
{
    AR_CLOSED(trace_close_at) struct trace_source *source = NULL;
    struct experiment experiment = *s->experiment;
    enum ar_status status = make_candidate(s, &source, error);
    *holds = false;
    s->result->candidates++;
    if (status == AR_INVALID)
        return AR_OK; /* for example a sum of sizes beyond its limit: not a candidate */
    AR_TRY(status);
    experiment.source = source;
    return condition_holds(s->condition, &experiment, &s->result->runs, holds, error);
}

/* ---- taking away ------------------------------------------------------------------------- */

/* Changes the state of the items of a unit. */
static void move(struct search *s, struct unit unit, uint8_t from, uint8_t to)
{
    for (size_t i = unit.begin; i < unit.end; i++) {
        struct item *item = &s->items[i];
        uint8_t *state = &item->state;
        if (is_request(item))
            state = &s->blocks[item->event.id].state;
        else if (follows_block(item) && s->phase != EVENTS)
            continue;
        if (*state == from)
            *state = to;
    }
}

static enum ar_status try_without(struct search *s, const struct unit *units, size_t count,
                                  bool *gone, struct ar_error *error)
{
    for (size_t i = 0; i < count; i++)
        move(s, units[i], KEPT, TRIED);
    enum ar_status status = try_candidate(s, gone, error);
    for (size_t i = 0; i < count; i++)
        move(s, units[i], TRIED, !status && *gone ? GONE : KEPT);
    s->changed |= !status && *gone;
    return status;
}

/* Removes as many units as possible, in parts of `size`; repeats at size 1. */
static enum ar_status take_away(struct search *s, struct unit *units, size_t count,
                                struct ar_error *error)
{
    bool gone = false;
    enum ar_status status = count ? try_without(s, units, count, &gone, error) : AR_OK;
    size_t size = count / 2;
    count = gone ? 0 : count;
    while (count && size && !status) {
        bool any = false;
        for (size_t at = 0; at < count && !status;) {
            size_t part = count - at < size ? count - at : size;
            status = try_without(s, units + at, part, &gone, error);
            if (!status && gone) {
                memmove(units + at, units + at + part, (count - at - part) * sizeof *units);
                count -= part;
                any = true;
            } else {
                at += part;
            }
        }
        if (size > count)
            size = count;
        else if (size > 1)
            size = (size + 1) / 2;
        else if (!any)
            break;
    }
    return status;
}

/* Whether the item is kept and belongs to a unit of this phase that contains it. */
static bool goes(const struct search *s, const struct item *item)
{
    if (is_request(item))
        return s->phase != EVENTS && s->blocks[item->event.id].state == KEPT;
    if (item->state != KEPT)
        return false;
    if (follows_block(item))
        return s->phase == EVENTS && s->blocks[item->event.id].state == KEPT;
    return s->phase != BLOCKS;
}

/* The units of a phase among the kept items. */
static size_t find_units(const struct search *s, struct unit *units)
{
    size_t count = 0, begin = 0;
    bool any = false;
    for (size_t i = 0; i < s->item_count; i++) {
        const struct item *item = &s->items[i];
        any |= goes(s, item);
        if (s->phase == STEPS &&
            !(item->event.flags & TRACE_STEP && item->event.kind == TRACE_MARK) &&
            i + 1 < s->item_count)
            continue;
        if (any)
            units[count++] = (struct unit){begin, i + 1};
        begin = i + 1;
        any = false;
    }
    return count;
}

static enum ar_status run_phase(struct search *s, enum phase phase, struct ar_error *error)
{
    AR_FREED struct unit *units = malloc((s->item_count + 1) * sizeof *units);
    AR_TRY_MEMORY(units, error, "a trace");
    s->phase = phase;
    return take_away(s, units, find_units(s, units), error);
}

/* ---- sizes ------------------------------------------------------------------------------- */

static unsigned bits_of(uint64_t number)
{
    unsigned bits = 0;
    for (; number; number >>= 1)
        bits++;
    return bits;
}

/* The number of binary digits from the first to the last 1. */
static unsigned digits_of(uint64_t bytes)
{
    while (bytes && !(bytes & 1))
        bytes >>= 1;
    return bits_of(bytes);
}

/* Changes blocks of `old` bytes, all of them or one, to `new`. */
static void set_size(struct search *s, const struct block *only, uint64_t old, uint64_t new)
{
    for (size_t i = 0; i < s->block_count; i++)
        if (s->blocks[i].state == KEPT && (!only || only == &s->blocks[i]) &&
            s->blocks[i].bytes == old)
            s->blocks[i].bytes = new;
}

/* Marks the blocks of a size, to tell them from others that have the new size. */
static enum ar_status try_size(struct search *s, struct block *only, uint64_t old, uint64_t new,
                               bool *taken, struct ar_error *error)
{
    uint64_t *before = malloc((s->block_count + 1) * sizeof *before);
    AR_TRY_MEMORY(before, error, "a trace");
    for (size_t i = 0; i < s->block_count; i++)
        before[i] = s->blocks[i].bytes;
    set_size(s, only, old, new);
    enum ar_status status = try_candidate(s, taken, error);
    for (size_t i = 0; i < s->block_count && (status || !*taken); i++)
        s->blocks[i].bytes = before[i];
    free(before);
    s->changed |= !status && *taken;
    return status;
}

/* The roundest size near `bytes` for which the condition holds; for block `only`, or for all. */
static enum ar_status round_size(struct search *s, struct block *only, uint64_t bytes, bool *taken,
                                 struct ar_error *error)
{
    unsigned bits = bits_of(bytes), most = digits_of(bytes);
    *taken = false;
    for (unsigned digits = 1; digits < most && !*taken; digits++) {
        uint64_t unit = UINT64_C(1) << (bits - digits);
        uint64_t below = bytes / unit * unit;
        AR_TRY(try_size(s, only, bytes, below, taken, error));
        if (!*taken && below + unit < TRACE_BYTES_LIMIT)
            AR_TRY(try_size(s, only, bytes, below + unit, taken, error));
    }
    return AR_OK;
}

static enum ar_status round_sizes(struct search *s, struct ar_error *error)
{
    AR_CLOSED(ar_map_close) struct ar_map seen = {0};
    bool taken;
    for (size_t i = 0; i < s->block_count; i++) {
        uint64_t bytes = s->blocks[i].bytes, ignored;
        if (s->blocks[i].state != KEPT || ar_map_get(&seen, bytes, &ignored))
            continue;
        AR_TRY(round_size(s, NULL, bytes, &taken, error));
        if (!taken && ar_map_put(&seen, bytes, 0))
            return ar_no_memory(error, "a trace");
    }
    for (size_t i = 0; i < s->block_count; i++)
        if (s->blocks[i].state == KEPT)
            AR_TRY(round_size(s, &s->blocks[i], s->blocks[i].bytes, &taken, error));
    return AR_OK;
}

/* ---- the whole --------------------------------------------------------------------------- */

static enum ar_status add_item(struct search *s, struct trace_source *trace,
                               const struct trace_event *event, struct ar_error *error)
{
    AR_TRY_MEMORY(ar_array_make_room(&s->items, s->item_count, &s->item_capacity, sizeof *s->items),
                  error, "a trace");
    struct item *item = &s->items[s->item_count++];
    *item = (struct item){.event = *event};
    item->event.attributes = 0;
    if (event->kind == TRACE_MARK || event->kind == TRACE_NOTE)
        item->text = trace_text_of(trace, event->value);
    if (event->attributes && event->kind != TRACE_KERNEL)
        item->keys = trace_attributes_of(trace, event->attributes);
    return AR_OK;
}

/* All events but notes on the recorded allocator's decisions. Keys and texts are the trace's. */
static enum ar_status read_items(struct search *s, struct trace_source *trace,
                                 struct ar_error *error)
{
    struct trace_cursor cursor = {.source = trace};
    const struct trace_event *event;
    uint64_t blocks = 0;
    enum ar_status status = trace_rewind(trace, error);
    while ((event = trace_read(&cursor, &status, error)) != NULL)
        if (event->kind != TRACE_NOTE || trace_is_change(event))
            status = add_item(s, trace, event, error);
    AR_TRY(status);
    for (size_t i = 0; i < s->item_count; i++)
        blocks += is_request(&s->items[i]);
    s->block_count = blocks;
    s->blocks = calloc(blocks + 1, sizeof *s->blocks);
    AR_TRY_MEMORY(s->blocks, error, "a trace");
    for (size_t i = 0; i < s->item_count; i++)
        if (is_request(&s->items[i]))
            s->blocks[s->items[i].event.id].bytes = s->items[i].event.value;
    s->info.complete = true;
    memcpy(s->info.name, trace->info.name, sizeof s->info.name);
    memcpy(s->info.format, "text", 5);
    return AR_OK;
}

static enum ar_status take_rounds(struct search *s, struct ar_error *error)
{
    do {
        s->changed = false;
        for (enum phase phase = STEPS; phase <= EVENTS; phase++)
            AR_TRY(run_phase(s, phase, error));
        AR_TRY(round_sizes(s, error));
    } while (s->changed);
    return AR_OK;
}

static enum ar_status search(struct search *s, struct trace_source *trace,
                             struct trace_source **out, struct ar_error *error)
{
    enum ar_status status = read_items(s, trace, error);
    AR_THEN(status, try_candidate(s, &s->result->shown, error));
    s->result->events[0] = s->item_count;
    s->result->requests[0] = s->block_count;
    if (status || !s->result->shown)
        return status;
    status = take_rounds(s, error);
    AR_THEN(status, make_candidate(s, out, error));
    if (!status) {
        s->result->events[1] = (*out)->info.events;
        s->result->requests[1] = (*out)->info.allocs + (*out)->info.probes;
    }
    return status;
}

enum ar_status minimize(const struct experiment *experiment, const struct condition *condition,
                        struct trace_source **out, struct minimize_result *result,
                        struct ar_error *error)
{
    struct search s = {.experiment = experiment, .condition = condition, .result = result};
    struct trace_source *trace, *owned;
    *out = NULL;
    *result = (struct minimize_result){0};
    AR_TRY(session_trace(experiment, false, &trace, &owned, error));
    enum ar_status status = search(&s, trace, out, error);
    free(s.items);
    free(s.blocks);
    trace_close(owned);
    return status;
}
