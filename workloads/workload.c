/* Opens the workload that a user names: a path if it looks like one, else a generator's spec. */
#include "workloads/workload.h"

#include <sys/stat.h>

#include "allocators/base/size.h"
#include "workloads/formats/formats.h"
#include "workloads/gen/gen.h"
#include "workloads/io/fields.h"
#include "workloads/learned/learned.h"

static bool looks_like_path(const char *text)
{
    static const char *const endings[] = {".gz", ".zst", ".csv", ".txt", ".bin", ".trace"};
    struct stat about;
    if (stat(text, &about) == 0 && (!S_ISDIR(about.st_mode) || !gen_find(text)))
        return true;
    if (lstat(text, &about) == 0 && !gen_find(text)) /* a link that leads nowhere */
        return true;
    size_t before_keys = strcspn(text, ":");
    if (strncmp(text, LEARNED_NAME ":", sizeof LEARNED_NAME) == 0)
        return false;
    if (memchr(text, '/', before_keys))
        return true;
    for (size_t i = 0; i < AR_COUNT(endings); i++)
        if (field_ends_with(text, endings[i]))
            return true;
    return false;
}

/* Tables name a recording without its folder and ending: for such a name the error has the file. */
static bool is_recording(const char *name, char *path, size_t path_bytes)
{
    static const char *const endings[] = {".default.csv.gz", ".csv.gz"};
    struct stat about;
    for (size_t i = 0; i < AR_COUNT(endings); i++) {
        int length = snprintf(path, path_bytes, "workloads/data/%s%s", name, endings[i]);
        if (length > 0 && (size_t)length < path_bytes && stat(path, &about) == 0 &&
            S_ISREG(about.st_mode))
            return true;
    }
    return false;
}

/* `learned`: the recording is any workload that `text` may name. */
static enum ar_status open_learned(const struct ar_spec *spec, struct trace_source **out,
                                   struct ar_error *error)
{
    struct learned_values values = {0};
    AR_CLOSED(trace_close_at) struct trace_source *recording = NULL;
    struct learned_model *model = NULL;
    AR_TRY(ar_options_read(learned_options, &spec->links[0], "workload " LEARNED_NAME, &values,
                           error));
    if (!values.trace)
        return ar_invalid(error, "workload " LEARNED_NAME ": which recording? Write " LEARNED_NAME
                                 ":trace=FILE");
    AR_TRY(workload_open(values.trace, &recording, error));
    AR_TRY(learned_model_make(recording, NULL, &model, error));
    AR_TRY(learned_open(model, &values, out, error));
    struct trace_info *info = &(*out)->info;
    trace_name_put(info->name, sizeof info->name, spec->text, strlen(spec->text));
    return AR_OK;
}

static enum ar_status generator_open(const struct ar_spec *spec, struct trace_source **out,
                                     struct ar_error *error)
{
    const char *name = spec->links[0].name;
    char path[256];
    if (strcmp(name, LEARNED_NAME) == 0)
        return open_learned(spec, out, error);
    if (!gen_find(name) && is_recording(name, path, sizeof path))
        return ar_invalid(
            error,
            "there is no generator \"%s\"; for the recording of that name write its file, %s", name,
            path);
    if (strcmp(name, "-") == 0)
        return ar_invalid(error, "-: a trace is not read from standard input; name a file");
    if (strchr(name, '.')) /* meant for a file */
        return ar_invalid(error,
                          "%.200s: there is no such file, and no generator of that name "
                          "(`list workloads`)",
                          name);
    return gen_open(spec, out, error);
}

/* "FILE:anything" of a file that exists. */
static bool is_behind_file(const char *text)
{
    struct stat about;
    const char *colon = stat(text, &about) ? strrchr(text, ':') : NULL;
    char *path = colon ? strndup(text, (size_t)(colon - text)) : NULL;
    bool is_file = path && stat(path, &about) == 0 && S_ISREG(about.st_mode);
    free(path);
    return is_file;
}

static enum ar_status spec_open(const char *text, struct trace_source **out, struct ar_error *error)
{
    AR_CLOSED(ar_spec_close) struct ar_spec spec = {0};
    AR_TRY(ar_spec_parse(text, &spec, error));
    return spec.link_count == 1
               ? generator_open(&spec, out, error)
               : ar_invalid(error,
                            "workload \"%.200s\": a workload has no decorators; name a generator "
                            "or a trace file",
                            text);
}

/* ---- GPUs ------------------------------------------------------------------------------------ */

#define GPU_KEY ":device="

bool workload_is_gpu(const char *text)
{
    return *text && !text[strspn(text, "0123456789")];
}

const char *workload_gpu_of(const char *text)
{
    struct stat about;
    const char *number = NULL;
    for (const char *at = text; (at = strstr(at, GPU_KEY)) != NULL;)
        number = at += sizeof GPU_KEY - 1;
    return number && workload_is_gpu(number) && stat(text, &about) != 0 ? number : NULL;
}

enum ar_status workload_gpu_parse(const char *text, uint32_t *gpu, struct ar_error *error)
{
    uint64_t number;
    enum ar_status status = ar_count_parse(text, &number, error);
    if (!status && number > UINT32_MAX)
        status = ar_invalid(error, "%.40s: there is no GPU of that number", text);
    *gpu = status ? 0 : (uint32_t)number;
    return status;
}

/* The path in "PATH:device=N", for the caller to free; NULL: `text` is none. */
static char *path_of_gpu(const char *text, uint32_t *gpu)
{
    const char *number = workload_gpu_of(text);
    if (!number || workload_gpu_parse(number, gpu, NULL))
        return NULL;
    char *path = strndup(text, (size_t)(number - text) - (sizeof GPU_KEY - 1));
    if (path && looks_like_path(path))
        return path;
    free(path);
    return NULL;
}

