/* How SGLang sizes its key-value cache. It does no profile run: memory for activations and CUDA
 * graphs is what mem_fraction_static leaves. Pure functions; sources are cited at each rule. */
#ifndef SIM_TWIN_RULES_SGLANG_H
#define SIM_TWIN_RULES_SGLANG_H

#include "sim/twin/rules/llm.h"

struct sglang_version {
    unsigned major, minor, patch;
};
/* Reads "0.5.4" or "0.4" (its last release). INVALID: a sentence. */
enum ar_status sglang_version_read(const char *text, struct sglang_version *version,
                                   struct ar_error *error) AR_STATUS_CHECKED;

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

#endif
