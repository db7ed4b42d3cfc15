#include "bench/cli/trace_output.h"

#include <string.h>

#include "bench/cli/cli.h"

/* Whether the first `length` characters of `text` end in `ending`. */
static bool ends_in(const char *text, size_t length, const char *ending)
{
    size_t size = strlen(ending);
    return length > size && strncmp(text + length - size, ending, size) == 0;
}

enum status trace_output_options(const char *path, const char *format,
                                 struct trace_write_options *out, struct error *error)
{
    static const char *const names[] = {"text", "binary"};
    size_t length = strlen(path);
    *out = (struct trace_write_options){0};
    if (strcmp(path, "-") == 0)
        return error_set(error, STATUS_INVALID,
                         "a trace is written whole or not at all, so not to standard output; name "
                         "a file, such as out.trace");
    if (ends_in(path, length, ".zst")) {
        out->compress = true;
        length -= 4;
    }
    if (format && strcmp(format, names[0]) != 0 && strcmp(format, names[1]) != 0)
        return cli_unknown("format", format, names, 2, error);
    if (format ? strcmp(format, "binary") == 0 : ends_in(path, length, ".bin"))
        out->format = TRACE_FORMAT_BINARY;
    else if (format || ends_in(path, length, ".txt") || ends_in(path, length, ".trace"))
        out->format = TRACE_FORMAT_TEXT;
    else
        return error_set(error, STATUS_INVALID,
                         "%s: its ending does not say which format it shall have; end it in .txt, "
                         ".trace or .bin, with .zst behind it to compress, or add --format",
                         path);
    return STATUS_OK;
}
