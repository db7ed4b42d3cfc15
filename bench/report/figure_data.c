#include "bench/report/figure_data.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "bench/report/json_writer.h"
#include "bench/report/results_csv.h"

void figure_series_header(FILE *stream)
{
    fputs("policy,event,time_s,live_bytes,reserved_bytes,physical_bytes\n", stream);
}

struct series_rows {
    FILE *stream;
    const char *policy_spec;
};

static void series_row(void *argument, const struct replay_sample *sample)
{
    const struct series_rows *rows = argument;
    char time_s[REAL_TEXT_BYTES];
    csv_text(rows->stream, rows->policy_spec);
    fprintf(rows->stream, ",%" PRIu64 ",%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", sample->event,
            real_print((double)sample->time_ns / 1e9, time_s), sample->live_bytes,
            sample->reserved_bytes, sample->physical_bytes);
}

void figure_series_rows(FILE *stream, const char *policy_spec, const struct thin_series *series)
{
    struct series_rows rows = {stream, policy_spec};
    thin_series_each(series, series_row, &rows);
}

static void value(FILE *stream, const struct metric_value *metric)
{
    char text[REAL_TEXT_BYTES];
    fputc(',', stream);
    if (metric->kind == METRIC_INTEGER)
        fprintf(stream, "%" PRIu64, metric->integer);
    else if (metric->kind == METRIC_REAL)
        fputs(real_print(metric->real, text), stream);
}

void figure_slowdown(FILE *stream, const struct slowdown_point *points, size_t count)
{
    fputs("workload,policy,capacity_ratio,slowdown,passed,flushes,remapped_bytes\n", stream);
    for (size_t i = 0; i < count; i++) {
        char ratio[REAL_TEXT_BYTES];
        csv_text(stream, points[i].workload);
        fputc(',', stream);
        csv_text(stream, points[i].policy_spec);
        fprintf(stream, ",%s", real_print(points[i].capacity_ratio, ratio));
        value(stream, &points[i].slowdown);
        fprintf(stream, ",%s", points[i].passed ? "true" : "false");
        value(stream, &points[i].flushes);
        value(stream, &points[i].remapped_bytes);
        fputc('\n', stream);
    }
}

/* A figure of one run; null where it has none. */
struct figure {
    struct metric_value (*of)(const struct run_record *record, enum metric metric);
    enum metric metric;
};

static struct metric_value metric_of(const struct run_record *record, enum metric metric)
{
    return record->metrics.at[metric];
}

static double number(const struct metric_value *value)
{
    return value->kind == METRIC_INTEGER ? (double)value->integer : value->real;
}

/* True for the runs that one row is made from: the draws of `first`, each once. */
static bool in_row(const struct run_record *first, const struct run_record *record)
{
    return record->repetition == 0 && strcmp(record->policy_spec, first->policy_spec) == 0;
}

/* The median over the draws of a policy from `first` to before `end`, of two middle ones the
 * lower; null where a draw has no value or did not finish. Draws are few: no order is kept. */
static struct metric_value median_of(const struct run_record *first, const struct run_record *end,
                                     const struct figure *figure)
{
    const struct metric_value none = {.kind = METRIC_NULL};
    for (const struct run_record *at = first; at < end; at++) {
        struct metric_value candidate = figure->of(at, figure->metric);
        size_t less = 0, equal = 0, count = 0;
        if (!in_row(first, at))
            continue;
        for (const struct run_record *other = first; other < end; other++) {
            struct metric_value value = figure->of(other, figure->metric);
            if (!in_row(first, other))
                continue;
            if (!other->passed || value.kind == METRIC_NULL)
                return none;
            count++;
            less += number(&value) < number(&candidate);
            equal += number(&value) == number(&candidate);
        }
        if (less <= (count - 1) / 2 && (count - 1) / 2 < less + equal)
            return candidate;
    }
    return none;
}

/* Whether a draw of `first` has any of these figures. */
static bool measured(const struct run_record *first, const struct run_record *end,
                     const struct figure *figures, size_t count)
{
    for (const struct run_record *at = first; at < end; at++)
        for (size_t i = 0; i < count && in_row(first, at); i++)
            if (figures[i].of(at, figures[i].metric).kind != METRIC_NULL)
                return true;
    return false;
}

