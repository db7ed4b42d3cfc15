/* What an engine does once: it loads the weights, runs the profile, allocates the key-value cache
 * and captures its graphs. */
#include <math.h>

#include "allocators/base/size.h"
#include "sim/twin/parts/engine.h"
#include "sim/twin/rules/context.h"

#define GIB(bytes) ((double)(bytes) / (double)AR_GIB)

uint32_t engine_release(const struct engine *self)
{
    if (!engine_is_vllm(self))
        return self->sglang.minor * 100 + self->sglang.patch;
    if (!self->vllm.v1 && self->vllm.minor >= 8)
        return 799; /* V0 of later releases captures the sizes of 0.7 */
    return self->vllm.minor * 100 + self->vllm.patch;
}

static void request(struct engine *self, struct twin_blocks *list, uint64_t bytes, uint32_t owner,
                    const char *tag)
{
    twin_blocks_alloc(&self->base, list,
                      &(struct twin_request){.bytes = bytes, .owner = owner, .tag = tag});
}

/* Opens the region of a tag, if memory of the tag can sleep. */
static enum ar_status begin(struct engine *self, const char *tag, bool *open,
                            struct ar_error *error)
{
    const struct engine_values *values = engine_values(self);
    struct twin_region region = {.tag = tag};
    *open = values->enable_sleep_mode;
    if (engine_is_vllm(self) && strcmp(tag, "weights") == 0 && !vllm_weights_sleep(self->vllm))
        *open = false;
    if (!*open)
        return AR_OK;
    region.kind = engine_is_vllm(self) ? TWIN_REGION_POOL : TWIN_REGION_SAVER;
    region.release = engine_is_vllm(self) ? engine_version(self) : NULL;
    region.backup =
        strcmp(tag, "weights") == 0 && (engine_is_vllm(self) || values->weights_cpu_backup);
    return twin_region_begin(&self->base, &region, error);
}

static void end(struct engine *self, bool open)
{
    if (open)
        twin_region_end(&self->base);
}

/* ---- load ------------------------------------------------------------------------------------ */

/* Settings whose defaults depend on the card. */
static void settle(struct engine *self, uint64_t total_bytes)
{
    const struct engine_values *values = engine_values(self);
    bool a100 = strncmp(twin_card_name(&self->base), "a100", 4) == 0;
    self->max_requests = values->max_num_seqs;
    if (engine_is_vllm(self)) {
        self->utilization = values->gpu_memory_utilization;
        if (self->utilization <= 0)
            self->utilization = vllm_utilization(self->vllm);
        if (!self->max_requests)
            self->max_requests = vllm_max_seqs(self->vllm, total_bytes, a100);
        self->step_tokens = values->max_num_batched_tokens;
        if (!self->step_tokens)
            self->step_tokens =
                vllm_batch_tokens(self->vllm, total_bytes, a100, values->offline, self->length);
        graphs_vllm_sizes(engine_release(self), (uint32_t)self->max_requests,
                          (uint32_t)self->step_tokens, 0, &self->sizes);
    } else if (engine_shares(self)) {
        self->max_requests = self->max_requests ? self->max_requests : 128;
        self->step_tokens = values->max_num_batched_tokens ? values->max_num_batched_tokens : 8192;
        self->sizes.count = 0; /* only those that are given */
    } else {
        self->settings = (struct sglang_settings){
            .card_mib = total_bytes / AR_MIB,
            .tensor_parallel = self->rank.tensor_parallel,
            .pipeline_parallel = self->rank.pipeline_parallel,
            .chunked_prefill = values->chunked_prefill_size,
            .max_prefill = values->max_num_batched_tokens,
            .graph_batch = values->cuda_graph_max_bs,
            .fraction = values->mem_fraction_static,
        };
        sglang_defaults(self->sglang, &self->settings);
        self->step_tokens = self->settings.chunked_prefill;
        graphs_sglang_sizes(engine_release(self), (uint32_t)self->settings.graph_batch,
                            &self->sizes);
    }
    if (self->given_sizes.count)
        self->sizes = self->given_sizes;
    if (values->enforce_eager)
        self->sizes.count = 0;
}

/* vLLM V1 has the inputs of a step on the card from its start (gpu_model_runner.py, input_batch.py:
 * token ids, positions, slots, and a table of blocks for each request). */
