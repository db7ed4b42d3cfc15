/* The rules for the order of events: a state for each block that is not complete, by slot, and a
 * map from id to slot.
 * 1. Ids count up from 0 in the order of requests, so one number tells whether an id was used
 *    before, and memory is bounded by the blocks live at once, whatever the length of the trace.
 * 2. The slot that was freed last is used first; if no slot is free, a new one is made.
 * 3. A block is live, then free requested, then complete; or live, then complete at once. If no
 *    completion follows any free request in the whole trace, a free request frees the slot.
 * 4. The hash is that of the records without their slots, then of keys and texts. */
#include "workloads/trace/check.h"

#include "allocators/base/array.h"
#include "allocators/base/size.h"

enum block_state { BLOCK_FREE, BLOCK_LIVE, BLOCK_FREE_REQUESTED };

struct trace_check_block {
    uint64_t id, bytes;
    uint32_t stream;
    uint32_t next; /* the slot freed before this one; UINT32_MAX: none */
    uint8_t state;
    bool pinned;
};

#define NO_SLOT      UINT32_MAX
#define BYTES_IN_ALL (UINT64_C(1) << 63)
#define DRIVER_MOST  (UINT64_C(1) << 40) /* bytes of a note */

void trace_check_start(struct trace_check *check, const struct trace_tables *tables, bool by_slot,
                       bool free_requested_final)
{
    *check = (struct trace_check){.tables = tables,
                                  .by_slot = by_slot,
                                  .free_requested_final = free_requested_final,
                                  .free_slot = NO_SLOT};
    sha256_start(&check->hash);
}

void trace_check_close(struct trace_check *check)
{
    free(check->blocks);
    ar_map_close(&check->slot_of_id);
    free(check->recorded);
    check->blocks = NULL;
    check->recorded = NULL;
}

static enum ar_status take_slot(struct trace_check *check, struct trace_event *event,
                                struct ar_error *error)
{
    if (check->by_slot) {
        if (event->slot > check->block_count ||
            (event->slot < check->block_count && check->blocks[event->slot].state != BLOCK_FREE))
            return ar_invalid(error, "block %llu has slot %u, which is not free",
                              (unsigned long long)event->id, event->slot);
    } else if (check->free_slot != NO_SLOT) {
        event->slot = check->free_slot;
        check->free_slot = check->blocks[event->slot].next;
    } else {
        event->slot = (uint32_t)check->block_count;
    }
    if (event->slot == check->block_count) {
        if (check->block_count == UINT32_C(1) << 31)
            return ar_invalid(error, "more than 2^31 blocks live at once");
        AR_TRY_MEMORY(ar_array_make_room(&check->blocks, check->block_count, &check->block_capacity,
                                         sizeof *check->blocks),
                      error, "the blocks of a trace");
        check->blocks[check->block_count++].state = BLOCK_FREE;
    }
    return AR_OK;
}

static void free_slot(struct trace_check *check, uint32_t slot)
{
    struct trace_check_block *block = &check->blocks[slot];
    if (!check->by_slot) {
        (void)ar_map_remove(&check->slot_of_id, block->id);
        block->next = check->free_slot;
        check->free_slot = slot;
    }
    block->state = BLOCK_FREE;
}

/* Pinned host memory is on no GPU. */
static void count_gpu(struct trace_check *check, const struct trace_event *event)
{
    const struct trace_attributes *keys = trace_tables_at(check->tables, event->attributes);
    check->gpu_pinned = keys->space == TRACE_SPACE_PINNED;
    if (check->gpu_pinned)
        return;
    if (keys->device < 64)
        check->counts.gpus |= UINT64_C(1) << keys->device;
    else
        check->counts.has_far_gpu = true;
}

