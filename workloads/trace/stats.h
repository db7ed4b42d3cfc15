/* Figures that a recorded allocator gave at the end, under its own names for them. They belong to a
 * whole recording: what filters and merges make has none. */
#ifndef WORKLOADS_TRACE_STATS_H
#define WORKLOADS_TRACE_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "allocators/base/status.h"

struct trace_stat {
    char *name;
    uint64_t value;
};

/* A zeroed struct holds none. */
struct trace_stats {
    struct trace_stat *items;
    size_t count, room;
};

/* HOST_MEMORY; INVALID for a name that is empty or holds blanks or control bytes. */
enum ar_status trace_stats_add(struct trace_stats *self, const char *name, size_t length,
                               uint64_t value, struct ar_error *error) AR_STATUS_CHECKED;
void trace_stats_close(struct trace_stats *self);

/* "NAME VALUE", as a header line has it. INVALID. */
enum ar_status trace_stats_parse(struct trace_stats *self, const char *text,
                                 struct ar_error *error) AR_STATUS_CHECKED;

#endif
