/* The real card: its state, and the functions that its parts call of each other. */
#pragma once

#include "bench/cuda/api.h"
#include "bench/cuda/cuda_device.h"
#include "bench/cuda/kernels.h"
#include "sim/device.h"
#include "sim/device_memory/device_memory.h"
#include "sim/replay/timing.h"

/* Streams, and points in their work.
 *
 * 1. A stream is created, non-blocking, at its first use. It counts its queued work in a sequence;
 *    a point is a pair of stream and sequence.
 * 2. A fence is an event recorded at such a point, kept in the stream's queue, oldest first. A
 *    second fence without work in between is the same one. Events come from a store, so none is
 *    created while work is timed.
 * 3. `known` is the sequence up to which the host has found the stream done, by a wait or a
 *    successful poll. Queries about earlier points need no driver call. Fences that are known to be
 *    done return their events.
 * 4. `after` has, for each other stream, the sequence that all later work of this stream waits for,
 *    so no wait is queued twice.
 * 5. Streams of a program (embedded) are adopted, not created. Their queued work is unknown here,
 *    so each fence is a new point and every synchronisation calls the driver. While such a stream
 *    is captured into a graph it neither records events nor waits for them: a fence gets its event
 *    at the first poll afterwards, and the host waits instead of the stream. */

#define CUDA_ALL_STREAMS  UINT32_MAX
#define CUDA_STREAMS_MOST 4096u

struct cuda_device;

struct cuda_fence {
    uint64_t sequence;
    CUevent event;
};

struct cuda_stream {
    CUstream handle; /* NULL: not created yet, or the program's default stream */
    bool adopted;    /* the program's */
    uint64_t sequence, known;
    double owed_ns;  /* time of timed kernels, carried to the next one */
    uint64_t marked; /* up to which a mark has an event */
    struct cuda_fence *fences;
    size_t fence_first, fence_count, fence_room;
    uint64_t *after; /* by stream */
    uint32_t after_count;
};

/* Events that are not in use. */
struct cuda_event_store {
    unsigned flags;
    CUevent *events;
    uint32_t count, room;
    uint32_t made; /* in total, so that all events can come back */
};

struct cuda_streams {
    struct cuda_stream *streams;
    uint32_t count;
    bool embedded;                  /* all of them are the program's */
    struct cuda_event_store events; /* without timing, for fences */
    struct ranges program_events;   /* of the trace: start is the number */
    size_t program_events_bound;
};

/* False: the device has failed. */
bool cuda_streams_open(struct cuda_device *device);
void cuda_streams_close(struct cuda_device *device);

/* The stream of that ordinal, created if new. NULL: the device has failed. */
struct cuda_stream *cuda_stream(struct cuda_device *device, uint32_t ordinal);

/* A point after all queued work of the stream, with its fence; 0: no work was ever queued. */
uint64_t cuda_stream_fence(struct cuda_device *device, uint32_t ordinal);
/* Whether the work up to the point is done; calls the driver only if that is unknown. */
bool cuda_stream_done(struct cuda_device *device, uint32_t ordinal, uint64_t sequence);
/* The host waits for it. */
void cuda_stream_await(struct cuda_device *device, uint32_t ordinal, uint64_t sequence);
/* All later work of `later` waits for that point of `earlier`, which has a fence. */
void cuda_stream_order(struct cuda_device *device, uint32_t earlier, uint64_t sequence,
                       uint32_t later);
/* The host waits for a stream or for all work of the device. Returns the time; 0, without a driver
 * call, if all was known to be done. */
uint64_t cuda_stream_sync(struct cuda_device *device, uint32_t ordinal);

/* The program's own events. */
void cuda_stream_event_record(struct cuda_device *device, uint64_t event, uint32_t ordinal);
void cuda_stream_event_wait(struct cuda_device *device, uint32_t ordinal, uint64_t event);

