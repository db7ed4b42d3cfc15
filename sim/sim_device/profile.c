#include "sim/sim_device/profile.h"

#include <inttypes.h>
#include <string.h>

#include "allocators/base/rng.h"
#include "sim/profiles/builtin.h"

static const enum sim_cost stand_ins[] = {
#define X(name, stand_in, text) SIM_COST_##stand_in,
    SIM_COSTS(X)
#undef X
};

const char *const *sim_profile_builtin(const char *name)
{
    for (const struct sim_builtin_profile *at = sim_builtin_profiles; at->name; at++)
        if (strcmp(name, at->name) == 0)
            return at->lines;
    return NULL;
}

size_t sim_profile_names(const char **names, size_t most)
{
    size_t count = 0;
    while (count < most && sim_builtin_profiles[count].name) {
        names[count] = sim_builtin_profiles[count].name;
        count++;
    }
    return count;
}

const char *sim_curve_add(struct sim_curve *self, uint64_t bytes, uint64_t ns)
{
    if (bytes == 0)
        return "a cost needs a size above 0";
    if (self->count && bytes <= self->bytes[self->count - 1])
        return "the sizes of a kind must rise";
    if (self->count == SIM_COST_POINTS)
        return "a kind has at most 32 sizes";
    self->bytes[self->count] = bytes;
    self->ns[self->count] = ns;
    self->log_bytes[self->count] = ar_rng_log2((double)bytes);
    self->log_ns[self->count] = ar_rng_log2(ns ? (double)ns : 0.5);
    self->count++;
    return NULL;
}

/* The line through the points `at` and `at` + 1, at `bytes`. */
static uint64_t curve_line(const struct sim_curve *curve, uint32_t at, uint64_t bytes)
{
    double share = (ar_rng_log2((double)bytes) - curve->log_bytes[at]) /
                   (curve->log_bytes[at + 1] - curve->log_bytes[at]);
    double log_ns = curve->log_ns[at] + share * (curve->log_ns[at + 1] - curve->log_ns[at]);
    return (uint64_t)(ar_rng_exp2(log_ns < 62.0 ? log_ns : 62.0) + 0.5);
}

static uint64_t curve_ns(struct sim_curve *curve, uint64_t bytes)
{
    if (curve->count == 0)
        return 0;
    if (bytes <= curve->bytes[0] || curve->count == 1)
        return curve->ns[0];
    if (curve->last_bytes == bytes)
        return curve->last_ns;
    uint32_t at = 0;
    while (at + 2 < curve->count && curve->bytes[at + 1] <= bytes)
        at++;
    curve->last_bytes = bytes;
    if (bytes == curve->bytes[at])
        curve->last_ns = curve->ns[at];
    else if (bytes == curve->bytes[at + 1])
        curve->last_ns = curve->ns[at + 1];
    else
        curve->last_ns = curve_line(curve, at, bytes);
    return curve->last_ns;
}

/* The kind itself, or the one that stands in for it where the profile has no points of it. */
static enum sim_cost cost_known(const struct sim_profile *self, enum sim_cost cost)
{
    return self->costs[cost].count ? cost : stand_ins[cost];
}

uint64_t sim_profile_cost(struct sim_profile *self, enum sim_cost cost, uint64_t bytes, bool busy)
{
    cost = cost_known(self, cost);
    if (busy && self->busy_costs[cost].count)
        return curve_ns(&self->busy_costs[cost], bytes);
    uint64_t ns = curve_ns(&self->costs[cost], bytes);
    uint64_t percent = self->busy_percent[cost];
    if (!busy || percent <= 100)
        return ns;
    uint64_t page_bytes = self->page_bytes ? self->page_bytes : 1;
    uint64_t base_ns = bytes > page_bytes ? curve_ns(&self->costs[cost], page_bytes) : ns;
    return ns + (percent - 100) * (base_ns < ns ? base_ns : ns) / 100;
}

