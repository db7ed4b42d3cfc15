#include "sim/advise/certain.h"

#include <stdlib.h>
#include <string.h>

#include "allocators/base/size.h"
#include "allocators/policies/torch/torch.h"

/* The defaults of the settings large_segment_size_mb and max_non_split_rounding_mb. */
#define TORCH_LARGE_SEGMENT_BYTES (20 * AR_MIB)

/* The bounds of segments under one setting. */
struct bounds {
    uint64_t split_bytes;   /* max_split_size_mb */
    uint64_t divided_bytes; /* the largest segment that is divided */
};

/* torch with max_split_size_mb and no other option, which would round sizes or release less. */
static bool is_known(const struct ar_spec *policy, uint64_t *split_bytes)
{
    const struct ar_spec_link *link = &policy->links[policy->link_count - 1];
    struct ar_error error;
    const char *value = ar_spec_link_value(link, "max_split_size_mb");
    if (policy->link_count != 1 || strcmp(link->name, "torch") != 0 || link->pair_count != 1 ||
        !value || ar_count_parse(value, split_bytes, &error) || *split_bytes >= UINT32_MAX)
        return false;
    *split_bytes *= AR_MIB;
    return true;
}

/* Whether the events are only requests and frees of one stream in the common pool, where each free
 * is completed when it is requested. */
static bool is_plain(const struct lean *lean)
{
    if (lean->info.has_split_frees || lean->info.has_uses)
        return false;
    for (size_t i = 0; i < lean->count; i++) {
        const struct trace_event *event = &lean->events[i];
        bool request = event->kind == TRACE_ALLOC || event->kind == TRACE_PROBE;
        if (event->kind == TRACE_USE || event->kind == TRACE_OUTSIDE ||
            (request && (event->attributes || event->stream)))
            return false;
    }
    return true;
}

static uint64_t rounded(const struct trace_event *event)
{
    return ar_size_round_up(event->value, TORCH_MIN_BLOCK_BYTES);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static struct bounds find_bounds(const struct lean *lean, uint64_t split_bytes)
{
    struct bounds bounds = {split_bytes, TORCH_LARGE_SEGMENT_BYTES};
    for (size_t i = 0; i < lean->count; i++) {
        const struct trace_event *event = &lean->events[i];
        if ((event->kind == TRACE_ALLOC || event->kind == TRACE_PROBE) &&
            rounded(event) < split_bytes)
            bounds.divided_bytes = larger(
                bounds.divided_bytes, ar_size_round_up(rounded(event), TORCH_ROUND_LARGE_BYTES));
    }
    return bounds;
}

/* The largest segment that a block for `bytes` can be in. */
static uint64_t segment_bound(const struct bounds *bounds, uint64_t bytes)
{
    if (bytes <= TORCH_SMALL_BYTES)
        return bytes ? TORCH_SMALL_SEGMENT_BYTES : 0;
    if (bytes < bounds->split_bytes)
        return bounds->divided_bytes;
    return larger(bounds->divided_bytes,
                  ar_size_round_up(bytes + TORCH_LARGE_SEGMENT_BYTES, TORCH_ROUND_LARGE_BYTES));
}

uint64_t certain_bytes(const struct lean *lean, const struct ar_spec *policy)
{
    uint64_t split_bytes, live = 0, most = 0;
    if (!lean || !lean->events || !is_known(policy, &split_bytes) || !is_plain(lean))
        return UINT64_MAX;
    struct bounds bounds = find_bounds(lean, split_bytes);
    uint64_t *of_slot = calloc((size_t)lean->info.slots + 1, sizeof *of_slot);
    if (!of_slot)
        return UINT64_MAX;
    for (size_t i = 0; i < lean->count; i++) {
        const struct trace_event *event = &lean->events[i];
        if (event->kind == TRACE_ALLOC || event->kind == TRACE_PROBE) {
            of_slot[event->slot] = segment_bound(&bounds, rounded(event));
            live += of_slot[event->slot];
            most = larger(most, live);
        } else if (event->kind == TRACE_FREE_COMPLETED || event->kind == TRACE_FREE_REQUESTED) {
            live -= of_slot[event->slot];
            of_slot[event->slot] = 0;
        }
    }
    free(of_slot);
    return most;
}
