#include "sim/advise/candidates.h"

#include "allocators/base/array.h"
#include "allocators/base/size.h"

/* One setting: `pairs` go into the spec of `policy`. Settings of one group exclude each other. */
struct setting {
    const char *policy;
    const char *pairs;
    const char *group;
    const char *needs; /* a group without which this setting has no effect; NULL: none */
    const char *text;
    const char *cost;
};

#define SPLIT_COST                                                                                 \
    "Blocks of that size and above are not split: a cached one serves few other sizes, so there "  \
    "are more driver calls."
#define ROUND_COST "Every request is rounded up: more bytes, but fewer different sizes."
#define COLLECT_COST                                                                               \
    "Old cached blocks are released before the limit is reached; each driver free waits for the "  \
    "device."
#define POOL_COST   "The driver's own pool: modelled here, not measured"
#define DIRECT_COST "Every request is a driver call: "
#define SEGMENT_COST                                                                               \
    "Larger segments for requests of 1 to 10 MiB: fewer driver calls, more memory reserved."

/* In the order in which they are recommended; of one key the value that changes least first. */
static const struct setting torch_settings[] = {
    {"torch", "expandable_segments=true", "expandable", NULL, NULL,
     "Address space as large as the card for each stream; older PyTorch cannot share this memory "
     "with other processes, and CUDA graphs and some tools need a newer driver."},
    {"torch", "max_split_size_mb=2048", "split", NULL, NULL, SPLIT_COST},
    {"torch", "max_split_size_mb=1024", "split", NULL, NULL, SPLIT_COST},
    {"torch", "max_split_size_mb=512", "split", NULL, NULL, SPLIT_COST},
    {"torch", "max_split_size_mb=256", "split", NULL, NULL, SPLIT_COST},
    {"torch", "max_split_size_mb=128", "split", NULL, NULL, SPLIT_COST},
    {"torch", "max_split_size_mb=64", "split", NULL, NULL, SPLIT_COST},
    {"torch", "max_split_size_mb=32", "split", NULL, NULL, SPLIT_COST},
    {"torch", "max_split_size_mb=20", "split", NULL, NULL, SPLIT_COST},
    {"torch", "roundup_power2_divisions=16", "round", NULL, NULL, ROUND_COST},
    {"torch", "roundup_power2_divisions=8", "round", NULL, NULL, ROUND_COST},
    {"torch", "roundup_power2_divisions=4", "round", NULL, NULL, ROUND_COST},
    {"torch", "roundup_power2_divisions=2", "round", NULL, NULL, ROUND_COST},
    {"torch", "roundup_power2_divisions='[256:1,512:2,1024:4,>:8]'", "round", NULL, NULL,
     ROUND_COST},
    {"torch", "garbage_collection_threshold=0.9,per_process_memory_fraction=1", "collect", NULL,
     NULL, COLLECT_COST},
    {"torch", "garbage_collection_threshold=0.8,per_process_memory_fraction=1", "collect", NULL,
     NULL, COLLECT_COST},
    {"torch", "garbage_collection_threshold=0.6,per_process_memory_fraction=1", "collect", NULL,
     NULL, COLLECT_COST},
    {"torch", "large_segment_size_mb=32", "segment", NULL, NULL, SEGMENT_COST},
    {"torch", "large_segment_size_mb=64", "segment", NULL, NULL, SEGMENT_COST},
    {"torch", "large_segment_size_mb=128", "segment", NULL, NULL, SEGMENT_COST},
    {"torch", "large_segment_size_mb=256", "segment", NULL, NULL, SEGMENT_COST},
    {"torch", "max_non_split_rounding_mb=128", "unsplit", "split", NULL,
     "Larger cached blocks may serve a request without a split."},
    {"torch", "max_non_split_rounding_mb=512", "unsplit", "split", NULL,
     "Larger cached blocks may serve a request without a split."},
    {"async", "", "policy", NULL, "PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync",
     POOL_COST "; no snapshots, no CUDA graph pools."},
    {"direct", "", "policy", NULL, "PYTORCH_NO_CUDA_MEMORY_CACHING=1",
     DIRECT_COST "slow where a program makes many requests; for debugging only."},
    {0},
};

