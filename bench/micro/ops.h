/* The allocs and frees of a trace as an array in memory, for loops that measure nothing else.
 * Blocks that the trace leaves live are freed at its end, so the array can run repeatedly on one
 * policy. */
#ifndef BENCH_MICRO_OPS_H
#define BENCH_MICRO_OPS_H

#include <stddef.h>
#include <stdint.h>

#include "allocators/base/status.h"

struct micro_op {
    uint64_t bytes; /* 0: a free */
    uint32_t slot;
    uint32_t stream;
};

struct micro_ops {
    struct micro_op *at;
    size_t count;
    uint32_t slots; /* the most that are live at once */
    char name[32];  /* for tables; the caller's */
};

/* Reads a trace of any format. A free is at its free requested event. Zero-byte requests are left
 * out. The caller closes `out`. */
enum ar_status micro_ops_read(const char *path, struct micro_ops *out,
                              struct ar_error *error) AR_STATUS_CHECKED;
void micro_ops_close(struct micro_ops *ops);

#endif
