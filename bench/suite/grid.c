/* The texts of specs: one key changed, lists within values expanded, and the [grid] section. */
#include "bench/suite/suite.h"

#include "allocators/base/array.h"
#include "allocators/registry.h"
#include "bench/report/output_file.h"
#include "bench/report/result_writers.h"
#include "bench/report/sentence.h"
#include "bench/suite/run.h"
#include "bench/suite/run_files.h"
#include "bench/suite/suite_run.h"
#include "sim/device.h"
#include "workloads/gen/gen.h"
#include "workloads/learned/learned.h"

#define TEXTS_MOST 100000
#define NAMES_MOST 512

/* ---- one key changed ------------------------------------------------------------------------ */

static void put_value(FILE *stream, const char *value)
{
    if (!strpbrk(value, ",:+()[]'\"= "))
        fputs(value, stream);
    else
        fprintf(stream, strchr(value, '\'') ? "\"%s\"" : "'%s'", value);
}

static void put_pair(FILE *stream, bool first, const char *key, const char *value)
{
    fprintf(stream, "%s%s=", first ? "" : ",", key);
    put_value(stream, value);
}

static void put_pairs(FILE *stream, const struct ar_spec_link *link, const char *key,
                      const char *value)
{
    bool written = false;
    for (size_t i = 0; i < link->pair_count; i++) {
        bool same = key && strcmp(link->pairs[i].key, key) == 0;
        put_pair(stream, i == 0, link->pairs[i].key, same ? value : link->pairs[i].value);
        written = written || same;
    }
    if (key && !written)
        put_pair(stream, link->pair_count == 0, key, value);
}

enum ar_status spec_text_with(const char *text, const char *key, const char *value, char **out,
                              struct ar_error *error)
{
    struct ar_spec spec;
    size_t length = 0;
    AR_TRY(ar_spec_parse(text, &spec, error));
    *out = NULL;
    FILE *stream = open_memstream(out, &length);
    for (size_t i = 0; stream && i < spec.link_count; i++) {
        const struct ar_spec_link *link = &spec.links[i];
        bool last = i == spec.link_count - 1;
        fputs(link->name, stream);
        if (last) {
            fputc(':', stream);
            put_pairs(stream, link, key, value);
        } else {
            if (link->pair_count) {
                fputc('(', stream);
                put_pairs(stream, link, NULL, NULL);
                fputc(')', stream);
            }
            fputc('+', stream);
        }
    }
    ar_spec_close(&spec);
    if (!text_end(stream, out))
        return ar_no_memory(error, "the spec \"%.60s\"", text);
    return AR_OK;
}

/* ---- lists in values ------------------------------------------------------------------------ */

/* The index of the first of the signs outside of quotes, or of the end. */
static size_t find(const char *text, size_t at, const char *signs)
{
    for (char quote = 0; text[at]; at++)
        if (quote)
            quote = text[at] == quote ? 0 : quote;
        else if (text[at] == '\'' || text[at] == '"')
            quote = text[at];
        else if (strchr(signs, text[at]))
            break;
    return at;
}

static enum ar_status grid_add(struct text_list *list, const char *text, struct ar_error *error)
{
    if (list->count == TEXTS_MOST)
        return ar_invalid(error, "a grid of more than %d specs; ask for fewer", TEXTS_MOST);
    return text_list_add(list, text, error);
}

static enum ar_status expand(struct text_list *out, const char *text, struct ar_error *error)
{
    size_t bar = find(text, 0, "|");
    size_t begin = 0;
    if (!text[bar])
        return grid_add(out, text, error);
    for (size_t at; (at = find(text, begin, "=,()|")) < bar;)
        begin = at + 1;
    if (begin == 0 || text[begin - 1] != '=')
        return ar_invalid(error, "\"%.80s\": a list a|b takes the place of a value: key=a|b", text);
    size_t end = find(text, bar, ",)");
    for (size_t at = begin, next; at <= end; at = next + 1) {
        AR_FREED char *one = NULL;
        next = find(text, at, "|,)");
        if (next == at)
            return ar_invalid(error, "\"%.80s\": a value of a list is empty", text);
        if (asprintf(&one, "%.*s%.*s%s", (int)begin, text, (int)(next - at), text + at,
                     text + end) < 0)
            return ar_no_memory(error, "a grid");
        AR_TRY(expand(out, one, error));
    }
    return AR_OK;
}

