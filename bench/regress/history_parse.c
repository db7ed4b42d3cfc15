/* A line of the history, read. Texts are kept once for all lines: they come in the same order in
 * each, so that the next one is mostly the one after the last. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifndef HAVE_JANSSON
#define HAVE_JANSSON 1
#endif
#if HAVE_JANSSON
#include <jansson.h>
#endif

#include "allocators/base/array.h"
#include "bench/regress/history.h"

void history_drop_line(struct history_line *line)
{
    free(line->runs);
    free(line->counts);
    *line = (struct history_line){0};
}

#if HAVE_JANSSON
/* The columns of a line. */
struct columns {
    size_t count;
    enum metric metrics[METRIC_COUNT];
    size_t places[METRIC_COUNT];
    size_t wanted; /* values in each run, of unknown metrics too */
};

struct parse {
    struct history *history;
    struct ar_error *error;
    struct columns exact, timed;
    json_t *workloads;
};

static enum ar_status no_memory(struct ar_error *error)
{
    return ar_error_set(error, AR_HOST_MEMORY, "no host memory left for the history");
}

static enum ar_status wrong(const struct parse *self, const char *what, const char *wanted)
{
    return ar_error_set(self->error, AR_FORMAT, "\"%s\" is not %s", what, wanted);
}

/* The one copy of a text; NULL: no host memory. */
static const char *keep(struct history *history, const char *text)
{
    for (size_t i = 0; i < history->text_count; i++) {
        size_t at = (history->text_next + i) % history->text_count;
        if (strcmp(history->texts[at], text) == 0) {
            history->text_next = at + 1;
            return history->texts[at];
        }
    }
    char **texts =
        ar_array_grow(history->texts, history->text_count, &history->text_room, sizeof *texts);
    if (!texts)
        return NULL;
    history->texts = texts;
    char *copy = strdup(text);
    if (copy)
        history->texts[history->text_count++] = copy;
    return copy;
}

static enum ar_status text_of(const struct parse *self, const json_t *object, const char *key,
                              const char **text)
{
    const char *found = json_string_value(json_object_get(object, key));
    if (!found)
        return wrong(self, key, "a text");
    *text = keep(self->history, found);
    return *text ? AR_OK : no_memory(self->error);
}

static enum ar_status whole_of(const struct parse *self, const json_t *object, const char *key,
                               uint64_t *whole)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return wrong(self, key, "a whole number");
    *whole = (uint64_t)json_integer_value(value);
    return AR_OK;
}

static enum ar_status parse_columns(struct parse *self, const json_t *metrics, const char *key,
                                    struct columns *columns)
{
    const json_t *names = json_object_get(metrics, key);
    if (!json_is_array(names))
        return wrong(self, key, "a list of metrics");
    columns->wanted = json_array_size(names);
    for (size_t i = 0; i < columns->wanted; i++) {
        const char *name = json_string_value(json_array_get(names, i));
        int m = 0;
        if (!name)
            return wrong(self, key, "a list of metrics");
        while (m < METRIC_COUNT && strcmp(metric_info((enum metric)m)->name, name) != 0)
            m++;
        if (m == METRIC_COUNT) {
            self->history->unknown++;
            continue;
        }
        for (size_t j = 0; j < columns->count; j++)
            if (columns->metrics[j] == (enum metric)m)
                return wrong(self, name, "there once");
        columns->metrics[columns->count] = (enum metric)m;
        columns->places[columns->count++] = i;
    }
    return AR_OK;
}

static enum ar_status parse_values(const struct parse *self, const json_t *object, const char *key,
                                   const struct columns *columns, struct history_run *run)
{
    const json_t *values = json_object_get(object, key);
    if (!json_is_array(values) || json_array_size(values) != columns->wanted)
        return wrong(self, key, "a list with a value for each of the line's metrics");
    for (size_t i = 0; i < columns->count; i++) {
        const json_t *value = json_array_get(values, columns->places[i]);
        enum metric metric = columns->metrics[i];
        if (json_is_null(value))
            continue;
        if (!json_is_number(value))
            return wrong(self, metric_info(metric)->name, "a number or null");
        run->values[metric] = json_number_value(value);
        run->timed[metric] = columns == &self->timed;
    }
    return AR_OK;
}

static enum ar_status parse_outcome(const struct parse *self, const json_t *object,
                                    struct history_run *run)
{
    const json_t *passed = json_object_get(object, "passed");
    const json_t *event = json_object_get(object, "first_failed_event");
    const json_t *cause = json_object_get(object, "cause");
    if (!json_is_boolean(passed))
        return wrong(self, "passed", "true or false");
    run->passed = json_is_true(passed);
    run->played = !json_is_null(event);
    if (run->played && whole_of(self, object, "first_failed_event", &run->first_failed_event))
        return AR_FORMAT;
    return json_is_null(cause) ? AR_OK : text_of(self, object, "cause", &run->cause);
}

