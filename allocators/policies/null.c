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

/* Live, granted and reserved bytes are the same number here, so that it is added to once: this
 * policy measures the harness, and every instruction of its own spoils that. */
static void null_count(struct policy_totals *totals, uint64_t bytes)
{
    totals->live_bytes = bytes;
    totals->granted_bytes = bytes;
    totals->reserved_bytes = bytes;
}

static enum status null_place(struct null_policy *self, uint64_t address, uint64_t bytes,
                              struct policy_block *out)
{
    self->next = address + bytes;
    out->address = address;
    out->granted_bytes = bytes; /* no cookie: there is no record to find */
    null_count(&self->base.totals, self->base.totals.reserved_bytes + bytes);
    self->base.totals.live_blocks++;
    return STATUS_OK;
}

/* With an alignment, or past the limit: rare, so out of the way. */
static __attribute__((noinline)) enum status null_alloc_rare(struct null_policy *self,
                                                             const struct policy_request *request,
                                                             struct policy_block *out)
{
    uint64_t mask = request->alignment ? request->alignment - 1 : 0;
    if (request->bytes > self->limit_bytes - self->base.totals.reserved_bytes) {
        self->failures++;
        return STATUS_NO_MEMORY;
    }
    return null_place(self, (self->next + mask) & ~mask, request->bytes, out);
}

static enum status null_alloc(struct policy *base, const struct policy_request *request,
                              struct policy_block *out)
{
    struct null_policy *self = (struct null_policy *)base;
    uint64_t bytes = request->bytes;
    if (__builtin_expect(base->totals.reserved_bytes + bytes > self->limit_bytes, 0) ||
        __builtin_expect(request->alignment != 0, 0))
        return null_alloc_rare(self, request, out);
    return null_place(self, self->next, bytes, out);
}

static enum status null_free(struct policy *base, const struct policy_block *block, uint32_t stream)
{
    (void)stream;
    null_count(&base->totals, base->totals.reserved_bytes - block->granted_bytes);
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
        POLICY_OVERLAPS | POLICY_UNRANKED | POLICY_HONOURS_ALIGNMENT | POLICY_WATCHES_FREE,
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
