/* Work in a process of its own: what it leaves in a process (the state of a driver, the history
 * of a pool, a crash) goes with it.
 *
 * 1. The program forks; the child does the work, sends its answer through a pipe and ends
 *    without running anything of the parent's. No other thread may run at that moment.
 * 2. An answer is one message: a head with length and check sum, then the error's text, then
 *    the payload. What is cut off or altered is no answer.
 * 3. A child has a time limit; past it, it is killed.
 * 4. A child does not outlive its parent, whatever ends that; Ctrl-C reaches both. */
#ifndef BENCH_SUITE_CHILD_H
#define BENCH_SUITE_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "allocators/base/status.h"

/* Done in the child. What it gives in `*payload` (from malloc, or NULL) is sent to the parent with
 * its status and sentence. All that it wrote to streams that were open before is flushed. */
typedef enum ar_status child_work(void *argument, void **payload, size_t *bytes,
                                  struct ar_error *error);

enum child_end { CHILD_ANSWERED, CHILD_CRASHED, CHILD_TIMED_OUT };

struct child {
    pid_t process; /* 0: none, or it has ended and was waited for */
    int pipe;
    uint64_t deadline_ns; /* of the monotonic clock; UINT64_MAX: none */
    char *bytes;          /* that came so far */
    size_t count, room;
    bool overdue;
    int wait_status; /* once it has ended */
};

/* What came of a child that has ended. */
struct child_answer {
    enum child_end end;
    char how[96];          /* unless ANSWERED: "crashed: signal 11 (Segmentation fault)" */
    enum ar_status status; /* of the work, where ANSWERED */
    const void *payload;   /* belongs to the child */
    size_t bytes;
};

/* Begins the work. `limit_s` 0: no limit. IO where no process can be made. A child that was begun
 * is closed in the end. */
enum ar_status child_begin(struct child *self, child_work *work, void *argument, uint64_t limit_s,
                           struct ar_error *error) AR_STATUS_CHECKED;

/* Waits until one of the children that run has ended, and returns its index; `count` where none
 * runs. Those past their limit are killed. */
size_t child_wait(struct child *children, size_t count);

/* Of a child that has ended. `error` gets the sentence of its work. */
void child_answer(const struct child *self, struct child_answer *answer, struct ar_error *error);

/* Ends it where it still runs, and frees what it sent. */
void child_close(struct child *self);

/* All of it for one child: begins, waits, tells. The caller closes it. */
enum ar_status child_run(struct child *self, child_work *work, void *argument, uint64_t limit_s,
                         struct child_answer *answer, struct ar_error *error) AR_STATUS_CHECKED;

#endif
