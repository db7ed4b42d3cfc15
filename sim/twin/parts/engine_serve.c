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
        return ar_invalid(error, "%s has no key-value cache; call allocate first", self->base.name);
    if (self->weights_asleep || self->kv_asleep)
        return ar_invalid(error, "%s is asleep; call wake before generate", self->base.name);
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < self->prompts.count; i++)
        AR_LOWER(least, self->prompts.ranges[i].least);
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
    AR_RAISE(self->peak_blocks, step->blocks);
}

enum ar_status engine_generate(struct engine *self, uint64_t requests, bool *more,
                               struct ar_error *error)
{
    struct paged_step step;
    if (!self->serving)
        AR_TRY(start(self, requests, error));
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

/* The requests of a forward pass: the tensors that a layer makes, in the order of the model's code
 * (vllm/model_executor/models/llama.py and layers/fused_moe, SGLang's are alike), and those of the
 * sampler. All layers of a kind request the same sizes, so the first two of each kind are enough:
 * later ones get the same blocks again.
 *
 * What torch.compile plans and workspaces of attention kernels are left out. So a peak in the
 * layers is an estimate; the option `activation` sets it to what a log of the engine prints. */

struct pass {
    struct engine *self;
    uint32_t owner, pool;
    bool dry; /* only the sum is wanted */
    bool profile;
    uint64_t live, peak;
};

static struct twin_block make(struct pass *pass, uint64_t bytes, const char *tag)
{
    struct twin_block block = {.bytes = bytes};
    if (pass->dry) {
        pass->live += bytes;
        AR_RAISE(pass->peak, pass->live);
        return block;
    }
    struct twin_request request = {
        .bytes = bytes, .owner = pass->owner, .tag = tag, .pool = pass->pool};
    twin_alloc(&pass->self->base, &request, &block);
    return block;
}

static void drop(struct pass *pass, struct twin_block *block)
{
    if (pass->dry)
        pass->live -= block->bytes;
    else
        twin_free(&pass->self->base, block);
    block->bytes = 0;
}

/* The sum of all ranks, out of place. */
static struct twin_block reduced(struct pass *pass, struct twin_block part)
{
    if (pass->self->rank.tensor_parallel == 1)
        return part;
    struct twin_block sum = make(pass, part.bytes, "all_reduce");
    drop(pass, &part);
    return sum;
}

/* A workspace that is kept in the common pool, and made anew when more is needed, from an emptied
 * cache (vllm/v1/worker/workspace.py). It does not sleep. */
static void keep(struct pass *pass, struct twin_block *space, uint64_t bytes, const char *purpose)
{
    struct twin_part *part = &pass->self->base;
    if (pass->dry || (space->held && space->bytes >= bytes))
        return;
    if (space->held) {
        twin_free(part, space);
        twin_trim(part);
    }
    twin_alloc_for(part, bytes, purpose, space);
}

/* What attention needs beside its inputs and results. */
static void attention_spaces(struct pass *pass)
{
    struct engine *self = pass->self;
    if (!engine_is_vllm(self))
        return;
    const struct vllm_spaces spaces =
        vllm_spaces_of(self->vllm, &self->model, engine_compute(self), self->length,
                       self->max_requests, self->page_tokens, self->rank.value_bytes);
    if (pass->profile) {
        struct twin_block context =
            make(pass, spaces.projected_bytes / self->rank.tensor_parallel, "projected context");
        drop(pass, &context);
    } else if (spaces.decode_bytes) {
        keep(pass, &self->attention_space, spaces.decode_bytes, "attention workspace");
    }
}

static struct twin_block attention(struct pass *pass, uint64_t tokens)
{
    const struct llm *model = &pass->self->model;
    const struct llm_rank *rank = &pass->self->rank;
    uint64_t values = tokens * rank->value_bytes, heads = model->heads / rank->tensor_parallel;
    struct twin_block inputs[4] = {{0}}, scores;
    attention_spaces(pass);
    size_t count = 0;
    if (model->kv_rank) {
        if (model->q_rank)
            inputs[count++] = make(pass, values * model->q_rank, "q_a_proj");
        inputs[count++] = make(pass, values * heads * (model->nope + model->rope), "q_b_proj");
        inputs[count++] = make(pass, values * (model->kv_rank + model->rope), "kv_a_proj");
        inputs[count++] = make(pass, values * heads * (model->nope + model->v_head), "kv_b_proj");
        scores = make(pass, values * heads * model->v_head, "attention");
    } else if (model->linear_layers) {
        /* The larger one: inputs of a linear layer, those after its convolution, and the states of
         * chunks of 64 tokens (fla, chunk_gated_delta_rule_fwd_h). */
        uint64_t own = model->linear_values / rank->tensor_parallel * model->linear_head;
        uint64_t keys = 2 * model->linear_keys / rank->tensor_parallel * model->linear_head;
        inputs[count++] = make(pass, values * (keys + 2 * own), "in_proj_qkvz");
        inputs[count++] = make(pass, values * (keys + own), "conv1d");
        inputs[count++] = make(pass, values / 64 * own * model->linear_head, "states");
        scores = make(pass, values * own, "attention");
    } else {
        uint64_t kv = model->kv_heads / rank->tensor_parallel;
        uint64_t rows = heads + 2 * (kv ? kv : 1);
        inputs[count++] = make(pass, values * rows * model->head, "qkv_proj");
        scores = make(pass, values * heads * model->head, "attention");
    }
    struct twin_block out = make(pass, values * model->hidden, "o_proj");
    while (count)
        drop(pass, &inputs[--count]);
    drop(pass, &scores);
    return reduced(pass, out);
}

static struct twin_block network(struct pass *pass, uint64_t tokens, uint64_t ffn)
{
    const struct llm_rank *rank = &pass->self->rank;
    uint64_t values = tokens * rank->value_bytes;
    struct twin_block gate_up = make(pass, values * 2 * ffn, "gate_up_proj");
    struct twin_block act = make(pass, values * ffn, "act_fn");
    struct twin_block out = make(pass, values * pass->self->model.hidden, "down_proj");
    drop(pass, &gate_up);
    drop(pass, &act);
    return out;
}

/* Each token goes through `experts_used` experts. */
static struct twin_block experts(struct pass *pass, uint64_t tokens)
{
    struct engine *self = pass->self;
    const struct llm *model = &self->model;
    const struct llm_rank *rank = &self->rank;
    tokens *= llm_replicas(rank); /* gathered (distributed/device_communicators/all2all.py) */
    uint64_t used = tokens * model->experts_used, width = model->expert_ffn;
    if (!rank->expert_parallel)
        width /= rank->tensor_parallel;
    const struct vllm_version none = {0}; /* SGLang has the kernels of vLLM's first releases */
    const struct vllm_experts spaces =
        vllm_experts_of(engine_is_vllm(self) ? self->vllm : none, engine_compute(self),
                        rank->quantization == LLM_PLAIN, tokens, model->experts_used, width,
                        model->hidden, rank->value_bytes);
    struct twin_block logits = make(pass, tokens * model->experts * 4, "router_logits");
    struct twin_block weights = make(pass, used * 4, "topk_weights");
    struct twin_block ids = make(pass, used * 4, "topk_ids");
    struct twin_block cache13 = {0}, cache2 = {0};
    if (spaces.kept_bytes)
        keep(pass, &self->experts_space, spaces.kept_bytes, "experts workspace");
    if (spaces.passing_bytes[0])
        cache13 = make(pass, spaces.passing_bytes[0], "cache13");
    if (spaces.passing_bytes[1])
        cache2 = make(pass, spaces.passing_bytes[1], "cache2");
    struct twin_block out = make(pass, tokens * model->hidden * rank->value_bytes, "experts");
    struct twin_block *const blocks[] = {&logits, &weights, &ids, &cache13, &cache2};
    for (size_t i = 0; i < AR_COUNT(blocks); i++)
        drop(pass, blocks[i]);
    return out;
}

static struct twin_block feed_forward(struct pass *pass, uint64_t tokens, bool dense)
{
    const struct llm *model = &pass->self->model;
    uint64_t parallel = pass->self->rank.tensor_parallel;
    if (dense)
        return reduced(pass, network(pass, tokens, model->ffn / parallel));
    struct twin_block shared = {0};
    if (model->shared_ffn)
        shared = network(pass, tokens, model->shared_ffn / parallel);
    struct twin_block out = experts(pass, tokens);
    if (model->shared_ffn)
        drop(pass, &shared);
    return reduced(pass, out);
}

static struct twin_block layers(struct pass *pass, uint64_t tokens)
{
    const struct llm *model = &pass->self->model;
    uint64_t bytes = tokens * model->hidden * pass->self->rank.value_bytes;
    struct twin_block residual = make(pass, bytes, "embedding");
    struct twin_block hidden = make(pass, bytes, "norm");
    bool plain = !model->experts || model->dense_layers;
    for (unsigned i = 0; i < 4; i++) {
        bool dense = i < 2;
        if (dense ? !plain : !model->experts)
            continue;
        struct twin_block out = attention(pass, tokens);
        drop(pass, &hidden);
        hidden = out;
        out = feed_forward(pass, tokens, dense);
        drop(pass, &hidden);
        hidden = out;
    }
    drop(pass, &residual);
    return hidden;
}

/* torch.sort of rows of float32 with their indices: beside the two results a copy of the indices,
 * and space of cub for keys and values (aten/src/ATen/native/cuda/Sort.cu, segmented_sort_pairs;
 * cub::DeviceSegmentedRadixSort::SortPairs). vllm#32558 measures 1.25 GB for 256 rows of 131072. */
static void sorted(struct pass *pass, uint64_t values, struct twin_block out[2])
{
    out[0] = make(pass, values * 4, "sorted");
    out[1] = make(pass, values * 8, "sorted indices");
    struct twin_block copy = make(pass, values * 8, "sort indices");
    struct twin_block space = make(pass, values * 12, "sort space");
    drop(pass, &space);
    drop(pass, &copy);
}

/* vLLM from 0.17 on has a kernel for top-k and top-p that does not sort, for 8 rows or more
 * (vllm#33538); a row of the vocabulary for each multiprocessor. */
#define PROGRAMS 132

static bool sorts(const struct pass *pass, const struct engine_pass *what)
{
    const struct vllm_version *version = &pass->self->vllm;
    bool kernel = version->v1 && version->minor >= 17 && what->rows >= 8;
    return what->sorts && engine_is_vllm(pass->self) && !kernel;
}

/* Logits of the sampled rows: 16 bits, gathered from all ranks, and float32; sorted for top-k and
 * top-p, or their softmax and random numbers (v1/sample/ops/topk_topp_sampler.py, V0's Sampler).
 * With the sort they are 9.5 times the float32 logits, which seven peaks in logs confirm within
 * 0.01 GiB. */
static void sample(struct pass *pass, const struct engine_pass *what)
{
    const struct llm *model = &pass->self->model;
    const struct llm_rank *rank = &pass->self->rank;
    uint64_t values = what->rows * model->vocabulary;
    struct twin_block blocks[9], part = {0};
    size_t count = 0;
    for (unsigned i = 0; i < 2; i++)
        blocks[count++] = make(pass, what->rows * model->hidden * rank->value_bytes, "sampled");
    if (rank->tensor_parallel > 1)
        part = make(pass, values / rank->tensor_parallel * rank->value_bytes, "lm_head");
    blocks[count++] = make(pass, values * rank->value_bytes, "logits");
    if (part.bytes)
        drop(pass, &part);
    blocks[count++] = make(pass, values * 4, "logits float32");
    if (sorts(pass, what)) {
        sorted(pass, values, &blocks[count]);
        count += 2;
    } else {
        uint64_t programs = what->rows < PROGRAMS ? what->rows : PROGRAMS;
        if (what->sorts)
            blocks[count++] = make(pass, programs * model->vocabulary * 4, "top-k and top-p");
        blocks[count++] = make(pass, values * 4, "probabilities");
        blocks[count++] = make(pass, values * 4, "exponential");
    }
    while (count)
        drop(pass, &blocks[--count]);
}

/* 16 bits, gathered from all ranks and then transposed (logits_processor.py, parallel_state.py),
 * and float32, which from 0.5 on have a buffer of their own. */
static void graph_logits(struct pass *pass, uint64_t rows)
{
    const struct engine *self = pass->self;
    uint64_t values = rows * self->model.vocabulary, bytes = values * self->rank.value_bytes;
    struct twin_block part = {0}, gathered = {0}, wide = {0};
    if (self->rank.tensor_parallel > 1) {
        part = make(pass, bytes / self->rank.tensor_parallel, "lm_head");
        gathered = make(pass, bytes, "gathered logits");
    }
    struct twin_block logits = make(pass, bytes, "logits");
    if (!sglang_shares_logits(self->sglang))
        wide = make(pass, values * 4, "logits float32");
    struct twin_block *const blocks[] = {&part, &gathered, &logits, &wide};
    for (size_t i = 0; i < AR_COUNT(blocks); i++)
        if (blocks[i]->bytes)
            drop(pass, blocks[i]);
}

/* vLLM's profile run encodes as many of the largest images as a step may have tokens, one at least,
 * and keeps the result until its end (gpu_model_runner.py, profile_run; encoder_cache_manager.py,
 * compute_mm_encoder_budget). One layer, in the order of models/qwen3_vl.py and siglip.py. */
static struct twin_block encode(struct pass *pass)
{
    const struct engine *self = pass->self;
    const struct llm *model = &self->model;
    uint64_t images = self->step_tokens / model->image_tokens, bytes = self->rank.value_bytes;
    uint64_t tokens = (images ? images : 1) * model->image_tokens;
    uint64_t hidden = tokens * model->merge * bytes * model->encoder_hidden;
    uint64_t network = tokens * model->merge * bytes * model->encoder_ffn;
    struct twin_block patches = make(pass, hidden, "patches"), norm = make(pass, hidden, "norm");
    struct twin_block qkv = make(pass, 3 * hidden, "encoder qkv");
    struct twin_block attended = make(pass, hidden, "encoder attention");
    drop(pass, &qkv);
    drop(pass, &norm);
    struct twin_block sum = make(pass, hidden, "encoder proj");
    drop(pass, &attended);
    struct twin_block up = make(pass, network, "encoder fc1"), act = make(pass, network, "act");
    struct twin_block down = make(pass, hidden, "encoder fc2");
    uint64_t outputs = tokens * model->hidden * bytes * (1 + model->deepstack);
    struct twin_block out = make(pass, outputs, "images");
    struct twin_block *const blocks[] = {&up, &act, &sum, &down, &patches};
    for (size_t i = 0; i < AR_COUNT(blocks); i++)
        drop(pass, blocks[i]);
    return out;
}

static void forward(struct pass *pass, const struct engine_pass *what)
{
    uint64_t activation = engine_values(pass->self)->activation;
    if (activation) { /* in proportion to the profile run's tokens */
        uint64_t tokens = what->graphed ? 0 : what->tokens;
        double share = (double)tokens / (double)pass->self->step_tokens;
        struct twin_block block =
            make(pass, (uint64_t)((double)activation * (share < 1 ? share : 1)), "activation");
        drop(pass, &block);
        return;
    }
    struct twin_block hidden = {0}, images = {0};
    if (what->profile && pass->self->model.encoder_layers)
        images = encode(pass);
    if (!what->graphed && what->tokens)
        hidden = layers(pass, what->tokens);
    bool last = pass->self->rank.stage + 1 == pass->self->rank.pipeline_parallel;
    if (what->rows && last)
        sample(pass, what);
    if (what->logits && last)
        graph_logits(pass, what->tokens);
    if (hidden.bytes)
        drop(pass, &hidden);
    if (images.bytes)
        drop(pass, &images);
}

void engine_forward(struct engine *self, const struct engine_pass *what)
{
    struct pass pass = {.self = self,
                        .pool = what->pool,
                        .profile = what->profile,
                        .owner = twin_owner(&self->base, what->pool ? "graphs" : "activations")};
    forward(&pass, what);
}

uint64_t engine_forward_bytes(struct engine *self, const struct engine_pass *what)
{
    struct pass pass = {.self = self, .dry = true};
    forward(&pass, what);
    return pass.peak;
}
