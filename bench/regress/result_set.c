/* Reads result sets. The JSON tree of a file stays in memory, and texts are borrowed from it.
 * Fields that are used must have the type that results/schema.json demands. Metrics that this
 * program does not know are ignored, because the file may be of a later version. */
#include "bench/regress/result_set.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#include <jansson.h>

#include "allocators/base/array.h"
#include "allocators/spec.h"
#include "bench/report/data_writer.h"
#include "bench/report/result_writers.h"
#include "bench/report/sentence.h"
#include "workloads/io/fields.h"

#define INSTRUCTIONS_SCHEMA "allocrig.instructions/1"

bool result_row_same(const struct result_row *a, const struct result_row *b)
{
    return strcmp(a->policy, b->policy) == 0 && strcmp(a->workload, b->workload) == 0 &&
           strcmp(a->resolved_device, b->resolved_device) == 0 && strcmp(a->frees, b->frees) == 0 &&
           strcmp(a->host, b->host) == 0 && a->seed == b->seed;
}

static enum ar_status wrong(const char *what, const char *wanted, struct ar_error *error)
{
    return ar_error_set(error, AR_FORMAT,
                        "\"%s\" is not %s; the file is not a complete result (results/schema.json)",
                        what, wanted);
}

/* The text of a key that must exist. */
static enum ar_status text_of(const json_t *object, const char *key, const char **text,
                              struct ar_error *error)
{
    *text = json_string_value(json_object_get(object, key));
    return *text ? AR_OK : wrong(key, "a text", error);
}

static enum ar_status whole_of(const json_t *object, const char *key, uint64_t *whole,
                               struct ar_error *error)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return wrong(key, "a whole number", error);
    *whole = (uint64_t)json_integer_value(value);
    return AR_OK;
}

static enum ar_status take_metrics(const json_t *metrics, struct result_run *run,
                                   struct ar_error *error)
{
    if (!json_is_object(metrics))
        return wrong("metrics", "an object", error);
    for (int i = 0; i < METRIC_COUNT; i++) {
        const char *name = metric_info((enum metric)i)->name;
        const json_t *value = json_object_get(metrics, name);
        if (!value)
            continue;
        run->there[i] = true;
        /* A ratio can be below 0: a map call may serve more than is free. */
        double least = strcmp(metric_info((enum metric)i)->unit, "ratio") == 0 ? -0x1p63 : 0;
        if (json_number_value(value) < least || json_number_value(value) > 0x1p63)
            return wrong(name, least < 0 ? "a number or null" : "a number from 0 to 2^63 or null",
                         error);
        if (json_is_integer(value) && json_integer_value(value) >= 0)
            metric_set(&run->metrics, (enum metric)i, (uint64_t)json_integer_value(value));
        else if (json_is_number(value))
            metric_set_real(&run->metrics, (enum metric)i, json_number_value(value));
        else if (!json_is_null(value))
            return wrong(name, "a number or null", error);
    }
    return AR_OK;
}

static enum ar_status take_outcome(const json_t *outcome, struct result_run *run,
                                   struct ar_error *error)
{
    const json_t *passed = json_object_get(outcome, "passed");
    const json_t *event = json_object_get(outcome, "first_failed_event");
    if (!json_is_boolean(passed))
        return wrong("passed", "true or false", error);
    run->passed = json_is_true(passed);
    run->cause = json_string_value(json_object_get(outcome, "cause"));
    run->played = json_is_integer(event);
    if (run->played)
        return whole_of(outcome, "first_failed_event", &run->first_failed_event, error);
    return event && json_is_null(event) ? AR_OK
                                        : wrong("first_failed_event", "a number or null", error);
}

static struct result_row *row_of(struct result_set *self, const struct result_row *like)
{
    /* Repetitions follow each other, or come in the same order from the next file. */
    for (size_t i = self->row_count; i-- > 0;)
        if (result_row_same(&self->rows[i], like))
            return &self->rows[i];
    if (!ar_array_make_room(&self->rows, self->row_count, &self->row_room, sizeof *self->rows))
        return NULL;
    self->rows[self->row_count] = *like;
    return &self->rows[self->row_count++];
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct ar_spec_pair *)a)->key, ((const struct ar_spec_pair *)b)->key);
}