static void make_inputs(struct engine *self)
{
    if (!engine_is_vllm(self) || !self->vllm.v1)
        return;
    uint32_t owner = twin_owner(&self->base, "inputs");
    uint64_t row = (self->length + self->page_tokens - 1) / self->page_tokens;
    request(self, &self->inputs, self->step_tokens * 4, owner, "input_ids");
    request(self, &self->inputs, self->step_tokens * 8, owner, "positions");
    request(self, &self->inputs, self->step_tokens * 8, owner, "slot_mapping");
    request(self, &self->inputs, self->max_requests * row * 4, owner, "block_table");
}

struct loading {
    struct engine *engine;
    uint32_t owner;
    bool online, repack;
};

/* A tensor as it is made before the files are read: of quantised weights those of the file, or, if
 * they are quantised online, the plain ones. The files are read on the host, and each tensor is
 * copied into place: the card needs nothing more for that. */
static void make_tensor(void *context, const struct llm_tensor *tensor)
{
    struct loading *loading = context;
    request(loading->engine, &loading->engine->weights,
            loading->online && tensor->plain_bytes ? tensor->plain_bytes : tensor->bytes,
            loading->owner, tensor->name);
}

/* process_weights_after_loading: a tensor in its last form is made, then the first form is
 * freed. */
static void replace_tensor(void *context, const struct llm_tensor *tensor)
{
    struct loading *loading = context;
    struct twin_blocks *weights = &loading->engine->weights;
    bool product = tensor->plain_bytes != tensor->bytes && tensor->plain_bytes;
    struct twin_block *block = &weights->items[loading->owner++];
    if (!product)
        return;
    struct twin_block old = *block;
    struct twin_request same = {.bytes = tensor->bytes,
                                .owner = twin_owner(&loading->engine->base, "weights"),
                                .tag = tensor->name};
    twin_alloc(&loading->engine->base, &same, block);
    twin_free(&loading->engine->base, &old);
}

static void make_draft_tensor(void *context, const struct llm_tensor *tensor)
{
    struct engine *self = context;
    request(self, &self->weights, tensor->bytes, twin_owner(&self->base, "draft weights"),
            tensor->name);
}

static uint64_t one_layer_less(const struct engine *self)
{
    struct llm less = self->model;
    struct llm_rank rank = self->rank;
    rank.pipeline_parallel = 1;
    rank.stage = 0;
    uint64_t all = llm_weights_bytes(&less, &rank);
    less.layers--;
    return all - llm_weights_bytes(&less, &rank);
}

/* The drafter is loaded after the model, in its region (gpu_model_runner.py, load_model). EAGLE and
 * MTP have a layer as the model's last one and a product of two hidden vectors on each rank; they
 * use the model's embedding and output (v1/spec_decode/eagle.py, load_model). */
static void load_draft(struct engine *self)
{
    int drafts = engine_values(self)->speculative;
    uint32_t owner = twin_owner(&self->base, "draft weights");
    uint64_t hidden = self->model.hidden;
    if (drafts == ENGINE_DRAFT_MODEL)
        llm_weights(&self->draft, &self->rank, make_draft_tensor, self);
    if (drafts != ENGINE_EAGLE)
        return;
    request(self, &self->weights, 2 * hidden * hidden * self->rank.value_bytes, owner, "fc");
    request(self, &self->weights, one_layer_less(self), owner, "layer");
}

static void load_weights(struct engine *self)
{
    const struct engine_values *values = engine_values(self);
    struct loading loading = {.engine = self, .owner = twin_owner(&self->base, "weights")};
    if (values->weights) { /* a size, and no tensors: one block for each layer */
        uint64_t layers = llm_stage_layers(&self->model, &self->rank);
        for (uint64_t i = 0; i < layers; i++)
            request(self, &self->weights, values->weights / layers + (i < values->weights % layers),
                    loading.owner, "layer");
        return;
    }
    loading.online = values->quantize_online && self->rank.quantization != LLM_PLAIN;
    loading.repack = self->rank.quantization == LLM_INT4; /* into the layout of Marlin */
    llm_weights(&self->model, &self->rank, make_tensor, &loading);
    if (!loading.online && !loading.repack)
        return;
    loading.owner = 0; /* the index of the next tensor */
    llm_weights(&self->model, &self->rank, replace_tensor, &loading);
}

