/* Which series of a history are worth a picture, and their data. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/regress/history_page.h"
#include "bench/report/json_writer.h"
#include "bench/report/results_csv.h"

#define COMMIT_SHOWN 7

/* How much a series wants to be shown. */
struct wish {
    size_t series;
    bool counts;
    double size;
};

static int most_first(const void *left, const void *right)
{
    const struct wish *a = left;
    const struct wish *b = right;
    if (a->counts != b->counts)
        return a->counts ? -1 : 1;
    if (a->size < b->size || a->size > b->size)
        return a->size < b->size ? 1 : -1;
    return (a->series > b->series) - (a->series < b->series);
}

static bool same_cell(const struct history_series *a, const struct history_series *b)
{
    return a->policy == b->policy && a->workload == b->workload && a->where == b->where;
}

/* Outcomes have no scale, and a single point is no history. */
static bool can_be_drawn(const struct history_series *series)
{
    return series->count > 1 && strcmp(series->figure, "outcome") != 0;
}

static void wish_by_changes(const struct history_judged *judged, struct wish *wishes)
{
    for (size_t i = 0; i < judged->change_count; i++) {
        const struct history_change *change = &judged->changes[i];
        struct wish *wish = &wishes[change->series];
        bool counts = history_counts(change);
        /* A ratio from nearly nothing to three times that is no great change. */
        bool ratio = strcmp(judged->series[change->series].unit, "ratio") == 0;
        double size = ratio                 ? fabs(change->after - change->before)
                      : change->change >= 0 ? change->change
                                            : 0;
        wish->size = counts > wish->counts || size > wish->size ? size : wish->size;
        wish->counts = wish->counts || counts;
    }
}

/* Is one of these cells, or on the first pass one of these figures, chosen already? */
static bool is_chosen(const struct history_judged *judged, const struct history_series *series,
                      const size_t *chosen, size_t count, bool first_pass)
{
    for (size_t i = 0; i < count; i++) {
        const struct history_series *other = &judged->series[chosen[i]];
        if (same_cell(series, other) || (first_pass && strcmp(series->figure, other->figure) == 0))
            return true;
    }
    return false;
}

/* Puts the indices of what is to be shown into `chosen`, different figures first; returns how many. */
static size_t choose(const struct history_judged *judged, struct wish *wishes, size_t most,
                     size_t *chosen)
{
    size_t count = 0;
    for (size_t i = 0; i < judged->count; i++)
        wishes[i] = (struct wish){.series = i, .size = -1};
    wish_by_changes(judged, wishes);
    if (judged->change_count == 0)
        for (size_t i = 0; i < judged->count; i++)
            if (strcmp(judged->series[i].figure, "peak_physical_bytes") == 0)
                wishes[i].size = 0;
    qsort(wishes, judged->count, sizeof *wishes, most_first);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < judged->count && count < most; i++) {
            const struct history_series *series = &judged->series[wishes[i].series];
            if (wishes[i].size >= 0 && can_be_drawn(series) &&
                !is_chosen(judged, series, chosen, count, pass == 0))
                chosen[count++] = wishes[i].series;
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
    static const char *const kinds[] = {"exact", "count", "timed"};
    const struct history_series *series = &view->judged->series[index];
    for (size_t i = 0; i < series->count; i++) {
        const struct history_point *point = &series->points[i];
        char value[REAL_TEXT_BYTES];
        char level[REAL_TEXT_BYTES];
        fprintf(stream, "%zu,", panel);
        csv_text(stream, series->workload_name);
        fputc(',', stream);
        csv_text(stream, series->policy);
        fprintf(stream, ",%s,%s,%s,%zu,", series->figure, series->unit, kinds[series->kind],
                point->line + 1);
        char commit[COMMIT_SHOWN + 1];
        snprintf(commit, sizeof commit, "%.*s", COMMIT_SHOWN,
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
    struct wish *wishes = calloc(judged->count + 1, sizeof *wishes);
    size_t *chosen = calloc(panels + 1, sizeof *chosen);
    enum ar_status status = AR_OK;
    fputs("panel,workload,policy,figure,unit,kind,place,commit,value,level,change\n", stream);
    if (wishes && chosen) {
        size_t count = choose(judged, wishes, panels, chosen);
        for (size_t i = 0; i < count; i++)
            put_series(view, chosen[i], i + 1, stream);
    } else {
        status = ar_error_set(error, AR_HOST_MEMORY, "no host memory left for a figure's data");
    }
    free(wishes);
    free(chosen);
    return status;
}
