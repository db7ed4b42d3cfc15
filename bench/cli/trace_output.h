/* The trace file that a command writes: its format by what was asked or by the file's ending. */
#ifndef BENCH_CLI_TRACE_OUTPUT_H
#define BENCH_CLI_TRACE_OUTPUT_H

#include "workloads/trace/trace.h"

/* `format` is "text", "binary" or NULL: by the ending, .txt or .trace for text, .bin for
 * binary, each with .zst behind it for a compressed file. INVALID where neither says it. */
enum status trace_output_options(const char *path, const char *format,
                                 struct trace_write_options *out,
                                 struct error *error) STATUS_CHECKED;

#endif
