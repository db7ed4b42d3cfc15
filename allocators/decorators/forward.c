/* Forwards every hook. The totals are copied from the inner policy after each call that may change
 * them, and the watch of free blocks is set in it before: callers read and set both in the outer
 * policy, and a copy of seven numbers is cheaper than a hook. */
#include "allocators/decorators/forward.h"

static const struct ar_policy *inside(const struct ar_policy *base)
{
    return ((const struct forward *)base)->inner;
}

struct ar_policy *forward_enter(struct ar_policy *base)
{
    struct ar_policy *inner = ((struct forward *)base)->inner;
    if (inner->watch != base->watch)
        ar_policy_watch(inner, base->watch);
    return inner;
}

void forward_settle(struct ar_policy *base)
{
    base->totals = ((struct forward *)base)->inner->totals;
}

enum ar_status forward_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                             struct ar_policy_block *out)
{
    enum ar_status status = ar_policy_alloc(forward_enter(base), request, out);
    forward_settle(base);
    return status;
}

enum ar_status forward_free(struct ar_policy *base, const struct ar_policy_block *block,
                            uint32_t stream)
{
    enum ar_status status = ar_policy_free(forward_enter(base), block, stream);
    forward_settle(base);
    return status;
}

enum ar_status forward_use(struct ar_policy *base, const struct ar_policy_block *block,
                           uint32_t stream)
{
    enum ar_status status = ar_policy_use(forward_enter(base), block, stream);
    forward_settle(base);
    return status;
}

void forward_retire(struct ar_policy *base, const struct ar_policy_block *block)
{
    ar_policy_retire(forward_enter(base), block);
    forward_settle(base);
}

enum ar_status forward_adopt(struct ar_policy *base, const struct ar_policy_range *ranges,
                             size_t count, struct ar_policy_block *blocks)
{
    struct ar_policy *inner = forward_enter(base);
    enum ar_status status = inner->ops->adopt(inner, ranges, count, blocks);
    forward_settle(base);
    return status;
}

void forward_progress(struct ar_policy *base)
{
    ar_policy_progress(forward_enter(base));
    forward_settle(base);
}

enum ar_status forward_trim(struct ar_policy *base, uint64_t keep_bytes)
{
    enum ar_status status = ar_policy_trim(forward_enter(base), keep_bytes);
    forward_settle(base);
    return status;
}

static enum ar_status forward_plan(struct ar_policy *base,
                                   const struct ar_policy_lifetime *lifetimes, size_t count)
{
    struct ar_policy *inner = forward_enter(base);
    enum ar_status status = inner->ops->plan(inner, lifetimes, count);
    forward_settle(base);
    return status;
}

static void forward_stats(const struct ar_policy *base, struct ar_policy_stats *out)
{
    inside(base)->ops->stats(inside(base), out);
}

static void forward_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument)
{
    ar_policy_walk(inside(base), visit, argument);
}

static enum ar_status forward_validate(const struct ar_policy *base, struct ar_error *error)
{
    return ar_policy_validate(inside(base), error);
}

static void forward_room(const struct ar_policy *base, struct ar_policy_room *out)
{
    inside(base)->ops->room(inside(base), out);
}

static bool forward_setting(const struct ar_policy *base, char *text, size_t text_bytes)
{
    return inside(base)->ops->setting(inside(base), text, text_bytes);
}

static const char *forward_problem(const struct ar_policy *base)
{
    return ar_policy_problem(inside(base));
}

static bool forward_would_release(struct ar_policy *base, const struct ar_policy_request *request)
{
    bool would = ar_policy_would_release(forward_enter(base), request);
    forward_settle(base);
    return would;
}

static bool forward_would_fit(struct ar_policy *base, const struct ar_policy_request *request)
{
    bool would = ar_policy_would_fit(forward_enter(base), request);
    forward_settle(base);
    return would;
}

static enum ar_status forward_delete_pool(struct ar_policy *base, uint32_t pool)
{
    enum ar_status status = ar_policy_delete_pool(forward_enter(base), pool);
    forward_settle(base);
    return status;
}

static enum ar_status forward_change(struct ar_policy *base, const char *change,
                                     struct ar_error *error)
{
    enum ar_status status = ar_policy_change(forward_enter(base), change, error);
    forward_settle(base);
    return status;
}

static void forward_end_pool(struct ar_policy *base, uint32_t pool)
{
    ar_policy_end_pool(forward_enter(base), pool);
    forward_settle(base);
}

static void forward_reset_peaks(struct ar_policy *base)
{
    ar_policy_reset_peaks(forward_enter(base));
    forward_settle(base);
}

static bool forward_report(const struct ar_policy *base, size_t index, char *name,
                           size_t name_bytes, uint64_t *value)
{
    return ar_policy_report(inside(base), index, name, name_bytes, value);
}

void forward_destroy(struct ar_policy *base)
{
    struct forward *self = (struct forward *)base;
    ar_policy_destroy(self->inner);
    ar_host_free(self->host, self, self->own_bytes);
}

void *forward_create(struct ar_host *host, size_t own_bytes, const char *prefix,
                     struct ar_policy *inner, struct ar_error *error)
{
    struct forward *self = ar_host_alloc(host, own_bytes);
    if (!self) {
        (void)ar_no_memory(error, "the decorator %s", prefix);
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
    self->ops.room = inner->ops->room ? forward_room : NULL;
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
    self->ops.reset_peaks = inner->ops->reset_peaks ? forward_reset_peaks : NULL;
    self->ops.report = inner->ops->report ? forward_report : NULL;
    self->ops.end_pool = inner->ops->end_pool ? forward_end_pool : NULL;
    self->ops.delete_pool = inner->ops->delete_pool ? forward_delete_pool : NULL;
    self->ops.change = inner->ops->change ? forward_change : NULL;
    self->ops.watched = NULL; /* forward_enter tells the inner policy */
    self->inner = inner;
    self->host = host;
    self->own_bytes = own_bytes;
    self->base.ops = &self->ops;
    self->base.totals = inner->totals;
    return self;
}
