/* One event as a line of text, in both directions. */
#ifndef WORKLOADS_TRACE_TEXT_LINE_H
#define WORKLOADS_TRACE_TEXT_LINE_H

#include "workloads/trace/event.h"
#include "workloads/trace/tables.h"

/* Reads a line; keys and texts go into the tables. What the line leaves out is set so that
 * trace_check_event fills it in. INVALID with a sentence without file and line. */
enum ar_status trace_line_parse(const char *line, struct trace_tables *tables,
                                struct trace_event *event,
                                struct ar_error *error) AR_STATUS_CHECKED;

/* What text needs to know of the event besides: NULL or empty where there is nothing. */
struct trace_line_parts {
    const char *keys;      /* canonical */
    const char *text;      /* of a label or note */
    uint32_t block_stream; /* of a let-go's block: it is left out where it is the same */
};

/* Writes the canonical line with its end; returns its length, whatever the room, as snprintf. */
size_t trace_line_print(const struct trace_event *event, const struct trace_line_parts *parts,
                        char *out, size_t room);

#endif
