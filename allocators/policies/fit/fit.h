/* The textbook fits: one arena without a bound, exact splits, immediate merging. First fit and
 * best fit share all but the search; each brings its ops and its order of the holes. */
#ifndef ALLOCATORS_POLICIES_FIT_FIT_H
#define ALLOCATORS_POLICIES_FIT_FIT_H

#include "allocators/base/range_tree.h"
#include "allocators/policies/fit/supply.h"
#include "allocators/policy.h"

struct fit_values {
    struct ar_policy_common common;
    uint64_t granule_bytes;
    bool wilderness; /* see rule 4 in fit.c; by address it changes nothing */
};

#define FIT_OPTIONS                                                                                \
    {                                                                                              \
        "granule", AR_OPTION_BYTES, offsetof(struct fit_values, granule_bytes), "0", 0, 0, NULL,   \
            "bytes that sizes and addresses are rounded up to, a power of two; 0: 1 where the "    \
            "device's own granule is 1, else 256"                                                  \
    }

struct fit {
    struct ar_policy base;
    enum ar_range_order order;   /* of the holes */
    struct ar_range_pool ranges; /* used ones, holes and gaps, a list in address order; `extra` is
                                 the bytes asked for, or a hole's releasable bytes */
    uint32_t first, last;        /* of the list; 0: empty */
    uint32_t free_blocks;        /* the tree */
    bool keeps_wilderness;       /* rule 4 in fit.c */
    uint64_t top;                /* the end of the last range */
    uint64_t granule_bytes, limit_bytes;
    struct supply supply;
    struct ar_policy_stats counted; /* its counters only */
};

enum ar_status fit_create(const struct ar_policy_ops *ops, enum ar_range_order order,
                          const struct ar_policy_context *context, const void *values,
                          struct ar_policy **out, struct ar_error *error);
void fit_destroy(struct ar_policy *base);
enum ar_status fit_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                         struct ar_policy_block *out);
enum ar_status fit_free(struct ar_policy *base, const struct ar_policy_block *block,
                        uint32_t stream);
void fit_stats(const struct ar_policy *base, struct ar_policy_stats *out);
void fit_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument);
enum ar_status fit_validate(const struct ar_policy *base, struct ar_error *error);
enum ar_status fit_use(struct ar_policy *base, const struct ar_policy_block *block,
                       uint32_t stream);
enum ar_status fit_trim(struct ar_policy *base, uint64_t keep_bytes);
const char *fit_problem(const struct ar_policy *base);

/* The hooks that are the same for every policy of the family. */
#define FIT_HOOKS                                                                                  \
    .destroy = fit_destroy, .alloc = fit_alloc, .free = fit_free, .stats = fit_stats,              \
    .walk = fit_walk, .validate = fit_validate, .use = fit_use, .trim = fit_trim,                  \
    .problem = fit_problem

#define FIT_CAPABILITIES (AR_POLICY_WATCHES_FREE | AR_POLICY_HONOURS_ALIGNMENT)

/* Whether a range is a hole: in the tree. The rest are marked in `left`. */
#define FIT_USED UINT32_MAX
#define FIT_GAP  (UINT32_MAX - 1) /* between two supplies that do not touch */

static inline bool fit_is_free_block(const struct ar_range_node *range)
{
    return range->left < FIT_GAP;
}

/* Bytes of a hole that lie in whole pages or segments. */
uint64_t fit_releasable(const struct fit *self, const struct ar_range_node *free_block);

#endif
