/* The first failure of a run, by the rules in explain.h: the observer's record, the walk over the
 * policy's ranges, the state at the failure, and the re-runs. */
#include "sim/explain/explain.h"

#include "allocators/base/array.h"
#include "allocators/base/map.h"
#include "allocators/base/size.h"
#include "sim/experiment/crew.h"
#include "sim/experiment/session.h"
#include "sim/search/search.h"

/* The request of a live block: its event, and the bytes of all served requests until then. */
enum { BIRTH_EVENT, BIRTH_ASKED_BYTES, BIRTH_WORDS };

/* The observer's record of the run. */
struct tracking {
    struct ar_map births;            /* of live blocks, by address */
    uint64_t asked_bytes;            /* of all served requests */
    struct ar_policy_request failed; /* the last failed request */
    bool out_of_memory;              /* host memory */
};

static void note_call(void *argument, const struct observer_policy_call *call)
{
    struct tracking *self = argument;
    if (call->kind == OBSERVER_POLICY_ALLOC && call->status)
        self->failed = *call->request;
    if (call->kind == OBSERVER_POLICY_ALLOC && !call->status) {
        self->asked_bytes += call->request->bytes;
        uint64_t *birth = ar_map_add(&self->births, call->block->address);
        self->out_of_memory |= !birth;
        if (birth) {
            birth[BIRTH_EVENT] = call->event;
            birth[BIRTH_ASKED_BYTES] = self->asked_bytes;
        }
    } else if (call->kind == OBSERVER_POLICY_FREE && !call->status) {
        (void)ar_map_remove(&self->births, call->block->address);
    }
}

/* ---- the ranges of the policy ---- */

struct ranges {
    struct ar_policy_range *at;
    size_t count, room;
    bool failed;
};

static bool keep(void *argument, const struct ar_policy_range *range)
{
    struct ranges *self = argument;
    if (!AR_ARRAY_ADD(self->at, self->count, self->room, *range)) {
        self->failed = true;
        return false;
    }
    return true;
}

/* Free or pending: no live block. */
static bool is_spare(const struct ar_policy_range *range)
{
    return range->state == AR_POLICY_RANGE_FREE || range->state == AR_POLICY_RANGE_PENDING;
}

/* Whether b follows a without a gap in one segment, and both are backed by memory. */
static bool joins(const struct ar_policy_range *a, const struct ar_policy_range *b)
{
    return a->segment_address == b->segment_address && a->address + a->bytes == b->address &&
           a->state != AR_POLICY_RANGE_UNMAPPED && b->state != AR_POLICY_RANGE_UNMAPPED;
}

/* The ranges [first, end) with the fewest live bytes among all stretches that are large enough. */
struct stretch {
    size_t first, end;
    uint64_t bytes, live_bytes;
};

/* A sliding window: each range enters once and leaves once. */
static struct stretch find_stretch(const struct ranges *ranges, uint64_t wanted_bytes)
{
    struct stretch best = {0}, now = {0};
    for (size_t i = 0; i < ranges->count; i++) {
        const struct ar_policy_range *range = &ranges->at[i];
        if (i == now.first || !joins(&ranges->at[i - 1], range))
            now = (struct stretch){.first = i};
        if (range->state == AR_POLICY_RANGE_UNMAPPED)
            continue;
        now.end = i + 1;
        now.bytes += range->bytes;
        now.live_bytes += is_spare(range) ? 0 : range->bytes;
        while (now.bytes - ranges->at[now.first].bytes >= wanted_bytes) {
            now.bytes -= ranges->at[now.first].bytes;
            now.live_bytes -= is_spare(&ranges->at[now.first]) ? 0 : ranges->at[now.first].bytes;
            now.first++;
        }
        if (now.bytes >= wanted_bytes && (!best.end || now.live_bytes < best.live_bytes))
            best = now;
    }
    return best;
}

