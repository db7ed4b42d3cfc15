/* Reads the file of a history and adds lines to it (rules in history.h). */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "allocators/base/array.h"
#include "bench/regress/history.h"
#include "bench/regress/verdict.h"
#include "bench/report/data_writer.h"
#include "bench/report/sentence.h"
#include "bench/report/output_file.h"
#include "bench/statistics/statistics.h"

#define COMMIT_LONGEST 100

#define BEGINNING "{\"schema\": \"" HISTORY_SCHEMA "\""

static enum ar_status failed(const char *path, const char *what, struct ar_error *error)
{
    return ar_error_set(error, AR_IO, "%s: cannot be %s: %s", path, what, strerror(errno));
}

/* True for YYYY-MM-DDTHH:MM:SSZ. */
static bool is_time(const char *text)
{
    static const char form[] = "0000-00-00T00:00:00Z";
    char date[11];
    if (strlen(text) != sizeof form - 1)
        return false;
    for (size_t i = 0; form[i]; i++)
        if (form[i] == '0' ? !isdigit((unsigned char)text[i]) : text[i] != form[i])
            return false;
    memcpy(date, text, 10);
    date[10] = '\0';
    return waivers_is_date(date) && memcmp(text + 11, "24", 2) < 0 && text[14] < '6' &&
           (text[17] < '6' || memcmp(text + 17, "60", 2) == 0);
}

/* ---- parsing -------------------------------------------------------------------------------- */

static void drop_line(struct history_line *line)
{
    free(line->runs);
    free(line->counts);
    *line = (struct history_line){0};
}

/* The columns of a line. */
struct columns {
    size_t count;
    enum metric metrics[METRIC_COUNT];
    size_t places[METRIC_COUNT];
    size_t wanted; /* the number of values in each run, unknown metrics included */
};

struct parse {
    struct history *history;
    struct ar_error *error;
    struct columns exact, timed;
    json_t *workloads;
};

static enum ar_status wrong(const struct parse *self, const char *what, const char *wanted)
{
    return ar_error_set(self->error, AR_FORMAT, "\"%s\" is not %s", what, wanted);
}

static enum ar_status text_of(const struct parse *self, const json_t *object, const char *key,
                              const char **text)
{
    const char *found = json_string_value(json_object_get(object, key));
    struct texts *texts = &self->history->texts;
    uint32_t index;
    if (!found)
        return wrong(self, key, "a text");
    AR_TRY(texts_intern(texts, found, strlen(found), &index, self->error));
    *text = texts->items[index];
    return AR_OK;
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
                return wrong(self, name, "unique");
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
    AR_TRY(text_of(self, object, "policy", &run->policy));
    AR_TRY(text_of(self, object, "workload", &run->workload));
    AR_TRY(text_of(self, object, "device", &run->device));
    run->resolved_device = run->device;
    if (json_object_get(object, "resolved_device"))
        AR_TRY(text_of(self, object, "resolved_device", &run->resolved_device));
    AR_TRY(text_of(self, object, "frees", &run->frees));
    AR_TRY(text_of(self, object, "host", &run->host));
    AR_TRY(whole_of(self, object, "seed", &run->seed));
    const json_t *workload = json_object_get(self->workloads, run->workload);
    AR_TRY(text_of(self, workload, "name", &run->workload_name));
    AR_TRY(text_of(self, workload, "sha256", &run->sha256));
    AR_TRY(parse_outcome(self, object, run));
    AR_TRY(parse_values(self, object, "exact", &self->exact, run));
    return parse_values(self, object, "timed", &self->timed, run);
}

static enum ar_status parse_count(const struct parse *self, const json_t *object,
                                  struct instruction_count *count)
{
    const json_t *value = json_object_get(object, "instructions");
    count->value = json_number_value(value);
    if (!json_is_number(value) || !(count->value > 0))
        return wrong(self, "instructions", "a number above 0");
    AR_TRY(text_of(self, object, "policy", &count->policy));
    AR_TRY(text_of(self, object, "trace", &count->trace));
    AR_TRY(text_of(self, object, "kind", &count->kind));
    AR_TRY(text_of(self, object, "measure", &count->measure));
    return text_of(self, object, "compiler", &count->compiler);
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
    AR_TRY_MEMORY(line->runs && line->counts, self->error, "the history");
    for (size_t i = 0; i < line->run_count; i++)
        AR_TRY(ar_error_prefix(self->error,
                               parse_run(self, json_array_get(runs, i), &line->runs[i]), "run %zu",
                               i + 1));
    for (size_t i = 0; i < line->count_count; i++)
        AR_TRY(parse_count(self, json_array_get(counts, i), &line->counts[i]));
    return AR_OK;
}

