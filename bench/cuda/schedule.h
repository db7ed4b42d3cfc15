/* Recorded gaps between events, on a real clock.
 *
 * 1. A gap is due when the ones before it are over: `due` moves by the gap, and the host spins
 *    until it is there.
 * 2. What the driver takes between two gaps, its calls and all waits for the device, moves `due`
 *    too, so that each gap passes whole behind it, as on the simulated device.
 * 3. The engine's own work does not: it is made up for in the gap that follows. What does not
 *    fit there is made up for in later ones. */
#ifndef BENCH_CUDA_SCHEDULE_H
#define BENCH_CUDA_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

struct cuda_schedule {
    bool begun;
    uint64_t due_ns;
    uint64_t taken_ns; /* by the driver, up to the last gap */
};

/* A gap begins: when it is to end. `taken_ns` is all that the driver took since open. */
static inline uint64_t cuda_schedule_gap(struct cuda_schedule *self, uint64_t now_ns,
                                         uint64_t taken_ns, uint64_t gap_ns)
{
    if (self->begun)
        self->due_ns += taken_ns - self->taken_ns;
    else
        self->due_ns = now_ns;
    self->begun = true;
    self->taken_ns = taken_ns;
    self->due_ns += gap_ns;
    return self->due_ns;
}

#endif
