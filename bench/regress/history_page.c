#include "bench/regress/history.h"

#include <math.h>

#include "allocators/base/array.h"
#include "bench/regress/change_table.h"
#include "bench/regress/verdict.h"
#include "bench/report/data_writer.h"
#include "bench/report/sentence.h"

#define COMMIT_SHOWN 12 /* letters of a commit */

static const struct history_series *series_of(const struct history_view *view,
                                              const struct history_change *change)
{
    return &view->judged->series[change->series];
}

static bool is_share(const struct history_view *view, const struct history_change *change)
{
    return change_is_share(series_of(view, change)->unit, change->before, change->after);
}

/* Its size; of a share the difference. */
static double size_of(const struct history_view *view, const struct history_change *change)
{
    return is_share(view, change) ? fabs(change->after - change->before) : change->change;
}

/* The size of the change, its p value, the reason why it does not count, and its waiver without
 * name and reason. */
static void remark(const struct history_view *view, const struct history_change *change,
                   char text[400])
{
    const char *parts[6];
    char size[48] = "";
    char sure[32] = "";
    char waiver[48];
    size_t count = 0;
    if (size_of(view, change) >= 0)
        change_size_text(size_of(view, change), is_share(view, change),
                         change->after > change->before ? "more" : "less", size);
    if (series_of(view, change)->kind == CHANGE_TIMED)
        snprintf(sure, sizeof sure, "p %.2g", change->p);
    change_waiver_text(change->waiver, waiver);
    parts[count++] = size;
    parts[count++] = sure;
    parts[count++] = change->verdict == VERDICT_AMBIGUOUS ? "two measurements of one commit" : "";
    parts[count++] = change->verdict == VERDICT_WORSE && !change->stands ? "no longer so" : "";
    parts[count++] =
        change->verdict == VERDICT_WORSE && !change->recent ? "not in the newest commits" : "";
    parts[count++] = waiver;
    text[0] = '\0';
    for (size_t i = 0; i < count; i++)
        text_add(text, 400, "%s%s", text[0] && parts[i][0] ? "; " : "", parts[i]);
}

/* Changes of one kind have the same commit, verdict and waiver. */
static bool same_kind(const struct history_change *a, const struct history_change *b)
{
    return a->line == b->line && a->verdict == b->verdict &&
           history_counts(a) == history_counts(b) && a->stands == b->stands &&
           a->waiver == b->waiver;
}

static const struct history_line *line_before(const struct history_view *view,
                                              const struct history_change *change)
{
    size_t before = series_of(view, change)->points[change->point - 1].line;
    return &view->history->lines[before];
}

/* The first change of its kind; changes stand in the order of commits. */
static size_t kind_of(const struct history_judged *judged, const struct change_row *rows, size_t at)
{
    const struct history_change *change = &judged->changes[at];
    for (size_t i = at; i > 0 && judged->changes[i - 1].line == change->line; i--)
        if (same_kind(&judged->changes[i - 1], change))
            return rows[i - 1].item.kind;
    return at;
}

static void fill_row(const struct history_view *view, struct change_row *rows, size_t at)
{
    const struct history_change *change = &view->judged->changes[at];
    const struct history_series *series = series_of(view, change);
    const struct history_line *line = &view->history->lines[change->line];
    struct change_row *row = &rows[at];
    *row = (struct change_row){
        .item = {kind_of(view->judged, rows, at), series->policy, series->workload_name,
                 series->figure, size_of(view, change),
                 change_place(series->figure, is_share(view, change))},
        .workload = series->workload,
        .where = series->where,
        .verdict = change_is_waived(change->waiver) ? "waived" : verdict_name(change->verdict),
        .waiver = change->waiver,
        .section = change->line,
    };
    snprintf(row->heading, sizeof row->heading, "commit %.*s of %.10s, after %.*s", COMMIT_SHOWN,
             line->commit, line->time, COMMIT_SHOWN, line_before(view, change)->commit);
    history_value_text(series, change->before, row->old);
    history_value_text(series, change->after, row->new);
    remark(view, change, row->remark);
}

