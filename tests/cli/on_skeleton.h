/* The skeleton as the inside of another policy, for the shared objects that tests build: its
 * functions, and its hooks but for create and alloc. */
#pragma once

#define skeleton_policy inner_policy
#define allocrig_policy inner_entry
#include "allocators/skeleton/skeleton.c"
#undef skeleton_policy
#undef allocrig_policy

const struct ar_policy_ops *allocrig_policy(void);

#define ON_SKELETON                                                                                \
    .abi = AR_POLICY_ABI, .ops_bytes = sizeof(struct ar_policy_ops), .reference = "none",          \
    .capabilities = AR_POLICY_WATCHES_FREE, .destroy = skeleton_destroy, .free = skeleton_free,    \
    .stats = skeleton_stats, .walk = skeleton_walk, .validate = skeleton_validate,                 \
    .trim = skeleton_trim, .problem = skeleton_problem