/* The first kernel of PyTorch. vLLM fills a tensor when it sets the device, before it looks how
 * much is free (platforms/cuda.py, set_device). SGLang looks first: in sglang#4760 it loads 0.12 GB
 * beyond the weights. */
static void first_kernel(struct engine *self)
{
    twin_outside(&self->base, twin_owner(&self->base, "kernels"),
                 context_torch_bytes(CONTEXT_KERNELS));
}

static struct vllm_reduces reduces_of(struct engine *self)
{
    bool linked = strcmp(card_of(twin_card_name(&self->base)).link, "nvlink") == 0;
    if (!engine_is_vllm(self) || !linked)
        return (struct vllm_reduces){0};
    return vllm_reduces_of(self->vllm, engine_compute(self), self->rank.tensor_parallel,
                           self->model.hidden, self->step_tokens, self->rank.value_bytes);
}

/* vLLM's buffers of all-reduces, which are made with its groups of ranks. */
static void make_reduces(struct engine *self)
{
    const struct vllm_reduces reduces = reduces_of(self);
    twin_outside(&self->base, twin_owner(&self->base, "all-reduce"), reduces.start_bytes);
    if (reduces.pool_bytes)
        request(self, &self->inputs, reduces.pool_bytes, twin_owner(&self->base, "inputs"),
                "all-reduce pointers");
}

enum ar_status engine_load(struct engine *self, struct ar_error *error)
{
    const struct engine_values *values = engine_values(self);
    uint64_t total_bytes;
    bool open;
    if (self->loaded)
        return ar_invalid(error, "%s has its weights already", self->base.name);
    twin_trim(&self->base);
    /* V1 from 0.11 on looks how much is free when its groups are made; before, it looked first
     * (v1/worker/gpu_worker.py, init_device). */
    bool groups_first = self->vllm.v1 && self->vllm.minor >= 11;
    if (engine_is_vllm(self))
        first_kernel(self);
    if (groups_first)
        make_reduces(self);
    twin_card(&self->base, &self->free_start, &total_bytes);
    first_kernel(self);
    if (!groups_first)
        make_reduces(self);
    struct twin_pool_state start = twin_pool_state(&self->base);
    self->reserved_start = start.reserved_bytes;
    settle(self, total_bytes);
    double utilization = self->utilization;
    if (engine_is_vllm(self) && !values->kv_cache_memory &&
        !vllm_starts(self->vllm, utilization, total_bytes, self->free_start))
        return twin_refuse(&self->base, error,
                           "vLLM refuses to start: %.2f of %.2f GiB are free, and "
                           "gpu_memory_utilization=%g needs %.2f GiB",
                           GIB(self->free_start), GIB(total_bytes), utilization,
                           GIB(total_bytes) * utilization);
    make_inputs(self);
    start = twin_pool_state(&self->base);
    AR_TRY(begin(self, "weights", &open, error));
    load_weights(self);
    load_draft(self);
    end(self, open);
    self->weights_allocated = twin_pool_state(&self->base).allocated_bytes - start.allocated_bytes;
    self->loaded = true;
    twin_figure(&self->base, "model weights", (double)self->weights_allocated);
    twin_say(&self->base, "loading the model took %.4f GiB", GIB(self->weights_allocated));
    return AR_OK;
}

/* ---- the profile run ------------------------------------------------------------------------- */

uint32_t engine_compute(struct engine *self)
{
    if (!self->compute)
        self->compute = card_of(twin_card_name(&self->base)).compute;
    return self->compute == 103 ? 100 : self->compute; /* B300 as B200 */
}

static uint64_t first_streams(struct engine *self)
{
    uint64_t bytes = self->streams ? 0 : context_torch_bytes(CONTEXT_STREAMS);
    if (bytes)
        twin_outside(&self->base, twin_owner(&self->base, "streams"), bytes);
    self->streams = true;
    return bytes;
}

/* The first product makes cuBLAS load itself, and its workspace in the pool. vLLM V1 has streams
 * before it from 0.11 on: logs have 0.07 GiB outside of torch in 0.10.2, then 0.13. */