static uint64_t free_beside(const struct ranges *ranges, size_t i)
{
    const struct ar_policy_range *range = &ranges->at[i];
    uint64_t bytes = 0;
    if (i > 0 && joins(range - 1, range) && is_spare(range - 1))
        bytes += range[-1].bytes;
    if (i + 1 < ranges->count && joins(range, range + 1) && is_spare(range + 1))
        bytes += range[1].bytes;
    return bytes;
}

static bool comes_before(const struct explain_pinning_block *a,
                         const struct explain_pinning_block *b)
{
    return a->in_stretch != b->in_stretch ? a->in_stretch : a->free_bytes > b->free_bytes;
}

/* Inserts a block in order: blocks of the stretch first, then by adjacent free bytes. If the list
 * is full, the last block is dropped. */
static void insert(struct explain_result *out, const struct explain_pinning_block *pin)
{
    struct explain_pinning_block *pins = out->pinning_blocks;
    size_t at = out->pinning_block_count;
    while (at > 0 && comes_before(pin, &pins[at - 1]))
        at--;
    if (at == EXPLAIN_PINNING_BLOCKS_MOST)
        return;
    if (out->pinning_block_count < EXPLAIN_PINNING_BLOCKS_MOST)
        out->pinning_block_count++;
    for (size_t i = out->pinning_block_count - 1; i > at; i--)
        pins[i] = pins[i - 1];
    pins[at] = *pin;
}

/* The pieces that the request could use. */
struct usable {
    uint64_t largest_bytes, units_bytes; /* units: in multiples of the request */
};

static void add_usable(struct usable *self, uint64_t bytes, const struct explain_result *out)
{
    if (!out->ladder.again && bytes >= out->bytes)
        return;
    self->largest_bytes = bytes > self->largest_bytes ? bytes : self->largest_bytes;
    self->units_bytes += out->bytes ? bytes - bytes % out->bytes : 0;
}

static void note_free_block(const struct ar_policy_range *range, struct usable *usable,
                            struct explain_result *out)
{
    if (range->state != AR_POLICY_RANGE_FREE)
        return;
    bool same = range->stream == out->stream && range->pool == out->pool;
    uint64_t *largest = same ? &out->largest_same_bytes : &out->largest_other_bytes;
    out->free_blocks++;
    out->free_block_bytes += range->bytes;
    if (range->bytes > *largest)
        *largest = range->bytes;
    if (range->bytes > out->largest_free_block_bytes)
        out->largest_free_block_bytes = range->bytes;
    if (same)
        add_usable(usable, range->bytes, out);
}

static struct explain_indices find_indices(const struct explain_result *out, struct usable *usable)
{
    uint64_t device_bytes = out->ladder.obtainable_bytes;
    double pieces = (double)out->free_blocks + (device_bytes > 0);
    double free_bytes = (double)out->free_block_bytes + (double)device_bytes;
    struct explain_indices indices = {.external = 0, .unusable = 1, .fragmentation = 0};
    if (pieces <= 0 || !out->bytes)
        return indices;
    add_usable(usable, device_bytes, out);
    indices.external = 1 - (double)usable->largest_bytes / free_bytes;
    indices.unusable = 1 - (double)usable->units_bytes / free_bytes;
    indices.fragmentation = 1 - (1 + free_bytes / (double)out->bytes) / pieces;
    if (usable->largest_bytes >= out->bytes)
        indices.fragmentation = -1;
    else if (indices.fragmentation < 0)
        indices.fragmentation = 0;
    return indices;
}

/* Fills the free blocks, indices, stretch and pinning blocks of `out`. Its event, request and
 * ladder must be those of the failure. HOST_MEMORY. */