uint64_t sim_profile_kernel_op(struct sim_profile *self, enum sim_kernel_op op, uint64_t size)
{
    return curve_ns(&self->kernel_ops[op], size);
}

bool sim_profile_has_kernel_ops(const struct sim_profile *self)
{
    for (int op = 0; op < SIM_KERNEL_OP_COUNT; op++)
        if (self->kernel_ops[op].count)
            return true;
    return false;
}

enum sim_cost sim_cost_rested(enum sim_cost cost)
{
    switch (cost) {
    case SIM_COST_alloc_held:
        return SIM_COST_alloc;
    case SIM_COST_free_held:
        return SIM_COST_free;
    case SIM_COST_map_again:
        return SIM_COST_map;
    case SIM_COST_access_more:
        return SIM_COST_access;
    case SIM_COST_unmap_more:
        return SIM_COST_unmap;
    case SIM_COST_pool_grow:
    case SIM_COST_pool_first:
    case SIM_COST_pool_pending:
        return SIM_COST_pool_alloc;
    default:
        return cost;
    }
}

uint64_t sim_profile_rest(const struct sim_profile *self, enum sim_cost cost, uint64_t rest_ns)
{
    const struct sim_curve *curve = &self->rest_costs[sim_cost_rested(cost)];
    if (curve->count == 0 || rest_ns <= curve->bytes[0])
        return 0;
    uint32_t last = curve->count - 1;
    if (rest_ns >= curve->bytes[last])
        return curve->ns[last];
    uint32_t at = 0;
    while (curve->bytes[at + 1] <= rest_ns)
        at++;
    double share = (ar_rng_log2((double)rest_ns) - curve->log_bytes[at]) /
                   (curve->log_bytes[at + 1] - curve->log_bytes[at]);
    double from_ns = (double)curve->ns[at], to_ns = (double)curve->ns[at + 1];
    return (uint64_t)(from_ns + share * (to_ns - from_ns) + 0.5);
}

/* False: a cost would be more than a profile can state. */
static bool curve_scale(struct sim_curve *curve, double factor)
{
    struct sim_curve scaled = {.count = 0};
    for (uint32_t i = 0; i < curve->count; i++) {
        double ns = (double)curve->ns[i] * factor + 0.5;
        if (ns >= (double)SIM_PROFILE_NUMBERS)
            return false;
        (void)sim_curve_add(&scaled, curve->bytes[i], (uint64_t)ns);
    }
    *curve = scaled;
    return true;
}

enum ar_status sim_profile_at_host(struct sim_profile *self, uint64_t clock_ps, const char *where,
                                   struct ar_error *error)
{
    double factor = (double)clock_ps / (double)self->host_clock_ps;
    for (int kind = 0; kind < SIM_COST_COUNT; kind++) {
        if (kind == SIM_COST_pool_first || kind == SIM_COST_product_first ||
            kind == SIM_COST_product_new)
            continue;
        if (!curve_scale(&self->costs[kind], factor) ||
            !curve_scale(&self->busy_costs[kind], factor) ||
            !curve_scale(&self->rest_costs[kind], factor))
            return ar_error_set(error, AR_INVALID,
                                "%s: its costs are of a host with host_clock_ps %" PRIu64
                                ", and on one with %" PRIu64
                                " some would be above 2^60 ns; see that both are right",
                                where, self->host_clock_ps, clock_ps);
    }
    self->host_clock_ps = clock_ps;
    return AR_OK;
}

uint64_t sim_profile_least(const struct sim_profile *self, enum sim_cost cost)
{
    const struct sim_curve *curve = &self->costs[cost_known(self, cost)];
    uint64_t least_ns = curve->count ? curve->ns[0] : 0;
    for (uint32_t i = 1; i < curve->count; i++)
        if (curve->ns[i] < least_ns)
            least_ns = curve->ns[i];
    return least_ns;
}
