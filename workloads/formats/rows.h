/* Rows of a log that names blocks by address, and the trace that they make: what the readers of
 * such logs (RMM, Umpire, STAlloc, Nsight Systems) share. A reader collects rows in their order
 * and hands them over. */
#ifndef WORKLOADS_FORMATS_ROWS_H
#define WORKLOADS_FORMATS_ROWS_H

#include "workloads/formats/import_report.h"
#include "workloads/io/input.h"
#include "workloads/trace/source.h"
#include "workloads/trace/texts.h"

enum row_action {
    ROW_ALLOC,
    ROW_FREE,
    ROW_FAILURE, /* a request that failed */
    ROW_KERNEL,  /* bytes: nanoseconds */
    ROW_TRIM,
    ROW_STEP,   /* a step ends */
    ROW_MARK,   /* text: its label */
    ROW_NOTHING /* left out */
};

#define ROW_BYTES_UNKNOWN UINT64_MAX /* of a free that does not say it */

struct row {
    uint64_t address; /* below UINT64_MAX; 0: no address */
    uint64_t bytes;
    uint64_t stream;  /* the log's name of it, 0 the default stream; below UINT64_MAX */
    uint64_t time_ns; /* since any moment, the same one for all rows */
    uint64_t place;   /* line or row number in the file, for errors */
    uint32_t thread, device;
    uint32_t text; /* of a mark, or the tag of a request: 1 + its index in `texts`; 0: none */
    uint8_t action, space;
};

struct rows {
    struct row *items;
    size_t count, capacity;
    struct texts texts;
    bool has_times;   /* time_ns is known */
    const char *path; /* of the file, the caller's */
    const char *unit; /* put between path and place in errors: ":" or ": row " */
    struct import_report report;
};

/* Begins an empty list. */
void rows_start(struct rows *rows, const char *path, const char *unit);
enum ar_status rows_add(struct rows *rows, const struct row *row,
                        struct ar_error *error) AR_STATUS_CHECKED;
void rows_close(struct rows *rows);

/* The trace of all rows, with the report. `info` says what the file says; the rest is found.
 * INVALID with file and line. */
enum ar_status rows_open(struct rows *rows, const struct trace_info *info,
                         struct trace_source **out, struct ar_error *error) AR_STATUS_CHECKED;

/* Hands a finished trace its report, a copy. Closes the trace on failure. */
enum ar_status rows_report(struct trace_source *source, const struct import_report *report,
                           struct trace_source **out, struct ar_error *error) AR_STATUS_CHECKED;

struct trace_memory;
/* The end of a reading: `memory` becomes the source, which keeps `report`. After a failure, also of what
 * led to `status`, both are freed; NULL is fine for either. */
enum ar_status rows_hand_over(enum ar_status status, struct trace_memory *memory,
                              struct import_report *report, struct trace_source **out,
                              struct ar_error *error) AR_STATUS_CHECKED;

#endif
