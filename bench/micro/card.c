#include "bench/micro/card.h"

#include <stdio.h>

#include "workloads/trace/event.h"

enum { CLOCK_TRIALS = 101 };

static uint64_t calls_of(const struct device *device)
{
    uint64_t calls = 0;
    for (int i = 0; i < DEVICE_CALL_COUNT; i++)
        if (i != DEVICE_CALL_event)
            calls += device->counters.calls[i];
    return calls;
}

/* The least of many: an interrupt only adds. */
static uint64_t clock_cost(struct device *device)
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

void card_begin(struct card *card, struct device *device, bool busy)
{
    device->ops->sync(device, TRACE_NO_STREAM);
    *card = (struct card){.device = device,
                          .busy = busy,
                          .clock_ns = clock_cost(device),
                          .driver_ns = device->counters.driver_ns,
                          .stall_ns = device->counters.stall_ns,
                          .calls = calls_of(device)};
}

void card_start(struct card *card)
{
    struct device *device = card->device;
    if (card->busy && (!card->queued || backing_done(device->backing, card->kernel))) {
        device->ops->kernel(device, CARD_BUSY_STREAM, CARD_KERNEL_NS);
        card->kernel = backing_fence(device->backing, CARD_BUSY_STREAM);
        card->queued = true;
    }
    card->begun_ns = device->ops->now(device);
}

uint64_t card_stop(struct card *card)
{
    uint64_t passed_ns = card->device->ops->now(card->device) - card->begun_ns;
    return passed_ns > card->clock_ns ? passed_ns - card->clock_ns : 0;
}

void card_report(struct card *card, struct samples *samples, struct micro_state *state,
                 uint64_t operations)
{
    struct device *device = card->device;
    double count = (double)samples->count;
    uint64_t driver_ns = device->counters.driver_ns - card->driver_ns;
    uint64_t stall_ns = device->counters.stall_ns - card->stall_ns;
    uint64_t calls = calls_of(device) - card->calls;
    device->ops->sync(device, TRACE_NO_STREAM);
    samples_report(samples, state, operations);
    micro_counter(state, "driver_ns", (double)driver_ns / count);
    micro_counter(state, "wait_ns", (double)stall_ns / count);
    micro_counter(state, "driver_calls", (double)calls / count);
}

void card_fail(struct card *card, struct micro_state *state, enum status status,
               const char *sentence)
{
    char text[320];
    if (!sentence || !*sentence)
        sentence = card->device->ops->problem(card->device);
    snprintf(text, sizeof text, "%s%s%s", status_meaning(status), *sentence ? ": " : "", sentence);
    card->device->ops->sync(card->device, TRACE_NO_STREAM);
    micro_fail(state, text);
}
