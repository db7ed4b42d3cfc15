/* Rules for the files of a command line:
 * 1. Options with one of the names below write a file; any other value may name an input.
 * 2. An output option is given once; otherwise the first file would not be written.
 * 3. Two outputs are two files; otherwise the second would replace the first.
 * 4. An output is not an input: a slip such as `history FILE --json FILE` would replace it. The
 *    files are compared, not the paths. Two arguments may be one file (`convert A A`). */
#include "bench/cli/files.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/cli/cli.h"

static const char *const outputs[] = {
    "calls",      "chrome", "csv",    "figure",   "hdr",         "journal",
    "json",       "junit",  "latex",  "markdown", "openmetrics", "output",
    "placements", "plan",   "series", "snapshot", "stats",
};

static bool is_output(const struct cli_file *file)
{
    for (size_t i = 0; file->option && i < sizeof outputs / sizeof *outputs; i++)
        if (strcmp(file->option->name, outputs[i]) == 0)
            return true;
    return false;
}

/* True if both name one regular file. */
static bool same_file(const char *left, const char *right)
{
    struct stat a, b;
    if (strcmp(left, "-") == 0)
        return false;
    bool there = stat(left, &a) == 0;
    if (there && !S_ISREG(a.st_mode))
        return false;
    if (strcmp(left, right) == 0)
        return true;
    return there && stat(right, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

enum ar_status cli_files_check(const struct cli_file *files, size_t count, struct ar_error *error)
{
    for (size_t i = 0; i < count; i++) {
        if (!is_output(&files[i]))
            continue;
        for (size_t k = 0; k < count; k++) {
            bool output = is_output(&files[k]);
            if (k == i || (output && k > i))
                continue;
            if (files[k].option == files[i].option)
                return ar_error_set(error, AR_INVALID, "--%s is given twice",
                                    files[i].option->name);
            if (!same_file(files[i].value, files[k].value))
                continue;
            if (output)
                return ar_error_set(
                    error, AR_INVALID,
                    "\"%s\" is named for two outputs; name another file for one of them",
                    files[i].value);
            return ar_error_set(error, AR_INVALID,
                                "--%s would overwrite \"%s\", which is an input; name another file",
                                files[i].option->name, files[i].value);
        }
    }
    return AR_OK;
}

/* ---- format of a trace to write -------------------------------------------------------------- */

#define NAMES_MOST 16

/* True if the first `length` characters of `text` end in `ending`. */
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
            out->writer = writer;
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
    for (size_t i = 0; (out->writer = format_writer_at(i)); i++)
        if (ends_in(path, length, out->writer->ending))
            return true;
    return false;
}

enum ar_status trace_output_choose(const char *path, const char *format,
                                   struct trace_output_choice *out, struct ar_error *error)
{
    size_t length = strlen(path);
    *out = (struct trace_output_choice){0};
    if (strcmp(path, "-") == 0)
        return ar_error_set(error, AR_INVALID,
                            "a trace cannot be written to standard output; name a file, such as "
                            "out.trace");
    if (ends_in(path, length, ".zst")) {
        out->own.compress = true;
        length -= 4;
    }
    if (format)
        return by_name(format, out, error);
    if (by_ending(path, length, out))
        return AR_OK;
    return ar_error_set(error, AR_INVALID,
                        "%s: the ending does not tell the format; use .txt, .trace or .bin, add "
                        ".zst to compress, or add --format (`allocrig list formats`)",
                        path);
}

enum ar_status trace_output_save(struct trace_source *source, const char *path,
                                 const struct trace_output_choice *choice, struct ar_error *error)
{
    return choice->writer ? format_write(choice->writer, source, path, choice->own.compress, error)
                          : trace_write(source, path, &choice->own, error);
}
