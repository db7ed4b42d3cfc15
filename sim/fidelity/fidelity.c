/* The engine behind `fidelity`: replays a recording under a policy, with recorded frees, on a
 * device that answers as the recorded one did.
 *
 * One replay is the rule. Why memory was given back is decided on the way (recorded_source.c);
 * where that was not certain, causes.c tries other causes in replays of their own.
 *
 * A recording that begins in the middle tells what was there; the policy begins with that
 * (starting.c), and of statistics only present values can be the same.
 *
 * Statistics are held against those recorded, name by name. One of them may be lower here:
 * PyTorch counts each release of the cache in num_sync_all_streams, also one that had nothing to
 * give back, which leaves no event. */
#include "sim/fidelity/fidelity.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/registry.h"
#include "sim/fidelity/causes.h"
#include "sim/fidelity/deferring.h"
#include "sim/fidelity/final.h"
#include "sim/fidelity/recorded_device.h"
#include "sim/fidelity/recorded_source.h"
#include "sim/fidelity/starting.h"

struct attempt {
    const struct fidelity *config;
    struct recording *recording;
    uint64_t total_bytes;
    struct fidelity_result *result;
    struct recorded_device device;
    struct recorded_source source;
    struct ar_host host;
    struct ar_policy *policy;
};

/* Rows bear the numbers of the recording's events, and count as met up to the difference. */
static enum ar_status on_row(void *argument, const struct replay_row *row, struct ar_error *error)
{
    struct attempt *self = argument;
    struct replay_row numbered = *row;
    if (row->op == 'f' && row->requested_bytes && !row->granted_bytes)
        return AR_OK; /* ends a request that failed: nothing was freed */
    self->result->rows++;
    numbered.event = self->source.next_event ? self->source.next_event - 1 : 0;
    if (!self->result->difference.found)
        self->result->rows_met++;
    if (self->result->peak_reserved_bytes < row->reserved_bytes)
        self->result->peak_reserved_bytes = row->reserved_bytes;
    self->result->end_reserved_bytes = row->reserved_bytes;
    return observer_row(self->config->observer, &numbered, error);
}

/* The recorded figure of a name; NULL: none. */
static const struct fidelity_stat *stat_of(const struct fidelity *config, const char *name)
{
    for (size_t i = 0; i < config->stat_count; i++)
        if (strcmp(config->stats[i].name, name) == 0)
            return &config->stats[i];
    return NULL;
}

static void compare_figure(struct attempt *self, const char *name, uint64_t value)
{
    const struct fidelity_stat *stat = stat_of(self->config, name);
    struct fidelity_result *result = self->result;
    if (!stat || (result->start != FIDELITY_FROM_NOTHING && !strstr(name, ".current")))
        return;
    struct fidelity_figure *figure = &result->figures[result->figure_count++];
    snprintf(figure->name, sizeof figure->name, "%s", name);
    figure->recorded = stat->value;
    figure->replayed = value;
    figure->agrees = figure->recorded == figure->replayed;
    if (strcmp(name, "num_sync_all_streams") == 0 && figure->recorded > figure->replayed &&
        !result->difference.found) {
        result->unseen_releases = figure->recorded - figure->replayed;
        figure->agrees = true;
    }
    result->figures_met += figure->agrees;
}

static enum ar_status compare_figures(struct attempt *self, struct ar_error *error)
{
    struct fidelity_result *result = self->result;
    char name[sizeof result->figures->name];
    uint64_t value;
    if (!self->config->stat_count)
        return AR_OK;
    result->figures = calloc(self->config->stat_count, sizeof *result->figures);
    if (!result->figures)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for statistics");
    for (size_t i = 0; result->figure_count < self->config->stat_count &&
                       ar_policy_report(self->policy, i, name, sizeof name, &value);
         i++)
        compare_figure(self, name, value);
    return AR_OK;
}

static enum ar_status collect_causes(struct attempt *self, struct ar_error *error)
{
    const struct recording *recording = self->recording;
    struct fidelity_result *result = self->result;
    result->releases = calloc(recording->group_count + 1, sizeof *result->releases);
    if (!result->releases)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for a result");
    for (size_t i = 0; i < self->source.group; i++) {
        const struct recorded_group *group = &recording->groups[i];
        if (group->cause == CAUSE_RELEASE)
            result->releases[result->release_count++] = group->event;
        result->refusals += group->cause == CAUSE_REFUSED;
    }
    for (size_t i = 0; i < self->source.request; i++)
        result->refusals += recording->requests[i].refused;
    return AR_OK;
}

static void count_recorded(const struct recording *recording, struct fidelity_result *result)
{
    result->recorded_peak_reserved_bytes = recording->peak_bytes;
    result->recorded_end_reserved_bytes = recording->end_bytes;
    for (size_t i = 0; i < recording->action_count; i++) {
        enum recorded_kind kind = recording->actions[i].kind;
        bool made = kind == RECORDED_MADE || kind == RECORDED_MAPPED;
        result->made += made;
        result->freed += !made;
    }
}

static enum ar_status replay(struct attempt *self, struct ar_error *error)
{
    const struct fidelity *config = self->config;
    struct replay_result replayed;
    const struct observer observer = {.row = on_row, .argument = self};
    const struct replay_config replay_config = {
        .policy = self->policy,
        .device = &self->device.base,
        .source = &self->source.base,
        .frees = REPLAY_RECORDED,
        .observer = &observer,
    };
    enum ar_status status = observer_begin(config->observer, error);
    if (!status)
        status = recorded_source_open(&self->source, config->source, self->recording, &self->device,
                                      self->policy, self->result, error);
    if (status)
        return status;
    status = replay_run(&replay_config, &replayed, error);
    replay_result_close(&replayed);
    recorded_source_finish(&self->source);
    if (!status)
        status = recorded_final_compare(&self->device, self->policy, error);
    if (self->result->difference.found)
        self->result->difference.line =
            trace_line_of(config->source, self->result->difference.event);
    return status;
}

