/* Two key-value caches of a decoder that serve the same sequences: kv_concat and kv_paged.
 *
 * Both serve rounds of a batch of sequences, whose prompts and answers have drawn lengths. With the
 * same options and seed both draw the same lengths. */
#include "workloads/gen/eager.h"

struct kv_values {
    struct gen_common common;
    const char *prompts, *answers; /* valid in open() */
    uint64_t rounds, batch, layers, kv_heads, head, page;
    int dtype;
};

struct kv_load {
    struct kv_values values;
    struct samples prompts, answers;
    uint64_t *prompt, *answer; /* tokens of each sequence of the batch */
    uint64_t longest_prompt, longest_answer;
    uint64_t token_bytes; /* of one token's keys, or values, in one layer */
};

static void load_open(struct kv_load *self, struct emit *emit)
{
    const struct kv_values *values = &self->values;
    self->token_bytes =
        values->kv_heads * values->head * numeric_weight_bytes((enum numeric)values->dtype);
    samples_open(emit, &self->prompts, values->prompts, SAMPLES_RANDOM, 1, 1u << 24, "prompts");
    samples_open(emit, &self->answers, values->answers, SAMPLES_RANDOM, 1, 1u << 24, "answers");
    self->prompt = emit_array(emit, values->batch, sizeof *self->prompt);
    self->answer = emit_array(emit, values->batch, sizeof *self->answer);
}

/* Draws the next batch. */
static void load_draw(struct kv_load *self, struct ar_rng *rng)
{
    self->longest_prompt = self->longest_answer = 0;
    for (uint64_t i = 0; i < self->values.batch; i++) {
        self->prompt[i] = samples_next(&self->prompts, rng);
        self->answer[i] = samples_next(&self->answers, rng);
        self->longest_prompt = ar_most(self->longest_prompt, self->prompt[i]);
        self->longest_answer = ar_most(self->longest_answer, self->answer[i]);
    }
}

#define AR_OPT_OF struct kv_values

/* clang-format off */
#define KV_LOAD_OPTIONS                                                                            \
    AR_OPT_COUNT(rounds, "4", 1, 1e9, "batches served, one after the other"),                      \
    AR_OPT_COUNT(batch, "16", 1, 1e5, "sequences served together"),                                \
    AR_OPT_TEXT(prompts, "256-1024", "list of tokens of a prompt, or of ranges to draw from"),     \
    AR_OPT_TEXT(answers, "32-256", "list of tokens of an answer, or of ranges to draw from"),      \
    AR_OPT_COUNT(layers, "16", 1, 1000, "layers, each with a cache of its own"),                   \
    AR_OPT_COUNT(kv_heads, "8", 1, 1e4, "heads of keys and values"),                               \
    AR_OPT_COUNT(head, "128", 1, 1e5, "values of a head"),                                         \
    AR_OPT_CHOICE(dtype, "float16", NUMERIC_CHOICES, "of keys and values; int8 has 1 byte")
/* clang-format on */

/* ---- kv_concat ----
 *
 * A cache that grows by concatenation, as in plain model code: for each token, in each layer, a
 * tensor that is one token longer is made for the keys and one for the values, the old one is
 * copied into it and freed. The batch is padded to its longest prompt and runs until its longest
 * answer. kv_concat.md derives the sizes. */

struct kv_concat {
    struct emit emit;
    struct kv_load load;
    struct emit_block *cache; /* keys and values of each layer */
    uint64_t round, tokens;   /* tokens: of each sequence so far; 0: no batch */
    uint64_t last;            /* tokens at which the batch ends */
};

static void concat_open(struct emit *emit)
{
    struct kv_concat *self = (struct kv_concat *)emit;
    load_open(&self->load, emit);
    self->cache = emit_array(emit, 2 * self->load.values.layers, sizeof *self->cache);
}

static void concat_start(struct emit *emit)
{
    struct kv_concat *self = (struct kv_concat *)emit;
    for (uint64_t i = 0; i < 2 * self->load.values.layers; i++)
        self->cache[i].held = false;
}

