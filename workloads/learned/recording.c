#include "workloads/learned/model.h"

#include "allocators/base/array.h"
#include "allocators/base/map.h"

static enum ar_status no_memory(const struct learned_recording *self, struct ar_error *error)
{
    return ar_error_set(error, AR_HOST_MEMORY, "no host memory to learn from %s", self->info.name);
}

/* Keeps an event with its keys and text in the recording's tables. */
static enum ar_status keep(struct learned_recording *self, struct trace_source *source,
                           const struct trace_event *given, struct ar_map *block_of_id,
                           struct ar_error *error)
{
    struct learned_event kept = {.event = *given};
    if (given->kind == TRACE_NOTE)
        return AR_OK;
    if (given->kind == TRACE_KERNEL)
        kept.event.attributes = 0;
    AR_TRY(trace_tables_take(&self->tables, source, &kept.event, NULL, error));
    if (given->kind == TRACE_ALLOC || given->kind == TRACE_PROBE) {
        const struct learned_block block = {.bytes = given->value,
                                            .attributes = kept.event.attributes,
                                            .stream = given->stream,
                                            .freed = LEARNED_NEVER,
                                            .completed = LEARNED_NEVER};
        if (self->block_count >= UINT32_MAX ||
            ar_map_put(block_of_id, given->id, self->block_count) ||
            !AR_ARRAY_ADD(self->blocks, self->block_count, self->block_room, block))
            return no_memory(self, error);
    }
    if (trace_kind_has_block(given->kind)) {
        uint64_t block = 0;
        (void)ar_map_get(block_of_id, given->id, &block);
        kept.block = (uint32_t)block;
        self->has_uses |= given->kind == TRACE_USE;
        if (given->kind == TRACE_FREE_COMPLETED)
            (void)ar_map_remove(block_of_id, given->id);
        self->free_requested_final |= given->kind == TRACE_FREE_REQUESTED;
    }
    if (!AR_ARRAY_ADD(self->events, self->event_count, self->event_room, kept))
        return no_memory(self, error);
    return AR_OK;
}

static bool end_step(struct learned_recording *self, size_t end)
{
    return AR_ARRAY_ADD(self->step_ends, self->step_count, self->step_room, end);
}

static bool find_marks(struct learned_recording *self)
{
    for (size_t i = 0; i < self->event_count; i++)
        if (trace_ends_step(&self->events[i].event)) {
            self->marked = true;
            if (!end_step(self, i + 1))
                return false;
        }
    return true;
}

/* ---- rule 2 ---- */

static uint64_t live_after(const struct learned_recording *self, size_t event, uint64_t live)
{
    const struct learned_event *kept = &self->events[event];
    switch (kept->event.kind) {
    case TRACE_ALLOC:
    case TRACE_PROBE:
        return live + kept->event.value;
    case TRACE_FREE_COMPLETED:
        return kept->event.flags & TRACE_WHOLE ? live - self->blocks[kept->block].bytes : live;
    case TRACE_FREE_REQUESTED:
        return live - self->blocks[kept->block].bytes;
    default:
        return live;
    }
}

/* The levels of valleys and peaks: the live bytes below and above which one eighth of the requests
 * of the second half of the recording is made. */
static bool find_levels(const struct learned_recording *self, uint64_t *low, uint64_t *high)
{
    uint64_t *live_at = malloc((self->block_count + 1) * sizeof *live_at), live = 0;
    size_t count = 0;
    if (!live_at)
        return false;
    for (size_t i = 0; i < self->event_count; i++) {
        uint64_t next = live_after(self, i, live);
        if (next > live && self->events[i].block >= self->block_count / 2)
            live_at[count++] = next;
        live = next;
    }
    ar_array_sort(live_at, count);
    *low = count ? live_at[count / 8] : 0;
    *high = count ? live_at[count - 1 - count / 8] : 0;
    free(live_at);
    return true;
}

