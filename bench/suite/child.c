#include "bench/suite/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "allocators/base/fnv.h"
#include "bench/machine/crash.h"
#include "bench/report/output_file.h"
#include "sim/replay/timing.h"

#define MESSAGE_MAGIC UINT64_C(0x31676972636f6c6c) /* "llocrig1" as it lies in memory */
#define SECOND_NS     UINT64_C(1000000000)
#define READ_BYTES    65536

struct message_head {
    uint64_t magic;
    uint64_t status;
    uint64_t text_bytes, payload_bytes;
    uint64_t check; /* of all that follows */
};

static uint64_t check_of(const void *text, size_t text_bytes, const void *payload,
                         size_t payload_bytes)
{
    return ar_fnv64(ar_fnv64(AR_FNV64_SEED, text, text_bytes), payload, payload_bytes);
}

/* The whole run of the child. `_exit`: exit handlers of the parent must not run here. */
static _Noreturn void live(int pipe, child_work *work, void *argument)
{
    struct ar_error error = {{0}};
    void *payload = NULL;
    size_t bytes = 0;
    crash_reports_end();
    enum ar_status status = work(argument, &payload, &bytes, &error);
    if (fflush(NULL) != 0 && !status)
        status = ar_error_set(&error, AR_IO, "a file of this run cannot be written: %s",
                              strerror(errno));
    size_t text_bytes = strlen(error.text) + 1;
    if (!payload)
        bytes = 0;
    const struct message_head head = {
        .magic = MESSAGE_MAGIC,
        .status = (uint64_t)status,
        .text_bytes = text_bytes,
        .payload_bytes = bytes,
        .check = check_of(error.text, text_bytes, payload, bytes),
    };
    bool sent = file_write_all(pipe, &head, sizeof head) &&
                file_write_all(pipe, error.text, text_bytes) &&
                file_write_all(pipe, payload, bytes);
    _exit(sent ? 0 : 1);
}

enum ar_status child_begin(struct child *self, child_work *work, void *argument, uint64_t limit_s,
                           struct ar_error *error)
{
    int ends[2];
    *self = (struct child){.pipe = -1};
    if (pipe2(ends, O_CLOEXEC) != 0)
        return ar_error_set(error, AR_IO, "no pipe to a process of its own: %s", strerror(errno));
    fflush(NULL); /* or the child would write it a second time */
    pid_t parent = getpid();
    pid_t process = fork();
    if (process == 0) {
        close(ends[0]);
        /* If the parent has ended before the call, the signal never comes. */
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
            _exit(1);
        live(ends[1], work, argument);
    }
    int number = errno;
    close(ends[1]);
    if (process < 0) {
        close(ends[0]);
        return ar_error_set(error, AR_IO, "no process of its own for a run: %s; try fewer --jobs",
                            strerror(number));
    }
    self->process = process;
    self->pipe = ends[0];
    self->deadline_ns = limit_s ? latency_clock_ns() + limit_s * SECOND_NS : UINT64_MAX;
    return AR_OK;
}

/* The child has closed its end of the pipe: it has ended, or is about to. */
static void reap(struct child *self)
{
    while (waitpid(self->process, &self->wait_status, 0) < 0 && errno == EINTR)
        ;
    self->process = 0;
    close(self->pipe);
    self->pipe = -1;
}

/* Reads what is available. False: the end. */
static bool take(struct child *self)
{
    if (self->room - self->count < READ_BYTES) {
        size_t room = 2 * self->room + READ_BYTES;
        char *bytes = realloc(self->bytes, room);
        if (!bytes)
            return false; /* the message is cut off, which child_answer() detects */
        self->bytes = bytes;
        self->room = room;
    }
    ssize_t got = read(self->pipe, self->bytes + self->count, READ_BYTES);
    if (got > 0)
        self->count += (size_t)got;
    return got > 0 || (got < 0 && errno == EINTR);
}