static enum ar_status check_alloc(struct trace_check *check, struct trace_event *event,
                                  struct ar_error *error)
{
    struct trace_info *counts = &check->counts;
    uint64_t next = counts->allocs + counts->probes;
    if (event->id != next)
        return ar_invalid(error,
                          event->id < next
                              ? "id %llu was used before: ids count up from 0 in the order of "
                                "allocation and are never used again; the next one is %llu"
                              : "id %llu is ahead: ids count up from 0 in the order of allocation; "
                                "the next one is %llu",
                          (unsigned long long)event->id, (unsigned long long)next);
    if (event->value >= TRACE_BYTES_LIMIT)
        return ar_invalid(error, "%llu bytes are requested: requests must be below 2^60 bytes",
                          (unsigned long long)event->value);
    if (counts->allocated_bytes + event->value >= BYTES_IN_ALL)
        return ar_invalid(error, "the requests come to 2^63 bytes or more in all");
    AR_TRY(take_slot(check, event, error));
    if (check->gpu_keys != event->attributes + 1)
        count_gpu(check, event);
    check->gpu_keys = event->attributes + 1;
    check->blocks[event->slot] = (struct trace_check_block){.id = event->id,
                                                            .bytes = event->value,
                                                            .stream = event->stream,
                                                            .state = BLOCK_LIVE,
                                                            .pinned = check->gpu_pinned};
    if (!check->by_slot && ar_map_put(&check->slot_of_id, event->id, event->slot) != AR_OK)
        return ar_no_memory(error, "the blocks of a trace");
    if (counts->allocs + counts->probes == 0)
        check->first_stream = event->stream;
    check->several_streams |= event->stream != check->first_stream;
    counts->allocs += event->kind == TRACE_ALLOC;
    counts->probes += event->kind == TRACE_PROBE;
    counts->zero_allocs += event->value == 0;
    counts->allocated_bytes += event->value;
    check->live_bytes += event->value;
    AR_RAISE(counts->peak_live_bytes, check->live_bytes);
    check->card_bytes += check->gpu_pinned ? 0 : event->value;
    AR_RAISE(counts->peak_card_bytes, check->card_bytes);
    if (++check->live_blocks > check->peak_live_blocks)
        check->peak_live_blocks = check->live_blocks;
    if (++check->held_blocks > check->peak_held_blocks)
        check->peak_held_blocks = check->held_blocks;
    return AR_OK;
}

/* The block that an event names, live or pending. */
static enum ar_status find_block(struct trace_check *check, struct trace_event *event,
                                 struct trace_check_block **block, struct ar_error *error)
{
    uint64_t used = check->counts.allocs + check->counts.probes;
    if (event->id >= used)
        return ar_invalid(error, "no block of id %llu was allocated before this",
                          (unsigned long long)event->id);
    if (!check->by_slot) {
        uint64_t slot = NO_SLOT;
        (void)ar_map_get(&check->slot_of_id, event->id, &slot);
        event->slot = (uint32_t)slot;
    }
    if (event->slot >= check->block_count || check->blocks[event->slot].state == BLOCK_FREE ||
        check->blocks[event->slot].id != event->id)
        return ar_invalid(
            error, "block %llu was freed before this (a double free, or a use after the free)",
            (unsigned long long)event->id);
    *block = &check->blocks[event->slot];
    return AR_OK;
}

static void count_free_requested(struct trace_check *check, const struct trace_check_block *block)
{
    check->live_bytes -= block->bytes;
    check->card_bytes -= block->pinned ? 0 : block->bytes;
    check->live_blocks--;
    check->counts.frees++;
}

static enum ar_status check_block_event(struct trace_check *check, struct trace_event *event,
                                        struct ar_error *error)
{
    struct trace_check_block *block = NULL;
    AR_TRY(find_block(check, event, &block, error));
    check->block_stream = block->stream;
    if (event->kind != TRACE_FREE_COMPLETED && block->state != BLOCK_LIVE)
        return ar_invalid(error, "the free of block %llu was requested before this",
                          (unsigned long long)event->id);
    if (event->kind == TRACE_USE) {
        check->counts.has_uses = true;
        check->several_streams |= event->stream != check->first_stream;
    } else if (event->kind == TRACE_FREE_REQUESTED) {
        if (event->stream == TRACE_NO_STREAM)
            event->stream = block->stream;
        check->several_streams |= event->stream != check->first_stream;
        count_free_requested(check, block);
        check->free_requests++;
        block->state = BLOCK_FREE_REQUESTED;
        if (check->free_requested_final) {
            check->held_blocks--;
            free_slot(check, event->slot);
        }
    } else {
        event->stream = block->stream;
        event->flags = block->state == BLOCK_LIVE ? TRACE_WHOLE : 0;
        if (block->state == BLOCK_LIVE)
            count_free_requested(check, block);
        else
            check->counts.has_split_frees = true;
        check->held_blocks--;
        free_slot(check, event->slot);
    }
    return AR_OK;
}

