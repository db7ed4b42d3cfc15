/* The .json of a recorded CSV.
 *
 * The recorder writes the events into NAME.csv.gz, and into NAME.json the settings, the card, the
 * profiler's number of each stream and, if private pools were used, the pool of each segment. A key
 * that is missing leaves the default. */
#include "workloads/formats/torch/sidecar.h"

#include <errno.h>
#include <jansson.h>
#include <unistd.h>

#include "allocators/base/size.h"
#include "workloads/io/fields.h"

void sidecar_close(struct sidecar *sidecar)
{
    free(sidecar->streams);
    free(sidecar->segments);
    *sidecar = (struct sidecar){0};
}

char *sidecar_path(const char *csv_path)
{
    size_t length = strlen(csv_path);
    static const char *const endings[] = {".gz", ".zst", ".csv"};
    char *path = malloc(length + sizeof ".json");
    if (!path)
        return NULL;
    memcpy(path, csv_path, length + 1);
    for (size_t i = 0; i < AR_COUNT(endings); i++) {
        size_t cut = strlen(endings[i]);
        if (length > cut && field_ends_with(path, endings[i])) {
            length -= cut;
            path[length] = 0;
        }
    }
    memcpy(path + length, ".json", sizeof ".json");
    return path;
}

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
    if (text[field_plain(text, strlen(text))])
        return wrong(key, error);
    memcpy(out, text, strlen(text) + 1);
    return AR_OK;
}

static enum ar_status take_info(const json_t *root, struct trace_info *info, struct ar_error *error)
{
    char version[sizeof info->recorder - sizeof "torch "] = "";
    AR_TRY(take_text(root, "torch", version, sizeof version, error));
    (void)snprintf(info->recorder, sizeof info->recorder, "torch%s%s", *version ? " " : "",
                   version);
    AR_TRY(take_text(root, "conf", info->conf, sizeof info->conf, error));
    AR_TRY(take_text(root, "card", info->card, sizeof info->card, error));
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

/* The ordinal of a pool. The recording names it by a pair of numbers. */
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
    if (!*root && json_error_code(&why) == json_error_cannot_open_file)
        return ar_error_set(error, AR_IO, "cannot be opened: %s", strerror(errno));
    if (!*root)
        return ar_error_set(error, AR_FORMAT, "line %d: %s", why.line, why.text);
    return json_is_object(*root) ? AR_OK
                                 : ar_error_set(error, AR_FORMAT, "a JSON object is expected");
}

static enum ar_status take_stats(const json_t *root, struct trace_stats *out,
                                 struct ar_error *error)
{
    const char *name;
    json_t *value, *stats = json_object_get(root, "stats");
    if (!stats || json_is_null(stats))
        return AR_OK;
    if (!json_is_object(stats))
        return wrong("stats", error);
    json_object_foreach(stats, name, value)
    {
        if (!json_is_integer(value) || json_integer_value(value) < 0)
            continue; /* max_split_size is -1 if there is none */
        AR_TRY(
            trace_stats_add(out, name, strlen(name), (uint64_t)json_integer_value(value), error));
    }
    return AR_OK;
}

/* Reads what is not NULL. */
static enum ar_status read_file(const char *csv_path, struct trace_info *info, struct sidecar *out,
                                struct trace_stats *stats, struct ar_error *error)
{
    char *path = sidecar_path(csv_path);
    json_t *root = NULL;
    enum ar_status status = AR_OK;
    AR_TRY_MEMORY(path, error, "%s", csv_path);
    if (access(path, F_OK) == 0) {
        status = load(path, &root, error);
        if (!status && info)
            status = take_info(root, info, error);
        if (!status && out)
            status = take_streams(root, out, error);
        if (!status && out)
            status = take_segments(root, out, error);
        if (!status && stats)
            status = take_stats(root, stats, error);
    }
    (void)ar_error_prefix(error, status, "%s (beside %s)", path, csv_path);
    json_decref(root);
    free(path);
    return status;
}

enum ar_status sidecar_stats_read(const char *csv_path, struct trace_stats *out,
                                  struct ar_error *error)
{
    *out = (struct trace_stats){0};
    return read_file(csv_path, NULL, NULL, out, error);
}

enum ar_status sidecar_read(const char *csv_path, struct trace_info *info, struct sidecar *out,
                            struct ar_error *error)
{
    return read_file(csv_path, info, out, NULL, error);
}
