/* The limit of the program, which a snapshot does not hold: the fraction of a call of
 * set_per_process_memory_fraction, or a fraction in the settings of a card whose size is not known.
 *
 * 1. A request beyond the limit is refused. The recorded device refuses it too, so the value of the
 *    limit does not matter: without a threshold the policy gets one that nothing reaches, instead
 *    of a fraction of a card that is not known. If the peak of the recording also explains it, that
 *    is the limit, because then requests beyond it explain most releases.
 * 2. With garbage_collection_threshold the policy releases old blocks above a part of the limit.
 *    Then the least limit is searched, from the peak of the recording up: if the policy releases
 *    memory for a request and the recording does not, or releases more, the limit was higher. Each
 *    step is the least rise that avoids this release, so the result is the least limit that agrees
 *    with the recording. The limit is assumed to be the same all the time. */

#include "allocators/policies/torch/conf_keys.h"
#include "sim/fidelity/recording.h"

#define STEPS_MOST 100
/* A limit becomes a fraction of the card and may lose a byte. Segments are at least 2 MiB. */
#define SLACK_BYTES     UINT64_C(4096)
#define UNREACHED_BYTES (UINT64_C(1) << 60)

struct keys {
    double threshold, fraction;
};

static bool visit(void *argument, const char *key, const char *value)
{
    struct keys *keys = argument;
    if (strcmp(key, "garbage_collection_threshold") == 0)
        keys->threshold = strtod(value, NULL);
    else if (strcmp(key, "per_process_memory_fraction") == 0)
        keys->fraction = strtod(value, NULL);
    return true;
}

static struct keys read_keys(const struct ar_spec *spec)
{
    struct keys keys = {0};
    const struct ar_spec_link *link = &spec->links[spec->link_count - 1];
    const char *conf = ar_spec_value(spec, "conf"), *at;
    if (strcmp(link->name, "torch") != 0 || ar_spec_value(spec, "limit"))
        return keys;
    for (size_t i = 0; i < link->pair_count; i++)
        (void)visit(&keys, link->pairs[i].key, link->pairs[i].value);
    if (conf)
        (void)torch_conf_each(conf, visit, &keys, &at);
    return keys;
}

void recorded_limit_evidence(const struct recording *recording, uint64_t event,
                             struct limit_evidence *out)
{
    const struct recorded_group *group = NULL;
    *out = (struct limit_evidence){.held_bytes = recording->start.held_bytes};
    size_t request = recorded_request_of(recording, event);
    uint64_t before = request ? recording->requests[request - 1].event : 0;
    for (size_t i = 0; i < recording->group_count && request < recording->request_count; i++)
        if (recording->groups[i].request == request)
            group = &recording->groups[i];
    for (size_t i = 0; i < recording->action_count; i++) {
        const struct recorded_action *action = &recording->actions[i];
        bool made = action->kind == RECORDED_MADE || action->kind == RECORDED_MAPPED;
        if (group && i >= group->first && i < group->first + group->count)
            out->released_bytes += action->bytes;
        else if (action->event >= event || (group && i >= group->first))
            break;
        else if (!made || action->event <= before) /* what is made later is for the request */
            out->held_bytes += made ? action->bytes : -action->bytes;
    }
}

/* The least limit above `limit_bytes` with which the policy releases no more at the first
 * difference; 0: none. */
static uint64_t raised(uint64_t limit_bytes, const struct limit_evidence *evidence,
                       double threshold)
{
    if (!(threshold > 0))
        return 0;
    double kept_bytes = (double)(evidence->held_bytes - evidence->released_bytes);
    uint64_t least = (uint64_t)(kept_bytes / threshold) + SLACK_BYTES;
    return least > limit_bytes ? least : 0;
}

struct limit_search {
    const struct fidelity *config;
    struct fidelity_result *result;
    limit_try *try;
    struct limit_evidence evidence;
    uint64_t best_bytes; /* with this limit the first difference is the latest; 0: without one */
};

/* One comparison with a limit. */
static enum ar_status try_limit(struct limit_search *self, uint64_t limit_bytes,
                                struct ar_error *error)
{
    const struct ar_spec *given = self->config->policy;
    size_t bytes = strlen(given->text) + 32;
    AR_FREED char *text = malloc(bytes);
    AR_CLOSED(ar_spec_close) struct ar_spec spec = {0};
    AR_TRY_MEMORY(text, error, "a policy");
    snprintf(text, bytes, "%s%climit=%" PRIu64, given->text,
             given->links[given->link_count - 1].pair_count ? ',' : ':', limit_bytes);
    AR_TRY(ar_spec_parse(text, &spec, error));
    struct fidelity config = *self->config;
    config.policy = &spec;
    spec.catalog = given->catalog;
    return self->try(&config, self->result, &self->evidence, error);
}

/* Rule 2. The result is that of the last try; `*found`: it has no difference. */
static enum ar_status search(struct limit_search *self, double threshold, bool *found,
                             struct ar_error *error)
{
    uint64_t limit_bytes = self->result->recorded_peak_reserved_bytes + SLACK_BYTES;
    uint64_t latest = self->result->difference.found ? self->result->difference.event : UINT64_MAX;
    enum ar_status status = AR_OK;
    *found = false;
    self->best_bytes = 0;
    for (int i = 0; i < STEPS_MOST && limit_bytes && !*found && !status; i++) {
        status = try_limit(self, limit_bytes, error);
        *found = !status && !self->result->difference.found;
        if (*found)
            self->result->limit_bytes = limit_bytes - SLACK_BYTES;
        else if (!status && self->result->difference.event > latest) {
            latest = self->result->difference.event;
            self->best_bytes = limit_bytes;
        }
        limit_bytes = raised(limit_bytes, &self->evidence, threshold);
    }
    return status;
}

enum ar_status recorded_limit_find(const struct fidelity *config, limit_try *try,
                                   struct fidelity_result *result, struct ar_error *error)
{
    struct limit_search self = {.config = config, .result = result, .try = try};
    const struct trace_info *info = &config->source->info;
    struct keys keys = read_keys(config->policy);
    bool unknown = keys.fraction > 0 && !info->capacity_bytes && !info->card[0];
    bool found = false;
    enum ar_status status = unknown ? try_limit(&self, UNREACHED_BYTES, error)
                                    : try(config, result, &self.evidence, error);
    if (!status && keys.threshold > 0 && result->difference.found)
        status = search(&self, keys.threshold, &found, error);
    else if (!status && unknown && !result->difference.found)
        status = search(&self, 0, &found, error);
    else
        return status;
    if (!status && !found && self.best_bytes)
        status = try_limit(&self, self.best_bytes, error);
    else if (!status && !found)
        status = unknown ? try_limit(&self, UNREACHED_BYTES, error)
                         : try(config, result, &self.evidence, error);
    if (!status && unknown && !found)
        result->limit_bytes = result->recorded_peak_reserved_bytes;
    return status;
}
