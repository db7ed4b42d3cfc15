/* How vLLM sizes its key-value cache: the profile run's account, the blocks, and what it refuses.
 * Pure functions; sources are cited at each rule. V0 and V1 are its two engines: V1 is the default
 * from 0.8 on, and V0 is gone from 0.11 on. */
#pragma once

#include "sim/twin/rules/llm.h"

struct vllm_version {
    unsigned major, minor, patch;
    bool v1;
};

/* Reads "0.9.2", "0.9" (its last release) or "0.8.4-v0". INVALID: a sentence. */
enum ar_status vllm_version_read(const char *text, struct vllm_version *version,
                                 struct ar_error *error);

/* ---- the profile run ------------------------------------------------------------------------- */

/* What counts as used by everything but the cache. */
enum vllm_account {
    /* V0 to 0.6.3: the drop of free memory from the start to the end of the profile run, cached
     * memory included. worker/worker.py, determine_num_available_blocks. */
    VLLM_FREE_DROP,
    /* V0 0.6.4, V1 to 0.9.0: the peak that torch has allocated, and all memory of the card that
     * torch does not have allocated after the run, of other processes too. V0: the same function;
     * V1: v1/worker/gpu_worker.py, determine_available_memory. */
    VLLM_TORCH_PEAK,
    /* V0 from 0.6.5, V1 from 0.9.1: weights, the rise of torch's peak in the run, and the rise of
     * memory that torch has not reserved. utils memory_profiling. */
    VLLM_PARTS,
    /* V1 from 0.26 on: the drop of free memory, and the peak above what is allocated after the run.
     * utils/mem_utils.py, memory_profiling, from vllm#49208 on (July 2026). 0.27.1 prints "consumed
     * memory"; that 0.26 has it already follows from dates only. */
    VLLM_CONSUMED,
};
enum vllm_account vllm_account_of(struct vllm_version version);

/* What the worker reads. "After" is after the run; for all but VLLM_FREE_DROP cached memory was
 * released before. */
struct vllm_profile {
    uint64_t total_bytes;
    uint64_t free_start, free_after;         /* of the card */
    uint64_t reserved_start, reserved_after; /* by torch */
    uint64_t weights_bytes;                  /* that loading the model allocated */
    uint64_t allocated_before;               /* by torch, before the run */
    uint64_t peak_bytes;                     /* that torch had allocated in the run */
    uint64_t allocated_after;
    uint64_t graphs_bytes; /* vllm_graphs_estimate; 0: not estimated */
};

/* Bytes for the key-value cache; negative: there is no room. */
double vllm_available(struct vllm_version version, double utilization,
                      const struct vllm_profile *profile);

/* gpu_memory_utilization by default: 0.9, from 0.21 on 0.92 (vllm#38284). */
double vllm_utilization(struct vllm_version version);

/* Whether the memory of CUDA graphs is estimated and taken off (VLLM_MEMORY_PROFILER_ESTIMATE_
 * CUDAGRAPHS is on by default): from 0.21 on. Before, graphs come on top of the utilization. Model
 * runner V2, which dense models have in later releases, had no estimate at first (vllm#49224). */
bool vllm_estimates_graphs(struct vllm_version version);

/* That estimate: of each mode (FULL, PIECEWISE) the two largest graphs are captured; the second
 * stands for all others, with 1 MiB at least. More than they take where graphs use the pool again
 * (vllm#45178). gpu_model_runner.py, profile_cudagraph_memory. */
struct vllm_graphs {
    uint64_t count, first_bytes, second_bytes;
};
uint64_t vllm_graphs_estimate(const struct vllm_graphs *modes, size_t count);

/* The bytes that vLLM suggests for --kv-cache-memory after the capture, so that the utilization is
 * kept: V1 from 0.10.2 on (vllm#21489), compile_or_warm_up_model in gpu_worker.py. It takes graphs
 * off a second time where they were estimated (vllm#57936). */
double vllm_suggested(double available, double graphs_bytes);
bool vllm_suggests(struct vllm_version version);

