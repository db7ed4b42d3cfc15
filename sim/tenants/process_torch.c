/* PyTorch's settings: the fraction of a card that a process may hold, the allocator's configuration
 * string, which is read as the policy reads it and refused as PyTorch refuses it, and the two that
 * take another allocator: PYTORCH_NO_CUDA_MEMORY_CACHING, with any value, and the string's
 * backend:cudaMallocAsync. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "allocators/options.h"
#include "allocators/policies/torch/torch.h"
#include "allocators/spec.h"
#include "sim/tenants/process_parts.h"

static enum ar_status set_fraction(struct process_reading *self, const struct process_line *line,
                                   double *fractions)
{
    const char *value = line->value;
    size_t first, last;
    double fraction;
    if (!process_read_cards(self, &value, &first, &last) || !process_read_number(value, &fraction))
        return process_bad_line(self, line, "write a card or all, then a fraction");
    if (!(fraction >= 0 && fraction <= 1))
        return process_raise(self, line, PROCESS_VALUE_ERROR,
                             "Invalid fraction value: %s. Allowed range: 0~1", value);
    for (size_t i = first; i <= last; i++) {
        if (i >= self->visible_count)
            return process_raise(self, line, PROCESS_RUNTIME_ERROR,
                                 "invalid device ordinal: there is no GPU %zu; %zu visible", i,
                                 self->visible_count);
        fractions[i] = fraction;
    }
    return AR_OK;
}

/* The newer name of the configuration holds before the older. */
static const char *configuration(const struct process_reading *self)
{
    const char *text = process_variable(self, "PYTORCH_ALLOC_CONF");
    return text ? text : process_variable(self, "PYTORCH_CUDA_ALLOC_CONF");
}

/* RuntimeError where the allocator would not take its string. */
static enum ar_status check_settings(struct process_reading *self, const char *policy)
{
    struct torch_values values = {0};
    struct torch_settings settings;
    struct ar_error why = {""};
    struct ar_spec spec;
    enum ar_status status = ar_spec_parse(policy, &spec, self->error);
    if (status != AR_OK)
        return status;
    status = ar_options_read(torch_options, &spec.links[spec.link_count - 1], "policy torch",
                             &values, &why);
    if (status == AR_OK)
        status = torch_settings_read(&values, &settings, &why);
    ar_spec_close(&spec);
    if (status == AR_INVALID)
        return process_raise(self, NULL, PROCESS_RUNTIME_ERROR, "%s", why.text);
    return status ? ar_error_set(self->error, status, "%s", why.text) : AR_OK;
}

static enum ar_status add_pool(struct process_reading *self, size_t card, double fraction)
{
    const char *conf = configuration(self);
    struct process_pool *pool;
    enum ar_status status = process_add_pool(self, (uint32_t)card, &pool);
    if (status)
        return status;
    if (conf && (strlen(conf) > 511 || strchr(conf, '\'')))
        return ar_error_set(self->error, AR_INVALID,
                            "PYTORCH_CUDA_ALLOC_CONF is longer than 511 bytes, or holds a quote");
    char *text = pool->policy, limit[40] = "";
    size_t room = sizeof pool->policy;
    pool->grows = true;
    if (process_variable(self, "PYTORCH_NO_CUDA_MEMORY_CACHING")) {
        snprintf(text, room, "direct");
        return AR_OK;
    }
    if (fraction < 1) {
        pool->limit_bytes =
            (uint64_t)((double)self->cards[self->visible[card]].total_bytes * fraction);
        snprintf(limit, sizeof limit, "limit=%" PRIu64, pool->limit_bytes);
    }
    if (conf && strstr(conf, "backend:cudaMallocAsync")) {
        snprintf(text, room, "async:release_threshold=max%s%s", *limit ? "," : "", limit);
        return AR_OK;
    }
    bool quoted = conf && *conf;
    snprintf(text, room, "torch%s%s%s%s%s%s", *limit || quoted ? ":" : "", limit,
             *limit && quoted ? "," : "", quoted ? "conf='" : "", quoted ? conf : "",
             quoted ? "'" : "");
    return check_settings(self, text);
}

enum ar_status process_torch(struct process_reading *self)
{
    double fractions[PROCESS_CARDS];
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < PROCESS_CARDS; i++)
        fractions[i] = 1;
    for (size_t i = 0; i < self->line_count && !status; i++) {
        const struct process_line *line = &self->lines[i];
        if (!strcmp(line->key, "framework") || (*line->key >= 'A' && *line->key <= 'Z'))
            continue;
        if (!strcmp(line->key, "set_per_process_memory_fraction"))
            status = set_fraction(self, line, fractions);
        else
            status = process_bad_line(self, line,
                                      "no such setting of PyTorch; there is "
                                      "set_per_process_memory_fraction, and its environment");
    }
    for (size_t i = 0; i < self->visible_count && !status; i++)
        status = add_pool(self, i, fractions[i]);
    return status;
}
