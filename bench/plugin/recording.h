/* Records the program's requests as a trace (workloads/trace/FORMAT.md, text) while it runs.
 *
 * 1. Each event is written at once with one system call, so the file can be read even if the
 *    program crashes. Only a full disk can leave a partial line, and then nothing follows it.
 * 2. Ids count the requests of the process on all cards; `device` names the card.
 *    Stream ordinals are the card's own.
 * 3. Free requests are recorded. Policy and device decide when a block is free completed
 *    (`let-go: final`).
 * 4. The time since the first event comes before an event if at least a microsecond passed. */
#pragma once

#include <pthread.h>

#include "allocators/base/status.h"

struct recording {
    pthread_mutex_t lock; /* for all below */
    int file;             /* -1: not recording */
    const char *path;
    uint64_t next_id;
    uint64_t begun_ns, last_us;
};

struct recording_head {
    const char *policy; /* the spec */
    const char *card;
    uint64_t capacity_bytes;
};

/* Creates or replaces the file. `path` stays the caller's. */
enum ar_status recording_open(struct recording *self, const char *path,
                              const struct recording_head *head, struct ar_error *error);
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

/* Records a request that was served. Returns its id. */
uint64_t recording_served(struct recording *self, const struct recording_request *request);
/* Records a request that failed, as a probe because the program may go on, with the free bytes of
 * the card. */
void recording_failed(struct recording *self, const struct recording_request *request,
                      uint64_t free_bytes);
/* Records that a block of stream `own` is freed on `stream`. */
void recording_free_requested(struct recording *self, uint64_t id, uint32_t own, uint32_t stream);
void recording_use(struct recording *self, uint64_t id, uint32_t stream);
/* Records the release of cached memory, or of a private pool if `pool` is not 0. */
void recording_trim(struct recording *self, uint32_t pool);
/* Records a label of the program. Characters that the format does not allow become spaces. */
void recording_mark(struct recording *self, const char *label);
