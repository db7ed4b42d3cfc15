/* `convert`: converts, filters and merges traces. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/size.h"
#include "bench/cli/cli.h"
#include "bench/cli/files.h"
#include "bench/report/trace_page.h"
#include "workloads/formats/formats.h"
#include "workloads/trace/filter.h"

#define STREAMS_MOST 256
#define MERGE_MOST   64

enum option_key {
    KEY_STEPS = CLI_KEYS,
    KEY_STREAMS,
    KEY_MIN_BYTES,
    KEY_REPEAT,
    KEY_EVENTS,
    KEY_AT_ONCE,
    KEY_DEVICE,
    KEY_MERGE,
    KEY_FORMAT,
};

static const struct cli_option options[] = {
    {CLI_HEADING, NULL, NULL, "Filters (default: keep everything):"},
    {KEY_STEPS, "steps", "A-B", "steps A to B, from 1; blocks that are live at A come first"},
    {KEY_STREAMS, "streams", "N,N..", "only blocks and events of these streams"},
    {KEY_DEVICE, "device", "N", "only this GPU of a recording of several, with its notes"},
    {KEY_MIN_BYTES, "min-bytes", "SIZE", "only blocks of at least SIZE"},
    {KEY_EVENTS, "events", "LETTERS", "only events of these kinds, such as afk"},
    {KEY_AT_ONCE, "at-once", NULL, "blocks are complete when they are freed"},
    {CLI_HEADING, NULL, NULL, "Options:"},
    {KEY_REPEAT, "repeat", "N", "repeat the trace N times"},
    {KEY_MERGE, "merge", "FILE", "merge another trace into it; may be given several times"},
    {KEY_FORMAT, "format", "FORMAT",
     "format of OUT, if not by its ending: text, binary, snapshot, rmm, minimalloc, oracle"},
    {0},
};

static const struct cli_page page = {
    .arguments = "IN OUT [options]",
    .text =
        "Reads a trace of any known format (detected by its content) and writes it as text\n"
        "(.txt, .trace), as binary (.bin, with the same content), or for another program: a\n"
        "PyTorch snapshot (.pickle), an RMM log (.rmm.csv), MiniMalloc lifetimes\n"
        "(.minimalloc.csv), or only requests and frees (.oracle.csv). The ending .zst compresses.",
    .options = options,
};

struct convert_arguments {
    const char *in, *out, *format;
    const char *merged[MERGE_MOST];
    size_t merge_count;
    uint32_t streams[STREAMS_MOST];
    struct trace_filter_options filter;
    bool filtered;
    uint32_t device;
    bool has_device;
};

static enum ar_status take_path(struct convert_arguments *self, const char *path,
                                struct ar_error *error)
{
    const char **place = self->in ? &self->out : &self->in;
    if (*place)
        return ar_error_set(error, AR_INVALID,
                            "\"%s\" is one file too many; traces to merge go after --merge", path);
    *place = path;
    return AR_OK;
}

static enum ar_status take_merge(struct convert_arguments *self, const char *path,
                                 struct ar_error *error)
{
    if (self->merge_count == MERGE_MOST)
        return ar_error_set(error, AR_INVALID, "--merge takes at most %d traces", MERGE_MOST);
    self->merged[self->merge_count++] = path;
    return AR_OK;
}

static enum ar_status take_device(struct convert_arguments *self, const char *value,
                                  struct ar_error *error)
{
    uint64_t device;
    enum ar_status status = ar_count_parse(value, &device, error);
    if (status)
        return ar_error_prefix(error, status, "--device");
    if (device > UINT32_MAX)
        return ar_error_set(error, AR_INVALID, "--device %s: there is no such device", value);
    self->device = (uint32_t)device;
    self->has_device = true;
    return AR_OK;
}

static enum ar_status open_one(const struct convert_arguments *self, const char *path,
                               struct trace_source **out, struct ar_error *error)
{
    return self->has_device ? trace_open_device(path, self->device, false, out, error)
                            : trace_open(path, out, error);
}

/* "0,2,5" */
static enum ar_status take_streams(struct convert_arguments *self, const char *list,
                                   struct ar_error *error)
{
    char *rest = NULL;
    char *copy = strdup(list);
    enum ar_status status = AR_OK;
    if (!copy)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory to read --streams");
    for (char *word = strtok_r(copy, ",", &rest); word && !status;
         word = strtok_r(NULL, ",", &rest)) {
        uint64_t stream = 0;
        status = ar_count_parse(word, &stream, error);
        if (status)
            status = ar_error_prefix(error, status, "--streams");
        else if (stream >= TRACE_NO_STREAM || self->filter.stream_count == STREAMS_MOST)
            status =
                ar_error_set(error, AR_INVALID,
                             "--streams takes at most %d streams, numbered from 0; %s is not one",
                             STREAMS_MOST, word);
        else
            self->streams[self->filter.stream_count++] = (uint32_t)stream;
    }
    free(copy);
    if (!status && self->filter.stream_count == 0)
        status = ar_error_set(error, AR_INVALID, "--streams \"%s\" names no stream", list);
    return status;
}

