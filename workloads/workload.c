/* Opens the workload that a user names: a path if it looks like one, else a generator's spec. */
#include "workloads/workload.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "allocators/spec.h"
#include "workloads/formats/formats.h"
#include "workloads/gen/gen.h"
#include "workloads/trace/trace.h"

static bool looks_like_path(const char *text)
{
    static const char *const endings[] = {".gz", ".zst", ".csv", ".txt", ".bin", ".trace"};
    struct stat about;
    size_t length = strlen(text);
    if (stat(text, &about) == 0 && (!S_ISDIR(about.st_mode) || !gen_find(text)))
        return true;
    size_t before_keys = strcspn(text, ":");
    if (memchr(text, '/', before_keys))
        return true;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t ending = strlen(endings[i]);
        if (length > ending && !strcmp(text + length - ending, endings[i]))
            return true;
    }
    return false;
}

/* Tables name a recording without its folder and ending: for such a name the error has the file. */
static bool is_recording(const char *name, char *path, size_t path_bytes)
{
    static const char *const endings[] = {".default.csv.gz", ".csv.gz"};
    struct stat about;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        int length = snprintf(path, path_bytes, "workloads/data/%s%s", name, endings[i]);
        if (length > 0 && (size_t)length < path_bytes && stat(path, &about) == 0 &&
            S_ISREG(about.st_mode))
            return true;
    }
    return false;
}

static enum ar_status generator_open(const struct ar_spec *spec, struct trace_source **out,
                                     struct ar_error *error)
{
    const char *name = spec->links[0].name;
    char path[256];
    if (!gen_find(name) && is_recording(name, path, sizeof path))
        return ar_error_set(
            error, AR_INVALID,
            "there is no generator \"%s\"; for the recording of that name write its "
            "file, %s",
            name, path);
    return gen_open(spec, out, error);
}

enum ar_status workload_open(const char *text, struct trace_source **out, struct ar_error *error)
{
    if (looks_like_path(text))
        return trace_open(text, out, error);
    struct ar_spec spec;
    enum ar_status status = ar_spec_parse(text, &spec, error);
    if (status)
        return status;
    if (spec.link_count != 1)
        status =
            ar_error_set(error, AR_INVALID,
                         "workload \"%.200s\": a workload has no decorators; name a generator or "
                         "a trace file",
                         text);
    else
        status = generator_open(&spec, out, error);
    ar_spec_close(&spec);
    return status;
}
