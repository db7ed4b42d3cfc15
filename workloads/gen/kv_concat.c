/* A key-value cache that is grown by concatenation, as plain model code does it: for each
 * token, in each layer, a tensor that is one token longer is made for the keys and one for the
 * values, the old one is copied into it and let go. The batch is padded to its longest prompt
 * and runs until its longest answer. kv_concat.md derives the sizes. */
#include "workloads/gen/emit.h"

#include <stdlib.h>

#include "workloads/gen/kv_load.h"

struct kv_concat {
    struct emit emit;
    struct kv_load load;
    struct emit_block *cache; /* keys and values of each layer */
    uint64_t round, tokens;   /* tokens: of each sequence so far; 0: no batch */
    uint64_t last;            /* tokens at which the batch has ended */
    bool ended;
};

static struct kv_concat *kv_of(struct emit *emit)
{
    return (struct kv_concat *)emit;
}

static enum ar_status start(struct emit *emit, struct ar_error *error)
{
    struct kv_concat *self = kv_of(emit);
    (void)error;
    kv_load_start(&self->load);
    self->round = self->tokens = 0;
    self->ended = false;
    for (uint64_t i = 0; i < 2 * self->load.values.layers; i++)
        self->cache[i].held = false;
    return AR_OK;
}

/* Keys and values of each layer, `tokens` long; the attention over them. */
static void grow(struct kv_concat *self)
{
    const struct kv_values *values = &self->load.values;
    uint64_t bytes = values->batch * self->tokens * self->load.token_bytes;
    for (uint64_t i = 0; i < 2 * values->layers; i++) {
        struct emit_block longer = emit_alloc(&self->emit, bytes, i % 2 ? "values" : "keys");
        emit_kernel(&self->emit, roofline_bytes_ns(2 * bytes));
        emit_free(&self->emit, &self->cache[i]);
        self->cache[i] = longer;
        if (i % 2)
            emit_kernel(&self->emit, roofline_bytes_ns(2 * bytes));
    }
    emit_step(&self->emit);
}

static void end_batch(struct kv_concat *self)
{
    for (uint64_t i = 0; i < 2 * self->load.values.layers; i++)
        emit_free(&self->emit, &self->cache[i]);
    self->tokens = 0;
}

static enum ar_status advance(struct emit *emit, struct ar_error *error)
{
    struct kv_concat *self = kv_of(emit);
    (void)error;
    if (self->ended)
        return AR_OK;
    if (self->tokens && self->tokens == self->last) {
        end_batch(self);
        self->ended = self->round == self->load.values.rounds;
        return AR_OK;
    }
    if (self->tokens == 0) {
        kv_load_draw(&self->load);
        self->tokens = self->load.longest_prompt;
        self->last = self->tokens + self->load.longest_answer;
        self->round++;
    } else {
        self->tokens++;
    }
    grow(self);
    return AR_OK;
}

static void release(struct emit *emit)
{
    kv_load_close(&kv_of(emit)->load);
    free(kv_of(emit)->cache);
}

static const struct emit_program program = {
    .name = "kv_concat",
    .source_bytes = sizeof(struct kv_concat),
    .start = start,
    .advance = advance,
    .release = release,
};

static enum ar_status create(const void *values, struct trace_source **out, struct ar_error *error)
{
    static const char owner[] = "generator kv_concat";
    struct emit *emit;
    enum ar_status status = emit_create(&program, &emit, error);
    if (status != AR_OK)
        return status;
    struct kv_concat *self = kv_of(emit);
    status = kv_load_open(&self->load, values, owner, error);
    if (status == AR_OK) {
        self->cache = calloc(2 * self->load.values.layers, sizeof *self->cache);
        if (!self->cache)
            status = ar_error_set(error, AR_HOST_MEMORY, "%s: no host memory", owner);
    }
    if (status == AR_OK)
        *out = &emit->source;
    else
        trace_close(&emit->source);
    return status;
}

static const struct ar_option options[] = {
    GEN_COMMON_OPTIONS,
    KV_LOAD_OPTIONS,
    {.name = NULL},
};

const struct gen_ops kv_concat_generator = {
    .name = "kv_concat",
    .summary = "a key-value cache grown by concatenation, per layer and token",
    .page = "workloads/gen/kv_concat.md",
    .options = options,
    .values_bytes = sizeof(struct kv_values),
    .create = create,
};
