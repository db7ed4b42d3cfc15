/* Models by name: configurations of common models, from the config.json in their repositories on
 * Hugging Face, and the option `model`. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "allocators/options.h"
#include "sim/twin/rules/llm.h"

#define DENSE(NAME, LAYERS, HIDDEN, HEADS, KV, HEAD, FFN, VOCABULARY, POSITIONS)                   \
    .name = NAME, .layers = LAYERS, .hidden = HIDDEN, .heads = HEADS, .kv_heads = KV,              \
    .head = HEAD, .ffn = FFN, .vocabulary = VOCABULARY, .positions = POSITIONS

/* The encoders of images of three families (their vision_config and preprocessor_config). */
#define VISION(LAYERS, HIDDEN, FFN, TOKENS, PATCHES)                                               \
    .encoder_layers = LAYERS, .encoder_hidden = HIDDEN, .encoder_ffn = FFN,                        \
    .image_tokens = TOKENS, .merge = PATCHES
#define QWEN25_VISION VISION(32, 1280, 5130, 16384, 4) /* 3 products of 3420 */
#define QWEN3_VISION  VISION(27, 1152, 4304, 16384, 4), .deepstack = 3
#define QWEN35_VISION VISION(27, 1152, 4304, 16384, 4)
#define LINEAR(LAYERS, KEYS, VALUES)                                                               \
    .linear_layers = LAYERS, .linear_keys = KEYS, .linear_values = VALUES, .linear_head = 128
#define GEMMA3_VISION VISION(27, 1152, 4304, 256, 16)

