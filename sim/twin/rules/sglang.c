/* SGLang's rules; see sglang.h. */
#include <math.h>

#include "allocators/base/size.h"
#include "sim/twin/rules/sglang.h"

#define LAST_PATCH 99

static bool at_least(struct sglang_version version, unsigned minor, unsigned patch)
{
    if (version.major || version.minor != minor)
        return version.major || version.minor > minor;
    return version.patch >= patch;
}

enum ar_status sglang_version_read(const char *text, struct sglang_version *version,
                                   struct ar_error *error)
{
    int end = 0;
    *version = (struct sglang_version){.patch = LAST_PATCH};
    int fields = sscanf(text, "%3u.%3u%n.%3u%n", &version->major, &version->minor, &end,
                        &version->patch, &end);
    if (fields < 2 || text[end])
        return ar_invalid(error, "\"%s\" is not a version such as 0.5.4", text);
    return AR_OK;
}

/* Python's round(x, 3). */
static double thousandths(double x)
{
    return nearbyint(x * 1000) / 1000;
}

/* Rows by the card's memory in MiB. */
struct row {
    uint64_t below_mib, chunk, batch, batch_parallel; /* batch_parallel: tensor_parallel >= 4 */
};
static const struct row rows_05[] = {
    {20 * 1024, 2048, 8, 8},     {35 * 1024, 2048, 24, 80},    {60 * 1024, 4096, 32, 160},
    {90 * 1024, 8192, 256, 512}, {160 * 1024, 8192, 256, 512}, {UINT64_MAX, 16384, 512, 512},
};
/* 0.4.7 to 0.5.3; before, cards below 25,000 MiB have the first row, and all others the second. */
static const struct row rows_04[] = {
    {35 * 1024, 2048, 8, 80},
    {160 * 1024, 8192, 160, 160},
    {UINT64_MAX, 16384, 512, 512},
};

static double reserve_by_card(const struct sglang_settings *settings)
{
    double parallel = (double)(settings->tensor_parallel * settings->pipeline_parallel);
    if (settings->card_mib < 35 * 1024)
        return (2.8 + parallel / 10) * 1024;
    if (settings->card_mib < 90 * 1024)
        return (9.5 + parallel / 2) * 1024;
    return settings->card_mib < 160 * 1024 ? (12 + parallel / 2) * 1024 : 32 * 1024;
}

static double reserve_by_settings(const struct sglang_settings *settings)
{
    uint64_t tokens = settings->no_chunks ? settings->max_prefill : settings->chunked_prefill;
    double parallel = (double)(settings->tensor_parallel * settings->pipeline_parallel);
    double reserve = 512 + (double)(tokens > 2048 ? tokens : 2048) * 1.5 +
                     (double)settings->graph_batch * 2 + parallel / 8 * 1024;
    return settings->card_mib > 60 * 1024 && reserve < 10 * 1024 ? 10 * 1024 : reserve;
}

static double fraction_by_table(uint64_t tensor_parallel)
{
    return tensor_parallel >= 16  ? 0.79
           : tensor_parallel >= 8 ? 0.81
           : tensor_parallel >= 4 ? 0.85
           : tensor_parallel >= 2 ? 0.87
                                  : 0.88;
}

void sglang_defaults(struct sglang_version version, struct sglang_settings *settings)
{
    bool by_settings = at_least(version, 5, 4);
    const struct row *row = by_settings ? rows_05 : rows_04;
    uint64_t card = settings->card_mib;
    if (!at_least(version, 4, 7))
        card = card < 25000 ? 0 : 35 * 1024;
    while (card >= row->below_mib)
        row++;
    if (!settings->chunked_prefill)
        settings->chunked_prefill = row->chunk;
    if (!settings->max_prefill)
        settings->max_prefill = 16384;
    if (!settings->graph_batch) {
        settings->graph_batch = settings->tensor_parallel < 4 ? row->batch : row->batch_parallel;
        /* get_batch_sizes_to_capture adds 160 .. 256 on larger cards. */
        if (!by_settings && settings->graph_batch == 160 && settings->card_mib > 96 * 1024)
            settings->graph_batch = 256;
    }
    if (settings->fraction > 0)
        return;
    double memory = (double)settings->card_mib;
    if (by_settings)
        settings->fraction = thousandths((memory - reserve_by_settings(settings)) / memory);
    else if (at_least(version, 4, 7))
        settings->fraction = thousandths((memory - reserve_by_card(settings)) / memory);
    else
        settings->fraction = fraction_by_table(settings->tensor_parallel);
}

double sglang_available(double free_before, double free_after, double fraction)
{
    return free_after - free_before * (1 - fraction);
}

double sglang_states(double available, uint64_t request_bytes)
{
    if (!request_bytes || available <= 0)
        return 0;
    return floor(available * 0.9 / 1.9 / (double)request_bytes) * (double)request_bytes;
}

uint64_t sglang_tokens(double available, uint64_t token_bytes, uint64_t page_tokens, uint64_t limit)
{
    if (available <= 0)
        return 0;
    uint64_t tokens = (uint64_t)available / token_bytes;
    if (limit && tokens > limit)
        tokens = limit;
    return tokens / page_tokens * page_tokens;
}

uint64_t sglang_buffer_bytes(uint64_t tokens, uint64_t page_tokens, uint64_t token_bytes)
{
    return (tokens + page_tokens) * token_bytes;
}

uint64_t sglang_max_requests(uint64_t tokens, uint64_t length)
{
    uint64_t requests = (uint64_t)((double)tokens / (double)length * 512);
    return requests < 2048 ? 2048 : requests > 4096 ? 4096 : requests;
}

uint64_t sglang_request_table_bytes(uint64_t requests, uint64_t length)
{
    return requests * (length + 4) * 4;
}

struct sglang_spaces sglang_spaces_of(struct sglang_version version, const struct llm *model,
                                      uint32_t compute, uint64_t page_tokens)
{
    const bool latent = model->kv_rank != 0;
    const bool qwen = (model->qkv_bias || model->qk_norm) && !model->experts;
    if (compute == 90 && at_least(version, 4, 6))
        return (struct sglang_spaces){0, 4.0 / (double)page_tokens};
    if (compute == 100)
        return (struct sglang_spaces){(latent ? 150 : 512) * AR_MIB, 4.0 / (double)page_tokens};
    return (struct sglang_spaces){latent ? 0 : (qwen ? 512 : 384) * AR_MIB, 5};
}

bool sglang_shares_logits(struct sglang_version version)
{
    return at_least(version, 5, 0);
}
