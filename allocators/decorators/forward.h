/* The base of all decorators: a policy that forwards every hook to the policy inside. A decorator
 * creates it with room for its own fields and replaces some of the hooks in `ops`. Hooks that the
 * inner policy lacks stay NULL. */
#pragma once

#include "allocators/policy.h"

/* The base of every decorator: the first member of its own struct. */
struct forward {
    struct ar_policy base;
    struct ar_policy_ops ops; /* base.ops points here */
    struct ar_policy *inner;  /* owned */
    struct ar_host *host;
    size_t own_bytes;
    char name[80]; /* "checked+growth" */
};

/* Makes a decorator of `own_bytes`, zeroed except for this part, around `inner`, which it owns from
 * then on. NULL: no host memory, and `inner` still belongs to the caller. */
void *forward_create(struct ar_host *host, size_t own_bytes, const char *prefix,
                     struct ar_policy *inner, struct ar_error *error);

/* The policy inside, for a call that may change it. Call forward_settle after it. */
struct ar_policy *forward_enter(struct ar_policy *base);
void forward_settle(struct ar_policy *base);

/* The forwarding hooks, for a decorator that does something before or after them. */
enum ar_status forward_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                             struct ar_policy_block *out);
enum ar_status forward_free(struct ar_policy *base, const struct ar_policy_block *block,
                            uint32_t stream);
enum ar_status forward_use(struct ar_policy *base, const struct ar_policy_block *block,
                           uint32_t stream);
void forward_retire(struct ar_policy *base, const struct ar_policy_block *block);
enum ar_status forward_adopt(struct ar_policy *base, const struct ar_policy_range *ranges,
                             size_t count, struct ar_policy_block *blocks);
void forward_progress(struct ar_policy *base);
enum ar_status forward_trim(struct ar_policy *base, uint64_t keep_bytes);
void forward_destroy(struct ar_policy *base);