/* Replaces each spec of the list by those that it stands for; the first value varies slowest.
 * INVALID for a bar outside of a value, and for too many specs. */
/* The caller closes `other`, which has the texts that were in `list`. */
static void exchange(struct text_list *list, struct text_list *other)
{
    struct text_list before = *list;
    *list = *other;
    *other = before;
}

static enum ar_status grid_expand(struct text_list *list, struct ar_error *error)
{
    AR_CLOSED(text_list_close) struct text_list out = {0};
    for (size_t i = 0; i < list->count; i++)
        AR_TRY(expand(&out, list->items[i], error));
    exchange(list, &out);
    return AR_OK;
}

/* ---- [grid]: reading ------------------------------------------------------------------------ */

/* The lists that a key can reach, by the name of their section. */
enum list { POLICIES, WORKLOADS, DEVICES, LISTS };
static const char *const list_names[LISTS] = {"policies", "workloads", "devices"};

static struct text_list *list_of(struct suite *suite, enum list which)
{
    return which == POLICIES    ? &suite->policies
           : which == WORKLOADS ? &suite->workloads
                                : &suite->devices;
}

static enum ar_status read_values(struct text_list *values, char *text, struct ar_error *error)
{
    static const char gaps[] = " \t,";
    while (*(text += strspn(text, gaps))) {
        const char quote[2] = {*text == '\'' || *text == '"' ? *text : '\0', '\0'};
        char *begin = quote[0] ? text + 1 : text;
        char *end = begin + strcspn(begin, quote[0] ? quote : gaps);
        if (quote[0] && (!*end || !strchr(" \t,", end[1])))
            return ar_invalid(error, "\"%.60s\": the quote does not end with the value", text);
        text = *end ? end + 1 : end;
        *end = '\0';
        AR_TRY(text_list_add(values, begin, error));
    }
    if (values->count == 0)
        return ar_invalid(error, "a key of [grid] needs values: key = 1 2 3");
    return AR_OK;
}

static void axis_close(struct suite_axis *axis)
{
    free(axis->target);
    free(axis->key);
    text_list_close(&axis->values);
}

enum ar_status axes_add(struct suite *suite, const char *key, const char *values, unsigned number,
                        struct ar_error *error)
{
    const char *colon = strrchr(key, ':');
    struct suite_axis axis = {.line = number};
    char *copy = strdup(values);
    axis.target = colon ? strndup(key, (size_t)(colon - key)) : NULL;
    axis.key = strdup(colon ? colon + 1 : key);
    enum ar_status status = AR_OK;
    if (!copy || !axis.key || (colon && !axis.target))
        status = ar_no_memory(error, "the grid of a suite");
    else if (!axis.key[0] || (colon && !axis.target[0]))
        status = ar_invalid(error, "\"%.60s\" is no key of [grid]; write key or name:key", key);
    else
        status = read_values(&axis.values, copy, error);
    free(copy);
    if (!status && !AR_ARRAY_ADD(suite->axes, suite->axis_count, suite->axis_room, axis))
        status = ar_no_memory(error, "the grid of a suite");
    if (status)
        axis_close(&axis);
    return status;
}

void axes_close(struct suite *suite)
{
    for (size_t i = 0; i < suite->axis_count; i++)
        axis_close(&suite->axes[i]);
    free(suite->axes);
    suite->axes = NULL;
    suite->axis_count = suite->axis_room = 0;
}

/* ---- [grid]: the specs that a key reaches ---------------------------------------------------- */

