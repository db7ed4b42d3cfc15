/* A language model as an inference engine holds it: its weights, tensor by tensor, and the bytes
 * that a token takes in the key-value cache, on one rank of tensor and pipeline parallelism.
 *
 * Sources: vLLM 0.8 to 0.11, vllm/model_executor/models/llama.py, qwen2.py, qwen3.py, mixtral.py,
 * deepseek_v2.py for the tensors and the order in which they are made; layers/linear.py
 * (QKVParallelLinear, MergedColumnParallelLinear, RowParallelLinear) and
 * layers/vocab_parallel_embedding.py (DEFAULT_VOCAB_PADDING_SIZE) for their shares of a rank;
 * distributed/utils.py, get_pp_indices, for the layers of a stage. SGLang's models have the same
 * tensors. */
#pragma once

#include "allocators/base/status.h"

/* The configuration, as config.json of the model has it. */
struct llm {
    const char *name;
    uint64_t layers, hidden, heads, kv_heads, head; /* head: values of one head */
    uint64_t ffn, vocabulary, positions;            /* positions: max_position_embeddings */
    bool tied;                                      /* the output uses the embedding's weights */
    bool qkv_bias, qk_norm;
    bool expert_bias; /* of each product of experts; gpt-oss, whose rotary table is float32 */
    bool learned;     /* a table of positions is added to the embedding; no rotation */
    /* Experts; 0: none. The first `dense_layers` layers have a plain feed-forward network, of `ffn`
     * values; `shared_ffn` is that of all shared experts together. */
    uint64_t experts, experts_used, expert_ffn, shared_ffn, dense_layers;
    /* Multi-head latent attention; kv_rank 0: plain attention. q_rank 0: queries without one. */
    uint64_t q_rank, kv_rank, nope, rope, v_head;
    /* `window_layers` layers attend to the last `window` tokens only; 0: none. */
    uint64_t window, window_layers;
    /* `linear_layers` have linear attention (Qwen3-Next's gated delta rule): a state for each
     * request instead of keys and values, and queries of the others have a gate. Heads of keys and
     * of values, and values of one; each nth layer is a plain one. */
    uint64_t linear_layers, linear_keys, linear_values, linear_head;
    /* An encoder of images; layers 0: none. The largest image has `image_tokens` tokens, each of
     * `merge` patches; `deepstack` further outputs for each token (Qwen3-VL). */
    uint64_t encoder_layers, encoder_hidden, encoder_ffn, image_tokens, merge, deepstack;
};

/* The type of the weights of products. Embeddings, norms and routers are never quantised. */
enum llm_quantization {
    LLM_PLAIN,
    LLM_FP8,       /* a scale for each tensor */
    LLM_FP8_BLOCK, /* a scale for each 128 x 128 values, as DeepSeek-V3 */
    LLM_INT8,      /* a scale for each output */
    LLM_INT4,      /* AWQ, GPTQ: a scale and a zero point for each 128 inputs */
    LLM_NVFP4,     /* a scale of 8 bits for each 16 inputs, and two for each tensor */
    LLM_MXFP4,     /* a scale of 8 bits for each 32 inputs, as gpt-oss */
};
#define LLM_QUANTIZATIONS "none|fp8|fp8_block|int8|int4|nvfp4|mxfp4"

struct llm_rank {
    uint64_t tensor_parallel, pipeline_parallel, stage; /* stage: from 0 */
    bool expert_parallel;                               /* whole experts on each rank */
    bool experts_only;                                  /* nothing else is quantised */
    uint64_t data_parallel; /* replicas among which whole experts are divided; 0: one */
    unsigned value_bytes;   /* of weights that are not quantised */
    unsigned rope_bytes;    /* of a value in the table of rotary embeddings; 0: no table */
    enum llm_quantization quantization;
};

/* Replicas among which whole experts are divided. */
static inline uint64_t llm_replicas(const struct llm_rank *rank)
{
    return rank->expert_parallel && rank->data_parallel ? rank->data_parallel : 1;
}