/* Keys and values of each layer, `tokens` long, and the attention over them. */
static void concat_grow(struct kv_concat *self)
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

static void concat_advance(struct emit *emit)
{
    struct kv_concat *self = (struct kv_concat *)emit;
    if (self->tokens && self->tokens == self->last) {
        for (uint64_t i = 0; i < 2 * self->load.values.layers; i++)
            emit_free(emit, &self->cache[i]);
        self->tokens = 0;
        if (self->round == self->load.values.rounds)
            emit_end(emit);
        return;
    }
    if (self->tokens == 0) {
        load_draw(&self->load, &emit->rng);
        self->tokens = self->load.longest_prompt;
        self->last = self->tokens + self->load.longest_answer;
        self->round++;
    } else {
        self->tokens++;
    }
    concat_grow(self);
}

static const struct ar_option concat_options[] = {
    GEN_COMMON_OPTIONS,
    KV_LOAD_OPTIONS,
    {.name = NULL},
};

const struct gen_ops kv_concat_generator = {
    .name = "kv_concat",
    .summary = "a key-value cache grown by concatenation, per layer and token",
    .page = "workloads/gen/kv_concat.md",
    .options = concat_options,
    .source_bytes = sizeof(struct kv_concat),
    .values_at = offsetof(struct kv_concat, load.values),
    .state_at = offsetof(struct kv_concat, round),
    .open = concat_open,
    .start = concat_start,
    .advance = concat_advance,
};

/* ---- kv_paged ----
 *
 * A cache in pages: each sequence has, in each layer, pages that hold the keys and values of `page`
 * tokens, and requests another one when the last is full. Nothing is copied or padded; the pages of
 * a sequence are freed when its answer is complete. kv_paged.md derives the sizes. */

struct kv_paged {
    struct emit emit;
    struct kv_load load;
    struct emit_list *pages; /* of each sequence, all layers */
    uint64_t round, token;   /* token: of the answers so far, 0: the prompts */
    bool running;
};

static void paged_open(struct emit *emit)
{
    struct kv_paged *self = (struct kv_paged *)emit;
    load_open(&self->load, emit);
    self->pages = emit_array(emit, self->load.values.batch, sizeof *self->pages);
}

/* Makes pages until the sequence has room for `tokens`. */
static void make_room(struct kv_paged *self, uint64_t sequence, uint64_t tokens)
{
    const struct kv_values *values = &self->load.values;
    struct emit_list *pages = &self->pages[sequence];
    uint64_t needed = (tokens + values->page - 1) / values->page * values->layers;
    for (uint64_t made = pages->count; made < needed; made++)
        emit_list_push(&self->emit, pages,
                       emit_alloc(&self->emit, 2 * values->page * self->load.token_bytes, "page"));
}

/* One token of every sequence that is not complete; returns the number of those. */
static uint64_t paged_grow(struct kv_paged *self)
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

static void paged_advance(struct emit *emit)
{
    struct kv_paged *self = (struct kv_paged *)emit;
    if (!self->running) {
        load_draw(&self->load, &emit->rng);
        self->token = 0;
        self->round++;
        self->running = true;
    }
    if (paged_grow(self)) {
        emit_step(emit);
        self->token++;
        return;
    }
    self->running = false;
    if (self->round == self->load.values.rounds)
        emit_end(emit);
    else
        paged_advance(emit);
}

static const struct ar_option paged_options[] = {
    GEN_COMMON_OPTIONS,
    KV_LOAD_OPTIONS,
    AR_OPT_COUNT(page, "64", 1, 1e6, "tokens whose keys and values a page holds"),
    {.name = NULL},
};

const struct gen_ops kv_paged_generator = {
    .name = "kv_paged",
    .summary = "a key-value cache in pages, for the same sequences as kv_concat",
    .page = "workloads/gen/kv_paged.md",
    .options = paged_options,
    .source_bytes = sizeof(struct kv_paged),
    .values_at = offsetof(struct kv_paged, load.values),
    .state_at = offsetof(struct kv_paged, round),
    .open = paged_open,
    .advance = paged_advance,
};
