/* results.csv, pairs.csv and the data of the figures. */
#include "bench/report/result_writers.h"

#include <ctype.h>

#include "bench/report/data_writer.h"
#include "workloads/io/fields.h"

/* ---- results.csv ---------------------------------------------------------------------------- */

static const char *truth(bool value)
{
    return value ? "true" : "false";
}

static const struct {
    const char *name, *definition;
} run_columns[] = {
    {"policy", "name of the policy"},
    {"policy_spec", "the policy with its options, as -p takes it"},
    {"workload", "name of the workload"},
    {"workload_spec", "the workload as -w takes it: a file, or a generator with its options"},
    {"sha256", "of the events of the trace, the same for text and binary"},
    {"complete", "true; false if a part of the program is missing, for example because it died"},
    {"device", "sim or cuda"},
    {"profile", "the card whose costs are simulated, or the name of the real one"},
    {"device_spec", "the device with its options, as -d takes it"},
    {"capacity_bytes", "of the device; empty: no limit"},
    {"frees_mode",
     "when the memory of a freed block can be used again, in this run: ordered, at-once "
     "or recorded. With --frees ordered a recording that has completions of frees but "
     "no uses of blocks by other streams is run twice, at-once and recorded"},
    {"host", "host time, as --host: none, recorded or open"},
    {"repetition", "number, from 0, of a run that is repeated as it is (--reps)"},
    {"seed", "of policies, devices and generators that use random numbers; of a replicate its own"},
    {"passed", "true, or false: a request failed that may not fail"},
    {"cause", "why the first such request failed; empty: none"},
};

const char *results_csv_run_column(size_t index, const char **definition)
{
    bool is_one = index < AR_COUNT(run_columns);
    *definition = is_one ? run_columns[index].definition : NULL;
    return is_one ? run_columns[index].name : NULL;
}

static void write_run(struct csv_writer *csv, const struct run_record *record, int metric_count)
{
    const struct trace_info *workload = &record->workload;
    char sha256[2 * sizeof workload->sha256 + 1];
    csv_put_text(csv, record->policy_name);
    csv_put_text(csv, record->policy_spec);
    csv_put_text(csv, workload->name);
    csv_put_text(csv, record->workload_spec);
    csv_put_plain(csv, hex_print(workload->sha256, sizeof workload->sha256, sha256));
    csv_put_plain(csv, truth(workload->complete));
    csv_put_plain(csv, record->device.kind);
    csv_put_text(csv, record->device.profile);
    csv_put_text(csv, record->drawn_device_spec);
    if (record->device.capacity_bytes != UINT64_MAX)
        csv_put_integer(csv, record->device.capacity_bytes);
    else
        csv_put_empty(csv);
    csv_put_plain(csv, replay_frees_name(record->frees));
    csv_put_plain(csv, replay_host_name(record->host));
    csv_put_integer(csv, record->repetition);
    csv_put_integer(csv, record->seed);
    csv_put_plain(csv, truth(record->passed));
    csv_put_plain(csv, record->passed ? "" : run_record_cause(record));
    for (int i = 0; i < metric_count; i++)
        csv_put_metric(csv, &record->metrics.at[i]);
    csv_end_row(csv);
}

void results_csv_write(FILE *stream, const struct results *results)
{
    struct csv_writer csv = {.stream = stream};
    int metric_count = results_have_optional(results) ? METRIC_COUNT : METRIC_FIRST_OPTIONAL;
    for (size_t i = 0; i < AR_COUNT(run_columns); i++)
        csv_put_plain(&csv, run_columns[i].name);
    for (int i = 0; i < metric_count; i++)
        csv_put_plain(&csv, metric_info((enum metric)i)->name);
    csv_end_row(&csv);
    for (size_t i = 0; i < results->run_count; i++)
        write_run(&csv, &results->runs[i], metric_count);
}

/* ---- pairs.csv ------------------------------------------------------------------------------ */

static void put_median(struct csv_writer *csv, const struct statistic *of)
{
    const double values[] = {of->median, of->low, of->high, of->level};
    for (size_t i = 0; i < AR_COUNT(values); i++)
        if (of->count && (i == 0 || of->has_interval))
            csv_put_real(csv, values[i]);
        else
            csv_put_empty(csv);
}