/* The options of the policy, generator or device that the spec names; NULL: none. */
static enum ar_status options_of(enum list which, const struct ar_spec *spec,
                                 const struct ar_option **out, struct ar_error *error)
{
    const char *name = spec->links[spec->link_count - 1].name;
    const struct ar_policy_ops *ops = NULL;
    enum ar_status status = AR_OK;
    *out = NULL;
    if (which == POLICIES) {
        status = registry_lookup(spec, &ops, error);
        *out = status ? NULL : ops->options;
    } else if (which == WORKLOADS) {
        *out = gen_find(name)                    ? gen_find(name)->options
               : strcmp(name, LEARNED_NAME) == 0 ? learned_options
                                                 : NULL;
    } else {
        for (size_t i = 0; device_kinds[i]; i++)
            if (strcmp(device_kinds[i]->name, name) == 0)
                *out = device_kinds[i]->options;
    }
    return status;
}

/* The names of the options seen, each once, to suggest a similar one. */
struct names {
    const char *items[NAMES_MOST];
    size_t count;
};

static void note_names(struct names *names, const struct ar_option *options)
{
    for (; options && options->name && names->count < NAMES_MOST; options++) {
        size_t i = 0;
        while (i < names->count && strcmp(names->items[i], options->name) != 0)
            i++;
        names->items[i] = options->name;
        names->count += i == names->count;
    }
}

/* Whether the spec has an option of that name, and whether it gives it a value itself. */
static enum ar_status reaches(const struct suite_axis *axis, enum list which, const char *text,
                              struct names *names, bool *has, bool *given, struct ar_error *error)
{
    AR_CLOSED(ar_spec_close) struct ar_spec spec = {0};
    const struct ar_option *options = NULL;
    *has = *given = false;
    AR_TRY(ar_spec_parse(text, &spec, error));
    const struct ar_spec_link *link = &spec.links[spec.link_count - 1];
    bool meant = !axis->target || strcmp(axis->target, list_names[which]) == 0 ||
                 strcmp(axis->target, link->name) == 0;
    enum ar_status status = meant ? options_of(which, &spec, &options, error) : AR_OK;
    note_names(names, options);
    *has = options && ar_options_find(options, axis->key);
    *given = ar_spec_value(&spec, axis->key) != NULL;
    return status;
}

/* The number of specs of a list that the key would change. A trace file has no options, and its
 * name may not be a spec. */
static enum ar_status count_reached(const struct suite_axis *axis, struct suite *suite,
                                    enum list which, struct names *names, size_t *count,
                                    struct ar_error *error)
{
    const struct text_list *list = list_of(suite, which);
    for (size_t i = 0; i < list->count; i++) {
        bool has;
        bool given;
        struct ar_error ignored = {{0}};
        enum ar_status status = reaches(axis, which, list->items[i], names, &has, &given,
                                        which == WORKLOADS ? &ignored : error);
        if (status && which != WORKLOADS)
            return status;
        *count += !status && has && !given;
    }
    return AR_OK;
}

