/* Makes a trace from spools: addresses become blocks, handles become ordinals. */
#pragma once

#include "workloads/record/spool.h"
#include "workloads/trace/source.h"

/* ---- spools.c ---- */

/* The spools of a recorded program as one sequence, ordered by time. */

/* One file: the calls of one thread. */
struct spool_file {
    const struct spool_head *head; /* the mapped file */
    const struct spool_record *records;
    size_t count, bytes;
    uint32_t process,
        thread; /* ordinals: processes by start, threads of a process by first record */
};

struct spool_place {
    uint64_t time_ns;
    uint32_t file, index;
};

/* The time of a kernel, found by the call that launched it. */
struct spool_kernel {
    uint32_t process, correlation;
    uint64_t start_ns, duration_ns; /* by the profiler's clock */
    bool placed;
};

struct spools {
    struct spool_file *files;
    size_t file_count, file_capacity;
    struct spool_place *order; /* of all records except those of kernels */
    size_t order_count;
    struct spool_kernel *kernels; /* by process, call and start */
    size_t kernel_count;
    uint32_t process_count, thread_count;
    uint64_t lost;       /* records that found no room in the file system */
    uint32_t unrecorded; /* processes that were not recorded */
    uint32_t empty;      /* files without a head, because there was no room for it */
    char why[1024];      /* the reason for one of them */
};

/* Reads a folder of spools and skips other files. IO, HOST_MEMORY. The caller closes `out`, also
 * after a failure. */
enum ar_status spools_open(const char *folder, struct spools *out, struct ar_error *error);
void spools_close(struct spools *spools);

/* The kernels of a call: the first, and their number. */
struct spool_kernel *spools_kernels_of(const struct spools *spools, uint32_t process,
                                       uint32_t correlation, size_t *count);

/* Removes the spools of a folder, and the folder if it is then empty. */
void spools_remove(const char *folder);

/* Counts of the records, for the report. */
struct recording_counts {
    uint64_t allocs, frees; /* served requests, including mappings; frees of live blocks */
    uint64_t failed_allocs, failed_frees;
    uint64_t unknown_frees; /* of addresses that were not in use, except 0 */
    uint64_t reused;        /* requests at addresses whose free was not recorded */
    uint64_t pinned, managed, mappings;
    uint64_t dropped_waits; /* for events that were not recorded before */
    uint64_t kernels, untimed_kernels, unplaced_kernels;
    uint64_t lost;
    uint32_t processes, threads;
    uint64_t cost_samples, cost_total_ns;
};

/* Makes a trace from `spools`, which still belong to the caller. `name` is its name in tables.
 * `died`: a signal ended the program, or its exit status is not 0. Fills `counts`. The caller
 * closes `out`. */
enum ar_status recording_make(const struct spools *spools, const char *name, bool died,
                              struct trace_source **out, struct recording_counts *counts,
                              struct ar_error *error);