static void write_pairs(struct csv_writer *csv, const struct result_policy *policy,
                        const struct result_policy *base, double *values)
{
    const struct run_record *first = policy->median;
    for (int metric = 0; metric < METRIC_COUNT; metric++) {
        struct result_pairs pairs = result_pairs_of(policy, base, (enum metric)metric, values);
        if (!pairs.difference.count)
            continue;
        csv_put_text(csv, first->policy_spec);
        csv_put_text(csv, base->median->policy_spec);
        csv_put_text(csv, first->workload_spec);
        csv_put_text(csv, first->device_spec);
        csv_put_plain(csv, replay_frees_name(first->frees));
        csv_put_plain(csv, replay_host_name(first->host));
        csv_put_plain(csv, metric_info((enum metric)metric)->name);
        csv_put_integer(csv, pairs.difference.count);
        csv_put_integer(csv, pairs.less);
        csv_put_integer(csv, pairs.equal);
        csv_put_integer(csv, pairs.more);
        put_median(csv, &pairs.difference);
        put_median(csv, &pairs.ratio);
        csv_end_row(csv);
    }
}

void pairs_csv_write(FILE *stream, const struct results *results)
{
    struct csv_writer csv = {.stream = stream};
    csv_put_plain(&csv, "policy,against,workload,device,frees,host,metric,pairs,less,equal,more,"
                        "difference,difference_low,difference_high,difference_level,"
                        "ratio,ratio_low,ratio_high,ratio_level");
    csv_end_row(&csv);
    for (size_t i = 0; i < results->group_count; i++) {
        const struct result_group *group = &results->groups[i];
        for (size_t j = 1; j < group->policy_count && group->replicated; j++)
            write_pairs(&csv, &group->policies[j], group->policies, results->values);
    }
}

/* ---- series --------------------------------------------------------------------------------- */

void figure_series_header(FILE *stream, size_t replicates)
{
    fprintf(stream, "policy,event,time_s,live_bytes,reserved_bytes,physical_bytes,passed%s\n",
            replicates > 1 ? ",draws" : "");
}

struct series_rows {
    struct csv_writer csv;
    const struct run_record *record;
    size_t replicates;
};

static void series_row(void *argument, const struct replay_sample *sample)
{
    struct series_rows *rows = argument;
    csv_put_text(&rows->csv, rows->record->policy_spec);
    csv_put_integer(&rows->csv, sample->event);
    csv_put_real(&rows->csv, (double)sample->time_ns / 1e9);
    csv_put_integer(&rows->csv, sample->live_bytes);
    csv_put_integer(&rows->csv, sample->reserved_bytes);
    csv_put_integer(&rows->csv, sample->physical_bytes);
    csv_put_plain(&rows->csv, truth(rows->record->passed));
    if (rows->replicates > 1)
        csv_put_integer(&rows->csv, rows->replicates);
    csv_end_row(&rows->csv);
}

void figure_series_rows(FILE *stream, const struct run_record *record, size_t replicates,
                        const struct thin_series *series)
{
    struct series_rows rows = {{.stream = stream}, record, replicates};
    thin_series_each(series, series_row, &rows);
}

const char *figure_file_name(const char *name, char *text, size_t text_bytes)
{
    size_t used = 0;
    for (const char *at = field_file_name(name); *at && used + 1 < text_bytes; at++) {
        bool plain = isalnum((unsigned char)*at) || *at == '.' || *at == '_' || *at == '-';
        text[used++] = plain ? *at : '-';
    }
    text[used] = '\0';
    return text;
}

/* ---- columns that only medians have --------------------------------------------------------- */

static void spread_titles(struct csv_writer *csv, const char *const *names, size_t count)
{
    char title[64];
    csv_put_plain(csv, "runs,over,level");
    for (size_t i = 0; i < count; i++) {
        snprintf(title, sizeof title, "%s_low,%s_high", names[i], names[i]);
        csv_put_plain(csv, title);
    }
}

static void spread_head(struct csv_writer *csv, const struct statistic *of, const char *over)
{
    if (!of->count) {
        csv_put_plain(csv, ",,");
        return;
    }
    csv_put_integer(csv, of->count);
    csv_put_plain(csv, over);
    if (of->has_interval)
        csv_put_real(csv, of->level);
    else
        csv_put_empty(csv);
}

