/* `history`: adds results to a history and finds changes; exit status 1 on a regression. */
#include <stdlib.h>
#include <string.h>

#include "bench/cli/cli.h"
#include "bench/regress/history_page.h"
#include "bench/report/output_file.h"
#include "bench/report/sentence.h"

enum option_key {
    KEY_APPEND = CLI_KEYS,
    KEY_COMMIT,
    KEY_TIME,
    KEY_LAST,
    KEY_POLICY,
    KEY_WORKLOAD,
    KEY_METRIC,
    KEY_EFFECT,
    KEY_ALPHA,
    KEY_WAIVERS,
    KEY_TODAY,
    KEY_ALL,
    KEY_MARKDOWN,
    KEY_JSON,
    KEY_CSV,
    KEY_PANELS,
    KEY_ANNOTATIONS
};

static const struct cli_option options[] = {
    {KEY_APPEND, "append", "RESULTS", "first add a line for a file of `run --json` or a folder"},
    {KEY_COMMIT, "commit", "NAME", "commit of RESULTS; default: the commit of the program"},
    {KEY_TIME, "time", "TIME",
     "time of the commit, such as 2027-01-31T12:00:00Z; default: when measured"},
    {KEY_LAST, "last", "N", "only changes of the newest N commits count; default 10, 0: all"},
    {KEY_POLICY, "policy", "PATTERN", "only these policies (* ? [..])"},
    {KEY_WORKLOAD, "workload", "PATTERN", "only these workloads"},
    {KEY_METRIC, "metric", "PATTERN", "only these metrics; also `outcome` and `instructions`"},
    {KEY_EFFECT, "effect", "PERCENT", "smallest change of a time that counts; default 5"},
    {KEY_ALPHA, "alpha", "P", "probability of any false alarm of times; default 0.001"},
    {KEY_WAIVERS, "waivers", "FILE", "accepted regressions, each until a date"},
    {KEY_TODAY, "today", "YYYY-MM-DD", "date for the waivers; default: that of the newest commit"},
    {KEY_ALL, "all", NULL, "a row for every figure; default: grouped by policy or figure"},
    {KEY_MARKDOWN, "markdown", "FILE", "write the table as Markdown"},
    {KEY_JSON, "json", "FILE", "write all changes as JSON"},
    {KEY_CSV, "csv", "FILE", "write the data of the figure (plots/README.md)"},
    {KEY_PANELS, "panels", "N", "series in the figure; default 6"},
    {KEY_ANNOTATIONS, "annotations", NULL, "print GitHub annotations of regressions"},
    {0},
};

static const struct cli_page page = {
    .arguments = "FILE [options]",
    .text = "Finds the commits at which the results of a project changed. FILE has one line for\n"
            "each commit. Exact figures change at any difference, instructions at 1 %, times if\n"
            "rank tests are significant. The exit status is 1 if a change for the worse is in\n"
            "the newest commits, still stands and has no waiver.",
    .options = options,
};

struct arguments {
    const char *file, *append, *waivers, *today, *markdown, *json, *csv;
    struct history_stamp stamp;
    struct history_rules rules;
    size_t panels;
    bool all, annotations;
};

static enum ar_status whole_of(const char *key, const char *value, unsigned long most,
                               size_t *whole, struct ar_error *error)
{
    char *end = NULL;
    unsigned long number = strtoul(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end || number > most)
        return ar_error_set(error, AR_INVALID,
                            "--%s is \"%.40s\"; it must be a whole number, at most %lu", key, value,
                            most);
    *whole = number;
    return AR_OK;
}

/* The field of an option with a text; NULL for other options. */
static const char **text_of(struct arguments *self, int key)
{
    switch (key) {
    case KEY_APPEND:
        return &self->append;
    case KEY_COMMIT:
        return &self->stamp.commit;
    case KEY_TIME:
        return &self->stamp.time;
    case KEY_POLICY:
        return &self->rules.policy;
    case KEY_WORKLOAD:
        return &self->rules.workload;
    case KEY_METRIC:
        return &self->rules.figure;
    case KEY_WAIVERS:
        return &self->waivers;
    case KEY_TODAY:
        return &self->today;
    case KEY_MARKDOWN:
        return &self->markdown;
    case KEY_JSON:
        return &self->json;
    case KEY_CSV:
        return &self->csv;
    case CLI_ARGUMENT:
        return &self->file;
    default:
        return NULL;
    }
}

