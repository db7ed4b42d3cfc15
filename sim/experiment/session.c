#include "sim/experiment/session.h"

#include "allocators/base/size.h"
#include "sim/observer.h"
#include "workloads/trace/trace.h"
#include "workloads/workload.h"

/* Every policy has the option, and the registry has checked its text. */
static uint64_t limit_of(const struct ar_spec *policy)
{
    const char *limit = ar_spec_value(policy, "limit");
    uint64_t bytes;
    return limit && ar_size_parse(limit, &bytes, NULL) == AR_OK ? bytes : 0;
}

static const char *profile_of(const struct ar_spec *policy)
{
    const char *profile = ar_spec_value(policy, "profile");
    return profile && *profile ? profile : NULL;
}

enum ar_status session_open_timed(struct session *session, const struct ar_spec *policy,
                                  const struct ar_spec *device, uint64_t seed, bool timed,
                                  const struct observer *observer, struct ar_error *error)
{
    memset(session, 0, sizeof *session);
    enum ar_status status = ar_device_open(device, &session->device, error);
    AR_THEN(status, tap_open(&session->tap, observer, session->device, error));
    if (status != AR_OK) {
        session_close(session);
        return status;
    }
    session->context = (struct ar_policy_context){
        .backing = session->tap ? tap_backing(session->tap) : session->device->backing,
        .host = &session->host,
        .seed = seed,
        .unguarded = timed};
    status = registry_create(policy, &session->context, &session->policy, error);
    if (status == AR_OK && session->tap)
        tap_set_policy(session->tap, session->policy);
    if (status != AR_OK && session->device->failed)
        status = ar_error_set(error, AR_MISSING, "the device cannot be used: %s",
                              session->device->ops->problem(session->device));
    if (status != AR_OK)
        session_close(session);
    session->limit_bytes = limit_of(policy);
    session->profile = profile_of(policy);
    return status;
}

enum ar_status session_open(struct session *session, const struct ar_spec *policy,
                            const struct ar_spec *device, uint64_t seed,
                            const struct observer *observer, struct ar_error *error)
{
    return session_open_timed(session, policy, device, seed, false, observer, error);
}

enum ar_status session_open_pinned(struct session *session, const struct ar_spec *pinned,
                                   uint64_t seed, struct ar_error *error)
{
    if (!session->device->pinned)
        return AR_OK;
    const struct ar_policy_context context = {
        .backing = session->device->pinned, .host = &session->pinned_host, .seed = seed};
    enum ar_status status = registry_create(pinned, &context, &session->pinned, error);
    return ar_error_prefix(error, status, "pinned host memory");
}

/* As a program does, wait for the device before the end: no policy may unmap memory in use. */
static void destroy_policy(struct session *session)
{
    if ((session->policy || session->pinned) && !session->device->failed)
        session->device->ops->sync(session->device, TRACE_NO_STREAM);
    ar_policy_destroy(session->policy);
    ar_policy_destroy(session->pinned);
    session->policy = session->pinned = NULL;
}

enum ar_status session_end(struct session *session, struct ar_error *error)
{
    char name[80];
    struct ar_device *device = session->device;
    enum ar_status fault = registry_verdict(session->policy, error);
    if (fault)
        return fault;
    snprintf(name, sizeof name, "%s", session->policy->ops->name);
    unsigned state = registry_process_state();
    destroy_policy(session);
    AR_TRY(
        ar_error_prefix(error, registry_process_check(state, "destroy", error), "policy %s", name));
    const char *problem = device->failed ? "" : device->ops->problem(device);
    if (problem[0])
        return ar_error_set(error, AR_CORRUPT, "policy %s used the device wrongly in destroy: %s",
                            name, problem);
    enum ar_status status = device->ops->flush ? device->ops->flush(device, error) : AR_OK;
    uint64_t left = device->counters.physical_bytes + device->counters.pinned_bytes;
    if (status != AR_OK || !left || device->failed)
        return status;
    return ar_error_set(error, AR_CORRUPT,
                        "policy %s still holds %" PRIu64
                        " bytes of the device after its destroy(), which must release all "
                        "segments and mappings",
                        name, left);
}

void session_close(struct session *session)
{
    destroy_policy(session);
    tap_close(session->tap);
    session->tap = NULL;
    ar_device_close(session->device);
    session->device = NULL;
}

/* The lifetimes of another workload. */
static enum ar_status profile_lifetimes(const char *profile, enum replay_frees frees,
                                        struct ar_policy_lifetime **out, size_t *count,
                                        struct ar_error *error)
{
    AR_CLOSED(trace_close_at) struct trace_source *source = NULL;
    enum ar_status status = workload_open_single(profile, &source, error);
    if (status == AR_OK)
        status =
            source->info.adaptive
                ? ar_invalid(error, "what it asks for depends on the policy; write it to a file")
                : survey_lifetimes(source, frees, out, count, error);
    return ar_error_prefix(error, status, "profile %s", profile);
}

