/* `compare`: a verdict for every figure of two result sets; exit status 1 on a regression. */

#include <limits.h>
#include <unistd.h>

#include "bench/cli/cli.h"
#include "bench/regress/change_table.h"
#include "bench/report/output_file.h"

struct arguments {
    struct cli_words sets;
    const char *old, *new, *markdown, *junit, *json, *waivers, *today;
    bool all, annotations;
    struct verdict_rules rules;
    double effect_percent;
};

static const struct cli_option options[] = {
    {0, "waivers", "FILE", "accepted regressions, each until a date", CLI_TEXT(waivers)},
    {0, "today", "YYYY-MM-DD", "date for the waivers; default: the date of NEW", CLI_TEXT(today)},
    {0, "effect", "PERCENT", "smallest change of a time that counts; default 5",
     CLI_NUMBER(effect_percent, 0, 1000)},
    {0, "alpha", "P", "probability of any false alarm of times; default 0.05",
     CLI_NUMBER(rules.alpha, 0, 0.5)},
    {0, "all", NULL, "a row for every figure; default: grouped by policy or figure", CLI_FLAG(all)},
    {0, "require-all", NULL, "exit status 1 if a run or a figure of OLD is missing in NEW",
     CLI_FLAG(rules.require_all)},
    {0, "markdown", "FILE", "write the table as Markdown", CLI_FILE(markdown)},
    {0, "junit", "FILE", "write the rows as JUnit XML", CLI_FILE(junit)},
    {0, "json", "FILE", "write the figures and their verdicts as JSON", CLI_FILE(json)},
    {0, "annotations", NULL, "print GitHub annotations of regressions", CLI_FLAG(annotations)},
    {0},
};

static const struct cli_page page = {
    .arguments = "OLD NEW [options]",
    .text =
        "Compares the results NEW with OLD: files of `run --json` or of `make instructions`, or\n"
        "folders of them. Each figure is SAME, BETTER, WORSE, AMBIGUOUS or NO-DATA. The exit\n"
        "status is 1 if a figure is WORSE without a waiver. A run of OLD that NEW does not have\n"
        "is NO-DATA and named in the last line; with --require-all the exit status is 1 too,\n"
        "also if NEW has no value of a figure, or two that differ.\n"
        "A run that only NEW has, as of a new policy, is NO-DATA and never WORSE.\n"
        "Exact figures are compared exactly, instructions within 1 %, and times with a rank test\n"
        "over at least 9 repetitions in each result set, on one machine.",
    .options = options,
    .argument = {.value = "result set", CLI_WORDS(sets, 2)},
};

/* `*quiet`: standard output is one of the files. */
static enum ar_status write_files(const struct arguments *self, const struct verdicts *verdicts,
                                  const struct waivers *waivers, bool *quiet,
                                  struct ar_error *error)
{
    AR_CLOSED(output_set_abandon) struct output_set outputs = {0};
    FILE *markdown, *junit, *json;
    AR_TRY(output_set_add(&outputs, self->markdown, &markdown, error));
    AR_TRY(output_set_add(&outputs, self->junit, &junit, error));
    AR_TRY(output_set_add(&outputs, self->json, &json, error));
    *quiet = outputs.standard;
    if (markdown)
        AR_TRY(compare_page(verdicts, waivers, self->all, markdown, TABLE_MARKDOWN, error));
    if (junit)
        compare_junit(verdicts, junit);
    if (json)
        compare_json(verdicts, json);
    return output_set_commit(&outputs, error);
}

static enum ar_status first_worse(const struct verdicts *verdicts, size_t worse,
                                  struct ar_error *error)
{
    const struct verdict_row *row = NULL;
    for (size_t i = 0; i < verdicts->count; i++) {
        const struct verdict_row *other = &verdicts->rows[i];
        if (other->verdict == VERDICT_WORSE && !change_is_waived(other->waiver) &&
            (!row || verdict_is_worse(other, row)))
            row = other;
    }
    char old[CHANGE_VALUE_ROOM], new[CHANGE_VALUE_ROOM];
    return ar_error_set(
        error, AR_NEGATIVE,
        "compare: %zu figure%s worse, first %s of %s with policy %s: %s before, %s now", worse,
        worse == 1 ? " is" : "s are", row->figure, row->workload_name, row->policy,
        change_value_text(row->figure, row->old, old),
        change_value_text(row->figure, row->new, new));
}

