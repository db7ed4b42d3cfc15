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
#ifndef BENCH_CUDA_STREAMS_H
#define BENCH_CUDA_STREAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/cuda/api.h"
#include "sim/device.h"
#include "sim/device_memory/device_memory.h"

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

bool cuda_events_open(struct cuda_device *device, struct cuda_event_store *store, unsigned flags,
                      uint32_t count);
void cuda_events_close(struct cuda_device *device, struct cuda_event_store *store);
/* NULL: the device has failed. */
CUevent cuda_events_take(struct cuda_device *device, struct cuda_event_store *store);
void cuda_events_give(struct cuda_event_store *store, CUevent event);

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
    uint64_t count, room, settled;
    uint64_t device_ns; /* the latest event of all that are settled */
    struct cuda_mark_event *waiting;
    size_t waiting_first, waiting_count, waiting_room;
};

/* False: the device has failed. */
bool cuda_marks_open(struct cuda_device *device);
void cuda_marks_close(struct cuda_device *device);
uint64_t cuda_mark(struct ar_device *device);
uint64_t cuda_mark_ns(struct ar_device *device, uint64_t mark);

#endif
