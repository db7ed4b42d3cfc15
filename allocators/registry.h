/* The policies and decorators there are, and how a spec becomes an instance. */
#ifndef ALLOCATORS_REGISTRY_H
#define ALLOCATORS_REGISTRY_H

#include "allocators/policy.h"
#include "allocators/spec.h"

/* A decorator is a policy whose create takes the one inside. It owns that and destroys it.
 * One that also stands between the policy and its memory has open and close: open is called
 * before the policy is made and answers with the context that the policy is to get in place of
 * `outer`; wrap gets that one, and the decorator gives it up when it is destroyed itself. Where
 * the policy cannot be made or wrapped, the registry calls close. */
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
};

/* In the order of policies.def. NULL past the end. */
const struct ar_policy_ops *registry_policy(size_t index);
const struct decorator_ops *registry_decorator(size_t index);
const struct ar_policy_ops *registry_find(const char *name); /* NULL: none */

/* What a spec names, built in or in its catalog, checked: its ops, without making an instance. A name with a slash or
 * ending in .so is loaded as a shared object and stays loaded. INVALID says what is wrong
 * and which name is near; MISSING where the object cannot be loaded. */
enum ar_status registry_lookup(const struct ar_spec *spec, const struct ar_policy_ops **out,
                               struct ar_error *error) AR_STATUS_CHECKED;

/* Makes the policy of `spec` with its decorators around it. The caller destroys it with
 * ar_policy_destroy; context and what it points to must outlive it. */
enum ar_status registry_create(const struct ar_spec *spec, const struct ar_policy_context *context,
                               struct ar_policy **out, struct ar_error *error) AR_STATUS_CHECKED;

/* Loads `allocrig_policy` from a shared object, which stays loaded, and checks what it brings.
 * MISSING where the file cannot be loaded or has no such entry, INVALID where what it brings
 * does not fit. registry_lookup calls it. */
enum ar_status loader_open(const char *path, const struct ar_policy_ops **out,
                           struct ar_error *error) AR_STATUS_CHECKED;

#endif