static const struct llm presets[] = {
    {DENSE("llama-2-7b", 32, 4096, 32, 32, 128, 11008, 32000, 4096)},
    {DENSE("llama-2-13b", 40, 5120, 40, 40, 128, 13824, 32000, 4096)},
    {DENSE("llama-2-70b", 80, 8192, 64, 8, 128, 28672, 32000, 4096)},
    {DENSE("llama-3-8b", 32, 4096, 32, 8, 128, 14336, 128256, 8192)},
    {DENSE("llama-3-70b", 80, 8192, 64, 8, 128, 28672, 128256, 8192)},
    {DENSE("llama-3.1-8b", 32, 4096, 32, 8, 128, 14336, 128256, 131072)},
    {DENSE("llama-3.1-70b", 80, 8192, 64, 8, 128, 28672, 128256, 131072)},
    {DENSE("llama-3.2-1b", 16, 2048, 32, 8, 64, 8192, 128256, 131072), .tied = true},
    {DENSE("llama-3.2-3b", 28, 3072, 24, 8, 128, 8192, 128256, 131072), .tied = true},
    {DENSE("qwen2.5-0.5b", 24, 896, 14, 2, 64, 4864, 151936, 32768), .tied = true,
     .qkv_bias = true},
    {DENSE("qwen2.5-1.5b", 28, 1536, 12, 2, 128, 8960, 151936, 32768), .tied = true,
     .qkv_bias = true},
    {DENSE("qwen2.5-3b", 36, 2048, 16, 2, 128, 11008, 151936, 32768), .tied = true,
     .qkv_bias = true},
    {DENSE("qwen2.5-7b", 28, 3584, 28, 4, 128, 18944, 152064, 32768), .qkv_bias = true},
    {DENSE("qwen2.5-14b", 48, 5120, 40, 8, 128, 13824, 152064, 32768), .qkv_bias = true},
    {DENSE("qwen2.5-32b", 64, 5120, 40, 8, 128, 27648, 152064, 32768), .qkv_bias = true},
    {DENSE("qwen2.5-72b", 80, 8192, 64, 8, 128, 29568, 152064, 32768), .qkv_bias = true},
    {DENSE("qwen3-0.6b", 28, 1024, 16, 8, 128, 3072, 151936, 40960), .tied = true, .qk_norm = true},
    {DENSE("qwen3-1.7b", 28, 2048, 16, 8, 128, 6144, 151936, 40960), .tied = true, .qk_norm = true},
    {DENSE("qwen3-4b", 36, 2560, 32, 8, 128, 9728, 151936, 40960), .tied = true, .qk_norm = true},
    {DENSE("qwen3-8b", 36, 4096, 32, 8, 128, 12288, 151936, 40960), .qk_norm = true},
    {DENSE("qwen3-14b", 40, 5120, 40, 8, 128, 17408, 151936, 40960), .qk_norm = true},
    {DENSE("qwen3-32b", 64, 5120, 64, 8, 128, 25600, 151936, 40960), .qk_norm = true},
    {DENSE("qwen3-30b-a3b", 48, 2048, 32, 4, 128, 6144, 151936, 40960), .qk_norm = true,
     .experts = 128, .experts_used = 8, .expert_ffn = 768},
    {DENSE("qwen3-235b-a22b", 94, 4096, 64, 4, 128, 12288, 151936, 40960), .qk_norm = true,
     .experts = 128, .experts_used = 8, .expert_ffn = 1536},
    {DENSE("llama-3.3-70b", 80, 8192, 64, 8, 128, 28672, 128256, 131072)},
    {DENSE("qwq-32b", 64, 5120, 40, 8, 128, 27648, 152064, 40960), .qkv_bias = true},
    {DENSE("qwen3-coder-480b-a35b", 62, 6144, 96, 8, 128, 8192, 151936, 262144), .qk_norm = true,
     .experts = 160, .experts_used = 8, .expert_ffn = 2560},
    {DENSE("qwen2.5-vl-7b", 28, 3584, 28, 4, 128, 18944, 152064, 128000), .qkv_bias = true,
     QWEN25_VISION},
    {DENSE("qwen2.5-vl-72b", 80, 8192, 64, 8, 128, 29568, 152064, 128000), .qkv_bias = true,
     QWEN25_VISION},
    {DENSE("qwen3-vl-8b", 36, 4096, 32, 8, 128, 12288, 151936, 262144), .qk_norm = true,
     QWEN3_VISION},
    {DENSE("qwen3-vl-30b-a3b", 48, 2048, 32, 4, 128, 6144, 151936, 262144), .qk_norm = true,
     .experts = 128, .experts_used = 8, .expert_ffn = 768, QWEN3_VISION},
    {DENSE("qwen3-vl-235b-a22b", 94, 4096, 64, 4, 128, 12288, 151936, 262144), .qk_norm = true,
     .experts = 128, .experts_used = 8, .expert_ffn = 1536, QWEN3_VISION},
    {DENSE("qwen3-next-80b-a3b", 48, 2048, 16, 2, 256, 5120, 151936, 262144), .qk_norm = true,
     .experts = 512, .experts_used = 10, .expert_ffn = 512, .shared_ffn = 512, LINEAR(36, 16, 32)},
    {DENSE("qwen3.5-27b", 64, 5120, 24, 4, 256, 17408, 248320, 262144), .qk_norm = true,
     LINEAR(48, 16, 48), QWEN35_VISION},
    {DENSE("qwen3.5-35b-a3b", 40, 2048, 16, 2, 256, 5120, 248320, 262144), .qk_norm = true,
     .experts = 256, .experts_used = 8, .expert_ffn = 512, .shared_ffn = 512, LINEAR(30, 16, 32),
     QWEN35_VISION},
    {DENSE("gemma-3-4b", 34, 2560, 8, 4, 256, 10240, 262208, 131072), .tied = true, .qk_norm = true,
     .window = 1024, .window_layers = 29, GEMMA3_VISION},
    {DENSE("gemma-3-12b", 48, 3840, 16, 8, 256, 15360, 262208, 131072), .tied = true,
     .qk_norm = true, .window = 1024, .window_layers = 40, GEMMA3_VISION},
    {DENSE("gemma-3-27b", 62, 5376, 32, 16, 128, 21504, 262208, 131072), .tied = true,
     .qk_norm = true, .window = 1024, .window_layers = 52, GEMMA3_VISION},
    {DENSE("gpt-oss-20b", 24, 2880, 64, 8, 64, 2880, 201088, 131072), .qkv_bias = true,
     .expert_bias = true, .experts = 32, .experts_used = 4, .expert_ffn = 2880, .window = 128,
     .window_layers = 12},
    {DENSE("gpt-oss-120b", 36, 2880, 64, 8, 64, 2880, 201088, 131072), .qkv_bias = true,
     .expert_bias = true, .experts = 128, .experts_used = 4, .expert_ffn = 2880, .window = 128,
     .window_layers = 18},
    {DENSE("glm-4.5-air", 46, 4096, 96, 8, 128, 10944, 151552, 131072), .qkv_bias = true,
     .experts = 128, .experts_used = 8, .expert_ffn = 1408, .shared_ffn = 1408, .dense_layers = 1},
    {DENSE("glm-4.5", 92, 5120, 96, 8, 128, 12288, 151552, 131072), .qkv_bias = true,
     .qk_norm = true, .experts = 160, .experts_used = 8, .expert_ffn = 1536, .shared_ffn = 1536,
     .dense_layers = 3},
    {DENSE("minimax-m2", 62, 3072, 48, 8, 128, 1536, 200064, 196608), .qk_norm = true,
     .experts = 256, .experts_used = 8, .expert_ffn = 1536},
    {DENSE("phi-4", 40, 5120, 40, 10, 128, 17920, 100352, 16384)},
    {DENSE("mistral-small-24b", 40, 5120, 32, 8, 128, 32768, 131072, 32768)},
    {DENSE("kimi-k2", 61, 7168, 64, 64, 192, 18432, 163840, 131072), .experts = 384,
     .experts_used = 8, .expert_ffn = 2048, .shared_ffn = 2048, .dense_layers = 1, .q_rank = 1536,
     .kv_rank = 512, .nope = 128, .rope = 64, .v_head = 128},
    {DENSE("mistral-7b", 32, 4096, 32, 8, 128, 14336, 32000, 32768)},
    {DENSE("mixtral-8x7b", 32, 4096, 32, 8, 128, 14336, 32000, 32768), .experts = 8,
     .experts_used = 2, .expert_ffn = 14336},
    {DENSE("deepseek-v2-lite", 27, 2048, 16, 16, 192, 10944, 102400, 163840), .experts = 64,
     .experts_used = 6, .expert_ffn = 1408, .shared_ffn = 2816, .dense_layers = 1, .kv_rank = 512,
     .nope = 128, .rope = 64, .v_head = 128},
    {DENSE("deepseek-v3", 61, 7168, 128, 128, 192, 18432, 129280, 163840), .experts = 256,
     .experts_used = 8, .expert_ffn = 2048, .shared_ffn = 2048, .dense_layers = 3, .q_rank = 1536,
     .kv_rank = 512, .nope = 128, .rope = 64, .v_head = 128},
};