static void first_product(struct engine *self)
{
    if (self->workspace.held)
        return;
    if (engine_is_vllm(self) && self->vllm.v1 && self->vllm.minor >= 11)
        first_streams(self);
    uint64_t outside = engine_values(self)->non_torch;
    twin_outside(&self->base, twin_owner(&self->base, "libraries"), outside);
    uint64_t bytes = context_cublas_workspace_bytes(engine_compute(self));
    twin_alloc_for(&self->base, bytes, "workspace", &self->workspace);
}

/* Sizes of which vLLM V1 also has one graph of all layers, from 0.11 on: those that decode. V0 and
 * SGLang have only such. */
static size_t whole_sizes(const struct engine *self)
{
    size_t count = 0;
    if (!engine_is_vllm(self) || !self->vllm.v1)
        return self->sizes.count;
    while (self->vllm.minor >= 11 && count < self->sizes.count &&
           self->sizes.at[count] <= self->max_requests)
        count++;
    return count;
}

/* What the driver takes for the graphs of so many sizes: V1 has one between each two attention
 * kernels ("pieces"). */
static uint64_t driver_bytes(const struct engine *self, size_t pieces, size_t whole)
{
    const struct llm *model = &self->model;
    uint64_t layers = llm_stage_layers(model, &self->rank);
    /* A stage has its share of the layers with experts. */
    uint64_t experts =
        model->experts ? (model->layers - model->dense_layers) * layers / model->layers : 0;
    const struct graphs_decoder decoder = {
        .layers = (uint32_t)layers,
        .ranks = (uint32_t)self->rank.tensor_parallel,
        .expert_layers = (uint32_t)experts,
        .shared_layers = model->shared_ffn ? (uint32_t)experts : 0,
        .latent = model->kv_rank != 0,
        .learned = model->learned,
    };
    const struct graphs_shape piece = graphs_piecewise(&decoder), all = graphs_full(&decoder);
    return graphs_driver_bytes((uint32_t)engine_values(self)->cuda,
                               pieces * piece.graphs + whole * all.graphs,
                               pieces * piece.kernels + whole * all.kernels);
}

static uint64_t pool_of_size(struct engine *self, size_t size)
{
    struct engine_pass pass = {.tokens = self->sizes.at[size]};
    return engine_forward_bytes(self, &pass);
}

/* Warm-ups and captures are on a stream of their own, for which PyTorch makes a further workspace
 * of cuBLAS (CUDABlas.cpp: one for each handle and stream); in the common pool, because a warm-up
 * comes before the first capture. */
static uint64_t stream_workspace(struct engine *self, struct twin_block *block)
{
    uint64_t bytes = context_cublas_workspace_bytes(engine_compute(self));
    twin_alloc_for(&self->base, bytes, "workspace", block);
    return bytes;
}

static uint64_t graphs_estimate(struct engine *self)
{
    int given = engine_values(self)->estimate_graphs;
    size_t count = self->sizes.count, whole = whole_sizes(self);
    if (!count || (given ? given == ENGINE_NO : !vllm_estimates_graphs(self->vllm)))
        return 0;
    uint64_t one = driver_bytes(self, 1, 0), two = driver_bytes(self, 2, 0);
    uint64_t space = stream_workspace(self, &self->estimate_workspace);
    struct vllm_graphs modes[] = {
        {.count = count,
         .first_bytes = pool_of_size(self, count - 1) + one + space,
         .second_bytes = two - one},
        {.count = whole, .second_bytes = driver_bytes(self, 2, 2) - driver_bytes(self, 2, 1)},
    };
    if (whole)
        modes[1].first_bytes = pool_of_size(self, whole - 1) + driver_bytes(self, 2, 1) - two;
    for (size_t i = 0; i < 2 && engine_values(self)->second_graph; i++)
        modes[i].second_bytes = engine_values(self)->second_graph;
    return vllm_graphs_estimate(modes, 2);
}

