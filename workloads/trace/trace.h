/* Writing trace files, and traces in memory. workloads/formats/formats.h opens files; FORMAT.md
 * describes the formats. */
#ifndef WORKLOADS_TRACE_TRACE_H
#define WORKLOADS_TRACE_TRACE_H

#include "workloads/trace/source.h"

/* Writers. The file appears under its name when it is whole, or not at all. */
enum trace_format { TRACE_FORMAT_TEXT, TRACE_FORMAT_BINARY };

struct trace_write_options {
    enum trace_format format;
    bool compress; /* zstd */
};

/* Writes all of `source` into a file, in two passes from its first event; it stands at its end
 * then. An adaptive source is written down with trace_memory_append first. */
enum ar_status trace_write(struct trace_source *source, const char *path,
                           const struct trace_write_options *options,
                           struct ar_error *error) AR_STATUS_CHECKED;

/* A trace held in memory: what an adaptive source gave, written down for later passes, or a
 * small trace made by a test. Events are appended; the source over them is opened after. */
struct trace_memory;
struct trace_memory *trace_memory_create(const struct trace_info *info); /* NULL: no memory */
enum ar_status trace_memory_append(struct trace_memory *memory, const struct trace_event *event,
                                   const struct trace_attributes *attributes, /* NULL: none */
                                   const char *text, struct ar_error *error) AR_STATUS_CHECKED;
/* The events appended from here on come from that line of a file. HOST_MEMORY. */
enum ar_status trace_memory_line(struct trace_memory *memory, uint64_t line,
                                 struct ar_error *error) AR_STATUS_CHECKED;
/* Gives up a memory that will not be opened. NULL is fine. */
void trace_memory_discard(struct trace_memory *memory);

/* Hands the memory over to the source: closing the source frees it. Checks the whole, gives
 * slots, flags and (on a let-go of TRACE_NO_STREAM) streams, and counts. A failure frees it. */
enum ar_status trace_memory_open(struct trace_memory *memory, struct trace_source **out,
                                 struct ar_error *error) AR_STATUS_CHECKED;

/* Pulls all of `source` into memory; `source` stays the caller's. */
enum ar_status trace_memory_copy(struct trace_source *source, struct trace_source **out,
                                 struct ar_error *error) AR_STATUS_CHECKED;

#endif
