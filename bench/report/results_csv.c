#include "bench/report/results_csv.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/utf8.h"
#include "bench/report/draw_pairs.h"
#include "bench/report/json_writer.h"

void csv_text(FILE *stream, const char *text)
{
    bool quoted = strpbrk(text, ",\"\r\n") != NULL;
    if (quoted)
        fputc('"', stream);
    for (const char *at = text; *at;) {
        size_t bytes = ar_utf8_bytes(at);
        if (*at == '"')
            fputc('"', stream);
        if (bytes)
            fwrite(at, 1, bytes, stream);
        else
            fputs(AR_UTF8_REPLACEMENT, stream);
        at += bytes ? bytes : 1;
    }
    if (quoted)
        fputc('"', stream);
}

static void csv_value(FILE *stream, const struct metric_value *value)
{
    char text[REAL_TEXT_BYTES];
    if (value->kind == METRIC_INTEGER)
        fprintf(stream, "%" PRIu64, value->integer);
    else if (value->kind == METRIC_REAL)
        fputs(real_print(value->real, text), stream);
}

static void write_run(FILE *stream, const struct run_record *record)
{
    const char *const texts[] = {record->policy_name, record->policy_spec, record->workload.name,
                                 record->workload_spec};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        csv_text(stream, texts[i]);
        fputc(',', stream);
    }
    for (size_t i = 0; i < sizeof record->workload.sha256; i++)
        fprintf(stream, "%02x", record->workload.sha256[i]);
    fprintf(stream, ",%s,%s,", record->workload.complete ? "true" : "false", record->device.kind);
    csv_text(stream, record->device.profile);
    fputc(',', stream);
    csv_text(stream, record->drawn_device_spec);
    fputc(',', stream);
    if (record->device.capacity_bytes != UINT64_MAX)
        fprintf(stream, "%" PRIu64, record->device.capacity_bytes);
    fprintf(stream, ",%s,%s,%u,%" PRIu64 ",%s,%s", replay_frees_name(record->frees),
            replay_host_name(record->host), record->repetition, record->seed,
            record->passed ? "true" : "false", record->passed ? "" : run_record_cause(record));
    for (int i = 0; i < METRIC_COUNT; i++) {
        fputc(',', stream);
        csv_value(stream, &record->metrics.at[i]);
    }
    fputc('\n', stream);
}

void results_csv_write(FILE *stream, const struct run_record *records, size_t count)
{
    fputs("policy,policy_spec,workload,workload_spec,sha256,complete,device,profile,device_spec,"
          "capacity_bytes,frees,host,repetition,seed,passed,cause",
          stream);
    for (int i = 0; i < METRIC_COUNT; i++)
        fprintf(stream, ",%s", metric_info((enum metric)i)->name);
    fputc('\n', stream);
    for (size_t i = 0; i < count; i++)
        write_run(stream, &records[i]);
}

struct pair_rows {
    FILE *stream;
    double *values;
};

/* The median, and what is known of it. */
static void write_median(FILE *stream, const struct statistic *of)
{
    const double limits[] = {of->median, of->low, of->high, of->level};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        char text[REAL_TEXT_BYTES];
        bool there = of->count && (i == 0 || of->has_interval);
        fprintf(stream, ",%s", there ? real_print(limits[i], text) : "");
    }
}

static void write_pairs(void *argument, const struct run_record *first,
                        const struct run_record *base, const struct run_record *end)
{
    const struct pair_rows *rows = argument;
    const char *const texts[] = {first->policy_spec, base->policy_spec, first->workload_spec,
                                 first->device_spec};
    for (int metric = 0; metric < METRIC_COUNT; metric++) {
        struct draw_pairs pairs =
            draw_pairs_of(first, base, end, (enum metric)metric, rows->values);
        if (!pairs.difference.count)
            continue;
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
            csv_text(rows->stream, texts[i]);
            fputc(',', rows->stream);
        }
        fprintf(rows->stream, "%s,%s,%s,%zu,%zu,%zu,%zu", replay_frees_name(first->frees),
                replay_host_name(first->host), metric_info((enum metric)metric)->name,
                pairs.difference.count, pairs.less, pairs.equal, pairs.more);
        write_median(rows->stream, &pairs.difference);
        write_median(rows->stream, &pairs.ratio);
        fputc('\n', rows->stream);
    }
}

enum ar_status pairs_csv_write(FILE *stream, const struct run_record *all, size_t all_count,
                               struct ar_error *error)
{
    size_t count = 0;
    struct run_record *records = statistic_condense(all, all_count, &count);
    struct pair_rows rows = {stream, calloc(count ? count : 1, sizeof *rows.values)};
    enum ar_status status = AR_OK;
    fputs("policy,against,workload,device,frees,host,metric,pairs,less,equal,more,difference,"
          "difference_low,difference_high,difference_level,ratio,ratio_low,ratio_high,"
          "ratio_level\n",
          stream);
    if (!records || !rows.values)
        status = ar_error_set(error, AR_HOST_MEMORY, "no host memory left for the pairs");
    else
        draw_pairs_each(records, count, write_pairs, &rows);
    free(rows.values);
    free(records);
    return status;
}

void placements_csv_header(FILE *stream)
{
    fputs("event,op,id,requested,granted,segment,offset,granted_total,reserved\n", stream);
}

void placements_csv_row(FILE *stream, const struct replay_row *row)
{
    fprintf(stream,
            "%" PRIu64 ",%c,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRId64 ",%" PRId64 ",%" PRIu64
            ",%" PRIu64 "\n",
            row->event, row->op, row->id, row->requested_bytes, row->granted_bytes, row->segment,
            row->offset, row->granted_total_bytes, row->reserved_bytes);
}

void series_csv_header(FILE *stream)
{
    fputs("event,time_ns,weight,live_bytes,granted_bytes,reserved_bytes,physical_bytes,"
          "free_bytes,pending_bytes,stranded_bytes,largest_hole_bytes,servable_bytes,"
          "servable_map_bytes,servable_wait_bytes,servable_trim_bytes,usable_bytes,"
          "stranded_by_stream_bytes\n",
          stream);
}

void series_csv_row(FILE *stream, const struct replay_sample *sample)
{
    const uint64_t values[] = {sample->event,
                               sample->time_ns,
                               sample->weight,
                               sample->live_bytes,
                               sample->granted_bytes,
                               sample->reserved_bytes,
                               sample->physical_bytes,
                               sample->free_bytes,
                               sample->pending_bytes,
                               sample->stranded_bytes,
                               sample->largest_free_block_bytes};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        fprintf(stream, "%" PRIu64 ",", values[i]);
    for (int i = 0; i < AR_POLICY_EFFORT_COUNT; i++)
        fprintf(stream, "%" PRIu64 ",", sample->servable_bytes[i]);
    fprintf(stream, "%" PRIu64 ",%" PRIu64 "\n", sample->usable_bytes,
            sample->stranded_by_stream_bytes);
}
