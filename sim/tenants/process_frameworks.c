#include "allocators/base/size.h"
#include "allocators/options.h"
#include "allocators/policies/bfc/bfc.h"
#include "allocators/policies/torch/torch.h"
#include "allocators/spec.h"
#include "sim/tenants/process.h"

/* TensorFlow's settings: context.py checks the calls, gpu_device.cc the resulting options.
 *
 * 1. Calls change the settings, in order. After the first operation, set_memory_growth and
 *    set_logical_devices raise RuntimeError unless they set the present value.
 * 2. At the first operation, or at the end of the lines, the devices are made: all visible cards
 *    have the same growth, else ValueError; growth counts only if no card has logical devices.
 * 3. A card without logical devices has one pool of the default limit; otherwise one for each.
 * 4. The default limit is the free memory minus the system's part, or a fraction of the card's
 *    total. TF_DEVICE_MIN_SYS_MEMORY_IN_MB, then gpu_system_memory_size_in_mb, replace either.
 * 5. TF_FORCE_GPU_ALLOW_GROWTH replaces growth if it is "true" or "false".
 * 6. TF_GPU_ALLOCATOR chooses another allocator than best fit. Best fit waits ten seconds before a
 *    failure; cuda_malloc_async waits for the stream and tries once more; cuda_malloc does neither.
 * 7. Pinned host memory is a growing best-fit pool of its own: TF_GPU_HOST_MEM_LIMIT_IN_MB, 2^17
 *    MiB. */

#define LOGICAL_MOST 16
#define NO_LIMIT     UINT64_MAX /* of a logical device: not given */
#define RETRY_MS     10000
#define PINNED_MIB   (UINT64_C(1) << 17)

enum growth { GROWTH_UNSET, GROWTH_OFF, GROWTH_ON };

/* The build of TensorFlow. Builds leave different amounts to the system. */
enum build { BUILD_RELEASE, BUILD_DEBUG, BUILD_TEGRA, BUILD_PLUGGABLE, BUILD_1X };

struct card_settings {
    bool visible;
    enum growth growth;
    size_t logical_count; /* 0: not configured */
    uint64_t logical_mib[LOGICAL_MOST];
};

struct tensorflow {
    struct process_reading *reading;
    struct card_settings cards[PROCESS_CARDS];
    const struct process_line *line;           /* the current line */
    const struct process_line *initialized_by; /* NULL: not yet */
    bool allow_growth;
    double fraction, fragmentation_fraction;
    bool unified, no_retry;
    uint64_t equal_parts, system_mib;
    enum build build;
    struct process_virtual virtual_devices; /* of GPUOptions */
};

/* ---- calls -------------------------------------------------------------------------------- */

static enum ar_status unrecognized(struct tensorflow *self, size_t card)
{
    return process_raise(self->reading, self->line, PROCESS_VALUE_ERROR,
                         "Unrecognized device: there is no GPU %zu; %zu visible", card,
                         self->reading->visible_count);
}

static enum ar_status set_growth(struct tensorflow *self, const char *value)
{
    size_t first, last;
    bool on;
    if (!strncmp(value, "cpu ", 4) && process_read_bool(value + 4, &on))
        return process_raise(self->reading, self->line, PROCESS_VALUE_ERROR,
                             "Cannot set memory growth on non-GPU devices");
    if (!process_read_cards(self->reading, &value, &first, &last) || !process_read_bool(value, &on))
        return process_bad_line(self->reading, self->line,
                                "write a card or all, then true or false");
    for (size_t i = first; i <= last; i++) {
        if (i >= self->reading->visible_count)
            return unrecognized(self, i);
        struct card_settings *card = &self->cards[i];
        enum growth growth = on ? GROWTH_ON : GROWTH_OFF;
        if (card->logical_count)
            return process_raise(
                self->reading, self->line, PROCESS_VALUE_ERROR,
                "Cannot set memory growth on device when virtual devices configured (GPU %zu)", i);
        if (card->growth == growth)
            continue;
        if (self->initialized_by)
            return process_raise(self->reading, self->line, PROCESS_RUNTIME_ERROR,
                                 "Physical devices cannot be modified after being initialized");
        card->growth = growth;
    }
    return AR_OK;
}

