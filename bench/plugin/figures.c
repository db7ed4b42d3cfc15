/* What a card's figures are now, and the limit that a program sets. */
#include "bench/plugin/card_parts.h"

void card_limit_inside(struct card *card, double fraction)
{
    double total_bytes = (double)card->memory.device->props.total_bytes;
    double share = fraction < 1 ? fraction : 1;
    driver_memory_limit(&card->memory, (uint64_t)(share * total_bytes));
}

void card_limit(struct card *card, double fraction)
{
    if (!(fraction > 0))
        return;
    card_enter(card);
    card_limit_inside(card, fraction);
    card_leave(card);
}

bool card_has(struct card *card, uint64_t address)
{
    card_enter(card);
    bool found = address_map_find(&card->map, address) != NULL;
    card_leave(card);
    return found;
}

bool card_segment(struct card *card, uint64_t address, uint64_t *start, uint64_t *bytes)
{
    struct ar_device_segment segment;
    card_enter(card);
    struct ar_device *device = card->memory.device;
    bool found = device->ops->segment_of(device, address, &segment);
    card_leave(card);
    if (found) {
        *start = segment.address;
        *bytes = segment.bytes;
    }
    return found;
}

void card_figures(struct card *card, struct card_figures *out)
{
    card_enter(card);
    const struct ar_policy_totals *totals = &card->policy->totals;
    const struct ar_device_counters *counters = &card->memory.device->counters;
    *out = card->figures;
    out->live_bytes = totals->live_bytes;
    out->granted_bytes = totals->granted_bytes;
    out->reserved_bytes = totals->reserved_bytes;
    out->physical_bytes = counters->physical_bytes;
    out->peak_physical_bytes = counters->peak_physical_bytes;
    for (int i = 0; i < AR_DEVICE_CALL_COUNT; i++)
        out->driver_calls += counters->calls[i];
    out->driver_ns = counters->driver_ns;
    out->stall_ns = counters->stall_ns;
    out->metadata_bytes = card->host.now_bytes;
    card_leave(card);
}

void card_reset_peaks(struct card *card)
{
    card_enter(card);
    const struct ar_policy_totals *totals = &card->policy->totals;
    card->figures.peak_live_bytes = totals->live_bytes;
    card->figures.peak_granted_bytes = totals->granted_bytes;
    card->figures.peak_reserved_bytes = totals->reserved_bytes;
    driver_memory_reset_peak(&card->memory);
    card_leave(card);
}