/* Sleep mode. From 0.14 to 0.16 weights are loaded outside of the pool that sleeps, because of
 * `with A and B` in gpu_worker.py, load_model (vllm#32714, vllm#32947). Before 0.8.3 the cache of
 * PyTorch is not emptied at the end of sleep (vllm#15248, device_allocator/cumem.py). */
bool vllm_weights_sleep(struct vllm_version version);
bool vllm_sleep_trims(struct vllm_version version);

/* Workspaces of attention in V1, in bytes. With latent attention
 * (v1/attention/backends/mla/common.py, later layers/attention/mla_attention.py,
 * MLACommonMetadataBuilder): the context of a chunked prefill, of 8 requests or 4 blocks for each,
 * at most 65536 tokens; and in the profile run what it is projected to, for all heads. On Blackwell
 * FlashInfer has buffers for prefill (VLLM_FLASHINFER_WORKSPACE_BUFFER_SIZE) and decode
 * (flashinfer_mla.py; cutlass_mla.py has as much), and for plain attention one
 * (v1/attention/backends/flashinfer.py). */
struct vllm_spaces {
    uint64_t context_bytes, projected_bytes; /* projected: of all ranks */
    uint64_t prefill_bytes, decode_bytes;
};
struct vllm_spaces vllm_spaces_of(struct vllm_version version, const struct llm *model,
                                  uint32_t compute, uint64_t length, uint64_t requests,
                                  uint64_t block_tokens, unsigned value_bytes);

/* What a layer of experts needs beside its inputs and its result. V1 from 0.14 on keeps the
 * workspaces of modular kernels (fused_moe/modular_kernel.py, _allocate_buffers;
 * v1/worker/workspace.py; unquantised ones too since vllm#31052). They are in the common pool and
 * do not sleep (Tencent-Hunyuan/UniRL#370, August 2026).
 *
 * Sizes: workspace_shapes of TritonExperts and MarlinExperts, for at most VLLM_FUSED_MOE_CHUNK_SIZE
 * tokens. From 0.20 on unquantised experts (`plain`) have other kernels if the card has them
 * (fused_moe/oracle/unquantized.py; to 0.19 VLLM_USE_FLASHINFER_MOE_FP16 was 0): FlashInfer's of
 * CUTLASS on Hopper, which keeps one row of the result for each token, and TRT-LLM's on Blackwell,
 * which keeps nothing. Both make their buffers in each call (FlashInfer 0.6.8:
 * cutlass_fused_moe_kernels.cuh, getWorkspaceDeviceBufferSizes;
 * trtllm_fused_moe_kernel_launcher.cu, without the padding of experts to tiles). `width`: of an
 * expert on this rank. */
struct vllm_experts {
    uint64_t kept_bytes;
    uint64_t passing_bytes[2]; /* made and freed in each call */
};
struct vllm_experts vllm_experts_of(struct vllm_version version, uint32_t compute, bool plain,
                                    uint64_t tokens, uint64_t used, uint64_t width, uint64_t hidden,
                                    unsigned value_bytes);

/* Buffers of all-reduces of a tensor-parallel group in one server, which are outside of the pool
 * and do not sleep. Cards that NVLink connects; `compute`: capability times ten. CustomAllreduce
 * has two for 2, 4, 6 or 8 ranks (custom_all_reduce.py), and pointers in the pool. Symmetric memory
 * has one in V1 from 0.11 on, on Hopper and Blackwell (VLLM_ALLREDUCE_USE_SYMM_MEM; symm_mem.py,
 * SYMM_MEM_ALL_REDUCE_MAX_SIZES). FlashInfer has some for all-reduces fused with norms when the
 * model is compiled, so not with enforce_eager: V1 from 0.17 on, with 2, 4 or 8 ranks
 * (config/vllm.py, enable_allreduce_rms_fusion; allreduce_rms_fusion.py,
 * FI_ALLREDUCE_FUSION_MAX_SIZE_MB; FlashInfer 0.6.8, comm/trtllm_ar.py: a buffer of ranks x tokens,
 * and three of lamport). */
