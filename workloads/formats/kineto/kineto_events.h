/* The events of a Kineto trace that concern memory, in the order of the file. */
#pragma once

#include "allocators/base/map.h"
#include "workloads/io/json_pull.h"
#include "workloads/trace/source.h"

enum kineto_kind {
    KINETO_OTHER,   /* none of these: not kept */
    KINETO_MEMORY,  /* bytes above 0: a block is allocated; below: freed */
    KINETO_FAILURE, /* a request of so many bytes failed */
    KINETO_KERNEL,
    KINETO_LAUNCH, /* of a kernel: only its time is kept, by correlation */
    KINETO_STEP,   /* a step ends */
};

#define KINETO_UNKNOWN INT64_MIN
#define KINETO_NONE    UINT32_MAX

struct kineto_row {   /* 48 bytes: there is one for each event that is kept */
    int64_t time_ns;  /* on the profiler's clock */
    uint64_t address; /* of a block, 0: unknown; of a kernel: its correlation */
    int64_t bytes;    /* of a kernel: nanoseconds */
    union {
        int64_t total_bytes; /* the profiler's count after it; or KINETO_UNKNOWN */
        uint64_t id;         /* later: of the block in the trace */
    };
    uint32_t order; /* in the file */
    uint32_t line;  /* of its first byte */
    union {
        uint32_t stream; /* of a kernel, the profiler's */
        uint32_t pair;   /* of a free: the row of its block; of a block: see kineto.c */
    };
    uint16_t device;
    uint8_t kind;
    uint8_t mark; /* see kineto.c */
};

struct kineto_rows {
    struct kineto_row *items;
    size_t count, capacity;
    struct ar_map launches;  /* correlation -> time_ns of the launch */
    uint64_t events;         /* of the file, all of them */
    uint64_t other_devices;  /* memory events of the host and others */
    uint64_t unusable;       /* events with a field that is missing or no number */
    uint64_t first_unusable; /* the line of the first */
};

/* Reads all of the file. `info` gets the card and its capacity if the file names them. FORMAT or
 * INVALID with file and line. The caller closes `out`, also after a failure. */
enum ar_status kineto_rows_read(struct trace_input *input, struct kineto_rows *out,
                                struct trace_info *info, struct ar_error *error);
void kineto_rows_close(struct kineto_rows *rows);
