/* PyTorch's settings: the fraction of a card that a process may hold, and the allocator's
 * configuration string, whose own checks are those of the policy. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/tenants/process_parts.h"

static enum status set_fraction(struct process_reading *self, const struct process_line *line,
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
    return STATUS_OK;
}

/* The newer name of the configuration holds before the older. */
static const char *configuration(const struct process_reading *self)
{
    const char *text = process_variable(self, "PYTORCH_ALLOC_CONF");
    return text ? text : process_variable(self, "PYTORCH_CUDA_ALLOC_CONF");
}

static enum status add_pool(struct process_reading *self, size_t card, double fraction)
{
    const char *conf = configuration(self);
    struct process_pool *pool;
    enum status status = process_add_pool(self, (uint32_t)card, &pool);
    if (status)
        return status;
    if (conf && (strlen(conf) > 511 || strchr(conf, '\'')))
        return error_set(self->error, STATUS_INVALID,
                         "PYTORCH_CUDA_ALLOC_CONF is longer than 511 bytes, or holds a quote");
    char *text = pool->policy;
    size_t room = sizeof pool->policy;
    int length = snprintf(text, room, "torch");
    if (fraction < 1) {
        pool->limit_bytes =
            (uint64_t)((double)self->cards[self->visible[card]].total_bytes * fraction);
        length +=
            snprintf(text + length, room - (size_t)length, ":limit=%" PRIu64, pool->limit_bytes);
    }
    pool->grows = true;
    if (conf && *conf)
        snprintf(text + length, room - (size_t)length, "%cconf='%s'", fraction < 1 ? ',' : ':',
                 conf);
    return STATUS_OK;
}

enum status process_torch(struct process_reading *self)
{
    double fractions[PROCESS_CARDS];
    enum status status = STATUS_OK;
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
