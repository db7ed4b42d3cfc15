/* An inference engine: vLLM or SGLang, by their own sizing rules (rules/vllm.h, rules/sglang.h), or
 * TensorRT-LLM or LMDeploy, whose cache is a part of the memory that is free after loading:
 * free_gpu_memory_fraction, less the peak of a forward pass (_torch/pyexecutor/_util.py; engines of
 * the C++ runtime have that memory already), or cache_max_entry_count (from 0.2.1 on;
 * turbomind/models/llama/BlockManager.cc, pytorch/engine/executor/base.py). Graphs and buffers that
 * come later are not in the rules of these two.
 *
 * 1. load makes the weights, tensor by tensor. profile runs a forward pass of the largest step and
 *    finds what the key-value cache can have; SGLang only reads the free memory. allocate makes the
 *    cache, capture the CUDA graphs. start is all four.
 * 2. generate serves requests of drawn lengths with a paged block manager (rules/paged.h).
 * 3. sleep and wake release and make again the memory of weights and cache: vLLM's levels 1 (copy
 *    the weights to pinned host memory) and 2 (drop them), or SGLang's release_memory_occupation
 *    and resume_memory_occupation. The blocks keep their addresses.
 * 4. New weights are written into the old ones. From another process they come through a buffer.
 *
 * engine_memory.c has 1, engine_serve.c 2 and the requests of a forward pass. */

#include "sim/twin/parts/engine.h"
#include "sim/twin/rules/llm.h"

#define AR_OPT_OF struct engine_values
#define MOST      1e15
#define PROMPTS   "256-1024"

