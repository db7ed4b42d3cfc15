/* The tensors of a language model on one rank; see llm.h. */

#include "sim/twin/rules/llm.h"

#define VOCABULARY_PADDING 64
#define BLOCK_SIDE         128 /* of LLM_FP8_BLOCK */
#define GROUP_INPUTS       128 /* of LLM_INT4 */
#define SCALE_BYTES        4

struct walk {
    const struct llm *model;
    const struct llm_rank *rank;
    llm_visit *visit;
    void *context;
    uint64_t layer;
    enum llm_quantization quantization;
};

static void tensor(const struct walk *self, const char *name, uint64_t bytes, uint64_t plain_bytes)
{
    struct llm_tensor out = {name, self->layer, bytes, plain_bytes};
    if (bytes)
        self->visit(self->context, &out);
}

static void plain(const struct walk *self, const char *name, uint64_t values)
{
    uint64_t bytes = values * self->rank->value_bytes;
    tensor(self, name, bytes, bytes);
}

/* The weights of `count` products of `inputs` to `outputs` values, as one tensor, and their
 * scales. */
static void products(const struct walk *self, const char *name, uint64_t count, uint64_t outputs,
                     uint64_t inputs)
{
    uint64_t values = count * outputs * inputs;
    uint64_t plain_bytes = values * self->rank->value_bytes;
    uint64_t groups = count * outputs * ar_divide_up(inputs, GROUP_INPUTS);
    switch (self->quantization) {
    case LLM_PLAIN:
        tensor(self, name, plain_bytes, plain_bytes);
        break;
    case LLM_FP8:
        tensor(self, name, values, plain_bytes);
        tensor(self, "weight_scale", count * SCALE_BYTES, 0);
        break;
    case LLM_FP8_BLOCK:
        tensor(self, name, values, plain_bytes);
        tensor(self, "weight_scale_inv",
               count * ar_divide_up(outputs, BLOCK_SIDE) * ar_divide_up(inputs, BLOCK_SIDE) *
                   SCALE_BYTES,
               0);
        break;
    case LLM_INT8:
        tensor(self, name, values, plain_bytes);
        tensor(self, "weight_scale", count * outputs * SCALE_BYTES, 0);
        break;
    case LLM_INT4:
        tensor(self, name, values / 2, plain_bytes);
        tensor(self, "qzeros", groups / 2, 0);
        tensor(self, "scales", groups * 2, 0);
        break;
    case LLM_NVFP4:
        tensor(self, name, values / 2, plain_bytes);
        tensor(self, "weight_scale", values / 16 + 2 * count * SCALE_BYTES, 0);
        break;
    case LLM_MXFP4:
        tensor(self, name, values / 2, plain_bytes);
        tensor(self, "weight_scale", values / 32, 0);
        break;
    }
}

/* At least one head of keys and values is on each rank. */
static uint64_t kv_heads_of(const struct llm *model, const struct llm_rank *rank)
{
    uint64_t heads = model->kv_heads / rank->tensor_parallel;
    return heads ? heads : 1;
}

/* Each nth layer is a plain one, the last of them. */
static bool is_linear(const struct llm *model, uint64_t layer)
{
    return model->linear_layers &&
           (layer + 1) % (model->layers / (model->layers - model->linear_layers)) != 0;
}

/* models/qwen3_next.py, Qwen3NextGatedDeltaNet: values have a gate. */
static void linear_attention(const struct walk *self)
{
    const struct llm *model = self->model;
    uint64_t heads = model->linear_values / self->rank->tensor_parallel;
    uint64_t keys = 2 * model->linear_keys / self->rank->tensor_parallel * model->linear_head;
    uint64_t values = heads * model->linear_head;
    products(self, "in_proj_qkvz", 1, keys + 2 * values, model->hidden);
    plain(self, "in_proj_ba", 2 * heads * model->hidden);
    plain(self, "conv1d", (keys + values) * 4);
    products(self, "out_proj", 1, model->hidden, values);
}

static void attention(const struct walk *self)
{
    const struct llm *model = self->model;
    uint64_t heads = model->heads / self->rank->tensor_parallel;
    if (is_linear(model, self->layer)) {
        linear_attention(self);
        return;
    }
    if (model->kv_rank) {
        uint64_t head = model->nope + model->rope;
        if (model->q_rank) {
            products(self, "q_a_proj", 1, model->q_rank, model->hidden);
            plain(self, "q_a_layernorm", model->q_rank);
            products(self, "q_b_proj", 1, heads * head, model->q_rank);
        } else {
            products(self, "q_proj", 1, heads * head, model->hidden);
        }
        products(self, "kv_a_proj", 1, model->kv_rank + model->rope, model->hidden);
        plain(self, "kv_a_layernorm", model->kv_rank);
        products(self, "kv_b_proj", 1, heads * (model->nope + model->v_head), model->kv_rank);
        products(self, "o_proj", 1, model->hidden, heads * model->v_head);
        return;
    }
    uint64_t rows =
        (heads * (model->linear_layers ? 2 : 1) + 2 * kv_heads_of(model, self->rank)) * model->head;
    products(self, "qkv_proj", 1, rows, model->hidden);
    if (model->qkv_bias)
        plain(self, "qkv_proj.bias", rows);
    products(self, "o_proj", 1, model->hidden, heads * model->head);
    if (model->qk_norm) {
        plain(self, "q_norm", model->head);
        plain(self, "k_norm", model->head);
    }
}

