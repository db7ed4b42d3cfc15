/* The table of readers of other programs' files. */
#include "workloads/formats/formats.h"

#include <string.h>

#include "workloads/trace/binary.h"
#include "workloads/trace/filter.h"
#include "workloads/trace/header.h"
#include "workloads/trace/trace.h"

#define FORMAT(name) extern const struct format_reader format_##name;
#include "workloads/formats/formats.def"
#undef FORMAT

static const struct format_reader *const readers[] = {
#define FORMAT(name) &format_##name,
#include "workloads/formats/formats.def"
#undef FORMAT
    NULL,
};

const struct format_reader *format_reader_at(size_t index)
{
    return index < sizeof readers / sizeof *readers ? readers[index] : NULL;
}

const struct format_reader *format_reader_for(const char *head, size_t count)
{
    for (size_t i = 0; readers[i]; i++)
        if (readers[i]->matches(head, count))
            return readers[i];
    return NULL;
}

const struct format_writer *format_writer_at(size_t index)
{
    static const struct format_writer *const writers[] = {
        &format_writer_snapshot, &format_writer_rmm, &format_writer_minimalloc,
        &format_writer_oracle};
    return index < sizeof writers / sizeof *writers ? writers[index] : NULL;
}

/* Opening a trace of any known format: its first bytes say which it is, not its name. */

static bool begins_with(const char *bytes, size_t count, const char *stem)
{
    size_t length = strlen(stem);
    return count >= length && !memcmp(bytes, stem, length);
}

/* How a file is to be opened. */
struct opening {
    bool lenient;
    const uint32_t *device; /* of which alone; NULL: all */
    bool picked;            /* the reader left the others out */
};

static enum ar_status open_foreign(const struct format_reader *reader, struct trace_input *input,
                                   struct opening *opening, struct trace_source **out,
                                   struct ar_error *error)
{
    trace_input_guard(input);
    if (!opening->device || !reader->open_device)
        return reader->open(input, opening->lenient, out, error);
    opening->picked = true;
    return reader->open_device(input, *opening->device, out, error);
}

static enum ar_status open_any(const char *path, struct opening *opening, struct trace_source **out,
                               struct ar_error *error)
{
    struct trace_input *input;
    enum ar_status status = trace_input_open(path, &input, error);
    if (status)
        return status;
    char bytes[FORMAT_HEAD_BYTES];
    size_t count = 0, got = 1;
    while (!status && got && count < sizeof bytes) {
        status = trace_input_read(input, bytes + count, sizeof bytes - count, &got, error);
        count += status ? 0 : got;
    }
    if (!status)
        status = trace_input_rewind(input, error);
    if (status) {
        trace_input_close(input);
        return status;
    }
    const char *head = bytes;
    if (begins_with(head, count, "\xef\xbb\xbf")) {
        head += 3;
        count -= 3;
    }
    if (begins_with(head, count, BINARY_MAGIC))
        return trace_binary_open(input, out, error);
    if (begins_with(head, count, TRACE_CSV_FIRST_LINE))
        return trace_csv_open(input, opening->lenient, out, error);
    if (begins_with(head, count, TRACE_TEXT_FIRST_LINE))
        return trace_text_open(input, out, error);
    const struct format_reader *reader = format_reader_for(head, count);
    if (reader)
        return open_foreign(reader, input, opening, out, error);
    return trace_text_open(input, out, error);
}

enum ar_status trace_open(const char *path, struct trace_source **out, struct ar_error *error)
{
    return open_any(path, &(struct opening){0}, out, error);
}

enum ar_status trace_open_recording(const char *path, struct trace_source **out,
                                    struct ar_error *error)
{
    return open_any(path, &(struct opening){.lenient = true}, out, error);
}

enum ar_status trace_open_device(const char *path, uint32_t device, struct trace_source **out,
                                 struct ar_error *error)
{
    struct opening opening = {.device = &device};
    struct trace_source *source = NULL;
    enum ar_status status = open_any(path, &opening, &source, error);
    if (status || opening.picked) {
        *out = source;
        return status;
    }
    const struct trace_filter_options options = {.device = &device};
    status = trace_filter(source, &options, out, error);
    return status ? ar_error_prefix(error, status, "%s", path) : AR_OK;
}