static enum ar_status parse_head(struct parse *self, const json_t *root, struct history_line *line)
{
    const char *schema = json_string_value(json_object_get(root, "schema"));
    const json_t *metrics = json_object_get(root, "metrics");
    if (!schema || strcmp(schema, HISTORY_SCHEMA) != 0)
        return ar_error_set(self->error, AR_FORMAT,
                            "not a line of a history: its schema is %s, not \"" HISTORY_SCHEMA "\"",
                            schema ? schema : "not given");
    AR_TRY(text_of(self, root, "commit", &line->commit));
    AR_TRY(text_of(self, root, "time", &line->time));
    if (!is_time(line->time))
        return wrong(self, "time", "YYYY-MM-DDTHH:MM:SSZ");
    AR_TRY(text_of(self, root, "machine", &line->machine));
    AR_TRY(text_of(self, root, "flags", &line->flags));
    AR_TRY(parse_columns(self, metrics, "exact", &self->exact));
    return parse_columns(self, metrics, "timed", &self->timed);
}

/* Reads the line of `bytes` bytes without its end into `line`. */
static enum ar_status parse_line(struct history *self, const char *text, size_t bytes,
                                 struct history_line *line, struct ar_error *error)
{
    struct parse parse = {.history = self, .error = error};
    json_error_t why;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &why);
    if (!root)
        return ar_error_set(error, AR_FORMAT, "not JSON: %s, at byte %d", why.text, why.position);
    parse.workloads = json_object_get(root, "workloads");
    enum ar_status status = parse_head(&parse, root, line);
    AR_THEN(status, parse_lists(&parse, root, line));
    json_decref(root);
    if (status)
        drop_line(line);
    return status;
}

/* ---- writing -------------------------------------------------------------------------------- */

/* The metrics that any run has a value of. */
struct kept_columns {
    bool exact[METRIC_COUNT], timed[METRIC_COUNT];
};

static bool is_timed(const struct result_row *row, enum metric metric)
{
    return result_row_is_timed(row, metric) || result_row_differs(row, metric);
}

static bool is_kept(enum metric metric)
{
    return metric_info(metric)->better != METRIC_NEITHER && metric != METRIC_first_failed_event;
}

static bool has_value(const struct result_row *row, enum metric metric)
{
    for (size_t i = 0; i < row->run_count; i++)
        if (row->runs[i].metrics.at[metric].kind != METRIC_NULL)
            return true;
    return false;
}

static struct kept_columns columns_of(const struct result_set *results)
{
    struct kept_columns columns = {{false}, {false}};
    for (size_t i = 0; i < results->row_count; i++) {
        const struct result_row *row = &results->rows[i];
        for (int m = 0; m < METRIC_COUNT; m++) {
            enum metric metric = (enum metric)m;
            if (is_kept(metric) && has_value(row, metric))
                (is_timed(row, metric) ? columns.timed : columns.exact)[m] = true;
        }
    }
    return columns;
}

/* The median of the repetitions; of two middle values the lower, which was measured. */
static double middle(const struct result_row *row, enum metric metric)
{
    double *values = calloc(row->run_count, sizeof *values);
    size_t count = 0;
    for (size_t i = 0; values && i < row->run_count; i++)
        if (row->runs[i].metrics.at[metric].kind != METRIC_NULL)
            values[count++] = metric_number(&row->runs[i].metrics, metric, 0);
    double median = count ? statistic_of(values, count).median : (double)NAN;
    free(values);
    return median;
}

static void put_values(struct json_writer *writer, const char *key, const struct result_row *row,
                       const bool *columns, bool timed)
{
    json_begin_array(writer, key);
    for (int m = 0; m < METRIC_COUNT; m++) {
        const struct metric_value *value = &row->runs[0].metrics.at[m];
        if (!columns[m])
            continue;
        if (is_timed(row, (enum metric)m) != timed)
            json_put_null(writer, NULL);
        else if (timed)
            json_put_real(writer, NULL, middle(row, (enum metric)m));
        else if (value->kind == METRIC_INTEGER)
            json_put_integer(writer, NULL, value->integer);
        else
            json_put_real(writer, NULL, value->kind == METRIC_REAL ? value->real : (double)NAN);
    }
    json_end_array(writer);
}

