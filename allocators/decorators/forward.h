/* What all decorators share: a policy that hands every hook on to the one inside. A decorator
 * makes one with room for its own fields, then puts its own hooks in place of some of
 * `ops`. Hooks that the inner policy lacks stay absent, so that the outer one has its shape. */
#ifndef ALLOCATORS_DECORATORS_FORWARD_H
#define ALLOCATORS_DECORATORS_FORWARD_H

#include "allocators/policy.h"

/* The base of every decorator: the first member of its own struct. */
struct forward {
    struct policy base;
    struct policy_ops ops; /* base.ops points here */
    struct policy *inner;  /* owned */
    struct host *host;
    size_t own_bytes;
    char name[80]; /* "checked+growth" */
};

/* Makes a decorator of `own_bytes`, zeroed but for this part, around `inner`, which it owns
 * from then on. NULL where the host has no memory: `inner` stays the caller's. */
void *forward_create(struct host *host, size_t own_bytes, const char *prefix, struct policy *inner,
                     struct error *error) STATUS_CHECKED;

/* The one inside, ready for a call that may change it. After the call: forward_settle. */
struct policy *forward_enter(struct policy *base);
void forward_settle(struct policy *base);

/* The hooks, for a decorator that does something before or after. */
enum status forward_alloc(struct policy *base, const struct policy_request *request,
                          struct policy_block *out);
enum status forward_free(struct policy *base, const struct policy_block *block, uint32_t stream);
enum status forward_use(struct policy *base, const struct policy_block *block, uint32_t stream);
void forward_retire(struct policy *base, const struct policy_block *block);
enum status forward_adopt(struct policy *base, const struct policy_range *ranges, size_t count,
                          struct policy_block *blocks);
void forward_progress(struct policy *base);
enum status forward_trim(struct policy *base, uint64_t keep_bytes);
void forward_destroy(struct policy *base);

#endif
