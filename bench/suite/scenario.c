#include "bench/suite/scenario.h"

#include <ctype.h>
#include <math.h>

#include "allocators/base/array.h"
#include "allocators/base/fnv.h"
#include "allocators/base/size.h"
#include "allocators/options.h"
#include "bench/report/sentence.h"

#define TOLERANCE_DEFAULT 0.05

static enum ar_status no_memory(const struct scenario *self, struct ar_error *error)
{
    return ar_error_set(error, AR_HOST_MEMORY, "%s: no host memory for the scenario", self->path);
}

/* A copy of a text that the file owns; NULL: no host memory. */
static const char *scenario_text(struct scenario *self, const char *text, size_t length)
{
    uint32_t index;
    return texts_intern(&self->texts, text, length, &index, NULL) ? NULL : self->texts.items[index];
}

/* ---- sections and keys ---------------------------------------------------------------------- */

struct scenario_section *scenario_find(const struct scenario *self, const char *name)
{
    for (size_t i = 0; i < self->section_count; i++) {
        struct scenario_section *section = &self->sections[i];
        if (!strcmp(section->name[0] ? section->name : section->kind, name))
            return section;
    }
    return NULL;
}

static struct scenario_key *find_key(const struct scenario_section *self, const char *name)
{
    for (size_t i = 0; i < self->key_count; i++)
        if (!strcmp(self->keys[i].name, name))
            return &self->keys[i];
    return NULL;
}

const char *scenario_value(const struct scenario_section *self, const char *key)
{
    const struct scenario_key *found = self ? find_key(self, key) : NULL;
    return found ? found->value : NULL;
}

/* Whether a text is a name: letters, digits, _ and -, the first a letter. */
static bool is_name(const char *text)
{
    if (!isalpha((unsigned char)text[0]))
        return false;
    while (isalnum((unsigned char)*text) || *text == '_' || *text == '-')
        text++;
    return !*text;
}

static bool is_list(const char *section)
{
    return !strcmp(section, "schedule") || !strcmp(section, "reported") ||
           !strcmp(section, "unknown");
}

static enum ar_status begin_section(void *argument, const struct ini_line *line,
                                    struct ar_error *error)
{
    struct scenario *self = argument;
    if (is_list(line->section)) {
        unsigned *known = !strcmp(line->section, "schedule")   ? &self->schedule_line
                          : !strcmp(line->section, "reported") ? &self->reported_line
                                                               : &self->unknown_line;
        if (*known)
            return ar_error_set(error, AR_FORMAT,
                                "%s:%u: there is a [%s] already, in line %u; write all of it there",
                                line->path, line->section_number, line->section, *known);
        *known = line->section_number;
        return AR_OK;
    }
    const char *blank = strchr(line->section, ' ');
    size_t kind = blank ? (size_t)(blank - line->section) : strlen(line->section);
    const char *name = blank ? blank + 1 : "";
    while (*name == ' ')
        name++;
    const struct scenario_section *other = scenario_find(self, blank ? name : line->section);
    if (other)
        return ar_error_set(
            error, AR_FORMAT,
            "%s:%u: [%s]: there is a [%s%s%s] already, in line %u; choose another name", line->path,
            line->section_number, line->section, other->kind, other->name[0] ? " " : "",
            other->name, other->line);
    if (blank && (!is_name(name) || !strcmp(name, "machine") || is_list(name) ||
                  !strcmp(name, "cycle") || !strcmp(name, "drift")))
        return ar_error_set(
            error, AR_FORMAT,
            "%s:%u: [%s]: \"%s\" is no name of a process or part; write letters, digits, _ and "
            "-, a letter first, and not machine, schedule, reported, unknown, cycle or drift",
            line->path, line->section_number, line->section, name);
    if (self->section_count == SCENARIO_SECTIONS)
        return ar_error_set(error, AR_FORMAT, "%s:%u: there are more than %d sections", line->path,
                            line->section_number, SCENARIO_SECTIONS);
    struct scenario_section section = {.kind = scenario_text(self, line->section, kind),
                                       .name = scenario_text(self, name, strlen(name)),
                                       .line = line->section_number};
    return section.kind && section.name &&
                   AR_ARRAY_ADD(self->sections, self->section_count, self->section_room, section)
               ? AR_OK
               : no_memory(self, error);
}

