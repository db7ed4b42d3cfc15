/* What a recorded process's addresses and handles stand for. */
#ifndef WORKLOADS_RECORD_BOOKS_H
#define WORKLOADS_RECORD_BOOKS_H

#include <stdbool.h>
#include <stddef.h>

#include "allocators/base/map.h"
#include "workloads/record/spool.h"

struct books_block {
    uint64_t id, bytes;
};

struct books_process {
    struct ar_map blocks;    /* by address: place in `blocks` below */
    struct ar_map physicals; /* by handle: 2 × number + whether it is the host's memory */
    struct ar_map streams;   /* by handle, device and thread: ordinal */
    struct ar_map events;    /* by handle, of those recorded: number */
    struct ar_map pools;     /* by handle: number */
};

struct books {
    struct books_process *processes;
    uint32_t process_count;
    struct books_block *blocks;
    size_t block_count, block_capacity;
    size_t *free_blocks; /* places to use again */
    size_t free_count, free_capacity;
    uint64_t *free_events;
    size_t free_event_count, free_event_capacity;
    uint64_t next_event, next_physical;
    uint32_t next_stream, next_pool;
    bool default_named;
};

/* HOST_MEMORY. The caller closes `books`, also after a failure. */
enum ar_status books_open(struct books *books, uint32_t process_count) AR_STATUS_CHECKED;
void books_close(struct books *books);

enum ar_status books_block_add(struct books *books, uint32_t process, uint64_t address,
                               struct books_block block) AR_STATUS_CHECKED;
/* Takes it out of the books. False: there is none at that address. */
bool books_block_take(struct books *books, uint32_t process, uint64_t address,
                      struct books_block *block);

/* The ordinal of a record's stream, new or known; the last one there can be stands for all after. */
enum ar_status books_stream(struct books *books, uint32_t process, uint32_t thread,
                            const struct spool_record *record, uint32_t *ordinal) AR_STATUS_CHECKED;

/* The number of an event that is recorded now. UNSUPPORTED: no number is left. */
enum ar_status books_event_recorded(struct books *books, uint32_t process, uint64_t handle,
                                    uint64_t *number) AR_STATUS_CHECKED;
bool books_event_find(const struct books *books, uint32_t process, uint64_t handle,
                      uint64_t *number);
/* The event is destroyed: its number may be used again. */
enum ar_status books_event_gone(struct books *books, uint32_t process,
                                uint64_t handle) AR_STATUS_CHECKED;

/* Physical memory, numbered in the order made. */
enum ar_status books_physical_add(struct books *books, uint32_t process, uint64_t handle,
                                  bool pinned, uint64_t *number) AR_STATUS_CHECKED;
bool books_physical_find(const struct books *books, uint32_t process, uint64_t handle,
                         uint64_t *number, bool *pinned);

/* The number of a pool, from 1. */
enum ar_status books_pool(struct books *books, uint32_t process, uint64_t handle,
                          uint32_t *number) AR_STATUS_CHECKED;

#endif
