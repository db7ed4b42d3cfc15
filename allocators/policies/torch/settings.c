/* The options by the names of PyTorch, the configuration string of PYTORCH_CUDA_ALLOC_CONF, and the
 * rounding of sizes that depends on them.
 *
 * What releases do otherwise, with the pull request of the change. Which release has it first is
 * from the strings of libc10_cuda.so in the published packages (VERSIONS.md):
 *
 * 1. Before 2.5 a private pool has segments, also if the others grow by pages (#128068). A block of
 *    such a segment is divided like one of a range.
 * 2. Before 2.5 the program stops at an assertion if memory is short and a block of a range is too
 *    large to be split, because it is to be released like a segment (#134338). Here the request
 *    fails and nothing is released.
 * 3. Before 2.13 no pending free is completed or waited for, and the cache is not released, while
 *    memory goes to a private pool (#181830). From 2.13 on that is so during the capture of a graph
 *    only, which a trace does not tell from another use of a pool: then the cache is released.
 * 4. From 2.12 on throw_on_cudamalloc_oom lets a request beyond the limit fail before anything is
 *    released (#179473).
 * 5. From 2.15 on expandable_segments_reserve is the size of a range, and a request that is larger
 *    fails (#192269).
 * 6. Before 2.11 pools with use_on_oom are the last resort; from then on they come before the
 *    release of cached memory (#169699).
 * 7. With expandable_segments, a MemPool with an allocator of its own grew by pages of PyTorch up
 *    to 2.6, so the allocator was never called (#147851). 2.7 refuses any MemPool (#148378), 2.8 to
 *    2.9 those with an allocator (#154746): the program stops at an exception; here the request
 *    fails and nothing is released. From 2.10 on they have segments (#169491).
 *
 * If max_split_size_mb becomes smaller in the middle of a program, a part of a divided segment can
 * be too large to be split. PyTorch releases it like a segment (release_available_cached_blocks):
 * the driver refuses that or takes blocks in use away. Here the request fails as in rule 2. */
#include "allocators/policies/torch/torch.h"

#include "allocators/policies/torch/conf_keys.h"

const struct ar_option torch_options[] = {
    AR_POLICY_COMMON_OPTIONS,
    {"version", AR_OPTION_TEXT, offsetof(struct torch_values, version), NULL, 0, 0, NULL,
     "the release of PyTorch, from 2.4 on, whose rules and keys hold; default: the newest"},
    {"conf", AR_OPTION_TEXT, offsetof(struct torch_values, conf), NULL, 0, 0, NULL,
     "a whole PYTORCH_CUDA_ALLOC_CONF string, in quotes; it is read after the other options"},
    {"expandable_segments", AR_OPTION_BOOL, offsetof(struct torch_values, expandable_segments),
     "false", 0, 0, NULL, "grow virtual ranges by pages instead of making segments"},
    {"max_split_size_mb", AR_OPTION_COUNT, offsetof(struct torch_values, max_split_size_mb), "0", 0,
     4194304, NULL, "blocks of this many MiB or more are not split, at least 20; 0: no limit"},
    {"max_non_split_rounding_mb", AR_OPTION_COUNT,
     offsetof(struct torch_values, max_non_split_rounding_mb), "20", 20, 4194304, NULL,
     "MiB that an unsplit block may be larger than the request"},
    {"garbage_collection_threshold", AR_OPTION_FRACTION,
     offsetof(struct torch_values, garbage_collection_threshold), "0", 0, 1, NULL,
     "fraction of the limit above which old cached blocks are released; 0: never"},
    {"roundup_power2_divisions", AR_OPTION_TEXT,
     offsetof(struct torch_values, roundup_power2_divisions), NULL, 0, 0, NULL,
     "steps for each power of two that sizes round up to: 8, or a list '[256:1,512:2,>:8]' by MiB"},
    {"per_process_memory_fraction", AR_OPTION_FRACTION,
     offsetof(struct torch_values, per_process_memory_fraction), "0", 0, 1, NULL,
     "limit as a fraction of the card's memory; 0: none"},
    {"large_segment_size_mb", AR_OPTION_COUNT, offsetof(struct torch_values, large_segment_size_mb),
     "20", 20, 1024, NULL, "MiB of a segment for requests of 1 to 10 MiB, and of a large page"},
    {0},
};