static enum ar_status attempt_run(void *argument, struct ar_error *error)
{
    struct attempt *self = argument;
    struct fidelity_result *result = self->result;
    fidelity_result_close(result);
    count_recorded(self->recording, result);
    recorded_device_open(&self->device, self->recording, self->total_bytes,
                         self->config->source->info.streams, result);
    const struct ar_policy_context context = {
        .backing = &self->device.backing, .host = &self->host, .seed = self->config->seed};
    struct ar_policy *bare = NULL, *inner = NULL;
    enum ar_status status = registry_create(self->config->policy, &context, &bare, error);
    if (!status && (status = starting_wrap(&self->host, bare, &self->device, &inner, error)))
        ar_policy_destroy(bare);
    if (!status &&
        (status = deferring_wrap(&self->host, inner, &self->device, &self->policy, error)))
        ar_policy_destroy(inner);
    if (!status)
        status = replay(self, error);
    if (!status)
        status = compare_figures(self, error);
    if (!status)
        status = collect_causes(self, error);
    if (!status && self->device.out_of_host_memory)
        status = ar_error_set(error, AR_HOST_MEMORY, "no host memory for the recorded device");
    ar_policy_destroy(self->policy);
    self->policy = NULL;
    recorded_device_close(&self->device);
    return status;
}

/* Where the recording does not tell: the card of the default device, or one that holds all of it. */
static enum ar_status card_bytes(const struct trace_info *info, const struct recording *recording,
                                 uint64_t *bytes, struct ar_error *error)
{
    struct ar_device *device;
    *bytes = info->capacity_bytes;
    if (*bytes)
        return AR_OK;
    enum ar_status status = ar_device_open_text("sim", &device, error);
    if (status)
        return status;
    *bytes = device->props.total_bytes;
    if (*bytes < recording->peak_bytes)
        *bytes = recording->peak_bytes;
    ar_device_close(device);
    return AR_OK;
}

enum ar_status fidelity_run(const struct fidelity *config, struct fidelity_result *result,
                            struct ar_error *error)
{
    struct recording recording;
    struct attempt attempt = {.config = config, .recording = &recording, .result = result};
    const struct causes causes = {
        .recording = &recording, .result = result, .replay = attempt_run, .argument = &attempt};
    *result = (struct fidelity_result){0};
    enum ar_status status = recording_read(config->source, &recording, error);
    if (!status)
        status = card_bytes(&config->source->info, &recording, &attempt.total_bytes, error);
    if (!status)
        status = causes_find(&causes, error);
    recording_close(&recording);
    if (status) {
        fidelity_result_close(result);
        return status;
    }
    result->agrees = !result->difference.found && result->figures_met == result->figure_count;
    return AR_OK;
}

void fidelity_result_close(struct fidelity_result *result)
{
    free(result->releases);
    free(result->figures);
    *result = (struct fidelity_result){0};
}

/* The policy whose recorders name the first word of a recorder. */
static const struct ar_policy_ops *policy_for(const char *recorder)
{
    size_t length = strcspn(recorder, " ");
    const struct ar_policy_ops *ops;
    for (size_t i = 0; (ops = registry_policy(i)) != NULL; i++)
        for (size_t k = 0; ops->recorders && ops->recorders[k]; k++)
            if (strlen(ops->recorders[k]) == length &&
                strncmp(ops->recorders[k], recorder, length) == 0)
                return ops;
    return NULL;
}

enum ar_status fidelity_default_spec(const struct trace_info *info, char *text, size_t text_bytes,
                                     struct ar_error *error)
{
    if (!info->recorder[0])
        return ar_error_set(error, AR_INVALID,
                            "%s: it does not say which allocator was recorded; name the policy to "
                            "hold it against, such as -p torch",
                            info->name);
    if (strcmp(info->format, "kineto") == 0)
        return ar_error_set(
            error, AR_INVALID,
            "%s: a profiler's trace tells where blocks were placed but not the "
            "segments that they lie in, so no policy can be held against it; take a "
            "memory snapshot (torch.cuda.memory._dump_snapshot)",
            info->name);
    const struct ar_policy_ops *ops = policy_for(info->recorder);
    if (!ops)
        return ar_error_set(error, AR_INVALID,
                            "%s: no policy answers to the recorder \"%s\"; name one with -p",
                            info->name, info->recorder);
    char quote = strchr(info->conf, '\'') ? '"' : '\'';
    if (strchr(info->conf, quote))
        return ar_error_set(error, AR_INVALID,
                            "%s: its settings hold both kinds of quotes; give the policy with -p",
                            info->name);
    char limit[40] = "";
    if (info->limit_bytes)
        snprintf(limit, sizeof limit, "%climit=%" PRIu64, info->conf[0] ? ',' : ':',
                 info->limit_bytes);
    int used = info->conf[0] ? snprintf(text, text_bytes, "%s:conf=%c%s%c%s", ops->name, quote,
                                        info->conf, quote, limit)
                             : snprintf(text, text_bytes, "%s%s", ops->name, limit);
    return used >= 0 && (size_t)used < text_bytes
               ? AR_OK
               : ar_error_set(error, AR_INVALID, "%s: its settings are too long", info->name);
}
