/* Policies from shared objects. An object stays loaded to the end of the program: its ops and
 * code are pointed to from everywhere, and loading it again gives the same ones. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "allocators/registry.h"

enum ar_status loader_open(const char *path, const struct ar_policy_ops **out,
                           struct ar_error *error)
{
    /* Without a slash dlopen would look in the system's folders and not in this one. */
    char here[4096];
    const char *file = path;
    if (!strchr(path, '/')) {
        if (snprintf(here, sizeof here, "./%s", path) >= (int)sizeof here)
            return ar_error_set(error, AR_INVALID, "the file name of the policy is too long");
        file = here;
    }
    void *object = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!object)
        return ar_error_set(error, AR_MISSING,
                            "the policy \"%.200s\" cannot be loaded (%.300s); give the path of a "
                            "shared object, built with -shared -fPIC",
                            path, dlerror());
    void *symbol = dlsym(object, AR_POLICY_ENTRY_NAME);
    if (!symbol)
        return ar_error_set(error, AR_MISSING,
                            "\"%.200s\" is no policy: it has no function %s; "
                            "allocators/README.md shows the one to write",
                            path, AR_POLICY_ENTRY_NAME);
    /* ISO C has no conversion from a data pointer to a function's; POSIX promises that the
     * bytes are the same. */
    ar_policy_entry *entry;
    memcpy(&entry, &symbol, sizeof entry);
    const struct ar_policy_ops *ops = entry();
    if (!ops)
        return ar_error_set(error, AR_INVALID, "%s in \"%.200s\" returned NULL",
                            AR_POLICY_ENTRY_NAME, path);
    enum ar_status status = ar_policy_check(ops, error);
    if (status)
        return ar_error_prefix(error, status, "in \"%.200s\"", path);
    *out = ops;
    return AR_OK;
}
