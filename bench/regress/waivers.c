#include "bench/regress/verdict.h"

#include <fnmatch.h>

#include "allocators/base/array.h"
#include "allocators/base/size.h"
#include "allocators/options.h"
#include "bench/suite/ini.h"

bool waivers_is_date(const char *text)
{
    static const int days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    for (size_t i = 0; i < 10; i++)
        if (i == 4 || i == 7 ? text[i] != '-' : text[i] < '0' || text[i] > '9')
            return false;
    int month = atoi(text + 5);
    int day = atoi(text + 8);
    return text[10] == '\0' && month >= 1 && month <= 12 && day >= 1 && day <= days[month - 1];
}

/* The waiver of a section; the first line of the section adds it. */
static struct waiver *waiver_of(struct waivers *self, const char *section)
{
    const char *name = section + strlen("waiver");
    name += strspn(name, " \t");
    for (size_t i = 0; i < self->count; i++)
        if (strcmp(self->items[i].name, name) == 0)
            return &self->items[i];
    struct waiver waiver = {.name = strdup(name), .at_most = -1};
    if (waiver.name && AR_ARRAY_ADD(self->items, self->count, self->room, waiver))
        return &self->items[self->count - 1];
    free(waiver.name);
    return NULL;
}

static enum ar_status set_text(char **place, const char *key, const char *value,
                               struct ar_error *error)
{
    if (*place)
        return ar_invalid(error, "the key \"%s\" is given twice; give it once", key);
    if (!value[0])
        return ar_invalid(error, "the key \"%s\" is empty", key);
    *place = strdup(value);
    return *place ? AR_OK : ar_no_memory(error, "the waivers");
}

/* The same of a pattern. fnmatch would take a [ without a ] for a character of the name. */
static enum ar_status set_pattern(char **place, const char *key, const char *value,
                                  struct ar_error *error)
{
    for (const char *at = value; (at = strpbrk(at, "\\[")) != NULL; at++)
        if (*at == '\\' && at[1])
            at++;
        else if (*at == '[' && !strchr(at, ']'))
            return ar_invalid(error, "the pattern \"%.60s\" has a [ without a ]", value);
    return set_text(place, key, value, error);
}

static enum ar_status set_most(struct waiver *waiver, const char *value, struct ar_error *error)
{
    double percent;
    const char *end = ar_decimal_parse(value, &percent);
    if (!end || strcmp(end + strspn(end, " "), "%") != 0 || !(percent >= 0 && percent <= 1e6))
        return ar_invalid(error, "at-most is \"%.40s\"; write a share such as 5%%", value);
    waiver->at_most = percent / 100;
    return AR_OK;
}

static enum ar_status set_key(struct waiver *waiver, const char *key, const char *value,
                              struct ar_error *error)
{
    static const char *const keys[] = {"metric", "policy", "workload", "commit",
                                       "reason", "until",  "at-most"};
    if (strcmp(key, "metric") == 0)
        return set_pattern(&waiver->metric, key, value, error);
    if (strcmp(key, "policy") == 0)
        return set_pattern(&waiver->policy, key, value, error);
    if (strcmp(key, "workload") == 0)
        return set_pattern(&waiver->workload, key, value, error);
    if (strcmp(key, "commit") == 0)
        return set_pattern(&waiver->commit, key, value, error);
    if (strcmp(key, "reason") == 0)
        return set_text(&waiver->reason, key, value, error);
    if (strcmp(key, "at-most") == 0)
        return set_most(waiver, value, error);
    if (strcmp(key, "until") == 0) {
        if (!waivers_is_date(value))
            return ar_invalid(error, "until is \"%.40s\"; write a date such as 2027-01-31", value);
        memcpy(waiver->until, value, sizeof waiver->until);
        return AR_OK;
    }
    const char *near = ar_nearest_name(key, keys, AR_COUNT(keys));
    return ar_invalid(error, "there is no key \"%.60s\" here; did you mean \"%s\"?", key,
                      near ? near : "metric");
}

static enum ar_status read_entry(void *argument, const struct ini_line *line,
                                 struct ar_error *error)
{
    const char *key = NULL;
    const char *value = NULL;
    AR_TRY(ini_split(line, &key, &value, error));
    struct waiver *waiver = waiver_of(argument, line->section);
    return ar_error_prefix(
        error, waiver ? set_key(waiver, key, value, error) : ar_no_memory(error, "the waivers"),
        "%s:%u", line->path, line->number);
}

enum ar_status waivers_read(struct waivers *self, const char *path, struct ar_error *error)
{
    static const char *const sections[] = {"waiver *"};
    *self = (struct waivers){0};
    AR_TRY(ini_read(path, sections, 1, read_entry, self, error));
    for (size_t i = 0; i < self->count; i++) {
        const struct waiver *waiver = &self->items[i];
        if (!waiver->reason || !waiver->until[0])
            return ar_invalid(error, "%s: waiver %s has no %s; each needs one", path, waiver->name,
                              waiver->reason ? "date (until)" : "reason");
    }
    return AR_OK;
}

void waivers_expire(struct waivers *self, const char *today)
{
    for (size_t i = 0; i < self->count; i++)
        self->items[i].expired = strcmp(self->items[i].until, today) < 0;
}

void waivers_close(struct waivers *self)
{
    for (size_t i = 0; i < self->count; i++) {
        free(self->items[i].name);
        free(self->items[i].metric);
        free(self->items[i].policy);
        free(self->items[i].workload);
        free(self->items[i].commit);
        free(self->items[i].reason);
    }
    free(self->items);
    *self = (struct waivers){0};
}

static bool matches(const char *pattern, const char *text)
{
    return !pattern || fnmatch(pattern, text, 0) == 0;
}

static bool names(const struct waiver *self, const struct waiver_case *of)
{
    return matches(self->metric, of->metric) && matches(self->policy, of->policy) &&
           (matches(self->workload, of->workload) || matches(self->workload, of->workload_name)) &&
           (!self->commit || (of->commit && matches(self->commit, of->commit)));
}

/* A change without a size, such as a run that no longer finishes, exceeds every limit. */
static bool is_within(const struct waiver *self, const struct waiver_case *of)
{
    return self->at_most < 0 || (of->change >= 0 && of->change <= self->at_most);
}

const struct waiver *waivers_find(struct waivers *self, const struct waiver_case *of)
{
    struct waiver *found = NULL;
    for (size_t i = 0; i < self->count; i++) {
        struct waiver *waiver = &self->items[i];
        if (names(waiver, of) && is_within(waiver, of) &&
            (!found || (found->expired && !waiver->expired)))
            found = waiver;
    }
    if (found)
        found->used = true;
    for (size_t i = 0; i < self->count && (!found || found->expired); i++)
        self->items[i].exceeded |= names(&self->items[i], of) && !is_within(&self->items[i], of);
    return found;
}