/* Marks: moments whose time is read later, so that the host need not wait now.
 *
 * 1. A mark keeps the host's time, and an event on every stream with new work since the last mark
 *    that is not known to be done. Earlier work ended before the events of earlier marks, so a
 *    mark's time is the latest of its own and the earlier marks' events.
 * 2. An event recorded at open between two readings of the host's clock ties the device's clock to
 *    the host's. Of several pairs the closest is used, and its middle.
 * 3. The driver reports the time between two events in single precision, which is 0.25 us after 4 s
 *    and coarser later. An event that far from the last reference becomes the next reference.
 * 4. If there are many marks, done ones are settled early, so that few events are in use. */
struct cuda_mark_event {
    uint64_t mark;
    CUevent event;
};

struct cuda_marks {
    struct cuda_event_store events; /* with timing */
    CUevent reference;
    uint64_t reference_ns;
    uint64_t uncertain_ns; /* half the distance of the pair of rule 2 */
    uint64_t *times_ns;    /* by mark: the host's time; once settled, the later of both */
    size_t count, room;
    uint64_t settled;
    uint64_t device_ns; /* the latest event of all that are settled */
    struct cuda_mark_event *waiting;
    size_t waiting_first, waiting_count, waiting_room;
};

/* False: the device has failed. */
bool cuda_marks_open(struct cuda_device *device);
void cuda_marks_close(struct cuda_device *device);
uint64_t cuda_mark(struct ar_device *device);
uint64_t cuda_mark_ns(struct ar_device *device, uint64_t mark);

/* A page that holds driver allocations below the page size. */
struct cuda_small_page {
    struct range range;
    uint64_t segments;
};

/* Memory that the program holds outside of the policy, as a list that can grow and shrink. With
 * virtual memory it is unmapped physical memory, which can be created and destroyed without a
 * wait. */
struct cuda_outside {
    struct cuda_outside *older;
    CUmemGenericAllocationHandle driver_handle;
    CUdeviceptr address; /* without virtual memory; 0: none */
    uint64_t bytes;
};

struct cuda_pool {
    CUmemoryPool handle; /* NULL: not opened */
    struct ranges blocks;
    uint64_t ordinal;
    uint64_t most_bytes;     /* the maximum that it was opened with; 0: none */
    uint64_t charged_bytes;  /* of the ledger */
    uint64_t used_bytes;     /* requested and not freed */
    uint64_t reserved_bytes; /* the driver's last answer */
    bool changed; /* may have changed since: the pool releases memory while the host waits */
};

struct cuda_record_row {
    uint64_t bytes, address;
};

/* A file of addresses, one row for each segment or range in the order made. */
struct cuda_record {
    char *path; /* NULL: not recorded */
    FILE *file; /* NULL: none yet */
    uint64_t written;
    struct cuda_record_row *rows; /* ROWS_MOST rows that are not written yet */
    size_t count;
};

struct cuda_device {
    struct ar_device base;
    struct ar_backing backing;
    struct ar_backing_ops backing_ops; /* without functions that this card lacks */
    struct cuda_api api;
    CUdevice card;
    CUcontext context, context_before; /* NULL: not retained */
    struct sim_ledger ledger;
    uint64_t page_bytes;
    bool capacity_given;
    uint64_t held_at_open_bytes; /* on the card, by all processes, from the driver */
    uint64_t card_others_bytes;  /* held by other processes at open; see card_bytes */
    uint64_t others_at_open_bytes;
    bool shared, others_known; /* with both, updated at each query of memory */
    struct device_memory memory;
    struct ranges small_pages;
    struct kernels *kernels;
    struct cuda_streams streams;
    struct cuda_marks marks;
    struct cuda_schedule schedule;
    struct cuda_pool pool;
    struct cuda_outside *outside; /* newest first */
    uint64_t opened_ns;
    uint64_t program_waited_ns; /* in the program's own waits */
    struct cuda_record record_segments, record_ranges;
    bool out_of_host_memory;
    bool trusts_policy; /* the policy orders streams itself: uses are not kept */
    char problem[512];
};

