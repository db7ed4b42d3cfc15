/* A suite has six sections. [suite], [slowdown], [grid]: key = value.
 * [policies], [workloads], [devices]: one name a line, since specs hold equals signs. */
#include "bench/suite/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/array.h"
#include "allocators/base/size.h"
#include "allocators/options.h"
#include "allocators/registry.h"
#include "bench/suite/axes.h"
#include "bench/suite/ini.h"

static const char *const sections[] = {"suite",   "policies", "workloads",
                                       "devices", "slowdown", "grid"};
#define SECTION_COUNT (sizeof sections / sizeof sections[0])

void suite_init(struct suite *self)
{
    *self = (struct suite){
        .frees = REPLAY_ORDERED,
        .host = REPLAY_HOST_NONE,
        .measure = REPLAY_METRICS_EXACT,
        .timeout_s = 600,
        .draws = 1,
        .seed = 1,
    };
}

void text_list_close(struct text_list *self)
{
    for (size_t i = 0; i < self->count; i++)
        free(self->items[i]);
    free(self->items);
    *self = (struct text_list){0};
}

void suite_close(struct suite *self)
{
    free(self->name);
    free(self->output);
    free(self->against);
    text_list_close(&self->policies);
    text_list_close(&self->workloads);
    text_list_close(&self->devices);
    text_list_close(&self->capacities);
    axes_close(self);
}

enum ar_status text_list_add(struct text_list *self, const char *text, struct ar_error *error)
{
    char **items = ar_array_grow(self->items, self->count, &self->room, sizeof *items);
    if (!items)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for \"%.60s\"", text);
    self->items = items;
    char *copy = strdup(text);
    if (!copy)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for \"%.60s\"", text);
    self->items[self->count++] = copy;
    return AR_OK;
}

enum ar_status suite_add_policy(struct suite *self, const char *text, struct ar_error *error)
{
    if (strcmp(text, "all") != 0)
        return text_list_add(&self->policies, text, error);
    self->all_policies = true;
    for (size_t i = 0; registry_policy(i); i++) {
        enum ar_status status = text_list_add(&self->policies, registry_policy(i)->name, error);
        if (status)
            return status;
    }
    return AR_OK;
}

enum ar_status suite_put_first(struct suite *self, struct ar_error *error)
{
    struct text_list *list = &self->policies;
    size_t at = 0;
    if (!self->against)
        return AR_OK;
    if (self->draws < 2)
        return ar_error_set(error, AR_INVALID,
                            "against \"%.60s\": only draws are compared in pairs; add --draws N",
                            self->against);
    while (at < list->count && strcmp(list->items[at], self->against) != 0)
        at++;
    if (at == list->count)
        return ar_error_set(
            error, AR_INVALID,
            "against \"%.60s\": none of the policies of this run; write it as there",
            self->against);
    char *first = list->items[at];
    memmove(&list->items[1], &list->items[0], at * sizeof list->items[0]);
    list->items[0] = first;
    return AR_OK;
}

/* The index of `value` in `choices`, or -1 with a sentence. */
static int choose(const char *key, const char *value, const char *const *choices, size_t count,
                  struct ar_error *error)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(choices[i], value) == 0)
            return (int)i;
    char all[128] = "";
    for (size_t i = 0; i < count; i++) {
        strncat(all, i == 0 ? "" : i + 1 < count ? ", " : " or ", sizeof all - strlen(all) - 1);
        strncat(all, choices[i], sizeof all - strlen(all) - 1);
    }
    (void)ar_error_set(error, AR_INVALID, "%s \"%.60s\" is not known; it is %s", key, value, all);
    return -1;
}

static enum ar_status set_frees(struct suite *self, const char *value, struct ar_error *error)
{
    static const char *const names[] = {"ordered", "at-once", "recorded"};
    static const enum replay_frees values[] = {REPLAY_ORDERED, REPLAY_AT_ONCE, REPLAY_RECORDED};
    int index = choose("frees", value, names, 3, error);
    if (index < 0)
        return AR_INVALID;
    self->frees = values[index];
    return AR_OK;
}

static enum ar_status set_host(struct suite *self, const char *value, struct ar_error *error)
{
    static const char *const names[] = {"none", "recorded", "open"};
    static const enum replay_host values[] = {REPLAY_HOST_NONE, REPLAY_HOST_RECORDED,
                                              REPLAY_HOST_OPEN};
    int index = choose("host", value, names, 3, error);
    if (index < 0)
        return AR_INVALID;
    self->host = values[index];
    return AR_OK;
}

