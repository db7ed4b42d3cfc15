/* Parts of a trace: a source that keeps some events of another one and repeats them.
 * 1. Every block of the source has an entry by its slot: whether it is kept, and its new id,
 *    because ids count up without gaps.
 * 2. Before the first requested step, requests and frees are only recorded in these entries. At the
 *    start of that step the requests of the live blocks are emitted, in the order of their ids.
 * 3. If only steps are left out of a recording, the result is a recording too: the state of the
 *    recorded allocator at the start of the part comes first, as notes, and includes pending
 *    blocks.
 * 4. At the end of each repetition but the last, the remaining blocks are freed, and settings and a
 *    limit that were changed in it return to those of the start. */
#include "workloads/trace/filter.h"

#include "allocators/base/array.h"
#include "allocators/base/size.h"
#include "workloads/trace/rewrite.h"

/* ---- the state of the recorded allocator ----
 *
 * The segments, pages and blocks of the recorded allocator, followed through the notes of a
 * recording, and written as notes at the start of a part of it. Segments, ranges and runs of mapped
 * pages are areas in one list by address.
 *
 * A recording does not contain the start and the end of a range. An allocator maps the pages of a
 * range from its start on, so pages that are mapped at or below the highest address that the range
 * has reached belong to it, and all others begin a new range. A range without pages is dropped.
 *
 * A recording does not contain the granted size of a block either. PyTorch, which made these
 * recordings, rounds to 512 bytes, and leaves a rest of up to 1 MiB with the block in a segment of
 * its large pool (any but those of 2 MiB). The rest is known when the block is placed: the block
 * ends at the next block or at the end of the segment. */

#define ROUND_BYTES         512u
#define SMALL_SEGMENT_BYTES (2 * AR_MIB)
#define REST_BYTES          AR_MIB /* a rest of up to this is not cut off */

enum area_kind { AREA_SEGMENT, AREA_RANGE, AREA_PAGES };

struct state_area {
    uint64_t address;
    uint64_t end; /* of a range: the highest end so far */
    uint32_t stream, pool;
    enum area_kind kind;
};

struct state_block {
    uint64_t address, end;
};

/* A zeroed struct is the empty state. */
struct recorded_state {
    struct state_area *areas; /* by address; the page runs of a range follow it */
    size_t count, room;
    struct state_block *blocks; /* in use, by address */
    size_t block_count, block_room;
};

static void state_close(struct recorded_state *self)
{
    free(self->areas);
    free(self->blocks);
    *self = (struct recorded_state){0};
}

static enum ar_status insert(struct recorded_state *self, size_t at, struct state_area area,
                             struct ar_error *error)
{
    AR_TRY_MEMORY(ar_array_make_room(&self->areas, self->count, &self->room, sizeof *self->areas),
                  error, "%zu segments", self->count);
    AR_ARRAY_INSERT(self->areas, self->count, at, area);
    return AR_OK;
}

static void drop(struct recorded_state *self, size_t at)
{
    AR_ARRAY_REMOVE(self->areas, self->count, at);
}

/* The first area above an address. */
static size_t above(const struct recorded_state *self, uint64_t address)
{
    return ar_array_above(self->areas, self->count, sizeof *self->areas,
                          offsetof(struct state_area, address), address);
}

/* The range of pages at an address; count: none. */
static size_t range_of(const struct recorded_state *self, uint64_t address, uint32_t stream)
{
    for (size_t i = above(self, address); i-- > 0;) {
        const struct state_area *area = &self->areas[i];
        if (area->kind == AREA_RANGE)
            return address <= area->end && area->stream == stream ? i : self->count;
    }
    return self->count;
}

