#include "sim/drift/drift.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/array.h"
#include "allocators/base/map.h"
#include "sim/experiment/crew.h"

#define STATES_MOST 65536 /* known at once */

struct work;

/* One run. */
struct drifter {
    const struct drift_setup *setup;
    struct drift_run *out;
    struct session session;
    struct trace_source *source;
    struct replay *replay;
    uint64_t grid, decade; /* steps between samples; the next power of ten */
    /* Rule 3. */
    bool skips, knows_state;           /* knows_state: `state` is the present one */
    struct ar_map state_of_hash, ends; /* ends: the end of a step by its state and number */
    struct drift_sample *states;       /* what is read in each state; `step` is not used */
    size_t state_count, state_room, state;
    struct work *work; /* is told of the steps; NULL: the run has no caller that watches */
    uint64_t told;     /* hundredths of the steps */
};

/* Reports the steps up to that hundredth. */
static void tell(struct drifter *self, uint64_t hundredths);

/* ---- states ---- */

bool drift_can_skip(const struct ar_spec *policy)
{
    /* The garbage collection of torch looks at the ages of its free blocks. */
    return policy->link_count == 1 && strcmp(policy->links[0].name, "torch") == 0 &&
           !ar_spec_value(policy, "garbage_collection_threshold") && !ar_spec_value(policy, "conf");
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static bool add_range(void *argument, const struct ar_policy_range *range)
{
    uint64_t *hash = argument;
    *hash = mix(mix(*hash, range->address), range->bytes);
    *hash = mix(mix(*hash, range->requested_bytes), range->segment_address);
    *hash = mix(mix(*hash, (uint64_t)range->stream << 32 | range->pool), (uint64_t)range->state);
    return true;
}

static uint64_t hash_state(const struct drifter *self)
{
    struct ar_policy_stats stats;
    const uint32_t *slots;
    uint64_t hash = 1;
    ar_policy_walk(self->session.policy, add_range, &hash);
    size_t count = learned_carried(self->source, &slots, &hash);
    for (size_t i = 0; i < count; i++) {
        const struct ar_policy_block *block = replay_block(self->replay, slots[i]);
        hash = mix(hash, block ? block->address : 1);
    }
    ar_policy_stats(self->session.policy, &stats);
    hash = mix(mix(hash, stats.count.segments_made), stats.count.segments_freed);
    return mix(mix(hash, stats.count.flushes), stats.count.retries);
}

/* ---- the run ---- */

static struct drift_sample read_state(const struct drifter *self)
{
    const struct ar_policy_totals *totals = &self->session.policy->totals;
    return (struct drift_sample){self->out->steps, totals->reserved_bytes, totals->live_bytes};
}

/* After each step. */
static void take_sample(struct drifter *self, const struct drift_sample *now)
{
    struct drift_run *out = self->out;
    bool decade = out->steps == self->decade;
    if (decade)
        self->decade *= 10;
    if (decade || out->steps % self->grid == 0 || out->steps == self->setup->steps)
        out->samples[out->sample_count++] =
            (struct drift_sample){out->steps, now->reserved_bytes, now->live_bytes};
    size_t recorded = self->setup->model->step_count;
    if (now->reserved_bytes > out->reserved_bytes && out->steps > recorded / 10) {
        struct drift_growth *growth = out->steps > recorded ? &out->drawn : &out->recorded;
        growth->steps++;
        growth->bytes += now->reserved_bytes - out->reserved_bytes;
    }
    out->fell |= now->reserved_bytes < out->reserved_bytes;
    out->reserved_bytes = now->reserved_bytes;
    if (out->steps <= recorded)
        out->recorded_bytes = now->reserved_bytes;
    if (out->steps < self->setup->model->warmup)
        return;
    if (!out->least_live_bytes || now->live_bytes < out->least_live_bytes)
        out->least_live_bytes = now->live_bytes;
    if (now->live_bytes > out->most_live_bytes)
        out->most_live_bytes = now->live_bytes;
}

/* ---- skipped steps ---- */

/* Known steps from the present state on: counts those that lead back to it, as often as they do. */
static void skip(struct drifter *self)
{
    struct drift_run *out = self->out;
    size_t passed[LEARNED_AHEAD], ahead = 0;
    uint64_t state = self->state, left = self->setup->steps - out->steps;
    while (ahead < LEARNED_AHEAD && ahead < left) {
        size_t step = learned_peek(self->source, ahead);
        if (step == LEARNED_NEW_SIZES || !ar_map_get(&self->ends, state << 32 | step, &state))
            return;
        passed[ahead++] = state;
        if (state != self->state)
            continue;
        for (size_t i = 0; i < ahead; i++) {
            out->steps++;
            take_sample(self, &self->states[passed[i]]);
        }
        learned_skip(self->source, ahead);
        left -= ahead;
        ahead = 0;
    }
}

/* After `step`: which state is it, and where does the step lead? */
static enum ar_status follow_state(struct drifter *self, size_t step, struct ar_error *error)
{
    const struct drift_sample now = read_state(self);
    uint64_t hash = hash_state(self), state = self->state_count, before = self->state;
    bool knew = self->knows_state;
    self->knows_state = true;
    if (!ar_map_get(&self->state_of_hash, hash, &state)) {
        if (self->state_count == STATES_MOST) {
            ar_map_clear(&self->state_of_hash);
            ar_map_clear(&self->ends);
            self->state_count = state = 0;
            knew = false;
        }
        if (ar_map_put(&self->state_of_hash, hash, state) ||
            !AR_ARRAY_ADD(self->states, self->state_count, self->state_room, now))
            return ar_error_set(error, AR_HOST_MEMORY, "no host memory for a long run");
    }
    self->state = state;
    if (knew && step != LEARNED_NEW_SIZES && ar_map_put(&self->ends, before << 32 | step, state))
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for a long run");
    return AR_OK;
}

static enum ar_status go(struct drifter *self, struct ar_error *error)
{
    struct drift_run *out = self->out;
    enum ar_status status = AR_OK;
    while (!status && out->steps < self->setup->steps) {
        size_t step = LEARNED_NEW_SIZES;
        if (self->skips && self->knows_state)
            skip(self);
        if (out->steps == self->setup->steps)
            break;
        if (self->skips)
            step = learned_peek(self->source, 0);
        status = replay_go(self->replay, error);
        if (status)
            break;
        out->events += learned_span(self->source);
        out->steps++;
        out->replayed_steps++;
        if (replay_has_failed(self->replay)) {
            out->failed_step = out->steps;
            break;
        }
        const struct drift_sample now = read_state(self);
        take_sample(self, &now);
        tell(self, DRIFT_WATCHED * out->steps / self->setup->steps);
        if (step == LEARNED_NEW_SIZES)
            self->knows_state = false;
        else
            status = follow_state(self, step, error);
    }
    return status;
}

static enum ar_status finish(struct drifter *self, struct ar_error *error)
{
    struct drift_run *out = self->out;
    struct replay_result result;
    struct ar_policy_stats stats;
    ar_policy_stats(self->session.policy, &stats);
    out->retries = stats.count.retries;
    out->flushes = stats.count.flushes;
    out->misfits = learned_misfits(self->source);
    enum ar_status status =
        drift_find_pins(self->session.policy, self->replay, self->source, out, error);
    if (status)
        return status;
    status = replay_end(self->replay, &result, error);
    self->replay = NULL;
    if (status)
        return status;
    out->cause = result.cause;
    out->failed_bytes = result.first_failed_bytes;
    replay_result_close(&result);
    return AR_OK;
}

static enum ar_status begin(struct drifter *self, struct replay_config *config,
                            struct ar_error *error)
{
    const struct drift_setup *setup = self->setup;
    enum ar_status status =
        learned_open_lean(setup->model, setup->steps, setup->seed, &self->source, error);
    if (status)
        return status;
    status = session_open(&self->session, setup->policy, setup->device, setup->seed, NULL, error);
    if (status)
        return status;
    const struct trace_info *info = &self->source->info;
    *config = (struct replay_config){
        .policy = self->session.policy,
        .device = self->session.device,
        .source = self->source,
        .frees = info->has_split_frees && !info->has_uses ? REPLAY_RECORDED : REPLAY_ORDERED,
        .stop_on_failure = true,
        .policy_host = &self->session.host,
        .limit_bytes = self->session.limit_bytes,
    };
    self->grid = (setup->steps + DRIFT_SAMPLES - 1) / DRIFT_SAMPLES;
    self->decade = 1;
    self->skips = !setup->every_step && drift_can_skip(setup->policy);
    return replay_open(config, &self->replay, error);
}

static enum ar_status run(const struct drift_setup *setup, struct work *work, struct drift_run *out,
                          struct ar_error *error)
{
    struct drifter self = {.setup = setup, .out = out, .work = work};
    struct replay_config config;
    *out = (struct drift_run){.seed = setup->seed};
    enum ar_status status = begin(&self, &config, error);
    if (!status)
        status = go(&self, error);
    if (!status)
        status = finish(&self, error);
    replay_discard(self.replay);
    if (self.session.policy)
        session_close(&self.session);
    trace_close(self.source);
    ar_map_close(&self.state_of_hash);
    ar_map_close(&self.ends);
    free(self.states);
    tell(&self, DRIFT_WATCHED);
    return status;
}

enum ar_status drift_run(const struct drift_setup *setup, struct drift_run *out,
                         struct ar_error *error)
{
    return run(setup, NULL, out, error);
}

/* ---- workers ---- */

struct work {
    const struct drift_setup *setups;
    struct drift_run *out;
    const struct drift_watch *watch;
    pthread_mutex_t lock; /* of the watch */
};

static void tell(struct drifter *self, uint64_t hundredths)
{
    struct work *work = self->work;
    if (!work || !work->watch || hundredths == self->told)
        return;
    pthread_mutex_lock(&work->lock);
    for (; self->told < hundredths; self->told++)
        work->watch->done(work->watch->argument);
    pthread_mutex_unlock(&work->lock);
}

static enum ar_status work_on(void *argument, size_t number, struct trace_source *none,
                              struct ar_error *error)
{
    struct work *work = argument;
    (void)none;
    return run(&work->setups[number], work, &work->out[number], error);
}

enum ar_status drift_run_all(const struct drift_setup *setups, struct drift_run *out, size_t count,
                             unsigned jobs, const struct drift_watch *watch, struct ar_error *error)
{
    struct work work = {.setups = setups, .out = out, .watch = watch};
    pthread_mutex_init(&work.lock, NULL);
    enum ar_status status = crew_each(NULL, jobs, count, work_on, NULL, &work, error);
    pthread_mutex_destroy(&work.lock);
    return status;
}
