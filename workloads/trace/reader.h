/* The readers of the project's own two forms, and what all readers share. */
#ifndef WORKLOADS_TRACE_READER_H
#define WORKLOADS_TRACE_READER_H

#include "workloads/io/input.h"
#include "workloads/trace/name.h"
#include "workloads/trace/source.h"

/* Each takes the input, which stands at its start, over: also where it fails. */
enum ar_status trace_text_open(struct trace_input *input, struct trace_source **out,
                               struct ar_error *error) AR_STATUS_CHECKED;
enum ar_status trace_binary_open(struct trace_input *input, struct trace_source **out,
                                 struct ar_error *error) AR_STATUS_CHECKED;

#define TRACE_TEXT_FIRST_LINE "# allocrig-trace 1"

/* The header lines "# key: value" of what `info` holds beside the counts, and of `stats`, each with its
 * end; returns their length, whatever the room. `free_requested_final`: see FORMAT.md. */
size_t trace_header_print(const struct trace_info *info, const struct trace_stats *stats,
                          bool free_requested_final, char *out, size_t room);

/* Takes one header line, without its end, into info and stats of a source. A line that is no known "# key: value"
 * is a comment. INVALID where the value is unusable. `*given` says which keys there were. */
enum ar_status trace_header_parse(const char *line, struct trace_source *source,
                                  bool *free_requested_final, unsigned *given,
                                  struct ar_error *error) AR_STATUS_CHECKED;

#endif