static const struct ar_option options[] = {
    AR_OPT_CHOICE(rules, "vllm", "vllm|sglang|trtllm|lmdeploy",
                  "whose sizing rules; trtllm: TensorRT-LLM"),
    AR_OPT_TEXT(version, "",
                "\"0.9.2\", \"0.8.5-v0\"; the default is 0.11 of vLLM, 0.5.4 of SGLang"),
    AR_OPT_TEXT(model, "llama-3.1-8b",
                "a preset (another word lists them), with other values after a colon: "
                "llama-3.1-8b:positions=8192; or custom:layers=.."),
    AR_OPT_BYTES(weights, "0", 0, MOST, "bytes of the weights on a rank; 0: by the model"),
    AR_OPT_BYTES(kv_bytes_per_token, "0", 0, MOST, "of all layers of a rank; 0: by the model"),
    AR_OPT_CHOICE(dtype, "bfloat16", "bfloat16|float16|float32",
                  "of weights that are not quantised, and of activations"),
    AR_OPT_CHOICE(quantization, "none", LLM_QUANTIZATIONS, "of the weights of products"),
    AR_OPT_BOOL(experts_only, "no", "only the experts are quantised, as in gpt-oss"),
    AR_OPT_BOOL(quantize_online, "no",
                "the files have plain weights, which are quantised after loading"),
    AR_OPT_CHOICE(kv_cache_dtype, "auto", "auto|fp8", "of keys and values; auto: as dtype"),
    AR_OPT_COUNT(tensor_parallel, "1", 1, 1024, "ranks that divide each layer"),
    AR_OPT_COUNT(pipeline_parallel, "1", 1, 1024,
                 "stages of layers; ranks of a stage follow one another"),
    AR_OPT_BOOL(expert_parallel, "no", "a rank has whole experts"),
    AR_OPT_COUNT(
        data_parallel, "1", 1, 1024,
        "replicas; with expert_parallel they divide the experts, and gather the tokens for them"),
    AR_OPT_FRACTION(
        gpu_memory_utilization, "0", 0, 1,
        "of the card, for weights, activations and cache (vLLM); 0: 0.9, from 0.21 on 0.92"),
    AR_OPT_BYTES(kv_cache_memory, "0", 0, MOST,
                 "bytes of the cache (vLLM, --kv-cache-memory); 0: by gpu_memory_utilization"),
    AR_OPT_COUNT(num_gpu_blocks_override, "0", 0, 1e9,
                 "blocks of the cache (vLLM); 0: by its bytes"),
    AR_OPT_FRACTION(mem_fraction_static, "0", 0, 1,
                    "of the card's free memory, for weights and cache (SGLang); 0: by the card"),
    AR_OPT_FRACTION(
        free_fraction, "0", 0, 1,
        "of the memory that is free after loading (trtllm: free_gpu_memory_fraction; lmdeploy: "
        "cache_max_entry_count); 0: 0.9, lmdeploy 0.8"),
    AR_OPT_COUNT(max_total_tokens, "0", 0, 1e12, "limit of the cache (SGLang); 0: none"),
    AR_OPT_COUNT(max_model_len, "0", 0, 1e8,
                 "tokens of a request (SGLang: context_length); 0: of the model"),
    AR_OPT_COUNT(max_num_seqs, "0", 0, 1e6,
                 "requests that run at a time (SGLang: max_running_requests); 0: by the card"),
    AR_OPT_COUNT(max_num_batched_tokens, "0", 0, 1e8,
                 "tokens of a step (SGLang: max_prefill_tokens); 0: by the card"),
    AR_OPT_COUNT(chunked_prefill_size, "0", 0, 1e8,
                 "tokens of a prompt in a step (SGLang); 0: by the card"),
    AR_OPT_COUNT(block_size, "0", 0, 1e6,
                 "tokens of a block (SGLang: page_size); 0: 16, with SGLang 1, else 64"),
    AR_OPT_BOOL(enforce_eager, "no", "no CUDA graphs (SGLang: disable_cuda_graph)"),
    AR_OPT_BOOL(enable_prefix_caching, "no",
                "requests of a model with linear attention keep two states (vLLM)"),
    AR_OPT_TEXT(cudagraph_sizes, "", "\"1 2 4 8-256/8\"; the default is that of the version"),
    AR_OPT_COUNT(cuda_graph_max_bs, "0", 0, 8192,
                 "largest batch with a graph (SGLang); 0: by the card"),
    AR_OPT_BOOL(offline, "yes", "defaults of vLLM's class LLM, not of its server"),
    AR_OPT_BOOL(enable_sleep_mode, "no",
                "weights and cache can sleep (SGLang: enable_memory_saver)"),
    AR_OPT_BOOL(weights_cpu_backup, "no",
                "sleeping weights are copied to pinned host memory (SGLang)"),
    AR_OPT_BOOL(graphs_sleep, "no", "the graphs' pool can sleep, with the tag cuda_graph (SGLang)"),
    AR_OPT_BYTES(activation, "0", 0, MOST,
                 "peak of the profile run's activations; 0: an estimate by the model"),
    AR_OPT_BYTES(non_torch, "66MiB", 0, MOST,
                 "that libraries take outside of the pool at the first forward pass: cuBLAS, NCCL"),
    AR_OPT_CHOICE(
        estimate_graphs, "auto", "auto|yes|no",
        "the memory of graphs is estimated and not given to the cache (vLLM); auto: from 0.21 on"),
    AR_OPT_COUNT(cuda, "0", 0, 9999,
                 "CUDA version of the driver, 1204 for 12.4 to 12.9: what it takes for graphs; 0: "
                 "the newest"),
    AR_OPT_BYTES(
        second_graph, "0", 0, MOST,
        "of that estimate: what the second graph took, which stands for all others; 0: by rule"),
    AR_OPT_BYTES(update_bucket, "0", 0, MOST,
                 "buffer of new weights from another process; 0: of the piece that arrives"),
    AR_OPT_CHOICE(speculative, "none", "none|ngram|eagle|draft",
                  "what proposes tokens (vLLM V1): the text, a layer that shares embedding and "
                  "output with the model (EAGLE, MTP), or a model of its own"),
    AR_OPT_COUNT(num_speculative_tokens, "3", 1, 64, "proposed in a step"),
    AR_OPT_TEXT(draft_model, "", "of speculative = draft; as the option model"),
    AR_OPT_FRACTION(acceptance, "0.7", 0, 1, "of proposed tokens, if the one before was accepted"),
    AR_OPT_COUNT(shared_prefix, "0", 0, 1e8,
                 "tokens with which all prompts begin, and whose blocks requests share (vLLM V1)"),
    AR_OPT_TEXT(prompts, PROMPTS, "tokens of a prompt: a list of numbers and ranges to draw from"),
    AR_OPT_TEXT(answers, "32-256", "tokens of an answer"),
    AR_OPT_BOOL(top_k_top_p, "no", "requests ask for top-k or top-p, so that logits are sorted"),
    AR_OPT_COUNT(seed, "0", 0, MOST, "of the drawn lengths; 0: that of [machine]"),
    {0},
};