static enum ar_status set_logical(struct tensorflow *self, const char *value)
{
    struct card_settings settings = {0};
    size_t first, last;
    if (!process_read_cards(self->reading, &value, &first, &last) || !*value)
        return process_bad_line(self->reading, self->line,
                                "write a card or all, then the MiB of each logical device");
    while (*value) {
        char *end;
        if (settings.logical_count == LOGICAL_MOST)
            return process_bad_line(self->reading, self->line, "at most 16 logical devices a card");
        uint64_t mib = strtoull(value, &end, 10);
        if (!strncmp(value, "-", 1) && (!value[1] || value[1] == ' '))
            return process_raise(self->reading, self->line, PROCESS_VALUE_ERROR,
                                 "Setting memory limit is required for GPU virtual devices");
        if (*value < '0' || *value > '9' || (*end && *end != ' ') || !mib || mib >= (1u << 30))
            return process_bad_line(self->reading, self->line, "a limit is a number of MiB");
        settings.logical_mib[settings.logical_count++] = mib;
        value = end + strspn(end, " ");
    }
    for (size_t i = first; i <= last; i++) {
        if (i >= self->reading->visible_count)
            return unrecognized(self, i);
        struct card_settings *card = &self->cards[i];
        if (card->logical_count == settings.logical_count &&
            !memcmp(card->logical_mib, settings.logical_mib, sizeof settings.logical_mib))
            continue;
        if (self->initialized_by)
            return process_raise(self->reading, self->line, PROCESS_RUNTIME_ERROR,
                                 "Virtual devices cannot be modified after being initialized");
        card->logical_count = settings.logical_count;
        memcpy(card->logical_mib, settings.logical_mib, sizeof settings.logical_mib);
    }
    return AR_OK;
}

static enum ar_status set_visible(struct tensorflow *self, const char *value)
{
    bool visible[PROCESS_CARDS] = {false};
    bool same = true;
    if (strcmp(value, "none") != 0)
        while (*value) {
            size_t first, last;
            if (!process_read_cards(self->reading, &value, &first, &last))
                return process_bad_line(self->reading, self->line, "write cards, all or none");
            for (size_t i = first; i <= last; i++) {
                if (i >= self->reading->visible_count)
                    return unrecognized(self, i);
                visible[i] = true;
            }
        }
    for (size_t i = 0; i < self->reading->visible_count; i++)
        same = same && visible[i] == self->cards[i].visible;
    if (same)
        return AR_OK;
    if (self->initialized_by)
        return process_raise(self->reading, self->line, PROCESS_RUNTIME_ERROR,
                             "Visible devices cannot be modified after being initialized");
    for (size_t i = 0; i < self->reading->visible_count; i++)
        self->cards[i].visible = visible[i];
    return AR_OK;
}

/* ---- pools ---------------------------------------------------------------------------------- */

/* A part of the free memory, at least 300 MiB. */
static uint64_t part_of(uint64_t available_bytes, double part)
{
    uint64_t bytes = (uint64_t)((double)available_bytes * part);
    return bytes > 300 * AR_MIB ? bytes : 300 * AR_MIB;
}

/* The free memory minus the system's part; all of it if less is free. */
static uint64_t limit_of_free(enum build build, const struct process_card *card)
{
    uint64_t free_bytes = card->free_bytes;
    uint64_t system_bytes = bfc_system_bytes(free_bytes, card->compute_capability);
    if (build == BUILD_DEBUG)
        system_bytes *= 2;
    else if (build == BUILD_TEGRA)
        system_bytes = AR_GIB;
    else if (build == BUILD_PLUGGABLE)
        system_bytes = free_bytes < 2 * AR_GIB ? 255 * AR_MIB : part_of(free_bytes, 0.06);
    else if (build == BUILD_1X)
        system_bytes = part_of(free_bytes, 0.05);
    return system_bytes < free_bytes ? free_bytes - system_bytes : free_bytes;
}