#define SYSTEM_COST "Leaves less memory to the system and to libraries."
#define CHUNK_COST                                                                                 \
    "Chunks are split sooner: less internal fragmentation, but more and smaller free chunks."
#define COLLECT_OFF "Empty regions are not released."
#define ALL_AT_ONCE "The whole limit is reserved at the start."
#define BY_DOUBLING "Regions double in size and never merge: large requests may find no region."

/* The defaults of these policies are TensorFlow's. */
static const struct setting tensorflow_settings[] = {
    {"greedy", "", "policy", NULL, NULL, ALL_AT_ONCE},
    {"greedy", "fraction=0.95", "limit", NULL, NULL, SYSTEM_COST},
    {"greedy", "system_memory=268435456", "limit", NULL, NULL, SYSTEM_COST},
    {"greedy", "fragmentation_fraction=0.01", "split", NULL, NULL, CHUNK_COST},
    {"growth", "", "policy", NULL, NULL, BY_DOUBLING},
    {"growth", "fraction=0.95", "limit", NULL, NULL, SYSTEM_COST},
    {"growth", "system_memory=268435456", "limit", NULL, NULL, SYSTEM_COST},
    {"growth", "fragmentation_fraction=0.01", "split", NULL, NULL, CHUNK_COST},
    {"growth", "garbage_collection=false", "collect", NULL, NULL, COLLECT_OFF},
    {"async", "", "policy", NULL, "TF_GPU_ALLOCATOR=cuda_malloc_async", POOL_COST "."},
    {0},
};

static const struct setting jax_settings[] = {
    {"greedy:framework=jax", "", "policy", NULL, NULL,
     "Reserves three quarters of the card at the start."},
    {"greedy:framework=jax", "fraction=0.9", "limit", NULL, NULL, SYSTEM_COST},
    {"greedy:framework=jax", "fraction=0.95", "limit", NULL, NULL, SYSTEM_COST},
    {"growth:framework=jax", "", "policy", NULL, NULL, BY_DOUBLING},
    {"growth:framework=jax", "fraction=0.9", "limit", NULL, NULL, SYSTEM_COST},
    {"growth:framework=jax", "fraction=0.95", "limit", NULL, NULL, SYSTEM_COST},
    {"async", "", "policy", NULL, "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async", POOL_COST "."},
    {"direct", "", "policy", NULL, "XLA_PYTHON_CLIENT_ALLOCATOR=platform", DIRECT_COST "slow."},
    {0},
};

static const struct setting cupy_settings[] = {
    {"cupy", "", "policy", NULL, "the default: cupy.cuda.MemoryPool()", NULL},
    {"async", "", "policy", NULL, "cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)",
     POOL_COST "."},
    {"rmm-pool", "", "policy", NULL,
     "rmm.mr.set_current_device_resource(rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource())); "
     "cupy.cuda.set_allocator(rmm.allocators.cupy.rmm_cupy_allocator)",
     NULL},
    {"direct", "", "policy", NULL, "cupy.cuda.set_allocator(None)", DIRECT_COST "slow."},
    {0},
};

static const struct setting rmm_settings[] = {
    {"rmm-pool", "", "policy", NULL, "rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource())",
     NULL},
    {"rmm-arena", "", "policy", NULL, "rmm.mr.ArenaMemoryResource(rmm.mr.CudaMemoryResource())",
     NULL},
    {"async", "", "policy", NULL, "rmm.mr.CudaAsyncMemoryResource()", POOL_COST "."},
    {"direct", "", "policy", NULL, "rmm.mr.CudaMemoryResource()", DIRECT_COST "slow."},
    {0},
};