enum {
    ACTION_START,
    ACTION_LOAD,
    ACTION_PROFILE,
    ACTION_ALLOCATE,
    ACTION_CAPTURE,
    ACTION_GENERATE,
    ACTION_SLEEP,
    ACTION_WAKE,
    ACTION_UPDATE,
    ACTION_RELEASE,
};

static const struct twin_action actions[] = {
    {"start", NULL, "load, profile, allocate and capture", 0, 0},
    {"load", NULL, "makes the weights", 0, 0},
    {"profile", NULL, "finds how many bytes the key-value cache can have", 0, 0},
    {"allocate", NULL, "makes the key-value cache", 0, 0},
    {"capture", NULL, "captures CUDA graphs", 0, 0},
    {"generate", "[REQUESTS]", "serves requests, 256 by default, until all are complete", 0, 1},
    {"sleep", "[LEVEL] [TAG..]", "vLLM: level 1 or 2; SGLang: tags weights, kv_cache", 0, 4},
    {"wake", "[TAG..]", "makes the memory of tags again; without tags of all", 0, 3},
    {"update_weights", NULL, "writes new weights into the old ones, from files", 0, 0},
    {"release", NULL, "frees all and empties the cache of the pool", 0, 0},
    {0},
};

/* ---- options --------------------------------------------------------------------------------- */

/* "256-1024", "100 200-300": numbers and ranges. */
static enum ar_status read_lengths(const char *option, const char *text, struct engine_lengths *out,
                                   struct ar_error *error)
{
    const char *at = text;
    out->count = 0;
    while (*(at += strspn(at, " ,;"))) {
        char *end;
        unsigned long long least = strtoull(at, &end, 10), most = least;
        bool good = end != at && *at != '-' && *at != '+';
        if (good && *end == '-') {
            at = end + 1;
            most = strtoull(at, &end, 10);
            good = end != at && *at != '-' && *at != '+';
        }
        good = good && (!*end || strchr(" ,;", *end)) && least >= 1 && most >= least &&
               most <= (1u << 30) && out->count < ENGINE_LENGTHS;
        if (!good)
            return ar_invalid(error,
                              "option %s: \"%s\" is no list of at most %d numbers from 1 on, or "
                              "ranges such as 256-1024",
                              option, text, ENGINE_LENGTHS);
        out->ranges[out->count].least = least;
        out->ranges[out->count++].most = most;
        at = end;
    }
    if (!out->count)
        return ar_invalid(error, "option %s: it has no number", option);
    return AR_OK;
}

static enum ar_status read_version(struct engine *self, struct ar_error *error)
{
    const char *text = engine_version(self);
    if (engine_shares(self))
        return AR_OK;
    return ar_error_prefix(error,
                           engine_is_vllm(self) ? vllm_version_read(text, &self->vllm, error)
                                                : sglang_version_read(text, &self->sglang, error),
                           "option version");
}

/* An option that the other engine has. */
static enum ar_status check_rules(const struct engine *self, struct ar_error *error)
{
    const struct engine_values *v = engine_values(self);
    static const struct {
        const char *name, *rules;
    } engines[] = {{"vLLM", "vllm"}, {"SGLang", "sglang"}, {"TensorRT-LLM", "trtllm"}};
    static const char *const fractions[] = {"gpu_memory_utilization", "mem_fraction_static",
                                            "free_fraction"};
    const struct {
        bool given;
        int of;
        const char *name, *instead; /* fractions: the one of the engine */
    } only[] = {
        {v->gpu_memory_utilization > 0, 0, fractions[0], "fractions"},
        {v->kv_cache_memory, 0, "kv_cache_memory", "max_total_tokens"},
        {v->num_gpu_blocks_override, 0, "num_gpu_blocks_override", "max_total_tokens"},
        {v->estimate_graphs != ENGINE_AUTO, 0, "estimate_graphs", NULL},
        {v->mem_fraction_static > 0, 1, fractions[1], "fractions"},
        {v->max_total_tokens && !engine_shares(self), 1, "max_total_tokens",
         "num_gpu_blocks_override"},
        {v->chunked_prefill_size, 1, "chunked_prefill_size", "max_num_batched_tokens"},
        {v->cuda_graph_max_bs, 1, "cuda_graph_max_bs", "cudagraph_sizes"},
        {v->weights_cpu_backup, 1, "weights_cpu_backup", NULL},
        {v->graphs_sleep, 1, "graphs_sleep", NULL},
        {v->enable_sleep_mode && engine_shares(self), 0, "enable_sleep_mode", NULL},
        {v->free_fraction > 0, 2, fractions[2], "fractions"},
    };
    const int own = engine_shares(self) ? 2 : v->rules;
    for (size_t i = 0; i < AR_COUNT(only); i++) {
        const char *instead = only[i].instead;
        if (!only[i].given || only[i].of == own)
            continue;
        if (instead && strcmp(instead, "fractions") == 0)
            instead = fractions[own];
        return ar_invalid(error, "option %s is %s's; %s%s, or write rules = %s", only[i].name,
                          engines[only[i].of].name, instead ? "write " : "leave it out",
                          instead ? instead : "", engines[only[i].of].rules);
    }
    return AR_OK;
}

