/* A vector clock: for each stream a sequence, 0 where none was set (Fidge and Mattern, 1988).
 * Clocks of tens of thousands of streams that wait for each other in turn have nearly all in
 * common, so they share it:
 *
 * 1. A clock is a tree of fixed fan-out over the streams' numbers, as high as the highest number
 *    needs; where nothing is set there is no node.
 * 2. Nodes count who holds them. One that several hold is never changed: who raises a sequence
 *    makes the nodes on the way to it anew. A copy of a clock is therefore one more holder of its
 *    root.
 * 3. The higher of two clocks goes down where they differ only, and holds the nodes of either
 *    where that one is the higher already.
 * 4. What was learned of a clock is noted in its nodes, so that of a clock which shares them only
 *    the rest is gone through. Learning is for one learner, and what is learned stays true. */
#ifndef SIM_SIM_DEVICE_CLOCK_H
#define SIM_SIM_DEVICE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "allocators/backing.h"
#include "sim/device_memory/ranges.h"

struct vector_node;

/* Zeroed: no sequence is set. */
struct vector_clock {
    struct vector_node *root;
    uint32_t height; /* levels of nodes */
};

/* Another holder of the same sequences, to be dropped too. */
struct vector_clock vector_clock_copy(const struct vector_clock *self);
/* Leaves it empty. */
void vector_clock_drop(struct vector_clock *self);

uint64_t vector_clock_at(const struct vector_clock *self, uint32_t stream);

/* Makes the stream's sequence at least `sequence`, and every one at least that of `other`. False:
 * the host has no memory, and the clock is as it was. */
bool vector_clock_raise(struct vector_clock *self, uint32_t stream, uint64_t sequence);
bool vector_clock_raise_all(struct vector_clock *self, const struct vector_clock *other);

/* Shows every sequence that is set and was not shown before, and some that were. */
typedef void vector_clock_visit(void *argument, uint32_t stream, uint64_t sequence);
void vector_clock_learn(struct vector_clock *self, vector_clock_visit *visit, void *argument);

/* Virtual time: the host's clock, the streams' queues, events, and who is ordered after whom.
 *
 * 1. The host's clock moves when host time passes, when a call is charged, and when it waits.
 * 2. A kernel starts when its stream's earlier work is done and no earlier than now; the
 *    stream's tail moves to its end. The host is at most `launch_queue` launches ahead of a
 *    stream: beyond that it waits, as a real launch does.
 * 3. Each stream counts its work in a sequence. Its vector clock holds, for each other stream,
 *    the highest sequence that all its future work comes after (vector_clock.h): an
 *    event carries the recording stream's clock, a wait takes the higher of both. Streams have
 *    none until they wait for another, so that one stream alone pays nothing.
 * 4. An event that the host has found past orders nothing any more: it is forgotten, so that a
 *    trace with a number for each record does not fill the memory.
 * 5. `known` is the sequence up to which the host has found a stream done: by a wait, a
 *    synchronisation or a poll that said yes. Time that merely passed does not count: what
 *    is right then is right at any speed of the device. */

#define SIM_ALL_STREAMS  UINT32_MAX
#define SIM_STREAMS_MOST 65536u

/* A point in a stream's work, with all that is done once it is done. */
struct sim_moment {
    uint32_t stream;
    uint64_t sequence, time_ns;
    struct vector_clock clock; /* empty: the stream has waited for none */
};

struct sim_stream {
    uint64_t tail_ns; /* when all that is queued is done */
    uint64_t sequence, known;
    uint64_t *ends; /* of the last `launch_queue` kernels, a ring */
    uint32_t next;  /* the oldest of them */
    struct vector_clock clock;
    struct sim_moment *marks; /* fences not yet known to be done, oldest first, from mark_first */
    uint32_t mark_first, mark_count, mark_room;
    uint64_t marks_gone; /* how many fences came before them */
};

struct sim_clock {
    uint64_t now_ns;
    uint64_t latest_ns; /* the latest tail of all streams */
    struct sim_stream *streams;
    uint32_t stream_count, stream_room;
    uint32_t launch_queue;
    struct ranges events;
    size_t events_bound; /* at so many events those that no longer matter are forgotten */
    bool failed;         /* a stream could not be made: no memory, or an ordinal beyond the most */
    /* How many streams the host has learned more of since the pool last looked, and the last one. */
    uint32_t learned, learned_stream;
};

void sim_clock_open(struct sim_clock *self, uint32_t launch_queue);
void sim_clock_close(struct sim_clock *self);

void sim_clock_kernel(struct sim_clock *self, uint32_t stream, uint64_t nanoseconds);
void sim_clock_event_record(struct sim_clock *self, uint64_t event, uint32_t stream);
/* A wait for an event that was never recorded is no wait. */
void sim_clock_stream_wait(struct sim_clock *self, uint32_t stream, uint64_t event);

/* The host waits for a stream, or for all; returns how long. */
uint64_t sim_clock_sync(struct sim_clock *self, uint32_t stream);

/* Fences of a policy. A done that says yes, and a wait, make the host know. */
struct ar_backing_ticket sim_clock_fence(struct sim_clock *self, uint32_t stream);
bool sim_clock_done(struct sim_clock *self, struct ar_backing_ticket ticket);
uint64_t sim_clock_wait(struct sim_clock *self, struct ar_backing_ticket ticket);
/* The stream waits for the fence and the host does not. Returns how much later its next work can
 * start. */
uint64_t sim_clock_stream_wait_ticket(struct sim_clock *self, uint32_t stream,
                                      struct ar_backing_ticket ticket);
/* Whether the driver has to be asked: for a fence where there is work that is not known to be
 * done and has none yet; about a ticket where that is not known to be done. */
bool sim_clock_fence_is_new(const struct sim_clock *self, uint32_t stream);
bool sim_clock_is_open(struct sim_clock *self, struct ar_backing_ticket ticket);

/* Counts one more piece of work on the stream, which takes no time, and returns its
 * sequence: a stream that owns a block counts as using it. */
uint64_t sim_clock_touch(struct sim_clock *self, uint32_t stream);
/* The stream's sequence and tail now. */
struct sim_moment sim_clock_here(struct sim_clock *self, uint32_t stream);

/* Whether all future work of `later` comes after that sequence of `earlier`. */
bool sim_clock_ordered(const struct sim_clock *self, uint32_t earlier, uint64_t sequence,
                       uint32_t later);
/* Makes it so: the stream waits. Returns how much later its next work can start. */
uint64_t sim_clock_order(struct sim_clock *self, uint32_t earlier, uint64_t sequence,
                         uint64_t time_ns, uint32_t later);

/* Whether the host has found that work done. */
static inline bool sim_clock_known(const struct sim_clock *self, uint32_t stream, uint64_t sequence)
{
    return stream >= self->stream_count || sequence <= self->streams[stream].known;
}

static inline bool sim_clock_busy(const struct sim_clock *self)
{
    return self->latest_ns > self->now_ns;
}

static inline uint64_t sim_clock_idle_at(const struct sim_clock *self)
{
    return sim_clock_busy(self) ? self->latest_ns : self->now_ns;
}

#endif
