/* Reads suite files (suite.h). A suite has six sections. [suite], [slowdown], [grid]: key =
 * value. [policies], [workloads], [devices]: one name a line, since specs hold equals signs. */
#include "bench/suite/suite.h"

#include "allocators/base/array.h"
#include "allocators/base/size.h"
#include "allocators/registry.h"
#include "bench/report/sentence.h"
#include "bench/suite/ini.h"
#include "workloads/workload.h"

static const char *const sections[] = {"suite",   "policies", "workloads",
                                       "devices", "slowdown", "grid"};

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
    free(self->pinned);
    text_list_close(&self->policies);
    text_list_close(&self->workloads);
    text_list_close(&self->devices);
    text_list_close(&self->capacities);
    axes_close(self);
}

enum ar_status text_list_add(struct text_list *self, const char *text, struct ar_error *error)
{
    AR_TRY_MEMORY(ar_array_make_room(&self->items, self->count, &self->room, sizeof *self->items),
                  error, "\"%.60s\"", text);
    char *copy = strdup(text);
    AR_TRY_MEMORY(copy, error, "\"%.60s\"", text);
    self->items[self->count++] = copy;
    return AR_OK;
}

enum ar_status suite_add_policy(struct suite *self, const char *text, struct ar_error *error)
{
    if (strcmp(text, "all") != 0)
        return text_list_add(&self->policies, text, error);
    self->all_policies = true;
    const struct ar_policy_ops *ops;
    for (size_t i = 0; (ops = registry_policy(i)) != NULL; i++) {
        AR_TRY(ops->capabilities & AR_POLICY_PINNED
                   ? AR_OK
                   : text_list_add(&self->policies, ops->name, error));
    }
    return AR_OK;
}

enum ar_status suite_add_device(struct suite *self, const char *text, struct ar_error *error)
{
    uint32_t gpu;
    if (!workload_is_gpu(text))
        return text_list_add(&self->devices, text, error);
    enum ar_status status = workload_gpu_parse(text, &gpu, error);
    if (!status && self->gpu_given && self->gpu != gpu)
        status = ar_invalid(error,
                            "GPU %" PRIu32 " and GPU %" PRIu32 ": select one of them, or none for "
                            "all",
                            self->gpu, gpu);
    self->gpu_given = true;
    self->gpu = gpu;
    return ar_error_prefix(error, status, "device");
}

enum ar_status suite_put_first(struct suite *self, struct ar_error *error)
{
    struct text_list *list = &self->policies;
    size_t at = 0;
    if (!self->against)
        return AR_OK;
    if (self->replicates < 2)
        return ar_invalid(
            error, "against \"%.60s\": only replicates are compared in pairs; add --replicates N",
            self->against);
    while (at < list->count && strcmp(list->items[at], self->against) != 0)
        at++;
    if (at == list->count)
        return ar_invalid(error,
                          "against \"%.60s\": none of the policies of this run; write it as there",
                          self->against);
    char *first = list->items[at];
    memmove(&list->items[1], &list->items[0], at * sizeof list->items[0]);
    list->items[0] = first;
    return AR_OK;
}

static enum ar_status set_count(uint64_t *count, const char *key, const char *value, uint64_t least,
                                uint64_t most, struct ar_error *error)
{
    uint64_t number = 0;
    AR_TRY(ar_error_prefix(error, ar_count_parse(value, &number, error), "%s", key));
    if (number < least || number > most)
        return ar_invalid(error, "%s is %s; it must be between %llu and %llu", key, value,
                          (unsigned long long)least, (unsigned long long)most);
    *count = number;
    return AR_OK;
}

static enum ar_status set_text(char **text, const char *value, struct ar_error *error)
{
    char *copy = strdup(value);
    AR_TRY_MEMORY(copy, error, "\"%.60s\"", value);
    free(*text);
    *text = copy;
    return AR_OK;
}

/* A folder to write. Tables and files can go to standard output; a folder cannot. */
static enum ar_status set_folder(char **text, const char *value, struct ar_error *error)
{
    if (!value[0])
        return ar_invalid(error, "an output has an empty name; name a folder for output");
    if (strcmp(value, "-") == 0)
        return ar_invalid(error,
                          "output is -, but a folder cannot be standard output; name a folder");
    return set_text(text, value, error);
}

/* Calls `add` for each word of a list divided by blanks or commas. */
typedef enum ar_status add_word(struct suite *self, const char *word, struct ar_error *error);

static enum ar_status each_word(struct suite *self, const char *value, add_word *add,
                                struct ar_error *error)
{
    AR_FREED char *copy = strdup(value);
    AR_TRY_MEMORY(copy, error, "\"%.60s\"", value);
    char *rest = NULL, *word = strtok_r(copy, " ,\t", &rest);
    if (!word)
        return ar_invalid(error, "the key has no value; write one, or leave the key out");
    for (; word; word = strtok_r(NULL, " ,\t", &rest))
        AR_TRY(add(self, word, error));
    return AR_OK;
}

