/* Appends to the spool of a thread, without a lock.
 *
 * 1. The head of a file is mapped once. Records are written to a window after it, and when that is
 *    full, to the next one, twice as long up to WINDOW_MOST_BYTES. A file is open only while it
 *    grows, so that the program's descriptors are not used up.
 * 2. Space is allocated in the file system before it is mapped, so that a full disk loses and
 *    counts a record instead of raising a signal.
 * 3. A forked child finds the page of `known` cleared and begins files of its own. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "workloads/record/injection/state.h"

#define WINDOW_LEAST_BYTES (UINT64_C(60) << 10) /* with the head 64 KiB */
#define WINDOW_MOST_BYTES  (UINT64_C(1) << 20)
#define NAMES_MOST         1000u

uint64_t recorder_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Makes the file larger. A limit on the size of files must not end the recorded program: the signal
 * is held back, and taken if it came. */
static bool extend(int file, uint64_t from, uint64_t bytes)
{
    static const struct timespec now = {0};
    sigset_t limit, old;
    sigemptyset(&limit);
    sigaddset(&limit, SIGXFSZ);
    if (pthread_sigmask(SIG_BLOCK, &limit, &old) != 0)
        return false;
    int error = posix_fallocate(file, (off_t)from, (off_t)bytes);
    if (error == EFBIG && !sigismember(&old, SIGXFSZ))
        (void)sigtimedwait(&limit, NULL, &now);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return error == 0;
}

/* Maps the next `bytes` of the file; NULL: there is no room. */
static void *map_more(struct spool_writer *writer, int file, uint64_t bytes)
{
    if (!extend(file, writer->file_bytes, bytes))
        return NULL;
    void *place =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)writer->file_bytes);
    if (place == MAP_FAILED)
        return NULL;
    writer->file_bytes += bytes;
    return place;
}

/* Maps a new window. False: there is no room, and the writer is unchanged. */
static bool next_window(struct spool_writer *writer, int file)
{
    uint64_t bytes = writer->window ? writer->window_bytes * 2 : WINDOW_LEAST_BYTES;
    bytes = bytes > WINDOW_MOST_BYTES ? WINDOW_MOST_BYTES : bytes;
    void *window = map_more(writer, file, bytes);
    if (!window)
        return false;
    if (writer->window)
        munmap(writer->window, writer->window_bytes);
    writer->window = window;
    writer->window_bytes = bytes;
    writer->next = window;
    writer->end = writer->next + bytes / sizeof *writer->next;
    return true;
}

static int new_file(struct recorder *recorder, struct spool_writer *writer)
{
    for (unsigned tries = 0; tries < NAMES_MOST; tries++) {
        unsigned number = atomic_fetch_add(&recorder->files, 1);
        snprintf(writer->path, sizeof writer->path, "%s/%ld-%u" SPOOL_FILE_END, recorder->folder,
                 (long)getpid(), number);
        int file = open(writer->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (file >= 0)
            return file;
    }
    return -1;
}

static void fill_head(const struct recorder *recorder, struct spool_head *head)
{
    head->process_started_ns = recorder->process_started_ns;
    head->process = (int32_t)getpid();
    head->parent = (int32_t)getppid();
    head->thread = (int32_t)syscall(SYS_gettid);
    head->cupti_version = recorder->cupti_version;
    int version = 0;
    if (recorder->driver.driver_get_version &&
        recorder->driver.driver_get_version(&version) == CUDA_SUCCESS)
        head->driver_version = version;
    memcpy(head->magic, SPOOL_MAGIC, sizeof head->magic);
}

static struct spool_writer *writer_make(struct recorder *recorder)
{
    struct spool_writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return NULL;
    writer->recorder = recorder;
    writer->process_started_ns = recorder->process_started_ns;
    int file = new_file(recorder, writer);
    if (file >= 0) {
        writer->head = map_more(writer, file, SPOOL_HEAD_BYTES);
        if (writer->head) {
            fill_head(recorder, writer->head);
            (void)next_window(writer, file);
        }
        close(file);
    }
    pthread_setspecific(recorder->key, writer);
    return writer;
}

/* The process is a forked child: the recorder was its parent's. */
static void renew(struct recorder *recorder)
{
    int known = RECORDER_NEW_PROCESS;
    if (atomic_compare_exchange_strong(recorder->known, &known, RECORDER_BEING_RENEWED)) {
        recorder->process_started_ns = recorder_now_ns();
        atomic_store(&recorder->devices_named, 0);
        atomic_store(recorder->known, RECORDER_KNOWN);
    }
    while (atomic_load(recorder->known) != RECORDER_KNOWN)
        sched_yield();
}

struct spool_writer *spool_writer_of_thread(struct recorder *recorder)
{
    if (atomic_load_explicit(recorder->known, memory_order_acquire) != RECORDER_KNOWN)
        renew(recorder);
    struct spool_writer *writer = pthread_getspecific(recorder->key);
    /* A writer of the parent is not freed: its pages belong to the parent as well. */
    if (!writer || writer->process_started_ns != recorder->process_started_ns)
        writer = writer_make(recorder);
    return writer;
}

struct spool_record *spool_writer_begin(struct spool_writer *writer)
{
    if (!writer->head)
        return NULL;
    if (writer->next == writer->end) {
        int file = open(writer->path, O_RDWR | O_CLOEXEC);
        bool grown = file >= 0 && next_window(writer, file);
        if (file >= 0)
            close(file);
        if (!grown) {
            writer->head->lost++;
            return NULL;
        }
    }
    return writer->next;
}

void spool_writer_end(struct spool_writer *writer, struct spool_record *record,
                      enum spool_kind kind)
{
    atomic_signal_fence(
        memory_order_release); /* other fields first, for a process that is killed */
    *(volatile uint8_t *)&record->kind = (uint8_t)kind;
    writer->next = record + 1;
}

void spool_writer_close(void *self)
{
    struct spool_writer *writer = self;
    if (writer->head)
        munmap(writer->head, SPOOL_HEAD_BYTES);
    if (writer->window)
        munmap(writer->window, writer->window_bytes);
    free(writer);
}
