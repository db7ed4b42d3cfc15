/* The fits seen from outside: walk lists every range, validate checks what fit.c relies on. */
#include "allocators/policies/fit/fit.h"

#include <inttypes.h>

void fit_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument)
{
    const struct fit *self = (const struct fit *)base;
    const struct ar_range_node *nodes = self->ranges.nodes;
    uint64_t segment = self->first ? nodes[self->first].address : 0;
    for (uint32_t at = self->first; at; at = nodes[at].next) {
        struct ar_policy_range range = {
            .address = nodes[at].address,
            .bytes = nodes[at].bytes,
            .segment_address = segment,
            .state = AR_POLICY_RANGE_FREE,
        };
        if (nodes[at].left == FIT_USED) {
            range.state = AR_POLICY_RANGE_USED;
            range.requested_bytes = nodes[at].extra;
        } else if (nodes[at].left == FIT_GAP) {
            range.state = AR_POLICY_RANGE_UNMAPPED;
            range.segment_address = range.address;
            segment = range.address + range.bytes;
        }
        if (!visit(argument, &range))
            return;
    }
}

/* What the list adds up to. */
struct sums {
    struct ar_policy_totals totals;
    uint64_t free_blocks, usable;
};

static enum ar_status broken(const struct fit *self, struct ar_error *error, const char *what,
                             uint64_t address)
{
    return ar_error_set(error, AR_CORRUPT, "policy %s: %s at address %" PRIu64,
                        self->base.ops->name, what, address);
}

static enum ar_status check_list(const struct fit *self, struct sums *sums, struct ar_error *error)
{
    const struct ar_range_node *nodes = self->ranges.nodes;
    uint32_t before = 0;
    for (uint32_t at = self->first; at; before = at, at = nodes[at].next) {
        const struct ar_range_node *range = &nodes[at];
        if (range->previous != before || range->bytes == 0)
            return broken(self, error, "the list is broken or a range is empty", range->address);
        if (before && nodes[before].address + nodes[before].bytes != range->address)
            return broken(self, error, "a range does not start where the last one ends",
                          range->address);
        if (range->left == FIT_GAP)
            continue;
        sums->totals.reserved_bytes += range->bytes;
        if (range->left == FIT_USED) {
            sums->totals.live_blocks++;
            sums->totals.live_bytes += range->extra;
            sums->totals.granted_bytes += range->bytes;
            if (range->extra > range->bytes)
                return broken(self, error, "a block has less than was asked for", range->address);
            continue;
        }
        if (before && fit_is_free_block(&nodes[before]))
            return broken(self, error, "two holes touch", range->address);
        sums->free_blocks++;
        sums->totals.releasable_bytes += fit_releasable(self, range);
        if (range->extra != fit_releasable(self, range))
            return broken(self, error, "a hole's releasable bytes are out of date", range->address);
        if (self->base.watch)
            sums->usable += range->bytes - range->bytes % self->base.watch->unit_bytes;
    }
    if (before != self->last ||
        (before && nodes[before].address + nodes[before].bytes != self->top))
        return broken(self, error, "the last range does not end at the top", self->top);
    return AR_OK;
}

enum ar_status fit_validate(const struct ar_policy *base, struct ar_error *error)
{
    const struct fit *self = (const struct fit *)base;
    const struct ar_policy_totals *totals = &base->totals;
    struct sums sums = {0};
    enum ar_status status = check_list(self, &sums, error);
    if (status)
        return status;
    if (sums.totals.live_bytes != totals->live_bytes ||
        sums.totals.granted_bytes != totals->granted_bytes ||
        sums.totals.reserved_bytes != totals->reserved_bytes ||
        sums.totals.live_blocks != totals->live_blocks || totals->pending_bytes)
        return broken(self, error, "the totals are not those of the ranges; the arena ends",
                      self->top);
    if (sums.totals.releasable_bytes != totals->releasable_bytes)
        return broken(self, error,
                      "the releasable bytes are not those of the holes; the arena ends", self->top);
    if (base->watch && base->watch->usable_bytes != sums.usable)
        return broken(self, error, "the hole watch is not the sum of the holes; the arena ends",
                      self->top);
    uint64_t count;
    if (!ar_range_tree_check(&self->ranges, self->free_blocks, self->order, &count) ||
        count != sums.free_blocks)
        return broken(self, error, "the tree of holes is broken; the arena ends", self->top);
    return AR_OK;
}