/* The limit of a card without logical devices. */
static enum ar_status default_limit(struct tensorflow *self, size_t index, uint64_t *limit_bytes,
                                    bool *of_free)
{
    struct process_reading *reading = self->reading;
    const struct process_card *card = &reading->cards[reading->visible[index]];
    const char *variable = process_variable(reading, "TF_DEVICE_MIN_SYS_MEMORY_IN_MB");
    uint64_t left_mib = self->system_mib;
    if ((self->fraction > 1 || self->unified) && card->compute_capability < 6)
        return process_raise(
            reading, NULL, PROCESS_INVALID_ARGUMENT,
            "unified memory (use_unified_memory, or a per_process_gpu_memory_fraction above 1) "
            "needs compute capability 6.0");
    if (self->unified)
        process_warn(reading, "unified memory is not modelled: GPU %zu has only its own memory",
                     index);
    if (self->fraction > 0) {
        double bytes = self->fraction * (double)card->total_bytes;
        *limit_bytes = bytes < 0x1p62 ? (uint64_t)bytes : UINT64_C(1) << 62;
    } else {
        *limit_bytes = limit_of_free(self->build, card);
    }
    if (variable && ar_count_parse(variable, &left_mib, NULL) != AR_OK) {
        process_warn(reading, "TF_DEVICE_MIN_SYS_MEMORY_IN_MB=%s is not a number and is ignored",
                     variable);
        left_mib = self->system_mib;
    }
    *of_free = !(self->fraction > 0);
    if (left_mib && (left_mib >= (UINT64_C(1) << 40) || left_mib * AR_MIB > card->free_bytes))
        process_warn(reading,
                     "%" PRIu64
                     " MiB for the system are more than GPU %zu has free and are ignored",
                     left_mib, index);
    else if (left_mib) {
        *limit_bytes = card->free_bytes - left_mib * AR_MIB;
        *of_free = true;
    }
    return AR_OK;
}

/* Whether an environment variable is on. */
static bool is_set(const struct process_reading *reading, const char *name)
{
    const char *value = process_variable(reading, name);
    return value && (!strcmp(value, "true") || !strcmp(value, "1"));
}

/* Writes the spec of a pool. */
static void choose_policy(struct tensorflow *self, struct process_pool *pool, bool grows)
{
    const char *allocator = process_variable(self->reading, "TF_GPU_ALLOCATOR");
    const char *collects = process_variable(self->reading, "TF_ENABLE_GPU_GARBAGE_COLLECTION");
    bool collecting = !collects || strcmp(collects, "false") != 0;
    char fragmentation[48] = "";
    pool->grows = grows;
    if (allocator && !strcmp(allocator, "cuda_malloc_async")) {
        /* The limit is the release threshold of the driver's pool, not a cap. */
        snprintf(pool->policy, sizeof pool->policy,
                 "async:release_threshold=%" PRIu64 ",retry=true%s", pool->limit_bytes,
                 is_set(self->reading, "TF_DETERMINISTIC_ALLOCATOR")
                     ? ",opportunistic=false,internal=false"
                     : "");
        return;
    }
    if (allocator && !strcmp(allocator, "cuda_malloc")) {
        snprintf(pool->policy, sizeof pool->policy, "direct");
        return;
    }
    if (allocator && !strcmp(allocator, "memory_guard"))
        process_warn(self->reading, "the guards of memory_guard around blocks are not modelled");
    else if (allocator && *allocator)
        process_warn(self->reading, "TF_GPU_ALLOCATOR=%s is not known and is ignored", allocator);
    if (self->fragmentation_fraction > 0)
        snprintf(fragmentation, sizeof fragmentation, ",fragmentation_fraction=%g",
                 self->fragmentation_fraction);
    snprintf(pool->policy, sizeof pool->policy, "%s:framework=tf,limit=%" PRIu64 "%s%s",
             grows ? "growth" : "greedy", pool->limit_bytes,
             collecting ? "" : ",garbage_collection=false", fragmentation);
}

static enum ar_status add_pool(struct tensorflow *self, size_t card, uint64_t limit_bytes,
                               bool of_free, bool grows)
{
    struct process_pool *pool;
    AR_TRY(process_add_pool(self->reading, (uint32_t)card, &pool));
    pool->limit_bytes = limit_bytes;
    pool->limit_of_free = of_free;
    choose_policy(self, pool, grows);
    return AR_OK;
}

/* `count` is the number of limits in `mib`, one for each pool. 0: one pool of the default limit, or
 * equal parts. */
static enum ar_status make_pools(struct tensorflow *self, size_t card, const uint64_t *mib,
                                 size_t count, bool grows)
{
    uint64_t limit_bytes = 0;
    bool of_free = false;
    for (size_t i = 0; i < count; i++)
        AR_TRY(add_pool(self, card, mib[i] * AR_MIB, false, grows));
    if (count)
        return AR_OK;
    AR_TRY(default_limit(self, card, &limit_bytes, &of_free));
    uint64_t parts = self->equal_parts ? self->equal_parts : 1;
    for (uint64_t i = 0; i < parts; i++)
        AR_TRY(add_pool(self, card, limit_bytes / parts, of_free, grows));
    return AR_OK;
}