static unsigned floor_log2(uint64_t x)
{
    return 63u - (unsigned)__builtin_clzll(x);
}

static enum ar_status bad_conf(const char *key, const char *value, const char *why,
                               struct ar_error *error)
{
    return ar_invalid(error, "policy torch: conf \"%.60s:%.60s\": %s", key, value, why);
}

static enum ar_status conf_mib(const char *key, const char *value, uint64_t least, uint64_t *bytes,
                               struct ar_error *error)
{
    uint64_t mib;
    if (ar_count_parse(value, &mib, NULL) != AR_OK || mib < least || mib > 4194304)
        return bad_conf(key, value, "write a number of MiB, at least 20", error);
    *bytes = mib * AR_MIB;
    return AR_OK;
}

static enum ar_status conf_fraction(const char *key, const char *value, double *fraction,
                                    struct ar_error *error)
{
    char *end;
    *fraction = strtod(value, &end);
    if (end == value || *end != '\0' || !(*fraction > 0.0) || *fraction > 1.0)
        return bad_conf(key, value, "write a fraction above 0, at most 1", error);
    return AR_OK;
}

static enum ar_status conf_bool(const char *key, const char *value, bool *out,
                                struct ar_error *error)
{
    *out = strcmp(value, "True") == 0 || strcmp(value, "true") == 0;
    return *out || strcmp(value, "False") == 0 || strcmp(value, "false") == 0
               ? AR_OK
               : bad_conf(key, value, "write True or False", error);
}

/* "0.5": of the card's memory; "40G": GiB. PyTorch warns and ignores what it cannot read. */
static void conf_reserve(struct torch_settings *settings, const char *value)
{
    char *end;
    double number = strtod(value, &end);
    bool is_bytes = *end == 'G' && end[1] == '\0';
    if (end == value || (*end && !is_bytes) || !(number > 0.0))
        return;
    settings->range = is_bytes ? -number : number;
}

static enum ar_status conf_pair(struct torch_settings *settings, struct torch_release release,
                                const char *key, const char *value, struct ar_error *error)
{
    if (strcmp(key, "expandable_segments") == 0)
        return conf_bool(key, value, &settings->expandable, error);
    if (strcmp(key, "throw_on_cudamalloc_oom") == 0)
        return conf_bool(key, value, &settings->rejects, error);
    if (strcmp(key, "expandable_segments_reserve") == 0) {
        conf_reserve(settings, value);
        return AR_OK;
    }
    if (strcmp(key, "max_split_size_mb") == 0)
        return conf_mib(key, value, 20, &settings->max_split_bytes, error);
    if (strcmp(key, "max_non_split_rounding_mb") == 0)
        return conf_mib(key, value, 20, &settings->max_non_split_rounding_bytes, error);
    if (strcmp(key, "large_segment_size_mb") == 0)
        return conf_mib(key, value, 20, &settings->large_segment_bytes, error);
    if (strcmp(key, "garbage_collection_threshold") == 0)
        return conf_fraction(key, value, &settings->gc_threshold, error);
    if (strcmp(key, "per_process_memory_fraction") == 0)
        return conf_fraction(key, value, &settings->fraction, error);
    if (strcmp(key, "roundup_power2_divisions") == 0)
        return torch_divisions_read(value, release, settings->divisions, error);
    if (strcmp(key, "backend") == 0) {
        if (strcmp(value, "native") == 0)
            return AR_OK;
        return bad_conf(key, value,
                        "only the native backend is modelled by torch; for the driver's pool use "
                        "the policy async",
                        error);
    }
    const struct torch_conf_key *known = torch_conf_key_find(key, value);
    if (!known)
        return bad_conf(key, value, "the option is unknown; see `allocrig list policies torch`",
                        error);
    if (known->effect == TORCH_CONF_MISSING)
        return bad_conf(key, value, "the policy torch does not have this option", error);
    return AR_OK;
}

