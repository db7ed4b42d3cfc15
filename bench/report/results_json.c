#include "bench/report/results_json.h"

#include <stdlib.h>
#include <string.h>

#include "bench/report/context.h"
#include "bench/report/draw_pairs.h"
#include "bench/report/json_writer.h"
#include "bench/statistics/statistics.h"

static void write_value(struct json_writer *json, const char *key, const struct metric_value *value)
{
    if (value->kind == METRIC_INTEGER)
        json_put_integer(json, key, value->integer);
    else if (value->kind == METRIC_REAL)
        json_put_real(json, key, value->real);
    else
        json_put_null(json, key);
}

static void write_workload(struct json_writer *json, const struct run_record *record)
{
    char sha256[2 * sizeof record->workload.sha256 + 1];
    for (size_t i = 0; i < sizeof record->workload.sha256; i++)
        snprintf(sha256 + 2 * i, 3, "%02x", record->workload.sha256[i]);
    json_begin_object(json, "workload");
    json_put_text(json, "name", record->workload.name);
    json_put_text(json, "spec", record->workload_spec);
    write_value(json, "events", &record->metrics.at[METRIC_events]);
    json_put_text(json, "sha256", sha256);
    json_put_bool(json, "complete", record->workload.complete);
    json_end_object(json);
}

static void write_device(struct json_writer *json, const struct run_record *record)
{
    json_begin_object(json, "device");
    json_put_text(json, "kind", record->device.kind);
    json_put_text(json, "profile", record->device.profile);
    json_put_text(json, "spec", record->drawn_device_spec);
    json_put_bounded(json, "capacity_bytes", record->device.capacity_bytes);
    json_end_object(json);
}

static void write_run(struct json_writer *json, const struct run_record *record)
{
    json_begin_object(json, NULL);
    json_begin_object(json, "policy");
    json_put_text(json, "name", record->policy_name);
    json_put_text(json, "spec", record->policy_spec);
    json_end_object(json);
    write_workload(json, record);
    write_device(json, record);
    json_put_text(json, "frees", replay_frees_name(record->frees));
    json_put_text(json, "host", replay_host_name(record->host));
    json_put_integer(json, "repetition", record->repetition);
    json_put_integer(json, "seed", record->seed);
    json_begin_object(json, "outcome");
    json_put_bool(json, "passed", record->passed);
    if (record->passed || record->end != RUN_PLAYED)
        json_put_null(json, "first_failed_event");
    else
        json_put_integer(json, "first_failed_event", record->first_failed_event);
    json_put_text(json, "cause", run_record_cause(record));
    if (record->detail[0])
        json_put_text(json, "detail", record->detail);
    json_end_object(json);
    json_begin_object(json, "metrics");
    for (int i = 0; i < METRIC_COUNT; i++)
        write_value(json, metric_info((enum metric)i)->name, &record->metrics.at[i]);
    json_end_object(json);
    json_end_object(json);
}

static void write_statistic(struct json_writer *json, const char *name,
                            const struct statistic *statistic)
{
    json_begin_object(json, name);
    json_put_integer(json, "count", statistic->count);
    json_put_real(json, "median", statistic->median);
    json_put_real(json, "least", statistic->least);
    json_put_real(json, "most", statistic->most);
    if (statistic->has_interval) {
        json_put_real(json, "low", statistic->low);
        json_put_real(json, "high", statistic->high);
        json_put_real(json, "level", statistic->level);
    } else {
        json_put_null(json, "low");
        json_put_null(json, "high");
        json_put_null(json, "level");
    }
    json_end_object(json);
}

/* Of one run all repetitions: timed metrics, and others that were not the same in each. */
static void write_repetitions(struct json_writer *json, const struct run_record *first,
                              const struct run_record *end, double *values)
{
    json_begin_object(json, NULL);
    json_put_text(json, "policy", first->policy_spec);
    json_put_text(json, "workload", first->workload_spec);
    json_put_text(json, "device", first->drawn_device_spec);
    json_put_text(json, "frees", replay_frees_name(first->frees));
    json_put_text(json, "host", replay_host_name(first->host));
    json_put_integer(json, "seed", first->seed);
    json_begin_object(json, "metrics");
    for (int i = 0; i < METRIC_COUNT; i++) {
        const struct metric_info *info = metric_info((enum metric)i);
        struct statistic statistic = statistic_gather(first, end, (enum metric)i, values);
        if (statistic.count && (info->class == METRIC_TIMED || statistic.least < statistic.most))
            write_statistic(json, info->name, &statistic);
    }
    json_end_object(json);
    json_end_object(json);
}

/* How the draws of a policy and those of its group's first one lie to each other, a line a metric. */
struct pairs_json {
    struct json_writer *json;
    double *values;
};

static void write_group(struct json_writer *json, const struct run_record *record)
{
    json_put_text(json, "workload", record->workload_spec);
    json_put_text(json, "device", record->device_spec);
    json_put_text(json, "frees", replay_frees_name(record->frees));
    json_put_text(json, "host", replay_host_name(record->host));
}

