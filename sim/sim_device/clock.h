/* A vector clock: a sequence for each stream, 0 if none was set (Fidge and Mattern, 1988). The
 * clocks of tens of thousands of streams that wait for each other are nearly equal, so they share
 * nodes:
 *
 * 1. A clock is a tree of fixed fan-out over the numbers of the streams, as high as the highest
 *    number needs. Parts in which nothing is set have no node.
 * 2. Nodes count their holders. A node with several holders is never changed: raising a sequence
 *    makes new nodes on the path to it. So a copy of a clock is one more holder of its root.
 * 3. The maximum of two clocks is computed only where they differ, and shares the nodes of either
 *    where that one is the higher.
 * 4. Nodes are marked as learned. Of a clock that shares learned nodes, only the rest is visited.
 *    There is one learner, and what it has learned stays true. */
#pragma once

#include "allocators/backing.h"
#include "sim/device_memory/device_memory.h"

struct vector_node;

/* Zeroed: no sequence is set. */
struct vector_clock {
    struct vector_node *root;
    uint32_t height; /* number of levels */
};

/* A copy, which must be dropped too. */
struct vector_clock vector_clock_copy(const struct vector_clock *self);
/* Releases it; it is empty then. */
void vector_clock_drop(struct vector_clock *self);

uint64_t vector_clock_at(const struct vector_clock *self, uint32_t stream);

/* Raises the stream's sequence to at least `sequence`, and every one to at least that of `other`.
 * False: no host memory, and the clock is unchanged. */
bool vector_clock_raise(struct vector_clock *self, uint32_t stream, uint64_t sequence);
bool vector_clock_raise_all(struct vector_clock *self, const struct vector_clock *other);

/* Visits every sequence that is set and was not visited before, and some others. */
typedef void vector_clock_visit(void *argument, uint32_t stream, uint64_t sequence);
void vector_clock_learn(struct vector_clock *self, vector_clock_visit *visit, void *argument);

/* Virtual time: the clock of the host, the queues of the streams, events, and the order of streams.
 *
 * 1. The host's clock advances when host time passes, when a call is charged, and when it waits.
 * 2. A kernel starts when its stream's earlier work is done and not before now; the stream's tail
 *    moves to its end. The host is at most `launch_queue` launches ahead of a stream: then it
 *    waits, as a real launch does.
 * 3. Each stream counts its work in a sequence. Its vector clock has, for each other stream, the
 *    highest sequence that comes before all its future work. An event carries the clock of the
 *    recording stream; a wait takes the maximum of both. A stream has no vector clock until it
 *    waits for another, so a single stream costs nothing.
 * 4. An event that the host knows to be past orders nothing any more: it is removed, so that a
 *    trace with a new number for each record does not fill the memory.
 * 5. `known` is the sequence up to which the host knows a stream to be done: by a wait, a
 *    synchronisation or a successful poll. That time has passed does not count: the result must be
 *    right for any speed of the device.
 * 6. Clocks stop at SIM_TIME_END_NS. The device has failed then. */

#define SIM_ALL_STREAMS  UINT32_MAX
#define SIM_TIME_END_NS  (UINT64_C(1) << 62) /* 146 years: no clock of host or stream passes it */
#define SIM_STREAMS_MOST 65536u
#define SIM_STREAM_WORDS (SIM_STREAMS_MOST / 64)

/* The sum of two times, of which the first is at most the end. */
static inline uint64_t sim_time_plus(uint64_t a_ns, uint64_t b_ns)
{
    return b_ns < SIM_TIME_END_NS - a_ns ? a_ns + b_ns : SIM_TIME_END_NS;
}

/* A point in a stream's work, and all that is done when it is done. */
struct sim_moment {
    uint32_t stream;
    uint64_t sequence, time_ns;
    struct vector_clock clock; /* empty: the stream has not waited */
};

struct sim_stream {
    uint64_t tail_ns; /* when all queued work is done */
    uint64_t sequence, known;
    uint64_t touches; /* of the sequence; the rest are kernels */
    uint64_t *ends;   /* of the last `launch_queue` kernels, a ring buffer */
    uint32_t next;    /* the oldest of them */
    struct vector_clock clock;
    struct vector_clock apart; /* what it comes after too, of which its events tell nothing */
    /* fences that are not known to be done, oldest first, from mark_first */
    struct sim_moment *marks;
    uint32_t mark_first, mark_count;
    size_t mark_room;
    uint64_t marks_gone; /* the number of fences before them */
};

struct sim_clock {
    uint64_t now_ns;
    uint64_t latest_ns; /* the latest tail of all streams */
    struct sim_stream *streams;
    uint32_t stream_count, stream_room;
    uint32_t launch_queue;
    struct ranges events;
    size_t events_bound; /* at this number of events, past ones are removed */
    bool failed;         /* a stream is missing: no host memory, or `beyond` */
    bool beyond;         /* an ordinal beyond the most was named */
    /* The number of streams that the host has learned about since the pool last looked, and the
     * last one of them. */
    uint32_t learned, learned_stream;
    /* A bit for each stream about which a fence and its wait could tell the host something, and
     * some others; a bit for each word of them. */
    uint64_t open[SIM_STREAM_WORDS], open_words[SIM_STREAM_WORDS / 64];
};