#define PRESETS (sizeof presets / sizeof presets[0])

const struct llm *llm_find(const char *name)
{
    for (size_t i = 0; i < PRESETS; i++)
        if (strcmp(presets[i].name, name) == 0)
            return &presets[i];
    return NULL;
}

#define LLM(field) offsetof(struct llm, field)
#define COUNT(NAME, FIELD, HELP)                                                                   \
    {                                                                                              \
        NAME, AR_OPTION_COUNT, LLM(FIELD), NULL, 0, 1e9, NULL, HELP                                \
    }

static const struct ar_option model_options[] = {
    COUNT("layers", layers, "layers"),
    COUNT("hidden", hidden, "values of a token between layers"),
    COUNT("heads", heads, "heads of queries"),
    COUNT("kv_heads", kv_heads, "heads of keys and values"),
    COUNT("head", head, "values of a head"),
    COUNT("ffn", ffn, "width of the feed-forward network"),
    COUNT("vocabulary", vocabulary, "tokens"),
    COUNT("positions", positions, "longest request"),
    COUNT("experts", experts, "experts of a layer"),
    COUNT("experts_used", experts_used, "experts of a token"),
    COUNT("expert_ffn", expert_ffn, "width of an expert"),
    COUNT("shared_ffn", shared_ffn, "width of the shared experts together"),
    COUNT("dense_layers", dense_layers, "first layers that have no experts"),
    COUNT("q_rank", q_rank, "rank of queries, with latent attention"),
    COUNT("kv_rank", kv_rank, "rank of keys and values: latent attention"),
    COUNT("nope", nope, "values of a head without position"),
    COUNT("rope", rope, "values of a head with position"),
    COUNT("v_head", v_head, "values of a head's value"),
    COUNT("window", window, "tokens of a sliding window"),
    COUNT("window_layers", window_layers, "layers that have the window"),
    COUNT("linear_layers", linear_layers, "layers with linear attention; each nth has none"),
    COUNT("linear_keys", linear_keys, "heads of keys in them"),
    COUNT("linear_values", linear_values, "heads of values"),
    COUNT("linear_head", linear_head, "values of such a head"),
    COUNT("encoder_layers", encoder_layers, "of an encoder of images"),
    COUNT("encoder_hidden", encoder_hidden, "values of a patch in it"),
    COUNT("encoder_ffn", encoder_ffn, "width of its feed-forward network"),
    COUNT("image_tokens", image_tokens, "tokens of the largest image"),
    COUNT("merge", merge, "patches of such a token"),
    COUNT("deepstack", deepstack, "further outputs of the encoder for a token"),
    {"tied", AR_OPTION_BOOL, LLM(tied), NULL, 0, 0, NULL, "the output uses the embedding"},
    {"qkv_bias", AR_OPTION_BOOL, LLM(qkv_bias), NULL, 0, 0, NULL, "products of attention have one"},
    {"qk_norm", AR_OPTION_BOOL, LLM(qk_norm), NULL, 0, 0, NULL, "queries and keys have a norm"},
    {"expert_bias", AR_OPTION_BOOL, LLM(expert_bias), NULL, 0, 0, NULL,
     "experts have one; the rotary table is float32"},
    {"learned", AR_OPTION_BOOL, LLM(learned), NULL, 0, 0, NULL, "positions are, with no rotation"},
    {0},
};

