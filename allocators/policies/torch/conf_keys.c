/* The table is from the strings of libc10_cuda.so in the published packages of PyTorch 1.8.1,
 * 1.9.1, 1.10.2, 1.11.0, 1.12.0, 1.13.0, 2.0.0 to 2.4.0 and 2.8.0 to 2.11.0, and from the headers
 * c10/cuda/CUDAAllocatorConfig.h of 2.2.0 to 2.15.0 and c10/core/AllocatorConfig.h of 2.10.0 to
 * 2.15.0. 1.9 has no such variable. CUDA uses the keys of c10/core from 2.10 on. */
#include "allocators/policies/torch/conf_keys.h"

#include "allocators/base/size.h"

static const struct torch_conf_key keys[] = {
    /* from 1.11 to 2.9 the value must be above 20, from 2.10 on at least the segment size */
    {"max_split_size_mb", "20", {2, 10}, {0, 0}, TORCH_CONF_PLACES},
    {"max_split_size_mb", NULL, {1, 10}, {0, 0}, TORCH_CONF_PLACES},
    {"garbage_collection_threshold", NULL, {1, 12}, {0, 0}, TORCH_CONF_PLACES},
    /* one number for all sizes; the list by size came later */
    {"roundup_power2_divisions", "[", {2, 0}, {0, 0}, TORCH_CONF_PLACES},
    {"roundup_power2_divisions", NULL, {1, 12}, {0, 0}, TORCH_CONF_PLACES},
    {"roundup_bypass_threshold_mb", NULL, {1, 13}, {1, 13}, TORCH_CONF_MISSING},
    {"backend", NULL, {2, 0}, {0, 0}, TORCH_CONF_PLACES},
    {"expandable_segments", NULL, {2, 1}, {0, 0}, TORCH_CONF_PLACES},
    {"release_lock_on_cudamalloc", NULL, {2, 2}, {0, 0}, TORCH_CONF_INERT},
    {"release_lock_on_hipmalloc", NULL, {2, 2}, {0, 0}, TORCH_CONF_INERT},
    {"pinned_use_cuda_host_register", NULL, {2, 2}, {0, 0}, TORCH_CONF_INERT},
    {"pinned_use_hip_host_register", NULL, {2, 2}, {0, 0}, TORCH_CONF_INERT},
    {"pinned_num_register_threads", NULL, {2, 2}, {0, 0}, TORCH_CONF_INERT},
    /* as max_split_size_mb */
    {"max_non_split_rounding_mb", "20", {2, 10}, {0, 0}, TORCH_CONF_PLACES},
    {"max_non_split_rounding_mb", NULL, {2, 6}, {0, 0}, TORCH_CONF_PLACES},
    {"pinned_use_background_threads", NULL, {2, 6}, {0, 0}, TORCH_CONF_INERT},
    {"graph_capture_record_stream_reuse", NULL, {2, 9}, {0, 0}, TORCH_CONF_INERT},
    {"per_process_memory_fraction", NULL, {2, 10}, {0, 0}, TORCH_CONF_PLACES},
    {"pinned_reserve_segment_size_mb", NULL, {2, 10}, {0, 0}, TORCH_CONF_INERT},
    {"large_segment_size_mb", NULL, {2, 11}, {0, 0}, TORCH_CONF_PLACES},
    {"throw_on_cudamalloc_oom", NULL, {2, 12}, {0, 0}, TORCH_CONF_PLACES},
    {"pinned_free_catch_all", NULL, {2, 12}, {0, 0}, TORCH_CONF_INERT},
    {"pinned_max_round_threshold_mb", NULL, {2, 13}, {0, 0}, TORCH_CONF_INERT},
    {"pinned_max_cached_size_mb", NULL, {2, 13}, {0, 0}, TORCH_CONF_INERT},
    {"expandable_segments_reserve", NULL, {2, 15}, {0, 0}, TORCH_CONF_PLACES},
    {"expandable_segments_reserve_by_class", NULL, {2, 15}, {0, 0}, TORCH_CONF_INERT},
};

#define KEY_COUNT AR_COUNT(keys)

const struct torch_conf_key *torch_conf_key_at(size_t index)
{
    return index < KEY_COUNT ? &keys[index] : NULL;
}

const struct torch_conf_key *torch_conf_key_find(const char *name, const char *value)
{
    for (size_t i = 0; i < KEY_COUNT; i++) {
        const char *only = keys[i].value;
        if (strcmp(keys[i].name, name) != 0)
            continue;
        if (!only || (value && (*only == '[' ? *value == '[' : strcmp(only, value) == 0)))
            return &keys[i];
    }
    return NULL;
}

int torch_release_compare(struct torch_release a, struct torch_release b)
{
    unsigned left = a.major != b.major ? a.major : a.minor;
    unsigned right = a.major != b.major ? b.major : b.minor;
    return (left > right) - (left < right);
}

bool torch_conf_key_accepted(const struct torch_conf_key *key, struct torch_release release)
{
    if (!release.major)
        return true;
    return torch_release_compare(release, key->first) >= 0 &&
           (!key->last.major || torch_release_compare(release, key->last) <= 0);
}

struct torch_release torch_release_read(const char *text)
{
    for (const char *at = text; *at; at++) {
        char *end;
        if (*at < '0' || *at > '9')
            continue;
        unsigned long major = strtoul(at, &end, 10);
        if (*end != '.' || end[1] < '0' || end[1] > '9' || !major || major > 999)
            return (struct torch_release){0, 0};
        unsigned long minor = strtoul(end + 1, NULL, 10);
        return (struct torch_release){(uint16_t)major, (uint16_t)(minor > 999 ? 999 : minor)};
    }
    return (struct torch_release){0, 0};
}

