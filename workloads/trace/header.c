/* See header.h. */
#include "workloads/trace/header.h"

#include "allocators/base/array.h"
#include "allocators/base/fnv.h"
#include "allocators/base/size.h"
#include "workloads/io/fields.h"
#include "workloads/trace/source.h"

/* ---- names ---- */

#define MARK_BYTES 9 /* ~ and eight digits */

void trace_name_put(char *name, size_t room, const char *text, size_t length)
{
    memset(name, 0, room);
    if (length < room) {
        memcpy(name, text, length);
        return;
    }
    size_t kept = room - 1 - MARK_BYTES;
    while (kept && ((unsigned char)text[kept] & 0xc0) == 0x80) /* no part of a character */
        kept--;
    memcpy(name, text, kept);
    (void)snprintf(name + kept, room - kept, "~%08" PRIx32, ar_fnv32(text, length));
}

void trace_name_from_path(const char *path, char *name, size_t room)
{
    static const char *const endings[] = {".gz",  ".zst", ".csv",   ".txt",    ".bin", ".json",
                                          ".log", ".raw", ".trace", ".pickle", ".pkl", ".default"};
    const char *file = field_file_name(path);
    size_t length = strlen(file);
    for (size_t i = 0; i < AR_COUNT(endings); i++) {
        size_t cut = strlen(endings[i]);
        if (length > cut && strncmp(file + length - cut, endings[i], cut) == 0)
            length -= cut;
    }
    trace_name_put(name, room, file, length);
    /* The name of a file may contain any bytes, that of a trace is text. */
    for (char *at = name; *(at += field_plain(at, strlen(at)));)
        *at = '_';
}

/* ---- statistics ---- */

enum ar_status trace_stats_add(struct trace_stats *self, const char *name, size_t length,
                               uint64_t value, struct ar_error *error)
{
    if (!length || memchr(name, ' ', length) || field_plain(name, length) < length)
        return ar_invalid(error,
                          "the name of a statistic is empty, or contains blanks or control bytes");
    AR_TRY_MEMORY(ar_array_make_room(&self->items, self->count, &self->room, sizeof *self->items),
                  error, "statistics");
    char *copy = strndup(name, length);
    AR_TRY_MEMORY(copy, error, "statistics");
    self->items[self->count++] = (struct trace_stat){copy, value};
    return AR_OK;
}

void trace_stats_close(struct trace_stats *self)
{
    for (size_t i = 0; i < self->count; i++)
        free(self->items[i].name);
    free(self->items);
    *self = (struct trace_stats){0};
}

/* "NAME VALUE", as a header line has it. */
static enum ar_status parse_stat(struct trace_stats *self, const char *text, struct ar_error *error)
{
    uint64_t value;
    const char *blank = strchr(text, ' ');
    if (!blank || ar_count_parse(blank + 1, &value, error))
        return ar_invalid(error, "stat: \"%.80s\" must be a name, a blank and a whole number",
                          text);
    return trace_stats_add(self, text, (size_t)(blank - text), value, error);
}

/* ---- header lines ---- */

/* The keys in their canonical order. The fields of `info` that a key sets: a text if `room` is not
 * 0, a size if it is; the last two keys have rules of their own. */
static const struct header_key {
    const char *name;
    size_t offset, room;
} keys[] = {
    {"name", offsetof(struct trace_info, name), sizeof((struct trace_info *)0)->name},
    {"recorder", offsetof(struct trace_info, recorder), sizeof((struct trace_info *)0)->recorder},
    {"conf", offsetof(struct trace_info, conf), sizeof((struct trace_info *)0)->conf},
    {"limit", offsetof(struct trace_info, limit_bytes), 0},
    {"capacity", offsetof(struct trace_info, capacity_bytes), 0},
    {"card", offsetof(struct trace_info, card), sizeof((struct trace_info *)0)->card},
    {"complete", 0, 0},
    {"let-go", 0, 0},
};
enum { KEY_COMPLETE = 6, KEY_LET_GO, KEY_COUNT };

size_t trace_header_print(const struct trace_info *info, const struct trace_stats *stats,
                          bool free_requested_final, char *out, size_t room)
{
    size_t used = 0;
#define PRINT(...)                                                                                 \
    (used += (size_t)snprintf(used < room ? out + used : NULL, used < room ? room - used : 0,      \
                              __VA_ARGS__))
    for (size_t i = 0; i < KEY_COMPLETE; i++) {
        const char *field = (const char *)info + keys[i].offset;
        uint64_t number = 0;
        if (!keys[i].room)
            memcpy(&number, field, sizeof number);
        if (keys[i].room && *field)
            PRINT("# %s: %s\n", keys[i].name, field);
        else if (number)
            PRINT("# %s: %" PRIu64 "\n", keys[i].name, number);
    }
    if (!info->complete)
        PRINT("# complete: no\n");
    if (free_requested_final)
        PRINT("# let-go: final\n");
    for (size_t i = 0; i < stats->count; i++)
        PRINT("# stat: %s %" PRIu64 "\n", stats->items[i].name, stats->items[i].value);
#undef PRINT
    return used;
}

static enum ar_status take_text(const char *key, const char *value, char *out, size_t room,
                                struct ar_error *error)
{
    if (strlen(value) >= room)
        return ar_invalid(error, "\"%s\" has more than %zu bytes", key, room - 1);
    size_t plain = field_plain(value, strlen(value));
    if (value[plain])
        return ar_invalid(error,
                          "\"%s\" contains the byte 0x%02x; text is UTF-8 without control bytes",
                          key, (unsigned char)value[plain]);
    memcpy(out, value, strlen(value) + 1);
    return AR_OK;
}

static enum ar_status take_value(size_t key, const char *value, struct trace_info *info,
                                 bool *free_requested_final, struct ar_error *error)
{
    char *field = (char *)info + keys[key].offset;
    if (key == KEY_COMPLETE) {
        if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
            return ar_invalid(error, "complete: %.40s: must be yes or no", value);
        info->complete = value[0] == 'y';
        return AR_OK;
    }
    if (key == KEY_LET_GO) {
        if (strcmp(value, "final") != 0)
            return ar_invalid(error, "let-go: %.40s: must be final", value);
        *free_requested_final = true;
        return AR_OK;
    }
    return keys[key].room ? take_text(keys[key].name, value, field, keys[key].room, error)
                          : ar_size_parse(value, (uint64_t *)(void *)field, error);
}

enum ar_status trace_header_parse(const char *line, struct trace_source *source,
                                  bool *free_requested_final, unsigned *given,
                                  struct ar_error *error)
{
    static const char stat[] = "stat:";
    const char *at = line + 1 + (line[1] == ' ');
    if (strncmp(at, stat, sizeof stat - 1) == 0) {
        at += sizeof stat - 1;
        return parse_stat(&source->stats, at + (*at == ' '), error);
    }
    for (unsigned key = 0; key < KEY_COUNT; key++) {
        size_t length = strlen(keys[key].name);
        if (strncmp(at, keys[key].name, length) != 0 || at[length] != ':')
            continue;
        if (*given & 1u << key)
            return ar_invalid(error, "the header \"%s\" is given twice", keys[key].name);
        *given |= 1u << key;
        const char *value = at + length + 1;
        return take_value(key, value + (*value == ' '), &source->info, free_requested_final, error);
    }
    return AR_OK;
}
