/* Streams, and points in their work.
 *
 * 1. Streams are made when they are first named, non-blocking. Each counts the work queued on it
 *    in a sequence; a point in its work is a pair of stream and sequence.
 * 2. A fence is an event recorded at such a point, kept in the stream's queue, oldest first. A
 *    second fence with no work between is the same one. The events come from a store, so that
 *    none is made while work is timed.
 * 3. `known` is the sequence up to which the host has found the stream done, by a wait or by a
 *    poll that said yes: whoever asks about what comes before it is answered without the driver.
 *    Fences that are known to be done give their events back.
 * 4. `after` holds, for each other stream, the sequence that all later work of this one waits
 *    for, so that no wait is queued twice.
 * 5. Streams of a program (embedded) are given, not made. What is queued on them is not known here,
 *    so each fence is a point of its own, and a synchronisation is asked for whenever it is wanted.
 *    While such a stream is captured into a graph no event is recorded on it or waited for by it: a
 *    fence gets its event at the first poll after, and the host waits where the stream would
 *    have. */
#ifndef BENCH_CUDA_STREAMS_H
#define BENCH_CUDA_STREAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/cuda/api.h"
#include "sim/device.h"
#include "sim/device_memory/ranges.h"

#define CUDA_ALL_STREAMS  UINT32_MAX
#define CUDA_STREAMS_MOST 4096u

struct cuda_device;

struct cuda_fence {
    uint64_t sequence;
    CUevent event;
};

struct cuda_stream {
    CUstream handle; /* NULL: not named yet, or the program's default stream */
    bool adopted;    /* the program's */
    uint64_t sequence, known;
    double owed_ns;  /* of timed kernels, to the next one */
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
    uint32_t made; /* in all, so that all that were handed out can come back */
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

/* The stream of that ordinal, made if it is new; NULL: the device has failed. */
struct cuda_stream *cuda_stream(struct cuda_device *device, uint32_t ordinal);

/* A point behind all that is queued on the stream, with its fence; 0: nothing was ever queued. */
uint64_t cuda_stream_fence(struct cuda_device *device, uint32_t ordinal);
/* Whether the work up to there is done; asks the driver only where that is not known. */
bool cuda_stream_done(struct cuda_device *device, uint32_t ordinal, uint64_t sequence);
/* The host waits for it. */
void cuda_stream_await(struct cuda_device *device, uint32_t ordinal, uint64_t sequence);
/* All later work of `later` waits for that point of `earlier`, which has a fence. */
void cuda_stream_order(struct cuda_device *device, uint32_t earlier, uint64_t sequence,
                       uint32_t later);
/* The host waits for a stream, or for all that the device was given. Returns how long, 0 where all
 * of it was known to be done: then the driver is not asked. */
uint64_t cuda_stream_sync(struct cuda_device *device, uint32_t ordinal);

/* The program's own events. */
void cuda_stream_event_record(struct cuda_device *device, uint64_t event, uint32_t ordinal);
void cuda_stream_event_wait(struct cuda_device *device, uint32_t ordinal, uint64_t event);

/* Moments whose time is asked for later, so that the host need not wait now.
 *
 * 1. A mark keeps the host's time, and an event on every stream that was given work since the
 *    last mark and is not known to be done. What was queued before the last mark ended before its
 *    events, so that a mark's time is the latest of its own and the earlier marks' events.
 * 2. The device's clock is tied to the host's by an event that was recorded at open between two
 *    readings of the host's clock; the closest of several pairs is taken, and its middle.
 * 3. The driver tells the time between two events in single precision, which is 0.25 us after 4 s
 *    and worse later: an event that far from the last reference becomes the next one.
 * 4. Marks whose work is done are settled on the way when there are many, so that the events in
 *    use stay few. */
struct cuda_mark_event {
    uint64_t mark;
    CUevent event;
};

struct cuda_marks {
    struct cuda_event_store events; /* with timing */
    CUevent reference;
    uint64_t reference_ns;
    uint64_t uncertain_ns; /* half the distance of the pair of rule 2 */
    uint64_t *times_ns;    /* by mark: the host's, once settled the later of both */
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
