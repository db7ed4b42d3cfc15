/* A device whose calls take time, as the card's sections of the micro-benchmarks use it. Times are
 * those of the device's own clock: on a card the host's, on a simulated device modelled.
 *
 * `busy`: a kernel runs on stream CARD_BUSY_STREAM whenever a call is timed; it is queued anew,
 * outside of what is timed, when the last one is found done. A call that waits for the device
 * therefore waits up to CARD_KERNEL_NS, which is part of its time and told apart as wait_ns. */
#ifndef BENCH_MICRO_CARD_H
#define BENCH_MICRO_CARD_H

#include "bench/micro/grid.h"
#include "sim/device.h"

enum { CARD_STREAM = 0, CARD_BUSY_STREAM = 1, CARD_OTHER_STREAM = 2 };
#define CARD_KERNEL_NS UINT64_C(2000000)
#define CARD_BUDGET_NS (20 * UINT64_C(1000000))
#define CARD_LEAST     5u

struct card {
    struct ar_device *device;
    bool busy;
    bool queued; /* `kernel` is a fence behind the last kernel */
    struct ar_backing_ticket kernel;
    uint64_t clock_ns; /* of reading the device's clock twice */
    uint64_t begun_ns; /* of the call that is timed */
    /* Of the device's counters: at card_start, what the last timed call added, and all of them. */
    struct card_sums {
        uint64_t driver_ns, stall_ns, calls;
    } before, last, all;
};

/* Ready for one benchmark: nothing runs on the device. */
void card_begin(struct card *card, struct ar_device *device, bool busy);
/* Before each call: sees to it that a kernel runs, if one is to, and starts the time. */
void card_start(struct card *card);
/* After it: the time since card_start, less the clock's. What the device itself counted for the
 * driver's calls in between, without its own records, is in `last`. */
uint64_t card_stop(struct card *card);
/* Waits for the device and reports the samples, each of `operations`, with driver_ns, wait_ns and
 * driver_calls of a sample. */
void card_report(struct card *card, struct samples *samples, struct micro_state *state,
                 uint64_t operations);
/* Ends the benchmark with a sentence: that of the device, of the policy, or what the status
 * means. */
void card_fail(struct card *card, struct micro_state *state, enum ar_status status,
               const char *sentence);

#endif