static void put_run(struct json_writer *writer, const struct result_row *row,
                    const struct kept_columns *columns)
{
    const struct result_run *run = result_row_least_far(row);
    json_begin_object(writer, NULL);
    JSON_PUT(writer, row, policy, workload, device, frees, host, seed);
    if (strcmp(row->resolved_device, row->device) != 0)
        json_put_text(writer, "resolved_device", row->resolved_device);
    json_put_bool(writer, "passed", run->passed);
    json_put_known(writer, "first_failed_event", run->played, run->first_failed_event);
    json_put_text(writer, "cause", run->cause);
    put_values(writer, "exact", row, columns->exact, false);
    put_values(writer, "timed", row, columns->timed, true);
    json_end_object(writer);
}

static void put_names(struct json_writer *writer, const char *key, const bool *columns)
{
    json_begin_array(writer, key);
    for (int m = 0; m < METRIC_COUNT; m++)
        if (columns[m])
            json_put_text(writer, NULL, metric_info((enum metric)m)->name);
    json_end_array(writer);
}

static void put_workloads(struct json_writer *writer, const struct result_set *results)
{
    json_begin_object(writer, "workloads");
    for (size_t i = 0; i < results->row_count; i++) {
        const struct result_row *row = &results->rows[i];
        size_t first = 0;
        while (strcmp(results->rows[first].workload, row->workload) != 0)
            first++;
        if (first < i)
            continue;
        json_begin_object(writer, row->workload);
        json_put_text(writer, "name", row->workload_name);
        json_put_text(writer, "sha256", row->sha256);
        json_end_object(writer);
    }
    json_end_object(writer);
}

static void put_counts(struct json_writer *writer, const struct result_set *results)
{
    json_begin_array(writer, "instructions");
    for (size_t i = 0; i < results->count_count; i++) {
        const struct instruction_count *count = &results->counts[i];
        json_begin_object(writer, NULL);
        JSON_PUT(writer, count, policy, trace, kind, measure, compiler);
        json_put_real(writer, "instructions", count->value);
        json_end_object(writer);
    }
    json_end_array(writer);
}

static void write_line_of(FILE *stream, const struct result_set *results,
                          const struct history_stamp *stamp)
{
    /* As if nested in two levels that share one line: the writer then adds no line break. */
    struct json_writer writer = {.stream = stream, .depth = 2, .lean_from = 1};
    const struct kept_columns columns = columns_of(results);
    json_begin_object(&writer, NULL);
    json_put_text(&writer, "schema", HISTORY_SCHEMA);
    JSON_PUT(&writer, stamp, commit, time);
    JSON_PUT(&writer, results, machine, flags);
    json_begin_object(&writer, "metrics");
    put_names(&writer, "exact", columns.exact);
    put_names(&writer, "timed", columns.timed);
    json_end_object(&writer);
    put_workloads(&writer, results);
    json_begin_array(&writer, "runs");
    for (size_t i = 0; i < results->row_count; i++)
        put_run(&writer, &results->rows[i], &columns);
    json_end_array(&writer);
    put_counts(&writer, results);
    json_end_object(&writer);
    fputc('\n', stream);
}

/* ---- reading ------------------------------------------------------------------------------- */