static enum ar_status parse_run(const struct parse *self, const json_t *object,
                                struct history_run *run)
{
    for (int m = 0; m < METRIC_COUNT; m++)
        run->values[m] = (double)NAN;
    enum ar_status status = text_of(self, object, "policy", &run->policy);
    if (!status)
        status = text_of(self, object, "workload", &run->workload);
    if (!status)
        status = text_of(self, object, "device", &run->device);
    if (!status)
        status = text_of(self, object, "frees", &run->frees);
    if (!status)
        status = text_of(self, object, "host", &run->host);
    if (!status)
        status = whole_of(self, object, "seed", &run->seed);
    if (status)
        return status;
    const json_t *workload = json_object_get(self->workloads, run->workload);
    status = text_of(self, workload, "name", &run->workload_name);
    if (!status)
        status = text_of(self, workload, "sha256", &run->sha256);
    if (!status)
        status = parse_outcome(self, object, run);
    if (!status)
        status = parse_values(self, object, "exact", &self->exact, run);
    return status ? status : parse_values(self, object, "timed", &self->timed, run);
}

static enum ar_status parse_count(const struct parse *self, const json_t *object,
                                  struct side_count *count)
{
    const json_t *value = json_object_get(object, "instructions");
    count->value = json_number_value(value);
    if (!json_is_number(value) || !(count->value > 0))
        return wrong(self, "instructions", "a number above 0");
    enum ar_status status = text_of(self, object, "policy", &count->policy);
    if (!status)
        status = text_of(self, object, "trace", &count->trace);
    if (!status)
        status = text_of(self, object, "kind", &count->kind);
    if (!status)
        status = text_of(self, object, "measure", &count->measure);
    return status ? status : text_of(self, object, "compiler", &count->compiler);
}

static enum ar_status parse_lists(const struct parse *self, const json_t *root,
                                  struct history_line *line)
{
    const json_t *runs = json_object_get(root, "runs");
    const json_t *counts = json_object_get(root, "instructions");
    if (!json_is_array(runs))
        return wrong(self, "runs", "a list");
    if (!json_is_array(counts))
        return wrong(self, "instructions", "a list");
    line->run_count = json_array_size(runs);
    line->count_count = json_array_size(counts);
    line->runs = calloc(line->run_count + 1, sizeof *line->runs);
    line->counts = calloc(line->count_count + 1, sizeof *line->counts);
    enum ar_status status = line->runs && line->counts ? AR_OK : no_memory(self->error);
    for (size_t i = 0; i < line->run_count && !status; i++) {
        status = parse_run(self, json_array_get(runs, i), &line->runs[i]);
        if (status)
            (void)ar_error_prefix(self->error, status, "run %zu", i + 1);
    }
    for (size_t i = 0; i < line->count_count && !status; i++)
        status = parse_count(self, json_array_get(counts, i), &line->counts[i]);
    return status;
}

static enum ar_status parse_head(struct parse *self, const json_t *root, struct history_line *line)
{
    const char *schema = json_string_value(json_object_get(root, "schema"));
    const json_t *metrics = json_object_get(root, "metrics");
    if (!schema || strcmp(schema, HISTORY_SCHEMA) != 0)
        return ar_error_set(self->error, AR_FORMAT,
                            "no line of a history: its schema is %s, not \"" HISTORY_SCHEMA "\"",
                            schema ? schema : "not given");
    enum ar_status status = text_of(self, root, "commit", &line->commit);
    if (!status)
        status = text_of(self, root, "time", &line->time);
    if (!status && !history_is_time(line->time))
        status = wrong(self, "time", "YYYY-MM-DDTHH:MM:SSZ");
    if (!status)
        status = text_of(self, root, "machine", &line->machine);
    if (!status)
        status = text_of(self, root, "flags", &line->flags);
    if (!status)
        status = parse_columns(self, metrics, "exact", &self->exact);
    return status ? status : parse_columns(self, metrics, "timed", &self->timed);
}

enum ar_status history_parse_line(struct history *self, const char *text, size_t bytes,
                                  struct history_line *line, struct ar_error *error)
{
    struct parse parse = {.history = self, .error = error};
    json_error_t why;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &why);
    if (!root)
        return ar_error_set(error, AR_FORMAT, "no JSON: %s, at byte %d", why.text, why.position);
    parse.workloads = json_object_get(root, "workloads");
    enum ar_status status = parse_head(&parse, root, line);
    if (!status)
        status = parse_lists(&parse, root, line);
    json_decref(root);
    if (status)
        history_drop_line(line);
    return status;
}
#else
enum ar_status history_parse_line(struct history *self, const char *text, size_t bytes,
                                  struct history_line *line, struct ar_error *error)
{
    (void)self, (void)text, (void)bytes, (void)line;
    return ar_error_set(
        error, AR_MISSING,
        "this program was built without jansson and reads no JSON; install it (make "
        "deps) and build again");
}
#endif