static const struct framework {
    const char *recorder;
    const struct setting *settings;
    const char *base; /* the policy without any setting; NULL: one of the settings */
} frameworks[] = {
    {"torch", torch_settings, "torch"}, {"tensorflow", tensorflow_settings, NULL},
    {"xla", jax_settings, NULL},        {"jax", jax_settings, NULL},
    {"cupy", cupy_settings, NULL},      {"rmm", rmm_settings, NULL},
};

static const struct framework *framework_of(const char *recorder)
{
    for (size_t i = 0; i < AR_COUNT(frameworks); i++)
        if (strncmp(recorder, frameworks[i].recorder, strlen(frameworks[i].recorder)) == 0)
            return &frameworks[i];
    return NULL;
}

/* A truncated spec would name another policy. */
static enum ar_status too_long(const char *spec, size_t room, struct ar_error *error)
{
    return ar_invalid(error,
                      "the policy \"%.60s..\" has more than %zu bytes: give the files that it "
                      "names shorter paths",
                      spec, room - 1);
}

/* Whether it is the driver's pool as the program has it, of which `spec` is the plain one. */
static bool is_given_pool(const struct candidate *self, const char *spec)
{
    return self->given && strcmp(spec, "async") == 0 && strncmp(self->spec, "async:", 6) == 0;
}

/* Appends a candidate, or returns the existing one with the same spec. */
static struct candidate *add(struct candidates *list, const char *spec, struct ar_error *error)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->at[i].spec, spec) == 0 || is_given_pool(&list->at[i], spec))
            return &list->at[i];
    if (!ar_array_make_room(&list->at, list->count, &list->room, sizeof *list->at)) {
        (void)ar_no_memory(error, "a list of settings");
        return NULL;
    }
    struct candidate *candidate = &list->at[list->count++];
    *candidate = (struct candidate){.own = true};
    snprintf(candidate->spec, sizeof candidate->spec, "%s", spec);
    return candidate;
}

static void write_spec(char *text, size_t bytes, const struct setting *a, const struct setting *b)
{
    const char *colon = strchr(a->policy, ':') ? "," : ":";
    snprintf(text, bytes, "%s%s%s%s%s", a->policy, *a->pairs ? colon : "", a->pairs, b ? "," : "",
             b ? b->pairs : "");
}

/* The part of a text that is a configuration string: the value of an environment variable. */
static void conf_of_text(const char *text, char *conf, size_t room)
{
    const char *at = strstr(text, "_ALLOC_CONF=");
    at = at ? strchr(at, '=') + 1 : "";
    snprintf(conf, room, "%.*s", (int)strcspn(at, ";"), at);
}

/* Removes a key from a configuration string, and copies its value. */
static bool remove_key(char *conf, const char *key, char *value, size_t room)
{
    char *at = strstr(conf, key);
    size_t length = strlen(key);
    if (!at || at[length] != ':' || (at > conf && at[-1] != ','))
        return false;
    size_t value_length = strcspn(at + length + 1, ",");
    snprintf(value, room, "%.*s", (int)value_length, at + length + 1);
    char *end = at + length + 1 + value_length;
    if (*end == ',')
        end++;
    else if (at > conf)
        at--;
    memmove(at, end, strlen(end) + 1);
    return true;
}

#define FRACTION_KEY "per_process_memory_fraction"

/* The keys of a setting of PyTorch. The fraction is left out, because older releases have a call
 * for it. */
static void conf_of(const struct setting *setting, char *conf, size_t room)
{
    char ignored[16];
    size_t used = 0;
    conf[0] = '\0';
    if (setting->text)
        conf_of_text(setting->text, conf, room);
    if (setting->text || strcmp(setting->policy, "torch") != 0)
        return;
    bool list = false;
    for (const char *at = setting->pairs; *at && used + 1 < room; at++) {
        list ^= *at == '\'';
        if (*at != '\'')
            conf[used++] = *at == '=' && !list ? ':' : *at;
    }
    conf[used] = '\0';
    (void)remove_key(conf, FRACTION_KEY, ignored, sizeof ignored);
}