void sim_clock_open(struct sim_clock *self, uint32_t launch_queue);
void sim_clock_close(struct sim_clock *self);

/* A kernel of a stream whose queue exists. False: it does not exist yet, nothing has changed. */
static inline bool sim_clock_launch(struct sim_clock *self, uint32_t stream, uint64_t nanoseconds);
void sim_clock_kernel(struct sim_clock *self, uint32_t stream, uint64_t nanoseconds);
void sim_clock_event_record(struct sim_clock *self, uint64_t event, uint32_t stream);
/* A wait for an event that was never recorded does nothing. */
void sim_clock_stream_wait(struct sim_clock *self, uint32_t stream, uint64_t event);

/* The host waits for a stream, or for all; returns the time. */
uint64_t sim_clock_sync(struct sim_clock *self, uint32_t stream);

/* Fences of a policy. A successful poll, and a wait, make the host know. */
struct ar_backing_ticket sim_clock_fence(struct sim_clock *self, uint32_t stream);
bool sim_clock_done(struct sim_clock *self, struct ar_backing_ticket ticket);
uint64_t sim_clock_wait(struct sim_clock *self, struct ar_backing_ticket ticket);
/* The stream, not the host, waits for the fence. Returns the delay of its next work. */
uint64_t sim_clock_stream_wait_ticket(struct sim_clock *self, uint32_t stream,
                                      struct ar_backing_ticket ticket);
/* Whether a driver call is needed: for a fence, if there is work that is not known to be done and
 * has no fence yet; for a ticket, if that is not known to be done. */
bool sim_clock_fence_is_new(const struct sim_clock *self, uint32_t stream);
/* The stream has had no work and waited for none: its fence needs no entry. */
bool sim_clock_fence_is_nothing(const struct sim_clock *self, uint32_t stream);
bool sim_clock_is_open(struct sim_clock *self, struct ar_backing_ticket ticket);

/* The first stream from `stream` on about which a fence and its wait could tell the host something;
 * SIM_STREAMS_MOST: none. Of any other the host knows all, and its work is past. */
uint32_t sim_clock_next_open(const struct sim_clock *self, uint32_t stream);

/* Adds work of no time to the stream and returns its sequence: a stream that owns a block counts as
 * using it. */
uint64_t sim_clock_touch(struct sim_clock *self, uint32_t stream);
/* The stream's sequence and tail now. */
struct sim_moment sim_clock_here(struct sim_clock *self, uint32_t stream);
/* The number of kernels that the stream was given. */
static inline uint64_t sim_clock_kernels(const struct sim_clock *self, uint32_t stream)
{
    return stream < self->stream_count
               ? self->streams[stream].sequence - self->streams[stream].touches
               : 0;
}

/* Whether all future work of `later` comes after that sequence of `earlier`: by events; or also
 * because of another order, or because the host knows that to be done. */
bool sim_clock_waits_for(const struct sim_clock *self, uint32_t earlier, uint64_t sequence,
                         uint32_t later);
bool sim_clock_ordered(const struct sim_clock *self, uint32_t earlier, uint64_t sequence,
                       uint32_t later);
/* Establishes this order: the stream waits. Returns the delay of its next work. */
uint64_t sim_clock_order(struct sim_clock *self, uint32_t earlier, uint64_t sequence,
                         uint64_t time_ns, uint32_t later);
/* The same, but only sim_clock_ordered tells it. */
uint64_t sim_clock_order_apart(struct sim_clock *self, uint32_t earlier, uint64_t sequence,
                               uint64_t time_ns, uint32_t later);

/* Whether the host knows that this work is done. */
static inline bool sim_clock_known(const struct sim_clock *self, uint32_t stream, uint64_t sequence)
{
    return stream >= self->stream_count || sequence <= self->streams[stream].known;
}

static inline void sim_clock_opens(struct sim_clock *self, uint32_t stream)
{
    uint64_t *word = &self->open[stream / 64], bit = UINT64_C(1) << stream % 64;
    if (*word & bit)
        return;
    *word |= bit;
    self->open_words[stream / 4096] |= UINT64_C(1) << stream / 64 % 64;
}

static inline bool sim_clock_launch(struct sim_clock *self, uint32_t ordinal, uint64_t nanoseconds)
{
    struct sim_stream *stream = self->streams + ordinal;
    if (__builtin_expect(ordinal >= self->stream_count || !stream->ends, 0))
        return false;
    uint64_t *slot = stream->ends + stream->next;
    uint64_t now_ns = self->now_ns;
    if (*slot > now_ns) /* the queue is full */
        self->now_ns = now_ns = *slot;
    uint64_t end_ns =
        sim_time_plus(stream->tail_ns > now_ns ? stream->tail_ns : now_ns, nanoseconds);
    *slot = stream->tail_ns = end_ns;
    if (++stream->next == self->launch_queue)
        stream->next = 0;
    stream->sequence++;
    sim_clock_opens(self, ordinal);
    AR_RAISE(self->latest_ns, end_ns);
    return true;
}

static inline bool sim_clock_busy(const struct sim_clock *self)
{
    return self->latest_ns > self->now_ns;
}

static inline uint64_t sim_clock_idle_at(const struct sim_clock *self)
{
    return sim_clock_busy(self) ? self->latest_ns : self->now_ns;
}