static void spread_limits(struct csv_writer *csv, const struct statistic *of)
{
    if (!of->count) {
        csv_put_plain(csv, ",");
        return;
    }
    csv_put_real(csv, of->has_interval ? of->low : of->least);
    csv_put_real(csv, of->has_interval ? of->high : of->most);
}

static void write_slowdown(FILE *stream, const struct results *results)
{
    static const char *const name = "slowdown";
    struct csv_writer csv = {.stream = stream};
    bool spread = results->point_count && results->points[0].replicates > 1;
    csv_put_plain(&csv, "workload,policy,capacity_ratio,slowdown,passed,flushes,remapped_bytes");
    if (spread)
        spread_titles(&csv, &name, 1);
    csv_end_row(&csv);
    for (size_t i = 0; i < results->point_count; i++) {
        const struct slowdown_point *point = &results->points[i];
        csv_put_text(&csv, point->workload);
        csv_put_text(&csv, point->policy_spec);
        csv_put_real(&csv, point->capacity_ratio);
        csv_put_metric(&csv, &point->slowdown);
        csv_put_plain(&csv, truth(point->passed));
        csv_put_metric(&csv, &point->flushes);
        csv_put_metric(&csv, &point->remapped_bytes);
        if (spread) {
            spread_head(&csv, &point->over_replicates, "draws");
            spread_limits(&csv, &point->over_replicates);
        }
        csv_end_row(&csv);
    }
}

/* ---- fragmentation, latency, pareto --------------------------------------------------------- */

#define FIGURES_MOST 8

/* A column: a metric of a run, or a share of its time. */
struct figure {
    const char *name;
    enum metric metric;
    bool share;
};

static const struct {
    struct figure columns[FIGURES_MOST];
    size_t count;
    bool ranked_only; /* no rows of policies that are not ranked or did not finish */
} files[FIGURE_FILES] = {
    [FIGURE_FRAGMENTATION] = {{{"internal_mean", METRIC_internal_fragmentation_mean, false},
                               {"external_mean", METRIC_external_fragmentation_mean, false},
                               {"unusable_mean", METRIC_unusable_free_index_mean, false},
                               {"overhead", METRIC_overhead, false}},
                              4,
                              false},
    [FIGURE_LATENCY] = {{{"alloc_p50_ns", METRIC_alloc_ns_p50, false},
                         {"alloc_p90_ns", METRIC_alloc_ns_p90, false},
                         {"alloc_p99_ns", METRIC_alloc_ns_p99, false},
                         {"alloc_p999_ns", METRIC_alloc_ns_p999, false},
                         {"alloc_max_ns", METRIC_alloc_ns_max, false},
                         {"free_p50_ns", METRIC_free_ns_p50, false},
                         {"free_p99_ns", METRIC_free_ns_p99, false}},
                        7,
                        false},
    [FIGURE_PARETO] = {{{"overhead", METRIC_overhead, false},
                        {"driver_share", METRIC_driver_time_ns, true}},
                       2,
                       true},
};

/* A share is null, as the slowdown is, if nothing but the allocator takes time. */
static struct metric_value figure_of(const struct run_record *record, const struct figure *figure)
{
    struct metric_value value = record->metrics.at[figure->metric];
    double time_ns = metric_number(&record->metrics, METRIC_device_time_ns, 0);
    if (!figure->share)
        return value;
    value = (struct metric_value){.kind = METRIC_NULL};
    if (time_ns > 0 && record->metrics.at[METRIC_slowdown].kind != METRIC_NULL) {
        value.kind = METRIC_REAL;
        value.real = metric_number(&record->metrics, figure->metric, 0) / time_ns;
    }
    return value;
}

/* A figure over runs; count 0 if one of them has none or did not finish. */
static struct statistic over_runs(const struct run_record *const *runs, size_t count,
                                  const struct figure *figure, double *values)
{
    for (size_t i = 0; i < count; i++) {
        struct metric_value value = figure_of(runs[i], figure);
        if (!runs[i]->passed || value.kind == METRIC_NULL)
            return (struct statistic){.count = 0};
        values[i] = value.kind == METRIC_INTEGER ? (double)value.integer : value.real;
    }
    return statistic_of(values, count);
}

/* Over the replicates, of the median of each one's repetitions; of one replicate over these. The
 * repetitions come after the replicates in `values`. */