struct vllm_reduces {
    uint64_t start_bytes, pool_bytes; /* made with the group */
    uint64_t fused_bytes;             /* FlashInfer's */
};
struct vllm_reduces vllm_reduces_of(struct vllm_version version, uint32_t compute, uint64_t ranks,
                                    uint64_t hidden, uint64_t step_tokens, unsigned value_bytes);

/* V1 from 0.9.1 on refuses to start if less memory than total x utilization is free. v1/worker/
 * gpu_worker.py, init_device. */
bool vllm_starts(struct vllm_version version, double utilization, uint64_t total_bytes,
                 uint64_t free_bytes);

/* ---- blocks ---------------------------------------------------------------------------------- */

/* The layers in groups, each with a table of blocks of its own. Models with sliding windows have
 * several groups from 0.9.2 on; all others, and all before, have one. Groups share tensors.
 * v1/core/kv_cache_utils.py, _get_kv_cache_groups_uniform_page_size. A layer with a state has one
 * block for each request, two if prefixes are cached, and one more for each proposed token
 * (kv_cache_interface.py, MambaSpec.max_memory_usage_bytes). Blocks have as many tokens as make
 * their pages as large as a state (model_executor/models/config.py,
 * HybridAttentionMambaModelConfig: 1568 tokens of a byte in the log of
 * noonghunna/club-3090#1047). */
struct vllm_cache {
    uint64_t block_tokens;
    uint64_t page_bytes; /* of a block in one layer */
    uint64_t tensors;    /* layers of a group: as many tensors are made */
    uint64_t full_groups, window_groups, state_groups;
    uint64_t state_blocks; /* of a request in a group of states */
    uint64_t window;
};
struct vllm_cache vllm_cache_of(struct vllm_version version, const struct llm *model,
                                const struct llm_rank *rank, uint64_t block_tokens,
                                unsigned kv_value_bytes);

/* Blocks in `available` bytes: v1 get_num_blocks; V0 determine_num_available_blocks. */
uint64_t vllm_blocks(const struct vllm_cache *cache, double available);
/* "GPU KV cache size: N tokens"; V0: blocks x tokens. To 0.20 the blocks of one group; later ones
 * print the concurrency times the length of a request. */
uint64_t vllm_tokens(const struct vllm_cache *cache, uint64_t blocks);
uint64_t vllm_printed_tokens(struct vllm_version version, const struct vllm_cache *cache,
                             uint64_t blocks, uint64_t length, uint64_t batch_tokens);
/* Blocks that one request of `length` tokens needs. `batch_tokens`: max_num_batched_tokens. */
uint64_t vllm_request_blocks(const struct vllm_cache *cache, uint64_t length,
                             uint64_t batch_tokens);
/* "Maximum concurrency for LENGTH tokens per request". V0, and V1 to 0.9.0, divide tokens; later
 * ones divide blocks. */
double vllm_concurrency(struct vllm_version version, const struct vllm_cache *cache,
                        uint64_t blocks, uint64_t length, uint64_t batch_tokens);
/* The longest request that fits into the bytes, at most `length`: "the estimated maximum model
 * length". */
uint64_t vllm_longest(const struct vllm_cache *cache, double available, uint64_t length,
                      uint64_t batch_tokens);

/* NEGATIVE with a sentence if vLLM refuses to start: no memory for blocks, or too few for one
 * request of `length`. V0: raise_if_cache_size_invalid; V1: _check_enough_kv_cache_memory. */
enum ar_status vllm_cache_check(struct vllm_version version, const struct vllm_cache *cache,
                                double available, uint64_t length, uint64_t batch_tokens,
                                struct ar_error *error);

/* ---- defaults -------------------------------------------------------------------------------- */

/* max_num_batched_tokens of a server, or of the class LLM (`offline`). V1: engine/arg_utils.py,
 * get_batch_defaults; V0: SchedulerConfig. `a100`: the card is an A100. */
uint64_t vllm_batch_tokens(struct vllm_version version, uint64_t total_bytes, bool a100,
                           bool offline, uint64_t length);
uint64_t vllm_max_seqs(struct vllm_version version, uint64_t total_bytes, bool a100);
