/* Checks the files that a command line names, and chooses the format of a trace to write. */
#ifndef BENCH_CLI_FILES_H
#define BENCH_CLI_FILES_H

#include <stddef.h>

#include "allocators/base/status.h"
#include "bench/cli/cli.h"
#include "workloads/formats/formats.h"
#include "workloads/trace/trace.h"

struct cli_file {
    const struct cli_option *option; /* NULL: an argument that is not an option */
    const char *value;
};

/* INVALID if an output is given twice, or is the same file as another output or an input. Opens no
 * file. */
enum ar_status cli_files_check(const struct cli_file *files, size_t count,
                               struct ar_error *error) AR_STATUS_CHECKED;

/* The format of a trace file that a command writes. */
struct trace_output_choice {
    const struct format_writer *writer; /* of another program's format; NULL: one of allocrig's */
    struct trace_write_options own;     /* `compress` applies to both */
};

/* `format` is "text", "binary", the name of a writer, or NULL. NULL chooses by the ending of the
 * path: .txt or .trace for text, .bin for binary, or the ending of a writer; each may be followed
 * by .zst for a compressed file. INVALID if neither tells the format. */
enum ar_status trace_output_choose(const char *path, const char *format,
                                   struct trace_output_choice *out,
                                   struct ar_error *error) AR_STATUS_CHECKED;

/* Writes all of `source`. */
enum ar_status trace_output_save(struct trace_source *source, const char *path,
                                 const struct trace_output_choice *choice,
                                 struct ar_error *error) AR_STATUS_CHECKED;

#endif