static enum ar_status judge_ranges(const struct ar_policy *policy, const struct tracking *tracking,
                                   struct explain_result *out, struct ar_error *error)
{
    struct ranges ranges = {0};
    struct usable usable = {0};
    ar_policy_walk(policy, keep, &ranges);
    if (ranges.failed) {
        free(ranges.at);
        return ar_no_memory(error, "the policy's ranges");
    }
    bool request = out->kind == EXPLAIN_REQUEST;
    struct stretch stretch = {0};
    if (request)
        stretch = find_stretch(&ranges, out->bytes);
    out->stretch_bytes = stretch.bytes;
    out->stretch_live_bytes = stretch.live_bytes;
    for (size_t i = 0; i < ranges.count; i++) {
        const struct ar_policy_range *range = &ranges.at[i];
        bool inside = i >= stretch.first && i < stretch.end;
        note_free_block(range, &usable, out);
        if (range->state != AR_POLICY_RANGE_USED || !request)
            continue;
        out->stretch_blocks += inside;
        uint64_t beside = free_beside(&ranges, i);
        const uint64_t *birth = ar_map_find(&tracking->births, range->address);
        if (!birth || (!beside && !inside))
            continue;
        const struct explain_pinning_block pin = {.address = range->address,
                                                  .bytes = range->requested_bytes,
                                                  .event = birth[BIRTH_EVENT],
                                                  .age_events = out->event - birth[BIRTH_EVENT],
                                                  .age_bytes = tracking->asked_bytes -
                                                               birth[BIRTH_ASKED_BYTES],
                                                  .free_bytes = beside,
                                                  .stream = range->stream,
                                                  .in_stretch = inside};
        insert(out, &pin);
    }
    out->indices = find_indices(out, &usable);
    free(ranges.at);
    return AR_OK;
}

/* ---- the failure ---- */

static void copy_tag(const struct trace_attributes *keys, char *tag, size_t bytes)
{
    if (keys && keys->tag)
        snprintf(tag, bytes, "%.*s", (int)bytes - 1, keys->tag);
}

/* The framework of the policy, whose settings are tried. */
static const char *recorder_of(const struct ar_spec *policy)
{
    const struct ar_policy_ops *ops;
    const char *text = policy->text;
    struct ar_error ignored;
    if (registry_lookup(policy, &ops, &ignored) || !ops->recorders)
        return "";
    if (strcmp(ops->recorders[0], "xla") == 0 && !strstr(text, "framework=jax"))
        return "tensorflow";
    return ops->recorders[0];
}

/* Finds the failed event: what it asks for, and its names. */
static enum ar_status find_failed(struct trace_source *source, struct explain_result *out,
                                  struct ar_error *error)
{
    struct trace_cursor cursor = {.source = source};
    const struct trace_event *event;
    enum ar_status status = trace_rewind(source, error);
    do
        event = trace_read(&cursor, &status, error);
    while (event && cursor.next <= out->event);
    if (!event)
        return status;
    out->kind = event->kind == TRACE_OUTSIDE ? EXPLAIN_BESIDE : EXPLAIN_REQUEST;
    out->id = event->id;
    out->stream = event->stream;
    copy_tag(trace_attributes_of(source, event->attributes), out->tag, sizeof out->tag);
    return AR_OK;
}

/* The cause is read off the ladder that the result shows. */
static void fill_ladder(const struct session *session, const struct tracking *tracking,
                        struct explain_result *out)
{
    if (out->kind == EXPLAIN_REQUEST) {
        struct ar_policy_request request = tracking->failed;
        request.bytes = out->bytes;
        cause_ladder_fill(&out->ladder, session->policy, session->device, &request,
                          session->limit_bytes);
    } else {
        cause_ladder_fill_beside(&out->ladder, session->policy, session->device);
    }
    if (out->cause != REPLAY_CAUSE_DRIVER)
        out->cause = cause_of_ladder(&out->ladder, out->bytes);
}

