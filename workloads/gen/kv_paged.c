/* A key-value cache in pages, beside kv_concat: each sequence has, in each layer, pages that
 * hold the keys and values of `page` tokens, and asks for another when the last is full.
 * Nothing is copied, nothing padded; a sequence's pages go when its answer is complete.
 * kv_paged.md derives the sizes. */
#include "workloads/gen/emit.h"

#include <stdlib.h>

#include "workloads/gen/kv_load.h"

struct kv_paged {
    struct emit emit;
    struct kv_load load;
    struct emit_list *pages; /* of each sequence, all layers */
    uint64_t round, token;   /* token: of the answers so far, 0: the prompts */
    bool running, ended;
};

static struct kv_paged *kv_of(struct emit *emit)
{
    return (struct kv_paged *)emit;
}

static enum ar_status start(struct emit *emit, struct ar_error *error)
{
    struct kv_paged *self = kv_of(emit);
    (void)error;
    kv_load_start(&self->load);
    self->round = self->token = 0;
    self->running = self->ended = false;
    for (uint64_t i = 0; i < self->load.values.batch; i++)
        emit_list_clear(&self->pages[i]);
    return AR_OK;
}

/* Pages until the sequence has room for so many tokens. */
static void make_room(struct kv_paged *self, uint64_t sequence, uint64_t tokens)
{
    const struct kv_values *values = &self->load.values;
    struct emit_list *pages = &self->pages[sequence];
    uint64_t wanted = (tokens + values->page - 1) / values->page * values->layers;
    for (uint64_t made = pages->count; made < wanted; made++)
        emit_list_push(&self->emit, pages,
                       emit_alloc(&self->emit, 2 * values->page * self->load.token_bytes, "page"));
}

/* One token of every sequence that is not complete; returns how many those are. */
static uint64_t grow(struct kv_paged *self)
{
    const struct kv_values *values = &self->load.values;
    uint64_t active = 0;
    uint64_t tokens = 0;
    for (uint64_t i = 0; i < values->batch; i++) {
        if (self->token > self->load.answer[i]) {
            emit_list_free(&self->emit, &self->pages[i], self->pages[i].count);
            continue;
        }
        make_room(self, i, self->load.prompt[i] + self->token);
        tokens += self->load.prompt[i] + self->token;
        active++;
    }
    for (uint64_t layer = 0; active && layer < values->layers; layer++)
        emit_kernel(&self->emit, roofline_bytes_ns(2 * tokens * self->load.token_bytes));
    return active;
}

static enum ar_status advance(struct emit *emit, struct ar_error *error)
{
    struct kv_paged *self = kv_of(emit);
    (void)error;
    if (self->ended)
        return AR_OK;
    if (!self->running) {
        kv_load_draw(&self->load);
        self->token = 0;
        self->round++;
        self->running = true;
    }
    if (grow(self) == 0) {
        self->running = false;
        self->ended = self->round == self->load.values.rounds;
        if (!self->ended)
            return advance(emit, error);
        return AR_OK;
    }
    emit_step(emit);
    self->token++;
    return AR_OK;
}

static void release(struct emit *emit)
{
    struct kv_paged *self = kv_of(emit);
    for (uint64_t i = 0; self->pages && i < self->load.values.batch; i++)
        emit_list_close(&self->pages[i]);
    kv_load_close(&self->load);
    free(self->pages);
}

static const struct emit_program program = {
    .name = "kv_paged",
    .source_bytes = sizeof(struct kv_paged),
    .start = start,
    .advance = advance,
    .release = release,
};

static enum ar_status create(const void *values, struct trace_source **out, struct ar_error *error)
{
    static const char owner[] = "generator kv_paged";
    struct emit *emit;
    enum ar_status status = emit_create(&program, &emit, error);
    if (status != AR_OK)
        return status;
    struct kv_paged *self = kv_of(emit);
    status = kv_load_open(&self->load, values, owner, error);
    if (status == AR_OK) {
        self->pages = calloc(self->load.values.batch, sizeof *self->pages);
        if (!self->pages)
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
    {"page", AR_OPTION_COUNT, offsetof(struct kv_values, page), "64", 1, 1e6, NULL,
     "tokens whose keys and values a page holds"},
    {.name = NULL},
};

const struct gen_ops kv_paged_generator = {
    .name = "kv_paged",
    .summary = "a key-value cache in pages, for the same sequences as kv_concat",
    .page = "workloads/gen/kv_paged.md",
    .options = options,
    .values_bytes = sizeof(struct kv_values),
    .create = create,
};