static enum ar_status take(void *argument, int key, const char *value, struct ar_error *error)
{
    struct arguments *self = argument;
    const char **text = text_of(self, key);
    enum ar_status status = AR_OK;
    if (key == CLI_ARGUMENT && self->file)
        return ar_error_set(error, AR_INVALID, "\"%s\" is one file too many", value);
    if (text)
        *text = value;
    if (key == KEY_ALL)
        self->all = true;
    else if (key == KEY_ANNOTATIONS)
        self->annotations = true;
    else if (key == KEY_LAST)
        status = whole_of("last", value, 1000000, &self->rules.last, error);
    else if (key == KEY_PANELS)
        status = whole_of("panels", value, 24, &self->panels, error);
    else if (key == KEY_ALPHA)
        status = cli_number("alpha", value, 0.5, &self->rules.alpha, error);
    else if (key == KEY_EFFECT)
        status = cli_number("effect", value, 1000, &self->rules.effect, error);
    if (key == KEY_EFFECT)
        self->rules.effect /= 100;
    if (key == KEY_TODAY && !waivers_is_date(value))
        return ar_error_set(error, AR_INVALID,
                            "--today is \"%.40s\"; write a date such as 2027-01-31", value);
    return status;
}

static enum ar_status append(const struct arguments *self, struct ar_error *error)
{
    struct result_set results;
    struct history_added added;
    enum ar_status status = result_set_read(&results, self->append, error);
    if (status)
        return status;
    status = history_append(self->file, &results, &self->stamp, &added, error);
    if (!status && added.cut_bytes)
        printf("Removed an incomplete last line of an interrupted write (%zu bytes).\n",
               added.cut_bytes);
    if (!status)
        printf("%s\n", added.added ? "Added a line for these results."
                                   : "These results have a line already; none was added.");
    result_set_close(&results);
    return status;
}

static enum ar_status write_files(const struct arguments *self, const struct history_view *view,
                                  struct ar_error *error)
{
    struct output_set outputs = {0};
    enum ar_status status = AR_OK;
    FILE *markdown = NULL;
    FILE *json = NULL;
    FILE *csv = NULL;
    if (self->markdown && !(markdown = output_set_open(&outputs, self->markdown, error)))
        status = AR_IO;
    if (!status && self->json && !(json = output_set_open(&outputs, self->json, error)))
        status = AR_IO;
    if (!status && self->csv && !(csv = output_set_open(&outputs, self->csv, error)))
        status = AR_IO;
    if (!status && markdown)
        status = history_page(view, markdown, TABLE_MARKDOWN, error);
    if (!status && json)
        history_json(view, json);
    if (!status && csv)
        status = history_figure(view, self->panels, csv, error);
    if (!status)
        return output_set_commit(&outputs, error);
    output_set_abandon(&outputs);
    return status;
}

static enum ar_status tell(const struct arguments *self, const struct history_view *view,
                           struct ar_error *error)
{
    const struct history_judged *judged = view->judged;
    enum ar_status status = write_files(self, view, error);
    if (!status)
        status = history_page(view, stdout, TABLE_TEXT, error);
    if (!status && self->annotations)
        history_annotations(view, stdout);
    if (status || !judged->counted)
        return status;
    const struct history_change *change = judged->changes;
    while (!history_counts(change))
        change++;
    const struct history_series *series = &judged->series[change->series];
    char before[40];
    char after[40];
    return ar_error_set(
        error, AR_NEGATIVE,
        "history: %zu figure%s worse, first %s of %s with policy %s: %s before, %s since %.12s",
        judged->counted, judged->counted == 1 ? " is" : "s are", series->figure,
        series->workload_name, series->policy, history_value_text(series, change->before, before),
        history_value_text(series, change->after, after),
        view->history->lines[change->line].commit);
}

static enum ar_status judge(const struct arguments *self, const struct history *history,
                            struct ar_error *error)
{
    char today[11] = "0000-00-00";
    struct waivers waivers = {0};
    struct history_judged judged;
    enum ar_status status = AR_OK;
    if (self->today)
        snprintf(today, sizeof today, "%.10s", self->today);
    else if (history->count)
        snprintf(today, sizeof today, "%.10s", history->lines[history->count - 1].time);
    if (self->waivers)
        status = waivers_read(&waivers, self->waivers, today, error);
    if (!status)
        status =
            history_judge(&judged, history, &self->rules, self->waivers ? &waivers : NULL, error);
    if (!status) {
        const struct history_view view = {history, &judged, &self->rules, self->all};
        status = tell(self, &view, error);
        history_judged_close(&judged);
    }
    waivers_close(&waivers);
    return status;
}

enum ar_status cmd_history(int argc, char **argv, struct ar_error *error)
{
    struct arguments self = {.rules = {.effect = 0.05, .alpha = 0.001, .last = 10}, .panels = 6};
    struct history history;
    bool help = false;
    enum ar_status status = cli_parse(&page, argc, argv, take, &self, &help, error);
    if (status || help)
        return status;
    if (!self.file)
        return ar_error_set(error, AR_INVALID, "history: no file is given; write history FILE");
    if (!self.append && (self.stamp.commit || self.stamp.time))
        return ar_error_set(error, AR_INVALID,
                            "history: --commit and --time describe results; add --append RESULTS");
    if (self.append)
        status = append(&self, error);
    if (status)
        return status;
    status = history_read(&history, self.file, error);
    if (status)
        return status;
    status = judge(&self, &history, error);
    history_close(&history);
    return status;
}