/* Whether the release accepts a key with that value. A key that no release has is found later. */
static enum ar_status check_key(struct torch_release release, const char *key, const char *value,
                                struct ar_error *error)
{
    const struct torch_conf_key *known = torch_conf_key_find(key, value);
    if (!known || torch_conf_key_accepted(known, release))
        return AR_OK;
    return ar_invalid(
        error, "policy torch: %s:%.60s: PyTorch %u.%u does not accept it, %u.%u %s", key, value,
        release.major, release.minor, known->last.major ? known->last.major : known->first.major,
        known->last.major ? known->last.minor : known->first.minor,
        known->last.major ? "is the last release that does" : "is the first release that does");
}

struct conf_reading {
    struct torch_settings *settings;
    struct torch_release release;
    struct ar_error *error;
    enum ar_status status;
};

static bool conf_visit(void *argument, const char *key, const char *value)
{
    struct conf_reading *self = argument;
    self->status = check_key(self->release, key, value, self->error);
    if (self->status == AR_OK)
        self->status = conf_pair(self->settings, self->release, key, value, self->error);
    return self->status == AR_OK;
}

static enum ar_status read_conf(struct torch_settings *settings, const char *conf,
                                struct ar_error *error)
{
    struct conf_reading reading = {
        .settings = settings, .release = settings->release, .error = error};
    const char *at;
    if (!torch_conf_each(conf, conf_visit, &reading, &at))
        return ar_invalid(error,
                          "policy torch: conf \"%.80s\": write key:value, with lists as [..]", at);
    return reading.status;
}

static bool is_before(struct torch_release release, uint16_t minor)
{
    return release.major && torch_release_compare(release, (struct torch_release){2, minor}) < 0;
}

/* The rules of a release, and whether it has the keys of the options that are set. */
static enum ar_status read_version(const struct torch_values *values,
                                   struct torch_settings *settings, struct ar_error *error)
{
    struct torch_release *release = &settings->release;
    char text[32];
    if (!values->version || !values->version[0])
        return AR_OK;
    *release = torch_release_read(values->version);
    if (!release->major || is_before(*release, 4))
        return ar_invalid(error,
                          "policy torch: version \"%.40s\": write a release from 2.4 on, such as "
                          "2.4; the rules of earlier ones are not known",
                          values->version);
    settings->plain_pools = is_before(*release, 5);
    settings->stops = is_before(*release, 5);
    settings->pools_fail = is_before(*release, 13);
    settings->overflow_last = is_before(*release, 11);
    settings->user_pools = is_before(*release, 7)    ? TORCH_POOLS_IGNORED
                           : is_before(*release, 8)  ? TORCH_POOLS_FAIL_ALL
                           : is_before(*release, 10) ? TORCH_POOLS_FAIL
                                                     : TORCH_POOLS_PLAIN;
    const struct {
        const char *key;
        uint64_t value, unset;
    } given[] = {
        {"max_split_size_mb", values->max_split_size_mb, 0},
        {"max_non_split_rounding_mb", values->max_non_split_rounding_mb, 20},
        {"large_segment_size_mb", values->large_segment_size_mb, 20},
    };
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < AR_COUNT(given) && !status; i++) {
        snprintf(text, sizeof text, "%llu", (unsigned long long)given[i].value);
        if (given[i].value != given[i].unset)
            status = check_key(*release, given[i].key, text, error);
    }
    snprintf(text, sizeof text, "%g", values->per_process_memory_fraction);
    if (!status && values->per_process_memory_fraction > 0)
        status = check_key(*release, "per_process_memory_fraction", text, error);
    return status;
}

/* What follows from several keys. */
static enum ar_status finish(struct torch_settings *settings, struct ar_error *error)
{
    settings->has_divisions = false;
    for (size_t i = 0; i < TORCH_DIVISION_INTERVALS; i++)
        settings->has_divisions |= settings->divisions[i] > 1;
    /* The default is the size of a large segment, which is read first, and less is refused
     * (AcceleratorAllocatorConfig::parseArgs, since 2.11). */
    if (settings->max_non_split_rounding_bytes < settings->large_segment_bytes)
        settings->max_non_split_rounding_bytes = settings->large_segment_bytes;
    /* Otherwise the rest of a segment would count as a block that can be released. */
    if (settings->max_split_bytes < settings->large_segment_bytes)
        return ar_invalid(error,
                          "policy torch: max_split_size_mb is at least large_segment_size_mb, "
                          "which is %llu here, as in PyTorch",
                          (unsigned long long)(settings->large_segment_bytes / AR_MIB));
    return AR_OK;
}