static void write_pairs(void *argument, const struct run_record *first,
                        const struct run_record *base, const struct run_record *end)
{
    const struct pairs_json *self = argument;
    struct json_writer *json = self->json;
    json_begin_object(json, NULL);
    json_put_text(json, "policy", first->policy_spec);
    json_put_text(json, "against", base->policy_spec);
    write_group(json, first);
    json_begin_object(json, "metrics");
    json->lean_from = json->depth;
    for (int i = 0; i < METRIC_COUNT; i++) {
        struct draw_pairs pairs = draw_pairs_of(first, base, end, (enum metric)i, self->values);
        if (!pairs.difference.count)
            continue;
        json_begin_object(json, metric_info((enum metric)i)->name);
        json_put_integer(json, "pairs", pairs.difference.count);
        json_put_integer(json, "less", pairs.less);
        json_put_integer(json, "equal", pairs.equal);
        json_put_integer(json, "more", pairs.more);
        write_statistic(json, "difference", &pairs.difference);
        if (pairs.ratio.count)
            write_statistic(json, "ratio", &pairs.ratio);
        else
            json_put_null(json, "ratio");
        json_end_object(json);
    }
    json->lean_from = 0;
    json_end_object(json);
    json_end_object(json);
}

/* A policy of a group, of which `first` is the first record, over its draws. */
static void write_draws(struct json_writer *json, const struct run_record *first,
                        const struct run_record *end, double *values)
{
    size_t draws = 0;
    size_t passed = 0;
    for (const struct run_record *at = first; at < end; at++)
        if (strcmp(at->policy_spec, first->policy_spec) == 0) {
            draws++;
            passed += at->passed;
        }
    json_begin_object(json, NULL);
    json_put_text(json, "policy", first->policy_spec);
    write_group(json, first);
    json_put_integer(json, "draws", draws);
    json_put_integer(json, "passed", passed);
    json_begin_object(json, "metrics");
    json->lean_from = json->depth;
    for (int i = 0; i < METRIC_COUNT; i++) {
        struct statistic statistic = statistic_over_draws(first, end, (enum metric)i, values);
        if (statistic.count)
            write_statistic(json, metric_info((enum metric)i)->name, &statistic);
    }
    json->lean_from = 0;
    json_end_object(json);
    json_end_object(json);
}

/* Medians over draws with their intervals, then the draws in pairs; nothing where each run has one
 * draw, or for want of host memory. */
static void write_all_draws(struct json_writer *json, const struct result_set *set)
{
    size_t count = 0;
    bool drawn = false;
    for (size_t i = 1; i < set->record_count; i++)
        drawn = drawn || set->records[i].seed != set->records[0].seed;
    struct run_record *records =
        drawn ? statistic_condense(set->records, set->record_count, &count) : NULL;
    double *values = records ? calloc(count, sizeof *values) : NULL;
    struct pairs_json pairs = {json, values};
    if (values) {
        json_begin_array(json, "draws");
        for (size_t begin = 0, end; begin < count; begin = end) {
            end = run_record_group_end(records, count, begin);
            for (size_t i = begin; i < end; i++)
                if (i == begin || strcmp(records[i].policy_spec, records[i - 1].policy_spec) != 0)
                    write_draws(json, &records[i], records + end, values);
        }
        json_end_array(json);
    }
    if (values && draw_pairs_any(records, count)) {
        json_begin_array(json, "draw_pairs");
        draw_pairs_each(records, count, write_pairs, &pairs);
        json_end_array(json);
    }
    free(values);
    free(records);
}

static void write_statistics(struct json_writer *json, const struct result_set *set)
{
    const struct run_record *end = set->records + set->record_count;
    bool repeated = false;
    for (const struct run_record *at = set->records; at < end; at++)
        repeated |= at->repetition > 0;
    double *values = repeated ? calloc(set->record_count, sizeof *values) : NULL;
    if (!values)
        return;
    json_begin_array(json, "statistics");
    for (const struct run_record *at = set->records; at < end; at++)
        if (at->repetition == 0)
            write_repetitions(json, at, end, values);
    json_end_array(json);
    free(values);
}

static void write_slowdown_interval(struct json_writer *json, const struct statistic *of)
{
    static const char *const names[] = {"slowdown_low", "slowdown_high", "slowdown_level"};
    const double limits[] = {of->low, of->high, of->level};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (of->has_interval)
            json_put_real(json, names[i], limits[i]);
        else
            json_put_null(json, names[i]);
}

static void write_point(struct json_writer *json, const struct slowdown_point *point)
{
    json_begin_object(json, NULL);
    json_put_text(json, "workload", point->workload);
    json_put_text(json, "policy", point->policy_spec);
    json_put_real(json, "capacity_ratio", point->capacity_ratio);
    json_put_integer(json, "capacity_bytes", point->capacity_bytes);
    json_put_bool(json, "passed", point->passed);
    write_value(json, "slowdown", &point->slowdown);
    if (point->draws > 1)
        write_slowdown_interval(json, &point->over_draws);
    write_value(json, "flushes", &point->flushes);
    write_value(json, "remapped_bytes", &point->remapped_bytes);
    json_end_object(json);
}

void results_json_write(FILE *stream, const struct result_set *set)
{
    struct json_writer json = {.stream = stream};
    json_begin_object(&json, NULL);
    json_put_text(&json, "schema", RESULT_SCHEMA);
    context_json_write(&json, set->environment);
    if (set->suite)
        json_put_text(&json, "suite", set->suite);
    json_begin_array(&json, "runs");
    for (size_t i = 0; i < set->record_count; i++)
        write_run(&json, &set->records[i]);
    json_end_array(&json);
    write_statistics(&json, set);
    write_all_draws(&json, set);
    if (set->point_count) {
        json_begin_array(&json, "slowdown_at_capacity");
        for (size_t i = 0; i < set->point_count; i++)
            write_point(&json, &set->points[i]);
        json_end_array(&json);
    }
    json_end_object(&json);
}