/* The device that a spec of a simulated one stands for, with its profile and its capacity in bytes:
 * "sim" and "sim:profile=h100" are the same. The text becomes a key of the tree. */
static enum ar_status resolve_device(json_t *device, struct result_row *row, struct ar_error *error)
{
    char text[512];
    AR_CLOSED(ar_spec_close) struct ar_spec spec = {0};
    const char *profile = json_string_value(json_object_get(device, "profile"));
    const json_int_t bytes = json_integer_value(json_object_get(device, "capacity_bytes"));
    row->resolved_device = row->device;
    if (row->on_card || !profile)
        return AR_OK;
    enum ar_status status = ar_spec_parse(row->device, &spec, error);
    if (status)
        return status == AR_HOST_MEMORY ? status : AR_OK;
    const struct ar_spec_link *link = &spec.links[spec.link_count - 1];
    AR_FREED struct ar_spec_pair *pairs = malloc((link->pair_count + 1) * sizeof *pairs);
    AR_TRY_MEMORY(pairs, error, "the results");
    memcpy(pairs, link->pairs, link->pair_count * sizeof *pairs);
    qsort(pairs, link->pair_count, sizeof *pairs, by_key);
    snprintf(text, sizeof text, "sim:profile=%s", profile);
    for (size_t i = 0; i < link->pair_count; i++)
        if (strcmp(pairs[i].key, "capacity") == 0 && bytes)
            text_add(text, sizeof text, ",capacity=%" JSON_INTEGER_FORMAT, bytes);
        else if (strcmp(pairs[i].key, "profile") != 0)
            text_add(text, sizeof text, ",%s=%s", pairs[i].key, pairs[i].value);
    json_t *value = json_string(text);
    AR_TRY_MEMORY(value && json_object_set_new(device, "resolved", value) == 0, error,
                  "the results");
    row->resolved_device = json_string_value(value);
    return AR_OK;
}

static enum ar_status take_run(struct result_set *self, const json_t *object, size_t number,
                               struct ar_error *error)
{
    struct result_row like = {0};
    struct result_run run = {.file = self->files[self->file_count - 1].path, .number = number};
    const char *kind = NULL;
    const json_t *workload = json_object_get(object, "workload");
    json_t *device = json_object_get(object, "device");
    AR_TRY(text_of(json_object_get(object, "policy"), "spec", &like.policy, error));
    AR_TRY(text_of(workload, "spec", &like.workload, error));
    AR_TRY(text_of(workload, "name", &like.workload_name, error));
    AR_TRY(text_of(workload, "sha256", &like.sha256, error));
    AR_TRY(text_of(device, "spec", &like.device, error));
    AR_TRY(text_of(device, "kind", &kind, error));
    AR_TRY(text_of(object, "frees", &like.frees, error));
    AR_TRY(text_of(object, "host", &like.host, error));
    AR_TRY(whole_of(object, "seed", &like.seed, error));
    AR_TRY(take_outcome(json_object_get(object, "outcome"), &run, error));
    AR_TRY(take_metrics(json_object_get(object, "metrics"), &run, error));
    like.on_card = strcmp(kind, "sim") != 0;
    AR_TRY(resolve_device(device, &like, error));
    struct result_row *row = row_of(self, &like);
    AR_TRY_MEMORY(row, error, "the results");
    if (strcmp(row->sha256, like.sha256) != 0)
        return ar_error_set(
            error, AR_FORMAT,
            "workload %s differs from the one in an earlier file of the same result set",
            like.workload);
    return AR_APPEND(row->runs, row->run_count, row->run_room, run, error, "the results");
}

static enum ar_status take_context(struct result_set *self, const json_t *context,
                                   struct ar_error *error)
{
    const char *host = NULL;
    const char *cpu = NULL;
    char machine[sizeof self->machine_text];
    AR_TRY(text_of(context, "host", &host, error));
    AR_TRY(text_of(context, "cpu", &cpu, error));
    AR_TRY(text_of(context, "commit", &self->commit, error));
    AR_TRY(text_of(context, "time", &self->time, error));
    AR_TRY(text_of(context, "flags", &self->flags, error));
    self->dirty = self->dirty || json_is_true(json_object_get(context, "dirty"));
    snprintf(machine, sizeof machine, "%s, %s", host, cpu);
    if (!self->machine) {
        memcpy(self->machine_text, machine, sizeof machine);
        self->machine = self->machine_text;
    } else if (strcmp(self->machine, machine) != 0) {
        self->machine = "";
    }
    return AR_OK;
}

