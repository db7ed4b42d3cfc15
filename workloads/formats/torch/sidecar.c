/* The .json beside a recorded CSV.
 *
 * What: the recorder writes NAME.csv.gz with the events and NAME.json with the settings, the
 * card, which profiler stream belongs to which of the allocator's, and, where private pools
 * were in play, the pool of each segment. Keys that are absent leave their defaults. */
#include "workloads/formats/torch/sidecar.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef HAVE_JANSSON
#define HAVE_JANSSON 1
#endif
#if HAVE_JANSSON
#include <jansson.h>
#endif

#include "allocators/base/size.h"

void sidecar_close(struct sidecar *sidecar)
{
    free(sidecar->streams);
    free(sidecar->segments);
    *sidecar = (struct sidecar){0};
}

/* "x.csv.gz", "x.csv.zst" and "x.csv" have "x.json" beside them; NULL: no host memory. */
static char *path_beside(const char *csv_path)
{
    size_t length = strlen(csv_path);
    static const char *const endings[] = {".gz", ".zst", ".csv"};
    char *path = malloc(length + sizeof ".json");
    if (!path)
        return NULL;
    memcpy(path, csv_path, length + 1);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t cut = strlen(endings[i]);
        if (length > cut && !strcmp(path + length - cut, endings[i])) {
            length -= cut;
            path[length] = 0;
        }
    }
    memcpy(path + length, ".json", sizeof ".json");
    return path;
}

#if HAVE_JANSSON
static enum ar_status wrong(const char *what, struct ar_error *error)
{
    return ar_error_set(error, AR_FORMAT, "\"%s\" is not what a recorder writes there", what);
}

