#include "bench/suite/suite_run.h"

#include <math.h>

#include "allocators/base/size.h"
#include "bench/statistics/statistics.h"
#include "bench/suite/run.h"
#include "bench/suite/suite.h"

/* A curve in the making. */
struct work {
    const struct plan *plan;
    struct plan_run *runs;
    struct slowdown_point *points;
    size_t count, room;
    struct text_list devices; /* a spec for each workload and capacity */
};

/* A run of the workload with that seed, else with any, which has its name and live peak. NULL if no
 * run of it has a time that an allocator could lengthen. */
static const struct run_record *timed_record(const struct plan *plan,
                                             const struct run_record *records, size_t workload,
                                             uint64_t seed)
{
    const struct run_record *any = NULL;
    for (size_t i = 0; i < plan->run_count; i++) {
        if (plan->runs[i].workload != workload || plan->runs[i].device != 0 || !records[i].passed ||
            records[i].metrics.at[METRIC_slowdown].kind == METRIC_NULL)
            continue;
        if (plan->runs[i].seed == seed)
            return &records[i];
        any = any ? any : &records[i];
    }
    return any;
}

static bool ranked(const struct plan *plan, size_t policy)
{
    return !(plan->policies[policy].ops->capabilities & AR_POLICY_UNRANKED);
}

static uint64_t capacity_at(const struct run_record *record, double ratio)
{
    double live = metric_number(&record->metrics, METRIC_peak_live_bytes, 0);
    return ar_size_round_up((uint64_t)ceil(live * ratio), 2 * AR_MIB);
}

/* The runs of a point, one for each replicate, with the specs of its devices from `devices` on. */
static void add_point(struct work *work, size_t workload, size_t policy, size_t ratio,
                      const struct run_record *record, const char *name, size_t devices)
{
    const struct suite *suite = work->plan->suite;
    const struct plan_workload *info = &work->plan->workloads[workload];
    for (uint64_t replicate = 0; replicate < suite->replicates; replicate++)
        work->runs[work->count * suite->replicates + replicate] = (struct plan_run){
            .policy = policy,
            .workload = workload,
            .device_text = work->devices.items[devices + replicate * suite->ratio_count + ratio],
            .workload_text = info->texts.count ? info->texts.items[replicate] : info->text,
            .alone = plan_is_alone(work->plan, policy, 0),
            .frees = info->frees[0],
            .measure = REPLAY_METRICS_NONE,
            .seed = suite->seed + replicate,
        };
    work->points[work->count++] = (struct slowdown_point){
        .workload = name,
        .policy_spec = work->plan->policies[policy].text,
        .record = record,
        .capacity_ratio = suite->ratios[ratio],
        .capacity_bytes = capacity_at(record, suite->ratios[ratio]),
        .replicates = suite->replicates,
    };
}

/* The devices of a workload: for each replicate one for each share of its live peak. */
static enum ar_status add_devices(struct work *work, const struct run_record *records,
                                  size_t workload, struct ar_error *error)
{
    const struct plan *plan = work->plan;
    const struct suite *suite = plan->suite;
    for (uint64_t replicate = 0; replicate < suite->replicates; replicate++) {
        const struct run_record *record =
            timed_record(plan, records, workload, suite->seed + replicate);
        for (size_t i = 0; i < suite->ratio_count; i++) {
            AR_FREED char *text = NULL;
            AR_TRY(spec_text_with(plan->device_texts.items[replicate], "capacity",
                                  AR_SIZE_EXACT(capacity_at(record, suite->ratios[i])), &text,
                                  error));
            AR_TRY(text_list_add(&work->devices, text, error));
        }
    }
    return AR_OK;
}

static enum ar_status add_workload(struct work *work, const struct run_record *records,
                                   size_t workload, struct ar_error *error)
{
    const struct plan *plan = work->plan;
    const struct run_record *record = timed_record(plan, records, workload, plan->suite->seed);
    size_t devices = work->devices.count;
    if (!record)
        return AR_OK;
    AR_TRY(add_devices(work, records, workload, error));
    /* If each replicate has a workload of its own, no name is that of all. */
    const char *name = plan->workloads[workload].texts.count
                           ? plan->workloads[workload].text
                           : run_record_workload(record, records, plan->run_count);
    for (size_t policy = 0; policy < plan->policy_count; policy++)
        for (size_t i = 0; ranked(plan, policy) && i < plan->suite->ratio_count; i++)
            add_point(work, workload, policy, i, record, name, devices);
    return AR_OK;
}

/* The median over the replicates of a point, all of which passed; of integers an integer. */
static struct metric_value over_replicates(const struct run_record *found, size_t replicates,
                                           enum metric metric, double *values, struct statistic *of)
{
    struct metric_value value = found->metrics.at[metric];
    *of = (struct statistic){0};
    if (replicates == 1 || value.kind == METRIC_NULL)
        return value;
    for (size_t i = 0; i < replicates; i++)
        values[i] = metric_number(&found[i].metrics, metric, 0);
    *of = statistic_of(values, replicates);
    if (value.kind == METRIC_INTEGER)
        value.integer = (uint64_t)of->median;
    else
        value.real = of->median;
    return value;
}

static void finish_point(struct slowdown_point *point, const struct run_record *found,
                         double *values)
{
    for (size_t i = 0; i < point->replicates; i++)
        point->passed_replicates += found[i].passed;
    point->passed = point->passed_replicates == point->replicates;
    if (!point->passed)
        return;
    struct statistic unused;
    point->slowdown =
        over_replicates(found, point->replicates, METRIC_slowdown, values, &point->over_replicates);
    point->flushes = over_replicates(found, point->replicates, METRIC_flushes, values, &unused);
    point->remapped_bytes =
        over_replicates(found, point->replicates, METRIC_remapped_bytes, values, &unused);
}

