/* Hands every hook on. The totals are copied out of the inner policy after each call that may
 * change them, and the hole watch is handed in before it: both are read or set on the outer
 * one, and a copy of six numbers is cheaper than a hook for each. */
#include "allocators/decorators/forward.h"

#include <stdio.h>

static const struct policy *inside(const struct policy *base)
{
    return ((const struct forward *)base)->inner;
}

struct policy *forward_enter(struct policy *base)
{
    struct policy *inner = ((struct forward *)base)->inner;
    inner->watch = base->watch;
    return inner;
}

void forward_settle(struct policy *base)
{
    base->totals = ((struct forward *)base)->inner->totals;
}

enum status forward_alloc(struct policy *base, const struct policy_request *request,
                          struct policy_block *out)
{
    enum status status = policy_alloc(forward_enter(base), request, out);
    forward_settle(base);
    return status;
}

enum status forward_free(struct policy *base, const struct policy_block *block, uint32_t stream)
{
    enum status status = policy_free(forward_enter(base), block, stream);
    forward_settle(base);
    return status;
}

enum status forward_use(struct policy *base, const struct policy_block *block, uint32_t stream)
{
    enum status status = policy_use(forward_enter(base), block, stream);
    forward_settle(base);
    return status;
}

void forward_retire(struct policy *base, const struct policy_block *block)
{
    policy_retire(forward_enter(base), block);
    forward_settle(base);
}

enum status forward_adopt(struct policy *base, const struct policy_range *ranges, size_t count,
                          struct policy_block *blocks)
{
    struct policy *inner = forward_enter(base);
    enum status status = inner->ops->adopt(inner, ranges, count, blocks);
    forward_settle(base);
    return status;
}

void forward_progress(struct policy *base)
{
    policy_progress(forward_enter(base));
    forward_settle(base);
}

enum status forward_trim(struct policy *base, uint64_t keep_bytes)
{
    enum status status = policy_trim(forward_enter(base), keep_bytes);
    forward_settle(base);
    return status;
}

static enum status forward_plan(struct policy *base, const struct policy_lifetime *lifetimes,
                                size_t count)
{
    struct policy *inner = forward_enter(base);
    enum status status = inner->ops->plan(inner, lifetimes, count);
    forward_settle(base);
    return status;
}

static void forward_stats(const struct policy *base, struct policy_stats *out)
{
    policy_stats(inside(base), out);
}

static void forward_walk(const struct policy *base, policy_visit *visit, void *argument)
{
    policy_walk(inside(base), visit, argument);
}

static enum status forward_validate(const struct policy *base, struct error *error)
{
    return policy_validate(inside(base), error);
}

static uint64_t forward_servable(const struct policy *base, enum policy_effort effort)
{
    return policy_servable(inside(base), effort);
}

static bool forward_setting(const struct policy *base, char *text, size_t text_bytes)
{
    return inside(base)->ops->setting(inside(base), text, text_bytes);
}

static const char *forward_problem(const struct policy *base)
{
    return policy_problem(inside(base));
}

static bool forward_would_release(struct policy *base, const struct policy_request *request)
{
    bool would = policy_would_release(forward_enter(base), request);
    forward_settle(base);
    return would;
}

static bool forward_would_fit(struct policy *base, const struct policy_request *request)
{
    bool would = policy_would_fit(forward_enter(base), request);
    forward_settle(base);
    return would;
}

static void forward_end_pool(struct policy *base, uint32_t pool)
{
    policy_end_pool(forward_enter(base), pool);
    forward_settle(base);
}

static bool forward_report(const struct policy *base, size_t index, char *name, size_t name_bytes,
                           uint64_t *value)
{
    return policy_report(inside(base), index, name, name_bytes, value);
}

void forward_destroy(struct policy *base)
{
    struct forward *self = (struct forward *)base;
    policy_destroy(self->inner);
    host_free(self->host, self, self->own_bytes);
}

void *forward_create(struct host *host, size_t own_bytes, const char *prefix, struct policy *inner,
                     struct error *error)
{
    struct forward *self = host_alloc(host, own_bytes);
    if (!self) {
        error_set(error, STATUS_HOST_MEMORY, "no host memory for the decorator %s", prefix);
        return NULL;
    }
    snprintf(self->name, sizeof self->name, "%s+%s", prefix, inner->ops->name);
    self->ops = *inner->ops;
    self->ops.name = self->name;
    self->ops.destroy = forward_destroy;
    self->ops.alloc = forward_alloc;
    self->ops.free = forward_free;
    self->ops.stats = forward_stats;
    self->ops.walk = forward_walk;
    self->ops.validate = forward_validate;
    self->ops.servable = inner->ops->servable ? forward_servable : NULL;
    self->ops.use = inner->ops->use ? forward_use : NULL;
    self->ops.retire = inner->ops->retire ? forward_retire : NULL;
    self->ops.adopt = inner->ops->adopt ? forward_adopt : NULL;
    self->ops.progress = inner->ops->progress ? forward_progress : NULL;
    self->ops.trim = inner->ops->trim ? forward_trim : NULL;
    self->ops.plan = inner->ops->plan ? forward_plan : NULL;
    self->ops.setting = inner->ops->setting ? forward_setting : NULL;
    self->ops.problem = inner->ops->problem ? forward_problem : NULL;
    self->ops.would_release = inner->ops->would_release ? forward_would_release : NULL;
    self->ops.would_fit = inner->ops->would_fit ? forward_would_fit : NULL;
    self->ops.report = inner->ops->report ? forward_report : NULL;
    self->ops.end_pool = inner->ops->end_pool ? forward_end_pool : NULL;
    self->inner = inner;
    self->host = host;
    self->own_bytes = own_bytes;
    self->base.ops = &self->ops;
    self->base.totals = inner->totals;
    return self;
}
