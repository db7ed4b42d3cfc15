/* What the program asks for, written as a trace (workloads/trace/FORMAT.md, text) while it runs.
 *
 * 1. Each event goes to the file at once, with one system call, so that what was asked for can be
 *    read whatever becomes of the program. A line is never half-written but by a full disk, and
 *    then nothing follows.
 * 2. Ids count all requests of the process, whichever card they are for; `device` says which.
 *    Stream ordinals are the card's own.
 * 3. The program says when it frees, and that is written; when a block is complete is up to
 *    policy and device (`let-go: final`).
 * 4. Before an event stands the time since the first one, where at least a microsecond passed. */
#ifndef BENCH_PLUGIN_RECORDING_H
#define BENCH_PLUGIN_RECORDING_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "allocators/base/status.h"

struct recording {
    pthread_mutex_t lock; /* for all below */
    int file;             /* -1: none is wanted, or no more */
    const char *path;
    uint64_t next_id;
    uint64_t begun_ns, last_us;
};

struct recording_head {
    const char *policy; /* the spec, and what it ran on */
    const char *card;
    uint64_t capacity_bytes;
};

/* Starts a file, replacing one that is there; `path` stays the caller's. */
enum ar_status recording_open(struct recording *self, const char *path,
                              const struct recording_head *head,
                              struct ar_error *error) AR_STATUS_CHECKED;
void recording_close(struct recording *self);

static inline bool recording_wanted(const struct recording *self)
{
    return __atomic_load_n(&self->file, __ATOMIC_RELAXED) >= 0;
}

struct recording_request {
    uint64_t bytes;
    unsigned device;
    uint32_t stream, pool;
};

/* A request that was served; returns its id. */
uint64_t recording_served(struct recording *self, const struct recording_request *request);
/* One that was not, with so many bytes of the card free: a probe, since the program may go on. */
void recording_failed(struct recording *self, const struct recording_request *request,
                      uint64_t free_bytes);
/* A block of stream `own` is freed on `stream`. */
void recording_free_requested(struct recording *self, uint64_t id, uint32_t own, uint32_t stream);
void recording_use(struct recording *self, uint64_t id, uint32_t stream);
/* Cached memory is to be released; with a pool: that one is given up. */
void recording_trim(struct recording *self, uint32_t pool);
/* A label of the program's; characters that cannot stand there become spaces. */
void recording_mark(struct recording *self, const char *label);

#endif
