/* Memory of a constant size: whatever a program holds all the time, in its pool, on the card
 * outside of it, or in pinned host memory. */

#include "sim/twin/part.h"

enum { WHERE_POOL, WHERE_OUTSIDE, WHERE_PINNED };

struct values {
    uint64_t bytes, count;
    int where;
};

struct buffer {
    struct twin_part base;
    struct twin_blocks blocks;
    bool loaded;
};

#define AR_OPT_OF struct values

static const struct ar_option options[] = {
    AR_OPT_BYTES(bytes, "0", 0, 0, "of one buffer"),
    AR_OPT_COUNT(count, "1", 1, 1e6, "number of buffers"),
    AR_OPT_CHOICE(where, "pool", "pool|outside|pinned",
                  "the process's pool, the card outside of it, or pinned host memory"),
    {0},
};

enum { ACTION_LOAD, ACTION_FREE };

static const struct twin_action actions[] = {
    {"load", NULL, "allocates the buffers", 0, 0},
    {"free", NULL, "frees them", 0, 0},
    {0},
};

static enum ar_status buffer_create(struct twin_part *base, struct ar_error *error)
{
    const struct values *values = base->values;
    if (!values->bytes)
        return ar_invalid(error, "it needs a size; write bytes = 64MiB");
    if (values->bytes > ((UINT64_C(1) << 60) - 1) / values->count)
        return ar_invalid(error, "all buffers together must be below 2^60 bytes");
    return AR_OK;
}

static void load(struct buffer *self, const struct values *values)
{
    uint32_t owner = twin_owner(&self->base, "buffer");
    if (values->where == WHERE_OUTSIDE) {
        twin_outside(&self->base, owner, values->bytes * values->count);
        return;
    }
    const struct twin_request request = {
        .bytes = values->bytes, .owner = owner, .pinned = values->where == WHERE_PINNED};
    while (self->blocks.count < values->count && !twin_over(&self->base))
        twin_blocks_alloc(&self->base, &self->blocks, &request);
}

static enum ar_status buffer_act(struct twin_part *base, const struct twin_call *call,
                                 bool *more AR_UNUSED, struct ar_error *error)
{
    struct buffer *self = (struct buffer *)base;
    const struct values *values = base->values;
    if (self->loaded == (call->action == ACTION_LOAD))
        return ar_invalid(error,
                          self->loaded ? "it is loaded already; write %s.free before it"
                                       : "it is not loaded; write %s.load before it",
                          base->name);
    self->loaded = !self->loaded;
    if (call->action == ACTION_LOAD)
        load(self, values);
    else if (values->where == WHERE_OUTSIDE)
        twin_outside(base, twin_owner(base, "buffer"), 0);
    else
        twin_blocks_free(base, &self->blocks);
    return AR_OK;
}

static void buffer_destroy(struct twin_part *base)
{
    twin_blocks_close(&((struct buffer *)base)->blocks);
}

/* Memory of drivers and libraries is there as long as the process. */
static bool buffer_can_release(const void *values)
{
    return ((const struct values *)values)->where != WHERE_OUTSIDE;
}

const struct twin_part_ops buffer_part = {
    .kind = "buffer",
    .summary = "memory of a constant size",
    .options = options,
    .values_bytes = sizeof(struct values),
    .part_bytes = sizeof(struct buffer),
    .actions = actions,
    .create = buffer_create,
    .act = buffer_act,
    .destroy = buffer_destroy,
    .releases = "free",
    .restores = "load",
    .can_release = buffer_can_release,
};
