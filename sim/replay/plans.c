/* Requests of one of several sizes: the key `plans` of a probe (FORMAT.md). */

#include "allocators/base/array.h"
#include "sim/replay/run.h"
#include "workloads/trace/event.h"

#define CHOICES_MAX 1048576u

/* The value of `plans`, or NULL. */
static const char *find(const char *rest)
{
    static const char key[] = "plans=";
    for (const char *at = rest; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, key, sizeof key - 1) == 0)
            return at + sizeof key - 1;
    }
    return NULL;
}

static bool number(const char **text, uint64_t limit, uint64_t *out)
{
    char *end = NULL;
    if (**text < '0' || **text > '9')
        return false;
    *out = strtoull(*text, &end, 10);
    *text = end;
    return *out < limit;
}

enum ar_status replay_plans_read(const struct replay *run, const struct trace_event *event,
                                 const char *rest, struct replay_plans *out, struct ar_error *error)
{
    const char *at = find(rest);
    if (!at)
        return AR_OK;
    uint64_t choice = 0;
    bool good = number(&at, CHOICES_MAX, &choice) && *at == ':';
    do {
        at++;
        good = good && out->count < REPLAY_PLANS_MAX &&
               number(&at, TRACE_BYTES_LIMIT, &out->bytes[out->count]);
        out->count += good;
    } while (good && *at == '/');
    if (!good || (*at && *at != ','))
        return replay_bad_input(
            run, event, "its key plans is not CHOICE:BYTES/BYTES/... with at most 64 sizes", error);
    out->choice = (uint32_t)choice;
    return AR_OK;
}

uint8_t *replay_choice(struct replay *run, uint32_t choice)
{
    return AR_ARRAY_REACH(run->choices, run->choice_count, choice) ? &run->choices[choice] : NULL;
}
