/* vLLM's rules; see vllm.h. Numbers are doubles where Python has floats, so that the divisions
 * round as there. */
#include <math.h>

#include "allocators/base/size.h"
#include "sim/twin/rules/vllm.h"

#define LAST_PATCH 99

static bool at_least(struct vllm_version version, unsigned minor, unsigned patch)
{
    if (version.major || version.minor != minor)
        return version.major || version.minor > minor;
    return version.patch >= patch;
}

enum ar_status vllm_version_read(const char *text, struct vllm_version *version,
                                 struct ar_error *error)
{
    int end = 0;
    *version = (struct vllm_version){.patch = LAST_PATCH};
    int fields = sscanf(text, "%3u.%3u%n.%3u%n", &version->major, &version->minor, &end,
                        &version->patch, &end);
    if (fields < 2)
        return ar_invalid(error, "\"%s\" is not a version such as 0.9.2", text);
    version->v1 = at_least(*version, 8, 0);
    const char *engine = text + end;
    if (strcmp(engine, "-v0") == 0)
        version->v1 = false;
    else if (strcmp(engine, "-v1") == 0)
        version->v1 = true;
    else if (*engine)
        return ar_invalid(error, "\"%s\" is not a version such as 0.9.2 or 0.8.4-v0", text);
    if (!version->v1 && at_least(*version, 11, 0))
        return ar_invalid(error, "vLLM %s has no engine V0", text);
    if (version->v1 && !at_least(*version, 7, 0))
        return ar_invalid(error, "engine V1 of vLLM is known from 0.7 on, not %s", text);
    return AR_OK;
}

/* ---- the profile run ------------------------------------------------------------------------- */

enum vllm_account vllm_account_of(struct vllm_version version)
{
    if (version.v1) {
        if (at_least(version, 26, 0))
            return VLLM_CONSUMED;
        return at_least(version, 9, 1) ? VLLM_PARTS : VLLM_TORCH_PEAK;
    }
    if (at_least(version, 6, 5))
        return VLLM_PARTS;
    return at_least(version, 6, 4) ? VLLM_TORCH_PEAK : VLLM_FREE_DROP;
}

static double less(uint64_t a, uint64_t b)
{
    return (double)a - (double)b;
}

static double used_by_others(enum vllm_account account, const struct vllm_profile *profile)
{
    double outside;
    switch (account) {
    case VLLM_FREE_DROP:
        return less(profile->free_start, profile->free_after);
    case VLLM_TORCH_PEAK:
        outside =
            less(profile->total_bytes, profile->free_after) - (double)profile->allocated_after;
        return (double)profile->peak_bytes + (outside > 0 ? outside : 0);
    case VLLM_PARTS:
        outside = less(profile->free_start, profile->free_after) -
                  less(profile->reserved_after, profile->reserved_start);
        return (double)profile->weights_bytes + outside +
               less(profile->peak_bytes, profile->allocated_before);
    case VLLM_CONSUMED:
        return less(profile->free_start, profile->free_after) +
               less(profile->peak_bytes, profile->allocated_after);
    }
    return 0;
}

double vllm_available(struct vllm_version version, double utilization,
                      const struct vllm_profile *profile)
{
    double requested = (double)profile->total_bytes * utilization;
    return requested - used_by_others(vllm_account_of(version), profile) -
           (double)profile->graphs_bytes;
}

double vllm_utilization(struct vllm_version version)
{
    return at_least(version, 21, 0) ? 0.92 : 0.9;
}

bool vllm_estimates_graphs(struct vllm_version version)
{
    return version.v1 && at_least(version, 21, 0);
}

bool vllm_weights_sleep(struct vllm_version version)
{
    return !at_least(version, 14, 0) || at_least(version, 17, 0);
}

bool vllm_sleep_trims(struct vllm_version version)
{
    return at_least(version, 8, 3);
}

