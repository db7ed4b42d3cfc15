/* Lists of numbers: see emit.h. */

#include <inttypes.h>

#include "workloads/gen/emit.h"

/* A run of digits below 2^63; false if there is none. */
static bool number(const char **at, uint64_t *value)
{
    const char *start = *at;
    *value = 0;
    for (; **at >= '0' && **at <= '9'; ++*at) {
        if (*value > (UINT64_MAX / 2 - 9) / 10)
            return false;
        *value = *value * 10 + (uint64_t)(**at - '0');
    }
    return *at != start;
}

static bool range(const char **at, struct samples_range *out)
{
    if (!number(at, &out->least))
        return false;
    out->most = out->least;
    if (**at != '-')
        return true;
    ++*at;
    return number(at, &out->most) && out->least <= out->most;
}

void samples_open(struct emit *emit, struct samples *samples, const char *text,
                  enum samples_order order, uint64_t least, uint64_t most, const char *option)
{
    *samples = (struct samples){.order = order, .other = emit->samples};
    emit->samples = samples;
    size_t room = 1;
    for (const char *at = text; *at; at++)
        room += *at == ';';
    struct samples_range *ranges = emit_array(emit, room, sizeof *ranges);
    samples->ranges = ranges;
    for (const char *at = text; ranges; at++) {
        struct samples_range *entry = &ranges[samples->count++];
        if (!range(&at, entry) || (*at && *at != ';')) {
            emit_fail(emit, AR_INVALID,
                      "%s=\"%s\": entry %zu is no number and no range; write a list such as "
                      "'64;128-512'",
                      option, text, samples->count);
            return;
        }
        if (entry->least < least || entry->most > most) {
            emit_fail(emit, AR_INVALID, "%s=\"%s\": numbers must lie from %" PRIu64 " to %" PRIu64,
                      option, text, least, most);
            return;
        }
        if (!*at)
            return;
    }
}

static struct samples_range entry_next(struct samples *samples, struct ar_rng *rng)
{
    if (samples->order == SAMPLES_RANDOM && samples->count > 1)
        return samples->ranges[ar_rng_below(rng, samples->count)];
    return samples->ranges[samples->turn++ % samples->count];
}

uint64_t samples_next(struct samples *samples, struct ar_rng *rng)
{
    struct samples_range entry = entry_next(samples, rng);
    return entry.least == entry.most ? entry.least : ar_rng_between(rng, entry.least, entry.most);
}

uint64_t samples_next_log(struct samples *samples, struct ar_rng *rng)
{
    struct samples_range entry = entry_next(samples, rng);
    return entry.least == entry.most ? entry.least
                                     : ar_rng_log_uniform(rng, entry.least, entry.most);
}

uint64_t samples_most(const struct samples *samples)
{
    uint64_t most = 0;
    for (size_t i = 0; i < samples->count; i++)
        if (samples->ranges[i].most > most)
            most = samples->ranges[i].most;
    return most;
}