static enum ar_status map(struct recorded_state *self, struct state_area pages,
                          struct ar_error *error)
{
    size_t range = range_of(self, pages.address, pages.stream);
    if (range == self->count) {
        struct state_area new_range = pages;
        new_range.kind = AREA_RANGE;
        range = above(self, pages.address);
        AR_TRY(insert(self, range, new_range, error));
    } else {
        AR_RAISE(self->areas[range].end, pages.end);
    }
    size_t at = above(self, pages.address);
    if (at > range + 1 && self->areas[at - 1].end == pages.address)
        self->areas[--at].end = pages.end;
    else
        AR_TRY(insert(self, at, pages, error));
    if (at + 1 < self->count && self->areas[at + 1].kind == AREA_PAGES &&
        self->areas[at + 1].address == self->areas[at].end) {
        self->areas[at].end = self->areas[at + 1].end;
        drop(self, at + 1);
    }
    return AR_OK;
}

static enum ar_status unmap(struct recorded_state *self, uint64_t address, uint64_t end,
                            struct ar_error *error)
{
    size_t at = above(self, address);
    if (!at || self->areas[at - 1].kind != AREA_PAGES || self->areas[at - 1].end < end)
        return AR_OK; /* they were never mapped: the recording contradicts itself */
    struct state_area rest = self->areas[--at];
    rest.address = end;
    if (self->areas[at].address == address)
        drop(self, at);
    else
        self->areas[at++].end = address;
    AR_TRY(rest.address < rest.end ? insert(self, at, rest, error) : AR_OK);
    size_t before = at ? at - 1 : 0;
    bool ends_here = at == self->count || self->areas[at].kind != AREA_PAGES;
    if (at && ends_here && self->areas[before].kind == AREA_RANGE)
        drop(self, before);
    return AR_OK;
}

/* The numbers after a verb; false for another verb. */
static bool numbers_of(const char *text, const char *verb, uint64_t numbers[3])
{
    size_t length = strlen(verb);
    if (strncmp(text, verb, length) != 0 || text[length] != ',')
        return false;
    numbers[2] = 0;
    return sscanf(text + length, ",%" SCNu64 ",%" SCNu64 ",%" SCNu64, &numbers[0], &numbers[1],
                  &numbers[2]) >= 2 &&
           numbers[1] && numbers[1] <= UINT64_MAX - numbers[0];
}

/* Applies a note of any kind. HOST_MEMORY. */
static enum ar_status state_note(struct recorded_state *self, const char *text,
                                 struct ar_error *error)
{
    uint64_t numbers[3];
    struct state_area area = {0};
    bool made = numbers_of(text, "segment_alloc", numbers);
    bool freed = !made && numbers_of(text, "segment_free", numbers);
    bool mapped = !made && !freed && numbers_of(text, "segment_map", numbers);
    bool unmapped = !made && !freed && !mapped && numbers_of(text, "segment_unmap", numbers);
    if (!made && !freed && !mapped && !unmapped)
        return AR_OK;
    area.address = numbers[0];
    area.end = numbers[0] + numbers[1];
    area.stream = (uint32_t)numbers[2];
    area.kind = mapped ? AREA_PAGES : AREA_SEGMENT;
    size_t at = above(self, area.address);
    if (mapped)
        return map(self, area, error);
    if (unmapped)
        return unmap(self, area.address, area.end, error);
    if (made)
        return insert(self, at, area, error);
    if (at && self->areas[at - 1].address == area.address)
        drop(self, at - 1);
    return AR_OK;
}

/* The first block above an address. */
static size_t block_above(const struct recorded_state *self, uint64_t address)
{
    return ar_array_above(self->blocks, self->block_count, sizeof *self->blocks,
                          offsetof(struct state_block, address), address);
}

/* The end of a block that begins at `address`. `next`: the start of the block above it. */
static uint64_t end_of(const struct state_area *area, uint64_t address, uint64_t bytes,
                       uint64_t next)
{
    uint64_t end = address + ar_size_round_up(bytes, ROUND_BYTES);
    if (!area || area->kind != AREA_SEGMENT || area->end <= address)
        return end < next ? end : next;
    uint64_t limit = area->end < next ? area->end : next;
    bool keeps_rest = area->end - area->address != SMALL_SEGMENT_BYTES;
    return end > limit || (keeps_rest && limit - end <= REST_BYTES) ? limit : end;
}

