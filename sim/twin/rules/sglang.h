/* How SGLang sizes its key-value cache. It does no profile run: memory for activations and CUDA
 * graphs is what mem_fraction_static leaves. Pure functions; sources are cited at each rule. */
#pragma once

#include "sim/twin/rules/llm.h"

struct sglang_version {
    unsigned major, minor, patch;
};
/* Reads "0.5.4" or "0.4" (its last release). INVALID: a sentence. */
enum ar_status sglang_version_read(const char *text, struct sglang_version *version,
                                   struct ar_error *error);

/* srt/server_args.py. To 0.4.6: a table by tensor_parallel. To 0.5.3: a reserve by the card's
 * memory. From 0.5.4 on: a reserve by chunked_prefill_size and cuda_graph_max_bs (PR 10975,
 * _handle_gpu_memory_settings). Settings that are 0 get their default. */
struct sglang_settings {
    uint64_t card_mib; /* of the card, as nvidia-smi reports it */
    uint64_t tensor_parallel, pipeline_parallel;
    uint64_t chunked_prefill, max_prefill; /* tokens */
    bool no_chunks;                        /* chunked prefill is off: max_prefill counts */
    uint64_t graph_batch;                  /* cuda_graph_max_bs */
    double fraction;                       /* mem_fraction_static */
};
void sglang_defaults(struct sglang_version version, struct sglang_settings *settings);

/* Bytes of the cache: what is free after loading, less (1 - fraction) of what was free before
 * (model_runner.py, profile_max_num_token; later model_runner_kv_cache_mixin.py). */
double sglang_available(double free_before, double free_after, double fraction);
/* Of these, bytes for the states of requests of layers with linear attention: 0.9 times what the
 * others have (mamba_full_memory_ratio; model_runner_kv_cache_mixin.py, handle_max_mamba_cache). A
 * log of Granite 4 has 2.77 GB beside 3.04. `request_bytes`: of all layers; 0: there are none. */
double sglang_states(double available, uint64_t request_bytes);
/* max_total_num_tokens: whole pages of `page_tokens`; at most `limit` (max_total_tokens), 0:
 * none. */
uint64_t sglang_tokens(double available, uint64_t token_bytes, uint64_t page_tokens,
                       uint64_t limit);
/* Bytes of a layer's keys, or values (MLA: both), for `tokens`: one more page is made, for padded
 * tokens (mem_cache/memory_pool.py). */
uint64_t sglang_buffer_bytes(uint64_t tokens, uint64_t page_tokens, uint64_t token_bytes);
/* max_running_requests by default, of `length` = context_length. */
uint64_t sglang_max_requests(uint64_t tokens, uint64_t length);
/* Bytes of the table of a request's tokens (ReqToTokenPool): int32, with 4 more positions. */
uint64_t sglang_request_table_bytes(uint64_t requests, uint64_t length);

/* What attention keeps beside the cache (srt/layers/attention): a workspace, and with graphs the
 * indices of all tokens of the largest batch, in bytes for each token of a request's longest length
 * (init_cuda_graph_state). FlashInfer's has 384 MiB, 512 for dense Qwen 2 and 3, and a mask of a
 * byte (flashinfer_backend.py); it serves all cards but Hopper, where FlashAttention 3 has no
 * workspace (from 0.4.6 on), and Blackwell, where TRT-LLM's have 512 MiB, with latent attention 150
 * (trtllm_mha_backend.py, trtllm_mla_backend.py). Latent attention elsewhere is Triton's. */
struct sglang_spaces {
    uint64_t workspace_bytes;
    double token_bytes;
};
struct sglang_spaces sglang_spaces_of(struct sglang_version version, const struct llm *model,
                                      uint32_t compute, uint64_t page_tokens);

/* Graphs of SGLang end with logits in float32. Before 0.5 each captured size keeps its own; then
 * one buffer serves all (sgl-project/sglang#8579: 5.16 GB became 2.89 with GLM 4.5 Air on four
 * cards: 3,975 rows of 151,552 tokens less). */
bool sglang_shares_logits(struct sglang_version version);