enum ar_status torch_settings_read(const struct torch_values *values,
                                   struct torch_settings *settings, struct ar_error *error)
{
    *settings = (struct torch_settings){
        .expandable = values->expandable_segments,
        .max_split_bytes =
            values->max_split_size_mb ? values->max_split_size_mb * AR_MIB : UINT64_MAX,
        .max_non_split_rounding_bytes = values->max_non_split_rounding_mb * AR_MIB,
        .gc_threshold = values->garbage_collection_threshold,
        .fraction = values->per_process_memory_fraction,
        .large_segment_bytes = values->large_segment_size_mb * AR_MIB,
    };
    AR_TRY(read_version(values, settings, error));
    if (values->max_split_size_mb && values->max_split_size_mb < 20)
        return ar_invalid(error,
                          "policy torch: max_split_size_mb is at least 20, or 0 for no limit");
    if (values->roundup_power2_divisions)
        AR_TRY(torch_divisions_read(values->roundup_power2_divisions, settings->release,
                                    settings->divisions, error));
    if (values->conf)
        AR_TRY(read_conf(settings, values->conf, error));
    return finish(settings, error);
}

enum ar_status torch_settings_again(struct torch_settings *settings, const char *conf,
                                    struct ar_error *error)
{
    settings->max_split_bytes = UINT64_MAX;
    if (!is_before(settings->release, 11))
        settings->max_non_split_rounding_bytes = 0;
    memset(settings->divisions, 0, sizeof settings->divisions);
    settings->gc_threshold = 0;
    AR_TRY(read_conf(settings, conf, error));
    return finish(settings, error);
}

static uint64_t round_by_divisions(uint64_t bytes, uint64_t divisions)
{
    if (ar_size_is_power_of_two(bytes))
        return bytes;
    uint64_t floor = UINT64_C(1) << floor_log2(bytes);
    uint64_t step = floor >> floor_log2(divisions);
    return step ? (bytes + step - 1) / step * step : floor * 2;
}

/* The number of steps to a doubling for requests of so many bytes; at most 1: none. */
static uint64_t divisions_of(const struct torch_settings *settings, uint64_t bytes)
{
    unsigned log = floor_log2(bytes | 1); /* a recording may have requests of 0 bytes */
    unsigned slot = log < 20 ? 0 : log - 20;
    if (slot >= TORCH_DIVISION_INTERVALS)
        slot = TORCH_DIVISION_INTERVALS - 1;
    uint64_t divisions = settings->divisions[slot];
    return bytes > TORCH_MIN_BLOCK_BYTES * divisions ? divisions : 0;
}

uint64_t torch_round_divided(const struct torch_settings *settings, uint64_t bytes)
{
    uint64_t divisions = divisions_of(settings, bytes);
    if (divisions > 1)
        return round_by_divisions(bytes, divisions);
    return ar_size_round_up(bytes, TORCH_MIN_BLOCK_BYTES);
}

uint64_t torch_largest_request(const struct torch_settings *settings, uint64_t bytes)
{
    uint64_t divisions = bytes ? divisions_of(settings, bytes) : 0;
    if (divisions <= 1)
        return bytes;
    uint64_t floor = UINT64_C(1) << floor_log2(bytes);
    uint64_t step = floor >> floor_log2(divisions);
    return step ? bytes / step * step : floor;
}

uint64_t torch_device_request(const struct torch_settings *settings, uint64_t rounded_bytes)
{
    if (rounded_bytes <= TORCH_SMALL_BYTES)
        return TORCH_SMALL_SEGMENT_BYTES;
    if (rounded_bytes < TORCH_MIN_LARGE_BYTES)
        return settings->large_segment_bytes;
    return ar_size_round_up(rounded_bytes, TORCH_ROUND_LARGE_BYTES);
}