static enum ar_status add_capacity(struct suite *self, const char *word, struct ar_error *error)
{
    uint64_t bytes = 0;
    AR_TRY(ar_size_parse(word, &bytes, error));
    if (bytes == 0)
        return ar_invalid(error, "capacity \"%s\" holds nothing", word);
    return text_list_add(&self->capacities, word, error);
}

static enum ar_status add_ratio(struct suite *self, const char *word, struct ar_error *error)
{
    double ratio;
    if (!ar_number_parse(word, &ratio) || !(ratio >= 1.0 && ratio <= 1000.0))
        return ar_invalid(error,
                          "\"%.40s\" is not a capacity in peak live bytes; write numbers from 1 "
                          "up, such as 1.00 1.05 1.5; a comma separates two of them",
                          word);
    for (size_t i = 0; i < self->ratio_count; i++)
        if (self->ratios[i] == ratio)
            return ar_invalid(error, "capacity %.40s is given twice in [slowdown]; name it once",
                              word);
    if (self->ratio_count == SUITE_RATIOS_MOST)
        return ar_invalid(error, "there are more than %d capacities in [slowdown]",
                          SUITE_RATIOS_MOST);
    self->ratios[self->ratio_count++] = ratio;
    return AR_OK;
}

/* The words that a key can have, and the value of each, which is stored as an integer. */
struct choice {
    const char *name;
    int value;
};

static const struct choice frees_choices[] = {
    {"ordered", REPLAY_ORDERED}, {"at-once", REPLAY_AT_ONCE}, {"recorded", REPLAY_RECORDED}, {0}};
static const struct choice host_choices[] = {{"none", REPLAY_HOST_NONE},
                                             {"recorded", REPLAY_HOST_RECORDED},
                                             {"open", REPLAY_HOST_OPEN},
                                             {0}};
static const struct choice metrics_choices[] = {
    {"none", REPLAY_METRICS_NONE}, {"exact", REPLAY_METRICS_EXACT}, {0}};
static const struct choice fail_choices[] = {{"go", false}, {"stop", true}, {0}};
static const struct choice flag_choices[] = {{"no", false}, {"yes", true}, {0}};

/* The keys of [suite]. */
enum key_kind {
    KEY_TEXT,
    KEY_FOLDER, /* a folder to write */
    KEY_WORD,
    KEY_BOOL,
    KEY_COUNT,
    KEY_DEVICE,
    KEY_CAPACITIES,
    KEY_IGNORED, /* a flag of older suites without effect */
};

static const struct suite_key {
    const char *name;
    enum key_kind kind;
    size_t place; /* in the suite */
    const struct choice *choices;
    uint64_t least, most;
} suite_keys[] = {
#define AT(field) offsetof(struct suite, field)
    {"name", KEY_TEXT, AT(name), NULL, 0, 0},
    {"output", KEY_FOLDER, AT(output), NULL, 0, 0},
    {"against", KEY_TEXT, AT(against), NULL, 0, 0},
    {"pinned", KEY_TEXT, AT(pinned), NULL, 0, 0},
    {"device", KEY_DEVICE, 0, NULL, 0, 0},
    {"capacities", KEY_CAPACITIES, 0, NULL, 0, 0},
    {"frees", KEY_WORD, AT(frees), frees_choices, 0, 0},
    {"host", KEY_WORD, AT(host), host_choices, 0, 0},
    {"metrics", KEY_WORD, AT(measure), metrics_choices, 0, 0},
    {"on-fail", KEY_BOOL, AT(stop_on_failure), fail_choices, 0, 0},
    {"time", KEY_BOOL, AT(time), flag_choices, 0, 0},
    {"require-pass", KEY_BOOL, AT(require_pass), flag_choices, 0, 0},
    {"isolate", KEY_BOOL, AT(isolate), flag_choices, 0, 0},
    {"verify", KEY_BOOL, AT(verify), flag_choices, 0, 0},
    {"skip-missing", KEY_IGNORED, 0, flag_choices, 0, 0},
    {"reps", KEY_COUNT, AT(reps), NULL, 1, 10000},
    {"replicates", KEY_COUNT, AT(replicates), NULL, 1, 10000},
    {"draws", KEY_COUNT, AT(replicates), NULL, 1, 10000}, /* its former name */
    {"seed", KEY_COUNT, AT(seed), NULL, 0, SUITE_SEED_MOST},
    {"jobs", KEY_COUNT, AT(jobs), NULL, 1, 1024},
    {"timeout", KEY_COUNT, AT(timeout_s), NULL, 1, 1000000},
#undef AT
};

_Static_assert(sizeof(enum replay_frees) == sizeof(int) &&
                   sizeof(enum replay_host) == sizeof(int) &&
                   sizeof(enum replay_measure) == sizeof(int),
               "words are stored as int");

