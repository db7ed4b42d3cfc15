/* Opening and writing trace files. FORMAT.md is the description of the formats. */
#ifndef WORKLOADS_TRACE_TRACE_H
#define WORKLOADS_TRACE_TRACE_H

#include "workloads/trace/source.h"

/* Opens a trace of any known format (by content, not by name), plain, gzip or zstd, reads and
 * checks all of it once, and stands at its first event. INVALID, FORMAT or IO with file and
 * line or event. The caller closes it. */
enum status trace_open(const char *path, struct trace_source **out,
                       struct error *error) STATUS_CHECKED;

/* The same, for those who judge a recording: where rows of a recorded CSV contradict each other,
 * as a free of an address that is not in use, the row becomes a note `!,contradiction,TEXT`. */
enum status trace_open_recording(const char *path, struct trace_source **out,
                                 struct error *error) STATUS_CHECKED;

/* One GPU of a trace of several. The reader of a recording that tells them apart leaves the others
 * out; else only blocks and events of that device are kept, and no notes. INVALID where
 * nothing is. */
enum status trace_open_device(const char *path, uint32_t device, struct trace_source **out,
                              struct error *error) STATUS_CHECKED;

/* Writers. The file appears under its name when it is whole, or not at all. */
enum trace_format { TRACE_FORMAT_TEXT, TRACE_FORMAT_BINARY };

struct trace_write_options {
    enum trace_format format;
    bool compress; /* zstd */
};

/* Writes all of `source` into a file, in two passes from its first event; it stands at its end
 * then. An adaptive source is written down with trace_memory_append first. */
enum status trace_write(struct trace_source *source, const char *path,
                        const struct trace_write_options *options,
                        struct error *error) STATUS_CHECKED;

/* A trace held in memory: what an adaptive source gave, written down for later passes, or a
 * small trace made by a test. Events are appended; the source over them is opened after. */
struct trace_memory;
struct trace_memory *trace_memory_create(const struct trace_info *info); /* NULL: no memory */
enum status trace_memory_append(struct trace_memory *memory, const struct trace_event *event,
                                const struct trace_attributes *attributes, /* NULL: none */
                                const char *text, struct error *error) STATUS_CHECKED;
/* The events appended from here on come from that line of a file. HOST_MEMORY. */
enum status trace_memory_line(struct trace_memory *memory, uint64_t line,
                              struct error *error) STATUS_CHECKED;
/* Gives up a memory that will not be opened. NULL is fine. */
void trace_memory_discard(struct trace_memory *memory);

/* Hands the memory over to the source: closing the source frees it. Checks the whole, gives
 * slots, flags and (on a let-go of TRACE_NO_STREAM) streams, and counts. A failure frees it. */
enum status trace_memory_open(struct trace_memory *memory, struct trace_source **out,
                              struct error *error) STATUS_CHECKED;

/* Pulls all of `source` into memory; `source` stays the caller's. */
enum status trace_memory_copy(struct trace_source *source, struct trace_source **out,
                              struct error *error) STATUS_CHECKED;

#endif