static inline struct cuda_device *cuda_of(struct ar_device *device)
{
    return (struct cuda_device *)device;
}

static inline struct cuda_device *cuda_of_backing(struct ar_backing *backing)
{
    return (struct cuda_device *)((char *)backing - offsetof(struct cuda_device, backing));
}

/* Nanoseconds since open. */
static inline uint64_t cuda_now(const struct cuda_device *self)
{
    return latency_clock_ns() - self->opened_ns;
}

/* The host's clock, for timing a call of the policy. Counts the reading. */
static inline uint64_t cuda_clock_ns(struct cuda_device *self)
{
    self->base.counters.clock_readings++;
    return latency_clock_ns();
}

/* errors, in cuda_device.c */

/* Writes the sentence of an INVALID and returns it. After a failure of the device the sentence of
 * the failure stays. */
enum ar_status cuda_misuse(struct cuda_device *self, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Translates the driver's result: OK, or REFUSED for a lack of memory. Any other error is a
 * permanent failure of the device: INVALID with a sentence. `bytes` 0: the call has no size. */
enum ar_status cuda_answer(struct cuda_device *self, CUresult result, const char *call,
                           uint64_t bytes);
/* The same for calls that cannot lack memory. False: the device has failed. */
bool cuda_worked(struct cuda_device *self, CUresult result, const char *call);
/* OK unless the device has failed. */
enum ar_status cuda_ready(struct cuda_device *self);

/* Counts a call from `begun_ns` of the host's clock to now. */
static inline void cuda_count(struct cuda_device *self, enum ar_device_call call, uint64_t bytes,
                              uint64_t begun_ns, uint64_t waited_ns, bool refused)
{
    uint64_t ns = cuda_clock_ns(self) - begun_ns;
    ar_device_count(&self->base, call, bytes, ns, waited_ns, refused);
}

/* Counts a call that the capacity forbids like a refusal by the driver, which is not called. */
static inline enum ar_status cuda_refuse(struct cuda_device *self, enum ar_device_call call,
                                         uint64_t bytes)
{
    ar_device_count(&self->base, call, bytes, 0, 0, true);
    return AR_REFUSED;
}

/* Copies the ledger's figures to the counters. */
void cuda_show_memory(struct cuda_device *self);

/* cuda_device.c, memory.c */
extern const struct ar_device_ops cuda_device_ops;
extern const struct ar_backing_ops cuda_backing_ops;

/* open.c. Works in any state, also half open. */
void cuda_close(struct ar_device *device);

/* record.c */
enum ar_status cuda_record_open(struct cuda_record *record, const char *path,
                                struct ar_error *error);
enum ar_status cuda_record_row(struct cuda_device *self, struct cuda_record *record, uint64_t bytes,
                               uint64_t address);
enum ar_status cuda_record_flush(struct ar_device *device, struct ar_error *error);
/* Writes the remaining rows if possible. */
void cuda_record_close(struct cuda_record *record);

/* cuda_device.c */
void cuda_outside_close(struct cuda_device *self);

/* memory.c; cuda_pool_x: the driver's pool */
void cuda_segments_close(struct cuda_device *self);
CUmemAllocationProp cuda_memory_kind(const struct cuda_device *self);
void cuda_virtual_memory_close(struct cuda_device *self);
/* Updates the ledger after a possible change of the pool's size. */
void cuda_pool_charge(struct cuda_device *self);
bool cuda_pool_has(const struct cuda_device *self, uint64_t address);
void cuda_pool_close(struct cuda_device *self);

/* cuda_device.c: other processes on the card */

/* Bytes that all processes hold on the card, from the management library; -1: unknown. */
int64_t cuda_others_look(uint64_t ordinal);
/* Bytes that other processes hold, from the bytes held before there was a context and now, and from
 * the driver's figure now. */
uint64_t cuda_others_bytes(int64_t before_bytes, int64_t now_bytes, uint64_t driver_bytes);
