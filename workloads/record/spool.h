/* A spool: the driver calls of one thread of a recorded program, in a file while the program runs.
 * The injection library appends; recording.c reads.
 *
 * 1. A file is a head of 4096 bytes, then records of 64 bytes, in the thread's order, then zeros.
 * 2. The file is mapped and shared, so that the records survive the program, however it ends. A
 *    record's kind is stored last: a record of kind 0 ends the thread's records.
 * 3. The record of a free has the time at which the call began, that of a request the time at which
 *    it ended. An address therefore never seems to be in use twice, because the driver handed it
 *    out between these times.
 * 4. Byte order and layout are this machine's: a spool is not a format for storage. */
#pragma once

#include <stdint.h>

#define SPOOL_MAGIC      "ALRSPL1\n"
#define SPOOL_HEAD_BYTES 4096u
#define SPOOL_DEVICES    16u /* cards whose names are stored */

/* Environment of the recorded program. */
#define SPOOL_FOLDER_VARIABLE  "ALLOCRIG_RECORD_SPOOL"   /* folder of the spools */
#define SPOOL_KERNELS_VARIABLE "ALLOCRIG_RECORD_KERNELS" /* 1: record kernels */
#define SPOOL_CUPTI_VARIABLE   "ALLOCRIG_CUPTI"          /* the libcupti.so to load */

/* A file with the second ending has a sentence why a process is not recorded. */
#define SPOOL_FILE_END ".spool"
#define SPOOL_WHY_END  ".why"

enum spool_kind {
    SPOOL_NONE,
    SPOOL_ALLOC,       /* address, bytes, stream; other: the pool; failed: bytes and result */
    SPOOL_FREE,        /* address */
    SPOOL_FREE_ASYNC,  /* address, stream */
    SPOOL_CREATE,      /* bytes; other: the handle */
    SPOOL_RELEASE,     /* other: the handle */
    SPOOL_RESERVE,     /* address, bytes */
    SPOOL_UNRESERVE,   /* address, bytes */
    SPOOL_MAP,         /* address, bytes; other: the handle */
    SPOOL_UNMAP,       /* address, bytes */
    SPOOL_ACCESS,      /* address, bytes */
    SPOOL_EVENT,       /* other: the event; stream */
    SPOOL_EVENT_GONE,  /* other: the event */
    SPOOL_WAIT,        /* other: the event; stream */
    SPOOL_SYNC,        /* stream */
    SPOOL_SYNC_DEVICE, /* of the context */
    SPOOL_SYNC_EVENT,  /* other: the event */
    SPOOL_LAUNCH,      /* stream, correlations */
    SPOOL_TRIM,        /* other: the pool; bytes: that it may keep */
    SPOOL_KERNEL,      /* bytes: nanoseconds; other: its start; correlation */
    SPOOL_KIND_COUNT
};

enum spool_flag {
    SPOOL_PER_THREAD = 1u << 0, /* the stream is the thread's own default stream */
    SPOOL_PINNED = 1u << 1,     /* host memory */
    SPOOL_MANAGED = 1u << 2,
};

struct spool_record {
    uint64_t time_ns; /* CLOCK_MONOTONIC */
    uint64_t address;
    uint64_t bytes;
    uint64_t stream; /* its handle; 0: the default stream */
    uint64_t other;
    uint64_t free_bytes;        /* of the device, after a failure */
    uint32_t correlation;       /* the profiler's number of this call */
    uint32_t outer_correlation; /* and of the runtime call around it; 0: none */
    int32_t result;             /* CUresult or cudaError */
    uint16_t device;
    uint8_t flags;
    uint8_t kind;
};

_Static_assert(sizeof(struct spool_record) == 64, "a record is 64 bytes, without gaps");

/* Nanoseconds inside of the library's own code, of a sample of the requests and frees. */
struct spool_cost {
    uint64_t samples, total_ns;
};

struct spool_device {
    char name[96]; /* "": unknown */
    uint64_t bytes;
};

struct spool_head {
    char magic[8];
    uint64_t process_started_ns; /* distinguishes processes with the same number */
    int32_t process, parent, thread;
    int32_t driver_version; /* 1000 * major + 10 * minor */
    uint32_t cupti_version;
    uint32_t zero;
    uint64_t lost; /* records that found no room in the file system */
    struct spool_cost cost;
    struct spool_device devices[SPOOL_DEVICES];
};

_Static_assert(sizeof(struct spool_head) <= SPOOL_HEAD_BYTES, "the head has room for its fields");