static enum ar_status check_order(struct trace_check *check, const struct trace_event *event,
                                  struct ar_error *error)
{
    if (event->value >= TRACE_EVENT_LIMIT)
        return ar_invalid(error, "event number %llu: event numbers are below %u",
                          (unsigned long long)event->value, TRACE_EVENT_LIMIT);
    if (!check->recorded) {
        check->recorded = calloc(TRACE_EVENT_LIMIT / 8, 1);
        AR_TRY_MEMORY(check->recorded, error, "the blocks of a trace");
    }
    uint8_t *byte = &check->recorded[event->value / 8];
    uint8_t bit = (uint8_t)(1u << event->value % 8);
    if (event->kind == TRACE_RECORD)
        *byte |= bit;
    else if (!(*byte & bit))
        return ar_invalid(error, "a stream waits for event %llu, which was not recorded before",
                          (unsigned long long)event->value);
    return AR_OK;
}

bool trace_driver_note(const char *text, bool *is_local, uint64_t *bytes)
{
    *is_local = strncmp(text, "driver,local,", 13) == 0;
    if (!*is_local && strncmp(text, "driver,took,", 12) != 0)
        return false;
    return ar_count_parse(text + (*is_local ? 13 : 12), bytes, NULL) == AR_OK &&
           *bytes <= DRIVER_MOST;
}

static enum ar_status check_driver(const char *text, struct ar_error *error)
{
    bool is_local;
    uint64_t bytes;
    if (trace_driver_note(text, &is_local, &bytes))
        return AR_OK;
    return ar_invalid(error, "a note on the driver is driver,local,BYTES or driver,took,BYTES, at "
                             "most 2^40");
}

static enum ar_status check_text(struct trace_check *check, struct trace_event *event,
                                 struct ar_error *error)
{
    const char *text = trace_tables_text(check->tables, event->value);
    if (event->kind == TRACE_MARK && (!*text || strpbrk(text, ",=")))
        return ar_invalid(error, "a mark has a label: a word without commas and equals signs");
    if (event->kind == TRACE_NOTE && (strcmp(text, "settings") == 0 || strcmp(text, "limit") == 0))
        return ar_invalid(error, "the note %s has no value: write !,%s,%s", text, text,
                          *text == 's' ? "CONF" : "BYTES");
    if (event->kind == TRACE_MARK)
        event->flags = strcmp(text, "step") == 0 ? TRACE_STEP : 0;
    else if (strncmp(text, "settings,", 9) == 0 || strncmp(text, "limit,", 6) == 0)
        event->flags = TRACE_CHANGE;
    else if (strncmp(text, "driver,", 7) == 0 || strcmp(text, "driver") == 0)
        event->flags = TRACE_DRIVER;
    if (event->flags == TRACE_DRIVER)
        AR_TRY(check_driver(text, error));
    if (event->value > check->texts_seen)
        return ar_invalid(error, "text %llu is used before text %llu",
                          (unsigned long long)event->value, (unsigned long long)check->texts_seen);
    check->texts_seen += event->value == check->texts_seen;
    check->counts.steps += event->flags == TRACE_STEP;
    return AR_OK;
}

static enum ar_status check_value(struct trace_check *check, const struct trace_event *event,
                                  struct ar_error *error)
{
    if (event->kind == TRACE_OUTSIDE) {
        if (event->value >= TRACE_BYTES_LIMIT)
            return ar_invalid(error, "%llu bytes outside of the pool: must be below 2^60",
                              (unsigned long long)event->value);
        return AR_OK;
    }
    if (event->value >= TRACE_TIME_LIMIT)
        return ar_invalid(error, "%llu nanoseconds: must be below 2^62",
                          (unsigned long long)event->value);
    if (event->kind == TRACE_KERNEL) {
        /* Clocks add these up. */
        if (event->value >= TRACE_TIME_LIMIT - check->kernel_ns)
            return ar_invalid(error, "all kernels together must take less than 2^62 nanoseconds");
        check->kernel_ns += event->value;
        check->counts.kernels++;
        return AR_OK;
    }
    if (event->value < check->time_ns)
        return ar_invalid(error, "the time goes back from %llu to %llu ns",
                          (unsigned long long)check->time_ns, (unsigned long long)event->value);
    check->time_ns = event->value;
    check->counts.has_times = true;
    return AR_OK;
}