/* Speculative decoding and shared prefixes are those of vLLM V1. */
static enum ar_status read_drafts(struct engine *self, struct ar_error *error)
{
    const struct engine_values *values = engine_values(self);
    bool v1 = engine_is_vllm(self) && self->vllm.v1;
    if (!v1 && (values->speculative || values->shared_prefix))
        return ar_invalid(error, "option %s is known for vLLM V1 only; leave it out",
                          values->speculative ? "speculative" : "shared_prefix");
    bool model = values->speculative == ENGINE_DRAFT_MODEL;
    if (model != (*values->draft_model != '\0'))
        return ar_invalid(error,
                          model ? "option speculative: write draft_model = llama-3.2-1b or another"
                                : "option draft_model: write speculative = draft");
    if (!model)
        return AR_OK;
    enum ar_status status = llm_read(values->draft_model, &self->draft, error);
    AR_THEN(status, llm_check(&self->draft, &self->rank, error));
    return ar_error_prefix(error, status, "option draft_model");
}

/* A number without a unit counts bytes: 16 for 16 GiB is a mistake. */
static enum ar_status check_sizes(const struct engine_values *values, struct ar_error *error)
{
    const struct {
        const char *name;
        uint64_t bytes;
    } sizes[] = {{"weights", values->weights},
                 {"kv_cache_memory", values->kv_cache_memory},
                 {"activation", values->activation}};
    for (size_t i = 0; i < AR_COUNT(sizes); i++)
        if (sizes[i].bytes && sizes[i].bytes < 4096)
            return ar_invalid(
                error, "option %s: %" PRIu64 " are bytes; write its unit, such as %" PRIu64 "GiB",
                sizes[i].name, sizes[i].bytes, sizes[i].bytes);
    return AR_OK;
}

/* Requests with a prompt of max_model_len tokens or more are refused by both engines. */
static enum ar_status check_prompts(const struct engine *self, struct ar_error *error)
{
    bool given = strcmp(engine_values(self)->prompts, PROMPTS) != 0; /* else they are cut */
    for (size_t i = 0; given && i < self->prompts.count; i++)
        if (self->prompts.ranges[i].least >= self->length)
            return ar_invalid(error,
                              "option prompts: a request may have %" PRIu64
                              " tokens (max_model_len), so its prompt cannot have %" PRIu64,
                              self->length, self->prompts.ranges[i].least);
    return AR_OK;
}

/* Each rank has a card of the process; further groups of ranks are replicas. */
static enum ar_status check_ranks(const struct engine *self, struct ar_error *error)
{
    const struct engine_values *values = engine_values(self);
    uint64_t ranks = values->tensor_parallel * values->pipeline_parallel;
    if (self->base.ranks % ranks == 0)
        return AR_OK;
    return ar_invalid(error,
                      "option %s: %" PRIu64 " ranks need as many cards, or a multiple, and the "
                      "process has %u; write cards = %" PRIu64
                      " in [machine] and cards = all in the process",
                      values->tensor_parallel > 1 ? "tensor_parallel" : "pipeline_parallel", ranks,
                      self->base.ranks, ranks);
}

