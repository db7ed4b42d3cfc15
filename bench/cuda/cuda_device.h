/* A real card through the CUDA driver: `cuda:ordinal=0,capacity=24GiB` in a table of kinds. */
#pragma once

#include "sim/device.h"

extern const struct ar_device_kind cuda_device_kind;

struct cuda_options {
    uint64_t ordinal;
    uint64_t capacity_bytes; /* 0: all that the card has free */
    const char *record_addresses, *record_ranges;
    int matmul; /* enum kernels_matmul */
    /* Inside another program: memory only, on the program's streams, up to what the driver gives.
     * There are no kernels and no times. */
    bool embedded;
    /* Other processes start and end: uses what the driver gives, and queries the bytes of other
     * processes again. */
    bool shared;
};

/* Called by the kind's hooks in a build that has cuda.h. MISSING: no driver or no such card.
 * INVALID: options that the card cannot meet. */
enum ar_status cuda_device_open(const struct cuda_options *options, struct ar_device **out,
                                struct ar_error *error);
bool cuda_device_available(char *text, size_t text_bytes);

/* A thread other than the one that opened the device must call this before it uses the device. One
 * thread at a time. */
void cuda_device_enter(struct ar_device *device);

/* The same in every build. A program with devices on several cards calls it before it uses another
 * one. */
void cuda_kind_enter(struct ar_device *device);

/* For an embedded device: assigns the ordinal to a stream of the program, a CUstream, NULL for the
 * default one. False: no host memory, or too many streams. */
bool cuda_device_adopt_stream(struct ar_device *device, uint32_t ordinal, void *stream);

/* Recorded gaps between events, on a real clock.
 *
 * 1. A gap starts when the earlier ones end: `due` moves by the gap, and the host spins until then.
 * 2. The driver's time between two gaps (calls and waits for the device) moves `due` too, so each
 *    gap passes in full after it, as on the simulated device.
 * 3. The engine's own work does not move it: the next gaps are shortened by it. */

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
