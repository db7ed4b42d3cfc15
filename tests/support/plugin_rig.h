/* The plug-in in a process of its own, on the stand-in for the driver: its settings are read once
 * in the life of a process, and its end is part of what is tested. */
#pragma once

#include <stddef.h>

#include "bench/plugin/plugin.h"

struct stand_in;

struct plugin_rig {
    struct stand_in *driver;
#define PLUGIN_RIG_FUNCTIONS(X)                                                                    \
    X(malloc)                                                                                      \
    X(free)                                                                                        \
    X(record_stream)                                                                               \
    X(empty_cache)                                                                                 \
    X(memory_fraction)                                                                             \
    X(base_alloc)                                                                                  \
    X(begin_pool)                                                                                  \
    X(end_pool)                                                                                    \
    X(release_pool)                                                                                \
    X(cupy_malloc)                                                                                 \
    X(cupy_free)                                                                                   \
    X(figure)                                                                                      \
    X(reset_peaks)                                                                                 \
    X(mark)
#define X(name) __typeof__(allocrig_##name) *name;
    PLUGIN_RIG_FUNCTIONS(X)
#undef X
};

/* Says `not true: ...` on standard output and ends the child with status 1. */
#define PLUGIN_CHECK(condition)                                                                    \
    do {                                                                                           \
        if (!(condition))                                                                          \
            plugin_rig_fail(__FILE__, __LINE__, #condition);                                       \
    } while (0)
_Noreturn void plugin_rig_fail(const char *file, int line, const char *condition);

/* Runs `body` in a child with these settings, a list of NAME=VALUE that ends with NULL, on the
 * plug-in of the build. Returns the status of the child, or 128 and more the signal that ended it.
 * What it says on standard error goes to `errors`, a file, where that is not NULL. */
int plugin_rig_run(const char *const *settings, const char *errors,
                   void (*body)(const struct plugin_rig *rig));

/* The whole of a small file, ended by NUL, in a buffer that the next call reuses; "" where there is
 * none. */
const char *plugin_rig_text(const char *path);