static void note_state(const struct session *session, const struct tracking *tracking,
                       struct explain_result *out)
{
    const struct ar_policy *policy = session->policy;
    const struct ar_device *device = session->device;
    uint64_t total_bytes;
    if (out->kind == EXPLAIN_REQUEST) {
        out->stream = tracking->failed.stream;
        out->pool = tracking->failed.pool;
    }
    out->totals = policy->totals;
    out->opaque = policy->ops->capabilities & AR_POLICY_OPAQUE;
    out->can_trim = policy->ops->trim != NULL;
    for (int effort = 0; effort < AR_POLICY_EFFORT_COUNT; effort++)
        out->servable_bytes[effort] = ar_policy_servable(policy, (enum ar_policy_effort)effort);
    ar_backing_memory(device->backing, &out->device_free_bytes, &total_bytes);
    out->others_bytes = device->counters.others_bytes;
    out->outside_bytes = device->counters.outside_bytes;
    out->physical_bytes = device->counters.physical_bytes;
    out->limit_bytes = session->limit_bytes;
    fill_ladder(session, tracking, out);
}

/* The first replay, and the state at its end. */
static enum ar_status look(const struct experiment *experiment, struct session *session,
                           struct tracking *tracking, struct explain_result *out,
                           struct ar_error *error)
{
    struct replay_result result;
    const struct observer observer = {.policy_call = note_call, .argument = tracking};
    const struct replay_config config = {
        .frees = experiment->frees,
        .host = experiment->host,
        .stop_on_failure = true,
        .observer = &observer,
    };
    AR_TRY(session_replay(session, experiment->source, config, &result, error));
    out->passed = result.passed;
    out->event = result.first_failed_event;
    out->bytes = result.first_failed_bytes;
    out->cause = result.cause;
    snprintf(out->problem, sizeof out->problem, "%s", result.problem);
    replay_result_close(&result);
    if (tracking->out_of_memory)
        return ar_no_memory(error, "the blocks' origins");
    if (out->passed)
        return AR_OK;
    AR_TRY(find_failed(experiment->source, out, error));
    note_state(session, tracking, out);
    return judge_ranges(session->policy, tracking, out, error);
}

static void note_event(const struct trace_attributes *keys, uint64_t number, uint64_t step,
                       struct explain_result *out)
{
    if (!out->passed && number == out->event)
        out->step = step;
    for (size_t i = 0; i < out->pinning_block_count; i++)
        if (out->pinning_blocks[i].event == number) {
            out->pinning_blocks[i].step = step;
            copy_tag(keys, out->pinning_blocks[i].tag, sizeof out->pinning_blocks[i].tag);
        }
}

/* Finds the steps and tags of events in another pass over the trace, and the most memory beside
 * the pool. */
static enum ar_status name_events(struct trace_source *source, struct explain_result *out,
                                  struct ar_error *error)
{
    struct trace_cursor cursor = {.source = source};
    uint64_t step = 1;
    enum ar_status status = trace_rewind(source, error);
    for (const struct trace_event *event; (event = trace_read(&cursor, &status, error)) != NULL;) {
        note_event(trace_attributes_of(source, event->attributes), cursor.next - 1, step, out);
        step += trace_ends_step(event);
        if (event->kind == TRACE_OUTSIDE && event->value > out->outside_peak_bytes)
            out->outside_peak_bytes = event->value;
    }
    out->steps = step - 1;
    return status;
}

/* ---- re-runs ---- */

/* The parameters of all re-runs. */
struct reruns {
    const struct trial_setup *setup;
    struct explain_rerun *at;
    uint64_t capacity_bytes;
};

static enum ar_status rerun(void *argument, size_t number, struct trace_source *trace,
                            struct ar_error *error)
{
    struct reruns *self = argument;
    struct explain_rerun *run = &self->at[number];
    return trial_run(self->setup, trace, run->candidate.spec, self->capacity_bytes, true,
                     &run->trial, error);
}

static int compare_reruns(const void *left, const void *right)
{
    const struct explain_rerun *a = left, *b = right;
    AR_ORDER(b->candidate.own, a->candidate.own);
    bool pair_a = a->candidate.half[0] || a->candidate.half[1];
    bool pair_b = b->candidate.half[0] || b->candidate.half[1];
    AR_ORDER(pair_a, pair_b);
    if ((a->candidate.text[0] != 0) != (b->candidate.text[0] != 0)) /* another allocator */
        return (a->candidate.text[0] != 0) - (b->candidate.text[0] != 0);
    AR_ORDER(a->candidate.key_order, b->candidate.key_order);
    AR_ORDER(a->trial.peak_physical_bytes, b->trial.peak_physical_bytes);
    AR_ORDER(a->candidate.order, b->candidate.order);
    return strcmp(a->candidate.spec, b->candidate.spec);
}