/* Milliseconds until the first deadline; -1: none. */
static int time_left_ms(const struct child *children, size_t count)
{
    uint64_t first = UINT64_MAX;
    uint64_t now = latency_clock_ns();
    for (size_t i = 0; i < count; i++)
        if (children[i].process && !children[i].overdue && children[i].deadline_ns < first)
            first = children[i].deadline_ns;
    if (first == UINT64_MAX)
        return -1;
    if (first <= now)
        return 0;
    uint64_t left = (first - now) / 1000000 + 1;
    return left > 3600000 ? 3600000 : (int)left;
}

static void kill_overdue(struct child *children, size_t count)
{
    uint64_t now = latency_clock_ns();
    for (size_t i = 0; i < count; i++) {
        struct child *child = &children[i];
        if (!child->process || child->overdue || child->deadline_ns > now)
            continue;
        child->overdue = true;
        kill(child->process, SIGKILL);
    }
}

size_t child_wait(struct child *children, size_t count)
{
    struct pollfd *polls = calloc(count ? count : 1, sizeof *polls);
    size_t running = 0;
    size_t ended = count;
    for (size_t i = 0; i < count; i++)
        running += children[i].process != 0;
    while (running && ended == count) {
        if (!polls) { /* no memory to wait for several: wait for the first */
            for (ended = 0; !children[ended].process; ended++)
                ;
            while (take(&children[ended]))
                ;
            break;
        }
        for (size_t i = 0; i < count; i++)
            polls[i] = (struct pollfd){.fd = children[i].process ? children[i].pipe : -1,
                                       .events = POLLIN};
        int ready = poll(polls, count, time_left_ms(children, count));
        for (size_t i = 0; ready > 0 && i < count && ended == count; i++)
            if (polls[i].revents && !take(&children[i]))
                ended = i;
        kill_overdue(children, count);
    }
    free(polls);
    if (ended < count)
        reap(&children[ended]);
    return ended;
}

static bool is_whole(const struct child *self, const struct message_head *head)
{
    const char *text = self->bytes + sizeof *head;
    size_t rest = self->count - sizeof *head;
    return head->magic == MESSAGE_MAGIC && head->status <= AR_NEGATIVE && head->text_bytes > 0 &&
           head->text_bytes <= sizeof((struct ar_error *)0)->text && head->text_bytes <= rest &&
           head->payload_bytes == rest - head->text_bytes && text[head->text_bytes - 1] == '\0' &&
           head->check ==
               check_of(text, head->text_bytes, text + head->text_bytes, head->payload_bytes);
}

void child_answer(const struct child *self, struct child_answer *answer, struct ar_error *error)
{
    struct message_head head;
    *answer = (struct child_answer){.end = CHILD_ANSWERED};
    if (self->count >= sizeof head) {
        memcpy(&head, self->bytes, sizeof head);
        if (is_whole(self, &head)) {
            const char *text = self->bytes + sizeof head;
            answer->status = (enum ar_status)head.status;
            answer->payload = text + head.text_bytes;
            answer->bytes = head.payload_bytes;
            if (answer->status)
                (void)ar_error_set(error, answer->status, "%s", text);
            return;
        }
    }
    answer->end = self->overdue ? CHILD_TIMED_OUT : CHILD_CRASHED;
    if (self->overdue)
        snprintf(answer->how, sizeof answer->how, "timed out");
    else if (WIFSIGNALED(self->wait_status))
        snprintf(answer->how, sizeof answer->how, "crashed: signal %d (%s)",
                 WTERMSIG(self->wait_status), strsignal(WTERMSIG(self->wait_status)));
    else
        snprintf(answer->how, sizeof answer->how, "crashed: ended with status %d and no result",
                 WEXITSTATUS(self->wait_status));
}

void child_close(struct child *self)
{
    if (self->process) {
        kill(self->process, SIGKILL);
        reap(self);
    }
    free(self->bytes);
    *self = (struct child){.pipe = -1};
}

enum ar_status child_run(struct child *self, child_work *work, void *argument, uint64_t limit_s,
                         struct child_answer *answer, struct ar_error *error)
{
    AR_TRY(child_begin(self, work, argument, limit_s, error));
    (void)child_wait(self, 1);
    child_answer(self, answer, error);
    return AR_OK;
}