static bool all_passed(const struct run_record *first, const struct run_record *end)
{
    for (const struct run_record *at = first; at < end; at++)
        if (in_row(first, at) && !at->passed)
            return false;
    return true;
}

static bool has_row(const struct run_record *begin, const struct run_record *record)
{
    for (const struct run_record *at = begin; at < record; at++)
        if (in_row(record, at))
            return true;
    return false;
}

/* One row for each workload and policy: figures of the first repetition, over draws the median;
 * with these the workload is named as the user wrote it, without a seed. `ranked_only`: no rows
 * of policies that are not ranked or did not finish. */
static void figure_rows(FILE *stream, const struct run_record *records, size_t count,
                        const struct figure *figures, size_t figure_count, bool ranked_only)
{
    for (size_t begin = 0; begin < count;) {
        const struct run_record *group = records + begin;
        size_t size = run_record_group_end(records, count, begin) - begin;
        const char *name =
            run_record_draws(group, size) > 1 ? group->workload_spec : group->workload.name;
        const struct run_record *end = group + size;
        for (const struct run_record *first = group; first < end; first++) {
            if (first->repetition != 0 || has_row(group, first) ||
                !measured(first, end, figures, figure_count) ||
                (ranked_only && (!first->ranked || !all_passed(first, end))))
                continue;
            csv_text(stream, name);
            fputc(',', stream);
            csv_text(stream, first->policy_spec);
            for (size_t i = 0; i < figure_count; i++) {
                struct metric_value median = median_of(first, end, &figures[i]);
                value(stream, &median);
            }
            fputc('\n', stream);
        }
        begin += size;
    }
}

void figure_fragmentation(FILE *stream, const struct run_record *records, size_t count)
{
    static const struct figure figures[] = {
        {metric_of, METRIC_internal_fragmentation_mean},
        {metric_of, METRIC_external_fragmentation_mean},
        {metric_of, METRIC_unusable_free_index_mean},
        {metric_of, METRIC_overhead},
    };
    fputs("workload,policy,internal_mean,external_mean,unusable_mean,overhead\n", stream);
    figure_rows(stream, records, count, figures, sizeof figures / sizeof figures[0], false);
}

void figure_latency(FILE *stream, const struct run_record *records, size_t count)
{
    static const struct figure figures[] = {
        {metric_of, METRIC_alloc_ns_p50}, {metric_of, METRIC_alloc_ns_p90},
        {metric_of, METRIC_alloc_ns_p99}, {metric_of, METRIC_alloc_ns_p999},
        {metric_of, METRIC_alloc_ns_max}, {metric_of, METRIC_free_ns_p50},
        {metric_of, METRIC_free_ns_p99},
    };
    fputs("workload,policy,alloc_p50_ns,alloc_p90_ns,alloc_p99_ns,alloc_p999_ns,alloc_max_ns,"
          "free_p50_ns,free_p99_ns\n",
          stream);
    figure_rows(stream, records, count, figures, sizeof figures / sizeof figures[0], false);
}

/* Slowdown is null where nothing but the allocator takes time, and so is the driver's share. */
static struct metric_value driver_share(const struct run_record *record, enum metric metric)
{
    struct metric_value share = {.kind = METRIC_NULL};
    double time_ns = metric_number(&record->metrics, METRIC_device_time_ns, 0);
    if (time_ns > 0 && record->metrics.at[METRIC_slowdown].kind != METRIC_NULL)
        share = (struct metric_value){.kind = METRIC_REAL,
                                      .real = metric_number(&record->metrics, metric, 0) / time_ns};
    return share;
}

void figure_pareto(FILE *stream, const struct run_record *records, size_t count)
{
    static const struct figure figures[] = {
        {metric_of, METRIC_overhead},
        {driver_share, METRIC_driver_time_ns},
    };
    fputs("workload,policy,overhead,driver_share\n", stream);
    figure_rows(stream, records, count, figures, sizeof figures / sizeof figures[0], true);
}

const char *figure_file_name(const char *name, char *text, size_t text_bytes)
{
    const char *slash = strrchr(name, '/');
    size_t used = 0;
    for (const char *at = slash ? slash + 1 : name; *at && used + 1 < text_bytes; at++) {
        bool plain = isalnum((unsigned char)*at) || *at == '.' || *at == '_' || *at == '-';
        text[used++] = plain ? *at : '-';
    }
    text[used] = '\0';
    return text;
}
