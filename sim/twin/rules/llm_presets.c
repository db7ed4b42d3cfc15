/* Configurations of common models, from the config.json in their repositories on Hugging Face. */
#include <string.h>

#include "sim/twin/rules/llm.h"

#define DENSE(NAME, LAYERS, HIDDEN, HEADS, KV, HEAD, FFN, VOCABULARY, POSITIONS)                   \
    .name = NAME, .layers = LAYERS, .hidden = HIDDEN, .heads = HEADS, .kv_heads = KV,              \
    .head = HEAD, .ffn = FFN, .vocabulary = VOCABULARY, .positions = POSITIONS

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

const struct llm *llm_at(uint64_t index)
{
    return index < sizeof presets / sizeof presets[0] ? &presets[index] : NULL;
}

const struct llm *llm_find(const char *name)
{
    for (uint64_t i = 0; llm_at(i); i++)
        if (strcmp(presets[i].name, name) == 0)
            return &presets[i];
    return NULL;
}
