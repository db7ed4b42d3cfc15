/* Trace files in the project's own two forms, and traces in memory. workloads/formats/formats.h
 * opens files of any format; FORMAT.md describes the formats. */
#pragma once

#include "workloads/trace/source.h"

/* Readers. Each takes ownership of the input, which must be at its start, also if it fails. */
struct trace_input;
enum ar_status trace_text_open(struct trace_input *input, struct trace_source **out,
                               struct ar_error *error);
enum ar_status trace_binary_open(struct trace_input *input, struct trace_source **out,
                                 struct ar_error *error);

/* Writers. The file appears under its name when it is complete, or not at all. */
enum trace_format { TRACE_FORMAT_TEXT, TRACE_FORMAT_BINARY };

struct trace_write_options {
    enum trace_format format;
    bool compress; /* zstd */
};

/* Writes all of `source` to a file, in two passes from its first event; afterwards the source is at
 * its end. Copy an adaptive source with trace_memory_append first. */
enum ar_status trace_write(struct trace_source *source, const char *path,
                           const struct trace_write_options *options, struct ar_error *error);

/* A trace in memory: the events of an adaptive source, kept for later passes, or a small trace of a
 * test. First events are appended; then the source over them is opened. */
struct trace_memory;
struct trace_memory *trace_memory_create(const struct trace_info *info); /* NULL: no memory */
enum ar_status trace_memory_append(struct trace_memory *memory, const struct trace_event *event,
                                   const struct trace_attributes *attributes, /* NULL: none */
                                   const char *text, struct ar_error *error);
/* Appends an event of a source, with its keys and text. */
enum ar_status trace_memory_take(struct trace_memory *memory, struct trace_source *source,
                                 const struct trace_event *event, struct ar_error *error);
/* The next events appended come from that line of a file. HOST_MEMORY. */
enum ar_status trace_memory_line(struct trace_memory *memory, uint64_t line,
                                 struct ar_error *error);
/* Frees a memory that will not be opened. NULL is allowed. */
void trace_memory_discard(struct trace_memory *memory);

/* Passes ownership of the memory to the source: closing the source frees it. Checks all events,
 * sets slots, flags and (on a free request with TRACE_NO_STREAM) streams, and counts. A failure
 * frees it. */
enum ar_status trace_memory_open(struct trace_memory *memory, struct trace_source **out,
                                 struct ar_error *error);
/* The same if all events were appended, else discards the memory and returns their status. */
static inline enum ar_status trace_memory_finish(struct trace_memory *memory, enum ar_status status,
                                                 struct trace_source **out, struct ar_error *error)
{
    if (status == AR_OK)
        return trace_memory_open(memory, out, error);
    trace_memory_discard(memory);
    return status;
}

/* Whether a source gives events from memory, without reading or making them. */
bool trace_in_memory(const struct trace_source *source);
/* Pulls all of `source` into memory; `source` still belongs to the caller. */
enum ar_status trace_memory_copy(struct trace_source *source, struct trace_source **out,
                                 struct ar_error *error);
