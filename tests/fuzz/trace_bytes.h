/* What the fuzz targets of traces share: any bytes as a file, opened, pulled to its end and, where
 * it is a trace, written and read back. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fuzz/target.h"
#include "workloads/formats/formats.h"
#include "workloads/trace/trace.h"

/* A file of these bytes; its path into `path`. It has a name in a folder, which SQLite needs. The
 * caller removes it. */
static inline void trace_bytes_file(const uint8_t *data, size_t bytes, char path[64])
{
    snprintf(path, 64, "/dev/shm/allocrig-fuzz-%ld.in", (long)getpid());
    FILE *file = fopen(path, "we");
    if (!file) {
        snprintf(path, 64, "/tmp/allocrig-fuzz-%ld.in", (long)getpid());
        file = fopen(path, "we");
    }
    if (!file || fwrite(data, 1, bytes, file) != bytes || fclose(file))
        abort();
}

static inline uint64_t trace_bytes_pull(struct trace_source *source)
{
    const struct trace_event *events;
    struct ar_error error;
    size_t count;
    uint64_t sum = 0;
    while (trace_next(source, &events, &count, &error) == AR_OK && count)
        for (size_t i = 0; i < count; i++) {
            if (trace_kind_has_block(events[i].kind) && events[i].slot >= source->info.slots)
                abort();
            if (events[i].stream != TRACE_NO_STREAM && events[i].stream >= source->info.streams)
                abort();
            sum += trace_attributes_of(source, events[i].attributes)->pool;
            if (events[i].kind == TRACE_MARK || events[i].kind == TRACE_NOTE)
                sum += strlen(trace_text_of(source, events[i].value));
        }
    return sum;
}

/* Written in `format` and read back it must be the same trace. */
static inline void trace_bytes_round_trip(struct trace_source *source, enum trace_format format)
{
    const struct trace_write_options options = {.format = format};
    struct trace_source *again;
    struct ar_error error;
    char path[64];
    snprintf(path, sizeof path, "/tmp/allocrig-fuzz-%ld", (long)getpid());
    if (trace_write(source, path, &options, &error) != AR_OK)
        abort();
    if (trace_open(path, &again, &error) != AR_OK)
        abort();
    if (memcmp(source->info.sha256, again->info.sha256, 32) != 0)
        abort();
    trace_close(again);
    (void)unlink(path);
}

static inline int trace_bytes_run(const uint8_t *data, size_t bytes)
{
    struct trace_source *source;
    struct ar_error error = {""};
    char path[64];
    trace_bytes_file(data, bytes, path);
    if (trace_open(path, &source, &error) == AR_OK) {
        uint64_t sum = trace_bytes_pull(source);
        if (trace_rewind(source, &error) != AR_OK || trace_bytes_pull(source) != sum)
            abort();
        trace_bytes_round_trip(source, TRACE_FORMAT_TEXT);
        trace_bytes_round_trip(source, TRACE_FORMAT_BINARY);
        trace_close(source);
    } else if (!*error.text) {
        abort(); /* a refusal has a sentence */
    }
    (void)unlink(path);
    return 0;
}