static enum ar_status take_result(struct result_set *self, const json_t *root,
                                  struct ar_error *error)
{
    const json_t *runs = json_object_get(root, "runs");
    AR_TRY(take_context(self, json_object_get(root, "context"), error));
    if (!json_is_array(runs))
        return wrong("runs", "a list", error);
    for (size_t i = 0; i < json_array_size(runs); i++)
        AR_TRY(ar_error_prefix(error, take_run(self, json_array_get(runs, i), i + 1, error),
                               "run %zu", i + 1));
    return AR_OK;
}

static enum ar_status take_counts(struct result_set *self, const json_t *root,
                                  struct ar_error *error)
{
    const char *compiler = NULL;
    const json_t *rows = json_object_get(root, "rows");
    AR_TRY(text_of(root, "compiler", &compiler, error));
    if (!json_is_array(rows))
        return wrong("rows", "a list", error);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const json_t *value = json_object_get(row, "instructions");
        struct instruction_count count = {.file = self->files[self->file_count - 1].path,
                                          .number = i + 1,
                                          .compiler = compiler,
                                          .value = json_number_value(value)};
        if (!json_is_number(value) || !(count.value > 0))
            return wrong("instructions", "a number above 0", error);
        AR_TRY(text_of(row, "policy", &count.policy, error));
        AR_TRY(text_of(row, "trace", &count.trace, error));
        AR_TRY(text_of(row, "kind", &count.kind, error));
        AR_TRY(text_of(row, "measure", &count.measure, error));
        AR_TRY(AR_APPEND(self->counts, self->count_count, self->count_room, count, error,
                         "the results"));
    }
    return AR_OK;
}

/* The result set owns the tree from here on, also if this fails. */
static enum ar_status add_file(struct result_set *self, json_t *root, const char *path,
                               struct ar_error *error)
{
    struct result_file file = {.root = root, .path = strdup(path)};
    if (file.path && AR_ARRAY_ADD(self->files, self->file_count, self->file_room, file))
        return AR_OK;
    json_decref(root);
    free(file.path);
    return ar_no_memory(error, "the results");
}

static enum ar_status read_file(struct result_set *self, const char *path, struct ar_error *error)
{
    json_error_t why;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    if (!root && json_error_code(&why) == json_error_cannot_open_file)
        return ar_error_set(error, AR_IO, "%s: cannot be read: %s", path, strerror(errno));
    if (!root && json_error_code(&why) == json_error_premature_end_of_input)
        return ar_error_set(error, AR_FORMAT,
                            "%s:%d: the file %s; what wrote or copied it did not finish", path,
                            why.line, why.position ? "ends in the middle" : "is empty");
    if (!root && (json_error_code(&why) == json_error_out_of_memory || !why.text[0]))
        return ar_no_memory(error, "the results");
    if (!root)
        return ar_error_set(error, AR_FORMAT,
                            "%s:%d: not JSON: %s; name a file of `run --json`, or a folder of them",
                            path, why.line, why.text);
    enum ar_status status;
    AR_TRY(add_file(self, root, path, error));
    const char *schema = json_string_value(json_object_get(root, "schema"));
    if (schema && strcmp(schema, RESULT_SCHEMA) == 0)
        status = take_result(self, root, error);
    else if (schema && strcmp(schema, INSTRUCTIONS_SCHEMA) == 0)
        status = take_counts(self, root, error);
    else
        status =
            ar_error_set(error, AR_FORMAT,
                         "not a result: its schema is %s; \"" RESULT_SCHEMA "\" (run --json) and "
                         "\"" INSTRUCTIONS_SCHEMA "\" (make instructions) are known",
                         schema ? schema : "not given");
    return ar_error_prefix(error, status, "%s", path);
}

static int is_json(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && field_ends_with(entry->d_name, ".json");
}

