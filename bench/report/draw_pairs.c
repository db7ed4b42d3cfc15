/* 1. A pair is of two runs with one seed. 2. Its ratio is the policy's figure by the base's. 3. Of
 * the ratios the median and its interval, as of repetitions (bench/report/statistics.h): neither
 * assumes how the ratios are spread. 4. Less, equal and more are counted by the figures themselves. */
#include "bench/report/draw_pairs.h"

#include <stdlib.h>
#include <string.h>

#define POLICY_WIDTH 22u

static bool has(const struct run_record *record, enum metric metric)
{
    return record->passed && record->metrics.at[metric].kind != METRIC_NULL;
}

/* The draw of the policy of `base` with this seed; NULL: none. */
static const struct run_record *partner(const struct run_record *base, const struct run_record *end,
                                        uint64_t seed)
{
    for (const struct run_record *at = base; at < end; at++)
        if (at->seed == seed && strcmp(at->policy_spec, base->policy_spec) == 0)
            return at;
    return NULL;
}

struct draw_pairs draw_pairs_of(const struct run_record *first, const struct run_record *base,
                                const struct run_record *end, enum metric metric, double *values)
{
    struct draw_pairs pairs = {0};
    size_t count = 0;
    for (const struct run_record *at = first; at < end; at++) {
        if (strcmp(at->policy_spec, first->policy_spec) != 0 || !has(at, metric))
            continue;
        const struct run_record *other = partner(base, end, at->seed);
        if (!other || !has(other, metric))
            continue;
        double mine = metric_number(&at->metrics, metric, 0);
        double theirs = metric_number(&other->metrics, metric, 0);
        if (!(theirs > 0))
            continue;
        values[count++] = mine / theirs;
        pairs.less += mine < theirs;
        pairs.more += mine > theirs;
    }
    pairs.equal = count - pairs.less - pairs.more;
    pairs.ratio = statistic_of(values, count);
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

static void ratio_cell(struct table *table, bool there, double ratio)
{
    if (there)
        table_cell(table, "%.3f", ratio);
    else
        table_cell(table, "-");
}

static void add_rows(struct table *table, const struct run_record *first,
                     const struct run_record *base, const struct run_record *end, double *values)
{
    static const struct {
        const char *name;
        enum metric metric;
    } figures[] = {{"reserved", METRIC_peak_reserved_bytes}, {"slowdown", METRIC_slowdown}};
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        struct draw_pairs pairs = draw_pairs_of(first, base, end, figures[i].metric, values);
        if (i && !pairs.ratio.count)
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

static void add_group(struct table *table, const struct run_record *begin,
                      const struct run_record *end, double *values)
{
    size_t draws = run_record_draws(begin, (size_t)(end - begin));
    char name[sizeof begin->workload.name + 32];
    if (draws > 1)
        snprintf(name, sizeof name, "%s, %zu draws", begin->workload_spec, draws);
    else
        snprintf(name, sizeof name, "%s", begin->workload.name);
    table_heading(table, "%s: against %s, frees %s, host %s, %s", name, begin->policy_spec,
                  replay_frees_name(begin->frees), replay_host_name(begin->host),
                  begin->device_spec);
    for (const struct run_record *first = begin; first < end; first++)
        if (strcmp(first->policy_spec, begin->policy_spec) != 0 &&
            strcmp(first->policy_spec, first[-1].policy_spec) != 0)
            add_rows(table, first, begin, end, values);
}

enum status draw_pairs_print(const struct run_record *all, size_t all_count, FILE *stream,
                             enum table_form form, struct error *error)
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
    enum status status = STATUS_OK;
    if (!records || !values || !table)
        status = error_set(error, STATUS_HOST_MEMORY, "no host memory left for the table");
    else
        table_label(table, "pairs");
    for (size_t begin = 0, end; !status && begin < count; begin = end) {
        end = run_record_group_end(records, count, begin);
        if (group_has_pairs(records + begin, records + end))
            add_group(table, records + begin, records + end, values);
    }
    if (!status)
        status = table_print(table, stream, form, error);
    table_close(table);
    free(values);
    free(records);
    return status;
}