/* A block was placed, for a request of `bytes` from a pool (0: the common one). HOST_MEMORY. */
static enum ar_status state_placed(struct recorded_state *self, uint64_t address, uint64_t bytes,
                                   uint32_t pool, struct ar_error *error)
{
    size_t owner = above(self, address), at = block_above(self, address);
    AR_TRY_MEMORY(ar_array_make_room(&self->blocks, self->block_count, &self->block_room,
                                     sizeof *self->blocks),
                  error, "%zu blocks", self->block_count);
    while (owner && self->areas[owner - 1].kind == AREA_PAGES)
        owner--;
    struct state_area *area = owner ? &self->areas[owner - 1] : NULL;
    uint64_t next = at < self->block_count ? self->blocks[at].address : UINT64_MAX;
    if (area)
        area->pool = pool;
    AR_ARRAY_INSERT(self->blocks, self->block_count, at,
                    (struct state_block){address, end_of(area, address, bytes, next)});
    return AR_OK;
}

/* The block at an address may be used again. */
static void state_freed(struct recorded_state *self, uint64_t address)
{
    size_t at = block_above(self, address);
    if (!at || self->blocks[--at].address != address)
        return;
    AR_ARRAY_REMOVE(self->blocks, self->block_count, at);
}

/* Bytes of the block in use at an address; 0: none. */
static uint64_t state_bytes(const struct recorded_state *self, uint64_t address)
{
    size_t at = block_above(self, address);
    return at && self->blocks[at - 1].address == address ? self->blocks[at - 1].end - address : 0;
}

/* The note of area `index`, from 0; false past the last one. */
static bool state_print(const struct recorded_state *self, size_t index, char *text, size_t room)
{
    if (index >= self->count)
        return false;
    const struct state_area *area = &self->areas[index];
    char pool[16] = "";
    if (area->pool)
        snprintf(pool, sizeof pool, ",%" PRIu32, area->pool);
    uint64_t bytes = area->end - area->address;
    if (area->kind == AREA_SEGMENT)
        snprintf(text, room, "segment,%" PRIu64 ",%" PRIu64 ",%" PRIu32 "%s", area->address, bytes,
                 area->stream, pool);
    else if (area->kind == AREA_RANGE)
        snprintf(text, room, "range,%" PRIu64 ",%" PRIu32 "%s", area->address, area->stream, pool);
    else
        snprintf(text, room, "pages,%" PRIu64 ",%" PRIu64, area->address, bytes);
    return true;
}

/* ---- the filter ---- */

enum block_state { FREED, LIVE, FREE_REQUESTED };

struct filter_block {
    uint64_t id;      /* in the source */
    uint64_t new_id;  /* valid where it was emitted */
    uint64_t address; /* in the recording, if `placed` */
    struct trace_event request;
    uint8_t state;
    bool kept, emitted, placed;
};

struct filter {
    struct trace_rewrite base;
    struct trace_source *source;
    struct trace_filter_options options;
    uint32_t *streams, device;
    bool drops_notes, keeps_state;
    struct recorded_state recorded_state;
    uint32_t last_slot;          /* of the last request */
    struct filter_block *blocks; /* by the source's slot */
    size_t block_count;
    uint8_t *recorded; /* a bit per event number that was emitted */
    uint64_t next_id, noted_id, step, round;
    uint64_t steps;      /* the last step that has its mark, up to the requested ones */
    uint64_t requests;   /* of the source in this repetition */
    struct ar_map names; /* the new ids of blocks that were emitted and are there, by the old */
    uint64_t time_base_ns, time_ns; /* of the start of this repetition; of the last event emitted */
    uint64_t source_ns, origin_ns;  /* the source's time; now, and at the start of the part */
    bool inside;                    /* within the requested steps */
    bool splits;                    /* a completion followed a free request */
    /* A note of this repetition changed the limit; the settings; `expandable_segments` of them. */
    bool new_limit, new_settings, new_ranges;
};

static enum ar_status block_at(struct filter *filter, uint32_t slot, struct filter_block **block,
                               struct ar_error *error)
{
    AR_TRY_MEMORY(AR_ARRAY_REACH(filter->blocks, filter->block_count, slot), error,
                  "the blocks of a trace");
    *block = &filter->blocks[slot];
    return AR_OK;
}

