/* What a card's figures are now, and the limit that a program sets. */
#include <inttypes.h>
#include <stdio.h>

#include "bench/plugin/card_parts.h"
#include "bench/plugin/plugin.h"

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
    ar_policy_reset_peaks(card->policy);
    card_leave(card);
}

/* ---- statistics in PyTorch's names ---------------------------------------------------------- */

struct lines {
    char *text;
    size_t room, bytes;
};

static void put(struct lines *lines, const char *name, uint64_t value)
{
    char line[128];
    size_t length = (size_t)snprintf(line, sizeof line, "%s %" PRIu64 "\n", name, value);
    for (size_t i = 0; i < length; i++)
        if (lines->bytes + i + 1 < lines->room)
            lines->text[lines->bytes + i] = line[i];
    lines->bytes += length;
}

static void put_four(struct lines *lines, const char *name, uint64_t current, uint64_t peak,
                     uint64_t added)
{
    const struct {
        const char *field;
        uint64_t value;
    } fields[] = {
        {"current", current}, {"peak", peak}, {"allocated", added}, {"freed", added - current}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        char text[96];
        snprintf(text, sizeof text, "%s.all.%s", name, fields[i].field);
        put(lines, text, fields[i].value);
    }
}

/* Of a policy without a report: sums over all requests are known of their number only. */
static void put_known(struct lines *lines, const struct card *card)
{
    struct ar_policy_stats stats;
    ar_policy_stats(card->policy, &stats);
    const struct ar_policy_totals *totals = &stats.totals;
    const uint64_t *calls = card->memory.device->counters.calls;
    const uint64_t free_bytes = ar_policy_free_bytes(totals);
    const uint64_t active_bytes = totals->granted_bytes + totals->pending_bytes;
    const uint64_t stranded_bytes =
        free_bytes > totals->releasable_bytes ? free_bytes - totals->releasable_bytes : 0;
    const uint64_t segments = stats.count.segments_made - stats.count.segments_freed;
    put_four(lines, "allocation", totals->live_blocks, totals->live_blocks,
             card->figures.requests - card->figures.failed);
    put_four(lines, "active", totals->live_blocks, totals->live_blocks,
             card->figures.requests - card->figures.failed);
    put_four(lines, "segment", segments, segments, stats.count.segments_made);
    put_four(lines, "allocated_bytes", totals->granted_bytes, card->figures.peak_granted_bytes,
             totals->granted_bytes);
    put_four(lines, "active_bytes", active_bytes,
             active_bytes > card->figures.peak_granted_bytes ? active_bytes
                                                             : card->figures.peak_granted_bytes,
             active_bytes);
    put_four(lines, "requested_bytes", totals->live_bytes, card->figures.peak_live_bytes,
             totals->live_bytes);
    put_four(lines, "reserved_bytes", totals->reserved_bytes, card->figures.peak_reserved_bytes,
             totals->reserved_bytes);
    put_four(lines, "inactive_split_bytes", stranded_bytes, stranded_bytes, stranded_bytes);
    put(lines, "num_alloc_retries", stats.count.retries);
    put(lines, "num_ooms", stats.count.failures);
    put(lines, "num_device_alloc", calls[AR_DEVICE_CALL_alloc] + calls[AR_DEVICE_CALL_create]);
    put(lines, "num_device_free", calls[AR_DEVICE_CALL_free] + calls[AR_DEVICE_CALL_destroy]);
}

size_t card_statistics(struct card *card, char *text, size_t text_bytes)
{
    struct lines lines = {text, text_bytes, 0};
    char name[96];
    uint64_t value;
    card_enter(card);
    if (ar_policy_report(card->policy, 0, name, sizeof name, &value))
        for (size_t i = 0; ar_policy_report(card->policy, i, name, sizeof name, &value); i++)
            put(&lines, name, value);
    else
        put_known(&lines, card);
    card_leave(card);
    if (text_bytes)
        text[lines.bytes < text_bytes ? lines.bytes : text_bytes - 1] = '\0';
    return lines.bytes + 1;
}

struct collection {
    const struct card *card;
    struct allocrig_range *out;
    size_t room, count;
};

static bool collect(void *argument, const struct ar_policy_range *range)
{
    struct collection *self = argument;
    const struct card *card = self->card;
    const size_t at = self->count++;
    if (at >= self->room)
        return true;
    self->out[at] = (struct allocrig_range){
        .address = range->address,
        .bytes = range->bytes,
        .requested_bytes = range->requested_bytes,
        .segment_address = range->segment_address,
        .stream = range->stream < card->stream_count ? card->streams[range->stream] : NULL,
        .state = range->state,
    };
    if (range->pool && range->pool <= card->pool_count) {
        self->out[at].pool[0] = card->pools[range->pool - 1].id.first;
        self->out[at].pool[1] = card->pools[range->pool - 1].id.second;
    }
    return true;
}

size_t card_ranges(struct card *card, struct allocrig_range *out, size_t room)
{
    struct collection collection = {card, out, room, 0};
    card_enter(card);
    ar_policy_walk(card->policy, collect, &collection);
    card_leave(card);
    return collection.count;
}