static enum ar_status unknown_model(const char *name, struct ar_error *error)
{
    char names[1280] = "";
    for (size_t i = 0; i < PRESETS; i++) {
        size_t length = strlen(names);
        snprintf(names + length, sizeof names - length, "%s%s", i ? ", " : "", presets[i].name);
    }
    return ar_invalid(
        error,
        "option model: \"%s\" is no preset; write custom:layers=32,hidden=4096,.. or one of %s",
        name, names);
}

enum ar_status llm_read(const char *text, struct llm *out, struct ar_error *error)
{
    struct ar_spec spec;
    enum ar_status status = ar_spec_parse(text, &spec, error);
    if (status)
        return ar_error_prefix(error, status, "option model");
    const struct ar_spec_link *link = &spec.links[spec.link_count - 1];
    const struct llm *preset = llm_find(link->name);
    bool custom = strcmp(link->name, "custom") == 0;
    *out = (struct llm){0};
    if (preset)
        *out = *preset;
    else if (!custom)
        status = unknown_model(link->name, error);
    out->name = custom ? "custom" : preset ? preset->name : "";
    AR_THEN(status, ar_options_read(model_options, link, "option model", out, error));
    ar_spec_close(&spec);
    if (status == AR_OK && custom) {
        out->kv_heads = out->kv_heads ? out->kv_heads : out->heads;
        out->head = out->head || !out->heads ? out->head : out->hidden / out->heads;
        out->positions = out->positions ? out->positions : 4096;
    }
    return status;
}