static enum ar_status engine_create(struct twin_part *base, struct ar_error *error)
{
    static const unsigned dtype_bytes[] = {2, 2, 4}, default_page[] = {16, 1, 64, 64};
    struct engine *self = (struct engine *)base;
    const struct engine_values *values = engine_values(self);
    AR_TRY(check_rules(self, error));
    AR_TRY(check_sizes(values, error));
    AR_TRY(read_version(self, error));
    AR_TRY(llm_read(values->model, &self->model, error));
    AR_TRY(read_lengths("prompts", values->prompts, &self->prompts, error));
    AR_TRY(read_lengths("answers", values->answers, &self->answers, error));
    if (*values->cudagraph_sizes)
        AR_TRY(graphs_sizes_parse("option cudagraph_sizes", values->cudagraph_sizes,
                                  &self->given_sizes, error));
    unsigned bytes = dtype_bytes[values->dtype];
    self->rank = (struct llm_rank){
        .tensor_parallel = values->tensor_parallel,
        .pipeline_parallel = values->pipeline_parallel,
        .stage = base->rank / values->tensor_parallel % values->pipeline_parallel,
        .expert_parallel = values->expert_parallel,
        .experts_only = values->experts_only,
        .data_parallel = values->data_parallel,
        .value_bytes = bytes,
        .rope_bytes = engine_is_vllm(self) ? bytes : 4, /* SGLang keeps the table in float32 */
        .quantization = (enum llm_quantization)values->quantization,
    };
    base->depends_on_rank = values->pipeline_parallel > 1;
    self->kv_value_bytes = values->kv_cache_dtype ? 1 : bytes;
    self->length = values->max_model_len ? values->max_model_len : self->model.positions;
    self->page_tokens = values->block_size ? values->block_size : default_page[values->rules];
    ar_rng_seed(&self->rng, values->seed ? values->seed : twin_seed(base));
    if (values->expert_parallel && !self->model.experts)
        return ar_invalid(error, "option expert_parallel: the model has no experts; leave it out");
    AR_TRY(ar_error_prefix(error, llm_check(&self->model, &self->rank, error), "option model"));
    AR_TRY(read_drafts(self, error));
    AR_TRY(check_prompts(self, error));
    return check_ranks(self, error);
}

/* ---- sleep, wake and new weights ------------------------------------------------------------- */

static void set_asleep(struct engine *self, const char *tag, bool asleep)
{
    if (!tag || strcmp(tag, "weights") == 0)
        self->weights_asleep = asleep;
    if (!tag || strcmp(tag, "kv_cache") == 0)
        self->kv_asleep = asleep;
    if (!tag || strcmp(tag, "cuda_graph") == 0)
        self->graphs_asleep = asleep && engine_values(self)->graphs_sleep;
}

static bool is_asleep(const struct engine *self, const char *tag)
{
    return strcmp(tag, "weights") == 0    ? self->weights_asleep
           : strcmp(tag, "kv_cache") == 0 ? self->kv_asleep
                                          : self->graphs_asleep;
}

static bool sleeps(const struct engine *self)
{
    return self->weights_asleep || self->kv_asleep || self->graphs_asleep;
}

/* What torch_memory_saver does with memory that is not in the expected state (core.cpp, pause and
 * resume): it prints a line and ends the process. SGLang has no check before it. */
static enum ar_status check_states(const struct engine *self, const struct twin_call *call,
                                   size_t from, bool asleep, struct ar_error *error)
{
    static const char *const all[] = {"weights", "kv_cache"};
    bool given = from < call->argument_count;
    for (size_t i = given ? from : 0; i < (given ? call->argument_count : 2); i++) {
        const char *tag = given ? call->arguments[i] : all[i];
        if (is_asleep(self, tag) != asleep)
            return ar_invalid(
                error, "%s %s; SGLang would end there, because torch_memory_saver cannot %s it",
                tag, asleep ? "does not sleep" : "sleeps already", asleep ? "resume" : "pause");
    }
    return AR_OK;
}

static enum ar_status check_tags(const struct twin_call *call, size_t from, struct ar_error *error)
{
    for (size_t i = from; i < call->argument_count; i++) {
        const char *tag = call->arguments[i];
        if (strcmp(tag, "weights") && strcmp(tag, "kv_cache") && strcmp(tag, "cuda_graph"))
            return ar_invalid(error, "\"%s\" is no tag; write weights, kv_cache or cuda_graph",
                              tag);
    }
    return AR_OK;
}

static enum ar_status need_loaded(const struct engine *self, struct ar_error *error)
{
    return self->loaded ? AR_OK
                        : ar_invalid(error, "%s has no weights; call load first", self->base.name);
}

/* vLLM: CuMemAllocator.sleep, which empties torch's cache at its end. Without tags everything
 * sleeps; level 1 copies what has the tag weights. SGLang: the cache is emptied first
 * (flush_cache). The figures are those of vLLM's log: "Sleep mode freed 19.51 GiB memory, 1.15 GiB
 * memory is still in use", of all processes of the card. */