/* Keeps the re-runs that passed, in order. A pair counts only if neither half passed. */
static enum ar_status keep_passed(struct explain_result *out, struct ar_error *error)
{
    bool *passed = calloc(out->rerun_tried + 1, sizeof *passed);
    AR_TRY_MEMORY(passed, error, "re-runs");
    size_t kept = 0;
    for (size_t i = 0; i < out->rerun_tried; i++)
        passed[i] = out->reruns[i].trial.begun && out->reruns[i].trial.passed &&
                    !out->reruns[i].trial.sensitivity;
    for (size_t i = 0; i < out->rerun_tried; i++) {
        const size_t *half = out->reruns[i].candidate.half;
        bool half_passed = (half[0] && passed[half[0]]) || (half[1] && passed[half[1]]);
        if (passed[i] && !half_passed)
            out->reruns[kept++] = out->reruns[i];
    }
    free(passed);
    out->rerun_count = kept;
    qsort(out->reruns, kept, sizeof *out->reruns, compare_reruns);
    return AR_OK;
}

static enum ar_status try_others(const struct experiment *experiment,
                                 const struct trial_setup *setup, unsigned jobs,
                                 struct explain_result *out, struct ar_error *error)
{
    AR_CLOSED(candidates_close) struct candidates candidates = {0};
    const char *recorder = experiment->source->info.recorder;
    if (strncmp(recorder, "torch ", 6) != 0 || strcmp(out->framework, "torch") != 0)
        recorder = out->framework;
    AR_TRY(candidates_list(recorder, experiment->policy->text, true, &candidates, error));
    out->release = candidates.release;
    out->reruns = calloc(candidates.count, sizeof *out->reruns);
    out->rerun_tried = candidates.count;
    for (size_t i = 0; out->reruns && i < candidates.count; i++)
        out->reruns[i].candidate = candidates.at[i];
    struct reruns reruns = {setup, out->reruns, out->capacity_bytes};
    if (out->limit_bytes && out->limit_bytes < reruns.capacity_bytes)
        reruns.capacity_bytes = out->limit_bytes;
    AR_TRY_MEMORY(out->reruns, error, "re-runs");
    AR_TRY(crew_each(experiment->source, jobs, candidates.count, rerun, NULL, &reruns, error));
    return keep_passed(out, error);
}

/* Finds the capacity that the same policy would have needed without its limit: on the grid of
 * `capacity`, above the one that failed. */
static enum ar_status try_capacity(const struct experiment *experiment,
                                   const struct trial_setup *setup, struct explain_result *out,
                                   struct ar_error *error)
{
    char policy[CANDIDATE_SPEC_ROOM];
    AR_CLOSED(capacity_grid_close) struct capacity_grid grid = {0};
    AR_TRY(candidates_without_limit(experiment->policy->text, policy, sizeof policy, error));
    AR_TRY(capacity_grid_make(out->live_peak_bytes, out->most_bytes, &grid, error));
    return trial_safe_on(setup, experiment->source, policy, grid.bytes, grid.count,
                         out->limit_bytes ? 0 : out->capacity_bytes, &out->more_capacity_bytes,
                         error);
}