static enum ar_status print_changes(const struct history_view *view, FILE *stream,
                                    enum table_form form, struct ar_error *error)
{
    static const struct change_words words = {"before", "after", "since"};
    size_t count = view->judged->change_count;
    AR_FREED struct change_row *rows = calloc(count + 1, sizeof *rows);
    AR_TRY_MEMORY(rows, error, "a table");
    for (size_t i = 0; i < count; i++)
        fill_row(view, rows, i);
    return change_table_print(rows, count, view->all, &words, stream, form, error);
}

static void print_times(const struct history_view *view, FILE *stream)
{
    const struct history_judged *judged = view->judged;
    if (judged->timed && judged->delay)
        say(stream,
            "Series of times: %zu; a clear change of at least %.3g %% is detected after %zu "
            "measurements.",
            judged->timed, 100 * view->rules->effect, judged->delay);
    else if (judged->timed)
        say(stream, "Series of times: %zu; too few measurements (at most %zu) to detect a change.",
            judged->timed, judged->longest);
    else
        return;
    for (size_t i = 0; i < judged->change_count; i++) {
        const struct history_change *change = &judged->changes[i];
        if (!history_counts(change) || series_of(view, change)->kind != CHANGE_TIMED)
            continue;
        say(stream,
            "Times also change with the machine: make regress BASE=%.*s measures the old and the "
            "new build in turn.",
            COMMIT_SHOWN, line_before(view, change)->commit);
        break;
    }
    if (judged->unjudged) {
        say(stream, "%zu of them have a value of 0, which has no ratio: not judged.",
            judged->unjudged);
    }
}

static void print_counts(const struct history_view *view, FILE *stream)
{
    const struct history_judged *judged = view->judged;
    size_t of[VERDICT_COUNT] = {0}, exact = 0;
    for (size_t i = 0; i < judged->change_count; i++) {
        const struct history_change *change = &judged->changes[i];
        of[change->verdict]++;
        exact +=
            change->verdict == VERDICT_AMBIGUOUS && series_of(view, change)->kind == CHANGE_EXACT;
    }
    say(stream,
        "Series: %zu, over commits: %zu. Changes: %zu for the worse, %zu for the better, %zu "
        "between measurements of one commit.",
        judged->count, judged->commits, of[VERDICT_WORSE], of[VERDICT_BETTER],
        of[VERDICT_AMBIGUOUS]);
    if (exact)
        say(stream,
            "Exact figures of one commit differ: something else changed, such as a policy in a "
            "file or a working tree. Such changes count if each state has a name of its own: "
            "--append RESULTS --commit NAME.");
    if (view->rules->last)
        say(stream,
            "Of the newest %zu commits, still so, and without a waiver: %zu for the worse (%zu "
            "waived).",
            view->rules->last, judged->counted, judged->waived);
    else
        say(stream, "Still so, and without a waiver: %zu for the worse (%zu waived).",
            judged->counted, judged->waived);
}

enum ar_status history_page(const struct history_view *view, FILE *stream, enum table_form form,
                            struct ar_error *error)
{
    const struct history *history = view->history;
    enum ar_status status = print_changes(view, stream, form, error);
    print_counts(view, stream);
    print_times(view, stream);
    if (history->torn_bytes)
        fprintf(stream, "The last line has no end and was left out (%zu bytes).\n",
                history->torn_bytes);
    if (history->unknown)
        fprintf(stream, "Columns of metrics that this program does not have: %zu.\n",
                history->unknown);
    if (view->judged->ended)
        fprintf(stream, "Runs of earlier lines that the newest one does not have: %zu.\n",
                view->judged->ended);
    return status;
}

static const char *kind_name(enum change_kind kind)
{
    static const char *const names[] = {"exact", "count", "timed"};
    return names[kind];
}