static enum ar_status set_key(struct scenario *self, struct scenario_section *section,
                              const char *name, const char *value, unsigned line,
                              struct ar_error *error)
{
    struct scenario_key key = {.value = scenario_text(self, value, strlen(value)), .line = line};
    struct scenario_key *known = find_key(section, name);
    key.name = known ? known->name : scenario_text(self, name, strlen(name));
    if (!key.name || !key.value)
        return no_memory(self, error);
    if (known) {
        *known = key;
        return AR_OK;
    }
    return AR_ARRAY_ADD(section->keys, section->key_count, section->key_room, key)
               ? AR_OK
               : no_memory(self, error);
}

static enum ar_status section_line(struct scenario *self, const struct ini_line *line,
                                   const char *key, const char *value, struct ar_error *error)
{
    struct scenario_section *section = &self->sections[self->section_count - 1];
    const struct scenario_key *other = find_key(section, key);
    if (other)
        return ar_error_set(error, AR_FORMAT,
                            "%s:%u: %s is given a second time, first in line %u; leave one out",
                            line->path, line->number, key, other->line);
    return set_key(self, section, key, value, line->number, error);
}

/* ---- the schedule --------------------------------------------------------------------------- */

/* The next piece of `*text` up to one of `ends`, without blanks around it. False: none is left. */
static bool next_piece(const char **text, const char *ends, const char **piece, size_t *length)
{
    if (!*text)
        return false;
    const char *begin = *text;
    size_t count = strcspn(begin, ends);
    *text = begin[count] ? begin + count + 1 : NULL;
    while (count && isspace((unsigned char)*begin))
        begin++, count--;
    while (count && isspace((unsigned char)begin[count - 1]))
        count--;
    *piece = begin;
    *length = count;
    return true;
}

/* Copies words with one blank between them. `out` has room for `length` bytes and a NUL. */
static void join_words(const char *text, size_t length, char *out)
{
    size_t used = 0;
    for (size_t i = 0; i < length; i++)
        if (!isspace((unsigned char)text[i])) {
            if (used && isspace((unsigned char)text[i - 1]))
                out[used++] = ' ';
            out[used++] = text[i];
        }
    out[used] = '\0';
}

/* Where an error is: the line, or --set. */
static enum ar_status step_bad(const struct scenario *self, unsigned line, const char *what,
                               const char *text, struct ar_error *error)
{
    return line
               ? ar_error_set(error, AR_FORMAT, "%s:%u: \"%.80s\" %s", self->path, line, text, what)
               : ar_invalid(error, "\"%.80s\" %s", text, what);
}

static enum ar_status read_call(struct scenario *self, const char *text, unsigned line,
                                struct scenario_call *call, struct ar_error *error)
{
    const char *dot = strchr(text, '.'), *blank = strchr(text, ' ');
    char name[128];
    size_t part = dot ? (size_t)(dot - text) : 0;
    snprintf(name, sizeof name, "%.*s", (int)(part < sizeof name ? part : 0), text);
    if (!dot || (blank && blank < dot) || !is_name(name) || !isalpha((unsigned char)dot[1]))
        return step_bad(self, line,
                        "is no step; write PART.ACTION and its arguments, as in `actor.train` or "
                        "`engine.sleep 1`, with commas between steps",
                        text, error);
    call->part = scenario_text(self, text, part);
    call->action =
        scenario_text(self, dot + 1, blank ? (size_t)(blank - dot - 1) : strlen(dot + 1));
    call->arguments = scenario_text(self, blank ? blank + 1 : "", blank ? strlen(blank + 1) : 0);
    return call->part && call->action && call->arguments ? AR_OK : no_memory(self, error);
}

static enum ar_status read_step(struct scenario *self, const char *text, unsigned line,
                                struct scenario_step *step, struct ar_error *error)
{
    AR_FREED char *joined = malloc(strlen(text) + 1);
    AR_FREED char *shown = malloc(2 * strlen(text) + 1);
    const char *rest = text, *piece;
    size_t length, used = 0;
    *step = (struct scenario_step){.line = line};
    if (!joined || !shown)
        return no_memory(self, error);
    while (next_piece(&rest, "&", &piece, &length)) {
        join_words(piece, length, joined);
        if (step->call_count == SCENARIO_CALLS)
            return step_bad(self, line, "has more than 8 actions side by side", text, error);
        AR_TRY(read_call(self, joined, line, &step->calls[step->call_count], error));
        for (size_t i = 0; i < step->call_count; i++)
            if (!strcmp(step->calls[i].part, step->calls[step->call_count].part))
                return step_bad(self, line, "has two actions of one part side by side", text,
                                error);
        used += (size_t)sprintf(shown + used, "%s%s", step->call_count ? " & " : "", joined);
        step->call_count++;
    }
    step->text = scenario_text(self, shown, used);
    return step->text ? AR_OK : no_memory(self, error);
}