enum ar_status session_plan(struct session *session, struct trace_source *trace,
                            enum replay_frees frees, struct ar_error *error)
{
    const struct ar_policy_ops *ops = session->policy->ops;
    if (!(ops->capabilities & AR_POLICY_OFFLINE) || !ops->plan)
        return AR_OK;
    struct ar_policy_lifetime *lifetimes;
    size_t count;
    AR_TRY(session->profile ? profile_lifetimes(session->profile, frees, &lifetimes, &count, error)
                            : survey_lifetimes(trace, frees, &lifetimes, &count, error));
    enum ar_status status = ops->plan(session->policy, lifetimes, count);
    free(lifetimes);
    if (status != AR_OK)
        (void)ar_error_set(error, status, "%s: policy %s could not plan its %zu requests: %s",
                           trace->info.name, ops->name, count, ar_status_meaning(status));
    return status;
}

enum ar_status session_replay(struct session *session, struct trace_source *trace,
                              struct replay_config config, struct replay_result *result,
                              struct ar_error *error)
{
    enum ar_status status = session_plan(session, trace, config.frees, error);
    AR_THEN(status, trace_rewind(trace, error));
    config.policy = session->policy;
    config.device = session->device;
    config.source = trace;
    config.limit_bytes = session->limit_bytes;
    return status == AR_OK ? replay_run(&config, result, error) : status;
}

enum ar_status session_device_as(struct session_device *out, const struct ar_spec *device,
                                 const char *profile, uint64_t capacity_bytes,
                                 struct ar_error *error)
{
    const struct ar_spec_link *link = &device->links[device->link_count - 1];
    *out = (struct session_device){.spec = *device, .link = *link};
    out->pairs = calloc(link->pair_count + 3, sizeof *out->pairs);
    AR_TRY_MEMORY(out->pairs, error, "a device's spec");
    size_t count = 0;
    for (size_t i = 0; i < link->pair_count; i++)
        if (strcmp(link->pairs[i].key, "capacity") != 0 &&
            (!profile || strcmp(link->pairs[i].key, "profile") != 0))
            out->pairs[count++] = link->pairs[i];
    if (profile)
        out->pairs[count++] = (struct ar_spec_pair){.key = "profile", .value = profile};
    snprintf(out->text, sizeof out->text, "%" PRIu64, capacity_bytes);
    if (capacity_bytes)
        out->pairs[count++] = (struct ar_spec_pair){.key = "capacity", .value = out->text};
    out->link.pairs = out->pairs;
    out->link.pair_count = count;
    out->spec.links = &out->link;
    out->spec.link_count = 1;
    return AR_OK;
}

void session_device_as_driver(struct session_device *device)
{
    if (!ar_spec_value(&device->spec, "addresses") && !ar_spec_value(&device->spec, "ranges"))
        device->pairs[device->link.pair_count++] =
            (struct ar_spec_pair){.key = "addresses", .value = "driver"};
}

void session_device_end(struct session_device *device)
{
    free(device->pairs);
    device->pairs = NULL;
}

enum ar_status session_device_props(const struct ar_spec *spec, struct ar_device_props *props,
                                    struct ar_error *error)
{
    struct ar_device *device;
    AR_TRY(ar_device_open(spec, &device, error));
    *props = device->props;
    ar_device_close(device);
    return AR_OK;
}

/* A source that passes on the events of another one and keeps them. */
struct writer {
    struct trace_source base;
    struct trace_memory *memory;
};

static enum ar_status writer_next(struct trace_source *base, const struct trace_event **events,
                                  size_t *count, struct ar_error *error)
{
    struct writer *self = (struct writer *)base;
    AR_TRY(trace_next(self->base.over, events, count, error));
    for (size_t i = 0; i < *count; i++)
        AR_TRY(trace_memory_take(self->memory, base->over, &(*events)[i], error));
    return AR_OK;
}

static enum ar_status play(const struct experiment *experiment, struct trace_source *source,
                           struct ar_error *error)
{
    AR_CLOSED(session_close) struct session session = {0};
    AR_CLOSED(replay_result_close) struct replay_result result = {0};
    AR_TRY(session_open(&session, experiment->policy, experiment->device, experiment->seed, NULL,
                        error));
    const struct replay_config config = {
        .policy = session.policy,
        .device = session.device,
        .source = source,
        .frees = experiment->frees,
        .host = experiment->host,
        .stop_on_failure = experiment->stop_on_failure,
        .limit_bytes = session.limit_bytes,
    };
    return replay_run(&config, &result, error);
}

enum ar_status session_write_down(const struct experiment *experiment, struct trace_source **out,
                                  struct ar_error *error)
{
    static const struct trace_source_ops ops = {
        .next = writer_next,
    };
    struct trace_source *inner = experiment->source;
    struct writer writer = {.base = {.ops = &ops, .info = inner->info, .over = inner}};
    AR_TRY(trace_rewind(inner, error));
    writer.memory = trace_memory_create(&inner->info);
    AR_TRY_MEMORY(writer.memory, error, "a trace");
    return trace_memory_finish(writer.memory, play(experiment, &writer.base, error), out, error);
}

enum ar_status session_trace(const struct experiment *experiment, bool settle,
                             struct trace_source **trace, struct trace_source **owned,
                             struct ar_error *error)
{
    enum ar_status status = AR_OK;
    *owned = NULL;
    if (experiment->source->info.adaptive) {
        status = session_write_down(experiment, owned, error);
    } else if (settle) {
        status = trace_rewind(experiment->source, error);
        AR_THEN(status, trace_memory_copy(experiment->source, owned, error));
    }
    *trace = *owned ? *owned : experiment->source;
    return status;
}