/* Writes a value as JSON: an outcome as text, whole numbers as integers. */
static void put_value(struct json_writer *writer, const char *key,
                      const struct history_series *series, double value)
{
    char text[40];
    if (strcmp(series->figure, "outcome") == 0)
        json_put_text(writer, key, history_value_text(series, value, text));
    else if (value >= 0 && value < 9e15 && value <= floor(value))
        json_put_integer(writer, key, (uint64_t)value);
    else
        json_put_real(writer, key, value);
}

static void put_change(const struct history_view *view, const struct history_change *change,
                       struct json_writer *writer)
{
    const struct history_series *series = series_of(view, change);
    const struct history_line *line = &view->history->lines[change->line];
    json_begin_object(writer, NULL);
    JSON_PUT(writer, line, commit, time);
    json_put_text(writer, "commit_before", line_before(view, change)->commit);
    JSON_PUT(writer, series, policy, workload);
    json_put_text(writer, "device", series->where);
    json_put_text(writer, "metric", series->figure);
    json_put_text(writer, "unit", series->unit);
    json_put_text(writer, "class", kind_name(series->kind));
    json_put_text(writer, "verdict", verdict_name(change->verdict));
    put_value(writer, "before", series, change->before);
    put_value(writer, "after", series, change->after);
    json_put_real(writer, "change", change->change >= 0 ? change->change : (double)NAN);
    json_put_real(writer, "p", series->kind == CHANGE_TIMED ? change->p : (double)NAN);
    json_put_bool(writer, "stands", change->stands);
    json_put_bool(writer, "counts", history_counts(change));
    json_put_text(writer, "waiver", change_is_waived(change->waiver) ? change->waiver->name : NULL);
    json_end_object(writer);
}

void history_json(const struct history_view *view, FILE *stream)
{
    struct json_writer writer = {.stream = stream, .lean_from = 2};
    json_begin_object(&writer, NULL);
    json_put_text(&writer, "schema", "allocrig.history-changes/1");
    json_put_integer(&writer, "lines", view->history->count);
    json_put_integer(&writer, "commits", view->judged->commits);
    json_put_integer(&writer, "series", view->judged->count);
    json_put_integer(&writer, "regressions", view->judged->counted);
    json_begin_array(&writer, "changes");
    for (size_t i = 0; i < view->judged->change_count; i++)
        put_change(view, &view->judged->changes[i], &writer);
    json_end_array(&writer);
    json_end_object(&writer);
}

void history_annotations(const struct history_view *view, FILE *stream)
{
    for (size_t i = 0; i < view->judged->change_count; i++) {
        const struct history_change *change = &view->judged->changes[i];
        const struct history_series *series = series_of(view, change);
        char text[600];
        char before[40];
        char after[40];
        if (!history_counts(change))
            continue;
        snprintf(text, sizeof text, "%.200s with policy %.200s: %s before, %s since commit %.*s",
                 series->workload_name, series->policy,
                 history_value_text(series, change->before, before),
                 history_value_text(series, change->after, after), COMMIT_SHOWN,
                 view->history->lines[change->line].commit);
        annotation_of(stream, "error", series->figure, "worse", text);
    }
}

/* ---- data of the figure --------------------------------------------------------------------- */

#define COMMIT_IN_FIGURE 7

/* How interesting a series is. */
struct candidate {
    size_t series;
    bool counts;
    double size;
};

static int most_first(const void *left, const void *right)
{
    const struct candidate *a = left;
    const struct candidate *b = right;
    AR_ORDER(b->counts, a->counts);
    AR_ORDER(b->size, a->size);
    return (a->series > b->series) - (a->series < b->series);
}

static bool same_run(const struct history_series *a, const struct history_series *b)
{
    return a->policy == b->policy && a->workload == b->workload && a->where == b->where;
}

static void rate_by_changes(const struct history_judged *judged, struct candidate *candidates)
{
    for (size_t i = 0; i < judged->change_count; i++) {
        const struct history_change *change = &judged->changes[i];
        struct candidate *candidate = &candidates[change->series];
        bool counts = history_counts(change);
        /* The difference of ratios: tripling a ratio near 0 is no great change. */
        bool ratio = strcmp(judged->series[change->series].unit, "ratio") == 0;
        double size = ratio                 ? fabs(change->after - change->before)
                      : change->change >= 0 ? change->change
                                            : 0;
        candidate->size =
            counts > candidate->counts || size > candidate->size ? size : candidate->size;
        candidate->counts = candidate->counts || counts;
    }
}

