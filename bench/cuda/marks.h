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
#ifndef BENCH_CUDA_MARKS_H
#define BENCH_CUDA_MARKS_H

#include <stdint.h>

#include "bench/cuda/streams.h"
#include "sim/device.h"

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
    uint64_t waiting_first, waiting_count, waiting_room;
};

/* False: the device has failed. */
bool cuda_marks_open(struct cuda_device *device);
void cuda_marks_close(struct cuda_device *device);
uint64_t cuda_mark(struct ar_device *device);
uint64_t cuda_mark_ns(struct ar_device *device, uint64_t mark);

#endif