static void profile_vllm(struct engine *self)
{
    struct vllm_profile profile = {.free_start = self->free_start,
                                   .reserved_start = self->reserved_start,
                                   .weights_bytes = self->weights_allocated};
    twin_trim(&self->base);
    twin_reset_peaks(&self->base);
    profile.allocated_before = twin_pool_state(&self->base).allocated_bytes;
    first_product(self);
    const struct vllm_reduces reduces = reduces_of(self);
    if (self->sizes.count)
        twin_outside(&self->base, twin_owner(&self->base, "all-reduce"),
                     reduces.start_bytes + reduces.fused_bytes);
    uint64_t rows = self->max_requests < self->step_tokens ? self->max_requests : self->step_tokens;
    struct engine_pass pass = {
        .tokens = self->step_tokens, .rows = rows, .sorts = true, .profile = true};
    engine_forward(self, &pass);
    twin_sync(&self->base);
    if (vllm_account_of(self->vllm) == VLLM_FREE_DROP) {
        twin_card(&self->base, &profile.free_after, &profile.total_bytes);
        twin_trim(&self->base);
    } else {
        twin_trim(&self->base);
        twin_card(&self->base, &profile.free_after, &profile.total_bytes);
    }
    struct twin_pool_state after = twin_pool_state(&self->base);
    profile.peak_bytes = after.peak_allocated_bytes;
    profile.reserved_after = after.reserved_bytes;
    profile.allocated_after = after.allocated_bytes;
    profile.graphs_bytes = graphs_estimate(self);
    self->available = vllm_available(self->vllm, self->utilization, &profile);
    double peak = (double)profile.peak_bytes - (double)profile.allocated_before;
    twin_figure(&self->base, "peak activation", peak);
    if (profile.graphs_bytes)
        twin_figure(&self->base, "estimate of graphs", (double)profile.graphs_bytes);
    twin_say(&self->base,
             "%.2f GiB x %g = %.2f GiB: weights %.2f, peak of activations %.2f, estimate of graphs "
             "%.2f, for the cache %.2f GiB",
             GIB(profile.total_bytes), self->utilization,
             GIB(profile.total_bytes) * self->utilization, GIB(self->weights_allocated), GIB(peak),
             GIB(profile.graphs_bytes), GIB(self->available));
}

/* TensorRT-LLM and LMDeploy. */
static void share_of_free(struct engine *self, uint64_t free_bytes)
{
    const struct engine_values *values = engine_values(self);
    const bool runs = values->rules == ENGINE_TRTLLM;
    const struct engine_pass pass = {.tokens = self->step_tokens, .rows = self->max_requests};
    uint64_t peak = values->activation ? values->activation
                    : runs             ? engine_forward_bytes(self, &pass)
                                       : 0;
    double fraction = values->free_fraction > 0 ? values->free_fraction : runs ? 0.9 : 0.8;
    self->available = fraction * ((double)free_bytes - (double)peak);
    self->profiled = true;
    twin_figure(&self->base, "available", self->available);
    twin_say(&self->base,
             "%.2f GiB are free after loading, less %.2f for a pass; %g of it is for the "
             "cache: %.2f GiB",
             GIB(free_bytes), GIB(peak), fraction, GIB(self->available));
}

enum ar_status engine_profile(struct engine *self, struct ar_error *error)
{
    const struct engine_values *values = engine_values(self);
    uint64_t free_after, total_bytes;
    if (!self->loaded)
        return ar_invalid(error, "%s has no weights; call load first", self->base.name);
    if (self->profiled)
        return ar_invalid(error, "%s is profiled already", self->base.name);
    if (engine_is_vllm(self)) {
        profile_vllm(self);
        if (values->kv_cache_memory)
            self->available = (double)values->kv_cache_memory;
    } else {
        twin_trim(&self->base);
        twin_card(&self->base, &free_after, &total_bytes);
        if (engine_shares(self)) {
            share_of_free(self, free_after);
            return AR_OK;
        }
        self->available =
            sglang_available((double)self->free_start, (double)free_after, self->settings.fraction);
        twin_say(&self->base,
                 "%.2f GiB were free before the weights, %.2f after; mem_fraction_static=%.3f "
                 "gives %.2f GiB to the cache",
                 GIB(self->free_start), GIB(free_after), self->settings.fraction,
                 GIB(self->available));
    }
    self->profiled = true;
    twin_figure(&self->base, "available", self->available);
    return AR_OK;
}

/* ---- the key-value cache --------------------------------------------------------------------- */

