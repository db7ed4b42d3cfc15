/* The rows of a recorded CSV, as they stand in the file. */
#ifndef WORKLOADS_FORMATS_TORCH_CSV_ROWS_H
#define WORKLOADS_FORMATS_TORCH_CSV_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "workloads/io/input.h"
#include "workloads/trace/source.h"

enum csv_action {
    CSV_ALLOC,
    CSV_FREE_REQUESTED,
    CSV_FREE_COMPLETED,
    CSV_SEGMENT_ALLOC,
    CSV_SEGMENT_FREE,
    CSV_SEGMENT_MAP,
    CSV_SEGMENT_UNMAP,
    CSV_OOM,
    CSV_SNAPSHOT,
    CSV_KERNEL,
    CSV_MARK,
    CSV_ACTION_COUNT
};

struct csv_row {
    uint64_t address, size, stream, time_us;
    enum csv_action action;
};

struct csv_rows {
    struct csv_row *items; /* row i stands in line i + 2 */
    size_t count, capacity;
};

const char *csv_action_name(enum csv_action action);

/* Reads all rows after the first line. The caller closes `out`, also after a failure. */
enum ar_status csv_rows_read(struct trace_input *input, struct csv_rows *out,
                             struct ar_error *error) AR_STATUS_CHECKED;
void csv_rows_close(struct csv_rows *rows);

#define TRACE_CSV_FIRST_LINE "action,addr,size,stream,time_us"

/* Takes the input, which stands at its start, over: also where it fails. `lenient`: see
 * trace_open_recording. */
enum ar_status trace_csv_open(struct trace_input *input, bool lenient, struct trace_source **out,
                              struct ar_error *error) AR_STATUS_CHECKED;

#endif
