/* `history`: adds results to a history and finds changes; exit status 1 on a regression. */
#include <fnmatch.h>

#include "allocators/options.h"
#include "bench/cli/cli.h"
#include "bench/regress/change_table.h"
#include "bench/regress/history.h"
#include "bench/report/output_file.h"

struct arguments {
    const char *file, *append, *waivers, *today, *markdown, *json, *csv;
    struct history_stamp stamp;
    struct history_rules rules;
    uint64_t panels;
    double effect_percent;
    bool all, annotations;
};

static const struct cli_option options[] = {
    {0, "append", "RESULTS", "first add a line for a file of `run --json` or a folder",
     CLI_TEXT(append)},
    {0, "commit", "NAME", "commit of RESULTS; default: the commit of the program",
     CLI_TEXT(stamp.commit)},
    {0, "time", "TIME", "time of the commit, such as 2027-01-31T12:00:00Z; default: when measured",
     CLI_TEXT(stamp.time)},
    {0, "last", "N", "only changes of the newest N commits count; default 10, 0: all",
     CLI_COUNT(rules.last, 0, 1000000)},
    {0, "policy", "PATTERN", "only these policies (* ? [..])", CLI_TEXT(rules.policy)},
    {0, "workload", "PATTERN", "only these workloads", CLI_TEXT(rules.workload)},
    {0, "metric", "PATTERN", "only these metrics; also `outcome` and `instructions`",
     CLI_TEXT(rules.figure)},
    {0, "effect", "PERCENT", "smallest change of a time that counts; default 5",
     CLI_NUMBER(effect_percent, 0, 1000)},
    {0, "alpha", "P", "probability of any false alarm of times; default 0.001",
     CLI_NUMBER(rules.alpha, 0, 0.5)},
    {0, "waivers", "FILE", "accepted regressions, each until a date", CLI_TEXT(waivers)},
    {0, "today", "YYYY-MM-DD", "date for the waivers; default: that of the newest commit",
     CLI_TEXT(today)},
    {0, "all", NULL, "a row for every figure; default: grouped by policy or figure", CLI_FLAG(all)},
    {0, "markdown", "FILE", "write the table as Markdown", CLI_FILE(markdown)},
    {0, "json", "FILE", "write all changes as JSON", CLI_FILE(json)},
    {0, "csv", "FILE", "write the data of the figure (plots/README.md)", CLI_FILE(csv)},
    {0, "panels", "N", "series in the figure; default 6", CLI_COUNT(panels, 0, 24)},
    {0, "annotations", NULL, "print GitHub annotations of regressions", CLI_FLAG(annotations)},
    {0},
};

static const struct cli_page page = {
    .arguments = "FILE [options]",
    .text = "Finds the commits at which the results of a project changed. FILE has one line for\n"
            "each commit. Exact figures change at any difference, instructions at 1 %, times if\n"
            "rank tests are significant. The exit status is 1 if a change for the worse is in\n"
            "the newest commits, still stands and has no waiver.",
    .options = options,
    .argument = {.value = "file", .regular = true, CLI_TEXT(file)},
};

/* `stream`: for what is said beside the files. */
static enum ar_status append(const struct arguments *self, FILE *stream, struct ar_error *error)
{
    AR_CLOSED(result_set_close) struct result_set results = {0};
    struct history_added added;
    AR_TRY(result_set_read(&results, self->append, error));
    AR_TRY(history_append(self->file, &results, &self->stamp, &added, error));
    if (added.cut_bytes)
        fprintf(stream, "Removed an incomplete last line of an interrupted write (%zu bytes).\n",
                added.cut_bytes);
    fprintf(stream, "%s\n",
            added.added ? "Added a line for these results."
                        : "These results have a line already; none was added.");
    return AR_OK;
}

/* The files to write. They are opened before a line is added, so that no line stays behind if one
 * of them cannot be written. */
struct outputs {
    struct output_set files;
    FILE *markdown, *json, *csv;
};

static void close_outputs(struct outputs *self)
{
    output_set_abandon(&self->files);
}

static enum ar_status write_files(const struct arguments *self, const struct history_view *view,
                                  struct outputs *outputs, struct ar_error *error)
{
    if (outputs->markdown)
        AR_TRY(history_page(view, outputs->markdown, TABLE_MARKDOWN, error));
    if (outputs->json)
        history_json(view, outputs->json);
    if (outputs->csv)
        AR_TRY(history_figure(view, self->panels, outputs->csv, error));
    return output_set_commit(&outputs->files, error);
}

static enum ar_status tell(const struct arguments *self, const struct history_view *view,
                           struct outputs *outputs, struct ar_error *error)
{
    const struct history_judged *judged = view->judged;
    const bool quiet = outputs->files.standard;
    AR_TRY(write_files(self, view, outputs, error));
    if (!quiet)
        AR_TRY(history_page(view, stdout, TABLE_TEXT, error));
    if (self->annotations)
        history_annotations(view, quiet ? stderr : stdout);
    if (!judged->counted)
        return AR_OK;
    const struct history_change *change = judged->changes;
    while (!history_counts(change))
        change++;
    const struct history_series *series = &judged->series[change->series];
    char before[40], after[40];
    char old[CHANGE_VALUE_ROOM], new[CHANGE_VALUE_ROOM];
    return ar_error_set(
        error, AR_NEGATIVE,
        "history: %zu figure%s worse, first %s of %s with policy %s: %s before, %s since %.12s",
        judged->counted, judged->counted == 1 ? " is" : "s are", series->figure,
        series->workload_name, series->policy,
        change_value_text(series->figure, history_value_text(series, change->before, before), old),
        change_value_text(series->figure, history_value_text(series, change->after, after), new),
        view->history->lines[change->line].commit);
}

