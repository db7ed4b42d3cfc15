/* The library itself, workloads, metrics, and a policy by hand. */

#include "allocators/base/array.h"
#include "allocators/registry.h"
#include "bench/library/parts.h"
#include "bench/machine/environment.h"
#include "sim/device.h"
#include "sim/metrics/metrics.h"
#include "workloads/trace/check.h"
#include "workloads/workload.h"

const char *ar_version(void)
{
    return build_info()->version;
}

void ar_free(void *text)
{
    free(text);
}

/* ---- names ---------------------------------------------------------------------------------- */

enum ar_status ar_library_open(struct ar_library **out, struct ar_error *error)
{
    struct ar_library *self = calloc(1, sizeof *self);
    if (self) {
        self->policies = ar_array_grow(NULL, 0, &self->policy_room, sizeof(void *));
        self->devices = ar_array_grow(NULL, 0, &self->device_room, sizeof(void *));
    }
    if (!self || !self->policies || !self->devices) {
        ar_library_close(self);
        return ar_no_memory(error, "the library");
    }
    self->policies[0] = NULL;
    self->devices[0] = NULL;
    self->catalog = (struct ar_catalog){self->policies, self->devices};
    *out = self;
    return AR_OK;
}

void ar_library_close(struct ar_library *self)
{
    if (!self)
        return;
    free(self->policies);
    free(self->devices);
    free(self);
}

const struct ar_policy_ops *ar_policy_at(const struct ar_library *self, size_t index)
{
    for (size_t built_in = 0; registry_policy(built_in); built_in++)
        if (index-- == 0)
            return registry_policy(built_in);
    return index < self->policy_count ? self->policies[index] : NULL;
}

const struct ar_device_kind *ar_device_kind_at(const struct ar_library *self, size_t index)
{
    for (const struct ar_device_kind *const *kind = device_kinds; *kind; kind++)
        if (index-- == 0)
            return *kind;
    return index < self->device_count ? self->devices[index] : NULL;
}

/* A name that a spec can hold: it begins like no file and has none of the signs of the grammar. */
static enum ar_status check_name(const char *what, const char *name, struct ar_error *error)
{
    if (!name || !*name || strpbrk(name, ":+(),=/'\" \t\n"))
        return ar_invalid(
            error, "a %s needs a name without blanks, quotes and the signs : + ( ) , = /", what);
    return AR_OK;
}

static enum ar_status taken(const char *what, const char *name, struct ar_error *error)
{
    return ar_invalid(error, "there is a %s \"%.60s\" already; choose another name", what, name);
}

enum ar_status ar_register_policy(struct ar_library *self, const struct ar_policy_ops *policy,
                                  struct ar_error *error)
{
    AR_TRY(ar_policy_check(policy, error));
    AR_TRY(check_name("policy", policy->name, error));
    const struct ar_policy_ops *other;
    for (size_t i = 0; (other = ar_policy_at(self, i)); i++)
        if (strcmp(other->name, policy->name) == 0)
            return taken("policy", policy->name, error);
    for (size_t i = 0; registry_decorator(i); i++)
        if (strcmp(registry_decorator(i)->name, policy->name) == 0)
            return taken("decorator", policy->name, error);
    const struct ar_policy_ops **list =
        ar_array_grow(self->policies, self->policy_count + 1, &self->policy_room, sizeof(void *));
    AR_TRY_MEMORY(list, error, "policy %.60s", policy->name);
    list[self->policy_count++] = policy;
    list[self->policy_count] = NULL;
    self->policies = list;
    self->catalog.policies = list;
    return AR_OK;
}

enum ar_status ar_register_device(struct ar_library *self, const struct ar_device_kind *kind,
                                  struct ar_error *error)
{
    AR_TRY(check_name("device", kind->name, error));
    if (!kind->summary || !kind->options || !kind->open)
        return ar_invalid(error, "device %.60s lacks summary, options or open", kind->name);
    const struct ar_device_kind *other;
    for (size_t i = 0; (other = ar_device_kind_at(self, i)); i++)
        if (strcmp(other->name, kind->name) == 0)
            return taken("device", kind->name, error);
    const struct ar_device_kind **list =
        ar_array_grow(self->devices, self->device_count + 1, &self->device_room, sizeof(void *));
    AR_TRY_MEMORY(list, error, "device %.60s", kind->name);
    list[self->device_count++] = kind;
    list[self->device_count] = NULL;
    self->devices = list;
    self->catalog.devices = list;
    return AR_OK;
}

/* ---- workloads ------------------------------------------------------------------------------ */

struct ar_workload {
    struct trace_source *source;
    const struct trace_event *events; /* the span that is being given */
    size_t count, next;
    uint64_t number;
};