/* The table of rotary embeddings is one for all layers; the first one makes it. */
static void rotary_table(const struct walk *self)
{
    uint64_t values = self->model->kv_rank ? self->model->rope : self->model->head;
    unsigned each = self->rank->rope_bytes && self->model->expert_bias ? 4 : self->rank->rope_bytes;
    uint64_t bytes = self->model->positions * values * each;
    if (self->model->learned)
        plain(self, "position_embeddings", self->model->positions * self->model->hidden);
    else
        tensor(self, "rotary_emb", bytes, bytes);
}

static void network(const struct walk *self, const char *gate_up, const char *down, uint64_t count,
                    uint64_t values, uint64_t hidden)
{
    products(self, gate_up, count, 2 * values, hidden);
    products(self, down, count, hidden, values);
}

static uint64_t round_up(uint64_t value, uint64_t to)
{
    return ar_divide_up(value, to) * to;
}

/* Marlin's kernels need widths in multiples of 256 and 128; of MXFP4 the weights are padded to them
 * (quantization/mxfp4.py, create_weights). vllm#23278: 65.97 GiB with it, 60.75 without. */
static void experts(const struct walk *self)
{
    const struct llm *model = self->model;
    const struct llm_rank *rank = self->rank;
    struct walk routed = *self;
    routed.quantization = rank->quantization;
    bool padded = rank->quantization == LLM_MXFP4, whole = rank->expert_parallel;
    uint64_t ranks = rank->tensor_parallel;
    uint64_t width = whole ? model->expert_ffn : model->expert_ffn / ranks;
    uint64_t count =
        whole ? ar_divide_up(model->experts, ranks * llm_replicas(rank)) : model->experts;
    uint64_t hidden = padded ? round_up(model->hidden, 256) : model->hidden;
    width = padded ? round_up(width, 128) : width;
    network(&routed, "w13_weight", "w2_weight", count, width, hidden);
    if (model->expert_bias)
        plain(self, "expert biases", count * (2 * width + hidden));
}

static void feed_forward(const struct walk *self)
{
    const struct llm *model = self->model;
    uint64_t parallel = self->rank->tensor_parallel;
    if (!model->experts || self->layer < model->dense_layers) {
        network(self, "gate_up_proj", "down_proj", 1, model->ffn / parallel, model->hidden);
        return;
    }
    plain(self, "gate", model->experts * model->hidden);
    experts(self);
    if (model->shared_ffn)
        network(self, "shared_experts.gate_up_proj", "shared_experts.down_proj", 1,
                model->shared_ffn / parallel, model->hidden);
}

/* The layers before a stage: an equal number for each, and one more for the stages that precede the
 * last one if there is a remainder (get_pp_indices). */
static uint64_t first_layer(const struct llm *model, const struct llm_rank *rank, uint64_t stage)
{
    uint64_t stages = rank->pipeline_parallel;
    uint64_t remainder = model->layers % stages, first = 0;
    for (uint64_t i = 0; i < stage; i++)
        first += model->layers / stages + (i + 1 < stages && i + 1 + remainder >= stages);
    return first;
}

uint64_t llm_stage_layers(const struct llm *self, const struct llm_rank *rank)
{
    uint64_t first = first_layer(self, rank, rank->stage);
    uint64_t end = rank->stage + 1 == rank->pipeline_parallel
                       ? self->layers
                       : first_layer(self, rank, rank->stage + 1);
    return end - first;
}

/* Attention and network of each layer; two products from the patches of a token to it, for each
 * output. More than 4 patches are averaged. */
static uint64_t encoder_values(const struct llm *self)
{
    uint64_t hidden = self->encoder_hidden, merged = hidden * (self->merge > 4 ? 1 : self->merge);
    return self->encoder_layers * hidden * (4 * hidden + 2 * self->encoder_ffn) +
           (1 + self->deepstack) * merged * (merged + self->hidden);
}

void llm_weights(const struct llm *self, const struct llm_rank *rank, llm_visit *visit,
                 void *context)
{
    struct walk walk = {self, rank, visit, context, 0, LLM_PLAIN};
    if (!rank->experts_only)
        walk.quantization = rank->quantization;
    bool first = rank->stage == 0, last = rank->stage + 1 == rank->pipeline_parallel;
    uint64_t table =
        round_up(self->vocabulary, VOCABULARY_PADDING) / rank->tensor_parallel * self->hidden;
    if (first || (last && self->tied))
        plain(&walk, "embed_tokens", table);
    if (first && self->encoder_layers)
        plain(&walk, "encoder", encoder_values(self) / rank->tensor_parallel);
    uint64_t begin = first_layer(self, rank, rank->stage);
    uint64_t end = begin + llm_stage_layers(self, rank);
    for (walk.layer = begin; walk.layer < end; walk.layer++) {
        attention(&walk);
        if (walk.layer == begin)
            rotary_table(&walk);
        feed_forward(&walk);
        plain(&walk, "input_layernorm", self->hidden);
        plain(&walk, "post_attention_layernorm", self->hidden);
    }
    walk.layer = 0;
    if (last) {
        plain(&walk, "norm", self->hidden);
        if (!self->tied)
            plain(&walk, "lm_head", table);
    }
}