/* Copies up to a character of `ends` without blanks. NULL: no room; else the end. */
static const char *take(const char *at, const char *ends, char *out, size_t room)
{
    size_t used = 0;
    for (; *at && !strchr(ends, *at); at++) {
        if (*at == ' ')
            continue;
        if (used + 1 >= room)
            return NULL;
        out[used++] = *at;
    }
    out[used] = '\0';
    return at;
}

bool torch_conf_each(const char *conf, torch_conf_visit *visit, void *argument, const char **at)
{
    char key[64], value[512];
    for (*at = conf + strspn(conf, " "); **at;) {
        const char *end = take(*at, ":,", key, sizeof key);
        if (!end || *end != ':' || !key[0])
            return false;
        end++;
        end += strspn(end, " ");
        bool list = *end == '[';
        end = take(end, list ? "]" : ",", value, sizeof value - 1);
        if (!end || (list && *end != ']'))
            return false;
        if (list) {
            strcat(value, "]");
            end++;
            end += strspn(end, " ");
        }
        if (*end && *end != ',')
            return false;
        if (!visit(argument, key, value))
            return true;
        *at = end + (*end == ',');
        *at += strspn(*at, " ");
    }
    return true;
}

/* From here on CUDA uses the keys of c10/core. */
#define OWN_PARSER_ENDS ((struct torch_release){2, 10})

static enum ar_status bad_divisions(const char *text, const char *why, struct ar_error *error)
{
    return ar_invalid(error,
                      "policy torch: roundup_power2_divisions \"%.80s\": %s; write a power of two, "
                      "or a list such as [256:1,512:2,1024:4,>:8]",
                      text, why);
}

/* One entry of the list, "512:2" or ">:8": fills its slots. */
static enum ar_status read_division(struct torch_release release, uint64_t *divisions,
                                    const char *text, const char *entry, unsigned *last,
                                    bool *first, struct ar_error *error)
{
    char *end;
    bool rest = entry[0] == '>';
    unsigned long long key = rest ? 0 : strtoull(entry, &end, 10);
    const char *colon = strchr(entry, ':');
    if (!colon || (!rest && (end != colon || !ar_size_is_power_of_two(key))))
        return bad_divisions(text, "a key is not a power of two of MiB", error);
    unsigned long long value = strtoull(colon + 1, &end, 10);
    if (end == colon + 1 || *end != '\0' || (value && !ar_size_is_power_of_two(value)))
        return bad_divisions(text, "a value is neither 0 nor a power of two", error);
    unsigned slot = rest ? *last : 63u ^ (unsigned)__builtin_clzll(key);
    if (slot >= TORCH_DIVISION_INTERVALS)
        slot = TORCH_DIVISION_INTERVALS - 1;
    /* The first key sets all slots below it and its own, any other key its own, `>` all above the
     * last key (AcceleratorAllocatorConfig::parseRoundUpPower2Divisions; snapshots of 2.11 have
     * these values). With the parser before 2.10 `>` sets the slot of the last key too. */
    bool with_last = release.major && torch_release_compare(release, OWN_PARSER_ENDS) < 0;
    unsigned from = rest ? slot + !with_last : *first ? 0 : slot;
    unsigned to = rest ? TORCH_DIVISION_INTERVALS - 1 : slot;
    for (unsigned i = from; i <= to; i++)
        divisions[i] = value;
    *last = slot;
    *first = false;
    return AR_OK;
}

enum ar_status torch_divisions_read(const char *text, struct torch_release release,
                                    uint64_t *divisions, struct ar_error *error)
{
    char entry[64];
    unsigned last = 0;
    bool first = true;
    if (text[0] != '[') {
        uint64_t value;
        if (ar_count_parse(text, &value, NULL) != AR_OK ||
            (value && !ar_size_is_power_of_two(value)))
            return bad_divisions(text, "it is not a power of two", error);
        for (unsigned i = 0; i < TORCH_DIVISION_INTERVALS; i++)
            divisions[i] = value;
        return AR_OK;
    }
    size_t length = strlen(text);
    if (text[length - 1] != ']')
        return bad_divisions(text, "the list is not closed", error);
    for (const char *at = text + 1; at < text + length;) {
        size_t used = strcspn(at, ",]");
        if (used >= sizeof entry)
            return bad_divisions(text, "an entry is too long", error);
        memcpy(entry, at, used);
        entry[used] = '\0';
        AR_TRY(read_division(release, divisions, text, entry, &last, &first, error));
        at += used + 1;
    }
    return AR_OK;
}

struct newest {
    struct torch_release first;
    const struct torch_conf_key *key;
};

static bool visit_first(void *argument, const char *name, const char *value)
{
    struct newest *self = argument;
    const struct torch_conf_key *key = torch_conf_key_find(name, value);
    if (key && torch_release_compare(key->first, self->first) > 0) {
        self->first = key->first;
        self->key = key;
    }
    return true;
}

struct torch_release torch_conf_first(const char *conf, const struct torch_conf_key **key)
{
    const char *at;
    struct newest newest = {{0, 0}, NULL};
    (void)torch_conf_each(conf, visit_first, &newest, &at);
    if (key)
        *key = newest.key;
    return newest.first;
}
