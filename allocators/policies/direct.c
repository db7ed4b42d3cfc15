/* direct: every request is a driver allocation and every free a driver free. It caches no memory,
 * so it has no free blocks, and each call has the cost of the driver. Physical bytes show what the
 * driver rounds up. For an alignment above the granule of the driver, it allocates that much more
 * and the block starts inside; the bytes before the block count as rounding of the driver. */
#include "allocators/base/range_tree.h"
#include "allocators/policy.h"

struct direct {
    struct ar_policy base;
    struct ar_range_pool blocks; /* extra: the address of the driver allocation */
    uint32_t by_address;         /* the tree of them */
    uint64_t limit_bytes;
    uint64_t made, freed, failures;
    struct ar_backing *backing;
};

extern const struct ar_policy_ops direct_policy;

static const struct ar_option direct_options[] = {AR_POLICY_COMMON_OPTIONS, {0}};

static enum ar_status direct_create(const struct ar_policy_context *context, const void *values,
                                    struct ar_policy **out, struct ar_error *error)
{
    const struct ar_policy_common *common = values;
    struct direct *self = ar_policy_new(context, &direct_policy, sizeof *self, error);
    AR_TRY_HOST(self);
    self->backing = context->backing;
    self->limit_bytes = ar_policy_limit(common);
    ar_range_pool_open(&self->blocks, context->host);
    *out = &self->base;
    return AR_OK;
}

static void direct_destroy(struct ar_policy *base)
{
    struct direct *self = (struct direct *)base;
    for (uint32_t at = 0; (at = ar_range_tree_next(&self->blocks, self->by_address, at)) != 0;)
        (void)ar_backing_segment_free(self->backing, self->blocks.nodes[at].extra);
    ar_range_pool_close(&self->blocks);
    ar_host_free(self->blocks.host, self, sizeof *self);
}

static enum ar_status direct_refuse(struct direct *self)
{
    self->failures++;
    return AR_NO_MEMORY;
}

static enum ar_status direct_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                                   struct ar_policy_block *out)
{
    struct direct *self = (struct direct *)base;
    uint64_t bytes = request->bytes;
    uint64_t granule = self->backing->granule_bytes;
    uint64_t alignment = request->alignment > granule ? request->alignment : 1;
    if (bytes > self->limit_bytes - base->totals.reserved_bytes || alignment > UINT64_C(1) << 60)
        return direct_refuse(self);
    AR_TRY_HOST(ar_range_pool_reserve(&self->blocks, 1));
    uint64_t segment;
    enum ar_status status =
        ar_backing_segment_alloc(self->backing, bytes + alignment - 1, &segment);
    if (status)
        return status == AR_REFUSED ? direct_refuse(self) : status;
    uint32_t index = ar_range_pool_take(&self->blocks);
    struct ar_range_node *block = &self->blocks.nodes[index];
    block->address = (segment + alignment - 1) & ~(alignment - 1);
    block->bytes = bytes;
    block->extra = segment;
    ar_range_tree_insert(&self->blocks, &self->by_address, AR_RANGE_BY_ADDRESS, index);
    self->made++;
    base->totals.reserved_bytes += bytes;
    ar_policy_grant(base, out, block->address, bytes, index);
    return AR_OK;
}

static enum ar_status direct_free(struct ar_policy *base, const struct ar_policy_block *block,
                                  uint32_t stream AR_UNUSED)
{
    struct direct *self = (struct direct *)base;
    uint32_t index = (uint32_t)block->cookie;
    const struct ar_range_node *freed = &self->blocks.nodes[index];
    AR_TRY(ar_backing_segment_free(self->backing, freed->extra));
    base->totals.reserved_bytes -= freed->bytes;
    ar_policy_ungrant(base, freed->bytes, freed->bytes);
    ar_range_tree_remove(&self->blocks, &self->by_address, AR_RANGE_BY_ADDRESS, index);
    ar_range_pool_give(&self->blocks, index);
    self->freed++;
    return AR_OK;
}

static void direct_stats(const struct ar_policy *base, struct ar_policy_stats *out)
{
    const struct direct *self = (const struct direct *)base;
    *out = (struct ar_policy_stats){.totals = base->totals};
    out->count.segments_made = self->made;
    out->count.segments_freed = self->freed;
    out->count.failures = self->failures;
}

static void direct_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument)
{
    const struct direct *self = (const struct direct *)base;
    for (uint32_t at = 0; (at = ar_range_tree_next(&self->blocks, self->by_address, at)) != 0;) {
        const struct ar_range_node *block = &self->blocks.nodes[at];
        const struct ar_policy_range range = {
            .address = block->address,
            .bytes = block->bytes,
            .requested_bytes = block->bytes,
            .segment_address = block->extra,
            .state = AR_POLICY_RANGE_USED,
        };
        if (!visit(argument, &range))
            return;
    }
}

static enum ar_status direct_validate(const struct ar_policy *base, struct ar_error *error)
{
    const struct direct *self = (const struct direct *)base;
    uint64_t count;
    if (!ar_range_tree_check(&self->blocks, self->by_address, AR_RANGE_BY_ADDRESS, &count) ||
        count != base->totals.live_blocks)
        return ar_policy_broken(base, "the tree of blocks is broken", count, error);
    return ar_policy_check_totals(base, 0, error);
}

static const char *direct_problem(const struct ar_policy *base)
{
    return ar_backing_problem(((const struct direct *)base)->backing);
}

const struct ar_policy_ops direct_policy = {
    .name = "direct",
    .summary = "every request to the driver: nothing is kept, every call is paid",
    .reference = "none; cuMemAlloc and cuMemFree as they are",
    .capabilities = AR_POLICY_WATCHES_FREE | AR_POLICY_HONOURS_ALIGNMENT,
    .options = direct_options,
    .values_bytes = sizeof(struct ar_policy_common),
    .create = direct_create,
    AR_POLICY_HOOKS(direct),
    .problem = direct_problem,
};