/* True if a series of the same run or, in the first pass, of the same figure is chosen already. */
static bool is_chosen(const struct history_judged *judged, const struct history_series *series,
                      const size_t *chosen, size_t count, bool first_pass)
{
    for (size_t i = 0; i < count; i++) {
        const struct history_series *other = &judged->series[chosen[i]];
        if (same_run(series, other) || (first_pass && strcmp(series->figure, other->figure) == 0))
            return true;
    }
    return false;
}

/* Chooses at most `most` series, different figures first; returns their number. */
static size_t choose(const struct history_judged *judged, struct candidate *candidates, size_t most,
                     size_t *chosen)
{
    size_t count = 0;
    for (size_t i = 0; i < judged->count; i++)
        candidates[i] = (struct candidate){.series = i, .size = -1};
    rate_by_changes(judged, candidates);
    if (judged->change_count == 0)
        for (size_t i = 0; i < judged->count; i++)
            if (strcmp(judged->series[i].figure, "peak_physical_bytes") == 0)
                candidates[i].size = 0;
    qsort(candidates, judged->count, sizeof *candidates, most_first);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < judged->count && count < most; i++) {
            const struct history_series *series = &judged->series[candidates[i].series];
            /* Outcomes have no scale, and a single point shows no change. */
            if (candidates[i].size >= 0 && series->count > 1 &&
                strcmp(series->figure, "outcome") != 0 &&
                !is_chosen(judged, series, chosen, count, pass == 0))
                chosen[count++] = candidates[i].series;
        }
    }
    return count;
}

/* The verdict of a change at that point, or "". */
static const char *change_at(const struct history_judged *judged, size_t series, size_t point)
{
    static const char *const words[VERDICT_COUNT] = {"", "better", "worse", "unclear", ""};
    for (size_t i = 0; i < judged->change_count; i++)
        if (judged->changes[i].series == series && judged->changes[i].point == point)
            return words[judged->changes[i].verdict];
    return "";
}

static void put_series(const struct history_view *view, size_t index, size_t panel, FILE *stream)
{
    const struct history_series *series = &view->judged->series[index];
    for (size_t i = 0; i < series->count; i++) {
        const struct history_point *point = &series->points[i];
        char value[REAL_TEXT_BYTES];
        char level[REAL_TEXT_BYTES];
        fprintf(stream, "%zu,", panel);
        csv_text(stream, series->workload_name);
        fputc(',', stream);
        csv_text(stream, series->policy);
        fprintf(stream, ",%s,%s,%s,%zu,", series->figure, series->unit, kind_name(series->kind),
                point->line + 1);
        char commit[COMMIT_IN_FIGURE + 1];
        snprintf(commit, sizeof commit, "%.*s", COMMIT_IN_FIGURE,
                 view->history->lines[point->line].commit);
        csv_text(stream, commit);
        fprintf(stream, ",%s,%s,%s\n", real_print(point->value, value),
                real_print(point->level, level), change_at(view->judged, index, i));
    }
}

enum ar_status history_figure(const struct history_view *view, size_t panels, FILE *stream,
                              struct ar_error *error)
{
    const struct history_judged *judged = view->judged;
    AR_FREED struct candidate *candidates = calloc(judged->count + 1, sizeof *candidates);
    AR_FREED size_t *chosen = calloc(panels + 1, sizeof *chosen);
    AR_TRY_MEMORY(candidates && chosen, error, "a figure's data");
    fputs("panel,workload,policy,figure,unit,kind,place,commit,value,level,change\n", stream);
    size_t count = choose(judged, candidates, panels, chosen);
    for (size_t i = 0; i < count; i++)
        put_series(view, chosen[i], i + 1, stream);
    return AR_OK;
}