/* Whether a limit of the policy that leaves room for all memory beside it lets the trace pass. */
static enum ar_status try_limit(const struct experiment *experiment,
                                const struct trial_setup *setup, struct explain_result *out,
                                struct ar_error *error)
{
    char policy[CANDIDATE_SPEC_ROOM], limited[CANDIDATE_SPEC_ROOM + 32];
    struct trial trial = {0};
    uint64_t beside_bytes = out->outside_peak_bytes + out->others_bytes;
    if (out->cause != REPLAY_CAUSE_CACHE || beside_bytes >= out->capacity_bytes)
        return AR_OK;
    out->pool_limit_bytes = ar_size_round_down(out->capacity_bytes - beside_bytes, AR_MIB);
    AR_TRY(candidates_without_limit(experiment->policy->text, policy, sizeof policy, error));
    if (!out->pool_limit_bytes)
        return AR_OK;
    snprintf(limited, sizeof limited, "%s%slimit=%" PRIu64, policy, strchr(policy, ':') ? "," : ":",
             out->pool_limit_bytes);
    AR_TRY(
        trial_run(setup, experiment->source, limited, out->capacity_bytes, false, &trial, error));
    out->pool_limit_passes = trial.begun && trial.passed;
    return AR_OK;
}

/* The baseline for the slowdowns of re-runs: a run with all of the card, as in `advise`. Without
 * kernels and host times there is none. */
static enum ar_status time_free(const struct experiment *experiment, struct trial_setup *setup,
                                struct baseline *baseline, struct ar_error *error)
{
    struct session_device plain;
    if (!experiment->source->info.kernels && experiment->host == REPLAY_HOST_NONE)
        return AR_OK;
    AR_TRY(session_device_as(&plain, experiment->device, NULL, 0, error));
    enum ar_status status =
        baseline_run(&plain.spec, experiment->source, experiment->host, baseline, error);
    session_device_end(&plain);
    setup->baseline = baseline;
    return status;
}

enum ar_status explain_failure(const struct experiment *experiment, struct explain_result *result,
                               struct ar_error *error)
{
    AR_CLOSED(session_close) struct session session = {0};
    struct tracking tracking = {.births.more_words = BIRTH_WORDS - 1};
    memset(result, 0, sizeof *result);
    result->framework = recorder_of(experiment->policy);
    AR_TRY(session_open(&session, experiment->policy, experiment->device, experiment->seed, NULL,
                        error));
    const struct ar_device_props *props = &session.device->props;
    result->capacity_bytes = props->capacity_bytes;
    result->most_bytes = props->most_bytes ? props->most_bytes : props->capacity_bytes;
    memcpy(result->profile, session.device->props.profile, sizeof result->profile);
    memcpy(result->costs_of, session.device->props.costs_of, sizeof result->costs_of);
    enum ar_status status = look(experiment, &session, &tracking, result, error);
    ar_map_close(&tracking.births);
    AR_THEN(status, session_end(&session, error));
    AR_TRY(status);
    AR_TRY(name_events(experiment->source, result, error));
    struct survey_peak peak = {0};
    status = survey_peak_live(experiment->source, 0, &peak, error);
    result->live_peak_bytes = peak.bytes;
    result->live_peak_event = peak.event;
    return status;
}

enum ar_status explain_run(const struct experiment *experiment, unsigned jobs,
                           struct explain_result *result, struct ar_error *error)
{
    struct baseline baseline = {0};
    enum ar_status status = explain_failure(experiment, result, error);
    if (status || result->passed || result->cause == REPLAY_CAUSE_DRIVER)
        return status;
    struct trial_setup setup = {.device = experiment->device,
                                .frees = experiment->frees,
                                .host = experiment->host,
                                .seed = experiment->seed,
                                .live_peak_bytes = result->live_peak_bytes,
                                .has_outside = result->outside_peak_bytes > 0,
                                .as_run = true};
    status = time_free(experiment, &setup, &baseline, error);
    AR_THEN(status, try_others(experiment, &setup, jobs, result, error));
    AR_THEN(status, try_capacity(experiment, &setup, result, error));
    AR_THEN(status, try_limit(experiment, &setup, result, error));
    if (status)
        explain_result_close(result);
    return status;
}

void explain_result_close(struct explain_result *result)
{
    free(result->reruns);
    result->reruns = NULL;
    result->rerun_count = 0;
}