static struct statistic over_policy(const struct result_policy *policy, const struct figure *figure,
                                    double *values)
{
    if (policy->replicate_count == 1)
        return over_runs(policy->runs, policy->run_count, figure, values);
    for (size_t i = 0; i < policy->replicate_count; i++) {
        const struct result_replicate *replicate = &policy->replicates[i];
        struct statistic one = over_runs(replicate->runs, replicate->run_count, figure, values + i);
        if (!one.count)
            return one;
        values[i] = one.median;
    }
    return statistic_of(values, policy->replicate_count);
}

/* The median as the runs have it: of integers an integer. */
static void put_figure(struct csv_writer *csv, const struct result_policy *policy,
                       const struct figure *figure, const struct statistic *statistic)
{
    struct metric_value median = figure_of(policy->runs[0], figure);
    if (!statistic->count)
        median = (struct metric_value){.kind = METRIC_NULL};
    else if (statistic->least < statistic->most && median.kind == METRIC_INTEGER)
        median.integer = (uint64_t)statistic->median;
    else if (statistic->least < statistic->most)
        median.real = statistic->median;
    csv_put_metric(csv, &median);
}

enum metric figure_column_metric(const char *name, bool *share)
{
    for (size_t i = 0; i < AR_COUNT(files); i++)
        for (size_t j = 0; j < files[i].count; j++)
            if (strcmp(files[i].columns[j].name, name) == 0) {
                *share = files[i].columns[j].share;
                return files[i].columns[j].metric;
            }
    return METRIC_COUNT;
}

/* Whether any run of the policy has any of the figures. */
static bool is_measured(const struct result_policy *policy, enum figure_file file)
{
    for (size_t i = 0; i < policy->run_count; i++)
        for (size_t j = 0; j < files[file].count; j++)
            if (figure_of(policy->runs[i], &files[file].columns[j]).kind != METRIC_NULL)
                return true;
    return false;
}

static void write_policy(struct csv_writer *csv, const struct result_group *group,
                         const struct result_policy *policy, enum figure_file file, bool spread,
                         double *values)
{
    struct statistic of[FIGURES_MOST];
    const size_t count = files[file].count;
    size_t first = 0;
    if (!is_measured(policy, file) ||
        (files[file].ranked_only && (!policy->median->ranked || !policy->median->passed)))
        return;
    csv_put_text(csv, group->name);
    csv_put_text(csv, policy->median->policy_spec);
    for (size_t i = 0; i < count; i++) {
        of[i] = over_policy(policy, &files[file].columns[i], values);
        put_figure(csv, policy, &files[file].columns[i], &of[i]);
    }
    while (first + 1 < count && !of[first].count)
        first++;
    if (spread)
        spread_head(csv, &of[first], policy->replicate_count > 1 ? "draws" : "repetitions");
    for (size_t i = 0; i < count && spread; i++)
        spread_limits(csv, &of[i]);
    csv_end_row(csv);
}

/* No figure but that of the slowdown tells devices apart, and none ways to free, so it shows the
 * first of each. */
static bool figure_shows(const struct results *results, const struct result_group *group)
{
    for (size_t i = 0; &results->groups[i] < group; i++)
        if (strcmp(results->groups[i].runs->workload_spec, group->runs->workload_spec) == 0)
            return false;
    return strcmp(group->runs->device_spec, results->runs[0].device_spec) == 0;
}

void figure_write(FILE *stream, const struct results *results, enum figure_file file)
{
    struct csv_writer csv = {.stream = stream};
    const char *names[FIGURES_MOST];
    if (file == FIGURE_SLOWDOWN) {
        write_slowdown(stream, results);
        return;
    }
    const bool spread = results->repeated || results->replicated;
    csv_put_plain(&csv, "workload,policy");
    for (size_t i = 0; i < files[file].count; i++) {
        names[i] = files[file].columns[i].name;
        csv_put_plain(&csv, names[i]);
    }
    if (spread)
        spread_titles(&csv, names, files[file].count);
    csv_end_row(&csv);
    for (size_t i = 0; i < results->group_count; i++) {
        const struct result_group *group = &results->groups[i];
        for (size_t j = 0; figure_shows(results, group) && j < group->policy_count; j++)
            write_policy(&csv, group, &group->policies[j], file, spread, results->values);
    }
}