static bool find_rises(struct learned_recording *self)
{
    uint64_t low, high, live = 0, least = UINT64_MAX;
    if (!find_levels(self, &low, &high))
        return false;
    uint64_t lower = low + (high - low) / 4, upper = low + (high - low) / 2;
    size_t at_least = 0;
    bool risen = false, fallen = false;
    for (size_t i = 0; high > low && i < self->event_count; i++) {
        live = live_after(self, i, live);
        if (live >= upper) {
            if (fallen && !end_step(self, at_least))
                return false;
            risen = true;
            fallen = false;
            least = UINT64_MAX;
        } else if (risen && live <= lower) {
            fallen = true;
        }
        if (risen && live <= least) {
            least = live;
            at_least = i + 1;
        }
    }
    return !fallen || end_step(self, at_least);
}

/* ---- lives and durations ---- */

static void follow_blocks(struct learned_recording *self)
{
    uint32_t next = 0;
    for (size_t step = 0, i = 0; step < self->step_count; step++)
        for (; i < self->step_ends[step]; i++) {
            const struct learned_event *kept = &self->events[i];
            struct learned_block *block = &self->blocks[kept->block];
            if (kept->event.kind == TRACE_ALLOC || kept->event.kind == TRACE_PROBE) {
                block->born = (uint32_t)step;
                next = kept->block + 1;
            } else if (kept->event.kind == TRACE_FREE_REQUESTED ||
                       kept->event.kind == TRACE_FREE_COMPLETED) {
                if (block->freed == LEARNED_NEVER)
                    block->freed = (uint32_t)step;
                if (kept->event.kind == TRACE_FREE_COMPLETED || self->free_requested_final)
                    block->completed = (uint32_t)step;
            }
        }
    self->block_count = next;
}

static void measure(struct learned_recording *self)
{
    uint64_t before = 0, now = 0;
    for (size_t step = 0, i = 0; step < self->step_count; step++, before = now)
        for (; i < self->step_ends[step]; i++) {
            const struct trace_event *event = &self->events[i].event;
            if (event->kind == TRACE_TIME)
                now = event->value;
            else if (event->kind == TRACE_KERNEL && !self->timed)
                now += event->value;
            self->step_ns[step] = now - before;
        }
}

enum ar_status learned_recording_read(struct trace_source *source,
                                      const struct learned_watch *watch,
                                      struct learned_recording *self, struct ar_error *error)
{
    *self = (struct learned_recording){.info = source->info};
    struct ar_map block_of_id = {0};
    struct trace_cursor cursor = {.source = source};
    const struct trace_event *event;
    enum ar_status status = AR_OK;
    if (source->info.adaptive)
        return ar_invalid(error,
                          "%s: its requests depend on the allocator; write it to a file with "
                          "`allocrig gen` and learn from that",
                          self->info.name);
    while ((event = trace_read(&cursor, &status, error)) != NULL) {
        status = keep(self, source, event, &block_of_id, error);
        if (watch && trace_ends_step(event))
            watch->read(watch->argument);
    }
    ar_map_close(&block_of_id);
    AR_TRY(status);
    self->info = source->info;
    self->timed = self->info.has_times;
    self->free_requested_final &= !self->info.has_split_frees;
    if (self->info.has_far_gpu || (self->info.gpus & (self->info.gpus - 1)))
        return ar_invalid(error,
                          "%s: it has requests of several GPUs; learn from one: FILE:device=N",
                          self->info.name);
    if (!find_marks(self) || (!self->marked && !find_rises(self)))
        return no_memory(self, error);
    if (self->step_count < LEARNED_STEPS_LEAST)
        return ar_invalid(
            error,
            "%s: %zu step%s found%s, and at least %d are needed; record more "
            "steps, each with a mark `step`",
            self->info.name, self->step_count, self->step_count == 1 ? " was" : "s were",
            self->marked ? "" : " by rises and falls of live bytes", LEARNED_STEPS_LEAST);
    self->event_count = self->step_ends[self->step_count - 1];
    self->step_ns = calloc(self->step_count, sizeof *self->step_ns);
    if (!self->step_ns)
        return no_memory(self, error);
    follow_blocks(self);
    measure(self);
    return AR_OK;
}

void learned_recording_close(struct learned_recording *self)
{
    trace_tables_close(&self->tables);
    free(self->events);
    free(self->blocks);
    free(self->step_ends);
    free(self->step_ns);
    *self = (struct learned_recording){0};
}
