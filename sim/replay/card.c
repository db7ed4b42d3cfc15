#include "sim/replay/card.h"

#define STEPS_ALWAYS 4u

static void ask(struct card *card, struct ar_device *device)
{
    uint64_t card_bytes = device->ops->card_bytes(device);
    uint64_t charged_bytes = device->counters.physical_bytes;
    uint64_t outside_bytes = card_bytes > charged_bytes ? card_bytes - charged_bytes : 0;
    card->seen_bytes = device->counters.peak_physical_bytes;
    if (card_bytes > card->peak_bytes)
        card->peak_bytes = card_bytes;
    if (outside_bytes > card->peak_outside_bytes)
        card->peak_outside_bytes = outside_bytes;
}

void card_end_step(struct card *card, struct ar_device *device)
{
    if (!device->ops->card_bytes || device->failed)
        return;
    if (card->steps++ < STEPS_ALWAYS || device->counters.peak_physical_bytes > card->seen_bytes)
        ask(card, device);
}

void card_report(struct card *card, struct ar_device *device, struct metric_values *metrics)
{
    if (!device->ops->card_bytes || device->failed)
        return;
    ask(card, device);
    metric_set(metrics, METRIC_peak_card_bytes, card->peak_bytes);
    metric_set(metrics, METRIC_peak_outside_bytes, card->peak_outside_bytes);
}