static bool has_logical(const struct tensorflow *self)
{
    bool logical = false;
    for (size_t i = 0; i < self->reading->visible_count; i++)
        logical |= self->cards[i].logical_count > 0;
    return logical;
}

/* Virtual devices of any kind exclude other ways to set a limit. */
static enum ar_status check_limits(struct tensorflow *self)
{
    if (self->fraction > 0)
        return process_raise(
            self->reading, self->initialized_by, PROCESS_INVALID_ARGUMENT,
            "per_process_gpu_memory_fraction cannot be set together with virtual devices");
    if (self->equal_parts)
        return process_raise(
            self->reading, self->initialized_by, PROCESS_INVALID_ARGUMENT,
            "num_virtual_devices_per_gpu cannot be set together with virtual devices");
    return AR_OK;
}

/* Checks the GPUOptions of the visible cards, and whether pools grow. */
static enum ar_status check_options(struct tensorflow *self, bool *grows)
{
    enum growth growth = GROWTH_UNSET;
    bool logical = has_logical(self), differs = false, any = false;
    for (size_t i = 0; i < self->reading->visible_count; i++) {
        if (!self->cards[i].visible)
            continue;
        differs |= any && growth != self->cards[i].growth;
        growth = self->cards[i].growth;
        any = true;
    }
    if (!logical && differs)
        return process_raise(self->reading, self->initialized_by, PROCESS_VALUE_ERROR,
                             "Memory growth cannot differ between GPU devices");
    if (logical || self->virtual_devices.gpu_count[VIRTUAL_LIMITS])
        AR_TRY(check_limits(self));
    if (logical && growth == GROWTH_ON)
        process_warn(self->reading, "memory growth is ignored because there are logical devices");
    *grows = self->allow_growth || (!logical && growth == GROWTH_ON);
    const char *forced = process_variable(self->reading, "TF_FORCE_GPU_ALLOW_GROWTH");
    if (forced && (!strcmp(forced, "true") || !strcmp(forced, "false")))
        *grows = !strcmp(forced, "true");
    else if (forced)
        process_warn(
            self->reading,
            "TF_FORCE_GPU_ALLOW_GROWTH=%s is neither \"true\" nor \"false\" and is ignored",
            forced);
    return AR_OK;
}

static enum ar_status initialize(struct tensorflow *self)
{
    struct process_reading *reading = self->reading;
    /* Logical devices of the program replace those of GPUOptions. */
    const struct process_virtual *lists = has_logical(self) ? NULL : &self->virtual_devices;
    size_t list_count = lists ? lists->gpu_count[VIRTUAL_LIMITS] : 0, gpu = 0, gpu_count = 0;
    bool grows = false;
    AR_TRY(check_options(self, &grows));
    for (size_t i = 0; i < reading->visible_count; i++)
        gpu_count += self->cards[i].visible;
    if (lists)
        AR_TRY(process_virtual_check(lists, reading, self->initialized_by, gpu_count));
    for (size_t i = 0; i < reading->visible_count; i++) {
        const struct card_settings *card = &self->cards[i];
        if (!card->visible)
            continue;
        if (!list_count)
            AR_TRY(make_pools(self, i, card->logical_mib, card->logical_count, grows));
        else if (gpu < list_count)
            AR_TRY(make_pools(self, i, lists->mib[gpu], lists->count[VIRTUAL_LIMITS][gpu], grows));
        gpu++;
    }
    return AR_OK;
}

/* ---- lines -------------------------------------------------------------------------------- */

static enum ar_status set_build(struct tensorflow *self)
{
    static const char *const names[] = {
        [BUILD_RELEASE] = "release",     [BUILD_DEBUG] = "debug", [BUILD_TEGRA] = "tegra",
        [BUILD_PLUGGABLE] = "pluggable", [BUILD_1X] = "1.x",
    };
    for (size_t i = 0; i < AR_COUNT(names); i++)
        if (!strcmp(self->line->value, names[i])) {
            self->build = (enum build)i;
            return AR_OK;
        }
    return process_bad_line(self->reading, self->line, "release, debug, tegra, pluggable or 1.x");
}