/* Reads all of an open file and appends a 0. */
static enum ar_status read_all(int file, const char *path, char **text, size_t *bytes,
                               struct ar_error *error)
{
    struct stat about;
    if (fstat(file, &about) != 0)
        return failed(path, "read", error);
    if (!S_ISREG(about.st_mode))
        return ar_error_set(
            error, AR_IO, "%s: a history is a regular file; write these lines to one first", path);
    size_t size = (size_t)about.st_size;
    *bytes = 0;
    *text = malloc(size + 1);
    AR_TRY_MEMORY(*text, error, "the history");
    while (*bytes < size) {
        ssize_t got = pread(file, *text + *bytes, size - *bytes, (off_t)*bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        *bytes += (size_t)got;
    }
    (*text)[*bytes] = '\0';
    return *bytes == size ? AR_OK : failed(path, "read", error);
}

static enum ar_status add_line(struct history *self, const char *text, size_t bytes, size_t number,
                               struct ar_error *error)
{
    struct history_line line = {.number = number};
    if (bytes >= 7 && (memcmp(text, "<<<<<<<", 7) == 0 || memcmp(text, "=======", 7) == 0 ||
                       memcmp(text, ">>>>>>>", 7) == 0))
        return ar_error_set(error, AR_FORMAT,
                            "a conflict marker of an unfinished merge; keep the lines of both "
                            "branches and remove the markers");
    AR_TRY(parse_line(self, text, bytes, &line, error));
    if (AR_ARRAY_ADD(self->lines, self->count, self->room, line))
        return AR_OK;
    drop_line(&line);
    return ar_no_memory(error, "the history");
}

/* True if a last line without its end is the rest of an interrupted write: it begins as every line
 * does. */
static bool is_torn(const char *text, size_t bytes)
{
    size_t shorter = bytes < sizeof BEGINNING - 1 ? bytes : sizeof BEGINNING - 1;
    return memcmp(text, BEGINNING, shorter) == 0;
}

static int by_time(const void *left, const void *right)
{
    const struct history_line *a = left;
    const struct history_line *b = right;
    int order = strcmp(a->time, b->time);
    return order ? order : (a->number > b->number) - (a->number < b->number);
}

static enum ar_status read_lines(struct history *self, const char *path, const char *text,
                                 size_t bytes, struct ar_error *error)
{
    size_t number = 1;
    enum ar_status status = AR_OK;
    for (size_t at = 0, end; at < bytes && !status; at = end + 1, number++) {
        const char *found = memchr(text + at, '\n', bytes - at);
        end = found ? (size_t)(found - text) : bytes;
        status = add_line(self, text + at, end - at, number, error);
        if (status == AR_FORMAT && !found && is_torn(text + at, end - at)) {
            self->torn_bytes = end - at;
            status = AR_OK;
        }
        if (status)
            (void)ar_error_prefix(error, status, "%s:%zu", path, number);
    }
    if (self->count)
        qsort(self->lines, self->count, sizeof *self->lines, by_time);
    return status;
}

enum ar_status history_read(struct history *self, const char *path, struct ar_error *error)
{
    AR_FREED char *text = NULL;
    size_t bytes = 0;
    *self = (struct history){0};
    int file =
        open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* does not wait for the writer of a pipe */
    if (file < 0)
        return failed(path, "read", error);
    enum ar_status status = flock(file, LOCK_SH) == 0 ? AR_OK : failed(path, "locked", error);
    AR_THEN(status, read_all(file, path, &text, &bytes, error));
    close(file);
    return status ? status : read_lines(self, path, text, bytes, error);
}

void history_close(struct history *self)
{
    for (size_t i = 0; i < self->count; i++)
        drop_line(&self->lines[i]);
    free(self->lines);
    texts_close(&self->texts);
    *self = (struct history){0};
}

/* ---- adding --------------------------------------------------------------------------------- */

bool history_run_same(const struct history_run *a, const struct history_run *b)
{
    const bool old = a->resolved_device == a->device || b->resolved_device == b->device;
    return a->policy == b->policy && a->workload == b->workload &&
           (a->resolved_device == b->resolved_device || (old && a->device == b->device)) &&
           a->frees == b->frees && a->host == b->host && a->seed == b->seed;
}

static bool same_number(double a, double b)
{
    return isnan(a) ? isnan(b) : a <= b && a >= b;
}

static bool same_figures_of_run(const struct history_run *a, const struct history_run *b)
{
    bool same = history_run_same(a, b) && a->sha256 == b->sha256 && a->passed == b->passed &&
                a->played == b->played && a->first_failed_event == b->first_failed_event &&
                a->cause == b->cause;
    for (int m = 0; m < METRIC_COUNT && same; m++)
        same = same_number(a->values[m], b->values[m]) && a->timed[m] == b->timed[m];
    return same;
}

/* True if both have the same figures, measured on the same machine. */
static bool same_figures(const struct history_line *a, const struct history_line *b)
{
    bool same = a->run_count == b->run_count && a->count_count == b->count_count &&
                a->machine == b->machine;
    for (size_t i = 0; i < a->run_count && same; i++)
        same = same_figures_of_run(&a->runs[i], &b->runs[i]);
    for (size_t i = 0; i < a->count_count && same; i++) {
        const struct instruction_count *left = &a->counts[i];
        const struct instruction_count *right = &b->counts[i];
        same = left->policy == right->policy && left->trace == right->trace &&
               left->kind == right->kind && left->measure == right->measure &&
               left->compiler == right->compiler && same_number(left->value, right->value);
    }
    return same;
}

/* Truncates the file to `whole` bytes, ends its last line if necessary, and writes the new line. If
 * that fails, the file keeps its `whole` bytes. */
static enum ar_status write_line(int file, const char *path, size_t whole, bool ends,
                                 const char *line, size_t bytes, struct ar_error *error)
{
    if (ftruncate(file, (off_t)whole) != 0 || lseek(file, 0, SEEK_END) < 0 ||
        (!ends && write(file, "\n", 1) != 1))
        return failed(path, "written", error);
    if (file_write_all(file, line, bytes) && fsync(file) == 0)
        return AR_OK;
    enum ar_status status = failed(path, "written", error);
    (void)!ftruncate(file, (off_t)whole);
    return status;
}

/* Adds the line to the locked file, unless the commit has a line with the same figures. */
static enum ar_status add_to(int file, const char *path, const char *line, size_t bytes,
                             struct history_added *added, struct ar_error *error)
{
    char *text = NULL;
    size_t there = 0;
    struct history history = {0};
    struct history_line now = {0};
    enum ar_status status = read_all(file, path, &text, &there, error);
    AR_THEN(status, read_lines(&history, path, text, there, error));
    AR_THEN(status, parse_line(&history, line, bytes - 1, &now, error));
    added->added = true;
    for (size_t i = 0; i < history.count && !status; i++)
        if (strcmp(history.lines[i].commit, now.commit) == 0 &&
            same_figures(&history.lines[i], &now))
            added->added = false;
    size_t whole = there - history.torn_bytes;
    if (!status && added->added) {
        bool ends = whole == 0 || text[whole - 1] == '\n';
        status = write_line(file, path, whole, ends, line, bytes, error);
        added->cut_bytes = history.torn_bytes;
    }
    drop_line(&now);
    history_close(&history);
    free(text);
    return status;
}

static enum ar_status check(const struct result_set *results, struct history_stamp *stamp,
                            struct ar_error *error)
{
    if (!results->machine)
        return ar_invalid(
            error, "there is no result of `run --json` among them, so the machine is unknown");
    if (!stamp->commit && results->dirty)
        return ar_invalid(error, "the results are of a tree with uncommitted changes; commit them "
                                 "and measure again, or name the line: --commit NAME");
    if (!stamp->commit)
        stamp->commit = results->commit ? results->commit : "unknown";
    if (strcmp(stamp->commit, "unknown") == 0 || !*stamp->commit)
        return ar_invalid(error, "the results name no commit; add --commit NAME");
    size_t letters = 0;
    while (isgraph((unsigned char)stamp->commit[letters]))
        letters++;
    if (stamp->commit[letters] || letters > COMMIT_LONGEST)
        return ar_invalid(error,
                          "the commit \"%.40s\" is no name; write at most %d ASCII characters "
                          "without spaces: --commit NAME",
                          stamp->commit, COMMIT_LONGEST);
    if (!stamp->time)
        stamp->time = results->time ? results->time : "";
    if (!is_time(stamp->time))
        return ar_invalid(
            error, "\"%.40s\" is not a time; write the time of the commit as YYYY-MM-DDTHH:MM:SSZ",
            stamp->time);
    if (!*results->machine)
        return ar_invalid(error, "the results are of several machines; a line is for one machine");
    return AR_OK;
}

/* Opens or creates the file and locks it. Returns -1 and sets the error if that fails. Starts again
 * if another process created the file and removed it, because its own write failed. */
static int open_locked(const char *path, bool *made, struct ar_error *error)
{
    struct stat about;
    for (;;) {
        int file = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
        *made = file < 0 && errno == ENOENT;
        if (*made)
            file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (*made && file < 0 && errno == EEXIST)
            continue;
        if (file < 0) {
            (void)failed(path, "written", error);
            return -1;
        }
        if (flock(file, LOCK_EX) != 0 || fstat(file, &about) != 0) {
            (void)failed(path, "locked", error);
            close(file);
            return -1;
        }
        if (about.st_nlink > 0) {
            *made = *made && about.st_size == 0; /* otherwise another process has added a line */
            return file;
        }
        close(file);
    }
}

enum ar_status history_append(const char *path, const struct result_set *results,
                              const struct history_stamp *stamp, struct history_added *added,
                              struct ar_error *error)
{
    struct history_stamp used = *stamp;
    AR_FREED char *line = NULL;
    size_t bytes = 0;
    *added = (struct history_added){0};
    AR_TRY(check(results, &used, error));
    FILE *stream = open_memstream(&line, &bytes);
    AR_TRY_MEMORY(stream, error, "the history");
    write_line_of(stream, results, &used);
    AR_TRY_MEMORY(text_end(stream, &line), error, "the history");
    bool made = false;
    int file = open_locked(path, &made, error);
    enum ar_status status = file < 0 ? AR_IO : add_to(file, path, line, bytes, added, error);
    if (file >= 0 && status && made)
        (void)unlink(path);
    if (file >= 0)
        close(file);
    return status;
}
