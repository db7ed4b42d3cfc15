/* Random: sizes log-uniform in [min, max], so that every doubling is equally likely, held near
 * a target of live bytes by freeing blocks chosen evenly from those live. There is no known
 * number for it.
 * 1. Draw the size of the next request.
 * 2. While it would lift the live bytes above the target, free a block drawn at random.
 * 3. Make the request. The stream ends after exactly `events` events, blocks still live.
 * Memory is bounded by the blocks live at once, however many events. */
#include "workloads/gen/emit.h"
#include "workloads/gen/gen.h"

#include <stdlib.h>

#include "allocators/base/array.h"
#include "allocators/base/rng.h"

#define RANDOM_CHUNK 1024 /* events in a span */

struct random_values {
    struct gen_common common;
    uint64_t events, min, max, target;
};

struct random_source {
    struct emit emit;
    struct random_values values;
    struct ar_rng rng;
    struct emit_block *blocks; /* those live, in no order */
    size_t count, room;
    uint64_t drawn; /* bytes of the request to come; 0: not drawn yet */
};

static enum ar_status start(struct emit *emit, struct ar_error *error)
{
    struct random_source *self = (struct random_source *)emit;
    (void)error;
    ar_rng_seed(&self->rng, self->values.common.seed);
    self->count = 0;
    self->drawn = 0;
    return AR_OK;
}

static enum ar_status remember(struct random_source *self, struct emit_block block,
                               struct ar_error *error)
{
    struct emit_block *blocks =
        ar_array_grow(self->blocks, self->count, &self->room, sizeof *blocks);
    if (!blocks)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory");
    self->blocks = blocks;
    self->blocks[self->count++] = block;
    return AR_OK;
}

static enum ar_status advance(struct emit *emit, struct ar_error *error)
{
    struct random_source *self = (struct random_source *)emit;
    for (int i = 0; i < RANDOM_CHUNK && emit_events(emit) < self->values.events; i++) {
        if (!self->drawn)
            self->drawn = ar_rng_log_uniform(&self->rng, self->values.min, self->values.max);
        if (self->count && emit_live_bytes(emit) + self->drawn > self->values.target) {
            size_t victim = (size_t)ar_rng_below(&self->rng, self->count);
            emit_free(emit, &self->blocks[victim]);
            self->blocks[victim] = self->blocks[--self->count];
            continue;
        }
        enum ar_status status = remember(self, emit_alloc(emit, self->drawn, NULL), error);
        if (status != AR_OK)
            return status;
        self->drawn = 0;
    }
    return AR_OK;
}

static void release(struct emit *emit)
{
    free(((struct random_source *)emit)->blocks);
}

static const struct emit_program program = {
    .name = "random",
    .source_bytes = sizeof(struct random_source),
    .start = start,
    .advance = advance,
    .release = release,
};

static enum ar_status create(const void *values, struct trace_source **out, struct ar_error *error)
{
    const struct random_values *wanted = values;
    if (wanted->min > wanted->max || wanted->max > wanted->target)
        return ar_error_set(error, AR_INVALID,
                            "generator random: min must be at most max, and max at most target");
    struct emit *emit;
    enum ar_status status = emit_create(&program, &emit, error);
    if (status != AR_OK)
        return status;
    ((struct random_source *)emit)->values = *wanted;
    *out = &emit->source;
    return AR_OK;
}

static const struct ar_option options[] = {
    GEN_COMMON_OPTIONS,
    {"events", AR_OPTION_COUNT, offsetof(struct random_values, events), "100000", 1, 1e12, NULL,
     "requests and frees together"},
    {"min", AR_OPTION_BYTES, offsetof(struct random_values, min), "256", 1, 1e17, NULL,
     "bytes of the smallest request"},
    {"max", AR_OPTION_BYTES, offsetof(struct random_values, max), "64MiB", 1, 1e17, NULL,
     "bytes of the largest request"},
    {"target", AR_OPTION_BYTES, offsetof(struct random_values, target), "4GiB", 1, 1e17, NULL,
     "live bytes are held just under this"},
    {.name = NULL},
};

const struct gen_ops random_generator = {
    .name = "random",
    .summary = "log-uniform sizes, random lifetimes, held near a target of live bytes",
    .page = "workloads/gen/known_answer.md",
    .options = options,
    .values_bytes = sizeof(struct random_values),
    .create = create,
};