/* Whether the recorder's release knows the keys of the setting; else the key is noted. */
static bool is_known(struct candidates *list, const struct setting *setting)
{
    char conf[192];
    const struct torch_conf_key *key;
    conf_of(setting, conf, sizeof conf);
    struct torch_release first = torch_conf_first(conf, &key);
    if (!list->release.major || torch_release_compare(list->release, first) >= 0)
        return true;
    for (size_t i = 0; i < list->left_out_count; i++)
        if (list->left_out[i] == key)
            return false;
    if (list->left_out_count < CANDIDATE_LEFT_OUT_MOST)
        list->left_out[list->left_out_count++] = key;
    return false;
}

static bool count_key(void *argument, const char *key AR_UNUSED, const char *value AR_UNUSED)
{
    ++*(unsigned *)argument;
    return true;
}

/* The options of a spec that a user would set; the others say what the program has. */
static unsigned keys_of(const char *spec)
{
    struct ar_spec parsed;
    struct ar_error ignored;
    unsigned keys = 0;
    const char *at;
    if (ar_spec_parse(spec, &parsed, &ignored))
        return 0;
    static const char *const facts[] = {"framework", "limit", "version"};
    const struct ar_spec_link *link = &parsed.links[parsed.link_count - 1];
    for (size_t i = 0; i < link->pair_count; i++) {
        const struct ar_spec_pair *pair = &link->pairs[i];
        bool fact = false;
        for (size_t k = 0; k < AR_COUNT(facts); k++)
            fact |= strcmp(pair->key, facts[k]) == 0;
        if (strcmp(pair->key, "conf") == 0)
            (void)torch_conf_each(pair->value, count_key, &keys, &at);
        else
            keys += !fact;
    }
    ar_spec_close(&parsed);
    return keys;
}

#define ORDERS 64u /* more than a table has settings */
_Static_assert(AR_COUNT(torch_settings) < ORDERS, "the longest table");

/* The place of a setting in its table, and that of the first one of its group; from 1. */
static unsigned order_of(const struct setting *settings, const struct setting *setting, bool group)
{
    const struct setting *at = settings;
    while (at != setting && !(group && strcmp(at->group, setting->group) == 0))
        at++;
    return (unsigned)(at - settings) + 1;
}

static enum ar_status add_single(struct candidates *list, const struct setting *settings,
                                 const struct setting *setting, struct ar_error *error)
{
    char spec[320];
    if (setting->needs || !is_known(list, setting))
        return AR_OK;
    write_spec(spec, sizeof spec, setting, NULL);
    struct candidate *candidate = add(list, spec, error);
    AR_TRY_HOST(candidate);
    candidate->cost = setting->cost;
    candidate->key_order = order_of(settings, setting, true);
    candidate->order = order_of(settings, setting, false);
    if (setting->text)
        snprintf(candidate->text, sizeof candidate->text, "%s", setting->text);
    return AR_OK;
}

static bool may_join(const struct setting *a, const struct setting *b)
{
    if (strcmp(a->policy, b->policy) != 0 || strcmp(a->group, b->group) == 0 || !*a->pairs ||
        !*b->pairs || strcmp(a->group, "policy") == 0)
        return false;
    return (!a->needs || strcmp(a->needs, b->group) == 0) &&
           (!b->needs || strcmp(b->needs, a->group) == 0);
}

static size_t index_of(const struct candidates *list, const struct setting *setting)
{
    char spec[320];
    write_spec(spec, sizeof spec, setting, NULL);
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->at[i].spec, spec) == 0)
            return i;
    return 0;
}

