/* `convert`: converts, filters and merges traces. */

#include "allocators/base/size.h"
#include "bench/cli/cli.h"
#include "bench/report/pages.h"
#include "bench/report/sentence.h"
#include "workloads/trace/check.h"
#include "workloads/trace/filter.h"

#define STREAMS_MOST 256
#define MERGE_MOST   64

struct arguments {
    struct cli_words files; /* IN, OUT */
    const char *format;
    struct cli_words merged;
    struct cli_device device;
    uint32_t streams[STREAMS_MOST];
    struct trace_filter_options filter;
    struct trace_output_choice output;
    FILE *report; /* of what was read, for the end: a refusal is one sentence */
};

static enum ar_status take_steps(void *arguments, const struct cli_option *option AR_UNUSED,
                                 const char *value, struct ar_error *error)
{
    struct arguments *self = arguments;
    return trace_filter_steps(value, &self->filter, error);
}

static enum ar_status take_events(void *arguments, const struct cli_option *option AR_UNUSED,
                                  const char *value, struct ar_error *error)
{
    struct arguments *self = arguments;
    return trace_filter_kinds(value, &self->filter.kinds, error);
}

/* "0,2,5" */
static enum ar_status take_streams(void *arguments, const struct cli_option *option AR_UNUSED,
                                   const char *list, struct ar_error *error)
{
    struct arguments *self = arguments;
    char *rest = NULL;
    AR_FREED char *copy = strdup(list);
    AR_TRY_MEMORY(copy, error, "--streams");
    for (char *word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        uint64_t stream = 0;
        AR_TRY(ar_error_prefix(error, ar_count_parse(word, &stream, error), "--streams"));
        if (stream >= TRACE_STREAM_LIMIT || self->filter.stream_count == STREAMS_MOST)
            return ar_invalid(error,
                              "--streams takes at most %d streams, numbered from 0 to %u; %s is "
                              "not one",
                              STREAMS_MOST, TRACE_STREAM_LIMIT - 1, word);
        self->streams[self->filter.stream_count++] = (uint32_t)stream;
    }
    if (self->filter.stream_count == 0)
        return ar_invalid(error, "--streams \"%s\" names no stream", list);
    return AR_OK;
}

static const struct cli_option options[] = {
    {CLI_HEADING("Filters (default: keep everything):")},
    {0, "steps", "A-B",
     "steps A to B, from 1; blocks that are live at A come first, pending ones only of a recording",
     CLI_CALL(take_steps)},
    {0, "streams", "N,N..", "only blocks and events of these streams", CLI_CALL(take_streams)},
    {0, "device", "N", "only this GPU of a recording of several, with its notes", CLI_GPU(device)},
    {0, "min-bytes", "SIZE", "only blocks of at least SIZE", CLI_BYTES(filter.min_bytes)},
    {0, "events", "LETTERS", "only events of these kinds, such as afk", CLI_CALL(take_events)},
    {0, "at-once", NULL, "blocks are complete when they are freed", CLI_FLAG(filter.at_once)},
    {CLI_HEADING("Options:")},
    {0, "repeat", "N", "repeat the trace N times, each time with the settings of its start",
     CLI_COUNT(filter.repeat, 1, 1000000)},
    {0, "merge", "FILE", "merge another trace into it; may be given several times",
     CLI_WORDS(merged, MERGE_MOST)},
    {0, "format", "FORMAT",
     "format of OUT, whatever its ending: text, binary, snapshot, rmm, minimalloc, oracle",
     CLI_TEXT(format)},
    {0},
};

static const struct cli_page page = {
    .arguments = "IN OUT [options]",
    .text =
        "Reads a trace of any known format (detected by its content) and writes it as text\n"
        "(.txt, .trace), as binary (.bin, with the same content), or for another program: a\n"
        "PyTorch snapshot (.pickle), an RMM log (.rmm.csv), MiniMalloc lifetimes\n"
        "(.minimalloc.csv), or only requests and frees (.oracle.csv). The ending .zst compresses.\n"
        "OUT may be - for standard output: as text, or as --format says.",
    .options = options,
    .argument = {.value = "file", CLI_WORDS(files, 2)},
};

static enum ar_status open_one(const struct arguments *self, const char *path,
                               struct trace_source **out, struct ar_error *error)
{
    return self->device.gpu_given ? trace_open_device(path, self->device.gpu, false, out, error)
                                  : trace_open(path, out, error);
}

/* The traces to merge, filtered like the first, as one source in place of `*source`. */
static enum ar_status merge(const struct arguments *self, struct trace_source **source,
                            struct ar_error *error)
{
    struct trace_source *sources[MERGE_MOST + 1] = {*source};
    size_t count = 1;
    enum ar_status status = AR_OK;
    *source = NULL;
    for (size_t i = 0; i < self->merged.count && !status; i++) {
        status = open_one(self, self->merged.at[i], &sources[count], error);
        count += !status;
        AR_THEN(status,
                import_page_print(self->report, self->merged.at[i], sources[count - 1], error));
    }
    if (!status)
        return trace_merge(sources, count, source, error);
    for (size_t i = 0; i < count; i++)
        trace_close(sources[i]);
    return status;
}

/* Reads, merges and filters the input. The caller closes it. */
static enum ar_status open_source(const struct arguments *self, struct trace_source **out,
                                  struct ar_error *error)
{
    AR_CLOSED(trace_close_at) struct trace_source *source = NULL;
    AR_TRY(open_one(self, self->files.at[0], &source, error));
    AR_TRY(import_page_print(self->report, self->files.at[0], source, error));
    if (self->merged.count)
        AR_TRY(merge(self, &source, error));
    const struct trace_filter_options *filter = &self->filter;
    bool filtered = filter->last_step || filter->stream_count || filter->min_bytes ||
                    filter->kinds || filter->at_once || filter->repeat > 1;
    struct trace_source *whole = source; /* the filter takes it, also if it fails */
    source = NULL;
    if (filtered)
        return ar_error_prefix(error, trace_filter(whole, filter, out, error), "%s",
                               self->files.at[0]);
    *out = whole;
    return AR_OK;
}

enum ar_status cmd_convert(int argc, char **argv, struct ar_error *error)
{
    struct arguments self = {0};
    AR_CLOSED(trace_close_at) struct trace_source *source = NULL;
    AR_TRY(cli_parse(&page, argc, argv, &self, error));
    if (self.files.count < 2)
        return ar_invalid(error, "convert: two files are needed; write convert IN OUT");
    const char *out = self.files.at[1];
    self.filter.streams = self.streams;
    bool replaces = cli_same_file(out, self.files.at[0]);
    for (size_t i = 0; i < self.merged.count && !replaces; i++)
        replaces = cli_same_file(out, self.merged.at[i]);
    if (replaces)
        return ar_invalid(
            error, "convert: OUT would overwrite \"%s\", which is an input; name another file",
            out);
    AR_TRY(trace_output_choose(out, self.format, true, &self.output, error));
    AR_FREED char *report = NULL;
    size_t length;
    self.report = open_memstream(&report, &length);
    AR_TRY_MEMORY(self.report, error, "a report");
    enum ar_status status = open_source(&self, &source, error);
    AR_THEN(status, trace_output_save(source, out, &self.output, error));
    if (!text_end(self.report, &report) && !status)
        status = ar_no_memory(error, "a report");
    AR_TRY(status);
    fputs(report, self.output.standard ? stderr : stdout); /* no trace has anything beside it */
    if (!self.output.standard)
        printf("wrote %s\n", out);
    return AR_OK;
}