static enum ar_status take_text(const json_t *root, const char *key, char *out, size_t room,
                                struct ar_error *error)
{
    const json_t *value = json_object_get(root, key);
    if (!value || json_is_null(value))
        return AR_OK;
    const char *text = json_string_value(value);
    if (!text || strlen(text) >= room)
        return wrong(key, error);
    for (const char *at = text; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            return wrong(key, error);
    memcpy(out, text, strlen(text) + 1);
    return AR_OK;
}

static enum ar_status take_info(const json_t *root, struct trace_info *info, struct ar_error *error)
{
    char version[sizeof info->recorder - sizeof "torch "] = "";
    enum ar_status status = take_text(root, "torch", version, sizeof version, error);
    if (status)
        return status;
    (void)snprintf(info->recorder, sizeof info->recorder, "torch%s%s", *version ? " " : "",
                   version);
    status = take_text(root, "conf", info->conf, sizeof info->conf, error);
    if (!status)
        status = take_text(root, "card", info->card, sizeof info->card, error);
    if (status)
        return status;
    const json_t *limit = json_object_get(root, "limit");
    if (limit && (!json_is_integer(limit) || json_integer_value(limit) < 0))
        return wrong("limit", error);
    info->limit_bytes = limit ? (uint64_t)json_integer_value(limit) : 0;
    const char *failed = json_string_value(json_object_get(root, "failed"));
    info->complete = !failed || !*failed;
    return AR_OK;
}

static enum ar_status take_streams(const json_t *root, struct sidecar *out, struct ar_error *error)
{
    static const char key[] = "kernel_stream_of_stream";
    json_t *map = json_object_get(root, key);
    if (!map || json_is_null(map))
        return AR_OK;
    if (!json_is_object(map))
        return wrong(key, error);
    out->streams = calloc(json_object_size(map) + 1, sizeof *out->streams);
    if (!out->streams)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory to read it");
    const char *name;
    json_t *number;
    json_object_foreach(map, name, number)
    {
        struct sidecar_stream *stream = &out->streams[out->stream_count];
        if (ar_count_parse(name, &stream->allocator, NULL) || !json_is_integer(number) ||
            json_integer_value(number) < 0)
            return wrong(key, error);
        stream->profiler = (uint64_t)json_integer_value(number);
        out->stream_count++;
    }
    return AR_OK;
}

/* The ordinal of a pool, which the recording names by a pair of numbers. */
static uint32_t pool_ordinal(json_t *const *pools, size_t count, const json_t *pool)
{
    uint32_t ordinal = 0;
    for (size_t i = 0; i < count && !json_equal(pools[i], pool); i++)
        ordinal++;
    return ordinal;
}

static enum ar_status take_segments(const json_t *root, struct sidecar *out, struct ar_error *error)
{
    static const char key[] = "segments_made";
    const json_t *made = json_object_get(root, key);
    if (!made || json_is_null(made))
        return AR_OK;
    if (!json_is_array(made))
        return wrong(key, error);
    size_t count = json_array_size(made), pool_count = 1;
    out->segments = calloc(count + 1, sizeof *out->segments);
    json_t **pools = calloc(count + 1, sizeof *pools);
    json_t *common = json_pack("[ii]", 0, 0);
    enum ar_status status = AR_OK;
    if (!out->segments || !pools || !common)
        status = ar_error_set(error, AR_HOST_MEMORY, "no host memory to read it");
    else
        pools[0] = common;
    for (size_t i = 0; i < count && !status; i++) {
        const json_t *segment = json_array_get(made, i);
        const json_t *address = json_object_get(segment, "address");
        json_t *pool = json_object_get(segment, "pool");
        if (!json_is_integer(address) || json_integer_value(address) < 0 || !json_is_array(pool)) {
            status = wrong(key, error);
            break;
        }
        uint32_t ordinal = pool_ordinal(pools, pool_count, pool);
        if (ordinal == pool_count)
            pools[pool_count++] = pool;
        out->segments[i] = (struct sidecar_segment){(uint64_t)json_integer_value(address), ordinal};
        out->segment_count = i + 1;
    }
    json_decref(common);
    free(pools);
    return status;
}

static enum ar_status load(const char *path, json_t **root, struct ar_error *error)
{
    json_error_t why;
    *root = json_load_file(path, 0, &why);
    if (!*root)
        return ar_error_set(error, AR_FORMAT, "line %d: %s", why.line, why.text);
    return json_is_object(*root) ? AR_OK
                                 : ar_error_set(error, AR_FORMAT, "a JSON object was wanted");
}

static enum ar_status take_stats(const char *path, struct trace_stats *out, struct ar_error *error)
{
    json_t *root;
    const char *name;
    json_t *value;
    enum ar_status status = load(path, &root, error);
    json_t *stats = status ? NULL : json_object_get(root, "stats");
    if (stats && !json_is_null(stats) && !json_is_object(stats))
        status = wrong("stats", error);
    if (!status && json_is_object(stats)) {
        json_object_foreach(stats, name, value)
        {
            if (!json_is_integer(value) || json_integer_value(value) < 0)
                continue; /* max_split_size is -1 where there is none */
            status = trace_stats_add(out, name, strlen(name), (uint64_t)json_integer_value(value),
                                     error);
            if (status)
                break;
        }
    }
    json_decref(root);
    return status;
}

static enum ar_status read_file(const char *path, struct trace_info *info, struct sidecar *out,
                                struct ar_error *error)
{
    json_t *root;
    enum ar_status status = load(path, &root, error);
    if (!status)
        status = take_info(root, info, error);
    if (!status)
        status = take_streams(root, out, error);
    if (!status)
        status = take_segments(root, out, error);
    json_decref(root);
    return status;
}
#else
static enum ar_status read_file(const char *path, struct trace_info *info, struct sidecar *out,
                                struct ar_error *error)
{
    (void)path, (void)info, (void)out;
    return ar_error_set(
        error, AR_MISSING,
        "this build has no jansson, which reading it needs: install its development "
        "package (`make deps`) and build again");
}

static enum ar_status take_stats(const char *path, struct trace_stats *out, struct ar_error *error)
{
    struct trace_info info;
    (void)out;
    return read_file(path, &info, NULL, error);
}
#endif

enum ar_status sidecar_stats_read(const char *csv_path, struct trace_stats *out,
                                  struct ar_error *error)
{
    *out = (struct trace_stats){0};
    char *path = path_beside(csv_path);
    if (!path)
        return ar_error_set(error, AR_HOST_MEMORY, "%s: no host memory to read it", csv_path);
    enum ar_status status = AR_OK;
    if (access(path, F_OK) == 0)
        status = take_stats(path, out, error);
    if (status)
        ar_error_prefix(error, status, "%s (beside %s)", path, csv_path);
    free(path);
    return status;
}

enum ar_status sidecar_read(const char *csv_path, struct trace_info *info, struct sidecar *out,
                            struct ar_error *error)
{
    char *path = path_beside(csv_path);
    if (!path)
        return ar_error_set(error, AR_HOST_MEMORY, "%s: no host memory to read it", csv_path);
    enum ar_status status = AR_OK;
    if (access(path, F_OK) == 0)
        status = read_file(path, info, out, error);
    if (status)
        ar_error_prefix(error, status, "%s (beside %s)", path, csv_path);
    free(path);
    return status;
}