static uint64_t token_bytes(const struct engine *self)
{
    uint64_t given = engine_values(self)->kv_bytes_per_token;
    return given ? given : llm_kv_token_bytes(&self->model, &self->rank, self->kv_value_bytes);
}

/* The layers of a drafter have keys and values for the same blocks: as further tensors if they are
 * of the size of the model's, else as so many more bytes of each. */
static void add_draft_cache(struct engine *self)
{
    const struct engine_values *values = engine_values(self);
    bool eagle = values->speculative == ENGINE_EAGLE;
    if (!eagle && values->speculative != ENGINE_DRAFT_MODEL)
        return;
    const struct llm *draft = eagle ? &self->model : &self->draft;
    uint64_t layers = eagle ? 1 : llm_stage_layers(draft, &self->rank);
    uint64_t page =
        self->page_tokens * llm_kv_layer_bytes(draft, &self->rank, self->kv_value_bytes);
    struct vllm_cache *cache = &self->cache;
    if (page == cache->page_bytes && !cache->window_groups)
        cache->tensors += layers;
    else
        cache->page_bytes += (layers * page + cache->tensors - 1) / cache->tensors;
}

static enum ar_status size_vllm(struct engine *self, struct ar_error *error)
{
    const struct engine_values *values = engine_values(self);
    self->cache = vllm_cache_of(self->vllm, &self->model, &self->rank, self->page_tokens,
                                self->kv_value_bytes);
    self->page_tokens = self->cache.block_tokens;
    self->cache.state_blocks += values->enable_prefix_caching;
    if (values->speculative)
        self->cache.state_blocks += values->num_speculative_tokens;
    if (values->kv_bytes_per_token)
        self->cache.page_bytes =
            self->page_tokens * values->kv_bytes_per_token / self->cache.tensors;
    add_draft_cache(self);
    struct ar_error why;
    if (!values->num_gpu_blocks_override &&
        vllm_cache_check(self->vllm, &self->cache, self->available, self->length, self->step_tokens,
                         &why) != AR_OK)
        return twin_refuse(&self->base, error, "%s", why.text);
    self->blocks = values->num_gpu_blocks_override ? values->num_gpu_blocks_override
                                                   : vllm_blocks(&self->cache, self->available);
    self->tokens = vllm_printed_tokens(self->vllm, &self->cache, self->blocks, self->length,
                                       self->step_tokens);
    twin_figure(
        &self->base, "max concurrency",
        vllm_concurrency(self->vllm, &self->cache, self->blocks, self->length, self->step_tokens));
    return AR_OK;
}

/* Bytes of the states of requests beside the cache of SGLang. */
static double states(const struct engine *self)
{
    uint64_t layers = llm_linear_layers(&self->model, &self->rank);
    bool own = !engine_is_vllm(self) && !engine_shares(self) && layers;
    return own ? sglang_states(self->available, layers * llm_state_bytes(&self->model, &self->rank))
               : 0;
}

static enum ar_status size_sglang(struct engine *self, struct ar_error *error)
{
    self->tokens = sglang_tokens(self->available - states(self), token_bytes(self),
                                 self->page_tokens, engine_values(self)->max_total_tokens);
    if (!self->tokens)
        return twin_refuse(&self->base, error,
                           engine_shares(self)
                               ? "no memory is left for the key-value cache"
                               : "SGLang refuses to start: no memory is left for the key-value "
                                 "cache; raise mem_fraction_static=%.3f",
                           self->settings.fraction);
    self->blocks = self->tokens / self->page_tokens;
    if (!self->max_requests)
        self->max_requests = sglang_max_requests(self->tokens, self->length);
    return AR_OK;
}

