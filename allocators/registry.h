/* The policies and decorators, and how a spec becomes an instance. */
#pragma once

#include "allocators/policy.h"

/* A decorator is a policy around another one, which it owns and destroys. A decorator that is also
 * between the policy and its memory has open and close. open is called before the policy is made
 * and returns the context that the policy gets in place of `outer`. wrap gets this context too, and
 * the decorator closes it when it is destroyed. If the policy cannot be made or wrapped, the
 * registry calls close. `fault` returns what the decorator found wrong and no call has returned;
 * NULL: nothing, or the policy is none of its own. */
struct decorator_ops {
    const char *name;
    const char *summary;
    const struct ar_option *options;
    size_t values_bytes;
    enum ar_status (*wrap)(const struct ar_policy_context *context, const void *values,
                           struct ar_policy *inner, struct ar_policy **out, struct ar_error *error);
    enum ar_status (*open)(const struct ar_policy_context *outer, const void *values,
                           const struct ar_policy_context **inner, struct ar_error *error);
    void (*close)(const struct ar_policy_context *inner);
    const char *(*fault)(const struct ar_policy *policy);
};

/* In the order of policies.def. NULL: the index is past the end. */
const struct ar_policy_ops *registry_policy(size_t index);
const struct decorator_ops *registry_decorator(size_t index);
const struct ar_policy_ops *registry_find(const char *name); /* NULL: there is none */

/* The ops of the policy of a spec, which is checked, without an instance. The policy is built in or
 * in the catalog of the spec. A name with a slash or with the ending .so is loaded as a shared
 * object and stays loaded. INVALID says what is wrong and which name is near. MISSING: the object
 * cannot be loaded. */
enum ar_status registry_lookup(const struct ar_spec *spec, const struct ar_policy_ops **out,
                               struct ar_error *error);

/* What every figure depends on and a policy must leave as it is: how floating point is rounded, and
 * the decimal point. */
unsigned registry_process_state(void);
/* Sets the rounding as it was, and returns CORRUPT, if `hook` has changed them. */
enum ar_status registry_process_check(unsigned state, const char *hook, struct ar_error *error);

/* Makes the policy of `spec` with its decorators. The caller destroys it with ar_policy_destroy.
 * The context and what it points to must outlive it. A policy of a shared object is guarded: a call
 * whose result breaks the contract returns CORRUPT, and ar_policy_problem names the policy. */
enum ar_status registry_create(const struct ar_spec *spec, const struct ar_policy_context *context,
                               struct ar_policy **out, struct ar_error *error);

/* Whether the policy of a spec is a shared object: code that did not pass the tests of this
 * program. */
bool registry_names_object(const struct ar_spec *spec);

/* For the end of a run: CORRUPT if the guard of a policy has found a fault that no call has
 * returned. */
enum ar_status registry_verdict(const struct ar_policy *policy, struct ar_error *error);