static enum ar_status run_points(struct work *work, unsigned jobs, struct ar_error *error)
{
    size_t replicates = work->plan->suite->replicates;
    size_t count = work->count * replicates;
    AR_FREED struct run_record *found = calloc(count ? count : 1, sizeof *found);
    AR_FREED double *values = calloc(replicates, sizeof *values);
    AR_TRY_MEMORY(found && values, error, "the slowdown curve");
    AR_TRY(matrix_run(work->plan, work->runs, count, jobs, found, error));
    for (size_t i = 0; i < work->count; i++)
        finish_point(&work->points[i], &found[i * replicates], values);
    return AR_OK;
}

enum ar_status slowdown_run(const struct plan *plan, const struct run_record *records,
                            unsigned jobs, struct slowdown_curve *curve, struct ar_error *error)
{
    size_t room = plan->workload_count * plan->policy_count * plan->suite->ratio_count;
    struct work work = {.plan = plan, .room = room};
    enum ar_status status = AR_OK;
    *curve = (struct slowdown_curve){0};
    if (room == 0)
        return AR_OK;
    work.runs = calloc(room, plan->suite->replicates * sizeof *work.runs);
    work.points = calloc(room, sizeof *work.points);
    if (!work.runs || !work.points)
        status = ar_no_memory(error, "the slowdown curve");
    for (size_t i = 0; i < plan->workload_count && !status; i++)
        status = add_workload(&work, records, i, error);
    AR_THEN(status, run_points(&work, jobs, error));
    free(work.runs);
    text_list_close(&work.devices);
    if (status)
        free(work.points);
    else
        *curve = (struct slowdown_curve){work.points, work.count};
    return status;
}

void slowdown_close(struct slowdown_curve *curve)
{
    free(curve->points);
    *curve = (struct slowdown_curve){0};
}

static void add_cell(struct table *table, const struct slowdown_point *point,
                     enum slowdown_figure figure)
{
    const struct metric_value *value = figure == SLOWDOWN_TIME      ? &point->slowdown
                                       : figure == SLOWDOWN_FLUSHES ? &point->flushes
                                                                    : &point->remapped_bytes;
    if (!point->passed && point->replicates > 1)
        table_cell(table, "%zu of %zu", point->passed_replicates, point->replicates);
    else if (!point->passed)
        table_cell(table, "DNF");
    else if (value->kind == METRIC_NULL)
        table_cell(table, "-");
    else if (figure == SLOWDOWN_TIME)
        table_cell(table, "%.3f", value->real);
    else if (figure == SLOWDOWN_FLUSHES)
        table_cell(table, "%" PRIu64, value->integer);
    else
        table_cell(table, "%" PRIu64, (value->integer + AR_MIB - 1) / AR_MIB);
}

static bool has_any(const struct slowdown_point *points, size_t count, enum slowdown_figure figure)
{
    for (size_t i = 0; i < count; i++)
        if (figure == SLOWDOWN_TIME || (figure == SLOWDOWN_FLUSHES && points[i].flushes.integer) ||
            (figure == SLOWDOWN_REMAPPED && points[i].remapped_bytes.integer))
            return true;
    return false;
}

/* A row for each policy; tables of flushes and remapped bytes leave out policies without any. */
static void add_rows(struct table *table, const struct slowdown_curve *curve, size_t ratio_count,
                     enum slowdown_figure figure, const char *caption)
{
    const char *workload = NULL;
    char replicates[40] = "", conditions[RESULTS_TITLE_ROOM];
    for (size_t i = 0; i < curve->count; i += ratio_count) {
        const struct slowdown_point *row = &curve->points[i];
        if (!has_any(row, ratio_count, figure))
            continue;
        if (row->replicates > 1)
            snprintf(replicates, sizeof replicates, ", %zu replicates", row->replicates);
        bool begins = workload != row->workload;
        workload = row->workload;
        if (begins && caption)
            table_heading(table, "%s%s: %s, %s%s", workload, replicates, caption,
                          results_conditions(row->record, conditions),
                          strcmp(row->record->device.kind, "sim") ? "" : "; times are modelled");
        else if (begins)
            table_heading(table, "%s", workload);
        table_cell(table, "%s", row->policy_spec);
        for (size_t j = 0; j < ratio_count; j++)
            add_cell(table, &row[j], figure);
    }
}

bool slowdown_has(const struct slowdown_curve *curve, enum slowdown_figure figure)
{
    return has_any(curve->points, curve->count, figure);
}

enum ar_status slowdown_table_print(const struct slowdown_curve *curve, const struct suite *suite,
                                    enum slowdown_figure figure, const char *title, FILE *stream,
                                    enum table_form form, struct ar_error *error)
{
    static const struct {
        const char *label, *name;
    } tables[] = {[SLOWDOWN_TIME] = {"slowdown", "slowdown"},
                  [SLOWDOWN_FLUSHES] = {"flushes", "flushes"},
                  [SLOWDOWN_REMAPPED] = {"remapped", "remapped MiB"}};
    struct table_column columns[SUITE_RATIOS_MOST + 1] = {{"policy", "", true, 30}};
    char titles[SUITE_RATIOS_MOST][16];
    for (size_t i = 0; i < suite->ratio_count; i++) {
        snprintf(titles[i], sizeof titles[i], "%.2f", suite->ratios[i]);
        columns[i + 1] = (struct table_column){titles[i], "x live", false, 0};
    }
    struct table *table = table_create(columns, suite->ratio_count + 1);
    table_label(table, tables[figure].label, title);
    add_rows(table, curve, suite->ratio_count, figure,
             table_is_latex(form) ? tables[figure].name : NULL);
    return table_end(table, stream, form, error);
}