static const char *const list_names[SCENARIO_LISTS] = {"start", "cycle", "end"};

static enum ar_status add_steps(struct scenario *self, enum scenario_list list, const char *text,
                                unsigned line, struct ar_error *error)
{
    struct scenario_steps *steps = &self->lists[list];
    const char *piece;
    size_t length, before = steps->count;
    while (next_piece(&text, ",", &piece, &length)) {
        struct scenario_step step;
        AR_FREED char *one = strndup(piece, length);
        if (!one)
            return no_memory(self, error);
        if (steps->count == SCENARIO_STEPS)
            return step_bad(self, line, "is one step too many; repeat them with cycles = N", one,
                            error);
        if (length)
            AR_TRY(read_step(self, one, line, &step, error));
        if (length && !AR_ARRAY_ADD(steps->at, steps->count, steps->room, step))
            return no_memory(self, error);
    }
    return line && steps->count == before
               ? step_bad(self, line, "has no step; write PART.ACTION, .. or leave the line out",
                          list_names[list], error)
               : AR_OK;
}

/* `line` 0: of an edit, which replaces a list. */
static enum ar_status schedule_key(struct scenario *self, const char *key, const char *value,
                                   unsigned line, struct ar_error *error)
{
    uint64_t cycles;
    for (int list = 0; list < SCENARIO_LISTS; list++)
        if (!strcmp(key, list_names[list])) {
            if (!line)
                self->lists[list].count = 0;
            return add_steps(self, (enum scenario_list)list, value, line, error);
        }
    if (strcmp(key, "cycles") != 0)
        return step_bad(self, line, "is no key of [schedule]; it has start, cycle, end and cycles",
                        key, error);
    if (ar_count_parse(value, &cycles, NULL) || cycles > SCENARIO_CYCLES)
        return step_bad(self, line, "is no number of cycles; write 0 to 1000000", value, error);
    if (line && self->cycles_line) {
        char first[80];
        snprintf(first, sizeof first, "is given a second time, first in line %u; leave one out",
                 self->cycles_line);
        return step_bad(self, line, first, key, error);
    }
    self->cycles_line = line;
    self->cycles = cycles;
    return AR_OK;
}

enum ar_status scenario_check_cycles(const struct scenario *self, struct ar_error *error)
{
    char cycles[32];
    if (self->cycles <= 1 || self->lists[SCENARIO_CYCLE].count)
        return AR_OK;
    snprintf(cycles, sizeof cycles, "cycles = %" PRIu64, self->cycles);
    return step_bad(self, self->cycles_line,
                    "repeats nothing; write cycle = PART.ACTION, .. or leave cycles out", cycles,
                    error);
}

