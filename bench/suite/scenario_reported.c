#include "bench/suite/scenario_reported.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/array.h"
#include "allocators/base/size.h"
#include "allocators/options.h"

static const struct {
    const char *name;
    enum scenario_value_kind value;
} quantities[SCENARIO_QUANTITY_COUNT] = {
#define X(name, text, value) [SCENARIO_##name] = {text, SCENARIO_VALUE_##value},
    SCENARIO_QUANTITIES(X)
#undef X
};

const char *scenario_quantity_name(enum scenario_quantity quantity)
{
    return quantities[quantity].name;
}

enum scenario_value_kind scenario_quantity_kind(enum scenario_quantity quantity)
{
    return quantities[quantity].value;
}

const char *scenario_outcome_name(int outcome)
{
    return outcome == SCENARIO_FITS      ? "fits"
           : outcome == SCENARIO_REFUSED ? "refused"
                                         : "out of memory";
}

enum ar_status scenario_bytes_parse(const char *text, uint64_t *bytes, struct ar_error *error)
{
    char joined[64];
    size_t digits = strspn(text, "0123456789.");
    const char *unit = text + digits + strspn(text + digits, " ");
    if (digits + strlen(unit) >= sizeof joined)
        return ar_size_parse(text, bytes, error);
    snprintf(joined, sizeof joined, "%.*s%s", (int)digits, text, unit);
    return ar_size_parse(joined, bytes, error);
}

static enum ar_status bad(const struct ini_line *line, const char *text, const char *what,
                          struct ar_error *error)
{
    return ar_error_set(error, AR_FORMAT, "%s:%u: \"%.80s\" %s", line->path, line->number, text,
                        what);
}

/* Whether a quantity is written with a name after it. */
static bool has_name(enum scenario_quantity quantity)
{
    return quantity == SCENARIO_OWNER || quantity == SCENARIO_FIGURE;
}

/* The quantity that a text names, and the name of `owner NAME`. */
static bool find_quantity(const char *text, struct scenario_reported *out)
{
    for (int i = 0; i < SCENARIO_QUANTITY_COUNT; i++) {
        const char *name = quantities[i].name;
        size_t length = strlen(name);
        bool named = has_name((enum scenario_quantity)i);
        if (i == SCENARIO_DRIFT || strncmp(text, name, length) != 0 ||
            (named ? text[length] != ' ' : text[length] != '\0'))
            continue;
        out->quantity = (enum scenario_quantity)i;
        out->name = named ? text + length + 1 : "";
        return true;
    }
    return false;
}

static enum ar_status unknown_quantity(const struct ini_line *line, const char *text,
                                       struct ar_error *error)
{
    const char *names[SCENARIO_QUANTITY_COUNT];
    char list[400];
    size_t used = 0;
    for (int i = 0; i < SCENARIO_QUANTITY_COUNT; i++) {
        names[i] = quantities[i].name;
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s%s", i ? ", " : "", names[i],
                                 has_name((enum scenario_quantity)i) ? " NAME"
                                 : i == SCENARIO_DRIFT               ? " STEP"
                                                                     : "");
    }
    const char *near = ar_nearest_name(text, names, SCENARIO_QUANTITY_COUNT);
    return near
               ? ar_error_set(error, AR_FORMAT, "%s:%u: \"%.80s\" is no figure; did you mean %s?",
                              line->path, line->number, text, near)
               : ar_error_set(error, AR_FORMAT,
                              "%s:%u: \"%.80s\" is no figure; write [cycle N] STEP: and one of: %s",
                              line->path, line->number, text, list);
}

static enum ar_status take_value(const struct ini_line *line, struct scenario_reported *out,
                                 struct ar_error *error)
{
    uint64_t number = 0;
    bool negative = false;
    const char *text = out->given;
    switch (quantities[out->quantity].value) {
    case SCENARIO_VALUE_OUTCOME:
        for (int outcome = SCENARIO_REFUSED; outcome <= SCENARIO_FITS; outcome++)
            if (!strcmp(text, scenario_outcome_name(outcome))) {
                out->value = outcome;
                return AR_OK;
            }
        return bad(line, text, "is no outcome; write fits, out of memory or refused", error);
    case SCENARIO_VALUE_COUNT:
        if (ar_count_parse(text, &number, NULL))
            return bad(line, text, "is no number; write digits alone", error);
        break;
    case SCENARIO_VALUE_NUMBER: {
        char *end;
        out->value = strtod(text, &end);
        if (end > text && !*end && isdigit((unsigned char)*text) && out->value < 1e18)
            return AR_OK;
        if (scenario_bytes_parse(text, &number, NULL))
            return bad(line, text, "is no number and no size", error);
        break;
    }
    case SCENARIO_VALUE_SIGNED:
        negative = *text == '-';
        text += negative || *text == '+';
        __attribute__((fallthrough));
    case SCENARIO_VALUE_BYTES:
        if (scenario_bytes_parse(text, &number, NULL))
            return bad(line, out->given, "is no size; write a number with KiB, MiB or GiB", error);
        break;
    }
    out->value = negative ? -(double)number : (double)number;
    return AR_OK;
}