static enum ar_status set_switch(struct tensorflow *self, bool *value)
{
    return process_read_bool(self->line->value, value)
               ? AR_OK
               : process_bad_line(self->reading, self->line, "true or false");
}

static enum ar_status set_option(struct tensorflow *self)
{
    const char *key = self->line->key, *value = self->line->value;
    bool taken;
    AR_TRY(process_virtual_line(&self->virtual_devices, self->reading, self->line, &taken));
    if (taken)
        return AR_OK;
    if (!strcmp(key, "build"))
        return set_build(self);
    if (!strcmp(key, "per_process_gpu_memory_fraction")) {
        if (!process_read_number(value, &self->fraction) || !(self->fraction >= 0))
            return process_bad_line(self->reading, self->line, "a fraction is a number from 0");
        return AR_OK;
    }
    if (!strcmp(key, "internal_fragmentation_fraction")) {
        double *fraction = &self->fragmentation_fraction;
        if (!process_read_number(value, fraction) || !(*fraction >= 0 && *fraction <= 1))
            return process_bad_line(self->reading, self->line, "a number from 0 to 1");
        return AR_OK;
    }
    if (!strcmp(key, "use_unified_memory"))
        return set_switch(self, &self->unified);
    if (!strcmp(key, "allow_growth"))
        return set_switch(self, &self->allow_growth);
    if (!strcmp(key, "disallow_retry_on_allocation_failure"))
        return set_switch(self, &self->no_retry);
    bool parts = !strcmp(key, "num_virtual_devices_per_gpu");
    if (!parts && strcmp(key, "gpu_system_memory_size_in_mb") != 0)
        return process_bad_line(
            self->reading, self->line,
            "no such setting of TensorFlow; there are set_visible_devices, set_memory_growth, "
            "set_logical_devices, initialize and GPUOptions");
    uint64_t *place = parts ? &self->equal_parts : &self->system_mib;
    if (ar_count_parse(value, place, NULL) != AR_OK || (parts && *place > LOGICAL_MOST))
        return process_bad_line(self->reading, self->line,
                                parts ? "a number from 0 to 16" : "a number of MiB");
    return AR_OK;
}

static enum ar_status take_line(struct tensorflow *self)
{
    const char *key = self->line->key, *value = self->line->value;
    if (!strcmp(key, "set_memory_growth"))
        return set_growth(self, value);
    if (!strcmp(key, "set_logical_devices"))
        return set_logical(self, value);
    if (!strcmp(key, "set_visible_devices"))
        return set_visible(self, value);
    if (!strcmp(key, "initialize")) {
        if (self->initialized_by)
            return AR_OK;
        self->initialized_by = self->line;
        return initialize(self);
    }
    if (self->initialized_by)
        return process_bad_line(self->reading, self->line,
                                "GPUOptions go before initialize: they are read once");
    return set_option(self);
}

static void choose_pinned(struct process_reading *reading)
{
    const char *variable = process_variable(reading, "TF_GPU_HOST_MEM_LIMIT_IN_MB");
    struct process *process = reading->process;
    uint64_t mib = PINNED_MIB;
    if (variable && (ar_count_parse(variable, &mib, NULL) || !mib || mib >= (UINT64_C(1) << 40))) {
        process_warn(reading, "TF_GPU_HOST_MEM_LIMIT_IN_MB=%s is not a number and is ignored",
                     variable);
        mib = PINNED_MIB;
    }
    snprintf(process->pinned_policy, sizeof process->pinned_policy,
             "growth:framework=tf,limit=%" PRIu64, mib * AR_MIB);
}

enum ar_status process_tensorflow(struct process_reading *reading)
{
    struct tensorflow self = {.reading = reading};
    enum ar_status status = AR_OK;
    const char *allocator = process_variable(reading, "TF_GPU_ALLOCATOR");
    reading->process->retries = !allocator || (strcmp(allocator, "cuda_malloc_async") != 0 &&
                                               strcmp(allocator, "cuda_malloc") != 0);
    reading->process->retry_ms = RETRY_MS;
    if (process_variable(reading, "TF_CUDA_MALLOC_ASYNC_SUPPORTED_PREALLOC"))
        process_warn(reading,
                     "what cuda_malloc_async allocates before its first use is not modelled");
    choose_pinned(reading);
    for (size_t i = 0; i < reading->visible_count; i++)
        self.cards[i].visible = true;
    for (size_t i = 0; i < reading->line_count && !status; i++) {
        const char *key = reading->lines[i].key;
        self.line = &reading->lines[i];
        if (strcmp(key, "framework") != 0 && (*key < 'A' || *key > 'Z'))
            status = take_line(&self);
    }
    if (!status && !self.initialized_by)
        status = initialize(&self);
    if (self.no_retry)
        reading->process->retries = false;
    return status;
}

