/* 1. A pair is of two runs with one seed. 2. Its difference is the policy's figure less the base's,
 * its ratio one by the other. 3. Of both the median and its interval, as of repetitions
 * (bench/statistics/statistics.h): neither assumes how they are spread. 4. Less, equal and more are
 * counted by the figures themselves. */
#include "bench/report/draw_pairs.h"

#include <stdlib.h>
#include <string.h>

#include "bench/report/slowdown_metric.h"

#define POLICY_WIDTH 22u

static bool has(const struct run_record *record, enum metric metric)
{
    return record->passed && record->metrics.at[metric].kind != METRIC_NULL;
}

const struct run_record *draw_of(const struct run_record *first, const struct run_record *end,
                                 uint64_t seed)
{
    for (const struct run_record *at = first; at < end; at++)
        if (at->seed == seed && strcmp(at->policy_spec, first->policy_spec) == 0)
            return at;
    return NULL;
}

struct draw_pairs draw_pairs_of(const struct run_record *first, const struct run_record *base,
                                const struct run_record *end, enum metric metric, double *values)
{
    struct draw_pairs pairs = {0};
    for (int ratios = 0; ratios < 2; ratios++) {
        size_t count = 0;
        for (const struct run_record *at = first; at < end; at++) {
            if (strcmp(at->policy_spec, first->policy_spec) != 0 || !has(at, metric))
                continue;
            const struct run_record *other = draw_of(base, end, at->seed);
            if (!other || !has(other, metric))
                continue;
            double mine = metric_number(&at->metrics, metric, 0);
            double theirs = metric_number(&other->metrics, metric, 0);
            pairs.less += !ratios && mine < theirs;
            pairs.more += !ratios && mine > theirs;
            if (!ratios)
                values[count++] = mine - theirs;
            else if (theirs > 0)
                values[count++] = mine / theirs;
        }
        *(ratios ? &pairs.ratio : &pairs.difference) = statistic_of(values, count);
    }
    pairs.equal = pairs.difference.count - pairs.less - pairs.more;
    return pairs;
}

/* Policies of a group stand one behind the other: its last run has another one than its first. */
static bool group_has_pairs(const struct run_record *begin, const struct run_record *end)
{
    bool drawn = false;
    for (const struct run_record *at = begin; at < end; at++)
        drawn = drawn || at->seed != begin->seed;
    return drawn && strcmp(begin->policy_spec, end[-1].policy_spec) != 0;
}

bool draw_pairs_any(const struct run_record *records, size_t count)
{
    for (size_t begin = 0, end; begin < count; begin = end) {
        end = run_record_group_end(records, count, begin);
        if (group_has_pairs(records + begin, records + end))
            return true;
    }
    return false;
}

void draw_pairs_each(const struct run_record *records, size_t count, draw_pairs_visit *visit,
                     void *argument)
{
    for (size_t begin = 0, end; begin < count; begin = end) {
        end = run_record_group_end(records, count, begin);
        const struct run_record *base = records + begin;
        if (!group_has_pairs(base, records + end))
            continue;
        for (const struct run_record *first = base + 1; first < records + end; first++)
            if (strcmp(first->policy_spec, base->policy_spec) != 0 &&
                strcmp(first->policy_spec, first[-1].policy_spec) != 0)
                visit(argument, first, base, records + end);
    }
}

static void ratio_cell(struct table *table, bool there, double ratio)
{
    if (there)
        table_cell(table, "%.3f", ratio);
    else
        table_cell(table, "-");
}

static void add_heading(struct table *table, const struct run_record *base,
                        const struct run_record *end)
{
    size_t draws = run_record_draws(base, (size_t)(end - base));
    char of_draws[32] = "";
    if (draws > 1)
        snprintf(of_draws, sizeof of_draws, ", %zu draws", draws);
    table_heading(table, "%s%s: against %s, frees %s, host %s, %s",
                  draws > 1 ? base->workload_spec : base->workload.name, of_draws,
                  base->policy_spec, replay_frees_name(base->frees), replay_host_name(base->host),
                  base->device_spec);
}

struct pairs_table {
    struct table *table;
    const struct run_record *base; /* of the group that has its heading */
    double *values;
};

static void add_rows(void *argument, const struct run_record *first, const struct run_record *base,
                     const struct run_record *end)
{
    struct pairs_table *self = argument;
    struct table *table = self->table;
    if (self->base != base)
        add_heading(table, base, end);
    self->base = base;
    static const struct {
        const char *name;
        enum metric metric;
    } figures[] = {{"reserved", METRIC_peak_reserved_bytes},
                   {"slowdown", METRIC_slowdown},
                   {"steady", METRIC_steady_slowdown}};
    bool steady = slowdown_metric_of(base, end) == METRIC_steady_slowdown;
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        struct draw_pairs pairs = draw_pairs_of(first, base, end, figures[i].metric, self->values);
        if (i && !pairs.ratio.count)
            continue;
        if (figures[i].metric == METRIC_steady_slowdown && !steady)
            continue;
        table_cell(table, "%s", i ? "" : first->policy_spec);
        table_cell(table, "%s", figures[i].name);
        ratio_cell(table, pairs.ratio.count, pairs.ratio.median);
        ratio_cell(table, pairs.ratio.has_interval, pairs.ratio.low);
        ratio_cell(table, pairs.ratio.has_interval, pairs.ratio.high);
        table_cell(table, "%zu", pairs.less);
        table_cell(table, "%zu", pairs.equal);
        table_cell(table, "%zu", pairs.more);
    }
}

enum ar_status draw_pairs_print(const struct run_record *all, size_t all_count, FILE *stream,
                                enum table_form form, struct ar_error *error)
{
    static const struct table_column columns[] = {
        {"policy", "", true, POLICY_WIDTH}, {"", "", true, 0},
        {"median", "ratio", false, 0},      {"low", "ratio", false, 0},
        {"high", "ratio", false, 0},        {"less", "draws", false, 0},
        {"equal", "draws", false, 0},       {"more", "draws", false, 0},
    };
    size_t count = 0;
    struct run_record *records = statistic_condense(all, all_count, &count);
    double *values = calloc(count ? count : 1, sizeof *values);
    struct table *table = table_create(columns, sizeof columns / sizeof columns[0]);
    enum ar_status status = AR_OK;
    if (!records || !values || !table)
        status = ar_error_set(error, AR_HOST_MEMORY, "no host memory left for the table");
    else
        table_label(table, "pairs");
    struct pairs_table rows = {.table = table, .values = values};
    if (!status)
        draw_pairs_each(records, count, add_rows, &rows);
    if (!status)
        status = table_print(table, stream, form, error);
    table_close(table);
    free(values);
    free(records);
    return status;
}