static enum ar_status set_metrics(struct suite *self, const char *value, struct ar_error *error)
{
    static const char *const names[] = {"none", "exact"};
    int index = choose("metrics", value, names, 2, error);
    if (index < 0)
        return AR_INVALID;
    self->measure = index ? REPLAY_METRICS_EXACT : REPLAY_METRICS_NONE;
    return AR_OK;
}

static enum ar_status set_on_fail(struct suite *self, const char *value, struct ar_error *error)
{
    static const char *const names[] = {"go", "stop"};
    int index = choose("on-fail", value, names, 2, error);
    if (index < 0)
        return AR_INVALID;
    self->stop_on_failure = index == 1;
    return AR_OK;
}

static enum ar_status set_flag(bool *flag, const char *key, const char *value,
                               struct ar_error *error)
{
    static const char *const names[] = {"no", "yes"};
    int index = choose(key, value, names, 2, error);
    if (index < 0)
        return AR_INVALID;
    *flag = index == 1;
    return AR_OK;
}

static enum ar_status set_count(uint64_t *count, const char *key, const char *value, uint64_t least,
                                uint64_t most, struct ar_error *error)
{
    uint64_t number = 0;
    enum ar_status status = ar_count_parse(value, &number, error);
    if (status)
        return ar_error_prefix(error, status, "%s", key);
    if (number < least || number > most)
        return ar_error_set(error, AR_INVALID, "%s is %s; it must be between %llu and %llu", key,
                            value, (unsigned long long)least, (unsigned long long)most);
    *count = number;
    return AR_OK;
}

static enum ar_status set_text(char **text, const char *value, struct ar_error *error)
{
    char *copy = strdup(value);
    if (!copy)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for \"%.60s\"", value);
    free(*text);
    *text = copy;
    return AR_OK;
}

/* Calls `add` for each word of a list divided by blanks or commas. */
typedef enum ar_status add_word(struct suite *self, const char *word, struct ar_error *error);

static enum ar_status each_word(struct suite *self, const char *value, add_word *add,
                                struct ar_error *error)
{
    char *copy = strdup(value);
    if (!copy)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for \"%.60s\"", value);
    char *rest = NULL;
    enum ar_status status = AR_OK;
    for (char *word = strtok_r(copy, " ,\t", &rest); word && !status;
         word = strtok_r(NULL, " ,\t", &rest))
        status = add(self, word, error);
    free(copy);
    return status;
}

static enum ar_status add_capacity(struct suite *self, const char *word, struct ar_error *error)
{
    uint64_t bytes = 0;
    enum ar_status status = ar_size_parse(word, &bytes, error);
    if (!status && bytes == 0)
        status = ar_error_set(error, AR_INVALID, "capacity \"%s\" holds nothing", word);
    return status ? status : text_list_add(&self->capacities, word, error);
}

static enum ar_status add_ratio(struct suite *self, const char *word, struct ar_error *error)
{
    char *end = NULL;
    double ratio = strtod(word, &end);
    if (end == word || *end || !(ratio >= 1.0 && ratio <= 1000.0))
        return ar_error_set(
            error, AR_INVALID,
            "\"%.40s\" is not a capacity in peak live bytes; write numbers from 1 up, "
            "such as 1.00 1.05 1.5",
            word);
    if (self->ratio_count == SUITE_RATIOS_MOST)
        return ar_error_set(error, AR_INVALID, "there are more than %d capacities in [slowdown]",
                            SUITE_RATIOS_MOST);
    self->ratios[self->ratio_count++] = ratio;
    return AR_OK;
}