static enum ar_status first_missing(const struct arguments *self, const struct verdicts *verdicts,
                                    struct ar_error *error)
{
    const struct verdict_row *row = verdicts->rows;
    if (verdicts->missing)
        return ar_error_set(error, AR_NEGATIVE, "compare: %zu run%s of %s %s missing in %s",
                            verdicts->missing, verdicts->missing == 1 ? "" : "s", self->old,
                            verdicts->missing == 1 ? "is" : "are", self->new);
    if (!verdicts->lost)
        return AR_OK;
    while (!row->lost)
        row++;
    return ar_error_set(error, AR_NEGATIVE,
                        "compare: %zu figure%s of %s %s no single value in %s, first %s of %s with "
                        "policy %s: %s",
                        verdicts->lost, verdicts->lost == 1 ? "" : "s", self->old,
                        verdicts->lost == 1 ? "has" : "have", self->new, row->figure,
                        row->workload_name, row->policy, row->note);
}

static enum ar_status tell(const struct arguments *self, const struct verdicts *verdicts,
                           const struct waivers *waivers, struct ar_error *error)
{
    bool quiet;
    AR_TRY(write_files(self, verdicts, waivers, &quiet, error));
    if (!quiet)
        AR_TRY(compare_page(verdicts, waivers, self->all, stdout, TABLE_TEXT, error));
    if (self->annotations)
        compare_annotations(verdicts, quiet ? stderr : stdout);
    size_t worse = verdicts->figures[VERDICT_WORSE] - verdicts->waived;
    if (worse)
        return first_worse(verdicts, worse, error);
    return self->rules.require_all ? first_missing(self, verdicts, error) : AR_OK;
}

/* Waivers count by option only: a file with them beside the results is not read. */
static void tell_waivers(const struct arguments *self)
{
    for (size_t i = 0; i < 2 && !self->waivers; i++) {
        char path[PATH_MAX];
        int used = snprintf(path, sizeof path, "%s/waivers.ini", self->sets.at[i]);
        if (used > 0 && (size_t)used < sizeof path && access(path, F_OK) == 0)
            fprintf(stderr, "allocrig: %s is not read: add --waivers %s\n", path, path);
    }
}

static enum ar_status compare(const struct arguments *self, const struct result_set *old,
                              const struct result_set *new, struct ar_error *error)
{
    char today[11] = "";
    AR_CLOSED(waivers_close) struct waivers waivers = {0};
    AR_CLOSED(verdicts_close) struct verdicts verdicts = {0};
    if (self->today || new->time)
        snprintf(today, sizeof today, "%.10s", self->today ? self->today : new->time);
    if (self->waivers && !waivers_is_date(today))
        return ar_invalid(error, "compare: NEW has no date; add --today YYYY-MM-DD");
    if (self->waivers)
        AR_TRY(waivers_read(&waivers, self->waivers, error));
    waivers_expire(&waivers, today);
    AR_TRY(verdicts_make(&verdicts, old, new, &self->rules, &waivers, error));
    return tell(self, &verdicts, self->waivers ? &waivers : NULL, error);
}

enum ar_status cmd_compare(int argc, char **argv, struct ar_error *error)
{
    struct arguments self = {.rules = {.alpha = 0.05}, .effect_percent = 5};
    AR_CLOSED(result_set_close) struct result_set old = {0}, new = {0};
    AR_TRY(cli_parse(&page, argc, argv, &self, error));
    if (self.today && !waivers_is_date(self.today))
        return ar_invalid(error, "compare: --today is \"%.40s\"; write a date such as 2027-01-31",
                          self.today);
    if (self.sets.count < 2)
        return ar_invalid(error, "compare: name two result sets: compare OLD NEW");
    self.old = self.sets.at[0];
    self.new = self.sets.at[1];
    self.rules.effect = self.effect_percent / 100;
    tell_waivers(&self);
    AR_TRY(result_set_read(&old, self.old, error));
    AR_TRY(result_set_read(&new, self.new, error));
    return compare(&self, &old, &new, error);
}