static enum ar_status refuse_unreached(const struct suite_axis *axis, const struct names *names,
                                       struct ar_error *error)
{
    const char *near = ar_nearest_name(axis->key, names->items, names->count);
    const char *target = axis->target ? axis->target : "the suite";
    if (near && strcmp(near, axis->key) == 0)
        return ar_invalid(error,
                          "every spec that has an option \"%.60s\" gives it a value already; take "
                          "it out of one of both",
                          axis->key);
    if (names->count == 0)
        return ar_invalid(error, "nothing that \"%.60s\" names is in this suite and has options",
                          target);
    return ar_invalid(error, "nothing in %.60s has an option \"%.60s\"%s%s%s", target, axis->key,
                      near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

/* ---- [grid]: applying ------------------------------------------------------------------------ */

static enum ar_status multiply(const struct suite_axis *axis, struct text_list *list,
                               enum list which, struct ar_error *error)
{
    AR_CLOSED(text_list_close) struct text_list out = {0};
    struct names unused = {.count = 0};
    for (size_t i = 0; i < list->count; i++) {
        bool has, given;
        struct ar_error ignored = {{0}};
        if (reaches(axis, which, list->items[i], &unused, &has, &given, &ignored) || !has ||
            given) {
            AR_TRY(grid_add(&out, list->items[i], error));
            continue;
        }
        for (size_t j = 0; j < axis->values.count; j++) {
            AR_FREED char *with = NULL;
            AR_TRY(spec_text_with(list->items[i], axis->key, axis->values.items[j], &with, error));
            AR_TRY(grid_add(&out, with, error));
        }
    }
    exchange(list, &out);
    return AR_OK;
}

static enum ar_status apply(const struct suite_axis *axis, struct suite *suite, const char *path,
                            struct ar_error *error)
{
    struct names names = {.count = 0};
    enum list only = LISTS;
    enum ar_status status = AR_OK;
    for (enum list which = POLICIES; which < LISTS && !status; which++) {
        size_t count = 0;
        status = count_reached(axis, suite, which, &names, &count, error);
        if (status)
            return status; /* an error of another line: the text names the spec */
        if (count && only != LISTS)
            status = ar_invalid(
                error, "\"%.60s\" is an option of %s and of %s: write %s:%.60s or %s:%.60s",
                axis->key, list_names[only], list_names[which], list_names[only], axis->key,
                list_names[which], axis->key);
        else if (count)
            only = which;
    }
    if (!status && only == LISTS)
        status = refuse_unreached(axis, &names, error);
    AR_THEN(status, multiply(axis, list_of(suite, only), only, error));
    return ar_error_prefix(error, status, "%s:%u", path, axis->line);
}

/* Puts the specs of every combination into the lists of the suite and empties the grid. `path` is
 * that of the suite, for errors. INVALID by rule 4, for specs that cannot be read, and for too many
 * specs. */
static enum ar_status axes_apply(struct suite *suite, const char *path, struct ar_error *error)
{
    if (suite->axis_count && !suite->devices.count)
        AR_TRY(text_list_add(&suite->devices, "sim", error));
    for (size_t i = 0; i < suite->axis_count; i++)
        AR_TRY(apply(&suite->axes[i], suite, path, error));
    axes_close(suite);
    return AR_OK;
}

/* ---- a sweep: the runs of a grid ------------------------------------------------------------- */

struct sweep {
    struct plan plan;
    struct run_record *records;
    struct results results;
    struct journal journal;
    bool has_journal;
};

static void close_sweep(struct sweep *self)
{
    results_close(&self->results);
    free(self->records);
    plan_close(&self->plan);
}

static enum ar_status check(const struct suite *suite, struct ar_error *error)
{
    if (suite->time)
        return ar_invalid(error, "sweep: cases side by side disturb each other's host times; leave "
                                 "time out, or use `run --time`");
    if (suite->ratio_count)
        return ar_invalid(error,
                          "sweep: [slowdown] is for `run`; list capacities in [suite] instead");
    return AR_OK;
}

/* For each workload and device: the number of runs that finished, and the best of them. */
static enum ar_status print_best(const struct sweep *self, FILE *stream, enum table_form form,
                                 struct ar_error *error)
{
    struct table *table =
        table_of("workload<40; device<32; finished; peak phys.|MiB; overhead; best policy<");
    for (size_t i = 0; i < self->results.group_count; i++) {
        const struct result_group *group = &self->results.groups[i];
        const struct run_record *best = NULL;
        size_t passed = 0;
        for (const struct run_record *run = group->runs; run < group->runs + group->run_count;
             run++) {
            passed += run->passed;
            if (run->passed && run->ranked && (!best || run_record_rank_order(run, best) < 0))
                best = run;
        }
        table_cell(table, "%s", group->runs->workload_spec);
        table_cell(table, "%s", group->runs->device_spec);
        table_cell(table, "%zu of %zu", passed, group->run_count);
        if (!best) {
            table_rest(table, "none finished");
            continue;
        }
        table_cell(table, "%.1f",
                   metric_number(&best->metrics, METRIC_peak_physical_bytes, 0) / 1048576);
        table_cell(table, "%.3f", metric_number(&best->metrics, METRIC_overhead, 0));
        table_cell(table, "%s", best->policy_spec);
    }
    return table_end(table, stream, form, error);
}

static enum ar_status run_all(struct sweep *self, const struct sweep_files *files,
                              struct ar_error *error)
{
    const size_t count = self->plan.run_count;
    for (size_t i = 0; i < count; i++) {
        struct plan_run *run = &self->plan.runs[i];
        run->alone = self->plan.alone[run->device]; /* policies of shared objects run here too */
        if (run->alone)
            return ar_invalid(error,
                              "sweep: cases share this process; a card and isolate are for `run`");
    }
    self->records = calloc(count ? count : 1, sizeof *self->records);
    AR_TRY_MEMORY(self->records, error, "the grid of a suite");
    AR_TRY(matrix_run_journal(&self->plan, plan_jobs(&self->plan), true, files->journal,
                              &self->journal, &self->has_journal, self->records, error));
    return results_open(&self->results, self->records, count, error);
}

/* The folder that `run` writes, without series: a sweep keeps none. */
static enum ar_status write_folder(const struct sweep *self, struct result_folder *folder,
                                   const char *path, struct output_set *outputs,
                                   struct ar_error *error)
{
    AR_TRY(result_folder_open(folder, path, outputs, error));
    result_folder_summary(folder, &self->results);
    AR_TRY(print_best(self, folder->summary, TABLE_MARKDOWN, error));
    return result_folder_write(folder, &self->results, NULL, error);
}

static enum ar_status finish(const struct sweep *self, const struct suite *suite,
                             struct output_set *outputs, FILE *json, FILE *csv, FILE *stream,
                             struct ar_error *error)
{
    if (json)
        results_json_write(json, &self->results);
    if (csv)
        results_csv_write(csv, &self->results);
    struct result_folder folder = {0};
    bool quiet = outputs->standard;
    enum ar_status status = quiet ? AR_OK : print_best(self, stream, TABLE_TEXT, error);
    if (!status && suite->output)
        status = write_folder(self, &folder, suite->output, outputs, error);
    AR_THEN(status,
            result_folder_commit(&folder, outputs, suite->output && !quiet ? stream : NULL, error));
    if (status) {
        output_set_abandon(outputs);
        result_folder_take_away(&folder);
    }
    result_folder_close(&folder);
    return status;
}

static enum ar_status expand_all(struct suite *suite, const char *path, struct ar_error *error)
{
    AR_TRY(grid_expand(&suite->policies, error));
    AR_TRY(grid_expand(&suite->workloads, error));
    AR_TRY(grid_expand(&suite->devices, error));
    AR_TRY(axes_apply(suite, path, error));
    return suite_put_first(suite, error);
}

enum ar_status sweep_run(struct suite *suite, const struct sweep_files *files,
                         const struct environment *environment, FILE *stream,
                         struct ar_error *error)
{
    AR_CLOSED(close_sweep) struct sweep self = {.has_journal = false};
    AR_CLOSED(output_set_abandon) struct output_set outputs = {0};
    FILE *json, *csv;
    AR_TRY(check(suite, error));
    AR_TRY(expand_all(suite, files->suite, error));
    AR_TRY(plan_make(&self.plan, suite, error));
    AR_TRY(output_set_add(&outputs, files->json, &json, error));
    AR_TRY(output_set_add(&outputs, files->csv, &csv, error));
    if (suite->output)
        AR_TRY(result_folder_check(suite->output, &outputs, files->journal, error));
    enum ar_status status = run_all(&self, files, error);
    self.results.environment = environment;
    self.results.suite = suite->name;
    AR_THEN(status, finish(&self, suite, &outputs, json, csv, stream, error));
    if (self.has_journal)
        journal_close(&self.journal, status == AR_OK);
    return status;
}