/* PyTorch's settings: the fraction of a card that a process may use; the configuration string of
 * the allocator, read as the policy reads it and refused as PyTorch refuses it; and two settings
 * that select another allocator: backend:cudaMallocAsync in the string, else
 * PYTORCH_NO_CUDA_MEMORY_CACHING, with any value, which only the caching allocator reads. */

static enum ar_status set_fraction(struct process_reading *self, const struct process_line *line,
                                   double *fractions)
{
    const char *value = line->value;
    size_t first, last;
    double fraction;
    if (!process_read_cards(self, &value, &first, &last) || !process_read_number(value, &fraction))
        return process_bad_line(self, line, "write a card or all, then a fraction");
    if (!(fraction >= 0 && fraction <= 1))
        return process_raise(self, line, PROCESS_VALUE_ERROR,
                             "Invalid fraction value: %s. Allowed range: 0~1", value);
    for (size_t i = first; i <= last; i++) {
        if (i >= self->visible_count)
            return process_raise(self, line, PROCESS_RUNTIME_ERROR,
                                 "invalid device ordinal: there is no GPU %zu; %zu visible", i,
                                 self->visible_count);
        fractions[i] = fraction;
    }
    return AR_OK;
}

/* The newer name of the configuration takes precedence. */
static const char *configuration(const struct process_reading *self)
{
    const char *text = process_variable(self, "PYTORCH_ALLOC_CONF");
    return text ? text : process_variable(self, "PYTORCH_CUDA_ALLOC_CONF");
}

/* RuntimeError if the allocator would refuse its string. */
static enum ar_status check_settings(struct process_reading *self, const char *policy)
{
    struct torch_values values = {0};
    struct torch_settings settings;
    struct ar_error why = {""};
    AR_CLOSED(ar_spec_close) struct ar_spec spec = {0};
    AR_TRY(ar_spec_parse(policy, &spec, self->error));
    enum ar_status status = ar_options_read(torch_options, &spec.links[spec.link_count - 1],
                                            "policy torch", &values, &why);
    AR_THEN(status, torch_settings_read(&values, &settings, &why));
    if (status == AR_INVALID)
        return process_raise(self, NULL, PROCESS_RUNTIME_ERROR, "%s", why.text);
    return status ? ar_error_set(self->error, status, "%s", why.text) : AR_OK;
}

static enum ar_status add_torch_pool(struct process_reading *self, size_t card, double fraction)
{
    const char *conf = configuration(self);
    struct process_pool *pool;
    AR_TRY(process_add_pool(self, (uint32_t)card, &pool));
    if (conf && (strlen(conf) > 511 || strchr(conf, '\'')))
        return ar_invalid(self->error,
                          "PYTORCH_CUDA_ALLOC_CONF is longer than 511 bytes, or holds a quote");
    char *text = pool->policy, limit[40] = "";
    size_t room = sizeof pool->policy;
    pool->grows = true;
    bool driver_pool = conf && strstr(conf, "backend:cudaMallocAsync");
    if (!driver_pool && process_variable(self, "PYTORCH_NO_CUDA_MEMORY_CACHING")) {
        snprintf(text, room, "direct");
        return AR_OK;
    }
    if (fraction < 1) {
        pool->limit_bytes =
            (uint64_t)((double)self->cards[self->visible[card]].total_bytes * fraction);
        snprintf(limit, sizeof limit, "limit=%" PRIu64, pool->limit_bytes);
    }
    if (driver_pool) {
        snprintf(text, room, "async:release_threshold=max%s%s", *limit ? "," : "", limit);
        return AR_OK;
    }
    bool quoted = conf && *conf;
    snprintf(text, room, "torch%s%s%s%s%s%s", *limit || quoted ? ":" : "", limit,
             *limit && quoted ? "," : "", quoted ? "conf='" : "", quoted ? conf : "",
             quoted ? "'" : "");
    return check_settings(self, text);
}