#define SAME_KIND(name) _Static_assert((int)AR_EVENT_##name == (int)TRACE_##name, "as in a trace")
SAME_KIND(ALLOC);
SAME_KIND(PROBE);
SAME_KIND(FREE_REQUESTED);
SAME_KIND(FREE_COMPLETED);
SAME_KIND(USE);
SAME_KIND(KERNEL);
SAME_KIND(RECORD);
SAME_KIND(WAIT);
SAME_KIND(SYNC);
SAME_KIND(TRIM);
SAME_KIND(OUTSIDE);
SAME_KIND(MARK);
SAME_KIND(TIME);
SAME_KIND(NOTE);

enum ar_status ar_workload_open(const char *text, struct ar_workload **out, struct ar_error *error)
{
    struct ar_workload *self = calloc(1, sizeof *self);
    AR_TRY_MEMORY(self, error, "a workload");
    enum ar_status status = workload_open(text, &self->source, error);
    if (status)
        free(self);
    else
        *out = self;
    return status;
}

void ar_workload_close(struct ar_workload *self)
{
    if (self)
        trace_close(self->source);
    free(self);
}

enum ar_status ar_workload_rewind(struct ar_workload *self, struct ar_error *error)
{
    self->count = self->next = 0;
    self->number = 0;
    return trace_rewind(self->source, error);
}

/* Fetches a span where the last one is used up; `count` 0 is the end. */
static enum ar_status fetch(struct ar_workload *self, struct ar_error *error)
{
    self->next = 0;
    return trace_next(self->source, &self->events, &self->count, error);
}

/* A source whose events depend on what is served gets the answer that all of it is. */
static void answer(struct ar_workload *self, const struct trace_event *event)
{
    const struct trace_served served = {.served = true, .granted_bytes = event->value};
    if (self->source->info.adaptive && (event->kind == TRACE_ALLOC || event->kind == TRACE_PROBE))
        trace_answer(self->source, event, &served);
}

static enum ar_status count_events(struct ar_workload *self, struct ar_error *error)
{
    enum ar_status status = ar_workload_rewind(self, error);
    do {
        AR_THEN(status, fetch(self, error));
        for (size_t i = 0; i < self->count && !status; i++)
            answer(self, &self->events[i]);
    } while (!status && self->count);
    return status ? status : ar_workload_rewind(self, error);
}

enum ar_status ar_workload_info(struct ar_workload *self, struct ar_workload_info *out,
                                size_t out_bytes, struct ar_error *error)
{
    const struct trace_info *info = &self->source->info;
    AR_TRY(info->counted ? AR_OK : count_events(self, error));
    const struct ar_workload_info value = {
        .name = info->name,
        .format = info->format,
        .recorder = info->recorder,
        .settings = info->conf,
        .card = info->card,
        .events = info->events,
        .requests = info->allocs + info->probes,
        .frees = info->frees,
        .steps = info->steps,
        .kernels = info->kernels,
        .streams = info->streams,
        .peak_live_bytes = info->peak_live_bytes,
        .requested_bytes = info->allocated_bytes,
        .capacity_bytes = info->capacity_bytes,
        .limit_bytes = info->limit_bytes,
        .complete = info->complete,
    };
    library_fill(out, out_bytes, &value, sizeof value);
    return AR_OK;
}

enum ar_status ar_workload_next(struct ar_workload *self, struct ar_event *out, size_t out_bytes,
                                struct ar_error *error)
{
    struct ar_event value = {.number = self->number};
    AR_TRY(self->next < self->count ? AR_OK : fetch(self, error));
    if (self->count) {
        const struct trace_event *event = &self->events[self->next++];
        value.kind = (enum ar_event_kind)event->kind;
        value.stream = event->stream;
        value.id = event->id;
        value.value = event->value;
        if (event->kind == TRACE_NOTE || event->kind == TRACE_MARK)
            value.text =
                event->flags & TRACE_STEP ? "step" : trace_text_of(self->source, event->value);
        if (event->attributes) {
            const struct trace_attributes *keys =
                trace_attributes_of(self->source, event->attributes);
            value.tag = keys->tag;
            value.pool = keys->pool;
        }
        self->number++;
        answer(self, event);
    }
    library_fill(out, out_bytes, &value, sizeof value);
    return AR_OK;
}

/* ---- metrics -------------------------------------------------------------------------------- */

bool ar_metric_at(size_t index, struct ar_metric *out, size_t out_bytes)
{
    if (index >= METRIC_COUNT)
        return false;
    const struct metric_info *info = metric_info((enum metric)index);
    const struct ar_metric value = {
        .name = info->name,
        .unit = info->unit,
        .definition = info->definition,
        .metric_class = info->class == METRIC_TIMED ? AR_METRIC_TIMED : AR_METRIC_EXACT,
        .better = info->better == METRIC_LOWER    ? AR_METRIC_LOWER
                  : info->better == METRIC_HIGHER ? AR_METRIC_HIGHER
                                                  : AR_METRIC_NEITHER,
    };
    library_fill(out, out_bytes, &value, sizeof value);
    return true;
}

