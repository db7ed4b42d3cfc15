/* results.json. `statistics[]` holds repetitions, `draws[]` and `draw_pairs[]` replicates: the
 * names in the file are those of its schema. */
#include "bench/report/result_writers.h"

#include "bench/report/data_writer.h"

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
    const struct trace_info *info = &record->workload;
    char sha256[2 * sizeof info->sha256 + 1];
    json_begin_object(json, "workload");
    json_put_text(json, "name", info->name);
    json_put_text(json, "spec", record->workload_spec);
    write_value(json, "events", &record->metrics.at[METRIC_events]);
    json_put_text(json, "sha256", hex_print(info->sha256, sizeof info->sha256, sha256));
    json_put_bool(json, "complete", info->complete);
    json_end_object(json);
}

static void write_device(struct json_writer *json, const struct run_record *record)
{
    json_begin_object(json, "device");
    JSON_PUT(json, &record->device, kind, profile);
    json_put_text(json, "spec", record->drawn_device_spec);
    json_put_bounded(json, "capacity_bytes", record->device.capacity_bytes);
    if (record->device.costs_of[0])
        json_put_text(json, "costs_of", record->device.costs_of);
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
    JSON_PUT(json, record, repetition, seed);
    json_begin_object(json, "outcome");
    json_put_bool(json, "passed", record->passed);
    json_put_known(json, "first_failed_event", !(record->passed || record->end != RUN_PLAYED),
                   record->first_failed_event);
    json_put_text(json, "cause", run_record_cause(record));
    if (record->detail[0])
        json_put_text(json, "detail", record->detail);
    json_end_object(json);
    json_begin_object(json, "metrics");
    for (int i = 0; i < METRIC_COUNT; i++)
        if (i < METRIC_FIRST_OPTIONAL || record->metrics.at[i].kind != METRIC_NULL)
            write_value(json, metric_info((enum metric)i)->name, &record->metrics.at[i]);
    json_end_object(json);
    json_end_object(json);
}

/* The interval of a median, or nulls. */
static void write_interval(struct json_writer *json, const struct statistic *of,
                           const char *const names[3])
{
    const double limits[] = {of->low, of->high, of->level};
    for (size_t i = 0; i < 3; i++)
        if (of->has_interval)
            json_put_real(json, names[i], limits[i]);
        else
            json_put_null(json, names[i]);
}

static void write_statistic(struct json_writer *json, const char *name,
                            const struct statistic *statistic)
{
    static const char *const names[] = {"low", "high", "level"};
    json_begin_object(json, name);
    JSON_PUT(json, statistic, count, median, least, most);
    write_interval(json, statistic, names);
    json_end_object(json);
}

/* Timed metrics, and others that were not the same in each repetition. */
static void write_repetitions(struct json_writer *json, const struct result_replicate *replicate,
                              double *values)
{
    const struct run_record *first = replicate->runs[0];
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
        struct statistic statistic =
            runs_statistic(replicate->runs, replicate->run_count, (enum metric)i, values);
        if (statistic.count && (info->class == METRIC_TIMED || statistic.least < statistic.most))
            write_statistic(json, info->name, &statistic);
    }
    json_end_object(json);
    json_end_object(json);
}

static void write_group(struct json_writer *json, const struct run_record *record)
{
    json_put_text(json, "workload", record->workload_spec);
    json_put_text(json, "device", record->device_spec);
    json_put_text(json, "frees", replay_frees_name(record->frees));
    json_put_text(json, "host", replay_host_name(record->host));
}