static enum ar_status engine_sleep(struct engine *self, const struct twin_call *call,
                                   struct ar_error *error)
{
    bool vllm = engine_is_vllm(self);
    const char *keep = vllm ? "weights" : "*";
    size_t from = 0;
    if (call->argument_count && strspn(call->arguments[0], "0123456789") != 0) {
        bool two = strcmp(call->arguments[0], "2") == 0;
        if (!vllm || (!two && strcmp(call->arguments[0], "1") != 0))
            return ar_invalid(error, "\"%s\" is no level; vLLM has 1 and 2, SGLang none",
                              call->arguments[0]);
        keep = two ? NULL : keep;
        from = 1;
    }
    AR_TRY(check_tags(call, from, error));
    if (!engine_values(self)->enable_sleep_mode)
        return twin_refuse(&self->base, error, "%s cannot sleep: enable_sleep_mode is off",
                           self->base.name);
    AR_TRY(need_loaded(self, error));
    if (!vllm)
        AR_TRY(check_states(self, call, from, false, error));
    /* v1/executor/abstract.py, sleep. */
    if (vllm && sleeps(self)) {
        twin_say(&self->base, "sleep does nothing: %s",
                 self->weights_asleep && self->kv_asleep
                     ? "the executor is already sleeping"
                     : "the executor counts as sleeping until all tags are awake");
        return AR_OK;
    }
    uint64_t before, after, total_bytes;
    twin_card(&self->base, &before, &total_bytes);
    if (!vllm)
        twin_trim(&self->base);
    for (size_t i = from; i < call->argument_count || i == from; i++) {
        const char *tag = i < call->argument_count ? call->arguments[i] : NULL;
        twin_sleep(&self->base, tag, keep);
        set_asleep(self, tag, true);
    }
    if (vllm && vllm_sleep_trims(self->vllm))
        twin_trim(&self->base);
    twin_card(&self->base, &after, &total_bytes);
    twin_figure(&self->base, "sleep freed", (double)after - (double)before);
    twin_figure(&self->base, "still in use", (double)(total_bytes - after));
    return AR_OK;
}

static enum ar_status engine_wake(struct engine *self, const struct twin_call *call,
                                  struct ar_error *error)
{
    AR_TRY(check_tags(call, 0, error));
    AR_TRY(need_loaded(self, error));
    if (!engine_is_vllm(self))
        AR_TRY(check_states(self, call, 0, true, error));
    /* v1/executor/abstract.py, wake_up: a warning, and nothing wakes. */
    if (engine_is_vllm(self) && !sleeps(self)) {
        twin_say(&self->base, "wake does nothing: the executor is not sleeping");
        return AR_OK;
    }
    for (size_t i = 0; engine_is_vllm(self) && i < call->argument_count; i++)
        if (!is_asleep(self, call->arguments[i])) {
            twin_say(&self->base, "wake does nothing: tag %s is not in the sleeping tags",
                     call->arguments[i]);
            return AR_OK;
        }
    for (size_t i = 0; i < call->argument_count || i == 0; i++) {
        const char *tag = call->argument_count ? call->arguments[i] : NULL;
        twin_wake(&self->base, tag);
        set_asleep(self, tag, false);
    }
    return AR_OK;
}

static enum ar_status need_weights(const struct engine *self, struct ar_error *error)
{
    if (self->loaded && !self->weights_asleep)
        return AR_OK;
    return ar_invalid(error, "%s has no weights to write to; call %s first", self->base.name,
                      self->loaded ? "wake weights" : "load");
}

/* In one process tensors are copied into place. From another one they are received in a buffer. */
static enum ar_status engine_receive(struct twin_part *base, uint64_t bytes, bool same_process,
                                     bool last, struct ar_error *error)
{
    struct engine *self = (struct engine *)base;
    AR_TRY(need_weights(self, error));
    uint64_t bucket = engine_values(self)->update_bucket;
    bucket = bucket ? bucket : bytes;
    if (!same_process && self->bucket.bytes != bucket) {
        twin_free(base, &self->bucket);
        twin_alloc_for(base, bucket, "update buffer", &self->bucket);
    }
    if (last) {
        twin_sync(base);
        twin_free(base, &self->bucket);
        self->bucket.bytes = 0;
    }
    return AR_OK;
}

