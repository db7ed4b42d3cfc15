/* Finds libcupti in a program that may have its own: the first library that accepts the
 * subscription.
 *
 * The order is: 1. ALLOCRIG_CUPTI only, if it is set; 2. a library that is loaded already; 3. the
 * paths of the system's loader; 4. CUDA_HOME, CUDA_PATH and /usr/local/cuda; 5. the folders of
 * NVIDIA's packages next to any loaded Python package. */
#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "allocators/base/api.h"
#include "workloads/record/injection/state.h"

static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};

struct search {
    struct recorder *recorder;
    CUpti_CallbackFunc callback;
    bool done;
    bool ended; /* no other library can work either */
    bool told;
    char *why; /* of the first library that failed */
    size_t room;
};

/* dlsym returns the address of an object; C has no conversion to the address of a function. */
static bool find_function(void *library, const char *name, void *pointer)
{
    void *address = dlsym(library, name);
    memcpy(pointer, &address, sizeof address);
    return address != NULL;
}

static bool fill(void *library, struct cupti_library *cupti, const char **missing)
{
    enum { OPTIONAL, REQUIRED };
#define X(name, kind)                                                                              \
    if (!find_function(library, #name, &cupti->name) && (kind) == REQUIRED) {                      \
        *missing = #name;                                                                          \
        return false;                                                                              \
    }
    CUPTI_FUNCTIONS(X)
#undef X
    return true;
}

static void tell(struct search *search, const char *path, const char *what, const char *name,
                 const char *more)
{
    if (!search->told)
        snprintf(search->why, search->room, "%s %s %s%s", path, what, name, more);
    search->told = true;
}

/* Whether the library can be used. */
static bool take(struct search *search, void *library, const char *path)
{
    struct cupti_library *cupti = &search->recorder->cupti;
    const char *missing = "";
    if (!fill(library, cupti, &missing)) {
        tell(search, path, "has no function", missing, "");
        return false;
    }
    CUptiResult result =
        cupti->cuptiSubscribe(&search->recorder->subscriber, search->callback, search->recorder);
    if (result != CUPTI_SUCCESS) {
        const char *text = "an unknown error";
        (void)cupti->cuptiGetResultString(result, &text);
        search->ended = result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
        search->told &= !search->ended;
        tell(search, path, "refuses the subscription:", text,
             search->ended ? "; another profiler holds it, and only one can" : "");
        return false;
    }
    (void)cupti->cuptiGetVersion(&search->recorder->cupti_version);
    return true;
}

static bool try_path(struct search *search, const char *path, int flags)
{
    if (search->done || search->ended)
        return true;
    void *library = dlopen(path, flags | RTLD_NOW | RTLD_LOCAL);
    if (library && take(search, library, path))
        search->done = true; /* it stays loaded as long as the process */
    else if (library)
        dlclose(library);
    return search->done || search->ended;
}

static void try_names(struct search *search, const char *folder, int flags)
{
    char path[600];
    for (size_t i = 0; i < AR_COUNT(names); i++) {
        snprintf(path, sizeof path, "%s%s%s", folder, *folder ? "/" : "", names[i]);
        if (try_path(search, path, flags))
            return;
    }
}

static void try_toolkit(struct search *search, const char *folder)
{
    static const char *const below[] = {"lib64", "extras/CUPTI/lib64", "lib",
                                        "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"};
    char path[500];
    for (size_t i = 0; folder && i < AR_COUNT(below); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, below[i]);
        try_names(search, path, 0);
    }
}

static void try_packages(struct search *search, const char *folder)
{
    char pattern[600];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/nvidia/*/lib/libcupti.so.*", folder);
    if (glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = found.gl_pathc; i-- > 0;) /* the newest first */
        (void)try_path(search, found.gl_pathv[i], 0);
    globfree(&found);
}

/* The mapped files of the process: a libcupti of another name, and packages. */
static void try_mapped(struct search *search, bool packages)
{
    char line[1024], before[1024] = "";
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && !search->done && !search->ended && fgets(line, sizeof line, maps)) {
        char *path = strchr(line, '/');
        if (!path)
            continue;
        path[strcspn(path, "\n")] = '\0';
        if (!packages) {
            if (strstr(path, "/libcupti.so"))
                (void)try_path(search, path, RTLD_NOLOAD);
            continue;
        }
        char *folder = strstr(path, "-packages/");
        if (!folder)
            continue;
        folder[strlen("-packages")] = '\0';
        if (strcmp(path, before) != 0) {
            try_packages(search, path);
            snprintf(before, sizeof before, "%s", path);
        }
    }
    if (maps)
        fclose(maps);
}

static void open_driver(struct driver_library *driver)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (!library)
        return;
    (void)find_function(library, "cuMemGetInfo_v2", &driver->mem_get_info);
    (void)find_function(library, "cuDeviceGetName", &driver->device_get_name);
    (void)find_function(library, "cuDeviceTotalMem_v2", &driver->device_total_mem);
    (void)find_function(library, "cuDriverGetVersion", &driver->driver_get_version);
}

bool libraries_open(struct recorder *recorder, CUpti_CallbackFunc callback, char *why, size_t room)
{
    struct search search = {.recorder = recorder, .callback = callback, .why = why, .room = room};
    const char *chosen = getenv(SPOOL_CUPTI_VARIABLE);
    snprintf(why, room,
             "there is no libcupti.so.13 or .12 on this machine; install the CUDA toolkit or `pip "
             "install nvidia-cuda-cupti`, or name it in " SPOOL_CUPTI_VARIABLE);
    open_driver(&recorder->driver);
    if (chosen && *chosen) {
        snprintf(why, room, SPOOL_CUPTI_VARIABLE "=%s cannot be loaded", chosen);
        (void)try_path(&search, chosen, 0);
        return search.done;
    }
    try_names(&search, "", RTLD_NOLOAD);
    try_mapped(&search, false);
    try_names(&search, "", 0);
    try_toolkit(&search, getenv("CUDA_HOME"));
    try_toolkit(&search, getenv("CUDA_PATH"));
    try_toolkit(&search, "/usr/local/cuda");
    try_mapped(&search, true);
    return search.done;
}