static void make_cache(struct engine *self)
{
    uint32_t owner = twin_owner(&self->base, "kv cache");
    if (engine_is_vllm(self)) {
        /* The builders of attention metadata are made in the cache's region (vllm#53344). */
        const struct vllm_spaces spaces =
            vllm_spaces_of(self->vllm, &self->model, engine_compute(self), self->length,
                           self->max_requests, self->page_tokens, self->rank.value_bytes);
        request(self, &self->kv, spaces.context_bytes, owner, "context of chunked prefill");
        request(self, &self->kv, spaces.prefill_bytes, owner, "FlashInfer prefill");
        for (uint64_t i = 0; i < self->cache.tensors && !twin_over(&self->base); i++)
            request(self, &self->kv, self->blocks * self->cache.page_bytes, owner, "kv_cache");
        return;
    }
    uint64_t layers =
        llm_stage_layers(&self->model, &self->rank) - llm_linear_layers(&self->model, &self->rank);
    uint64_t parts = self->model.kv_rank ? 1 : 2; /* keys and values, or both in one */
    uint64_t bytes =
        sglang_buffer_bytes(self->tokens, self->page_tokens, token_bytes(self) / layers / parts);
    if (!engine_shares(self))
        request(self, &self->kv, sglang_request_table_bytes(self->max_requests, self->length),
                owner, "req_to_token");
    request(self, &self->kv, (uint64_t)states(self), owner, "mamba states");
    for (uint64_t i = 0; i < parts * layers && !twin_over(&self->base); i++)
        request(self, &self->kv, bytes, owner, i < layers ? "k_buffer" : "v_buffer");
}

enum ar_status engine_allocate(struct engine *self, struct ar_error *error)
{
    bool open;
    if (!self->profiled)
        return ar_invalid(error, "%s has no profile; call profile first", self->base.name);
    if (self->allocated)
        return ar_invalid(error, "%s has its cache already", self->base.name);
    AR_TRY(engine_is_vllm(self) ? size_vllm(self, error) : size_sglang(self, error));
    AR_TRY(begin(self, "kv_cache", &open, error));
    make_cache(self);
    end(self, open);
    self->allocated = true;
    twin_figure(&self->base, "kv blocks", (double)self->blocks);
    twin_figure(&self->base, "kv tokens", (double)self->tokens);
    twin_say(&self->base, "the cache has %" PRIu64 " blocks for %" PRIu64 " tokens", self->blocks,
             self->tokens);
    return AR_OK;
}

/* ---- CUDA graphs ----------------------------------------------------------------------------- */

/* vLLM V1: the sampler's tensors, after the capture if there is one (gpu_worker.py,
 * compile_or_warm_up_model). They stay in the cache of PyTorch. */
static void warm_sampler(struct engine *self, bool graphed)
{
    if (!engine_is_vllm(self) || !self->vllm.v1)
        return;
    first_product(self);
    engine_forward(self, &(struct engine_pass){.tokens = self->max_requests,
                                               .rows = self->max_requests,
                                               .graphed = graphed,
                                               .sorts = true});
}

/* SGLang makes the workspace of attention before it captures (model_runner.py,
 * init_attention_backend), vLLM in its first pass. */
static void make_attention_space(struct engine *self)
{
    const struct sglang_spaces spaces =
        sglang_spaces_of(self->sglang, &self->model, engine_compute(self), self->page_tokens);
    if (!engine_is_vllm(self) && !engine_shares(self) && spaces.workspace_bytes &&
        !self->attention_space.held)
        twin_alloc_for(&self->base, spaces.workspace_bytes, "attention workspace",
                       &self->attention_space);
}

/* The inputs of SGLang's graphs that matter: indices of tokens, and the logits
 * (cuda_graph_runner.py). */
static void make_graph_inputs(struct engine *self)
{
    uint64_t most = self->sizes.at[self->sizes.count - 1];
    const struct sglang_spaces spaces =
        sglang_spaces_of(self->sglang, &self->model, engine_compute(self), self->page_tokens);
    if (engine_is_vllm(self) || engine_shares(self))
        return;
    uint32_t owner = twin_owner(&self->base, "graph inputs");
    double indices = (double)(most * self->length) * spaces.token_bytes;
    request(self, &self->graph_outputs, (uint64_t)indices, owner, "indices");
    if (sglang_shares_logits(self->sglang))
        request(self, &self->graph_outputs, most * self->model.vocabulary * 4, owner, "logits");
}

/* What stays live of a captured size: of vLLM the output of the largest, into which smaller graphs
 * write; of SGLang the logits. */
