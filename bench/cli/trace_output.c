#include "bench/cli/trace_output.h"

#include <string.h>

#include "bench/cli/cli.h"

#define NAMES_MOST 16

/* Whether the first `length` characters of `text` end in `ending`. */
static bool ends_in(const char *text, size_t length, const char *ending)
{
    size_t size = strlen(ending);
    return length > size && strncmp(text + length - size, ending, size) == 0;
}

static enum ar_status by_name(const char *format, struct trace_output_choice *out,
                              struct ar_error *error)
{
    const char *names[NAMES_MOST] = {"text", "binary"};
    const struct format_writer *writer;
    size_t count = 2;
    if (!strcmp(format, names[0]) || !strcmp(format, names[1])) {
        out->own.format = strcmp(format, names[0]) ? TRACE_FORMAT_BINARY : TRACE_FORMAT_TEXT;
        return AR_OK;
    }
    for (size_t i = 0; (writer = format_writer_at(i)) && count < NAMES_MOST; i++) {
        if (!strcmp(format, writer->name)) {
            out->foreign = writer;
            return AR_OK;
        }
        names[count++] = writer->name;
    }
    return cli_unknown("format", format, names, count, error);
}

static bool by_ending(const char *path, size_t length, struct trace_output_choice *out)
{
    bool binary = ends_in(path, length, ".bin");
    if (binary || ends_in(path, length, ".txt") || ends_in(path, length, ".trace")) {
        out->own.format = binary ? TRACE_FORMAT_BINARY : TRACE_FORMAT_TEXT;
        return true;
    }
    for (size_t i = 0; (out->foreign = format_writer_at(i)); i++)
        if (ends_in(path, length, out->foreign->ending))
            return true;
    return false;
}

enum ar_status trace_output_choose(const char *path, const char *format,
                                   struct trace_output_choice *out, struct ar_error *error)
{
    size_t length = strlen(path);
    *out = (struct trace_output_choice){0};
    if (strcmp(path, "-") == 0)
        return ar_error_set(
            error, AR_INVALID,
            "a trace is written whole or not at all, so not to standard output; name "
            "a file, such as out.trace");
    if (ends_in(path, length, ".zst")) {
        out->own.compress = true;
        length -= 4;
    }
    if (format)
        return by_name(format, out, error);
    if (by_ending(path, length, out))
        return AR_OK;
    return ar_error_set(
        error, AR_INVALID,
        "%s: its ending does not say which format it shall have; end it in .txt, "
        ".trace or .bin, with .zst behind it to compress, or add --format (`allocrig "
        "list formats`)",
        path);
}

enum ar_status trace_output_save(struct trace_source *source, const char *path,
                                 const struct trace_output_choice *choice, struct ar_error *error)
{
    return choice->foreign
               ? format_write(choice->foreign, source, path, choice->own.compress, error)
               : trace_write(source, path, &choice->own, error);
}
