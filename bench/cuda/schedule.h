/* Recorded gaps between events, on a real clock.
 *
 * 1. A gap starts when the earlier ones end: `due` moves by the gap, and the host spins until then.
 * 2. The driver's time between two gaps (calls and waits for the device) moves `due` too, so each
 *    gap passes in full after it, as on the simulated device.
 * 3. The engine's own work does not move it: the next gaps are shortened by it. */
#ifndef BENCH_CUDA_SCHEDULE_H
#define BENCH_CUDA_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

struct cuda_schedule {
    bool begun;
    uint64_t due_ns;
    uint64_t taken_ns; /* by the driver, up to the last gap */
};

/* Begins a gap and returns its end. `taken_ns` is the driver's total time since open. */
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