struct vllm_spaces vllm_spaces_of(struct vllm_version version, const struct llm *model,
                                  uint32_t compute, uint64_t length, uint64_t requests,
                                  uint64_t block_tokens, unsigned value_bytes)
{
    struct vllm_spaces out = {0};
    if (!version.v1)
        return out;
    bool blackwell = compute == 100 && at_least(version, 11, 0);
    uint64_t buffer = (at_least(version, 12, 0) ? 394 : 256) * AR_MIB;
    if (!model->kv_rank) {
        out.decode_bytes = blackwell ? buffer : 0;
        return out;
    }
    uint64_t tokens = ar_most(8 * length, 4 * requests * block_tokens);
    if (tokens > 65536)
        tokens = 65536;
    tokens = ar_most(tokens, requests * block_tokens);
    out.context_bytes = tokens * (model->kv_rank + model->rope) * value_bytes;
    out.projected_bytes = tokens * model->heads * (model->nope + model->v_head) * value_bytes;
    out.prefill_bytes = blackwell ? buffer : 0;
    out.decode_bytes = blackwell ? 128 * AR_MIB : 0;
    return out;
}

struct vllm_experts vllm_experts_of(struct vllm_version version, uint32_t compute, bool plain,
                                    uint64_t tokens, uint64_t used, uint64_t width, uint64_t hidden,
                                    unsigned value_bytes)
{
    static const uint64_t chunk = 16384;
    const bool keeps = version.v1 && at_least(version, 14, 0);
    const uint64_t row = used * value_bytes;
    if (plain && keeps && at_least(version, 20, 0) && compute == 100)
        return (struct vllm_experts){
            .passing_bytes = {2 * tokens * row * width, tokens * row * hidden}};
    if (plain && keeps && at_least(version, 20, 0) && compute == 90)
        return (struct vllm_experts){
            .kept_bytes = tokens * hidden * value_bytes,
            .passing_bytes = {tokens * row * ar_most(width, hidden) +
                              tokens * row * ar_most(2 * width, hidden)},
        };
    if (!keeps) /* fused_moe.py, fused_experts_impl: caches 1 and 3 share memory */
        return (struct vllm_experts){
            .passing_bytes = {tokens * row * ar_most(2 * width, hidden), tokens * row * width}};
    uint64_t rows = ar_least(tokens, chunk) * row;
    return (struct vllm_experts){.kept_bytes =
                                     ar_size_round_up(rows * ar_most(width, hidden), 256) +
                                     ar_size_round_up(rows * ar_most(2 * width, hidden), 256)};
}

/* MiB of a table by ranks. */
struct by_ranks {
    uint64_t two, four, six, eight;
};

static uint64_t of_ranks(const struct by_ranks *table, uint64_t ranks)
{
    return ranks == 2   ? table->two
           : ranks == 4 ? table->four
           : ranks == 6 ? table->six
           : ranks == 8 ? table->eight
                        : 0;
}

struct vllm_reduces vllm_reduces_of(struct vllm_version version, uint32_t compute, uint64_t ranks,
                                    uint64_t hidden, uint64_t step_tokens, unsigned value_bytes)
{
    static const struct by_ranks custom = {8, 8, 8, 8}, custom_hopper = {8, 8, 1, 1},
                                 custom_blackwell = {2, 2, 1, 1},
                                 symmetric_hopper = {64, 32, 64, 64},
                                 symmetric_blackwell = {8, 32, 128, 128},
                                 fused_hopper_kib = {65536, 2048, 0, 512},
                                 fused_blackwell_kib = {65536, 32768, 0, 1024};
    const uint64_t page = 2 * AR_MIB;
    const bool blackwell = compute == 100;
    const bool symmetric = version.v1 && at_least(version, 11, 0) && (compute == 90 || blackwell);
    struct vllm_reduces out = {0};
    if (!of_ranks(&custom, ranks))
        return out;
    const struct by_ranks *largest = !symmetric  ? &custom
                                     : blackwell ? &custom_blackwell
                                                 : &custom_hopper;
    uint64_t bytes = of_ranks(largest, ranks) * AR_MIB;
    /* Beside the first one is what the ranks signal with. */
    out.start_bytes = ar_size_round_up(bytes + 8192, page) + ar_size_round_up(bytes, page);
    out.pool_bytes = 8 * AR_MIB;
    if (symmetric) /* and a pad for signals (PyTorch: CUDASymmetricMemory.cu, alloc) */
        out.start_bytes +=
            page + AR_MIB * of_ranks(blackwell ? &symmetric_blackwell : &symmetric_hopper, ranks);
    uint64_t most = AR_KIB * of_ranks(blackwell ? &fused_blackwell_kib : &fused_hopper_kib, ranks);
    if (!symmetric || !at_least(version, 17, 0) || !most || !hidden)
        return out;
    uint64_t row = hidden * value_bytes, all = ar_least(most / row, step_tokens) * row * ranks;
    out.fused_bytes = ar_size_round_up(all, page) + page + ar_size_round_up(3 * all, page);
    return out;
}

