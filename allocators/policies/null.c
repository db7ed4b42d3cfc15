/* null: every request gets the next address and no address is used again, so a run costs what the
 * harness costs. It takes no memory from the backing, and its reserved bytes are the granted bytes.
 * The capability OVERLAPS tells the engine that there are no segments. UNRANKED keeps the policy
 * out of rankings. */
#include "allocators/policy.h"

extern const struct ar_policy_ops null_policy;

struct null_policy {
    struct ar_policy base;
    uint64_t next;
    uint64_t limit_bytes; /* UINT64_MAX: none */
    uint64_t failures;
    struct ar_host *host;
};

static const struct ar_option null_options[] = {AR_POLICY_COMMON_OPTIONS, {0}};

static enum ar_status null_create(const struct ar_policy_context *context, const void *values,
                                  struct ar_policy **out, struct ar_error *error)
{
    const struct ar_policy_common *common = values;
    struct null_policy *self = ar_policy_new(context, &null_policy, sizeof *self, error);
    AR_TRY_HOST(self);
    self->limit_bytes = ar_policy_limit(common);
    self->host = context->host;
    *out = &self->base;
    return AR_OK;
}

static void null_destroy(struct ar_policy *base)
{
    struct null_policy *self = (struct null_policy *)base;
    ar_host_free(self->host, self, sizeof *self);
}

/* Live, granted and reserved bytes are the same number, which is computed once: this policy
 * measures the harness, so its own instructions must be few. */
static void null_count(struct ar_policy_totals *totals, uint64_t bytes)
{
    totals->live_bytes = bytes;
    totals->granted_bytes = bytes;
    totals->reserved_bytes = bytes;
}

static enum ar_status null_place(struct null_policy *self, uint64_t address, uint64_t bytes,
                                 struct ar_policy_block *out)
{
    self->next = address + bytes;
    out->address = address;
    out->granted_bytes = bytes; /* no cookie, because there are no records */
    null_count(&self->base.totals, self->base.totals.reserved_bytes + bytes);
    self->base.totals.live_blocks++;
    return AR_OK;
}

/* For a request with an alignment or past the limit. Both are rare. */
static __attribute__((noinline)) enum ar_status
null_alloc_rare(struct null_policy *self, const struct ar_policy_request *request,
                struct ar_policy_block *out)
{
    uint64_t mask = request->alignment ? request->alignment - 1 : 0;
    if (request->bytes > self->limit_bytes - self->base.totals.reserved_bytes) {
        self->failures++;
        return AR_NO_MEMORY;
    }
    return null_place(self, (self->next + mask) & ~mask, request->bytes, out);
}

static enum ar_status null_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                                 struct ar_policy_block *out)
{
    struct null_policy *self = (struct null_policy *)base;
    uint64_t bytes = request->bytes;
    if (__builtin_expect(base->totals.reserved_bytes + bytes > self->limit_bytes, 0) ||
        __builtin_expect(request->alignment != 0, 0))
        return null_alloc_rare(self, request, out);
    return null_place(self, self->next, bytes, out);
}

static enum ar_status null_free(struct ar_policy *base, const struct ar_policy_block *block,
                                uint32_t stream AR_UNUSED)
{
    null_count(&base->totals, base->totals.reserved_bytes - block->granted_bytes);
    base->totals.live_blocks--;
    return AR_OK;
}

static void null_stats(const struct ar_policy *base, struct ar_policy_stats *out)
{
    *out = (struct ar_policy_stats){.totals = base->totals};
    out->count.failures = ((const struct null_policy *)base)->failures;
}

/* There are no records of blocks to visit. */
static void null_walk(const struct ar_policy *base AR_UNUSED, ar_policy_visit *visit AR_UNUSED,
                      void *argument AR_UNUSED)
{
}

static enum ar_status null_validate(const struct ar_policy *base, struct ar_error *error)
{
    const struct ar_policy_totals *totals = &base->totals;
    if (totals->live_bytes != totals->granted_bytes ||
        totals->live_bytes != totals->reserved_bytes ||
        (totals->live_bytes == 0) != (totals->live_blocks == 0))
        return ar_error_set(error, AR_CORRUPT,
                            "policy null: live, granted and reserved bytes are not the same");
    return AR_OK;
}

const struct ar_policy_ops null_policy = {
    .name = "null",
    .summary = "a bump address that is never used again: the cost of the harness",
    .reference = "none; it imitates nothing",
    .capabilities = AR_POLICY_OVERLAPS | AR_POLICY_UNRANKED | AR_POLICY_HONOURS_ALIGNMENT |
                    AR_POLICY_WATCHES_FREE,
    .options = null_options,
    .values_bytes = sizeof(struct ar_policy_common),
    .create = null_create,
    AR_POLICY_HOOKS(null),
};