static bool keeps_kind(const struct filter *filter, unsigned kind)
{
    return !filter->options.kinds || filter->options.kinds & 1u << kind;
}

static bool keeps_stream(const struct filter *filter, uint32_t stream)
{
    for (size_t i = 0; i < filter->options.stream_count; i++)
        if (filter->streams[i] == stream)
            return true;
    return !filter->options.stream_count;
}

static bool keeps_device(const struct filter *filter, const struct trace_event *event)
{
    return !filter->options.device ||
           trace_attributes_of(filter->source, event->attributes)->device == filter->device;
}

static enum ar_status emit(struct filter *filter, struct trace_event event,
                           const struct trace_attributes *attributes, struct ar_error *error)
{
    return trace_rewrite_emit(&filter->base, filter->source, event, attributes, error);
}

static enum ar_status emit_request(struct filter *filter, struct filter_block *block, bool initial,
                                   struct ar_error *error)
{
    struct trace_event request = block->request;
    struct trace_attributes keys;
    AR_FREED char *rest = NULL;
    block->new_id = request.id = filter->next_id++;
    block->emitted = true;
    if (ar_map_put(&filter->names, block->id, block->new_id) != AR_OK)
        return ar_no_memory(error, "the blocks of a trace");
    if (!initial)
        return emit(filter, request, NULL, error);
    keys = *trace_attributes_of(filter->source, request.attributes);
    static const char key[] = "initial=yes";
    if (!keys.rest || !strstr(keys.rest, key)) {
        size_t room = (keys.rest ? strlen(keys.rest) + 1 : 0) + sizeof key;
        rest = malloc(room);
        AR_TRY_MEMORY(rest, error, "the keys of a trace");
        (void)snprintf(rest, room, "%s%s%s", keys.rest ? keys.rest : "", keys.rest ? "," : "", key);
        keys.rest = rest;
    }
    return emit(filter, request, &keys, error);
}

static enum ar_status take_request(struct filter *filter, const struct trace_event *event,
                                   struct ar_error *error)
{
    filter->requests++;
    struct filter_block *block = NULL;
    AR_TRY(block_at(filter, event->slot, &block, error));
    *block = (struct filter_block){
        .id = event->id,
        .request = *event,
        .state = LIVE,
        .kept = keeps_kind(filter, event->kind) && event->value >= filter->options.min_bytes &&
                keeps_stream(filter, event->stream) && keeps_device(filter, event),
    };
    filter->last_slot = event->slot;
    return block->kept && filter->inside ? emit_request(filter, block, false, error) : AR_OK;
}

/* A free request, completion or use of a block that is kept and was emitted. */
static enum ar_status take_block_event(struct filter *filter, const struct trace_event *given,
                                       struct ar_error *error)
{
    struct trace_event event = *given;
    struct filter_block *block = NULL;
    AR_TRY(block_at(filter, event.slot, &block, error));
    if (!block->kept || block->id != event.id)
        return AR_OK;
    if (event.kind != TRACE_USE)
        ar_map_remove(&filter->names, event.id);
    bool was_free_requested = block->state == FREE_REQUESTED;
    if (event.kind == TRACE_FREE_REQUESTED || event.kind == TRACE_FREE_COMPLETED)
        block->state = event.kind == TRACE_FREE_COMPLETED ? FREED : FREE_REQUESTED;
    filter->splits |= was_free_requested;
    if (block->state == FREED && block->placed)
        state_freed(&filter->recorded_state, block->address);
    if (!block->emitted)
        return AR_OK;
    event.id = block->new_id;
    if (event.kind == TRACE_FREE_REQUESTED && filter->options.at_once)
        event.kind = TRACE_FREE_COMPLETED;
    else if (event.kind == TRACE_FREE_COMPLETED && filter->options.at_once && was_free_requested)
        return AR_OK;
    if (event.kind == TRACE_FREE_REQUESTED && !keeps_stream(filter, event.stream))
        event.stream = TRACE_NO_STREAM;
    if (!keeps_kind(filter, event.kind) ||
        (event.kind == TRACE_USE && !keeps_stream(filter, event.stream)))
        return AR_OK;
    return emit(filter, event, NULL, error);
}