static enum ar_status add_pairs(struct candidates *list, const struct setting *settings,
                                struct ar_error *error)
{
    for (const struct setting *a = settings; a->policy; a++)
        for (const struct setting *b = a + 1; b->policy; b++) {
            char spec[320];
            if (!may_join(a, b) || !is_known(list, a) || !is_known(list, b))
                continue;
            size_t halves[2] = {index_of(list, a), index_of(list, b)};
            write_spec(spec, sizeof spec, a, b);
            struct candidate *candidate = add(list, spec, error);
            AR_TRY_HOST(candidate);
            memcpy(candidate->half, halves, sizeof halves);
            candidate->key_order =
                ORDERS * order_of(settings, a, true) + order_of(settings, b, true);
            candidate->order = ORDERS * order_of(settings, a, false) + order_of(settings, b, false);
        }
    return AR_OK;
}

static enum ar_status add_others(struct candidates *list, struct ar_error *error)
{
    const struct ar_policy_ops *ops;
    for (size_t i = 0; (ops = registry_policy(i)); i++) {
        bool there = false;
        if (ops->capabilities & (AR_POLICY_UNRANKED | AR_POLICY_OFFLINE))
            continue;
        for (size_t j = 0; j < list->count; j++)
            there |= strcmp(list->at[j].spec, ops->name) == 0;
        if (there)
            continue;
        struct candidate *candidate = add(list, ops->name, error);
        AR_TRY_HOST(candidate);
        candidate->own = false;
    }
    return AR_OK;
}

static enum ar_status add_framework(struct candidates *list, const char *recorder,
                                    struct ar_error *error)
{
    const struct framework *framework = framework_of(recorder);
    if (!framework)
        return AR_OK;
    if (framework->base && !add(list, framework->base, error))
        return AR_HOST_MEMORY;
    for (const struct setting *setting = framework->settings; setting->policy; setting++)
        AR_TRY(add_single(list, framework->settings, setting, error));
    return add_pairs(list, framework->settings, error);
}

enum ar_status candidates_list(const char *recorder, const char *given, bool others,
                               struct candidates *out, struct ar_error *error)
{
    *out = (struct candidates){0};
    if (strncmp(recorder, "torch", 5) == 0)
        out->release = torch_release_read(recorder);
    if (strlen(given) >= CANDIDATE_SPEC_ROOM)
        return too_long(given, CANDIDATE_SPEC_ROOM, error);
    struct candidate *first = add(out, given, error);
    AR_TRY_HOST(first);
    first->given = true;
    AR_TRY(add_framework(out, recorder, error));
    if (others)
        AR_TRY(add_others(out, error));
    for (size_t i = 0; i < out->count; i++)
        out->at[i].keys = keys_of(out->at[i].spec);
    return AR_OK;
}

void candidate_setting(const struct candidate *candidate, struct torch_release release,
                       const char *setting, char *out, size_t room)
{
    char conf[640], value[32] = "";
    snprintf(out, room, "%s", candidate->text[0] ? candidate->text : setting);
    const struct torch_conf_key *key = torch_conf_key_find(FRACTION_KEY, NULL);
    bool known = release.major && torch_conf_key_accepted(key, release);
    if (candidate->given || candidate->text[0] || known || !strstr(out, "_ALLOC_CONF="))
        return;
    conf_of_text(out, conf, sizeof conf);
    if (remove_key(conf, FRACTION_KEY, value, sizeof value))
        snprintf(out, room, "%s%s%storch.cuda.set_per_process_memory_fraction(%s%s)",
                 conf[0] ? "PYTORCH_CUDA_ALLOC_CONF=" : "", conf, conf[0] ? "; " : "", value,
                 strchr(value, '.') ? "" : ".0"); /* PyTorch wants a float */
}

struct torch_release candidate_needs(const char *setting)
{
    char conf[640];
    conf_of_text(setting, conf, sizeof conf);
    return torch_conf_first(strcmp(conf, "backend:native") == 0 ? "" : conf, NULL);
}

bool candidate_is_pair(const struct candidate *self)
{
    return self->half[0] || self->half[1];
}

bool candidate_is_other_allocator(const struct candidate *self)
{
    return self->text[0] && self->keys == 0 && !self->given;
}

void candidates_close(struct candidates *self)
{
    free(self->at);
    *self = (struct candidates){0};
}

