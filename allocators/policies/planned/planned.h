/* What the policies that plan share: places for the requests by their number, and a caching
 * pool for those that come otherwise than planned. */
#ifndef ALLOCATORS_POLICIES_PLANNED_PLANNED_H
#define ALLOCATORS_POLICIES_PLANNED_PLANNED_H

#include "allocators/base/range_tree.h"
#include "allocators/heap.h"
#include "allocators/planning/packing.h"
#include "allocators/policy.h"

/* The place of a request, in the order of requests. */
struct planned_place {
    uint64_t bytes; /* rounded */
    uint64_t offset;
};

struct planned;

/* Writes the offsets of a plan for the problem; the size of the arena follows from them. */
typedef enum ar_status planned_rule(const struct planned *self, const struct packing *packing,
                                    uint64_t *offsets);

struct planned {
    struct ar_policy base;
    size_t bytes; /* of the whole policy, which this begins */
    planned_rule *rule;
    struct heap heap;
    uint64_t granule_bytes, limit_bytes;
    struct planned_place *places;
    size_t place_count, next; /* next: the number of the request to come */
    uint64_t plan_bytes;      /* of the arena */
    bool has_arena;
    uint64_t arena_address;
    struct ar_range_pool live; /* planned blocks; extra: their piece */
    uint32_t by_address;       /* the tree of them */
    uint64_t planned_requests, planned_bytes, fallback_requests, fallback_bytes, taken_requests;
    uint64_t flushes, retries, failures;
};

/* Creates the base part in memory of `bytes`, of which it is the first member. */
enum ar_status planned_create(const struct ar_policy_ops *ops, size_t bytes, uint64_t granule_bytes,
                              planned_rule *rule, const struct ar_policy_context *context,
                              const struct ar_policy_common *values, struct ar_policy **out,
                              struct ar_error *error);
void planned_destroy(struct ar_policy *base);
enum ar_status planned_plan(struct ar_policy *base, const struct ar_policy_lifetime *lifetimes,
                            size_t count);
enum ar_status planned_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                             struct ar_policy_block *out);
enum ar_status planned_free(struct ar_policy *base, const struct ar_policy_block *block,
                            uint32_t stream);
void planned_stats(const struct ar_policy *base, struct ar_policy_stats *out);
void planned_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument);
enum ar_status planned_validate(const struct ar_policy *base, struct ar_error *error);
uint64_t planned_servable(const struct ar_policy *base, enum ar_policy_effort effort);
enum ar_status planned_trim(struct ar_policy *base, uint64_t keep_bytes);
bool planned_report(const struct ar_policy *base, size_t index, char *name, size_t name_bytes,
                    uint64_t *value);

/* The hooks that are the same for every policy of the family. */
#define PLANNED_HOOKS                                                                              \
    .destroy = planned_destroy, .alloc = planned_alloc, .free = planned_free,                      \
    .stats = planned_stats, .walk = planned_walk, .validate = planned_validate,                    \
    .servable = planned_servable, .trim = planned_trim, .plan = planned_plan,                      \
    .report = planned_report

#define PLANNED_CAPABILITIES (AR_POLICY_OFFLINE | AR_POLICY_UNRANKED | AR_POLICY_WATCHES_FREE)

#endif
