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
#ifndef SIM_SIM_DEVICE_VECTOR_CLOCK_H
#define SIM_SIM_DEVICE_VECTOR_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

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

#endif