static enum ar_status take_repeat(struct convert_arguments *self, const char *value,
                                  struct ar_error *error)
{
    enum ar_status status = ar_count_parse(value, &self->filter.repeat, error);
    if (status)
        return ar_error_prefix(error, status, "--repeat");
    if (self->filter.repeat == 0)
        return ar_error_set(error, AR_INVALID, "--repeat 0 leaves nothing; write 1 or more");
    if (self->filter.repeat > 1000000)
        return ar_error_set(error, AR_INVALID, "--repeat %s: up to 1000000 times", value);
    return AR_OK;
}

static enum ar_status take(void *argument, int key, const char *value, struct ar_error *error)
{
    struct convert_arguments *self = argument;
    enum ar_status status;
    self->filtered = self->filtered || (key >= KEY_STEPS && key <= KEY_AT_ONCE);
    switch (key) {
    case CLI_ARGUMENT:
        return take_path(self, value, error);
    case KEY_STEPS:
        return trace_filter_steps(value, &self->filter, error);
    case KEY_STREAMS:
        return take_streams(self, value, error);
    case KEY_MIN_BYTES:
        status = ar_size_parse(value, &self->filter.min_bytes, error);
        return status ? ar_error_prefix(error, status, "--min-bytes") : AR_OK;
    case KEY_EVENTS:
        return trace_filter_kinds(value, &self->filter.kinds, error);
    case KEY_AT_ONCE:
        self->filter.at_once = true;
        return AR_OK;
    case KEY_DEVICE:
        return take_device(self, value, error);
    case KEY_REPEAT:
        return take_repeat(self, value, error);
    case KEY_MERGE:
        return take_merge(self, value, error);
    default:
        self->format = value;
        return AR_OK;
    }
}

/* The traces to merge, filtered like the first, as one source in place of `*source`. */
static enum ar_status merge(const struct convert_arguments *self, struct trace_source **source,
                            struct ar_error *error)
{
    struct trace_source *sources[MERGE_MOST + 1] = {*source};
    size_t count = 1;
    enum ar_status status = AR_OK;
    *source = NULL;
    for (size_t i = 0; i < self->merge_count && !status; i++) {
        status = open_one(self, self->merged[i], &sources[count], error);
        count += !status;
        if (!status)
            status = import_page_print(stdout, self->merged[i], sources[count - 1], error);
    }
    if (!status)
        return trace_merge(sources, count, source, error);
    for (size_t i = 0; i < count; i++)
        trace_close(sources[i]);
    return status;
}

/* Reads, merges and filters the input. The caller closes it. */
static enum ar_status open_source(const struct convert_arguments *self, struct trace_source **out,
                                  struct ar_error *error)
{
    struct trace_source *source = NULL;
    enum ar_status status = open_one(self, self->in, &source, error);
    if (status)
        return status;
    status = import_page_print(stdout, self->in, source, error);
    if (status) {
        trace_close(source);
        return status;
    }
    if (self->merge_count)
        status = merge(self, &source, error);
    if (status)
        return status;
    if (!self->filtered && self->filter.repeat <= 1) {
        *out = source;
        return AR_OK;
    }
    status = trace_filter(source, &self->filter, out, error);
    return status ? ar_error_prefix(error, status, "%s", self->in) : AR_OK;
}

enum ar_status cmd_convert(int argc, char **argv, struct ar_error *error)
{
    struct convert_arguments self = {0};
    struct trace_output_choice format;
    struct trace_source *source = NULL;
    bool help = false;
    enum ar_status status = cli_parse(&page, argc, argv, take, &self, &help, error);
    if (status || help)
        return status;
    if (!self.out)
        return ar_error_set(error, AR_INVALID,
                            "convert: two files are needed; write convert IN OUT");
    self.filter.streams = self.streams;
    status = trace_output_choose(self.out, self.format, &format, error);
    if (!status)
        status = open_source(&self, &source, error);
    if (!status)
        status = trace_output_save(source, self.out, &format, error);
    if (!status)
        printf("wrote %s\n", self.out);
    trace_close(source);
    return status;
}
