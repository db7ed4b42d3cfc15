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

/* Whether any of these metrics was measured at all. */
static bool measured(const struct run_record *record, const enum metric *metrics, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (record->metrics.at[metrics[i]].kind != METRIC_NULL)
            return true;
    return false;
}

/* One row for each first repetition in which one of the metrics given was measured. */
static void metric_rows(FILE *stream, const struct run_record *records, size_t count,
                        const enum metric *metrics, size_t metric_count)
{
    static const struct metric_value none = {.kind = METRIC_NULL};
    for (size_t i = 0; i < count; i++) {
        if (records[i].repetition != 0 || !measured(&records[i], metrics, metric_count))
            continue;
        csv_text(stream, records[i].workload.name);
        fputc(',', stream);
        csv_text(stream, records[i].policy_spec);
        for (size_t j = 0; j < metric_count; j++)
            value(stream, records[i].passed ? &records[i].metrics.at[metrics[j]] : &none);
        fputc('\n', stream);
    }
}

void figure_fragmentation(FILE *stream, const struct run_record *records, size_t count)
{
    static const enum metric metrics[] = {METRIC_internal_fragmentation_mean,
                                          METRIC_external_fragmentation_mean,
                                          METRIC_unusable_free_index_mean, METRIC_overhead};
    fputs("workload,policy,internal_mean,external_mean,unusable_mean,overhead\n", stream);
    metric_rows(stream, records, count, metrics, sizeof metrics / sizeof metrics[0]);
}

void figure_latency(FILE *stream, const struct run_record *records, size_t count)
{
    static const enum metric metrics[] = {
        METRIC_alloc_ns_p50, METRIC_alloc_ns_p90, METRIC_alloc_ns_p99, METRIC_alloc_ns_p999,
        METRIC_alloc_ns_max, METRIC_free_ns_p50,  METRIC_free_ns_p99};
    fputs("workload,policy,alloc_p50_ns,alloc_p90_ns,alloc_p99_ns,alloc_p999_ns,alloc_max_ns,"
          "free_p50_ns,free_p99_ns\n",
          stream);
    metric_rows(stream, records, count, metrics, sizeof metrics / sizeof metrics[0]);
}

void figure_pareto(FILE *stream, const struct run_record *records, size_t count)
{
    fputs("workload,policy,overhead,driver_share\n", stream);
    for (size_t i = 0; i < count; i++) {
        const struct metric_values *metrics = &records[i].metrics;
        double time_ns = metric_number(metrics, METRIC_device_time_ns, 0);
        char share[REAL_TEXT_BYTES];
        if (records[i].repetition != 0 || !records[i].passed || !records[i].ranked)
            continue;
        csv_text(stream, records[i].workload.name);
        fputc(',', stream);
        csv_text(stream, records[i].policy_spec);
        value(stream, &metrics->at[METRIC_overhead]);
        fputc(',', stream);
        /* Slowdown is null where nothing but the allocator takes time. */
        if (time_ns > 0 && metrics->at[METRIC_slowdown].kind != METRIC_NULL)
            fputs(real_print(metric_number(metrics, METRIC_driver_time_ns, 0) / time_ns, share),
                  stream);
        fputc('\n', stream);
    }
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