enum ar_status process_torch(struct process_reading *self)
{
    double fractions[PROCESS_CARDS];
    for (size_t i = 0; i < PROCESS_CARDS; i++)
        fractions[i] = 1;
    for (size_t i = 0; i < self->line_count; i++) {
        const struct process_line *line = &self->lines[i];
        if (!strcmp(line->key, "framework") || (*line->key >= 'A' && *line->key <= 'Z'))
            continue;
        if (strcmp(line->key, "set_per_process_memory_fraction") != 0)
            return process_bad_line(self, line,
                                    "no such setting of PyTorch; there is "
                                    "set_per_process_memory_fraction, and its environment");
        AR_TRY(set_fraction(self, line, fractions));
    }
    for (size_t i = 0; i < self->visible_count; i++)
        AR_TRY(add_torch_pool(self, i, fractions[i]));
    return AR_OK;
}

/* JAX's settings, all in the environment:
 *
 * 1. The limit is a fraction of the card's total memory, by default 0.75. It is reserved at once,
 *    or by growth without XLA_PYTHON_CLIENT_PREALLOCATE. "0.3-0.8", under the newer name, is a
 *    first region of the first part and growth up to the second part.
 * 2. The fraction has two names; both at once raise ValueError.
 * 3. XLA_PYTHON_CLIENT_ALLOCATOR: default and bfc; platform calls the driver each time; cuda_async
 *    is the driver's pool, which waits for the stream and retries once; vmm maps pages.
 * 4. gpu_system_memory_size, an option of XLA, is the size of the pool in bytes and replaces the
 *    fraction.
 * 5. Pinned host memory is a growing pool of 64 GiB. */

/* The size of the first region and the limit, as parts of the total. */
struct fractions {
    double start, cap;
};

/* Reads "0.3-0.8": the first region and the limit, in the newest configuration. */
static bool read_range(const char *text, struct fractions *fractions)
{
    char start[32];
    const char *dash = strchr(text, '-');
    if (!dash || dash == text || (size_t)(dash - text) >= sizeof start)
        return false;
    memcpy(start, text, (size_t)(dash - text));
    start[dash - text] = '\0';
    return process_read_number(start, &fractions->start) &&
           process_read_number(dash + 1, &fractions->cap) && fractions->start > 0 &&
           fractions->start <= fractions->cap && fractions->cap <= 1;
}

static enum ar_status read_fraction(struct process_reading *self, struct fractions *fractions)
{
    const char *now = process_variable(self, "XLA_CLIENT_MEM_FRACTION");
    const char *before = process_variable(self, "XLA_PYTHON_CLIENT_MEM_FRACTION");
    const char *text = now ? now : before;
    *fractions = (struct fractions){0.75, 0.75};
    if (now && before)
        return process_raise(self, NULL, PROCESS_VALUE_ERROR,
                             "XLA_PYTHON_CLIENT_MEM_FRACTION is the old name of "
                             "XLA_CLIENT_MEM_FRACTION; set only one of the two");
    if (!text || (now && read_range(now, fractions)))
        return AR_OK;
    if (!process_read_number(text, &fractions->cap) || !(fractions->cap > 0) || fractions->cap > 64)
        return process_raise(self, NULL, PROCESS_VALUE_ERROR,
                             "a memory fraction of \"%s\" is no number above 0", text);
    fractions->start = fractions->cap;
    return AR_OK;
}

enum allocator { ALLOCATOR_BFC, ALLOCATOR_PLATFORM, ALLOCATOR_VMM, ALLOCATOR_ASYNC };

/* "" is the default. */
static bool find_allocator(const char *name, enum allocator *found)
{
    static const struct {
        const char *name;
        enum allocator allocator;
    } known[] = {
        {"", ALLOCATOR_BFC},    {"default", ALLOCATOR_BFC},
        {"bfc", ALLOCATOR_BFC}, {"platform", ALLOCATOR_PLATFORM},
        {"vmm", ALLOCATOR_VMM}, {"cuda_async", ALLOCATOR_ASYNC},
    };
    for (size_t i = 0; i < AR_COUNT(known); i++)
        if (!strcmp(name, known[i].name)) {
            *found = known[i].allocator;
            return true;
        }
    return false;
}