enum ar_status suite_set(struct suite *self, const char *key, const char *value,
                         struct ar_error *error)
{
    static const char *const keys[] = {"name",    "output",  "device",  "capacities",   "frees",
                                       "host",    "metrics", "reps",    "draws",        "seed",
                                       "jobs",    "time",    "on-fail", "require-pass", "isolate",
                                       "timeout", "verify",  "against"};
    if (strcmp(key, "name") == 0)
        return set_text(&self->name, value, error);
    if (strcmp(key, "output") == 0)
        return set_text(&self->output, value, error);
    if (strcmp(key, "device") == 0)
        return text_list_add(&self->devices, value, error);
    if (strcmp(key, "capacities") == 0)
        return each_word(self, value, add_capacity, error);
    if (strcmp(key, "frees") == 0)
        return set_frees(self, value, error);
    if (strcmp(key, "host") == 0)
        return set_host(self, value, error);
    if (strcmp(key, "metrics") == 0)
        return set_metrics(self, value, error);
    if (strcmp(key, "reps") == 0)
        return set_count(&self->reps, key, value, 1, 10000, error);
    if (strcmp(key, "draws") == 0)
        return set_count(&self->draws, key, value, 1, 10000, error);
    if (strcmp(key, "against") == 0)
        return set_text(&self->against, value, error);
    if (strcmp(key, "seed") == 0)
        return set_count(&self->seed, key, value, 0, SUITE_SEED_MOST, error);
    if (strcmp(key, "jobs") == 0)
        return set_count(&self->jobs, key, value, 1, 1024, error);
    if (strcmp(key, "time") == 0)
        return set_flag(&self->time, key, value, error);
    if (strcmp(key, "on-fail") == 0)
        return set_on_fail(self, value, error);
    if (strcmp(key, "require-pass") == 0)
        return set_flag(&self->require_pass, key, value, error);
    if (strcmp(key, "isolate") == 0)
        return set_flag(&self->isolate, key, value, error);
    if (strcmp(key, "timeout") == 0)
        return set_count(&self->timeout_s, key, value, 1, 1000000, error);
    if (strcmp(key, "verify") == 0)
        return set_flag(&self->verify, key, value, error);
    if (strcmp(key, "skip-missing") == 0) /* of older suites; it has no effect */
        return set_flag(&(bool){false}, key, value, error);
    const char *near = ar_nearest_name(key, keys, sizeof keys / sizeof keys[0]);
    return ar_error_set(error, AR_INVALID, "there is no key \"%.60s\" here; did you mean \"%s\"?",
                        key, near ? near : "name");
}

/* A suite on its way out of a file, and the keys that it has had. */
struct reading {
    struct suite *suite;
    struct text_list keys;
};

/* A key that is given twice would win silently: which of the two was meant is not for us. */
static enum ar_status note_key(struct reading *reading, const char *section, const char *key,
                               struct ar_error *error)
{
    char *name = NULL;
    if (asprintf(&name, "%s/%s", section, key) < 0)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory left for a key");
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < reading->keys.count && !status; i++)
        if (strcmp(reading->keys.items[i], name) == 0)
            status = ar_error_set(error, AR_INVALID,
                                  "the key \"%.60s\" is given twice; give it once", key);
    if (!status)
        status = text_list_add(&reading->keys, name, error);
    free(name);
    return status;
}

static enum ar_status read_entry(void *argument, const struct ini_line *line,
                                 struct ar_error *error)
{
    struct reading *reading = argument;
    struct suite *self = reading->suite;
    const char *key = NULL;
    const char *value = NULL;
    enum ar_status status;
    if (strcmp(line->section, "policies") == 0) {
        status = suite_add_policy(self, line->text, error);
    } else if (strcmp(line->section, "workloads") == 0) {
        status = text_list_add(&self->workloads, line->text, error);
    } else if (strcmp(line->section, "devices") == 0) {
        status = text_list_add(&self->devices, line->text, error);
    } else {
        status = ini_split(line, &key, &value, error);
        if (status)
            return status;
        status = note_key(reading, line->section, key, error);
        if (status)
            return ar_error_prefix(error, status, "%s:%u", line->path, line->number);
        if (strcmp(line->section, "suite") == 0)
            status = suite_set(self, key, value, error);
        else if (strcmp(line->section, "grid") == 0)
            status = axes_add(self, key, value, line->number, error);
        else if (strcmp(key, "at") == 0)
            status = each_word(self, value, add_ratio, error);
        else
            status =
                ar_error_set(error, AR_INVALID,
                             "there is no key \"%.60s\" in [slowdown]; did you mean \"at\"?", key);
    }
    return status ? ar_error_prefix(error, status, "%s:%u", line->path, line->number) : AR_OK;
}

enum ar_status suite_read(struct suite *self, const char *path, struct ar_error *error)
{
    struct reading reading = {.suite = self};
    enum ar_status status = ini_read(path, sections, SECTION_COUNT, read_entry, &reading, error);
    text_list_close(&reading.keys);
    if (status)
        return status;
    if (self->policies.count == 0)
        return ar_error_set(error, AR_FORMAT, "%s: names no policy; add a [policies] section",
                            path);
    if (self->workloads.count == 0)
        return ar_error_set(error, AR_FORMAT, "%s: names no workload; add a [workloads] section",
                            path);
    return AR_OK;
}