/* Refuses the pattern if it matches none of the names. */
static enum ar_status check_pattern(const char *option, const char *pattern,
                                    const char *const *names, size_t count, struct ar_error *error)
{
    for (size_t i = 0; i < count; i++)
        if (!pattern || fnmatch(pattern, names[i], 0) == 0)
            return AR_OK;
    const char *near = ar_nearest_name(pattern, names, count);
    if (near)
        return ar_invalid(
            error,
            "history: --%s \"%.60s\" matches nothing in the history; did you mean \"%.200s\"?",
            option, pattern, near);
    return ar_invalid(error,
                      "history: --%s \"%.60s\" matches nothing in the history; `history FILE "
                      "--all` lists what there is",
                      option, pattern);
}

/* For patterns that leave no series: tells which one matches nothing. */
static enum ar_status explain_no_series(const struct history *history,
                                        const struct history_rules *rules, struct ar_error *error)
{
    struct history_rules every = *rules;
    AR_CLOSED(history_judged_close) struct history_judged all = {0};
    every.policy = every.workload = every.figure = NULL;
    AR_TRY(history_judge(&all, history, &every, NULL, error));
    if (!all.count)
        return AR_OK;
    AR_FREED const char **names = calloc(2 * all.count, sizeof *names);
    AR_TRY_MEMORY(names, error, "names");
    for (size_t i = 0; i < all.count; i++)
        names[i] = all.series[i].policy;
    AR_TRY(check_pattern("policy", rules->policy, names, all.count, error));
    for (size_t i = 0; i < all.count; i++)
        names[i] = all.series[i].figure;
    AR_TRY(check_pattern("metric", rules->figure, names, all.count, error));
    for (size_t i = 0; i < all.count; i++) {
        names[2 * i] = all.series[i].workload_name;
        names[2 * i + 1] = all.series[i].workload;
    }
    AR_TRY(check_pattern("workload", rules->workload, names, 2 * all.count, error));
    return ar_invalid(error, "history: --policy, --workload and --metric together match "
                             "nothing in the history; leave one of them out");
}

static enum ar_status judge(const struct arguments *self, const struct history *history,
                            struct waivers *waivers, struct outputs *outputs,
                            struct ar_error *error)
{
    char today[11] = "0000-00-00";
    AR_CLOSED(history_judged_close) struct history_judged judged = {0};
    if (self->today)
        snprintf(today, sizeof today, "%.10s", self->today);
    else if (history->count)
        snprintf(today, sizeof today, "%.10s", history->lines[history->count - 1].time);
    waivers_expire(waivers, today);
    AR_TRY(history_judge(&judged, history, &self->rules, self->waivers ? waivers : NULL, error));
    const struct history_view view = {history, &judged, &self->rules, self->all};
    AR_TRY(judged.count ? AR_OK : explain_no_series(history, &self->rules, error));
    return tell(self, &view, outputs, error);
}

enum ar_status cmd_history(int argc, char **argv, struct ar_error *error)
{
    struct arguments self = {
        .rules = {.alpha = 0.001, .last = 10}, .panels = 6, .effect_percent = 5};
    AR_CLOSED(history_close) struct history history = {0};
    AR_CLOSED(waivers_close) struct waivers waivers = {0};
    AR_CLOSED(close_outputs) struct outputs outputs = {.json = NULL};
    AR_TRY(cli_parse(&page, argc, argv, &self, error));
    self.rules.effect = self.effect_percent / 100;
    if (self.today && !waivers_is_date(self.today))
        return ar_invalid(error, "history: --today is \"%.40s\"; write a date such as 2027-01-31",
                          self.today);
    if (!self.file)
        return ar_invalid(error, "history: no file is given; write history FILE");
    if (!self.append && (self.stamp.commit || self.stamp.time))
        return ar_invalid(error,
                          "history: --commit and --time describe results; add --append RESULTS");
    AR_TRY(output_set_add(&outputs.files, self.markdown, &outputs.markdown, error));
    AR_TRY(output_set_add(&outputs.files, self.json, &outputs.json, error));
    AR_TRY(output_set_add(&outputs.files, self.csv, &outputs.csv, error));
    if (self.waivers) /* before a line is added, which stays */
        AR_TRY(waivers_read(&waivers, self.waivers, error));
    if (self.append)
        AR_TRY(append(&self, outputs.files.standard ? stderr : stdout, error));
    AR_TRY(history_read(&history, self.file, error));
    if (!history.count && !history.torn_bytes)
        return ar_invalid(error,
                          "history: %s holds no measurement; `history FILE --append RESULTS` adds "
                          "one",
                          self.file);
    return judge(&self, &history, &waivers, &outputs, error);
}