/* Applies a note to the state of the recorded allocator. */
static enum ar_status take_note(struct filter *filter, const struct trace_event *event,
                                struct ar_error *error)
{
    static const char verb[] = "alloc,";
    const char *text = trace_text_of(filter->source, event->value);
    struct filter_block *block = NULL;
    if (strncmp(text, verb, sizeof verb - 1) != 0)
        return state_note(&filter->recorded_state, text, error);
    AR_TRY(block_at(filter, filter->last_slot, &block, error));
    block->address = strtoull(text + sizeof verb - 1, NULL, 10);
    block->placed = true;
    uint32_t attributes = block->request.attributes;
    return state_placed(&filter->recorded_state, block->address, block->request.value,
                        attributes ? trace_attributes_of(filter->source, attributes)->pool : 0,
                        error);
}

/* Event numbers that an emitted `e` recorded; waits for others are left out. */
static enum ar_status recorded_bit(struct filter *filter, const struct trace_event *event,
                                   bool *keep, struct ar_error *error)
{
    if (!filter->recorded) {
        filter->recorded = calloc(TRACE_EVENT_LIMIT / 8, 1);
        AR_TRY_MEMORY(filter->recorded, error, "the events of a trace");
    }
    *keep = true;
    if (event->value >= TRACE_EVENT_LIMIT)
        return AR_OK; /* the check refuses it */
    uint8_t bit = (uint8_t)(1u << event->value % 8);
    if (event->kind == TRACE_RECORD)
        filter->recorded[event->value / 8] |= bit;
    else
        *keep = filter->recorded[event->value / 8] & bit;
    return AR_OK;
}

static bool find_name(const void *names, uint64_t id, uint64_t *new_id)
{
    return ar_map_get(names, id, new_id);
}

static enum ar_status take_kernel(struct filter *filter, struct trace_event event,
                                  struct ar_error *error)
{
    const struct trace_rewrite_names names = {.lookup = find_name,
                                              .argument = &filter->names,
                                              .next_id = filter->requests,
                                              .new_next_id = filter->next_id};
    return trace_rewrite_kernel(&filter->base, filter->source, event, NULL, &names, error);
}

static void note_change(struct filter *filter, const char *text)
{
    bool limit = *text == 'l';
    filter->new_limit |= limit;
    filter->new_settings |= !limit;
    filter->new_ranges |= strstr(text, "expandable_segments") != NULL;
}

/* Expandable segments stay as they are until a text names them. */
static enum ar_status return_to_start(struct filter *filter, struct ar_error *error)
{
    const struct trace_info *info = &filter->source->info;
    bool ranges = filter->new_ranges && !strstr(info->conf, "expandable_segments");
    char text[sizeof info->conf + 64];
    if (filter->new_settings) {
        snprintf(text, sizeof text, "settings,%s%s%s", info->conf,
                 ranges && info->conf[0] ? "," : "", ranges ? "expandable_segments:False" : "");
        AR_TRY(trace_rewrite_note(&filter->base, text, error));
    }
    snprintf(text, sizeof text, "limit,%" PRIu64, info->limit_bytes);
    if (filter->new_limit)
        AR_TRY(trace_rewrite_note(&filter->base, text, error));
    filter->new_limit = filter->new_settings = filter->new_ranges = false;
    return AR_OK;
}

