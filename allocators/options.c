/* Reads options by their tables: the defaults and then the given pairs, each with the parser of its
 * type and the limits of its row. An unknown name is answered with the nearest known one: the
 * fewest edits (insert, delete, replace, swap two neighbours; Damerau 1964, in the restricted
 * form), at most one for every three letters. */
#include "allocators/options.h"

#include <ctype.h>

#include "allocators/base/size.h"

#define NAME_MOST 48 /* letters; a longer text has no near name */

static size_t edits(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t rows[3][NAME_MOST + 1];
    for (size_t j = 0; j <= b_length; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *now = rows[i % 3];
        const size_t *before = rows[(i + 2) % 3];
        const size_t *before_that = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t cost = before[j - 1] + (a[i - 1] != b[j - 1]);
            cost = ar_least(cost, ar_least(before[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                cost = ar_least(cost, before_that[j - 2] + 1);
            now[j] = cost;
        }
    }
    return rows[a_length % 3][b_length];
}

const char *ar_nearest_name(const char *name, const char *const *names, size_t count)
{
    const char *nearest = NULL;
    size_t fewest = SIZE_MAX;
    size_t length = strlen(name);
    if (length == 0 || length > NAME_MOST)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        size_t other = strlen(names[i]);
        if (other > NAME_MOST)
            continue;
        size_t distance = edits(name, length, names[i], other);
        /* Also a singular of a name in the plural: "policy" of "policies". */
        bool starts = length >= 3 && strncmp(name, names[i], length < 5 ? length : length - 1) == 0;
        size_t most = (length > other ? length : other) / 3;
        if ((distance <= (most ? most : 1) || starts) && distance < fewest) {
            fewest = distance;
            nearest = names[i];
        }
    }
    return nearest;
}

const struct ar_option *ar_options_find(const struct ar_option *table, const char *name)
{
    for (; table && table->name; table++)
        if (strcmp(table->name, name) == 0)
            return table;
    return NULL;
}

enum ar_status ar_name_unknown(const char *has_no, const char *name, const char *const *names,
                               size_t count, const char *else_do, struct ar_error *error)
{
    char list[400] = "";
    size_t used = 0;
    const char *near = ar_nearest_name(name, names, count);
    if (near)
        return ar_invalid(error, "%s \"%.60s\"; did you mean \"%s\"?", has_no, name, near);
    for (size_t i = 0; i < count && used + strlen(names[i]) + 3 <= sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", names[i]);
    return ar_invalid(error, "%s \"%.60s\"; %s%s", has_no, name,
                      else_do ? else_do : "there are: ", else_do ? "" : list);
}

/* The value of "NAME:VALUE", as in PyTorch's variable, or NULL. A switch is written in small
 * letters. */
static const char *value_after_colon(const struct ar_option *option, const char *name, char *value,
                                     size_t room)
{
    size_t length = strlen(option->name);
    if (strncmp(name, option->name, length) != 0 || name[length] != ':')
        return NULL;
    snprintf(value, room, "%s", name + length + 1);
    for (char *at = value; option->type == AR_OPTION_BOOL && *at; at++)
        *at = (char)tolower((unsigned char)*at);
    return value;
}

static enum ar_status unknown(const struct ar_option *table, const char *owner, const char *name,
                              struct ar_error *error)
{
    const char *names[64] = {NULL};
    char has_no[160], value[80];
    size_t count = 0;
    for (const struct ar_option *option = table; option && option->name; option++)
        if (value_after_colon(option, name, value, sizeof value))
            return ar_invalid(error, "%s: \"%.60s\": write %s=%s", owner, name, option->name,
                              value);
    uint64_t bytes;
    for (const struct ar_option *option = table; option && option->name; option++)
        if (strcmp(option->name, "capacity") == 0 && isdigit((unsigned char)name[0]) &&
            ar_size_parse(name, &bytes, NULL) == AR_OK)
            return ar_invalid(error,
                              "%s: \"%.60s\" has no key: write capacity=%.60s; for several "
                              "capacities give -d once for each",
                              owner, name, name);
    for (; table && table->name && count < 64; table++)
        names[count++] = table->name;
    snprintf(has_no, sizeof has_no, "%s has no option", owner);
    return ar_name_unknown(has_no, name, names, count, count ? NULL : "it has none: leave it out",
                           error);
}

static enum ar_status read_fraction(const char *text, double *out, struct ar_error *error)
{
    if (*text == '+' || !ar_number_parse(text, out) || *out > 1e300 || *out < -1e300)
        return ar_invalid(error, "\"%.60s\" is not a number", text);
    return AR_OK;
}

static enum ar_status read_bool(const char *text, bool *out, struct ar_error *error)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on", "0", "1"};
    char lower[8] = "";
    for (size_t i = 0; i < sizeof lower - 1 && text[i]; i++)
        lower[i] = (char)tolower((unsigned char)text[i]);
    for (size_t i = 0; i < AR_COUNT(words); i++) {
        if (strlen(text) == strlen(words[i]) && strcmp(lower, words[i]) == 0) {
            *out = i % 2 == 1;
            return AR_OK;
        }
    }
    return ar_invalid(error, "\"%.60s\" is neither true nor false", text);
}

static enum ar_status read_choice(const char *choices, const char *text, int *out,
                                  struct ar_error *error)
{
    int index = 0;
    size_t length = strlen(text);
    for (const char *at = choices; at; index++) {
        size_t span = strcspn(at, "|");
        if (span == length && strncmp(at, text, length) == 0) {
            *out = index;
            return AR_OK;
        }
        at = at[span] ? at + span + 1 : NULL;
    }
    return ar_invalid(error, "\"%.60s\" is not one of %s", text, choices);
}

static enum ar_status in_range(const struct ar_option *option, double value, const char *text,
                               struct ar_error *error)
{
    if (option->least == 0 && option->most == 0)
        return AR_OK;
    if (value >= option->least && value <= option->most)
        return AR_OK;
    return ar_invalid(error, "\"%.60s\" is out of range; it goes from %.15g to %.15g", text,
                      option->least, option->most);
}

/* A limit of a few bytes is a size whose unit was forgotten. */
static enum ar_status has_unit(const struct ar_option *option, const char *text, uint64_t number,
                               struct ar_error *error)
{
    if (strcmp(option->name, "limit") != 0 || !number || number >= 1024 || strchr(text, 'B'))
        return AR_OK;
    return ar_invalid(error, "%" PRIu64 " byte%s; did you mean limit=%" PRIu64 "GiB?", number,
                      number == 1 ? "" : "s", number);
}

/* Reads `text` into the field of the option. Limits are compared as doubles, which rounds those
 * above 2^53. */
static enum ar_status read_value(const struct ar_option *option, const char *text, void *values,
                                 struct ar_error *error)
{
    void *field = (char *)values + option->offset;
    enum ar_status status;
    switch (option->type) {
    case AR_OPTION_BYTES:
    case AR_OPTION_COUNT: {
        uint64_t number = 0;
        status = option->type == AR_OPTION_BYTES ? ar_size_parse(text, &number, error)
                                                 : ar_count_parse(text, &number, error);
        AR_THEN(status, in_range(option, (double)number, text, error));
        if (option->type == AR_OPTION_BYTES)
            AR_THEN(status, has_unit(option, text, number, error));
        if (!status)
            *(uint64_t *)field = number;
        return status;
    }
    case AR_OPTION_FRACTION: {
        double number = 0;
        status = read_fraction(text, &number, error);
        AR_THEN(status, in_range(option, number, text, error));
        if (!status)
            *(double *)field = number;
        return status;
    }
    case AR_OPTION_BOOL:
        return read_bool(text, field, error);
    case AR_OPTION_CHOICE:
        return read_choice(option->choices, text, field, error);
    case AR_OPTION_TEXT:
        *(const char **)field = text;
        return AR_OK;
    }
    return ar_invalid(error, "the option's type %d is unknown", (int)option->type);
}

static enum ar_status read_pair(const struct ar_option *option, const struct ar_spec_pair *pair,
                                void *values, struct ar_error *error)
{
    if (pair->alone && option->type == AR_OPTION_BOOL) {
        *(bool *)((char *)values + option->offset) = true;
        return AR_OK;
    }
    if (pair->alone || (pair->value[0] == '\0' && option->type != AR_OPTION_TEXT))
        return ar_invalid(error, "a value is missing; write %s=VALUE", option->name);
    return read_value(option, pair->value, values, error);
}

enum ar_status ar_options_read(const struct ar_option *table, const struct ar_spec_link *link,
                               const char *owner, void *values, struct ar_error *error)
{
    for (const struct ar_option *option = table; option && option->name; option++) {
        if (!option->default_text)
            continue;
        AR_TRY(ar_error_prefix(error, read_value(option, option->default_text, values, error),
                               "%s, default of option %s", owner, option->name));
    }
    for (size_t i = 0; i < link->pair_count; i++) {
        const struct ar_spec_pair *pair = &link->pairs[i];
        const struct ar_option *option = ar_options_find(table, pair->key);
        if (!option)
            return unknown(table, owner, pair->key, error);
        for (size_t j = 0; j < i; j++)
            if (strcmp(link->pairs[j].key, pair->key) == 0)
                return ar_invalid(error, "%s, option %s: it is given twice; leave one", owner,
                                  pair->key);
        AR_TRY(ar_error_prefix(error, read_pair(option, pair, values, error), "%s, option %s",
                               owner, option->name));
    }
    return AR_OK;
}