/* ---- reported figures ------------------------------------------------------------------------ */

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
    char list[400] = "";
    for (int i = 0; i < SCENARIO_QUANTITY_COUNT; i++) {
        names[i] = quantities[i].name;
        text_add(list, sizeof list, "%s%s%s", i ? ", " : "", names[i],
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
    case SCENARIO_VALUE_NUMBER:
        negative = *text == '-';
        if (ar_number_parse(text, &out->value) && isdigit((unsigned char)text[negative]) &&
            fabs(out->value) < 1e18)
            return AR_OK;
        text += negative;
        if (scenario_bytes_parse(text, &number, NULL))
            return bad(line, out->given, "is no number and no size", error);
        break;
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
    double part;
    const char *end = ar_decimal_parse(value, &part);
    if (end && *end == '%' && end[1] == '\0') {
        part /= 100;
        end++;
    }
    if (!end || *end || !isdigit((unsigned char)*value) || !(part <= 1))
        return bad(line, value, "is no tolerance; write 5% or 0.05", error);
    self->tolerance = part;
    return AR_OK;
}

static enum ar_status scenario_reported_line(struct scenario *self, const struct ini_line *line,
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
    AR_TRY(take_place(self, line, text, &one, error));
    AR_TRY(take_value(line, &one, error));
    if (!AR_ARRAY_ADD(self->reported, self->reported_count, self->reported_room, one))
        return ar_error_set(error, AR_HOST_MEMORY, "%s: no host memory", line->path);
    return AR_OK;
}

size_t scenario_combinations(const struct scenario *self)
{
    size_t count = 1;
    for (size_t i = 0; i < self->unknown_count; i++)
        count *= self->unknown[i].count;
    return count;
}

/* SECTION.KEY = VALUE | VALUE .. */
static enum ar_status take_unknown(struct scenario *self, const struct ini_line *line,
                                   const char *name, const char *values, struct ar_error *error)
{
    struct scenario_unknown one = {.line = line->number};
    const char *dot = strchr(name, '.'), *piece;
    const size_t runs = scenario_combinations(self);
    size_t length;
    if (!dot || dot == name || !dot[1])
        return bad(line, name, "is no input; write SECTION.KEY = VALUE | VALUE", error);
    one.section = scenario_text(self, name, (size_t)(dot - name));
    one.key = scenario_text(self, dot + 1, strlen(dot + 1));
    if (!one.section || !one.key)
        return no_memory(self, error);
    for (size_t i = 0; i < self->unknown_count; i++)
        if (!strcmp(self->unknown[i].section, one.section) &&
            !strcmp(self->unknown[i].key, one.key))
            return bad(line, name, "is there already; write all of its values in one line", error);
    while (next_piece(&values, "|", &piece, &length)) {
        if (!length || one.count == SCENARIO_VALUES || runs * (one.count + 1) > SCENARIO_RUNS)
            return bad(line, name,
                       "has no values, or too many; write at most 8, with | between, "
                       "and at most 64 combinations in all",
                       error);
        if (!(one.values[one.count++] = scenario_text(self, piece, length)))
            return no_memory(self, error);
    }
    return AR_ARRAY_ADD(self->unknown, self->unknown_count, self->unknown_room, one)
               ? AR_OK
               : no_memory(self, error);
}

/* ---- the file ------------------------------------------------------------------------------- */

static enum ar_status take_line(void *argument, const struct ini_line *line, struct ar_error *error)
{
    struct scenario *self = argument;
    const char *key, *value;
    if (!strcmp(line->section, "reported"))
        return scenario_reported_line(self, line, error);
    AR_TRY(ini_split(line, &key, &value, error));
    if (!strcmp(line->section, "unknown"))
        return take_unknown(self, line, key, value, error);
    return !strcmp(line->section, "schedule") ? schedule_key(self, key, value, line->number, error)
                                              : section_line(self, line, key, value, error);
}

enum ar_status scenario_read(const char *path, const char *const *kinds, size_t kind_count,
                             struct scenario *out, struct ar_error *error)
{
    static const char *const fixed[] = {"machine", "schedule", "reported", "unknown", "process *"};
    enum { FIXED = AR_COUNT(fixed) };
    *out = (struct scenario){.path = path, .cycles = 1, .tolerance = TOLERANCE_DEFAULT};
    char(*room)[64] = calloc(kind_count + 1, sizeof *room);
    const char **sections = calloc(FIXED + kind_count, sizeof *sections);
    enum ar_status status = room && sections ? AR_OK : no_memory(out, error);
    for (size_t i = 0; !status && i < FIXED; i++)
        sections[i] = fixed[i];
    for (size_t i = 0; !status && i < kind_count; i++) {
        snprintf(room[i], sizeof room[i], "%s *", kinds[i]);
        sections[FIXED + i] = room[i];
    }
    AR_THEN(status, ini_read_sections(path, sections, FIXED + kind_count, begin_section, take_line,
                                      out, error));
    free(room);
    free((void *)sections);
    if (status)
        scenario_close(out);
    return status;
}

static void *copy_of(const void *items, size_t count, size_t bytes)
{
    void *copy = malloc(count ? count * bytes : 1);
    if (copy && count)
        memcpy(copy, items, count * bytes);
    return copy;
}

enum ar_status scenario_copy(const struct scenario *from, struct scenario *out,
                             struct ar_error *error)
{
    *out = *from;
    out->texts = (struct texts){0};
    bool good = (out->sections =
                     copy_of(from->sections, from->section_count, sizeof *from->sections)) != NULL;
    out->section_room = good ? from->section_count : 0;
    if (!good)
        out->section_count = 0;
    for (size_t i = 0; i < out->section_count; i++) {
        struct scenario_section *section = &out->sections[i];
        section->keys = copy_of(section->keys, section->key_count, sizeof *section->keys);
        section->key_room = section->key_count;
        good = good && section->keys;
    }
    for (int i = 0; i < SCENARIO_LISTS; i++) {
        struct scenario_steps *list = &out->lists[i];
        list->at = copy_of(list->at, list->count, sizeof *list->at);
        list->room = list->count;
        good = good && list->at;
    }
    out->reported = copy_of(from->reported, from->reported_count, sizeof *from->reported);
    out->reported_room = from->reported_count;
    out->unknown = copy_of(from->unknown, from->unknown_count, sizeof *from->unknown);
    out->unknown_room = from->unknown_count;
    if (good && out->reported && out->unknown)
        return AR_OK;
    scenario_close(out);
    return no_memory(from, error);
}

void scenario_close(struct scenario *self)
{
    for (size_t i = 0; i < self->section_count; i++)
        free(self->sections[i].keys);
    free(self->sections);
    for (int i = 0; i < SCENARIO_LISTS; i++)
        free(self->lists[i].at);
    free(self->reported);
    free(self->unknown);
    texts_close(&self->texts);
    *self = (struct scenario){0};
}

/* ---- edits ---------------------------------------------------------------------------------- */

enum ar_status scenario_set(struct scenario *self, const char *name, const char *key,
                            const char *value, unsigned line, struct ar_error *error)
{
    if (!strcmp(name, "schedule"))
        return schedule_key(self, key, value ? value : "", 0, error);
    struct scenario_section *section = scenario_find(self, name);
    if (!section) {
        const char *names[SCENARIO_SECTIONS + 1] = {"schedule"};
        size_t count = 1;
        for (size_t i = 0; i < self->section_count; i++)
            names[count++] =
                self->sections[i].name[0] ? self->sections[i].name : self->sections[i].kind;
        return ar_name_unknown("there is no process or part", name, names, count, NULL, error);
    }
    if (value)
        return set_key(self, section, key, value, line, error);
    struct scenario_key *known = find_key(section, key);
    if (known)
        AR_ARRAY_REMOVE(section->keys, section->key_count, (size_t)(known - section->keys));
    return AR_OK;
}

enum ar_status scenario_set_text(struct scenario *self, const char *text, struct ar_error *error)
{
    const char *equals = strchr(text, '='), *dot = strchr(text, '.');
    if (!equals || !dot || dot == text || dot > equals || dot + 1 == equals)
        return ar_invalid(error,
                          "\"%.80s\" is no change; write SECTION.KEY=VALUE, as in "
                          "engine.max_num_seqs=64 or schedule.cycles=10",
                          text);
    AR_FREED char *section = strndup(text, (size_t)(dot - text));
    AR_FREED char *key = strndup(dot + 1, (size_t)(equals - dot - 1));
    return section && key ? scenario_set(self, section, key, equals + 1, 0, error)
                          : no_memory(self, error);
}

enum ar_status scenario_insert(struct scenario *self, enum scenario_list list, size_t place,
                               const char *text, struct ar_error *error)
{
    struct scenario_steps *steps = &self->lists[list];
    struct scenario_step step;
    AR_TRY(read_step(self, text, 0, &step, error));
    if (!ar_array_make_room(&steps->at, steps->count, &steps->room, sizeof *steps->at))
        return no_memory(self, error);
    place = place < steps->count ? place : steps->count;
    AR_ARRAY_INSERT(steps->at, steps->count, place, step);
    return AR_OK;
}

void scenario_remove(struct scenario *self, enum scenario_list list, size_t place)
{
    struct scenario_steps *steps = &self->lists[list];
    if (place < steps->count)
        AR_ARRAY_REMOVE(steps->at, steps->count, place);
}

static uint64_t add_text(uint64_t hash, const char *text)
{
    return ar_fnv64(hash, text, strlen(text) + 1);
}

uint64_t scenario_hash(const struct scenario *self)
{
    uint64_t hash = ar_fnv64(AR_FNV64_SEED, &self->cycles, sizeof self->cycles);
    for (size_t i = 0; i < self->section_count; i++) {
        const struct scenario_section *section = &self->sections[i];
        hash = add_text(add_text(hash, section->kind), section->name);
        for (size_t k = 0; k < section->key_count; k++)
            hash = add_text(add_text(hash, section->keys[k].name), section->keys[k].value);
        hash = add_text(hash, "");
    }
    for (int i = 0; i < SCENARIO_LISTS; i++) {
        for (size_t k = 0; k < self->lists[i].count; k++)
            hash = add_text(hash, self->lists[i].at[k].text);
        hash = add_text(hash, "");
    }
    return hash;
}