static enum ar_status take_other(struct filter *filter, const struct trace_event *given,
                                 struct ar_error *error)
{
    struct trace_event event = *given;
    bool has_stream = trace_kind_has_stream(event.kind);
    bool keep =
        keeps_kind(filter, event.kind) &&
        (!has_stream || event.stream == TRACE_NO_STREAM || keeps_stream(filter, event.stream)) &&
        (event.kind != TRACE_NOTE || !filter->drops_notes || trace_is_replayed(&event)) &&
        (event.kind == TRACE_TIME || event.kind == TRACE_MARK || trace_is_replayed(&event) ||
         keeps_device(filter, &event));
    if (event.kind == TRACE_TIME)
        event.value = filter->time_ns = filter->time_base_ns + event.value - filter->origin_ns;
    if (keep && (event.kind == TRACE_RECORD || event.kind == TRACE_WAIT))
        AR_TRY(recorded_bit(filter, &event, &keep, error));
    if (keep && trace_is_change(&event))
        note_change(filter, trace_text_of(filter->source, event.value));
    if (keep && event.kind == TRACE_KERNEL && event.attributes)
        return take_kernel(filter, event, error);
    return keep ? emit(filter, event, NULL, error) : AR_OK;
}

static int by_id(const void *left, const void *right)
{
    uint64_t a = (*(const struct filter_block *const *)left)->id;
    uint64_t b = (*(const struct filter_block *const *)right)->id;
    return (a > b) - (a < b);
}

/* Calls `act` for each kept block that is not freed, in the order of ids. */
static enum ar_status each_left(struct filter *filter,
                                enum ar_status (*act)(struct filter *, struct filter_block *,
                                                      struct ar_error *),
                                struct ar_error *error)
{
    size_t count = 0;
    AR_FREED struct filter_block **left = malloc((filter->block_count + 1) * sizeof *left);
    AR_TRY_MEMORY(left, error, "the blocks of a trace");
    for (size_t i = 0; i < filter->block_count; i++)
        if (filter->blocks[i].kept && filter->blocks[i].state != FREED)
            left[count++] = &filter->blocks[i];
    qsort(left, count, sizeof(struct filter_block *), by_id);
    for (size_t i = 0; i < count; i++)
        AR_TRY(act(filter, left[i], error));
    return AR_OK;
}

/* Whether the result begins with a state of the recorded allocator that is not empty. */
static bool has_state(const struct filter *filter)
{
    return filter->keeps_state && filter->recorded_state.count;
}

/* Whether the block exists at the start of the part. Pending blocks do only if the recorded
 * allocator is followed. */
static bool exists_at_start(const struct filter *filter, const struct filter_block *block)
{
    return block->state == LIVE || (has_state(filter) && filter->source->info.has_split_frees);
}

static enum ar_status note_block(struct filter *filter, struct filter_block *block,
                                 struct ar_error *error)
{
    char text[96];
    if (!exists_at_start(filter, block))
        return AR_OK;
    block->new_id = filter->noted_id++; /* as emit_request sets it later */
    if (!block->placed)
        return AR_OK;
    snprintf(text, sizeof text, "block,%llu,%llu,%llu", (unsigned long long)block->address,
             (unsigned long long)state_bytes(&filter->recorded_state, block->address),
             (unsigned long long)block->new_id);
    return trace_rewrite_note(&filter->base, text, error);
}

static enum ar_status begin_with(struct filter *filter, struct filter_block *block,
                                 struct ar_error *error)
{
    if (!exists_at_start(filter, block))
        return AR_OK;
    AR_TRY(emit_request(filter, block, true, error));
    if (block->state == LIVE)
        return AR_OK;
    const struct trace_event free_requested = {
        .kind = TRACE_FREE_REQUESTED, .id = block->new_id, .stream = TRACE_NO_STREAM};
    return emit(filter, free_requested, NULL, error);
}

/* Emits the state at the start of the part. */
static enum ar_status begin(struct filter *filter, struct ar_error *error)
{
    char text[96];
    enum ar_status status = AR_OK;
    for (size_t i = 0;
         has_state(filter) && !status && state_print(&filter->recorded_state, i, text, sizeof text);
         i++)
        status = trace_rewrite_note(&filter->base, text, error);
    filter->noted_id = filter->next_id;
    if (!status && has_state(filter))
        status = each_left(filter, note_block, error);
    return status ? status : each_left(filter, begin_with, error);
}

