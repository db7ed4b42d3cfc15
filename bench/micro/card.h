/* A device whose calls take time, for the card's sections of the micro-benchmarks. Times are of the
 * device's clock: the host's on a card, modelled on a simulated device.
 *
 * `busy`: a kernel runs on stream CARD_BUSY_STREAM whenever a call is timed. When it has ended, the
 * next is queued outside of the timed part. A call that waits for the device therefore waits up to
 * CARD_KERNEL_NS, which is part of its time and reported separately as wait_ns. */
#ifndef BENCH_MICRO_CARD_H
#define BENCH_MICRO_CARD_H

#include "bench/micro/grid.h"
#include "sim/device.h"

enum { CARD_STREAM = 0, CARD_BUSY_STREAM = 1, CARD_OTHER_STREAM = 2 };
#define CARD_KERNEL_NS UINT64_C(2000000)
#define CARD_BUDGET_NS (20 * UINT64_C(1000000))
#define CARD_LEAST     5u

struct timed_card {
    struct ar_device *device;
    bool busy;
    bool queued; /* `kernel` is a fence after the last kernel */
    struct ar_backing_ticket kernel;
    uint64_t clock_ns; /* of reading the device's clock twice */
    uint64_t begun_ns; /* of the timed call */
    /* Of the device's counters: at timed_card_start, what the last timed call added, and all of
     * them. */
    struct card_sums {
        uint64_t driver_ns, stall_ns, calls;
    } before, last, all;
};

/* Prepares one benchmark. No work may be pending on the device. */
void timed_card_begin(struct timed_card *card, struct ar_device *device, bool busy);
/* Before each call: queues a kernel if one must run, and starts the time. */
void timed_card_start(struct timed_card *card);
/* After it: returns the time since timed_card_start, less the clock's. `last` has the device's own
 * counts of the driver calls in between, without its bookkeeping. */
uint64_t timed_card_stop(struct timed_card *card);
/* Waits for the device and reports the samples, each of `operations`, with driver_ns, wait_ns and
 * driver_calls of a sample. */
void timed_card_report(struct timed_card *card, struct samples *samples, struct micro_state *state,
                       uint64_t operations);
/* Ends the benchmark with a sentence: that of the device, of the policy, or what the status
 * means. */
void timed_card_fail(struct timed_card *card, struct micro_state *state, enum ar_status status,
                     const char *sentence);

#endif
