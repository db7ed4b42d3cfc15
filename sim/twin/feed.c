#include "sim/twin/run.h"

#include "allocators/base/array.h"

static struct feed *of(struct trace_source *base)
{
    return (struct feed *)base;
}

static enum ar_status feed_next(struct trace_source *base, const struct trace_event **events,
                                size_t *count, struct ar_error *error AR_UNUSED)
{
    struct feed *self = of(base);
    *events = self->events;
    *count = self->given ? 0 : self->count;
    self->given = true;
    return AR_OK;
}

static enum ar_status feed_rewind(struct trace_source *base AR_UNUSED, struct ar_error *error)
{
    return ar_error_set(error, AR_UNSUPPORTED, "the events of a twin are made once");
}

static void feed_end(struct trace_source *base)
{
    (void)base; /* feed_close */
}

enum ar_status feed_open(struct feed *self, const char *name, uint32_t streams,
                         bool one_block_stream, struct ar_error *error)
{
    static const struct trace_source_ops ops = {
        .next = feed_next,
        .rewind = feed_rewind,
        .close = feed_end,
    };
    *self = (struct feed){.base = {.ops = &ops, .tables = &self->tables}};
    struct trace_info *info = &self->base.info;
    snprintf(info->name, sizeof info->name, "%s", name);
    /* Counted, without completions apart from requests of frees: a free ends its slot. */
    info->counted = true;
    info->streams = streams;
    info->one_block_stream = one_block_stream;
    self->events = malloc(FEED_EVENTS * sizeof *self->events);
    self->calls = malloc(FEED_EVENTS * sizeof *self->calls);
    AR_TRY_MEMORY(self->events && self->calls, error, "the events of a process");
    return AR_OK;
}

void feed_close(struct feed *self)
{
    free(self->events);
    free(self->calls);
    free(self->blocks);
    free(self->unused);
    free(self->resting);
    free(self->keys);
    trace_tables_close(&self->tables);
    *self = (struct feed){0};
}

enum ar_status feed_keys_index(struct feed *self, const struct feed_keys *keys, uint32_t *index,
                               struct ar_error *error)
{
    *index = 0;
    if (!keys->pool && !keys->alignment && !keys->pinned)
        return AR_OK;
    for (size_t i = 0; i < self->key_count; i++) {
        const struct feed_keys *known = &self->keys[i];
        if (known->pool == keys->pool && known->alignment == keys->alignment &&
            known->pinned == keys->pinned) {
            *index = known->index;
            return AR_OK;
        }
    }
    const struct trace_attributes attributes = {
        .align = keys->alignment,
        .pool = keys->pool,
        .mempool = keys->bits,
        .space = keys->pinned ? TRACE_SPACE_PINNED : TRACE_SPACE_DEVICE,
    };
    struct feed_keys added = *keys;
    AR_TRY(trace_tables_attributes(&self->tables, &attributes, &added.index, error));
    AR_TRY(AR_APPEND(self->keys, self->key_count, self->key_room, added, error,
                     "the blocks of a process"));
    *index = added.index;
    return AR_OK;
}

static enum ar_status take_slot(struct feed *self, uint32_t *slot, struct ar_error *error)
{
    static const struct feed_block none = {0};
    if (self->unused_count) {
        *slot = self->unused[--self->unused_count];
        return AR_OK;
    }
    *slot = (uint32_t)self->slot_count;
    return AR_APPEND(self->blocks, self->slot_count, self->slot_room, none, error,
                     "the blocks of a process");
}

enum ar_status feed_request(struct feed *self, const struct feed_block *block,
                            const struct feed_keys *keys, uint32_t stream, bool may_fail,
                            uint32_t *slot, struct ar_error *error)
{
    uint32_t index;
    AR_TRY(feed_keys_index(self, keys, &index, error));
    AR_TRY(take_slot(self, slot, error));
    self->blocks[*slot] = *block;
    self->blocks[*slot].state = FEED_ASKED;
    struct trace_event *event = feed_add(self, may_fail ? TRACE_PROBE : TRACE_ALLOC);
    event->stream = stream;
    event->slot = *slot;
    event->attributes = index;
    event->value = block->bytes;
    event->id = self->next_id++;
    if (!block->pinned)
        self->calls[self->call_count++] = *slot;
    return AR_OK;
}

enum ar_status feed_free(struct feed *self, uint32_t slot, uint32_t stream, bool own,
                         struct ar_error *error)
{
    AR_TRY(AR_APPEND(self->resting, self->resting_count, self->resting_room, slot, error,
                     "the blocks of a process"));
    struct trace_event *event = feed_add(self, own ? TRACE_FREE_COMPLETED : TRACE_FREE_REQUESTED);
    event->slot = slot;
    if (own)
        event->flags = TRACE_WHOLE;
    else
        event->stream = stream;
    if (!self->blocks[slot].pinned)
        self->calls[self->call_count++] = slot;
    return AR_OK;
}

void feed_emptied(struct feed *self)
{
    self->replayed += self->count;
    self->count = self->call_count = self->call = 0;
    self->given = false;
    for (size_t i = 0; i < self->resting_count; i++) {
        uint32_t slot = self->resting[i];
        self->blocks[slot].state = FEED_UNUSED;
        if (!ar_array_make_room(&self->unused, self->unused_count, &self->unused_room,
                                sizeof *self->unused))
            continue; /* the slot is not used again */
        self->unused[self->unused_count++] = slot;
    }
    self->resting_count = 0;
}