static void keep_output(struct engine *self, size_t size)
{
    const bool vllm = engine_is_vllm(self);
    uint64_t tokens = self->sizes.at[size];
    struct twin_request output = {.bytes = tokens * self->model.hidden * self->rank.value_bytes,
                                  .owner = twin_owner(&self->base, "graphs"),
                                  .tag = "graph output",
                                  .pool = self->graph_pool};
    if (!vllm)
        output.bytes = tokens * self->model.vocabulary * 4;
    if (vllm ? size + 1 == self->sizes.count : !sglang_shares_logits(self->sglang))
        twin_blocks_alloc(&self->base, &self->graph_outputs, &output);
}

enum ar_status engine_capture(struct engine *self, struct ar_error *error)
{
    if (!self->loaded)
        return ar_invalid(error, "%s has no weights; call load first", self->base.name);
    if (self->captured)
        return ar_invalid(error, "%s has its graphs already", self->base.name);
    make_attention_space(self);
    if (!self->sizes.count) {
        warm_sampler(self, false);
        return AR_OK;
    }
    first_product(self);
    uint64_t free_before, free_after, total_bytes;
    bool open = false, v1 = engine_is_vllm(self) && self->vllm.v1;
    if (v1 && self->vllm.minor >= 20) /* gpu_model_runner.py, capture_model */
        twin_trim(&self->base);
    twin_card(&self->base, &free_before, &total_bytes);
    make_graph_inputs(self);
    stream_workspace(self, &self->capture_workspace);
    self->graph_pool = twin_pool(&self->base, 0);
    for (size_t i = self->sizes.count; i-- > 0 && !twin_over(&self->base);) {
        struct engine_pass pass = {.tokens = self->sizes.at[i], .logits = !engine_is_vllm(self)};
        engine_forward(self, &pass); /* warms up */
        if (engine_values(self)->graphs_sleep && i + 1 == self->sizes.count)
            AR_TRY(begin(self, "cuda_graph", &open, error));
        pass.pool = self->graph_pool;
        engine_forward(self, &pass);
        keep_output(self, i);
    }
    end(self, open);
    uint64_t outside = driver_bytes(self, v1 ? self->sizes.count : 0, whole_sizes(self));
    twin_outside(&self->base, twin_owner(&self->base, "graphs (driver)"), outside);
    uint64_t streams = first_streams(self);
    /* What vLLM and SGLang print: free memory before and after, warm-ups included
     * (gpu_model_runner.py, capture_model; cuda_graph_runner.py, model_runner.py). */
    twin_card(&self->base, &free_after, &total_bytes);
    double took = (double)free_before - (double)free_after;
    warm_sampler(self, true);
    self->captured = true;
    twin_figure(&self->base, "graphs", took);
    twin_say(&self->base,
             "graphs of %zu sizes and their warm-ups take %.2f GiB in pools and %.2f GiB outside",
             self->sizes.count, GIB(took) - GIB(outside + streams), GIB(outside + streams));
    if (engine_is_vllm(self) && vllm_suggests(self->vllm) && self->profiled &&
        !engine_values(self)->kv_cache_memory) {
        double suggested = vllm_suggested(self->available, took);
        twin_figure(&self->base, "suggested cache", suggested);
        twin_say(&self->base, "vLLM would suggest kv_cache_memory=%.0f", suggested);
    }
    return AR_OK;
}

void engine_release_all(struct engine *self)
{
    struct twin_blocks *const lists[] = {&self->graph_outputs, &self->kv, &self->weights,
                                         &self->inputs};
    for (size_t i = 0; i < AR_COUNT(lists); i++)
        twin_blocks_free(&self->base, lists[i]);
    twin_free(&self->base, &self->workspace);
    twin_free(&self->base, &self->capture_workspace);
    twin_free(&self->base, &self->estimate_workspace);
    twin_free(&self->base, &self->experts_space);
    twin_free(&self->base, &self->attention_space);
    if (self->captured)
        twin_pool_end(&self->base, self->graph_pool);
    twin_outside(&self->base, twin_owner(&self->base, "graphs (driver)"), 0);
    twin_outside(&self->base, twin_owner(&self->base, "libraries"), 0);
    twin_outside(&self->base, twin_owner(&self->base, "all-reduce"), 0);
    twin_outside(&self->base, twin_owner(&self->base, "kernels"), 0);
    twin_trim(&self->base);
    self->loaded = self->profiled = self->allocated = self->captured = false;
    self->weights_asleep = self->kv_asleep = self->graphs_asleep = false;
}
