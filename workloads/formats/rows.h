/* Rows of a log that names blocks by address, and the trace that follows from them: shared by the
 * readers of RMM, Umpire, STAlloc and Nsight Systems. A reader adds rows in their order, then
 * converts them. */
#pragma once

#include "workloads/formats/formats.h"
#include "workloads/trace/tables.h"

enum row_action {
    ROW_ALLOC,
    ROW_FREE,
    ROW_FAILURE, /* a request that failed */
    ROW_KERNEL,  /* bytes: nanoseconds */
    ROW_TRIM,
    ROW_STEP,   /* a step ends */
    ROW_MARK,   /* text: its label */
    ROW_NOTHING /* omitted */
};

#define ROW_BYTES_UNKNOWN UINT64_MAX /* of a free without a size */

struct row {
    uint64_t address; /* below UINT64_MAX; 0: no address */
    uint64_t bytes;
    uint64_t stream;   /* its name in the log, 0 the default stream; below UINT64_MAX */
    uint64_t time_ns;  /* since any moment, the same for all rows */
    uint64_t position; /* line or row number in the file, for errors */
    uint32_t thread, device;
    uint32_t text; /* of a mark, or the tag of a request: 1 + its index in `texts`; 0: none */
    uint8_t action, space;
};

struct rows {
    struct format_reading *reading;
    struct row *items;
    size_t count, capacity;
    struct texts texts;
    bool has_times;   /* time_ns is known */
    const char *unit; /* between path and position in errors: ":" or ": row " */
};

enum ar_status rows_add(struct rows *rows, const struct row *row, struct ar_error *error);
void rows_close(struct rows *rows);

/* Makes the trace from all rows. The `info` of the reading says what the file says. INVALID with
 * file and line. */
enum ar_status rows_convert(struct rows *rows, struct ar_error *error);

/* Umpire's replay log in a SQLite database, for the reader of such files. Reads the table EVENTS,
 * which must exist, and says in `reading` what format it is. */
struct sqlite_file;
extern const struct format_reader format_umpire;
enum ar_status umpire_read_database(struct format_reading *reading, struct sqlite_file *file,
                                    struct ar_error *error);