/* Appends ":key=value" or ",key=value"; returns the length of the whole text. */
static size_t append_pair(char *text, size_t text_bytes, size_t used,
                          const struct ar_spec_pair *pair)
{
    bool quotes = strchr(pair->value, ',') != NULL;
    return used + (size_t)snprintf(text + used, text_bytes - used, "%s%s%s%s%s%s",
                                   strchr(text, ':') ? "," : ":", pair->key, pair->alone ? "" : "=",
                                   quotes ? "'" : "", pair->value, quotes ? "'" : "");
}

/* The largest block of PyTorch's allocator: a segment for a request of that size. Rounding to a
 * division of a power of two at most doubles it. */
static uint64_t largest_block(const struct ar_spec *spec, uint64_t largest_bytes)
{
    const char *segment_mb = ar_spec_value(spec, "large_segment_size_mb");
    uint64_t segment_bytes = segment_mb ? strtoull(segment_mb, NULL, 10) * AR_MIB : 20 * AR_MIB;
    if (ar_spec_value(spec, "roundup_power2_divisions"))
        largest_bytes *= 2;
    largest_bytes = ar_size_round_up(largest_bytes, 2 * AR_MIB);
    return largest_bytes > segment_bytes ? largest_bytes : segment_bytes;
}

/* Whether the option changes no decision of PyTorch's allocator. A fraction of 1 is no limit, and
 * memory is collected by age only with a limit. A block below max_split_size is like any other. */
static bool is_idle(const struct ar_spec *spec, const struct ar_spec_pair *pair,
                    uint64_t largest_bytes)
{
    const char *fraction = ar_spec_value(spec, FRACTION_KEY);
    bool limited = (fraction && strcmp(fraction, "1") != 0) || ar_spec_value(spec, "limit") ||
                   ar_spec_value(spec, "conf");
    if (strcmp(pair->key, FRACTION_KEY) == 0 ||
        strcmp(pair->key, "garbage_collection_threshold") == 0)
        return !limited;
    return strcmp(pair->key, "max_split_size_mb") == 0 &&
           !ar_spec_value(spec, "expandable_segments") && !ar_spec_value(spec, "conf") &&
           strtoull(pair->value, NULL, 10) * AR_MIB > largest_block(spec, largest_bytes);
}

void candidate_effect(const char *spec, uint64_t largest_bytes, char *text, size_t text_bytes)
{
    struct ar_spec parsed;
    struct ar_error ignored;
    snprintf(text, text_bytes, "%s", strcmp(spec, "greedy") == 0 ? "bfc" : spec);
    if (strncmp(spec, "torch:", 6) != 0 || ar_spec_parse(spec, &parsed, &ignored))
        return;
    const struct ar_spec_link *link = &parsed.links[parsed.link_count - 1];
    size_t used = (size_t)snprintf(text, text_bytes, "torch");
    for (size_t i = 0; i < link->pair_count && used < text_bytes; i++)
        if (!is_idle(&parsed, &link->pairs[i], largest_bytes))
            used = append_pair(text, text_bytes, used, &link->pairs[i]);
    ar_spec_close(&parsed);
    if (used >= text_bytes)
        snprintf(text, text_bytes, "%s", spec);
}

enum ar_status candidates_without_limit(const char *spec, char *text, size_t text_bytes,
                                        struct ar_error *error)
{
    struct ar_spec parsed;
    AR_TRY(ar_spec_parse(spec, &parsed, error));
    const struct ar_spec_link *link = &parsed.links[parsed.link_count - 1];
    size_t used = (size_t)snprintf(text, text_bytes, "%s", link->name);
    for (size_t i = 0; i < link->pair_count && used < text_bytes; i++) {
        const struct ar_spec_pair *pair = &link->pairs[i];
        if (strcmp(pair->key, "limit") != 0)
            used = append_pair(text, text_bytes, used, pair);
    }
    ar_spec_close(&parsed);
    return used < text_bytes ? AR_OK : too_long(spec, text_bytes, error);
}