static enum ar_status check_stream(struct trace_check *check, const struct trace_event *event,
                                   struct ar_error *error)
{
    if (event->stream == TRACE_NO_STREAM &&
        (event->kind == TRACE_SYNC || event->kind == TRACE_FREE_REQUESTED))
        return AR_OK;
    if (event->stream >= TRACE_STREAM_LIMIT)
        return ar_invalid(error, "stream %u: ordinals are below %u", event->stream,
                          TRACE_STREAM_LIMIT);
    if (event->stream >= check->counts.streams)
        check->counts.streams = event->stream + 1;
    return AR_OK;
}

static void add_to_hash(struct trace_check *check, const struct trace_event *event)
{
    check->batch[check->batch_count] = *event;
    check->batch[check->batch_count].slot = 0;
    if (++check->batch_count == TRACE_HASH_BATCH) {
        sha256_add(&check->hash, check->batch, sizeof check->batch);
        check->batch_count = 0;
    }
}

enum ar_status trace_check_event(struct trace_check *check, struct trace_event *event,
                                 struct ar_error *error)
{
    unsigned kind = event->kind;
    enum ar_status status = AR_OK;
    event->zero = 0;
    event->flags = 0;
    if (!kind || kind > TRACE_KIND_LAST)
        return ar_invalid(error, "there is no event of kind %u", kind);
    if (event->attributes > check->keys_seen + 1)
        return ar_invalid(error, "keys %u are used before keys %u", event->attributes,
                          check->keys_seen + 1);
    AR_RAISE(check->keys_seen, event->attributes);
    if (trace_kind_has_stream(kind))
        status = check_stream(check, event, error);
    else
        event->stream = 0;
    if (!trace_kind_has_block(kind))
        event->slot = 0, event->id = 0;
    if (!status && (kind == TRACE_ALLOC || kind == TRACE_PROBE)) {
        status = check_alloc(check, event, error);
    } else if (!status && trace_kind_has_block(kind)) {
        event->value = 0;
        status = check_block_event(check, event, error);
    } else if (!status && (kind == TRACE_RECORD || kind == TRACE_WAIT)) {
        status = check_order(check, event, error);
    } else if (!status && (kind == TRACE_MARK || kind == TRACE_NOTE)) {
        status = check_text(check, event, error);
    } else if (!status && (kind == TRACE_SYNC || kind == TRACE_TRIM)) {
        event->value = 0;
    } else if (!status) {
        status = check_value(check, event, error);
    }
    AR_TRY(status);
    check->counts.events++;
    if (!check->hash_off)
        add_to_hash(check, event);
    return AR_OK;
}

enum ar_status trace_check_span(struct trace_check *check, const struct trace_event *events,
                                size_t count, size_t *at, struct ar_error *error)
{
    for (*at = 0; *at < count; ++*at) {
        struct trace_event event = events[*at];
        AR_TRY(trace_check_event(check, &event, error));
        if (memcmp(&event, &events[*at], sizeof event) != 0)
            return ar_invalid(error, "its flags, stream or unused fields are wrong");
    }
    return AR_OK;
}

static void hash_texts(struct sha256 *hash, const struct texts *texts)
{
    for (size_t i = 0; i < texts->count; i++) {
        sha256_add(hash, texts->items[i], strlen(texts->items[i]));
        sha256_add(hash, "\n", 1);
    }
}

void trace_check_finish(struct trace_check *check, struct trace_info *info)
{
    const struct trace_info *counts = &check->counts;
    sha256_add(&check->hash, check->batch, check->batch_count * sizeof check->batch[0]);
    check->batch_count = 0;
    hash_texts(&check->hash, &check->tables->keys);
    sha256_add(&check->hash, "\n", 1);
    hash_texts(&check->hash, &check->tables->texts);
    sha256_end(&check->hash, info->sha256);
    info->counted = true;
    info->events = counts->events;
    info->allocs = counts->allocs;
    info->probes = counts->probes;
    info->frees = counts->frees;
    info->steps = counts->steps;
    info->kernels = counts->kernels;
    info->zero_allocs = counts->zero_allocs;
    info->peak_live_bytes = counts->peak_live_bytes;
    info->peak_card_bytes = counts->peak_card_bytes;
    info->allocated_bytes = counts->allocated_bytes;
    info->slots =
        (uint32_t)(counts->has_split_frees ? check->peak_held_blocks : check->peak_live_blocks);
    info->streams = counts->streams ? counts->streams : 1;
    info->has_uses = counts->has_uses;
    info->one_block_stream = !check->several_streams;
    info->has_split_frees = counts->has_split_frees;
    info->has_times = counts->has_times;
    info->gpus = counts->gpus;
    info->has_far_gpu = counts->has_far_gpu;
}