/* Reads `cycle N` or `cycle last` before a step. Returns the text after it; NULL: it is wrong. */
static const char *take_cycle(const char *text, uint64_t *cycle)
{
    char word[24];
    if (strncmp(text, "cycle ", 6) != 0)
        return text;
    text += 6;
    size_t length = strcspn(text, " ");
    snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : 0), text);
    if (!strcmp(word, "last"))
        *cycle = SCENARIO_CYCLE_LAST;
    else if (ar_count_parse(word, cycle, NULL) || !*cycle || *cycle == SCENARIO_CYCLE_LAST)
        return NULL;
    return text[length] ? text + length + 1 : NULL;
}

static void squeeze(char *text)
{
    char *to = text;
    for (const char *at = text; *at; at++)
        if (!isspace((unsigned char)*at) || (to > text && to[-1] != ' '))
            *to++ = isspace((unsigned char)*at) ? ' ' : *at;
    to -= to > text && to[-1] == ' ';
    *to = '\0';
}

/* [cycle N] STEP: QUANTITY; drift STEP; QUANTITY. `text` has one blank between words. */
static enum ar_status take_place(struct scenario *self, const struct ini_line *line,
                                 const char *text, struct scenario_reported *out,
                                 struct ar_error *error)
{
    const char *colon = strstr(text, ": ");
    if (!strncmp(text, "drift ", 6)) {
        out->quantity = SCENARIO_DRIFT;
        out->step = text + 6;
        return AR_OK;
    }
    const char *name = colon ? colon + 2 : text;
    if (!find_quantity(name, out))
        return unknown_quantity(line, name, error);
    if (!colon)
        return AR_OK;
    const char *step = take_cycle(text, &out->cycle);
    if (!step || step >= colon)
        return bad(line, text, "has no cycle; write `cycle 3 STEP: ...` or `cycle last STEP: ...`",
                   error);
    out->step = scenario_text(self, step, (size_t)(colon - step));
    return out->step ? AR_OK
                     : ar_error_set(error, AR_HOST_MEMORY, "%s: no host memory", line->path);
}

static enum ar_status take_tolerance(struct scenario *self, const struct ini_line *line,
                                     const char *value, struct ar_error *error)
{
    char *end;
    double part = strtod(value, &end);
    if (*end == '%' && end[1] == '\0') {
        part /= 100;
        end++;
    }
    if (end == value || *end || !isdigit((unsigned char)*value) || !(part <= 1))
        return bad(line, value, "is no tolerance; write 5% or 0.05", error);
    self->tolerance = part;
    return AR_OK;
}

enum ar_status scenario_reported_line(struct scenario *self, const struct ini_line *line,
                                      struct ar_error *error)
{
    char *equals = strrchr(line->text, '=');
    char *first = strchr(line->text, '=');
    /* An address may contain an equals sign. */
    bool is_source = !strncmp(line->text, "source", 6) && first &&
                     strspn(line->text + 6, " \t") == (size_t)(first - line->text - 6);
    equals = is_source ? first : equals;
    if (!equals || equals == line->text)
        return bad(line, line->text,
                   "is no figure; write STEP: QUANTITY = VALUE, as in `engine.sleep 1: card used = "
                   "5.6GiB`",
                   error);
    *equals = '\0';
    squeeze(line->text);
    char *given = equals + 1 + strspn(equals + 1, " \t");
    const char *text = scenario_text(self, line->text, strlen(line->text));
    const char *value = scenario_text(self, given, strlen(given));
    struct scenario_reported one = {.line = line->number, .text = text, .given = value, .name = ""};
    if (!text || !value)
        return ar_error_set(error, AR_HOST_MEMORY, "%s: no host memory", line->path);
    if (is_source) {
        self->source = value;
        return AR_OK;
    }
    if (!strcmp(text, "tolerance"))
        return take_tolerance(self, line, value, error);
    if (self->reported_count == SCENARIO_REPORTED)
        return bad(line, text, "is one figure too many", error);
    enum ar_status status = take_place(self, line, text, &one, error);
    if (!status)
        status = take_value(line, &one, error);
    if (!status && !AR_ARRAY_ADD(self->reported, self->reported_count, self->reported_room, one))
        status = ar_error_set(error, AR_HOST_MEMORY, "%s: no host memory", line->path);
    return status;
}
