/* Traces that are filtered, and written in the formats of other programs: the first byte says how.
 * What is written can be read. */
#include "tests/fuzz/trace_bytes.h"
#include "workloads/trace/filter.h"

enum { WRITERS = 3, DEVICE = 4, LENIENT = 8, AT_ONCE = 16, STEPS = 32, TWICE = 64, SELECTED = 128 };

static enum ar_status open_filtered(const char *path, unsigned how, struct trace_source **out,
                                    struct ar_error *error)
{
    static const uint32_t first;
    struct trace_source *source;
    const struct trace_filter_options options = {
        .first_step = how & STEPS ? 1 : 0,
        .last_step = how & STEPS ? 2 : 0,
        .streams = &first,
        .stream_count = how & SELECTED ? 1 : 0,
        .min_bytes = how & SELECTED ? 512 : 0,
        .at_once = how & AT_ONCE,
        .repeat = how & TWICE ? 2 : 1,
    };
    enum ar_status status = how & DEVICE ? trace_open_device(path, 0, how & LENIENT, &source, error)
                            : how & LENIENT ? trace_open_recording(path, &source, error)
                                            : trace_open(path, &source, error);
    if (!status && how & ~(unsigned)(WRITERS | DEVICE | LENIENT))
        return trace_filter(source, &options, out, error);
    *out = status ? NULL : source;
    return status;
}

static void write_as(struct trace_source *source, const struct format_writer *writer)
{
    struct trace_source *again;
    struct ar_error error = {""};
    char path[64];
    snprintf(path, sizeof path, "/tmp/allocrig-fuzz-%ld.out", (long)getpid());
    if (format_write(writer, source, path, false, &error)) {
        if (!error.text[0])
            abort();
        return;
    }
    if (trace_open(path, &again, &error))
        abort();
    (void)trace_bytes_pull(again);
    trace_close(again);
    (void)unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct trace_source *source;
    struct ar_error error = {""};
    char path[64];
    if (bytes < 1)
        return 0;
    trace_bytes_file(data + 1, bytes - 1, path);
    enum ar_status status = open_filtered(path, data[0], &source, &error);
    if ((status == AR_OK) == (error.text[0] != '\0'))
        abort();
    if (!status) {
        (void)trace_bytes_pull(source);
        trace_bytes_round_trip(source, TRACE_FORMAT_TEXT);
        trace_bytes_round_trip(source, TRACE_FORMAT_BINARY);
        write_as(source, format_writer_at(data[0] & WRITERS));
        trace_close(source);
    }
    (void)unlink(path);
    return 0;
}
