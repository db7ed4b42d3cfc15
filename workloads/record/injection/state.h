/* The common part of the injection library. The library runs inside of a foreign program: it never
 * ends the program. If it cannot record, it reports that and does nothing more. */
#pragma once

#include <cupti.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "workloads/record/spool.h"

_Static_assert(CUDA_VERSION >= 12000, "the recorder is built with the headers of CUDA 12 or later");

/* The functions of libcupti that are used. An optional one may be NULL. */
#define CUPTI_FUNCTIONS(X)                                                                         \
    X(cuptiSubscribe, REQUIRED)                                                                    \
    X(cuptiUnsubscribe, REQUIRED)                                                                  \
    X(cuptiEnableCallback, REQUIRED)                                                               \
    X(cuptiGetResultString, REQUIRED)                                                              \
    X(cuptiGetVersion, REQUIRED)                                                                   \
    X(cuptiGetDeviceId, REQUIRED)                                                                  \
    X(cuptiActivityEnable, REQUIRED)                                                               \
    X(cuptiActivityRegisterCallbacks, REQUIRED)                                                    \
    X(cuptiActivityGetNextRecord, REQUIRED)                                                        \
    X(cuptiActivityFlushAll, REQUIRED)                                                             \
    X(cuptiActivityFlushPeriod, OPTIONAL)

struct cupti_library {
#define X(name, kind) __typeof__(name) *name;
    CUPTI_FUNCTIONS(X)
#undef X
};

/* The functions of the driver for failed requests and for the names of cards. */
struct driver_library {
    __typeof__(cuMemGetInfo) *mem_get_info;
    __typeof__(cuDeviceGetName) *device_get_name;
    __typeof__(cuDeviceTotalMem) *device_total_mem;
    __typeof__(cuDriverGetVersion) *driver_get_version;
};

/* The spool of a thread, and the state of its current call. */
struct spool_writer {
    struct recorder *recorder;
    struct spool_head *head;         /* mapped; NULL: no record can be written */
    struct spool_record *next, *end; /* in the mapped window */
    void *window;
    size_t window_bytes;
    uint64_t file_bytes;
    char path[512];
    unsigned calls;       /* number of requests and frees; a sample of them is timed */
    bool sampled;         /* the current call is timed */
    unsigned outer_depth; /* of calls of the runtime */
    uint32_t inner_kinds; /* a bit for each kind of driver call recorded within */
    uint32_t outer_correlation;
    uint64_t process_started_ns; /* of the process that made it */
    CUcontext context;           /* of `device` */
    uint16_t device;
};

struct recorder {
    char folder[400];
    bool kernels;
    uint32_t cupti_version;
    struct cupti_library cupti;
    struct driver_library driver;
    CUpti_SubscriberHandle subscriber;
    const struct call *calls[2]; /* of the driver, of the runtime; by CUPTI number */
    size_t call_counts[2];
    pthread_key_t key; /* of the thread's writer */
    atomic_int *known; /* in a page that is zero in a forked child; enum recorder_known */
    uint64_t process_started_ns;
    pid_t process;             /* that the library was loaded into */
    atomic_uint files;         /* number of file names used */
    atomic_uint devices_named; /* a bit for each device */
};

/* Whether the recorder was made, or renewed, in this process. */
enum recorder_known { RECORDER_NEW_PROCESS, RECORDER_BEING_RENEWED, RECORDER_KNOWN };

uint64_t recorder_now_ns(void);

/* ---- spool_writer.c: files ------------------------------------------------------------------ */

/* The calling thread's writer, made at its first call; NULL: no memory. */
struct spool_writer *spool_writer_of_thread(struct recorder *recorder);

/* Room for one more record, of zeros; NULL: counted as lost. The record is valid after
 * spool_writer_end. */
struct spool_record *spool_writer_begin(struct spool_writer *writer);
void spool_writer_end(struct spool_writer *writer, struct spool_record *record,
                      enum spool_kind kind);

/* For pthread_key_create: the thread ends. */
void spool_writer_close(void *writer);

/* ---- libraries.c: loading ------------------------------------------------------------------ */

/* Finds a libcupti that accepts the subscription, and fills recorder->cupti and ->driver. False:
 * `why` is a sentence with the reason. */
bool libraries_open(struct recorder *recorder, CUpti_CallbackFunc callback, char *why, size_t room);

/* ---- calls.c: which calls are recorded and how ---------------------------------------------- */

/* The positions of values among a call's arguments, in words of eight bytes from 1; 0: none. */
struct call_reads {
    uint8_t made; /* a pointer to the resulting address, or NULL */
    uint8_t address, bytes, stream, other;
};

/* The word of one argument; arguments of another width do not compile. */
#define ARGUMENT(call, name)                                                                       \
    ((uint8_t)(offsetof(call##_params, name) / sizeof(uint64_t) +                                  \
               sizeof(char[sizeof(((call##_params *)0)->name) == sizeof(uint64_t) ? 1 : -1])))

/* The usual lists of arguments, for rows of the tables. */
#define MADE(call, made_, bytes_)                                                                  \
    .reads = {.made = ARGUMENT(call, made_), .bytes = ARGUMENT(call, bytes_)}
#define MADE_ON(call, made_, bytes_, stream_)                                                      \
    .reads = {.made = ARGUMENT(call, made_),                                                       \
              .bytes = ARGUMENT(call, bytes_),                                                     \
              .stream = ARGUMENT(call, stream_)}
#define MADE_FROM(call, made_, bytes_, stream_, pool)                                              \
    .reads = {.made = ARGUMENT(call, made_),                                                       \
              .bytes = ARGUMENT(call, bytes_),                                                     \
              .stream = ARGUMENT(call, stream_),                                                   \
              .other = ARGUMENT(call, pool)}
#define ADDRESS(call, address_) .reads = {.address = ARGUMENT(call, address_)}
#define ADDRESS_ON(call, address_, stream_)                                                        \
    .reads = {.address = ARGUMENT(call, address_), .stream = ARGUMENT(call, stream_)}
#define RANGE(call, address_, bytes_)                                                              \
    .reads = {.address = ARGUMENT(call, address_), .bytes = ARGUMENT(call, bytes_)}
#define OTHER(call, other_) .reads = {.other = ARGUMENT(call, other_)}
#define OTHER_ON(call, other_, stream_)                                                            \
    .reads = {.other = ARGUMENT(call, other_), .stream = ARGUMENT(call, stream_)}
#define STREAM(call, stream_) .reads = {.stream = ARGUMENT(call, stream_)}

/* Reads other values of the arguments; called after call_reads. */
typedef void call_decode(const void *arguments, struct spool_record *record);

struct call {
    uint8_t kind;    /* enum spool_kind; SPOOL_NONE: not recorded */
    uint8_t flags;   /* enum spool_flag */
    bool per_thread; /* the default stream is the thread's own */
    struct call_reads reads;
    call_decode *decode; /* or NULL */
};

/* The calls of a domain by number; `*count` is the end of the numbers. */
const struct call *driver_calls(size_t *count);
const struct call *runtime_calls(size_t *count);
