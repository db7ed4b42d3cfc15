/* What an engine does again and again: it serves requests. The blocks of the cache are numbers in a
 * tensor that is there already; only activations are requested from the pool. */
#include "sim/twin/parts/engine.h"
#include "workloads/gen/eager.h"

#define PIECE_STEPS 16 /* of the scheduler, in one turn */
#define EXPECTED    70 /* percent of answers that SGLang expects at first (init_new_token_ratio) */

static uint64_t draw(struct engine *self, const struct engine_lengths *lengths)
{
    uint64_t entry = ar_rng_below(&self->rng, lengths->count);
    return ar_rng_between(&self->rng, lengths->ranges[entry].least, lengths->ranges[entry].most);
}

static enum ar_status start(struct engine *self, uint64_t requests, struct ar_error *error)
{
    if (!self->allocated)
        return ar_error_set(error, AR_INVALID, "%s has no key-value cache; call allocate first",
                            self->base.name);
    if (self->weights_asleep || self->kv_asleep)
        return ar_error_set(error, AR_INVALID, "%s is asleep; call wake before generate",
                            self->base.name);
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < self->prompts.count; i++)
        least = self->prompts.ranges[i].least < least ? self->prompts.ranges[i].least : least;
    if (requests && self->tokens <= least)
        return twin_refuse(&self->base, error,
                           "the key-value cache has %llu tokens, and the shortest prompt %llu, so "
                           "no request can run",
                           (unsigned long long)self->tokens, (unsigned long long)least);
    bool vllm = engine_is_vllm(self);
    struct paged_setup setup = {
        .style = !vllm           ? PAGED_SGLANG
                 : self->vllm.v1 ? PAGED_V1
                                 : PAGED_V0,
        .blocks = self->blocks,
        .block_tokens = self->page_tokens,
        .max_requests = self->max_requests,
        .step_tokens = self->step_tokens,
        .length = self->length < self->tokens ? self->length : self->tokens,
        .chunks = !vllm || self->vllm.v1 || self->step_tokens < self->length,
        .expected_percent = EXPECTED,
        .shared_tokens = engine_values(self)->shared_prefix,
    };
    int drafts = engine_values(self)->speculative;
    if (drafts) {
        setup.draft_tokens = engine_values(self)->num_speculative_tokens;
        /* scheduler.py: num_lookahead_tokens, of use_eagle() */
        setup.lookahead_tokens = drafts == ENGINE_NGRAM ? 0 : setup.draft_tokens;
        setup.acceptance = engine_values(self)->acceptance;
    }
    enum ar_status status = paged_open(&self->paged, &setup, error);
    for (uint64_t i = 0; status == AR_OK && i < requests; i++) {
        uint64_t prompt = draw(self, &self->prompts);
        status = paged_add(&self->paged, prompt, draw(self, &self->answers), error);
    }
    self->serving = status == AR_OK;
    self->peak_blocks = self->steps = 0;
    return status;
}

/* vLLM V1 replays the graphs of a step's size whatever is in it; V0 and SGLang only if all requests
 * decode. Larger steps run without. */
static bool graphed(const struct engine *self, const struct paged_step *step)
{
    bool v1 = engine_is_vllm(self) && self->vllm.v1;
    return self->captured && step->tokens <= self->sizes.at[self->sizes.count - 1] &&
           (v1 || !step->prompts);
}

static void serve(struct engine *self, const struct paged_step *step)
{
    struct engine_pass pass = {.tokens = step->tokens,
                               .rows = step->rows,
                               .graphed = graphed(self, step),
                               .sorts = engine_values(self)->top_k_top_p};
    engine_forward(self, &pass);
    /* A step reads the weights and the keys and values of its requests. */
    uint64_t read = self->weights_allocated +
                    step->blocks * self->page_tokens *
                        llm_kv_token_bytes(&self->model, &self->rank, self->kv_value_bytes);
    twin_kernel(&self->base, 0, roofline_bytes_ns(read));
    twin_step(&self->base);
    self->steps++;
    if (step->blocks > self->peak_blocks)
        self->peak_blocks = step->blocks;
}

enum ar_status engine_generate(struct engine *self, uint64_t requests, bool *more,
                               struct ar_error *error)
{
    struct paged_step step;
    if (!self->serving) {
        AR_TRY(start(self, requests, error));
    }
    for (unsigned i = 0; i < PIECE_STEPS; i++) {
        if (!twin_over(&self->base) && paged_step(&self->paged, &step)) {
            serve(self, &step);
            continue;
        }
        twin_figure(&self->base, "requests", (double)self->paged.finished);
        twin_figure(&self->base, "preemptions", (double)self->paged.preemptions);
        twin_figure(&self->base, "steps", (double)self->steps);
        twin_figure(&self->base, "kv blocks used", (double)self->peak_blocks);
        if (engine_values(self)->shared_prefix)
            twin_figure(&self->base, "prefix hits", (double)self->paged.hits);
        paged_close(&self->paged);
        self->serving = false;
        return AR_OK;
    }
    *more = true;
    return AR_OK;
}
