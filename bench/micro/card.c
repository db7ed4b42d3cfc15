#include "bench/micro/card.h"

#include <stdio.h>

#include "sim/replay/steps.h"
#include "workloads/trace/event.h"

enum { CLOCK_TRIALS = 101 };

static struct card_sums sums_of(const struct ar_device *device)
{
    return (struct card_sums){.driver_ns = device->counters.driver_ns,
                              .stall_ns = device->counters.stall_ns,
                              .calls = steps_driver_calls(device)};
}

/* The least of many: an interrupt only adds. */
static uint64_t clock_cost(struct ar_device *device)
{
    uint64_t least_ns = UINT64_MAX;
    for (int i = 0; i < CLOCK_TRIALS; i++) {
        uint64_t begun_ns = device->ops->now(device);
        uint64_t passed_ns = device->ops->now(device) - begun_ns;
        if (passed_ns < least_ns)
            least_ns = passed_ns;
    }
    return least_ns;
}

void card_begin(struct card *card, struct ar_device *device, bool busy)
{
    device->ops->sync(device, TRACE_NO_STREAM);
    *card = (struct card){.device = device, .busy = busy, .clock_ns = clock_cost(device)};
}

void card_start(struct card *card)
{
    struct ar_device *device = card->device;
    if (card->busy && (!card->queued || ar_backing_done(device->backing, card->kernel))) {
        device->ops->kernel(device, CARD_BUSY_STREAM, CARD_KERNEL_NS);
        card->kernel = ar_backing_fence(device->backing, CARD_BUSY_STREAM);
        card->queued = true;
    }
    card->before = sums_of(device);
    card->begun_ns = device->ops->now(device);
}

uint64_t card_stop(struct card *card)
{
    uint64_t passed_ns = card->device->ops->now(card->device) - card->begun_ns;
    struct card_sums after = sums_of(card->device);
    card->last = (struct card_sums){.driver_ns = after.driver_ns - card->before.driver_ns,
                                    .stall_ns = after.stall_ns - card->before.stall_ns,
                                    .calls = after.calls - card->before.calls};
    card->all.driver_ns += card->last.driver_ns;
    card->all.stall_ns += card->last.stall_ns;
    card->all.calls += card->last.calls;
    return passed_ns > card->clock_ns ? passed_ns - card->clock_ns : 0;
}

void card_report(struct card *card, struct samples *samples, struct micro_state *state,
                 uint64_t operations)
{
    struct ar_device *device = card->device;
    double count = (double)samples->count;
    device->ops->sync(device, TRACE_NO_STREAM);
    samples_report(samples, state, operations);
    micro_counter(state, "driver_ns", (double)card->all.driver_ns / count);
    micro_counter(state, "wait_ns", (double)card->all.stall_ns / count);
    micro_counter(state, "driver_calls", (double)card->all.calls / count);
}

void card_fail(struct card *card, struct micro_state *state, enum ar_status status,
               const char *sentence)
{
    char text[320];
    if (!sentence || !*sentence)
        sentence = card->device->ops->problem(card->device);
    snprintf(text, sizeof text, "%s%s%s", ar_status_meaning(status), *sentence ? ": " : "",
             sentence);
    card->device->ops->sync(card->device, TRACE_NO_STREAM);
    micro_fail(state, text);
}
