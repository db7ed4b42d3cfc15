/* See frames.h: by where libraries lie, and by the endings of what is no Python. */
#include "workloads/formats/torch/frames.h"

#include <string.h>

bool frame_is_users(const char *file)
{
    static const char *const others[] = {
        "site-packages/", "dist-packages/", "/torch/", "<frozen", "??", "/lib/python"};
    size_t length = strlen(file);
    static const char *const native[] = {".cpp", ".cc", ".c", ".h", ".so", ".S", ".cu"};
    for (size_t i = 0; i < sizeof native / sizeof *native; i++) {
        size_t ending = strlen(native[i]);
        if (length >= ending && strcmp(file + length - ending, native[i]) == 0)
            return false;
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strstr(file, others[i]))
            return false;
    return length > 0;
}
