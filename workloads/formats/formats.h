/* Files of other programs that are read as traces, and traces that are written as such files.
 *
 * A reader is a struct format_reader in formats.def, recognised by the content of the file. It
 * fills a struct format_reading; opening, naming and closing are done for it in formats.c. */
#pragma once

#include "workloads/formats/import_report.h"
#include "workloads/io/file.h"
#include "workloads/trace/trace.h"

/* `matches` sees so many bytes of the unpacked file, or all if it has fewer. */
#define FORMAT_HEAD_BYTES 4096

/* The first line of a recorded CSV. */
#define FORMAT_CSV_COLUMNS "action,addr,size,stream,time_us"

/* What a reader reads, and what it makes of it. */
struct format_reading {
    struct trace_input *input;    /* at its start */
    const uint32_t *device;       /* read this GPU only; NULL: all */
    bool lenient;                 /* see trace_open_recording */
    struct trace_info info;       /* name, format and `complete` are set; the reader adds to it */
    struct trace_memory *memory;  /* the trace, from format_start on */
    struct import_report *report; /* zeroed */
    struct trace_stats stats;     /* empty */
};

struct format_reader {
    const char *name;    /* "snapshot": what trace_info.format says, at most 15 bytes */
    const char *summary; /* a line for `list formats` */
    bool own;            /* a form of this project: it has no import report */
    bool picks_device;   /* `device` is respected. INVALID if the file has nothing of that device */
    /* Whether a file that begins like this is of the format. Must be cheap, and false for files of
     * other formats. NULL if `own`. */
    bool (*matches)(const char *head, size_t count);
    /* Errors name file and position. The caller frees what `reading` holds, also after a
     * failure. */
    enum ar_status (*read)(struct format_reading *reading, struct ar_error *error);
};

/* In the order of formats.def; NULL after the last. */
const struct format_reader *format_reader_at(size_t index);

/* Opens a trace of any known format (by content, not by name), plain, gzip or zstd, reads and
 * checks all of it once, and stops at its first event. INVALID, FORMAT or IO with file and
 * line or event. The caller closes it. */
enum ar_status trace_open(const char *path, struct trace_source **out, struct ar_error *error);

/* The same, for callers that judge a recording: if rows of a recorded CSV contradict each other,
 * for example by a free of an address that is not in use, the row becomes a note
 * `!,contradiction,TEXT`. */
enum ar_status trace_open_recording(const char *path, struct trace_source **out,
                                    struct ar_error *error);

/* One GPU of a trace of several. A reader with `picks_device` omits the others; else only blocks
 * and events of that device are kept, and no notes. `lenient`: as trace_open_recording. INVALID if
 * the trace has no requests of that GPU. */
enum ar_status trace_open_device(const char *path, uint32_t device, bool lenient,
                                 struct trace_source **out, struct ar_error *error);

struct format_writer {
    const char *name;    /* for --format */
    const char *ending;  /* a file name with this ending selects the format without --format */
    const char *summary; /* a line for `list formats` */
    bool binary;         /* its files are no text */
    enum ar_status (*write)(struct trace_source *source, struct trace_output *output,
                            struct ar_error *error);
};

extern const struct format_writer format_writer_snapshot, format_writer_rmm,
    format_writer_minimalloc, format_writer_oracle;

/* By index from 0; NULL after the last. */
const struct format_writer *format_writer_at(size_t index);

/* Writes the whole trace. The file appears when it is whole, or not at all. `compress`: as one zstd
 * frame. */
enum ar_status format_write(const struct format_writer *writer, struct trace_source *source,
                            const char *path, bool compress, struct ar_error *error);

/* ---- for readers --------------------------------------------------------------------------- */

/* HOST_MEMORY with a sentence. */
enum ar_status format_no_memory(struct ar_error *error);

/* Begins the trace: `info` is complete. */
enum ar_status format_start(struct format_reading *reading, struct ar_error *error);
/* Appends an event. `keys` NULL: none; `text`: of a mark or a note. */
enum ar_status format_event(struct format_reading *reading, struct trace_event event,
                            const struct trace_attributes *keys, const char *text,
                            struct ar_error *error);
enum ar_status format_note(struct format_reading *reading, struct ar_error *error,
                           const char *format, ...) __attribute__((format(printf, 3, 4)));
/* "verb,1,2,3" */
enum ar_status format_note_numbers(struct format_reading *reading, const char *verb,
                                   const uint64_t *numbers, size_t count, struct ar_error *error);
/* Appends a request that failed: a probe if `more_follow`, because the program went on, else a
 * request; the note, which begins with "oom"; and a free request, so that nothing remains of it.
 * Counts it in the report. */
enum ar_status format_failure(struct format_reading *reading, struct trace_event request,
                              const struct trace_attributes *keys, bool more_follow,
                              const char *note, struct ar_error *error);
