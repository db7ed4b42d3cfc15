/* The files that a command line names: what is read is not written over, and two outputs are two
 * files. */
#ifndef BENCH_CLI_FILES_H
#define BENCH_CLI_FILES_H

#include <stddef.h>

#include "allocators/base/status.h"
#include "bench/cli/cli.h"
#include "workloads/formats/formats.h"
#include "workloads/trace/trace.h"

struct cli_file {
    const struct cli_option *option; /* NULL: an argument that is no option */
    const char *value;
};

/* INVALID where an output is named twice, or is also one of the others. Looks at files, opens
 * none. */
enum ar_status cli_files_check(const struct cli_file *files, size_t count,
                               struct ar_error *error) AR_STATUS_CHECKED;

/* The trace file that a command writes: its format by what was asked or by the file's ending. */
struct trace_output_choice {
    const struct format_writer *foreign; /* NULL: one of the project's own */
    struct trace_write_options own;      /* `compress` holds for both */
};

/* `format` is "text", "binary", the name of a writer, or NULL: by the ending, .txt or .trace for
 * text, .bin for binary, that of a writer, each with .zst behind it for a compressed file. INVALID
 * where neither says it. */
enum ar_status trace_output_choose(const char *path, const char *format,
                                   struct trace_output_choice *out,
                                   struct ar_error *error) AR_STATUS_CHECKED;

/* Writes all of `source`. */
enum ar_status trace_output_save(struct trace_source *source, const char *path,
                                 const struct trace_output_choice *choice,
                                 struct ar_error *error) AR_STATUS_CHECKED;

#endif