/* ---- a policy by hand ----------------------------------------------------------------------- */

struct ar_session {
    struct ar_device *device; /* NULL: memory of the caller's own */
    struct ar_host host;
    struct ar_policy_context context;
    struct ar_policy *policy;
};

enum ar_status ar_library_device(const struct ar_library *library, const char *text,
                                 struct ar_device **out, struct ar_error *error)
{
    AR_CLOSED(ar_spec_close) struct ar_spec spec = {0};
    AR_TRY(ar_spec_parse(text, &spec, error));
    spec.catalog = &library->catalog;
    return ar_device_open(&spec, out, error);
}

enum ar_status ar_session_open_on(const struct ar_library *library, const char *policy,
                                  struct ar_backing *backing, uint64_t seed,
                                  struct ar_session **out, struct ar_error *error)
{
    AR_CLOSED(ar_spec_close) struct ar_spec spec = {0};
    AR_FREED struct ar_session *self = calloc(1, sizeof *self);
    AR_TRY_MEMORY(self, error, "a session");
    self->context =
        (struct ar_policy_context){.backing = backing, .host = &self->host, .seed = seed};
    AR_TRY(ar_spec_parse(policy, &spec, error));
    spec.catalog = &library->catalog;
    AR_TRY(registry_create(&spec, &self->context, &self->policy, error));
    *out = self;
    self = NULL;
    return AR_OK;
}

enum ar_status ar_session_open(const struct ar_library *library, const char *policy,
                               const char *device, uint64_t seed, struct ar_session **out,
                               struct ar_error *error)
{
    AR_CLOSED(ar_device_close_at) struct ar_device *opened = NULL;
    AR_TRY(ar_library_device(library, device, &opened, error));
    AR_TRY(ar_session_open_on(library, policy, opened->backing, seed, out, error));
    (*out)->device = opened;
    opened = NULL;
    return AR_OK;
}

void ar_session_close(struct ar_session *self)
{
    if (!self)
        return;
    if (self->device && !self->device->failed)
        self->device->ops->sync(self->device, TRACE_NO_STREAM);
    ar_policy_destroy(self->policy);
    ar_device_close(self->device);
    free(self);
}

struct ar_policy *ar_session_policy(struct ar_session *self)
{
    return self->policy;
}

struct ar_device *ar_session_device(struct ar_session *self)
{
    return self->device;
}

static enum ar_status refused(const struct ar_session *self, enum ar_status status,
                              const char *what, struct ar_error *error)
{
    const char *why = ar_policy_problem(self->policy);
    if (!*why && status == AR_INVALID)
        why = ar_backing_problem(self->context.backing);
    return ar_error_set(error, status, "policy %s cannot %s: %s%s%s", self->policy->ops->name, what,
                        ar_status_meaning(status), *why ? ": " : "", why);
}

/* Policies and devices have an entry for each stream up to the highest. */
static enum ar_status check_stream(uint32_t stream, struct ar_error *error)
{
    if (stream >= TRACE_STREAM_LIMIT)
        return ar_invalid(error, "stream %" PRIu32 " is not below %u", stream, TRACE_STREAM_LIMIT);
    return AR_OK;
}

enum ar_status ar_session_alloc(struct ar_session *self, const struct ar_policy_request *request,
                                struct ar_policy_block *out, struct ar_error *error)
{
    struct ar_policy_block block = {0};
    if (!request->bytes || request->bytes >= TRACE_BYTES_LIMIT)
        return ar_invalid(error, "a request must have from 1 to 2^60 - 1 bytes");
    if (request->alignment & (request->alignment - 1))
        return ar_invalid(error, "the alignment must be a power of two, or 0");
    AR_TRY(check_stream(request->stream, error));
    enum ar_status status = ar_policy_alloc(self->policy, request, &block);
    if (status)
        return refused(self, status, "serve the request", error);
    *out = block;
    return AR_OK;
}

enum ar_status ar_session_free(struct ar_session *self, const struct ar_policy_block *block,
                               uint32_t stream, struct ar_error *error)
{
    AR_TRY(check_stream(stream, error));
    enum ar_status status = ar_policy_free(self->policy, block, stream);
    return status ? refused(self, status, "free the block", error) : AR_OK;
}

void ar_session_stats(const struct ar_session *self, struct ar_policy_stats *out)
{
    ar_policy_stats(self->policy, out);
}