static enum ar_status end_with(struct filter *filter, struct filter_block *block,
                               struct ar_error *error)
{
    if (!block->emitted || (block->state == FREE_REQUESTED && !filter->splits))
        return AR_OK;
    block->state = FREED;
    return emit(filter, (struct trace_event){.kind = TRACE_FREE_COMPLETED, .id = block->new_id},
                NULL, error);
}

/* The end of a step, or the start of the trace: the requested part may begin or end here. */
static enum ar_status enter_step(struct filter *filter, uint64_t step, struct ar_error *error)
{
    const struct trace_filter_options *o = &filter->options;
    filter->step = step;
    bool inside = !o->first_step || (step >= o->first_step && step <= o->last_step);
    bool begins = inside && !filter->inside;
    filter->inside = inside;
    if (begins)
        filter->origin_ns = filter->source_ns;
    return begins && step > 1 ? begin(filter, error) : AR_OK;
}

static enum ar_status take_event(struct filter *filter, const struct trace_event *event,
                                 struct ar_error *error)
{
    enum ar_status status = AR_OK;
    if (event->kind == TRACE_TIME)
        filter->source_ns = event->value;
    if (event->kind == TRACE_NOTE && filter->keeps_state && !filter->inside &&
        !trace_is_replayed(event))
        status = take_note(filter, event, error);
    else if (event->kind == TRACE_ALLOC || event->kind == TRACE_PROBE)
        status = take_request(filter, event, error);
    else if (trace_kind_has_block(event->kind))
        status = take_block_event(filter, event, error);
    else if (filter->inside || trace_is_replayed(event)) /* it holds in later steps too */
        status = take_other(filter, event, error);
    if (status || !trace_ends_step(event))
        return status;
    AR_RAISE(filter->steps, filter->step);
    return enter_step(filter, filter->step + 1, error);
}

static enum ar_status begin_round(struct filter *filter, struct ar_error *error)
{
    if (filter->block_count)
        memset(filter->blocks, 0, filter->block_count * sizeof *filter->blocks);
    state_close(&filter->recorded_state);
    filter->inside = false;
    filter->requests = 0;
    ar_map_clear(&filter->names);
    filter->source_ns = 0;
    filter->time_base_ns = filter->time_ns;
    AR_TRY(trace_rewind(filter->source, error));
    return enter_step(filter, 1, error);
}

static enum ar_status filter_fill(struct trace_rewrite *self, struct ar_error *error)
{
    struct filter *filter = (struct filter *)self;
    while (!self->count) {
        const struct trace_event *events;
        size_t count;
        AR_TRY(trace_next(filter->source, &events, &count, error));
        bool past = filter->options.first_step && filter->step > filter->options.last_step;
        if (!count || past) {
            if (filter->round + 1 >= filter->options.repeat)
                return AR_OK;
            filter->round++;
            AR_TRY(each_left(filter, end_with, error));
            AR_TRY(return_to_start(filter, error));
            AR_TRY(begin_round(filter, error));
            count = 0;
        }
        for (size_t i = 0; i < count; i++)
            if (!filter->options.first_step || filter->step <= filter->options.last_step)
                AR_TRY(take_event(filter, &events[i], error));
    }
    return AR_OK;
}

static enum ar_status filter_restart(struct trace_rewrite *self, struct ar_error *error)
{
    struct filter *filter = (struct filter *)self;
    filter->next_id = filter->round = 0;
    filter->time_ns = 0;
    if (filter->recorded)
        memset(filter->recorded, 0, TRACE_EVENT_LIMIT / 8);
    return begin_round(filter, error);
}

static void filter_close(struct trace_rewrite *self)
{
    struct filter *filter = (struct filter *)self;
    trace_close(filter->source);
    state_close(&filter->recorded_state);
    free(filter->streams);
    free(filter->blocks);
    ar_map_close(&filter->names);
    free(filter->recorded);
}

static const struct trace_rewrite_ops filter_ops = {
    .fill = filter_fill, .restart = filter_restart, .close = filter_close};