uint64_t vllm_graphs_estimate(const struct vllm_graphs *modes, size_t count)
{
    uint64_t first = 0, others = 0;
    for (size_t i = 0; i < count; i++) {
        if (!modes[i].count)
            continue;
        uint64_t each = modes[i].second_bytes > AR_MIB ? modes[i].second_bytes : AR_MIB;
        first = modes[i].first_bytes > first ? modes[i].first_bytes : first;
        others += each * (modes[i].count - 1);
    }
    return first + others;
}

bool vllm_suggests(struct vllm_version version)
{
    return version.v1 && at_least(version, 10, 2);
}

double vllm_suggested(double available, double graphs_bytes)
{
    return available - graphs_bytes - 150.0 * (double)AR_MIB;
}

bool vllm_starts(struct vllm_version version, double utilization, uint64_t total_bytes,
                 uint64_t free_bytes)
{
    return !version.v1 || !at_least(version, 9, 1) ||
           (double)free_bytes >= (double)total_bytes * utilization;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

struct vllm_cache vllm_cache_of(struct vllm_version version, const struct llm *model,
                                const struct llm_rank *rank, uint64_t block_tokens,
                                unsigned kv_value_bytes)
{
    uint64_t layers = llm_stage_layers(model, rank), linear = llm_linear_layers(model, rank);
    if (linear) {
        uint64_t token = llm_kv_layer_bytes(model, rank, kv_value_bytes);
        uint64_t tokens = ar_divide_up(llm_state_bytes(model, rank), token);
        block_tokens = ar_most(block_tokens, ar_divide_up(tokens, 16) * 16);
    }
    struct vllm_cache cache = {
        .block_tokens = block_tokens,
        .page_bytes = block_tokens * llm_kv_layer_bytes(model, rank, kv_value_bytes),
        .tensors = layers,
        .full_groups = 1,
        .state_blocks = 1,
    };
    if (linear && linear < layers) {
        cache.tensors = ar_least(linear, layers - linear);
        cache.full_groups = ar_divide_up(layers - linear, cache.tensors);
        cache.state_groups = ar_divide_up(linear, cache.tensors);
        return cache;
    }
    if (!model->window || !model->window_layers || !version.v1 || !at_least(version, 9, 2))
        return cache;
    cache.window = model->window;
    /* A stage has its share of the layers with a window. */
    uint64_t windowed = model->window_layers * layers / model->layers;
    uint64_t full = layers - windowed;
    if (!full || !windowed) {
        cache.full_groups = full != 0;
        cache.window_groups = windowed != 0;
        return cache;
    }
    uint64_t least = ar_least(full, windowed), most = layers - least;
    /* From 0.11 on, a few layers of padding are taken rather than many groups. */
    cache.tensors = at_least(version, 11, 0) && 2 * most < 3 * least ? most : least;
    cache.full_groups = ar_divide_up(full, cache.tensors);
    cache.window_groups = ar_divide_up(windowed, cache.tensors);
    return cache;
}

uint64_t vllm_blocks(const struct vllm_cache *cache, double available)
{
    double blocks = floor(floor(available) / (double)(cache->page_bytes * cache->tensors));
    return blocks > 0 ? (uint64_t)blocks : 0;
}

uint64_t vllm_tokens(const struct vllm_cache *cache, uint64_t blocks)
{
    return blocks / (cache->full_groups + cache->window_groups + cache->state_groups) *
           cache->block_tokens;
}

/* A window group keeps the window before the tokens of one step, and may begin within a block:
 * kv_cache_interface.py, SlidingWindowSpec.max_memory_usage_bytes. */
uint64_t vllm_request_blocks(const struct vllm_cache *cache, uint64_t length, uint64_t batch_tokens)
{
    uint64_t blocks = cache->full_groups * ar_divide_up(length, cache->block_tokens) +
                      cache->state_groups * cache->state_blocks;
    if (cache->window_groups) {
        uint64_t kept = ar_least(cache->window - 1 + batch_tokens, length);
        blocks += cache->window_groups * (ar_divide_up(kept, cache->block_tokens) + 1);
    }
    return blocks;
}

double vllm_concurrency(struct vllm_version version, const struct vllm_cache *cache,
                        uint64_t blocks, uint64_t length, uint64_t batch_tokens)
{
    if (version.v1 && at_least(version, 9, 1))
        return (double)blocks / (double)vllm_request_blocks(cache, length, batch_tokens);
    return (double)vllm_tokens(cache, blocks) / (double)length;
}

/* report_kv_cache_config. A log of May 2026 (noonghunna/club-3090#104) has the later rule, one of
 * April (vllm#39559) the earlier. */
uint64_t vllm_printed_tokens(struct vllm_version version, const struct vllm_cache *cache,
                             uint64_t blocks, uint64_t length, uint64_t batch_tokens)
{
    if (!version.v1 || !at_least(version, 21, 0))
        return vllm_tokens(cache, blocks);
    return (uint64_t)(vllm_concurrency(version, cache, blocks, length, batch_tokens) *
                      (double)length);
}

static double request_bytes(const struct vllm_cache *cache, uint64_t length, uint64_t batch_tokens)
{
    return (double)(vllm_request_blocks(cache, length, batch_tokens) * cache->page_bytes *
                    cache->tensors);
}

uint64_t vllm_longest(const struct vllm_cache *cache, double available, uint64_t length,
                      uint64_t batch_tokens)
{
    uint64_t fits = 0, above = length + 1;
    while (fits + 1 < above) {
        uint64_t middle = fits + (above - fits) / 2;
        if (request_bytes(cache, middle, batch_tokens) <= available)
            fits = middle;
        else
            above = middle;
    }
    return fits;
}

enum ar_status vllm_cache_check(struct vllm_version version, const struct vllm_cache *cache,
                                double available, uint64_t length, uint64_t batch_tokens,
                                struct ar_error *error)
{
    uint64_t blocks = vllm_blocks(cache, available);
    if (version.v1 ? available <= 0 : blocks == 0)
        return ar_error_set(error, AR_NEGATIVE,
                            "vLLM refuses to start: no memory is left for blocks of the key-value "
                            "cache; raise gpu_memory_utilization");
    if (version.v1 ? request_bytes(cache, length, batch_tokens) <= available
                   : length <= vllm_tokens(cache, blocks))
        return AR_OK;
    return ar_error_set(error, AR_NEGATIVE,
                        "vLLM refuses to start: one request of max_model_len=%" PRIu64
                        " tokens needs %.2f GiB of key-value cache, and %.2f GiB are available; "
                        "at most %" PRIu64 " tokens fit",
                        length, request_bytes(cache, length, batch_tokens) / (double)AR_GIB,
                        available / (double)AR_GIB,
                        vllm_longest(cache, available, length, batch_tokens));
}

/* ---- defaults -------------------------------------------------------------------------------- */

static bool large_card(uint64_t total_bytes, bool a100)
{
    return total_bytes >= 70 * AR_GIB && !a100;
}

uint64_t vllm_batch_tokens(struct vllm_version version, uint64_t total_bytes, bool a100,
                           bool offline, uint64_t length)
{
    if (!version.v1) {
        /* Chunked prefill is on for lengths above 32768 only: 512 tokens to 0.6.5, then 2048. */
        if (length > 32768 && at_least(version, 5, 1))
            return at_least(version, 6, 6) ? 2048 : 512;
        return length > 2048 ? length : 2048;
    }
    if (large_card(total_bytes, a100))
        return offline ? 16384 : 8192;
    return offline ? 8192 : 2048;
}

uint64_t vllm_max_seqs(struct vllm_version version, uint64_t total_bytes, bool a100)
{
    if (!version.v1)
        return 256;
    if (!at_least(version, 8, 5))
        return 1024; /* for all cards */
    return large_card(total_bytes, a100) ? 1024 : 256;
}