/* Writes the spec of the pool of one card. */
static void choose_jax_policy(enum allocator allocator, uint64_t start_bytes,
                              struct process_pool *pool)
{
    char first[48] = "";
    switch (allocator) {
    case ALLOCATOR_BFC:
        if (start_bytes < pool->limit_bytes)
            snprintf(first, sizeof first, ",first_region=%" PRIu64, start_bytes);
        snprintf(pool->policy, sizeof pool->policy, "%s:framework=jax,limit=%" PRIu64 "%s",
                 pool->grows ? "growth" : "greedy", pool->limit_bytes, first);
        break;
    case ALLOCATOR_PLATFORM:
        snprintf(pool->policy, sizeof pool->policy, "direct");
        break;
    case ALLOCATOR_VMM:
        snprintf(pool->policy, sizeof pool->policy, "direct:limit=%" PRIu64, pool->limit_bytes);
        break;
    case ALLOCATOR_ASYNC:
        snprintf(pool->policy, sizeof pool->policy,
                 "async:release_threshold=%" PRIu64 ",retry=true", pool->limit_bytes);
        break;
    }
}

/* Settings that the framework accepts and this model ignores. */
static void warn_of_the_rest(struct process_reading *self, enum allocator allocator)
{
    if (process_variable(self, "XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB"))
        process_warn(self, "the pool for collectives is not modelled");
    if (process_variable(self, "TF_FORCE_UNIFIED_MEMORY"))
        process_warn(self, "unified memory is not modelled: a GPU has only its own memory");
    if (allocator == ALLOCATOR_VMM)
        process_warn(self, "vmm is modelled as one driver allocation for each request");
}

enum ar_status process_jax(struct process_reading *self)
{
    const char *named = process_variable(self, "XLA_PYTHON_CLIENT_ALLOCATOR");
    const char *preallocate = process_variable(self, "XLA_PYTHON_CLIENT_PREALLOCATE");
    bool grows = preallocate && (!strcmp(preallocate, "false") || !strcmp(preallocate, "False") ||
                                 !strcmp(preallocate, "0"));
    struct fractions fractions;
    uint64_t pool_bytes = 0; /* 0: use the fraction */
    for (size_t i = 0; i < self->line_count; i++) {
        const char *key = self->lines[i].key;
        if (!strcmp(key, "framework") || (*key >= 'A' && *key <= 'Z'))
            continue;
        if (strcmp(key, "gpu_system_memory_size") != 0)
            return process_bad_line(self, &self->lines[i],
                                    "JAX is set by its environment, such as "
                                    "XLA_PYTHON_CLIENT_PREALLOCATE, and gpu_system_memory_size");
        if (ar_count_parse(self->lines[i].value, &pool_bytes, NULL) || !pool_bytes)
            return process_bad_line(self, &self->lines[i], "a number of bytes");
    }
    enum allocator allocator;
    if (named && !strcmp(named, "address"))
        return ar_invalid(self->error, "XLA_PYTHON_CLIENT_ALLOCATOR=address is not modelled; there "
                                       "are default, bfc, platform, cuda_async and vmm");
    if (!find_allocator(named ? named : "", &allocator))
        return process_raise(self, NULL, PROCESS_VALUE_ERROR,
                             "XLA_PYTHON_CLIENT_ALLOCATOR is \"default\", \"bfc\", \"platform\", "
                             "\"cuda_async\" or \"vmm\", not \"%s\"",
                             named);
    AR_TRY(read_fraction(self, &fractions));
    snprintf(self->process->pinned_policy, sizeof self->process->pinned_policy,
             "growth:framework=jax,limit=%" PRIu64, 64 * AR_GIB);
    warn_of_the_rest(self, allocator);
    for (size_t i = 0; i < self->visible_count; i++) {
        struct process_pool *pool;
        AR_TRY(process_add_pool(self, (uint32_t)i, &pool));
        double total_bytes = (double)self->cards[self->visible[i]].total_bytes;
        pool->grows = grows || fractions.start < fractions.cap;
        pool->limit_bytes = pool_bytes ? pool_bytes : (uint64_t)(total_bytes * fractions.cap);
        choose_jax_policy(
            allocator, pool_bytes ? pool_bytes : (uint64_t)(total_bytes * fractions.start), pool);
    }
    return AR_OK;
}
