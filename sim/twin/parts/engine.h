/* The inference engine, private to engine*.c: by the sizing rules of a real one. */
#pragma once

#include "allocators/base/rng.h"
#include "sim/twin/part.h"
#include "sim/twin/rules/context.h"
#include "sim/twin/rules/graphs.h"
#include "sim/twin/rules/paged.h"
#include "sim/twin/rules/sglang.h"
#include "sim/twin/rules/vllm.h"

enum engine_rules { ENGINE_VLLM, ENGINE_SGLANG, ENGINE_TRTLLM, ENGINE_LMDEPLOY };
enum engine_answer { ENGINE_AUTO, ENGINE_YES, ENGINE_NO };
enum engine_drafts { ENGINE_NO_DRAFTS, ENGINE_NGRAM, ENGINE_EAGLE, ENGINE_DRAFT_MODEL };

struct engine_values {
    int rules, dtype, kv_cache_dtype, quantization, speculative;
    const char *version, *model, *draft_model, *prompts, *answers, *cudagraph_sizes;
    uint64_t weights, kv_bytes_per_token;
    uint64_t tensor_parallel, pipeline_parallel, data_parallel;
    bool expert_parallel, quantize_online, experts_only;
    double gpu_memory_utilization, mem_fraction_static, free_fraction;
    uint64_t kv_cache_memory, num_gpu_blocks_override, max_total_tokens;
    uint64_t max_model_len, max_num_seqs, max_num_batched_tokens, block_size;
    uint64_t chunked_prefill_size, cuda_graph_max_bs;
    uint64_t num_speculative_tokens, shared_prefix;
    double acceptance;
    bool enforce_eager, enable_prefix_caching, offline, enable_sleep_mode, weights_cpu_backup,
        graphs_sleep;
    bool top_k_top_p;
    int estimate_graphs;
    uint64_t activation, non_torch, cuda, second_graph, update_bucket, seed;
};

#define ENGINE_LENGTHS 16 /* entries of a list of lengths */

struct engine_lengths {
    struct {
        uint64_t least, most;
    } ranges[ENGINE_LENGTHS];
    size_t count;
};

struct engine {
    struct twin_part base;
    struct llm model, draft; /* draft: of ENGINE_DRAFT_MODEL */
    struct llm_rank rank;
    struct vllm_version vllm;
    struct sglang_version sglang;
    unsigned kv_value_bytes;
    uint64_t length; /* of a request: max_model_len */
    uint64_t page_tokens;
    struct engine_lengths prompts, answers;
    struct graphs_sizes given_sizes; /* cudagraph_sizes; none: by rule */
    struct ar_rng rng;

    /* Settings whose defaults depend on the card; from engine_load on. */
    uint64_t max_requests, step_tokens;
    double utilization;
    struct sglang_settings settings;
    struct graphs_sizes sizes;
    struct vllm_cache cache;

    /* What loading and the profile run found. */
    bool loaded, profiled, allocated, captured;
    uint64_t free_start, reserved_start, weights_allocated;
    double available; /* bytes for the cache */
    uint64_t blocks, tokens;

    struct twin_blocks weights, inputs, kv, graph_outputs;
    struct twin_block workspace, capture_workspace, estimate_workspace, bucket;
    struct twin_block experts_space, attention_space; /* of vLLM V1, kept */
    uint32_t graph_pool;
    bool weights_asleep, kv_asleep, graphs_asleep, streams;
    uint32_t compute; /* of the card; 0: not read yet */

    /* The present call of `generate`. */
    bool serving;
    struct paged paged;
    uint64_t peak_blocks, steps;
};

static inline const struct engine_values *engine_values(const struct engine *self)
{
    return self->base.values;
}

static inline bool engine_is_vllm(const struct engine *self)
{
    return engine_values(self)->rules == ENGINE_VLLM;
}

/* TensorRT-LLM and LMDeploy: the cache is a part of what is free after loading. */
static inline bool engine_shares(const struct engine *self)
{
    return engine_values(self)->rules >= ENGINE_TRTLLM;
}

/* The option, or its default. */
static inline const char *engine_version(const struct engine *self)
{
    const char *text = engine_values(self)->version;
    return *text ? text : engine_is_vllm(self) ? "0.11" : "0.5.4";
}

/* Minor x 100 + patch, for graphs_vllm_sizes and graphs_sglang_sizes. */
uint32_t engine_release(const struct engine *self);

/* Compute capability times ten, as far as workspaces depend on it: 80, 90 or 100. */
uint32_t engine_compute(struct engine *self);

/* The actions, in engine_memory.c and engine_serve.c. */
enum ar_status engine_load(struct engine *self, struct ar_error *error);
enum ar_status engine_profile(struct engine *self, struct ar_error *error);
enum ar_status engine_allocate(struct engine *self, struct ar_error *error);
enum ar_status engine_capture(struct engine *self, struct ar_error *error);
enum ar_status engine_generate(struct engine *self, uint64_t requests, bool *more,
                               struct ar_error *error);
void engine_release_all(struct engine *self);

/* One forward pass of `tokens` tokens, of which `rows` are sampled (0: none), in a pool: its
 * requests are made and freed. `graphed`: the layers run in a graph and request nothing. `sorts`:
 * for top-k or top-p. `profile`: the profile run, which has no keys and values yet. `logits`: it
 * ends with the logits of all tokens, as graphs of SGLang do. */
struct engine_pass {
    uint64_t tokens, rows;
    uint32_t pool;
    bool graphed, sorts, profile, logits;
};
void engine_forward(struct engine *self, const struct engine_pass *pass);
/* The peak of the bytes that it requests. */
uint64_t engine_forward_bytes(struct engine *self, const struct engine_pass *pass);