static void write_pairs(struct json_writer *json, const struct result_policy *policy,
                        const struct result_policy *base, double *values)
{
    json_begin_object(json, NULL);
    json_put_text(json, "policy", policy->median->policy_spec);
    json_put_text(json, "against", base->median->policy_spec);
    write_group(json, policy->median);
    json_begin_object(json, "metrics");
    json->lean_from = json->depth;
    for (int i = 0; i < METRIC_COUNT; i++) {
        struct result_pairs pairs = result_pairs_of(policy, base, (enum metric)i, values);
        if (!pairs.difference.count)
            continue;
        json_begin_object(json, metric_info((enum metric)i)->name);
        json_put_integer(json, "pairs", pairs.difference.count);
        JSON_PUT(json, &pairs, less, equal, more);
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

static void write_replicates(struct json_writer *json, const struct result_policy *policy,
                             double *values)
{
    json_begin_object(json, NULL);
    json_put_text(json, "policy", policy->median->policy_spec);
    write_group(json, policy->median);
    json_put_integer(json, "draws", policy->replicate_count);
    json_put_integer(json, "passed", policy->passed_count);
    json_begin_object(json, "metrics");
    json->lean_from = json->depth;
    for (int i = 0; i < METRIC_COUNT; i++) {
        struct statistic statistic =
            runs_statistic(policy->medians, policy->replicate_count, (enum metric)i, values);
        if (statistic.count)
            write_statistic(json, metric_info((enum metric)i)->name, &statistic);
    }
    json->lean_from = 0;
    json_end_object(json);
    json_end_object(json);
}

static void write_statistics(struct json_writer *json, const struct results *results)
{
    json_begin_array(json, "statistics");
    for (size_t i = 0; i < results->group_count; i++)
        for (size_t j = 0; j < results->groups[i].policy_count; j++) {
            const struct result_policy *policy = &results->groups[i].policies[j];
            for (size_t k = 0; k < policy->replicate_count; k++)
                write_repetitions(json, &policy->replicates[k], results->values);
        }
    json_end_array(json);
}

static void write_all_replicates(struct json_writer *json, const struct results *results)
{
    json_begin_array(json, "draws");
    for (size_t i = 0; i < results->group_count; i++)
        for (size_t j = 0; j < results->groups[i].policy_count; j++)
            write_replicates(json, &results->groups[i].policies[j], results->values);
    json_end_array(json);
    if (!results_have_pairs(results))
        return;
    json_begin_array(json, "draw_pairs");
    for (size_t i = 0; i < results->group_count; i++) {
        const struct result_group *group = &results->groups[i];
        for (size_t j = 1; j < group->policy_count && group->replicated; j++)
            write_pairs(json, &group->policies[j], group->policies, results->values);
    }
    json_end_array(json);
}

static void write_point(struct json_writer *json, const struct slowdown_point *point)
{
    static const char *const names[] = {"slowdown_low", "slowdown_high", "slowdown_level"};
    json_begin_object(json, NULL);
    json_put_text(json, "workload", point->workload);
    json_put_text(json, "policy", point->policy_spec);
    JSON_PUT(json, point, capacity_ratio, capacity_bytes, passed);
    write_value(json, "slowdown", &point->slowdown);
    if (point->replicates > 1)
        write_interval(json, &point->over_replicates, names);
    write_value(json, "flushes", &point->flushes);
    write_value(json, "remapped_bytes", &point->remapped_bytes);
    json_end_object(json);
}

void results_json_write(FILE *stream, const struct results *results)
{
    struct json_writer json = {.stream = stream};
    json_begin_object(&json, NULL);
    json_put_text(&json, "schema", RESULT_SCHEMA);
    context_json_write(&json, results->environment);
    if (results->suite)
        json_put_text(&json, "suite", results->suite);
    json_begin_array(&json, "runs");
    for (size_t i = 0; i < results->run_count; i++)
        write_run(&json, &results->runs[i]);
    json_end_array(&json);
    if (results->repeated)
        write_statistics(&json, results);
    if (results->replicated)
        write_all_replicates(&json, results);
    if (results->point_count) {
        json_begin_array(&json, "slowdown_at_capacity");
        for (size_t i = 0; i < results->point_count; i++)
            write_point(&json, &results->points[i]);
        json_end_array(&json);
    }
    json_end_object(&json);
}
