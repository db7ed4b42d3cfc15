/* What the policies that plan tell of themselves. */
#include <inttypes.h>
#include <stdio.h>

#include "allocators/policies/planned/planned.h"

#define CACHE 0

void planned_stats(const struct ar_policy *base, struct ar_policy_stats *out)
{
    const struct planned *self = (const struct planned *)base;
    heap_stats(&self->heap, out);
    out->largest_free_block_bytes = heap_largest(&self->heap, CACHE);
    out->stranded_by_stream_bytes = 0;
    out->count.flushes = self->flushes;
    out->count.retries = self->retries;
    out->count.failures = self->failures;
}

/* Idle space of the arena serves no request that is not planned. */
uint64_t planned_servable(const struct ar_policy *base, enum ar_policy_effort effort)
{
    const struct planned *self = (const struct planned *)base;
    uint64_t largest = heap_largest(&self->heap, CACHE);
    uint64_t releasable = base->totals.releasable_bytes;
    return effort >= AR_POLICY_EFFORT_TRIM && releasable > largest ? releasable : largest;
}

void planned_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument)
{
    heap_walk(&((const struct planned *)base)->heap, false, visit, argument);
}

/* Each planned block against its piece. */
static bool has_its_piece(void *argument, const struct ar_range_node *node)
{
    const struct planned *self = argument;
    const struct ar_span *span = &self->heap.spans.at[node->extra];
    return span->used && span->address == node->address && span->bytes == node->bytes &&
           node->address >= self->arena_address &&
           node->address - self->arena_address + node->bytes <= self->plan_bytes;
}

enum ar_status planned_validate(const struct ar_policy *base, struct ar_error *error)
{
    const struct planned *self = (const struct planned *)base;
    uint64_t count;
    if (!ar_range_tree_check(&self->live, self->by_address, AR_RANGE_BY_ADDRESS, &count) ||
        !ar_range_tree_walk(&self->live, self->by_address, has_its_piece, (void *)self))
        return ar_error_set(error, AR_CORRUPT,
                            "policy %s: a planned block is not the piece that it should be",
                            base->ops->name);
    if (count > base->totals.live_blocks || (count && !self->has_arena))
        return ar_error_set(error, AR_CORRUPT,
                            "policy %s: %" PRIu64 " planned blocks, of which some are not there",
                            base->ops->name, count);
    return heap_validate(&self->heap, base->ops->name, error);
}

bool planned_report(const struct ar_policy *base, size_t index, char *name, size_t name_bytes,
                    uint64_t *value)
{
    const struct planned *self = (const struct planned *)base;
    const struct {
        const char *name;
        uint64_t value;
    } figures[] = {
        {"plan_bytes", self->plan_bytes},
        {"planned_requests", self->planned_requests},
        {"planned_bytes", self->planned_bytes},
        {"fallback_requests", self->fallback_requests},
        {"fallback_bytes", self->fallback_bytes},
        {"fallbacks_of_taken_places", self->taken_requests},
    };
    if (index >= sizeof figures / sizeof figures[0])
        return false;
    snprintf(name, name_bytes, "%s", figures[index].name);
    *value = figures[index].value;
    return true;
}
