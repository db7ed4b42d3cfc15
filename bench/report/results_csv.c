#include "bench/report/results_csv.h"

#include <inttypes.h>
#include <string.h>

#include "allocators/base/utf8.h"
#include "bench/report/json_writer.h"

void csv_text(FILE *stream, const char *text)
{
    bool quoted = strpbrk(text, ",\"\r\n") != NULL;
    if (quoted)
        fputc('"', stream);
    for (const char *at = text; *at;) {
        size_t bytes = utf8_bytes(at);
        if (*at == '"')
            fputc('"', stream);
        if (bytes)
            fwrite(at, 1, bytes, stream);
        else
            fputs(UTF8_REPLACEMENT, stream);
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
    const uint64_t values[] = {
        sample->event,          sample->time_ns,           sample->weight,
        sample->live_bytes,     sample->granted_bytes,     sample->reserved_bytes,
        sample->physical_bytes, sample->free_bytes,        sample->pending_bytes,
        sample->stranded_bytes, sample->largest_hole_bytes};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        fprintf(stream, "%" PRIu64 ",", values[i]);
    for (int i = 0; i < POLICY_PRICE_COUNT; i++)
        fprintf(stream, "%" PRIu64 ",", sample->servable_bytes[i]);
    fprintf(stream, "%" PRIu64 ",%" PRIu64 "\n", sample->usable_bytes,
            sample->stranded_by_stream_bytes);
}