static uint64_t engine_weights_bytes(struct twin_part *base)
{
    struct engine *self = (struct engine *)base;
    uint64_t given = engine_values(self)->weights;
    return given ? given : llm_weights_bytes(&self->model, &self->rank);
}

/* ---- actions --------------------------------------------------------------------------------- */

static enum ar_status engine_start(struct engine *self, struct ar_error *error)
{
    AR_TRY(engine_load(self, error));
    AR_TRY(engine_profile(self, error));
    AR_TRY(engine_allocate(self, error));
    return engine_capture(self, error);
}

static enum ar_status engine_act(struct twin_part *base, const struct twin_call *call, bool *more,
                                 struct ar_error *error)
{
    struct engine *self = (struct engine *)base;
    uint64_t requests = 256;
    switch (call->action) {
    case ACTION_START:
        return engine_start(self, error);
    case ACTION_LOAD:
        return engine_load(self, error);
    case ACTION_PROFILE:
        return engine_profile(self, error);
    case ACTION_ALLOCATE:
        return engine_allocate(self, error);
    case ACTION_CAPTURE:
        return engine_capture(self, error);
    case ACTION_GENERATE:
        AR_TRY(twin_repeats(call, &requests, error));
        return engine_generate(self, requests, more, error);
    case ACTION_SLEEP:
        return engine_sleep(self, call, error);
    case ACTION_WAKE:
        return engine_wake(self, call, error);
    case ACTION_UPDATE:
        return need_weights(self, error); /* files are read on the host */
    default:
        AR_TRY(need_loaded(self, error));
        engine_release_all(self);
        return AR_OK;
    }
}

static void engine_destroy(struct twin_part *base)
{
    struct engine *self = (struct engine *)base;
    struct twin_blocks *const lists[] = {&self->weights, &self->inputs, &self->kv,
                                         &self->graph_outputs};
    for (size_t i = 0; i < AR_COUNT(lists); i++)
        twin_blocks_close(lists[i]);
    paged_close(&self->paged);
}

/* ---- the page -------------------------------------------------------------------------------- */

static const char *engine_cache_option(const void *of)
{
    const struct engine_values *values = of;
    if (values->rules >= ENGINE_TRTLLM)
        return values->max_total_tokens ? "max_total_tokens" : "free_fraction";
    if (values->rules == ENGINE_SGLANG)
        return values->max_total_tokens ? "max_total_tokens" : "mem_fraction_static";
    if (values->num_gpu_blocks_override)
        return "num_gpu_blocks_override";
    return values->kv_cache_memory ? "kv_cache_memory" : "gpu_memory_utilization";
}

static bool engine_what_if(const void *of, size_t index, struct twin_what_if *out)
{
    const struct engine_values *values = of;
    const bool vllm = values->rules == ENGINE_VLLM;
    const struct twin_offer list[] = {
        {vllm && values->enable_sleep_mode,
         {.text = "sleep at level 2", .action = "sleep", .arguments = "1", .instead = "2"}},
        {!values->enforce_eager && strcmp(values->cudagraph_sizes, "1 2 4 8") != 0,
         {.text = "graphs for 1, 2, 4 and 8 only",
          .option = "cudagraph_sizes",
          .value = "1 2 4 8"}},
        {!values->enforce_eager,
         {.text = "no CUDA graphs", .option = "enforce_eager", .value = "yes"}},
        {!values->enable_sleep_mode && values->rules < ENGINE_TRTLLM,
         {.text = "weights and cache can sleep", .option = "enable_sleep_mode", .value = "yes"}},
        {values->kv_cache_dtype == 0,
         {.text = "keys and values in fp8", .option = "kv_cache_dtype", .value = "fp8"}},
    };
    return twin_offer_at(list, AR_COUNT(list), index, out);
}

const struct twin_part_ops engine_part = {
    .kind = "engine",
    .summary = "an inference engine with a paged key-value cache: vLLM, SGLang and others",
    .options = options,
    .values_bytes = sizeof(struct engine_values),
    .part_bytes = sizeof(struct engine),
    .actions = actions,
    .create = engine_create,
    .act = engine_act,
    .receive = engine_receive,
    .weights_bytes = engine_weights_bytes,
    .destroy = engine_destroy,
    .releases = "sleep release",
    .restores = "wake load",
    .cache_option = engine_cache_option,
    .what_if = engine_what_if,
};
