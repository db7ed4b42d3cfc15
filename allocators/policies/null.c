/* null: no allocator at all. Every request gets the next address and nothing is ever used
 * again, so that what a run under it costs is the cost of the harness. It takes no memory from
 * the backing: its addresses are numbers without memory behind them, and what it calls
 * reserved is what it has granted. Capability OVERLAPS tells the engine that there are no
 * segments to look for, and UNRANKED keeps it out of comparisons. */
#include "allocators/policy.h"

extern const struct policy_ops null_policy;

struct null_policy {
    struct policy base;
    uint64_t next;
    uint64_t limit_bytes; /* UINT64_MAX: none */
    uint64_t failures;
    struct host *host;
};

static const struct option null_options[] = {POLICY_COMMON_OPTIONS, {0}};

static enum status null_create(const struct policy_context *context, const void *values,
                               struct policy **out, struct error *error)
{
    const struct policy_common *common = values;
    struct null_policy *self = host_alloc(context->host, sizeof *self);
    if (!self)
        return error_set(error, STATUS_HOST_MEMORY, "no host memory for policy null");
    self->limit_bytes = common->limit_bytes ? common->limit_bytes : UINT64_MAX;
    self->host = context->host;
    self->base.ops = &null_policy;
    *out = &self->base;
    return STATUS_OK;
}

static void null_destroy(struct policy *base)
{
    struct null_policy *self = (struct null_policy *)base;
    host_free(self->host, self, sizeof *self);
}

static enum status null_alloc(struct policy *base, const struct policy_request *request,
                              struct policy_block *out)
{
    struct null_policy *self = (struct null_policy *)base;
    uint64_t bytes = request->bytes;
    if (bytes > self->limit_bytes - base->totals.reserved_bytes) {
        self->failures++;
        return STATUS_NO_MEMORY;
    }
    uint64_t mask = request->alignment ? request->alignment - 1 : 0;
    uint64_t address = (self->next + mask) & ~mask;
    self->next = address + bytes;
    out->address = address;
    out->granted_bytes = bytes;
    out->cookie = 0;
    base->totals.live_bytes += bytes;
    base->totals.granted_bytes += bytes;
    base->totals.reserved_bytes += bytes;
    base->totals.live_blocks++;
    return STATUS_OK;
}

static enum status null_free(struct policy *base, const struct policy_block *block, uint32_t stream)
{
    (void)stream;
    base->totals.live_bytes -= block->granted_bytes;
    base->totals.granted_bytes -= block->granted_bytes;
    base->totals.reserved_bytes -= block->granted_bytes;
    base->totals.live_blocks--;
    return STATUS_OK;
}

static void null_stats(const struct policy *base, struct policy_stats *out)
{
    *out = (struct policy_stats){.totals = base->totals};
    out->count.failures = ((const struct null_policy *)base)->failures;
}

/* It keeps no record of its blocks, so it has none to show. */
static void null_walk(const struct policy *base, policy_visit *visit, void *argument)
{
    (void)base;
    (void)visit;
    (void)argument;
}

static enum status null_validate(const struct policy *base, struct error *error)
{
    const struct policy_totals *totals = &base->totals;
    if (totals->live_bytes != totals->granted_bytes ||
        totals->live_bytes != totals->reserved_bytes ||
        (totals->live_bytes == 0) != (totals->live_blocks == 0))
        return error_set(error, STATUS_CORRUPT,
                         "policy null: live, granted and reserved bytes are not the same");
    return STATUS_OK;
}

const struct policy_ops null_policy = {
    .abi = POLICY_ABI,
    .ops_bytes = sizeof(struct policy_ops),
    .name = "null",
    .summary = "a bump address that is never used again: the cost of the harness",
    .reference = "none; it imitates nothing",
    .capabilities =
        POLICY_OVERLAPS | POLICY_UNRANKED | POLICY_HONOURS_ALIGNMENT | POLICY_WATCHES_HOLES,
    .options = null_options,
    .values_bytes = sizeof(struct policy_common),
    .create = null_create,
    .destroy = null_destroy,
    .alloc = null_alloc,
    .free = null_free,
    .stats = null_stats,
    .walk = null_walk,
    .validate = null_validate,
};
