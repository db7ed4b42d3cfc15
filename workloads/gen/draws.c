/* See draws.h. */
#include "workloads/gen/draws.h"

#include <inttypes.h>
#include <stdlib.h>

/* A run of digits below 2^63; false where there is none. */
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

static bool range(const char **at, struct draws_range *out)
{
    if (!number(at, &out->least))
        return false;
    out->most = out->least;
    if (**at != '-')
        return true;
    ++*at;
    return number(at, &out->most) && out->least <= out->most;
}

enum ar_status draws_parse(struct draws *draws, const char *text, enum draws_order order,
                           uint64_t least, uint64_t most, const char *owner, const char *option,
                           struct ar_error *error)
{
    *draws = (struct draws){.order = order};
    size_t room = 1;
    for (const char *at = text; *at; at++)
        room += *at == ';';
    draws->ranges = calloc(room, sizeof *draws->ranges);
    if (!draws->ranges)
        return ar_error_set(error, AR_HOST_MEMORY, "%s: no host memory", owner);
    const char *at = text;
    for (;;) {
        struct draws_range *entry = &draws->ranges[draws->count];
        if (!range(&at, entry) || (*at && *at != ';')) {
            size_t place = draws->count + 1;
            draws_close(draws);
            return ar_error_set(error, AR_INVALID,
                                "%s: %s=\"%s\": entry %zu is no number and no range; write a list "
                                "such as '64;128-512'",
                                owner, option, text, place);
        }
        if (entry->least < least || entry->most > most) {
            draws_close(draws);
            return ar_error_set(error, AR_INVALID,
                                "%s: %s=\"%s\": numbers must lie from %" PRIu64 " to %" PRIu64,
                                owner, option, text, least, most);
        }
        draws->count++;
        if (!*at)
            return AR_OK;
        at++;
    }
}

void draws_close(struct draws *draws)
{
    free(draws->ranges);
    *draws = (struct draws){.count = 0};
}

void draws_start(struct draws *draws)
{
    draws->next = 0;
}

static struct draws_range entry_next(struct draws *draws, struct ar_rng *rng)
{
    if (draws->order == DRAWS_RANDOM && draws->count > 1)
        return draws->ranges[ar_rng_below(rng, draws->count)];
    return draws->ranges[draws->next++ % draws->count];
}

uint64_t draws_next(struct draws *draws, struct ar_rng *rng)
{
    struct draws_range entry = entry_next(draws, rng);
    return entry.least == entry.most ? entry.least : ar_rng_between(rng, entry.least, entry.most);
}

uint64_t draws_next_log(struct draws *draws, struct ar_rng *rng)
{
    struct draws_range entry = entry_next(draws, rng);
    return entry.least == entry.most ? entry.least
                                     : ar_rng_log_uniform(rng, entry.least, entry.most);
}

uint64_t draws_most(const struct draws *draws)
{
    uint64_t most = 0;
    for (size_t i = 0; i < draws->count; i++)
        if (draws->ranges[i].most > most)
            most = draws->ranges[i].most;
    return most;
}