static enum ar_status set_options(struct filter *filter, const struct trace_filter_options *options,
                                  struct ar_error *error)
{
    filter->options = *options;
    filter->options.streams = NULL;
    filter->device = options->device ? *options->device : 0;
    filter->drops_notes = options->device || options->stream_count || options->min_bytes ||
                          options->at_once || options->repeat > 1;
    filter->keeps_state =
        options->first_step && !filter->drops_notes && keeps_kind(filter, TRACE_NOTE);
    if (options->stream_count) {
        filter->streams = malloc(options->stream_count * sizeof *filter->streams);
        AR_TRY_MEMORY(filter->streams, error, "a filter");
        memcpy(filter->streams, options->streams, options->stream_count * sizeof *filter->streams);
    }
    return AR_OK;
}

static enum ar_status check_left(const struct filter *filter, const struct trace_info *whole,
                                 const struct trace_filter_options *options, struct ar_error *error)
{
    const struct trace_info *left = &filter->base.base.info;
    bool blocks_wanted = !options->kinds && (options->device || options->stream_count);
    uint64_t last = options->last_step < UINT64_MAX ? options->last_step : options->first_step;
    if (!filter->steps && last)
        return ar_invalid(error, "the trace has no step; a mark `step` ends one");
    if (filter->steps < last)
        return ar_invalid(error,
                          "the trace has %" PRIu64 " step%s, and no step %" PRIu64 "; %" PRIu64
                          "- has all from that step on, also behind the last mark",
                          filter->steps, filter->steps == 1 ? "" : "s", last,
                          options->first_step < filter->steps ? options->first_step
                                                              : filter->steps);
    if (!left->events || (blocks_wanted && !(left->allocs || left->probes || left->kernels) &&
                          (whole->allocs || whole->probes)))
        return ar_invalid(error,
                          "the filter leaves no events: the trace has %llu steps and %u streams",
                          (unsigned long long)whole->steps, whole->streams);
    return AR_OK;
}

enum ar_status trace_filter(struct trace_source *source, const struct trace_filter_options *options,
                            struct trace_source **out, struct ar_error *error)
{
    struct filter *filter = calloc(1, sizeof *filter);
    if (!filter) {
        trace_close(source);
        return ar_no_memory(error, "a filter");
    }
    filter->source = source;
    filter->base.ops = &filter_ops;
    filter->base.base.info = source->info;
    enum ar_status status = set_options(filter, options, error);
    if (status) {
        filter_close(&filter->base);
        free(filter);
        return status;
    }
    AR_TRY(trace_rewrite_open(&filter->base, error));
    status = check_left(filter, &source->info, options, error);
    if (status)
        trace_close(&filter->base.base);
    else
        *out = &filter->base.base;
    return status;
}

enum ar_status trace_filter_kinds(const char *letters, uint32_t *kinds, struct ar_error *error)
{
    static const char all[] = TRACE_LETTERS;
    *kinds = 0;
    for (const char *at = letters; *at; at++) {
        const char *found = strchr(all, *at);
        if (*at == ',')
            continue;
        if (!found)
            return ar_invalid(error, "\"%c\" in \"%.40s\" is no kind of event; the kinds are %s",
                              *at, letters, all);
        *kinds |= 1u << (found - all + 1);
    }
    if (!*kinds)
        return ar_invalid(error, "no kind of event is given; the kinds are %s", all);
    return AR_OK;
}

enum ar_status trace_filter_steps(const char *text, struct trace_filter_options *options,
                                  struct ar_error *error)
{
    char first[32];
    const char *dash = strchr(text, '-');
    size_t length = dash ? (size_t)(dash - text) : strlen(text);
    bool good = length && length < sizeof first;
    if (good) {
        memcpy(first, text, length);
        first[length] = 0;
        good = ar_count_parse(first, &options->first_step, NULL) == AR_OK;
        options->last_step = options->first_step;
    }
    if (good && dash && dash[1])
        good = ar_count_parse(dash + 1, &options->last_step, NULL) == AR_OK;
    else if (good && dash)
        options->last_step = UINT64_MAX;
    if (!good || !options->first_step || options->last_step < options->first_step)
        return ar_invalid(error, "steps \"%.40s\": write A-B, A- or A, counted from 1", text);
    return AR_OK;
}