static enum ar_status read_folder(struct result_set *self, const char *folder,
                                  struct ar_error *error)
{
    struct dirent **names = NULL;
    int count = scandir(folder, &names, is_json, alphasort);
    if (count < 0)
        return ar_error_set(error, AR_IO, "%s: cannot be read: %s", folder, strerror(errno));
    enum ar_status status = AR_OK;
    if (count == 0)
        status = ar_invalid(error, "%s: the folder has no result (a file NAME.json)", folder);
    for (int i = 0; i < count; i++) {
        AR_FREED char *path = NULL;
        if (!status && asprintf(&path, "%s/%s", folder, names[i]->d_name) < 0)
            status = ar_no_memory(error, "the results");
        AR_THEN(status, read_file(self, path, error));
        free(names[i]);
    }
    free(names);
    return status;
}

enum ar_status result_set_read(struct result_set *self, const char *path, struct ar_error *error)
{
    struct stat about;
    *self = (struct result_set){0};
    if (stat(path, &about) != 0)
        return ar_error_set(error, AR_IO, "%s: cannot be read: %s", path, strerror(errno));
    return S_ISDIR(about.st_mode) ? read_folder(self, path, error) : read_file(self, path, error);
}

void result_set_close(struct result_set *self)
{
    for (size_t i = 0; i < self->row_count; i++)
        free(self->rows[i].runs);
    free(self->rows);
    free(self->counts);
    for (size_t i = 0; i < self->file_count; i++) {
        json_decref(self->files[i].root);
        free(self->files[i].path);
    }
    free(self->files);
    *self = (struct result_set){0};
}

/* ---- repetitions of a row ------------------------------------------------------------------- */

const struct result_run *result_row_least_far(const struct result_row *row)
{
    const struct result_run *least = &row->runs[0];
    for (size_t i = 1; i < row->run_count; i++) {
        const struct result_run *run = &row->runs[i];
        if (least->passed
                ? !run->passed
                : !run->passed && least->played &&
                      (!run->played || run->first_failed_event < least->first_failed_event))
            least = run;
    }
    return least;
}

bool result_value_same(const struct metric_value *a, const struct metric_value *b)
{
    if (a->kind == METRIC_NULL || b->kind == METRIC_NULL)
        return a->kind == b->kind;
    if (a->kind == METRIC_INTEGER && b->kind == METRIC_INTEGER)
        return a->integer == b->integer;
    double left = a->kind == METRIC_INTEGER ? (double)a->integer : a->real;
    double right = b->kind == METRIC_INTEGER ? (double)b->integer : b->real;
    return left <= right && left >= right;
}

bool instruction_count_same(const struct instruction_count *a, const struct instruction_count *b)
{
    return strcmp(a->policy, b->policy) == 0 && strcmp(a->trace, b->trace) == 0 &&
           strcmp(a->kind, b->kind) == 0 && strcmp(a->measure, b->measure) == 0;
}

void result_value_text(const struct metric_value *value, char text[40])
{
    if (value->kind == METRIC_INTEGER)
        snprintf(text, 40, "%" PRIu64, value->integer);
    else if (value->kind == METRIC_REAL)
        (void)real_print(value->real, text);
    else
        snprintf(text, 40, "null");
}

const struct result_run *result_row_differs(const struct result_row *row, enum metric metric)
{
    for (size_t i = 1; i < row->run_count; i++)
        if (!result_value_same(&row->runs[0].metrics.at[metric], &row->runs[i].metrics.at[metric]))
            return &row->runs[i];
    return NULL;
}

const struct result_run *result_row_ends_apart(const struct result_row *row)
{
    const struct result_run *first = &row->runs[0];
    for (const struct result_run *run = first + 1; run < first + row->run_count; run++)
        if (run->passed != first->passed || run->played != first->played ||
            run->first_failed_event != first->first_failed_event)
            return run;
    return NULL;
}

bool result_row_is_timed(const struct result_row *row, enum metric metric)
{
    const struct metric_info *info = metric_info(metric);
    if (info->class == METRIC_TIMED)
        return true;
    return row->on_card && (strcmp(info->unit, "ns") == 0 || strcmp(info->unit, "1/s") == 0 ||
                            metric == METRIC_slowdown || metric == METRIC_steady_slowdown);
}