static void add(void *context, const struct llm_tensor *tensor_)
{
    *(uint64_t *)context += tensor_->bytes;
}

uint64_t llm_weights_bytes(const struct llm *self, const struct llm_rank *rank)
{
    uint64_t bytes = 0;
    llm_weights(self, rank, add, &bytes);
    return bytes;
}

uint64_t llm_parameters(const struct llm *self)
{
    static const struct llm_rank one = {
        .tensor_parallel = 1, .pipeline_parallel = 1, .value_bytes = 1};
    return llm_weights_bytes(self, &one);
}

uint64_t llm_kv_layer_bytes(const struct llm *self, const struct llm_rank *rank,
                            unsigned kv_value_bytes)
{
    if (self->kv_rank) /* the latent vector is the same on all ranks */
        return (self->kv_rank + self->rope) * kv_value_bytes;
    return 2 * kv_heads_of(self, rank) * self->head * kv_value_bytes;
}

uint64_t llm_kv_token_bytes(const struct llm *self, const struct llm_rank *rank,
                            unsigned kv_value_bytes)
{
    uint64_t layers = llm_stage_layers(self, rank) - llm_linear_layers(self, rank);
    return layers * llm_kv_layer_bytes(self, rank, kv_value_bytes);
}

uint64_t llm_linear_layers(const struct llm *self, const struct llm_rank *rank)
{
    uint64_t first = first_layer(self, rank, rank->stage), count = 0;
    for (uint64_t i = first; i < first + llm_stage_layers(self, rank); i++)
        count += is_linear(self, i);
    return count;
}

uint64_t llm_state_bytes(const struct llm *self, const struct llm_rank *rank)
{
    uint64_t heads = self->linear_values / rank->tensor_parallel, head = self->linear_head;
    uint64_t inputs = (2 * self->linear_keys / rank->tensor_parallel + heads) * head;
    return 3 * inputs * rank->value_bytes + heads * head * head * 4;
}

enum ar_status llm_check(const struct llm *self, const struct llm_rank *rank,
                         struct ar_error *error)
{
    uint64_t parallel = rank->tensor_parallel;
    if (!self->layers || !self->hidden || !self->heads || !self->head || !self->vocabulary)
        return ar_invalid(error, "the model needs layers, hidden, heads, head and vocabulary");
    if (self->heads % parallel)
        return ar_invalid(error,
                          "%" PRIu64 " heads cannot be divided among tensor_parallel=%" PRIu64,
                          self->heads, parallel);
    if (!self->kv_rank &&
        (!self->kv_heads || (self->kv_heads % parallel && parallel % self->kv_heads)))
        return ar_invalid(error,
                          "%" PRIu64 " kv_heads cannot be divided among tensor_parallel=%" PRIu64,
                          self->kv_heads, parallel);
    if (self->linear_layers &&
        (self->linear_layers >= self->layers || !self->linear_keys || !self->linear_values ||
         !self->linear_head || self->linear_keys % parallel))
        return ar_invalid(error, "linear_layers needs linear_keys, linear_values and linear_head, "
                                 "heads that tensor_parallel divides, and a plain layer");
    if (rank->pipeline_parallel > self->layers)
        return ar_invalid(error,
                          "pipeline_parallel=%" PRIu64 " has more stages than the model's %" PRIu64
                          " layers",
                          rank->pipeline_parallel, self->layers);
    return AR_OK;
}

static uint64_t share(double bytes, uint64_t ranks)
{
    return (uint64_t)(bytes / (double)ranks + 0.5);
}

struct training_bytes training_bytes_of(const struct training_division *division)
{
    double parameters = (double)division->parameters / (double)division->tensor_parallel;
    uint64_t ranks = division->data_parallel;
    unsigned zero = division->zero;
    return (struct training_bytes){
        .weights = share(parameters * division->weight_bytes, zero >= 3 ? ranks : 1),
        .gradients = share(parameters * division->gradient_bytes, zero >= 2 ? ranks : 1),
        .states = share(parameters * division->state_bytes, zero >= 1 ? ranks : 1),
    };
}

uint64_t training_activations(const struct training_layer *layer, enum training_recompute recompute)
{
    double token_bytes = 34 * (double)layer->hidden;
    if (recompute == TRAINING_KEEP)
        token_bytes += 5 * (double)layer->heads * (double)layer->sequence;
    else if (recompute == TRAINING_LAYER)
        token_bytes = 2 * (double)layer->hidden;
    return share(token_bytes * (double)layer->tokens, layer->tensor_parallel);
}
