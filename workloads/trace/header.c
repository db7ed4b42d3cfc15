/* What a trace says of itself: its header lines. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "allocators/base/size.h"
#include "workloads/trace/reader.h"

enum header_key {
    HEADER_NAME,
    HEADER_RECORDER,
    HEADER_CONF,
    HEADER_LIMIT,
    HEADER_CAPACITY,
    HEADER_CARD,
    HEADER_COMPLETE,
    HEADER_FREE_REQUESTED,
    HEADER_COUNT
};

static const char *const names[HEADER_COUNT] = {"name",     "recorder", "conf",     "limit",
                                                "capacity", "card",     "complete", "let-go"};

size_t trace_header_print(const struct trace_info *info, const struct trace_stats *stats,
                          bool free_requested_final, char *out, size_t room)
{
    const char *const words[HEADER_COUNT] = {
        [HEADER_NAME] = info->name,
        [HEADER_RECORDER] = info->recorder,
        [HEADER_CONF] = info->conf,
        [HEADER_CARD] = info->card,
        [HEADER_COMPLETE] = info->complete ? "" : "no",
        [HEADER_FREE_REQUESTED] = free_requested_final ? "final" : "",
    };
    const uint64_t numbers[HEADER_COUNT] = {
        [HEADER_LIMIT] = info->limit_bytes,
        [HEADER_CAPACITY] = info->capacity_bytes,
    };
    size_t used = 0;
    for (unsigned key = 0; key < HEADER_COUNT; key++) {
        char *at = used < room ? out + used : NULL;
        size_t left = used < room ? room - used : 0;
        if (words[key] && *words[key])
            used += (size_t)snprintf(at, left, "# %s: %s\n", names[key], words[key]);
        else if (numbers[key])
            used += (size_t)snprintf(at, left, "# %s: %" PRIu64 "\n", names[key], numbers[key]);
    }
    for (size_t i = 0; i < stats->count; i++)
        used += (size_t)snprintf(used < room ? out + used : NULL, used < room ? room - used : 0,
                                 "# stat: %s %" PRIu64 "\n", stats->items[i].name,
                                 stats->items[i].value);
    return used;
}

static enum ar_status take_text(const char *key, const char *value, char *out, size_t room,
                                struct ar_error *error)
{
    if (strlen(value) >= room)
        return ar_error_set(error, AR_INVALID, "\"%s\" has more than %zu bytes", key, room - 1);
    for (const char *at = value; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            return ar_error_set(error, AR_INVALID, "\"%s\" holds a control byte", key);
    memcpy(out, value, strlen(value) + 1);
    return AR_OK;
}

static enum ar_status take(enum header_key key, const char *value, struct trace_info *info,
                           bool *free_requested_final, struct ar_error *error)
{
    switch (key) {
    case HEADER_NAME:
        return take_text("name", value, info->name, sizeof info->name, error);
    case HEADER_RECORDER:
        return take_text("recorder", value, info->recorder, sizeof info->recorder, error);
    case HEADER_CONF:
        return take_text("conf", value, info->conf, sizeof info->conf, error);
    case HEADER_CARD:
        return take_text("card", value, info->card, sizeof info->card, error);
    case HEADER_LIMIT:
        return ar_size_parse(value, &info->limit_bytes, error);
    case HEADER_CAPACITY:
        return ar_size_parse(value, &info->capacity_bytes, error);
    case HEADER_COMPLETE:
        if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
            return ar_error_set(error, AR_INVALID, "complete: %.40s: yes or no is wanted", value);
        info->complete = value[0] == 'y';
        return AR_OK;
    default:
        if (strcmp(value, "final") != 0)
            return ar_error_set(error, AR_INVALID, "let-go: %.40s: final is wanted", value);
        *free_requested_final = true;
        return AR_OK;
    }
}

enum ar_status trace_header_parse(const char *line, struct trace_source *source,
                                  bool *free_requested_final, unsigned *given,
                                  struct ar_error *error)
{
    static const char stat[] = "stat:";
    const char *at = line + 1 + (line[1] == ' ');
    if (strncmp(at, stat, sizeof stat - 1) == 0) {
        at += sizeof stat - 1;
        return trace_stats_parse(&source->stats, at + (*at == ' '), error);
    }
    for (unsigned key = 0; key < HEADER_COUNT; key++) {
        size_t length = strlen(names[key]);
        if (strncmp(at, names[key], length) != 0 || at[length] != ':')
            continue;
        if (*given & 1u << key)
            return ar_error_set(error, AR_INVALID, "the header \"%s\" is given twice", names[key]);
        *given |= 1u << key;
        const char *value = at + length + 1;
        return take((enum header_key)key, value + (*value == ' '), &source->info,
                    free_requested_final, error);
    }
    return AR_OK;
}