static enum ar_status open_gpu(const char *path, uint32_t gpu, bool recording,
                               struct trace_source **out, struct ar_error *error)
{
    char mark[24];
    AR_TRY(trace_open_device(path, gpu, recording, out, error));
    struct trace_info *info = &(*out)->info;
    int length = snprintf(mark, sizeof mark, " gpu%" PRIu32, gpu);
    size_t at = strnlen(info->name, sizeof info->name - (size_t)length - 1);
    memcpy(info->name + at, mark, (size_t)length + 1);
    return AR_OK;
}

/* Whether spec_open() has an answer to the name that helps if a recording is meant. */
static bool is_generator(const char *text)
{
    char name[64], path[256];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(text, ":"), text);
    return gen_find(name) || strcmp(name, LEARNED_NAME) == 0 ||
           is_recording(name, path, sizeof path);
}

static enum ar_status open_text(const char *text, bool recording, struct trace_source **out,
                                struct ar_error *error)
{
    uint32_t gpu;
    AR_FREED char *path = path_of_gpu(text, &gpu);
    if (path)
        return open_gpu(path, gpu, recording, out, error);
    if (is_behind_file(text))
        return ar_invalid(
            error, "%.200s: behind a trace file only :device=N is known, with the number of a GPU",
            text);
    if (looks_like_path(text))
        return recording ? trace_open_recording(text, out, error) : trace_open(text, out, error);
    return recording && !is_generator(text)
               ? ar_invalid(error,
                            "%.200s: there is no such file, and no generator of that name "
                            "(`list workloads`)",
                            text)
               : spec_open(text, out, error);
}

enum ar_status workload_open(const char *text, struct trace_source **out, struct ar_error *error)
{
    return open_text(text, false, out, error);
}

enum ar_status workload_open_recording(const char *text, struct trace_source **out,
                                       struct ar_error *error)
{
    return open_text(text, true, out, error);
}

static bool has_several(const struct trace_info *info)
{
    return info->has_far_gpu ? info->gpus != 0 : (info->gpus & (info->gpus - 1)) != 0;
}

enum ar_status workload_open_single(const char *text, struct trace_source **out,
                                    struct ar_error *error)
{
    AR_TRY(workload_open(text, out, error));
    if (!has_several(&(*out)->info))
        return AR_OK;
    trace_close(*out);
    *out = NULL;
    return ar_invalid(error, "%s: it has requests of several GPUs; select one: %s" GPU_KEY "N",
                      text, text);
}

static void close_part(struct workload_part *part)
{
    trace_close(part->source);
    part->source = NULL;
}

enum ar_status workload_named(const char *text, const struct trace_source *source,
                              enum ar_status status, struct ar_error *error)
{
    const char *name = source ? source->info.name : text;
    if (!error || (status != AR_INVALID && status != AR_FORMAT) || strstr(error->text, text) ||
        strncmp(error->text, name, strlen(name)) == 0)
        return status;
    return ar_error_prefix(error, status, "%.200s", text);
}

static enum ar_status pass_on(struct workload_part *part, workload_take *take, void *argument,
                              struct ar_error *error)
{
    const struct trace_source *source = part->source;
    enum ar_status status = take(argument, part, error);
    return workload_named(part->text, part->source ? source : NULL, status, error);
}

/* Opens one GPU of `text` and passes it on. */
static enum ar_status take_gpu(const char *text, uint32_t gpu, bool recording, bool several,
                               workload_take *take, void *argument, struct ar_error *error)
{
    AR_FREED char *with = NULL;
    if (asprintf(&with, "%s" GPU_KEY "%" PRIu32, text, gpu) < 0)
        return ar_no_memory(error, "the name of a workload");
    AR_CLOSED(close_part) struct workload_part part = {.text = with, .several = several};
    AR_TRY(open_text(with, recording, &part.source, error));
    return pass_on(&part, take, argument, error);
}

/* Applies --device. `path`: of a text that selects another GPU. */
static enum ar_status select_gpu(const char *text, const char *path,
                                 const struct workload_choice *choice, workload_take *take,
                                 void *argument, struct ar_error *error)
{
    if (path)
        return ar_invalid(
            error, "%s selects a GPU, and --device %" PRIu32 " another one; leave one of them out",
            text, *choice->gpu);
    if (looks_like_path(text))
        return take_gpu(text, *choice->gpu, choice->recording, false, take, argument, error);
    return ar_invalid(error,
                      "--device %" PRIu32
                      " selects a GPU of a file, and %s is a generator, which has one GPU",
                      *choice->gpu, text);
}

enum ar_status workload_each(const char *text, const struct workload_choice *choice,
                             workload_take *take, void *argument, struct ar_error *error)
{
    uint32_t in_text;
    AR_FREED char *path = path_of_gpu(text, &in_text);
    bool selected = path && choice->gpu && *choice->gpu == in_text;
    if (choice->gpu && !selected)
        return select_gpu(text, path, choice, take, argument, error);
    AR_CLOSED(close_part) struct workload_part part = {.text = text};
    AR_TRY(open_text(text, choice->recording, &part.source, error));
    const struct trace_info info = part.source->info;
    if (!has_several(&info))
        return pass_on(&part, take, argument, error);
    close_part(&part);
    if (info.has_far_gpu)
        return ar_invalid(
            error,
            "%s: it has requests of GPUs with numbers from 64 up; select one GPU: --device N",
            text);
    for (uint32_t gpu = 0; gpu < 64; gpu++)
        if (info.gpus >> gpu & 1)
            AR_TRY(take_gpu(text, gpu, choice->recording, true, take, argument, error));
    return AR_OK;
}