/* A preset by name ("llama-3.1-8b"), or NULL. */
const struct llm *llm_find(const char *name);
/* The option `model` of parts: "llama-3.1-8b", "llama-3.1-8b:layers=2", "custom:layers=..".
 * INVALID: a sentence. */
enum ar_status llm_read(const char *text, struct llm *out, struct ar_error *error);

/* Whether the model can be divided like this. INVALID: a sentence. */
enum ar_status llm_check(const struct llm *self, const struct llm_rank *rank,
                         struct ar_error *error);

struct llm_tensor {
    const char *name; /* "qkv_proj" */
    uint64_t layer;   /* of the model; 0 for embedding and output */
    uint64_t bytes;
    uint64_t plain_bytes; /* before quantisation; the same as `bytes` without one */
};

/* Calls `visit` for each tensor of the rank, in the order in which the engine makes them. */
typedef void llm_visit(void *context, const struct llm_tensor *tensor);
void llm_weights(const struct llm *self, const struct llm_rank *rank, llm_visit *visit,
                 void *context);

uint64_t llm_weights_bytes(const struct llm *self, const struct llm_rank *rank);
uint64_t llm_parameters(const struct llm *self);

/* Layers of the rank's stage. */
uint64_t llm_stage_layers(const struct llm *self, const struct llm_rank *rank);
/* Bytes of a token's keys and values in one layer of the rank. */
uint64_t llm_kv_layer_bytes(const struct llm *self, const struct llm_rank *rank,
                            unsigned kv_value_bytes);
/* The same in all layers of the rank. */
uint64_t llm_kv_token_bytes(const struct llm *self, const struct llm_rank *rank,
                            unsigned kv_value_bytes);
/* Layers of the rank that have a state instead, and its bytes for a request in one of them: the
 * last 3 inputs of the convolution, and float32 for each pair of values of a head
 * (layers/mamba/mamba_utils.py, gated_delta_net_state_shape). */
uint64_t llm_linear_layers(const struct llm *self, const struct llm_rank *rank);
uint64_t llm_state_bytes(const struct llm *self, const struct llm_rank *rank);

/* Bytes that a training with Adam has on one card, by rule.
 *
 * Weights, gradients and states of the optimizer: S. Rajbhandari et al., "ZeRO: Memory
 * Optimizations Toward Training Trillion Parameter Models", 2020 (arXiv:1910.02054), sections 3 and
 * 5: with mixed precision 2, 2 and 12 bytes of a parameter; stage 1 divides the states among the
 * data-parallel ranks, stage 2 the gradients too, stage 3 the weights too. FSDP is stage 3,
 * Megatron's distributed optimizer stage 1.
 *
 * Activations: V. A. Korthikanti et al., "Reducing Activation Recomputation in Large Transformer
 * Models", 2022 (arXiv:2205.05198), equations 1 to 4 and table 2: a layer keeps s b h (34 + 5 a s /
 * h) bytes of 16-bit activations for s b tokens; 34 s b h if attention is computed again or fused,
 * 2 s b h if the whole layer is; tensor parallelism with sequence parallelism divides all of it. */

struct training_division {
    uint64_t parameters; /* of the model */
    uint64_t data_parallel, tensor_parallel;
    unsigned zero; /* the stage, 0 to 3 */
    /* Bytes of a parameter. */
    double weight_bytes, gradient_bytes, state_bytes;
};

struct training_bytes {
    uint64_t weights, gradients, states;
};
struct training_bytes training_bytes_of(const struct training_division *division);

enum training_recompute {
    TRAINING_KEEP,      /* nothing is computed again, attention is not fused */
    TRAINING_ATTENTION, /* fused attention, or attention is computed again */
    TRAINING_LAYER      /* each layer is computed again */
};

struct training_layer {
    uint64_t tokens; /* of a micro-batch */
    uint64_t sequence, hidden, heads, tensor_parallel;
};
/* Bytes of activations that a layer keeps for the backward pass. */
uint64_t training_activations(const struct training_layer *layer,
                              enum training_recompute recompute);
