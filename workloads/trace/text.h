/* One event as a line of text: reading and writing. text.c also opens text traces (trace.h). */
#ifndef WORKLOADS_TRACE_TEXT_H
#define WORKLOADS_TRACE_TEXT_H

#include "workloads/trace/event.h"
#include "workloads/trace/tables.h"

/* Reads a line; keys and texts are added to the tables. trace_check_event fills in the fields that
 * the line leaves out. INVALID with a sentence without file and line. */
enum ar_status trace_line_parse(const char *line, struct trace_tables *tables,
                                struct trace_event *event,
                                struct ar_error *error) AR_STATUS_CHECKED;

/* The parts of a line that are not in the event; NULL or empty if there are none. */
struct trace_line_parts {
    const char *keys; /* canonical */
    const char *text; /* of a label or note */
    uint32_t
        block_stream; /* of the block of a free request: not written if the event's is the same */
};

/* Writes the canonical line with its newline; returns its length, whatever the room, as
 * snprintf. */
size_t trace_line_print(const struct trace_event *event, const struct trace_line_parts *parts,
                        char *out, size_t room);

#endif
