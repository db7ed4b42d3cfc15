/* Files of other programs that are read as traces: one reader each, in formats.def, recognised by
 * content. trace_open asks them in that order, after the project's own forms. */
#ifndef WORKLOADS_FORMATS_FORMATS_H
#define WORKLOADS_FORMATS_FORMATS_H

#include <stdbool.h>
#include <stddef.h>

#include "workloads/io/input.h"
#include "workloads/trace/source.h"

/* So many bytes of the unpacked file, or all where it has fewer, are shown to `matches`. */
#define FORMAT_HEAD_BYTES 4096

/* The first line of a recorded CSV, which is one of the project's own forms. */
#define TRACE_CSV_FIRST_LINE "action,addr,size,stream,time_us"

/* Takes the input, which stands at its start, over: also where it fails. `lenient`: see
 * trace_open_recording. */
enum ar_status trace_csv_open(struct trace_input *input, bool lenient, struct trace_source **out,
                              struct ar_error *error) AR_STATUS_CHECKED;

struct format_reader {
    const char *name;    /* "snapshot": what trace_info.format says, 15 bytes at most */
    const char *summary; /* a line for `list formats` */
    /* Whether a file that begins like this is of the format. Must be cheap and must not be true
     * of another's file. */
    bool (*matches)(const char *head, size_t count);
    /* Takes the input, which stands at its start, over: also where it fails. `lenient`: see
     * trace_open_recording. Errors name file and place. */
    enum ar_status (*open)(struct trace_input *input, bool lenient, struct trace_source **out,
                           struct ar_error *error);
    /* Optional, for recordings of several GPUs: the same of one device alone, with its notes.
     * INVALID where nothing is of that device. */
    enum ar_status (*open_device)(struct trace_input *input, uint32_t device,
                                  struct trace_source **out, struct ar_error *error);
};

/* In the order of formats.def; NULL past the last. */
const struct format_reader *format_reader_at(size_t index);

/* The first that matches; NULL: none. */
const struct format_reader *format_reader_for(const char *head, size_t count);

/* Opens a trace of any known format (by content, not by name), plain, gzip or zstd, reads and
 * checks all of it once, and stands at its first event. INVALID, FORMAT or IO with file and
 * line or event. The caller closes it. */
enum ar_status trace_open(const char *path, struct trace_source **out,
                          struct ar_error *error) AR_STATUS_CHECKED;

/* The same, for those who judge a recording: where rows of a recorded CSV contradict each other,
 * as a free of an address that is not in use, the row becomes a note `!,contradiction,TEXT`. */
enum ar_status trace_open_recording(const char *path, struct trace_source **out,
                                    struct ar_error *error) AR_STATUS_CHECKED;

/* One GPU of a trace of several. The reader of a recording that tells them apart leaves the others
 * out; else only blocks and events of that device are kept, and no notes. INVALID where
 * nothing is. */
enum ar_status trace_open_device(const char *path, uint32_t device, struct trace_source **out,
                                 struct ar_error *error) AR_STATUS_CHECKED;

/* Traces written as files of other programs: the table of writers. */

struct format_writer {
    const char *name;    /* for --format */
    const char *ending;  /* of a file that is written so without --format */
    const char *summary; /* a line for `list formats` */
    /* Writes the whole trace. The file appears when it is whole, or not at all. `compress`: as one
     * zstd frame. */
    enum ar_status (*write)(struct trace_source *source, const char *path, bool compress,
                            struct ar_error *error);
};

extern const struct format_writer format_writer_snapshot, format_writer_rmm,
    format_writer_minimalloc, format_writer_oracle;

/* By index from 0; NULL past the last. */
const struct format_writer *format_writer_at(size_t index);

#endif
