#include "sim/drift/drift.h"

#include <pthread.h>

#include "allocators/base/array.h"
#include "allocators/base/map.h"
#include "sim/experiment/crew.h"

#define STATES_MOST (UINT32_C(1) << 20) /* known at once */
#define PARTS_MOST  64

struct work;

/* What the walk finds of one part of the policy. */
struct drift_part {
    uint64_t hash, live_bytes;
};

/* What is known of a policy, for all its runs. */
struct known {
    struct ar_map state_of_hash, ends; /* ends: the end of a step by its state and number */
    uint64_t *live;                    /* bytes in each state */
    size_t state_count, state_room;
    pthread_mutex_t lock;
};

/* One run. */
struct drifter {
    const struct drift_setup *setup;
    struct drift_run *out;
    struct session session;
    struct trace_source *source;
    struct replay *replay;
    uint64_t grid, decade; /* steps between samples; the next power of ten */
    /* Rule 3. */
    struct known *known;
    bool skips, knows_state; /* knows_state: `parts` are the present states */
    struct ar_map carried;   /* 1 + the place in the list, by address */
    uint32_t parts[PARTS_MOST], counted[PARTS_MOST]; /* of the replayed step; of the counted one */
    size_t part_count, ahead; /* ahead: planned steps that are counted and not replayed */
    struct work *work;        /* is told of the steps */
    uint64_t told;            /* hundredths of the steps */
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

struct hashing {
    struct drifter *drifter;
    struct drift_part *parts;
    size_t count;
};

/* One hash for each part of the policy. A carried block counts by its place in the list. */
static bool add_range(void *argument, const struct ar_policy_range *range)
{
    struct hashing *self = argument;
    struct drifter *drifter = self->drifter;
    if (range->part >= PARTS_MOST) {
        drifter->skips = false;
        return false;
    }
    for (; self->count <= range->part; self->count++)
        self->parts[self->count] = (struct drift_part){.hash = self->count + 1};
    struct drift_part *part = &self->parts[range->part];
    uint64_t place = 0;
    bool used = range->state == AR_POLICY_RANGE_USED || range->state == AR_POLICY_RANGE_PENDING;
    if (used)
        (void)ar_map_get(&drifter->carried, range->address, &place);
    part->hash = mix(mix(part->hash, range->address), range->bytes);
    part->hash = mix(mix(part->hash, range->requested_bytes), range->segment_address);
    part->hash = mix(mix(part->hash, (uint64_t)range->stream << 32 | range->pool), place);
    part->hash = mix(part->hash, (uint64_t)range->state);
    part->live_bytes += range->state == AR_POLICY_RANGE_USED ? range->requested_bytes : 0;
    return true;
}

/* The present state, part by part. The list's roles are of each part. */
static enum ar_status read_parts(struct drifter *self, struct drift_part *parts, size_t *count,
                                 struct ar_error *error)
{
    struct hashing hashing = {.drifter = self, .parts = parts};
    const uint32_t *slots;
    uint64_t roles = 1, live = 0;
    size_t carried = learned_carried(self->source, &slots, &roles);
    ar_map_clear(&self->carried);
    for (size_t i = 0; i < carried; i++) {
        const struct ar_policy_block *block = replay_block(self->replay, slots[i]);
        if (block && ar_map_put(&self->carried, block->address, i + 1))
            return ar_no_memory(error, "a long run");
    }
    ar_policy_walk(self->session.policy, add_range, &hashing);
    for (size_t i = 0; i < hashing.count; i++) {
        parts[i].hash = mix(parts[i].hash, roles);
        live += parts[i].live_bytes;
    }
    *count = hashing.count;
    self->skips = self->skips && live == self->session.policy->totals.live_bytes;
    return AR_OK;
}

/* Counts by which a step shows that it needed more than the memory of its part. */
static uint64_t count_calls(const struct drifter *self)
{
    struct ar_policy_stats stats;
    ar_policy_stats(self->session.policy, &stats);
    return stats.count.segments_made + stats.count.segments_freed + stats.count.flushes +
           stats.count.retries;
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
    AR_RAISE(out->most_live_bytes, now->live_bytes);
}

/* ---- skipped steps ---- */

static bool same_parts(const struct drifter *self, const uint32_t *a, const uint32_t *b)
{
    return memcmp(a, b, self->part_count * sizeof *a) == 0;
}

/* Where a step leads from the states of all parts. False: it is not known for each of them. */
static bool lead(const struct drifter *self, uint32_t *parts, size_t step, uint64_t *live_bytes)
{
    uint32_t next[PARTS_MOST] = {0};
    bool leads = true;
    pthread_mutex_lock(&self->known->lock);
    *live_bytes = 0;
    for (size_t i = 0; i < self->part_count && leads; i++) {
        uint64_t end = 0;
        leads = ar_map_get(&self->known->ends, (uint64_t)parts[i] << 32 | step, &end);
        next[i] = (uint32_t)end;
        *live_bytes += leads ? self->known->live[end] : 0;
    }
    pthread_mutex_unlock(&self->known->lock);
    if (leads)
        memcpy(parts, next, self->part_count * sizeof *parts);
    return leads;
}

/* Policies forget: few of the steps ahead that are counted already may lead from the replayed state
 * to the counted one. Leaves out those before. */
static void shorten(struct drifter *self)
{
    uint32_t parts[PARTS_MOST];
    uint64_t live_bytes;
    for (size_t few = 1; few < self->ahead; few++) {
        size_t from = self->ahead - few, at = from;
        memcpy(parts, self->parts, sizeof parts);
        while (at < self->ahead && lead(self, parts, learned_peek(self->source, at), &live_bytes))
            at++;
        if (at < self->ahead || !same_parts(self, parts, self->counted))
            continue;
        learned_skip(self->source, from);
        self->ahead = few;
    }
}

/* Counts steps as long as it is known where they lead. */
static void skip(struct drifter *self)
{
    struct drift_run *out = self->out;
    while (out->steps < self->setup->steps) {
        if (self->ahead == LEARNED_AHEAD - 1)
            shorten(self);
        if (self->ahead == LEARNED_AHEAD - 1)
            return;
        size_t step = learned_peek(self->source, self->ahead);
        struct drift_sample now = read_state(self);
        if (step == LEARNED_NEW_SIZES || !lead(self, self->counted, step, &now.live_bytes))
            return;
        self->ahead++;
        out->steps++;
        take_sample(self, &now);
        if (same_parts(self, self->parts, self->counted)) {
            learned_skip(self->source, self->ahead);
            self->ahead = 0;
        }
    }
}

static enum ar_status replay_step(struct drifter *self, struct ar_error *error)
{
    AR_TRY(replay_go(self->replay, error));
    self->out->events += learned_span(self->source);
    self->out->replayed_steps++;
    return AR_OK;
}

/* Replays what was counted and is needed to be in that state. */
static enum ar_status catch_up(struct drifter *self, struct ar_error *error)
{
    enum ar_status status = AR_OK;
    shorten(self);
    for (; !status && self->ahead; self->ahead--)
        status = replay_step(self, error);
    memcpy(self->parts, self->counted, sizeof self->parts);
    return status;
}

/* Adds the present states, and where `step` led from those before if `led`. */
static bool learn_states(struct drifter *self, const struct drift_part *parts, size_t count,
                         size_t step, bool led)
{
    struct known *known = self->known;
    bool done = true;
    pthread_mutex_lock(&known->lock);
    for (size_t i = 0; i < count && done; i++) {
        uint64_t state = known->state_count;
        if (!ar_map_get(&known->state_of_hash, parts[i].hash, &state))
            done = known->state_count < STATES_MOST &&
                   ar_map_put(&known->state_of_hash, parts[i].hash, state) == AR_OK &&
                   AR_ARRAY_ADD(known->live, known->state_count, known->state_room,
                                parts[i].live_bytes);
        if (done && led)
            done = ar_map_put(&known->ends, (uint64_t)self->parts[i] << 32 | step, state) == AR_OK;
        self->parts[i] = (uint32_t)state;
    }
    pthread_mutex_unlock(&known->lock);
    return done;
}

/* After `step`, which began with `calls`: which states are these, and where did it lead? Too many
 * states are not known any more. */
static enum ar_status follow_state(struct drifter *self, size_t step, uint64_t calls,
                                   struct ar_error *error)
{
    struct drift_part parts[PARTS_MOST];
    size_t count = 0;
    AR_TRY(read_parts(self, parts, &count, error));
    if (!self->skips)
        return AR_OK;
    bool led = self->knows_state && count == self->part_count && count_calls(self) == calls;
    self->knows_state = learn_states(self, parts, count, step, led);
    self->part_count = count;
    memcpy(self->counted, self->parts, sizeof self->counted);
    return AR_OK;
}

static enum ar_status go(struct drifter *self, struct ar_error *error)
{
    struct drift_run *out = self->out;
    enum ar_status status = AR_OK;
    while (!status && out->steps < self->setup->steps) {
        size_t step = LEARNED_NEW_SIZES;
        if (self->skips && self->knows_state) {
            skip(self);
            status = catch_up(self, error);
        }
        if (status || out->steps == self->setup->steps)
            break;
        if (self->skips)
            step = learned_peek(self->source, 0);
        uint64_t calls = count_calls(self);
        status = replay_step(self, error);
        if (status)
            break;
        out->steps++;
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
            status = follow_state(self, step, calls, error);
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
    learned_settle(self->source);
    AR_TRY(drift_find_pins(self->session.policy, self->replay, self->source, out, error));
    enum ar_status status = replay_end(self->replay, &result, error);
    self->replay = NULL;
    AR_TRY(status);
    out->cause = result.cause;
    out->failed_bytes = result.first_failed_bytes;
    replay_result_close(&result);
    return AR_OK;
}

static enum ar_status begin(struct drifter *self, struct replay_config *config,
                            struct ar_error *error)
{
    const struct drift_setup *setup = self->setup;
    AR_TRY(learned_open_lean(setup->model, setup->steps, setup->seed, &self->source, error));
    AR_TRY(session_open(&self->session, setup->policy, setup->device, setup->seed, NULL, error));
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
    /* When a block that other streams used comes back depends on the time that the streams need,
     * which is no part of a state. */
    self->skips = !setup->every_step && drift_can_skip(setup->policy) &&
                  (config->frees == REPLAY_RECORDED || !info->has_uses || info->one_block_stream);
    return replay_open(config, &self->replay, error);
}

static enum ar_status run(const struct drift_setup *setup, struct known *known, struct work *work,
                          struct drift_run *out, struct ar_error *error)
{
    struct drifter self = {.setup = setup, .known = known, .out = out, .work = work};
    struct replay_config config;
    *out = (struct drift_run){.seed = setup->seed};
    enum ar_status status = begin(&self, &config, error);
    AR_THEN(status, go(&self, error));
    AR_THEN(status, finish(&self, error));
    replay_discard(self.replay);
    AR_THEN(status, session_end(&self.session, error));
    if (self.session.device)
        session_close(&self.session);
    trace_close(self.source);
    ar_map_close(&self.carried);
    tell(&self, DRIFT_WATCHED);
    return status;
}

static void close_known(struct known *known)
{
    ar_map_close(&known->state_of_hash);
    ar_map_close(&known->ends);
    free(known->live);
    pthread_mutex_destroy(&known->lock);
}

/* ---- workers ---- */

struct work {
    const struct drift_setup *setups;
    struct known *known; /* of each setup's policy: the first one with it */
    struct drift_run *out;
    const struct drift_watch *watch;
    pthread_mutex_t lock; /* of the watch */
};

static void tell(struct drifter *self, uint64_t hundredths)
{
    struct work *work = self->work;
    if (!work->watch || hundredths == self->told)
        return;
    pthread_mutex_lock(&work->lock);
    for (; self->told < hundredths; self->told++)
        work->watch->done(work->watch->argument);
    pthread_mutex_unlock(&work->lock);
}

/* Runs of a policy share what is known of it, whatever their seeds. */
static size_t first_like(const struct drift_setup *setups, size_t at)
{
    size_t i = 0;
    while (setups[i].model != setups[at].model || setups[i].policy != setups[at].policy ||
           setups[i].device != setups[at].device)
        i++;
    return i;
}

static enum ar_status work_on(void *argument, size_t number, struct trace_source *none AR_UNUSED,
                              struct ar_error *error)
{
    struct work *work = argument;
    return run(&work->setups[number], &work->known[first_like(work->setups, number)], work,
               &work->out[number], error);
}

enum ar_status drift_run_all(const struct drift_setup *setups, struct drift_run *out, size_t count,
                             unsigned jobs, const struct drift_watch *watch, struct ar_error *error)
{
    struct work work = {.setups = setups,
                        .known = calloc(count + 1, sizeof *work.known),
                        .out = out,
                        .watch = watch};
    AR_TRY_MEMORY(work.known, error, "long runs");
    for (size_t i = 0; i < count; i++)
        pthread_mutex_init(&work.known[i].lock, NULL);
    pthread_mutex_init(&work.lock, NULL);
    enum ar_status status = crew_each(NULL, jobs, count, work_on, NULL, &work, error);
    pthread_mutex_destroy(&work.lock);
    for (size_t i = 0; i < count; i++)
        close_known(&work.known[i]);
    free(work.known);
    return status;
}
