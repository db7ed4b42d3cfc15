/* The contract's defaults for hooks that a policy left out, and the check of what it may not. */
#include "allocators/policy.h"

#include <string.h>

uint64_t ar_policy_servable(const struct ar_policy *self, enum ar_policy_effort effort)
{
    uint64_t bytes;
    if (self->ops->servable) {
        bytes = self->ops->servable(self, effort);
    } else {
        struct ar_policy_stats stats;
        self->ops->stats(self, &stats);
        bytes = stats.largest_free_block_bytes;
    }
    uint64_t free_bytes = ar_policy_free_bytes(&self->totals);
    return effort == AR_POLICY_EFFORT_NONE && bytes > free_bytes ? free_bytes : bytes;
}

enum ar_status ar_policy_use(struct ar_policy *self, const struct ar_policy_block *block,
                             uint32_t stream)
{
    return self->ops->use ? self->ops->use(self, block, stream) : AR_OK;
}

void ar_policy_retire(struct ar_policy *self, const struct ar_policy_block *block)
{
    if (self->ops->retire)
        self->ops->retire(self, block);
}

void ar_policy_progress(struct ar_policy *self)
{
    if (self->ops->progress)
        self->ops->progress(self);
}

enum ar_status ar_policy_trim(struct ar_policy *self, uint64_t keep_bytes)
{
    return self->ops->trim ? self->ops->trim(self, keep_bytes) : AR_OK;
}

const char *ar_policy_problem(const struct ar_policy *self)
{
    return self->ops->problem ? self->ops->problem(self) : "";
}

bool ar_policy_would_release(struct ar_policy *self, const struct ar_policy_request *request)
{
    return self->ops->would_release && self->ops->would_release(self, request);
}

bool ar_policy_would_fit(struct ar_policy *self, const struct ar_policy_request *request)
{
    return self->ops->would_fit && self->ops->would_fit(self, request);
}

void ar_policy_end_pool(struct ar_policy *self, uint32_t pool)
{
    if (self->ops->end_pool)
        self->ops->end_pool(self, pool);
}

void ar_policy_reset_peaks(struct ar_policy *self)
{
    if (self->ops->reset_peaks)
        self->ops->reset_peaks(self);
}

bool ar_policy_report(const struct ar_policy *self, size_t index, char *name, size_t name_bytes,
                      uint64_t *value)
{
    return self->ops->report && self->ops->report(self, index, name, name_bytes, value);
}

static const char *missing_hook(const struct ar_policy_ops *ops)
{
    if (!ops->create)
        return "create";
    if (!ops->destroy)
        return "destroy";
    if (!ops->alloc)
        return "alloc";
    if (!ops->free)
        return "free";
    if (!ops->stats)
        return "stats";
    if (!ops->walk)
        return "walk";
    return ops->validate ? NULL : "validate";
}

enum ar_status ar_policy_check(const struct ar_policy_ops *ops, struct ar_error *error)
{
    static const struct ar_option common[] = {AR_POLICY_COMMON_OPTIONS};
    if (ops->abi != AR_POLICY_ABI)
        return ar_error_set(
            error, AR_INVALID,
            "the policy was built for version %u of the contract, and this is version "
            "%u; compile it again with this policy.h",
            ops->abi, AR_POLICY_ABI);
    if (ops->ops_bytes != sizeof *ops)
        return ar_error_set(
            error, AR_INVALID,
            "the policy's ops have %u bytes, and here they have %zu; set ops_bytes to "
            "sizeof(struct policy_ops) and compile it again with this policy.h",
            ops->ops_bytes, sizeof *ops);
    if (!ops->name || !ops->name[0])
        return ar_error_set(error, AR_INVALID, "the policy has no name; set it in its ops");
    const char *hook = missing_hook(ops);
    if (hook)
        return ar_error_set(error, AR_INVALID, "policy %s lacks the required hook %s", ops->name,
                            hook);
    if (!ops->summary || !ops->reference)
        return ar_error_set(error, AR_INVALID, "policy %s has no %s; set it in its ops", ops->name,
                            ops->summary ? "reference" : "summary");
    const struct ar_option *first = ops->options;
    if (!first || !first->name || strcmp(first->name, common[0].name) != 0 ||
        first->type != common[0].type || first->offset != common[0].offset ||
        ops->values_bytes < sizeof(struct ar_policy_common))
        return ar_error_set(
            error, AR_INVALID,
            "the options of policy %s do not begin with POLICY_COMMON_OPTIONS, filled "
            "into a struct that begins with struct policy_common",
            ops->name);
    return AR_OK;
}
