/* Policies from shared objects. An object stays loaded to the end of the program: its ops and
 * code are pointed to from everywhere, and loading it again gives the same ones. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "allocators/registry.h"

enum status loader_open(const char *path, const struct policy_ops **out, struct error *error)
{
    /* Without a slash dlopen would look in the system's folders and not in this one. */
    char here[4096];
    const char *file = path;
    if (!strchr(path, '/')) {
        if (snprintf(here, sizeof here, "./%s", path) >= (int)sizeof here)
            return error_set(error, STATUS_INVALID, "the file name of the policy is too long");
        file = here;
    }
    void *object = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!object)
        return error_set(error, STATUS_MISSING,
                         "the policy \"%.200s\" cannot be loaded (%.300s); give the path of a "
                         "shared object, built with -shared -fPIC",
                         path, dlerror());
    void *symbol = dlsym(object, POLICY_ENTRY_NAME);
    if (!symbol)
        return error_set(error, STATUS_MISSING,
                         "\"%.200s\" is no policy: it has no function %s; "
                         "allocators/README.md shows the one to write",
                         path, POLICY_ENTRY_NAME);
    /* ISO C has no conversion from a data pointer to a function's; POSIX promises that the
     * bytes are the same. */
    policy_entry *entry;
    memcpy(&entry, &symbol, sizeof entry);
    const struct policy_ops *ops = entry();
    if (!ops)
        return error_set(error, STATUS_INVALID, "%s in \"%.200s\" returned NULL", POLICY_ENTRY_NAME,
                         path);
    enum status status = policy_check(ops, error);
    if (status)
        return error_prefix(error, status, "in \"%.200s\"", path);
    *out = ops;
    return STATUS_OK;
}
