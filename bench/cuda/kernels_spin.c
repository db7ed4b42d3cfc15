/* Kernels of a given length: one thread that waits by a clock of the card.
 *
 *  1. Which clock. %globaltimer runs in nanoseconds whatever the card's frequency, but in steps:
 *     32 ns on some cards, about 1000 ns on others. Where a step is short it is taken, else the
 *     cycle counter, whose rate is then measured (and moves with the frequency).
 *  2. Overhead. Kernels that follow each other in a stream have a gap between them, and a start
 *     and an end: batches of two lengths, queued behind a kernel that holds the stream so that
 *     the host is ahead, are measured with events. From the two periods follow the overhead of
 *     one kernel and, for cycles, their rate. The median of several rounds counts.
 *  3. Kernels that wait for nothing follow each other no faster than the card starts them, which
 *     may be slower than the overhead seen behind longer ones: a third batch tells the least
 *     length that can be had.
 *  4. All that was from a full queue. Replays launch while other kernels run, which costs the card
 *     a little more for each: a last batch without the hold tells how much.
 *  5. A kernel of d ns waits for d - overhead. What is shorter than the least length, and what
 *     whole steps of the clock leave over, is owed to the next kernel of the stream. */
#include "bench/cuda/kernels_state.h"

#include <math.h>
#include <stdlib.h>

enum {
    ROUNDS = 5,
    EMPTY_COUNT = 256,
    SHORT_COUNT = 128,
    SHORT_UNITS = 10016, /* whole steps of 32 */
    LONG_COUNT = 64,
    LONG_UNITS = 100000,
    USUAL_COUNT = 256,
    HOLD_UNITS = 3000000,
    WARM_UNITS = 30000000, /* a card that was idle runs slower at first */
    TIMER_CHANGES = 256,
};

#define TIMER_STEP_MOST_NS 100.0
#define LEAST_MARGIN       1.1 /* so that the card's own pace is not what counts */

static enum ar_status spin(struct kernels *self, uint64_t units, CUstream stream)
{
    void *arguments[] = {&units};
    return kernels_launch(self, self->spin.by_cycles ? KERNEL_spin_clock : KERNEL_spin_timer,
                          (struct kernel_grid){1, 1, 1}, stream, arguments, 0);
}

static enum ar_status choose_clock(struct kernels *self)
{
    const struct cuda_api *api = self->api;
    struct kernels_timer record = {0};
    uint64_t wanted = TIMER_CHANGES;
    void *arguments[] = {&wanted};
    enum ar_status status = kernels_launch(self, KERNEL_time_timer, (struct kernel_grid){1, 1, 1},
                                           self->stream, arguments, 0);
    if (status == AR_OK)
        status = kernels_result(
            self, api->memcpy_dtoh_async(&record, self->timer, sizeof record, self->stream),
            "cuMemcpyDtoHAsync", sizeof record);
    if (status == AR_OK)
        status = kernels_result(self, api->stream_synchronize(self->stream), "cuStreamSynchronize",
                                sizeof record);
    double mean_ns =
        record.changes ? (double)record.total_ns / (double)record.changes : (double)INFINITY;
    self->spin.by_cycles = mean_ns > TIMER_STEP_MOST_NS;
    self->spin.timer_step_ns = record.changes ? (double)record.least_ns : 0;
    self->spin.step_units = self->spin.by_cycles ? 1 : (double)record.least_ns;
    return status;
}

/* Nanoseconds from one kernel of `units` to the next, of `count` behind each other. */
static enum ar_status period(struct kernels *self, const CUevent event[2], bool hold,
                             unsigned count, uint64_t units, double *out)
{
    const struct cuda_api *api = self->api;
    float milliseconds = 0;
    enum ar_status status = hold ? spin(self, HOLD_UNITS, self->stream) : AR_OK;
    if (status == AR_OK)
        status =
            kernels_result(self, api->event_record(event[0], self->stream), "cuEventRecord", 0);
    for (unsigned i = 0; i < count && status == AR_OK; i++)
        status = spin(self, units, self->stream);
    if (status == AR_OK)
        status =
            kernels_result(self, api->event_record(event[1], self->stream), "cuEventRecord", 0);
    if (status == AR_OK)
        status = kernels_result(self, api->event_synchronize(event[1]), "cuEventSynchronize", 0);
    if (status == AR_OK)
        status = kernels_result(self, api->event_elapsed_time(&milliseconds, event[0], event[1]),
                                "cuEventElapsedTime", 0);
    *out = (double)milliseconds * 1e6 / count;
    return status;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof *values, by_value);
    return values[ROUNDS / 2];
}

static enum ar_status measure(struct kernels *self, const CUevent event[2])
{
    double empties[ROUNDS] = {0}, shorts[ROUNDS] = {0}; /* ns */
    double longs[ROUNDS] = {0}, usual[ROUNDS] = {0};
    enum ar_status status = spin(self, WARM_UNITS, self->stream);
    for (int i = 0; i < ROUNDS && status == AR_OK; i++) {
        status = period(self, event, true, EMPTY_COUNT, 0, &empties[i]);
        if (status == AR_OK)
            status = period(self, event, true, SHORT_COUNT, SHORT_UNITS, &shorts[i]);
        if (status == AR_OK)
            status = period(self, event, false, USUAL_COUNT, SHORT_UNITS, &usual[i]);
        if (status == AR_OK)
            status = period(self, event, true, LONG_COUNT, LONG_UNITS, &longs[i]);
    }
    if (status != AR_OK)
        return status;
    double brief = median(shorts), lasting = median(longs);
    double ns_per_unit = 1;
    if (self->spin.by_cycles && lasting > brief)
        ns_per_unit = (lasting - brief) / (LONG_UNITS - SHORT_UNITS);
    double overhead = fmax(brief, median(usual)) - ns_per_unit * SHORT_UNITS;
    self->spin.units_per_ns = 1 / ns_per_unit;
    self->spin.overhead_ns = overhead > 0 ? overhead : 0;
    self->spin.least_ns = fmax(self->spin.overhead_ns, median(empties) * LEAST_MARGIN);
    return AR_OK;
}

enum ar_status spin_calibrate(struct kernels *self)
{
    const struct cuda_api *api = self->api;
    CUevent event[2] = {NULL, NULL};
    enum ar_status status = choose_clock(self);
    for (int i = 0; i < 2 && status == AR_OK; i++)
        status = kernels_result(self, api->event_create(&event[i], CU_EVENT_DEFAULT),
                                "cuEventCreate", 0);
    if (status == AR_OK)
        status = measure(self, event);
    for (int i = 0; i < 2; i++)
        if (event[i])
            api->event_destroy(event[i]);
    return status;
}

enum ar_status kernels_spin(struct kernels *self, double *owed_ns, uint64_t nanoseconds,
                            CUstream stream)
{
    const struct spin *how = &self->spin;
    *owed_ns += (double)nanoseconds;
    if (*owed_ns < how->least_ns)
        return AR_OK;
    double wait_ns = *owed_ns - how->overhead_ns;
    double steps = floor(wait_ns * how->units_per_ns / how->step_units + 0.5);
    double units = steps * how->step_units;
    enum ar_status status = spin(self, (uint64_t)units, stream);
    if (status == AR_OK)
        *owed_ns = wait_ns - units / how->units_per_ns;
    return status;
}
