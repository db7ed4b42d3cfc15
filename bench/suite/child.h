/* Work in a process of its own, so that the state it leaves (of a driver, of a pool, a crash) ends
 * with it.
 *
 * 1. The program forks; the child does the work, sends its answer through a pipe and ends without
 *    running exit handlers of the parent. No other thread may run at that moment.
 * 2. An answer is one message: a head with lengths and a check sum, the error's text, the payload.
 *    A message that is cut off or altered is no answer.
 * 3. A child that exceeds its time limit is killed.
 * 4. A child does not outlive its parent, however that ends; Ctrl-C reaches both. */
#pragma once

#include <sys/types.h>

#include "allocators/base/status.h"

/* Runs in the child. Its `*payload` (from malloc, or NULL), status and error text are sent to the
 * parent. Streams that were open before are flushed. */
typedef enum ar_status child_work(void *argument, void **payload, size_t *bytes,
                                  struct ar_error *error);

enum child_end { CHILD_ANSWERED, CHILD_CRASHED, CHILD_TIMED_OUT };

struct child {
    pid_t process; /* 0: none, or it has ended */
    int pipe;
    uint64_t deadline_ns; /* of the monotonic clock; UINT64_MAX: none */
    char *bytes;          /* received so far */
    size_t count, room;
    bool overdue;
    int wait_status; /* once it has ended */
};

/* The result of a child that has ended. */
struct child_answer {
    enum child_end end;
    char how[96];          /* unless ANSWERED: "crashed: signal 11 (Segmentation fault)" */
    enum ar_status status; /* of the work, if ANSWERED */
    const void *payload;   /* belongs to the child */
    size_t bytes;
};

/* Begins the work. `limit_s` 0: no limit. IO if no process can be created. The caller closes a
 * child that was begun. */
enum ar_status child_begin(struct child *self, child_work *work, void *argument, uint64_t limit_s,
                           struct ar_error *error);

/* Waits until one of the running children has ended and returns its index; `count` if none runs.
 * Kills children past their limit. */
size_t child_wait(struct child *children, size_t count);

/* The answer of a child that has ended. `error` gets the error of its work. */
void child_answer(const struct child *self, struct child_answer *answer, struct ar_error *error);

/* Kills it if it still runs, and frees what it sent. */
void child_close(struct child *self);

/* Begins one child, waits for it and gives its answer. The caller closes it. */
enum ar_status child_run(struct child *self, child_work *work, void *argument, uint64_t limit_s,
                         struct child_answer *answer, struct ar_error *error);
