/* What XLA prints of a program's buffers when there is no room for one: "Peak buffers". */
#ifndef WORKLOADS_FORMATS_XLA_XLA_BUFFERS_H
#define WORKLOADS_FORMATS_XLA_XLA_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/base/status.h"

#define XLA_LABEL_LIMIT  64
#define XLA_BUFFER_LIMIT 100000 /* XLA lists a few dozen */

struct xla_buffer {
    uint64_t bytes; /* 0: not told */
    uint64_t line;
    bool exact;     /* by its shape, else as printed for people */
    bool parameter; /* it was there before the program ran */
    char label[XLA_LABEL_LIMIT];
};

/* A zeroed struct is empty. */
struct xla_buffers {
    struct xla_buffer *items; /* of the last list */
    size_t count, capacity;
    bool listing; /* the list goes on */
    bool inside;  /* of the description of the last item */
};

/* Takes a line of the log: part of a list, or anything else. HOST_MEMORY. */
enum ar_status xla_buffers_line(struct xla_buffers *buffers, const char *line, uint64_t number,
                                struct ar_error *error) AR_STATUS_CHECKED;
void xla_buffers_close(struct xla_buffers *buffers);

#endif