static enum ar_status set_choice(void *place, const struct suite_key *key, const char *value,
                                 struct ar_error *error)
{
    char all[128] = "";
    for (const struct choice *choice = key->choices; choice->name; choice++) {
        const bool flag = choice->value != 0;
        if (strcmp(choice->name, value) == 0) {
            if (key->kind == KEY_BOOL)
                memcpy(place, &flag, sizeof flag);
            else if (key->kind == KEY_WORD)
                memcpy(place, &choice->value, sizeof choice->value);
            return AR_OK;
        }
        strncat(all,
                choice == key->choices ? ""
                : choice[1].name       ? ", "
                                       : " or ",
                sizeof all - strlen(all) - 1);
        text_add(all, sizeof all, "%s", choice->name);
    }
    return ar_invalid(error, "%s \"%.60s\" is not known; it is %s", key->name, value, all);
}

enum ar_status suite_set(struct suite *self, const char *name, const char *value,
                         struct ar_error *error)
{
    const char *names[AR_COUNT(suite_keys)];
    const struct suite_key *key = NULL;
    for (size_t i = 0; i < AR_COUNT(suite_keys); i++) {
        names[i] = suite_keys[i].kind == KEY_IGNORED ? "name" : suite_keys[i].name;
        key = strcmp(suite_keys[i].name, name) == 0 ? &suite_keys[i] : key;
    }
    if (!key) {
        const char *near = ar_nearest_name(name, names, AR_COUNT(suite_keys));
        return ar_invalid(error, "there is no key \"%.60s\" here; did you mean \"%s\"?", name,
                          near ? near : "name");
    }
    void *place = (char *)self + key->place;
    switch (key->kind) {
    case KEY_TEXT:
        return set_text(place, value, error);
    case KEY_FOLDER:
        return set_folder(place, value, error);
    case KEY_COUNT:
        return set_count(place, name, value, key->least, key->most, error);
    case KEY_DEVICE:
        return suite_add_device(self, value, error);
    case KEY_CAPACITIES:
        return each_word(self, value, add_capacity, error);
    default:
        return set_choice(place, key, value, error);
    }
}

/* A suite that is read from a file, and the keys so far. */
struct reading {
    struct suite *suite;
    struct text_list keys;
};

enum ar_status suite_note_key(struct text_list *keys, const struct ini_line *line, const char **key,
                              struct ar_error *error)
{
    AR_FREED char *name = NULL;
    const char *written = *key;
    *key = strcmp(*key, "draws") == 0 ? "replicates" : *key; /* its former name */
    if (asprintf(&name, "%s/%s", line->section, *key) < 0)
        return ar_no_memory(error, "a key");
    for (size_t i = 0; i < keys->count; i++)
        if (strcmp(keys->items[i], name) == 0)
            return ar_error_set(
                error, AR_FORMAT, "%s:%u: the key \"%.60s\"%s is given twice; give it once",
                line->path, line->number, written, written == *key ? "" : ", now \"replicates\",");
    return text_list_add(keys, name, error);
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
        status = suite_add_device(self, line->text, error);
    } else {
        AR_TRY(ini_split(line, &key, &value, error));
        AR_TRY(suite_note_key(&reading->keys, line, &key, error));
        bool is_section = false;
        for (size_t i = 0; i < AR_COUNT(sections); i++)
            is_section |= strcmp(sections[i], key) == 0;
        if (is_section)
            status = ar_invalid(error, "%s is a section, not a key: write [%s], and below it %s",
                                key, key,
                                strcmp(key, "suite") == 0 || strcmp(key, "slowdown") == 0 ||
                                        strcmp(key, "grid") == 0
                                    ? "its keys"
                                    : "each of them in a line of its own");
        else if (strcmp(line->section, "suite") == 0)
            status = suite_set(self, key, value, error);
        else if (strcmp(line->section, "grid") == 0)
            status = axes_add(self, key, value, line->number, error);
        else if (strcmp(key, "at") == 0)
            status = each_word(self, value, add_ratio, error);
        else
            status = ar_invalid(
                error, "there is no key \"%.60s\" in [slowdown]; did you mean \"at\"?", key);
    }
    return ar_error_prefix(error, status, "%s:%u", line->path, line->number);
}

enum ar_status suite_read(struct suite *self, const char *path, struct ar_error *error)
{
    struct reading reading = {.suite = self};
    enum ar_status status =
        ini_read(path, sections, AR_COUNT(sections), read_entry, &reading, error);
    text_list_close(&reading.keys);
    AR_TRY(status);
    if (self->policies.count == 0)
        return ar_error_set(error, AR_FORMAT, "%s: names no policy; add a [policies] section",
                            path);
    if (self->workloads.count == 0)
        return ar_error_set(error, AR_FORMAT, "%s: names no workload; add a [workloads] section",
                            path);
    return AR_OK;
}
