/* Driver calls as comma-separated values, `event,call,bytes,ns,waited_ns,refused`: what `run
 * --calls` writes and `allocrig model` reads. */
#ifndef BENCH_REPORT_CALLS_CSV_H
#define BENCH_REPORT_CALLS_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/device.h"

struct driver_call {
    uint64_t event; /* of the trace, in which it was made; 0 before the first too */
    enum ar_device_call call;
    uint64_t bytes;
    uint64_t ns;        /* of its own */
    uint64_t waited_ns; /* for the device, beyond that */
    bool refused;
};

struct call_list {
    struct driver_call *items;
    size_t count, room;
};

void calls_csv_header(FILE *stream);
void calls_csv_row(FILE *stream, const struct driver_call *call);

/* False: no host memory, and the list stays as it is. */
bool call_list_add(struct call_list *self, const struct driver_call *call);

/* Makes room for so many in an empty list, in memory that has been touched: no call that is added
 * has to wait for its pages. False: no host memory, and the list stays as it is. */
bool call_list_ready(struct call_list *self, size_t room);

/* Reads a whole file. IO, FORMAT with file and line. The caller closes the list, also after a
 * failure. */
enum ar_status calls_csv_read(const char *path, struct call_list *out,
                              struct ar_error *error) AR_STATUS_CHECKED;
void call_list_close(struct call_list *self);

#endif
