#include "sim/advise/advise.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/array.h"
#include "allocators/base/size.h"
#include "sim/advise/recording.h"
#include "sim/advise/trial.h"
#include "sim/experiment/session.h"
#include "sim/experiment/survey.h"

#define TOO_SLOW 2.0

struct advising {
    const struct advise_config *config;
    struct advise_result *out;
    struct trial_setup setup;
    struct baseline baseline;
    struct prepared prepared;
    struct prepared unreleased; /* without releases by the program; trace NULL: those are sure */
    struct tries tries;
    size_t done;      /* of all rounds */
    bool single_fits; /* one of the recorder's own settings does at the capacity in question */
};

/* Recordings of a framework by a tool that does not see its allocator: which settings were in
 * force is not known, so the defaults stand for them. */
static const struct watcher {
    const char *recorder, *policy, *framework;
} watchers[] = {
    {"kineto", "torch", "torch"},           {"torch.profiler", "torch", "torch"},
    {"stalloc", "torch", "torch"},          {"rmm", "rmm-pool", "rmm"},
    {"jax", "greedy:framework=jax", "xla"},
};

static const struct watcher *watcher_of(const char *recorder)
{
    for (size_t i = 0; i < sizeof watchers / sizeof *watchers; i++) {
        size_t length = strlen(watchers[i].recorder);
        if (strncmp(recorder, watchers[i].recorder, length) == 0 &&
            (!recorder[length] || recorder[length] == ' '))
            return &watchers[i];
    }
    return NULL;
}

static void note_watcher(const struct trace_info *info, struct advise_result *out)
{
    const struct watcher *watcher = watcher_of(info->recorder);
    if (!watcher)
        return;
    out->fidelity = ADVISE_NOT_HELD;
    out->framework = watcher->framework;
    snprintf(out->given, sizeof out->given, "%s", watcher->policy);
    snprintf(out->fidelity_why, sizeof out->fidelity_why,
             "%.60s does not say which settings were in force, nor where blocks were placed",
             info->recorder);
}

/* The policy that answers to the recorder, and whether it does what was recorded. */
static enum ar_status hold_recording(const struct advise_config *config, struct advise_result *out,
                                     struct fidelity_result *held, struct ar_error *error)
{
    char text[1024];
    struct ar_spec policy;
    struct ar_error why = {""};
    const struct trace_info *info = &config->source->info;
    out->fidelity = ADVISE_NOT_RECORDED;
    if (!info->recorder[0] || fidelity_default_spec(info, text, sizeof text, &why)) {
        snprintf(out->fidelity_why, sizeof out->fidelity_why, "%.250s", why.text);
        note_watcher(info, out);
        return AR_OK;
    }
    out->framework = info->recorder;
    enum ar_status status = ar_spec_parse(text, &policy, error);
    if (status)
        return status;
    const struct fidelity fidelity = {
        .policy = &policy, .source = config->source, .seed = config->seed};
    status = fidelity_run(&fidelity, held, &why);
    ar_spec_close(&policy);
    if (status == AR_HOST_MEMORY || status == AR_CORRUPT) {
        *error = why;
        return status;
    }
    out->fidelity = status ? ADVISE_NOT_HELD : held->agrees ? ADVISE_AGREES : ADVISE_DIFFERS;
    if (status)
        snprintf(out->fidelity_why, sizeof out->fidelity_why, "%.250s", why.text);
    else if (!info->limit_bytes)
        status = pressure_find(config->source, text, config->seed, held, &out->pressure, error);
    if (status && out->fidelity != ADVISE_NOT_HELD)
        return status;
    out->recorded_peak_reserved_bytes = held->recorded_peak_reserved_bytes;
    out->difference = held->difference;
    out->start_blocks = held->start == FIDELITY_FROM_NOTHING ? 0 : held->start_blocks;
    out->releases = held->release_count;
    bool jax = strncmp(info->recorder, "xla", 3) == 0 || strncmp(info->recorder, "jax", 3) == 0;
    if (jax && !strchr(text, ':'))
        strcat(text, ":framework=jax");
    return candidates_without_limit(text, out->given, sizeof out->given, error);
}

static enum ar_status prepare(struct advising *self, struct ar_error *error)
{
    struct fidelity_result held = {0};
    struct advise_result *out = self->out;
    enum ar_status status = hold_recording(self->config, out, &held, error);
    if (!status)
        status = prepare_trace(self->config->source, held.releases, held.release_count,
                               &self->prepared, error);
    if (!status && out->fidelity == ADVISE_DIFFERS && held.release_count)
        status = prepare_trace(self->config->source, NULL, 0, &self->unreleased, error);
    fidelity_result_close(&held);
    if (status)
        return status;
    out->complete = self->config->source->info.complete && !self->prepared.has_failed_request;
    out->survived = self->prepared.survived;
    out->has_failed_request = self->prepared.has_failed_request;
    out->failed_event = self->prepared.failed_event;
    out->failed_bytes = self->prepared.failed_bytes;
    status = holders_find(self->prepared.trace, UINT64_MAX, &out->peak, error);
    if (!status && self->prepared.last_step_end)
        status =
            holders_find(self->prepared.trace, self->prepared.last_step_end, &out->step, error);
    if (!status)
        status = tries_find(self->prepared.trace, &self->tries, error);
    out->tries = self->tries.count;
    out->tries_most_bytes = self->tries.most_bytes;
    return status;
}

static enum ar_status set_up(struct advising *self, struct ar_error *error)
{
    const struct advise_config *config = self->config;
    const struct trace_info *info = &config->source->info;
    struct session_device plain;
    struct ar_device *device;
    enum ar_status status = session_device_with(&plain, config->device, 0, error);
    if (status)
        return status;
    status = ar_device_open(&plain.spec, &device, error);
    if (!status) {
        self->setup = (struct trial_setup){
            .device = config->device,
            .frees = config->frees,
            .host = config->host,
            .seed = config->seed,
            .live_peak_bytes = self->out->peak.bytes,
            .card_bytes = device->props.capacity_bytes,
            .has_outside = self->prepared.has_outside,
        };
        ar_device_close(device);
        if (info->kernels || config->host != REPLAY_HOST_NONE) {
            status = baseline_run(&plain.spec, self->prepared.trace, config->host, &self->baseline,
                                  error);
            self->setup.baseline = &self->baseline;
            self->out->timed = !status && self->baseline.time_ns;
        }
    }
    session_device_end(&plain);
    struct advise_result *out = self->out;
    bool recorded = !config->capacity_bytes && !config->card_asked;
    out->as_limit = config->as_limit || (recorded && info->limit_bytes);
    out->capacity_bytes = config->capacity_bytes                  ? config->capacity_bytes
                          : recorded && info->limit_bytes         ? info->limit_bytes
                          : recorded && out->pressure.least_bytes ? out->pressure.least_bytes
                          : recorded && info->capacity_bytes      ? info->capacity_bytes
                                                                  : self->setup.card_bytes;
    self->setup.as_limit = out->as_limit;
    self->setup.late_bytes = out->peak.late_bytes;
    return status;
}

static bool is_pair(const struct candidate *candidate)
{
    return candidate->half[0] || candidate->half[1];
}

/* At the capacity in question: every setting, because a caller may ask for that one. */
static enum ar_status try_at(void *argument, size_t number, struct trace_source *trace,
                             struct ar_error *error)
{
    struct advising *self = argument;
    struct advise_row *row = &self->out->rows[number];
    return trial_run(&self->setup, trace, row->candidate.spec, self->out->capacity_bytes,
                     !is_pair(&row->candidate), &row->at, error);
}

/* Whether completions were recorded, but not what for, and stand for what they are. */
static bool may_be_late(const struct advising *self)
{
    const struct trace_info *info = &self->config->source->info;
    return self->config->frees == REPLAY_RECORDED && info->has_split_frees && !info->has_uses;
}

/* What is asked of every trial, and with which trace. */
struct doubting {
    struct advising *self;
    struct trace_source *trace;
    doubt_ask *ask;
};

#define DOUBTS 3

static size_t doubts_of(struct advising *self, struct doubting list[DOUBTS])
{
    size_t count = 0;
    if (may_be_late(self))
        list[count++] = (struct doubting){self, self->prepared.trace, doubt_late};
    if (self->unreleased.trace)
        list[count++] = (struct doubting){self, self->unreleased.trace, doubt_releases};
    if (self->tries.trace)
        list[count++] = (struct doubting){self, self->tries.trace, doubt_tries};
    return count;
}

static enum ar_status doubt_row(void *argument, size_t number, struct trace_source *trace,
                                struct ar_error *error)
{
    const struct doubting *doubting = argument;
    struct advise_result *out = doubting->self->out;
    struct advise_row *row = &out->rows[number];
    return doubting->ask(&doubting->self->setup, trace, row->candidate.spec, out->capacity_bytes,
                         &row->at, error);
}

/* Which answers the recording does not tell. */
static enum ar_status doubt_all(struct advising *self, struct ar_error *error)
{
    struct doubting list[DOUBTS];
    enum ar_status status = AR_OK;
    size_t count = doubts_of(self, list);
    for (size_t i = 0; i < count && !status; i++)
        status = trial_each(list[i].trace, self->config->jobs, self->out->count, doubt_row, NULL,
                            &list[i], error);
    return status;
}

static enum ar_status try_alone(const struct advising *self, struct advise_row *row,
                                struct trace_source *trace, struct ar_error *error)
{
    return trial_run(&self->setup, trace, row->candidate.spec, 0, true, &row->alone, error);
}

/* A capacity was found: the row is shown, with what it costs there. */
static enum ar_status list_row(const struct advising *self, struct advise_row *row,
                               struct trace_source *trace, struct ar_error *error)
{
    struct trial trial = {0};
    enum ar_status status = AR_OK;
    row->listed = true;
    if (row->safe_bytes && self->setup.baseline)
        status = trial_run(&self->setup, trace, row->candidate.spec, row->safe_bytes, false, &trial,
                           error);
    row->safe_slowdown = trial.slowdown;
    return status;
}

static enum ar_status search_single(void *argument, size_t number, struct trace_source *trace,
                                    struct ar_error *error)
{
    struct advising *self = argument;
    struct advise_row *row = &self->out->rows[number];
    if (is_pair(&row->candidate))
        return AR_OK;
    enum ar_status status = try_alone(self, row, trace, error);
    if (!status && row->alone.begun && row->alone.passed)
        status = trial_search(&self->setup, trace, row->candidate.spec, &row->alone,
                              &row->safe_bytes, error);
    return status ? status : list_row(self, row, trace, error);
}

static enum ar_status search_from(const struct advising *self, struct advise_row *row,
                                  uint64_t from_bytes, struct trace_source *trace,
                                  struct ar_error *error)
{
    enum ar_status status =
        trial_safe(&self->setup, trace, row->candidate.spec, from_bytes, &row->safe_bytes, error);
    return status || !row->safe_bytes ? status : list_row(self, row, trace, error);
}

static enum ar_status search_pair(void *argument, size_t number, struct trace_source *trace,
                                  struct ar_error *error)
{
    struct advising *self = argument;
    struct advise_row *row = &self->out->rows[number];
    if (!is_pair(&row->candidate) || !row->at.begun)
        return AR_OK;
    uint64_t better = UINT64_MAX;
    for (int i = 0; i < 2; i++) {
        uint64_t half = self->out->rows[row->candidate.half[i]].safe_bytes;
        better = half && half < better ? half : better;
    }
    if (better == UINT64_MAX)
        return AR_OK;
    enum ar_status status = AR_OK;
    uint64_t less = ar_size_round_down(better - better / 100, 2 * AR_MIB);
    if (less >= self->setup.live_peak_bytes)
        status = search_from(self, row, less, trace, error);
    /* A pair that alone fits is worth telling, however little it is ahead. */
    if (!status && !row->listed && !self->single_fits && row->at.passed)
        status = search_from(self, row, self->out->capacity_bytes, trace, error);
    if (!status && row->listed)
        status = try_alone(self, row, trace, error);
    return status;
}

/* A setting that comes to the same text as the recorded one, or as the one before, is no other. */
static void drop_same(struct advise_result *out)
{
    for (size_t i = 1; i < out->count; i++)
        for (size_t j = 0; j < i && out->rows[i].candidate.own; j++)
            if (out->rows[j].listed && out->rows[j].candidate.own &&
                out->rows[i].alone.setting[0] &&
                strcmp(out->rows[i].alone.setting, out->rows[j].alone.setting) == 0)
                out->rows[i].listed = false;
}

/* What takes more than twice the time is no way out, however little memory it needs. Where no
 * time is known, that is taken of one driver call for each request; nor is there an answer then
 * for the driver's pool. */
static bool is_too_slow(const struct advise_row *row)
{
    return row->at.doubt == TRIAL_UNTIMED || row->safe_slowdown > TOO_SLOW ||
           (row->safe_slowdown <= 0 && strcmp(row->candidate.spec, "direct") == 0);
}

static int compare_rows(const void *left, const void *right)
{
    const struct advise_row *a = left, *b = right;
    if (a->candidate.own != b->candidate.own)
        return b->candidate.own - a->candidate.own;
    if (is_too_slow(a) != is_too_slow(b))
        return is_too_slow(a) - is_too_slow(b);
    uint64_t safe_a = a->safe_bytes ? a->safe_bytes : UINT64_MAX;
    uint64_t safe_b = b->safe_bytes ? b->safe_bytes : UINT64_MAX;
    if (safe_a != safe_b)
        return safe_a < safe_b ? -1 : 1;
    if (a->safe_slowdown < b->safe_slowdown || a->safe_slowdown > b->safe_slowdown)
        return a->safe_slowdown < b->safe_slowdown ? -1 : 1;
    return strcmp(a->candidate.spec, b->candidate.spec);
}

static int compare_listed(const void *left, const void *right)
{
    const struct advise_row *a = left, *b = right;
    return a->listed != b->listed ? b->listed - a->listed : compare_rows(a, b);
}

static void rank(struct advise_result *out)
{
    qsort(out->rows, out->tried, sizeof *out->rows, compare_listed);
    out->count = out->own_count = 0;
    for (size_t i = 0; i < out->tried && out->rows[i].listed; i++) {
        out->count++;
        out->own_count += out->rows[i].candidate.own;
    }
}

/* Other allocators have no pools, which CUDA graphs need: they are no way out for this program. */
static void disown_allocators(struct candidates *candidates)
{
    for (size_t i = 0; i < candidates->count; i++)
        if (candidates->at[i].text[0]) {
            candidates->at[i].own = false;
            candidates->at[i].text[0] = '\0';
            candidates->at[i].cost = NULL;
        }
}

#define ROUNDS 3 /* over all settings */

static void count_done(void *argument)
{
    struct advising *self = argument;
    self->done++;
    if (self->config->tried)
        self->config->tried(self->config->tried_argument, self->done, ROUNDS * self->out->tried);
}

static enum ar_status try_all(struct advising *self, struct ar_error *error)
{
    struct candidates candidates;
    struct advise_result *out = self->out;
    const struct advise_config *config = self->config;
    const char *given = out->given[0] ? out->given : "torch";
    const char *recorder = out->framework ? out->framework : "";
    enum ar_status status = candidates_list(recorder, given, true, &candidates, error);
    if (status)
        return status;
    if (!out->given[0]) /* no framework: all are other policies */
        candidates.at[0].own = candidates.at[0].given = false;
    if (self->prepared.has_pools)
        disown_allocators(&candidates);
    out->rows = calloc(candidates.count, sizeof *out->rows);
    for (size_t i = 0; out->rows && i < candidates.count; i++)
        out->rows[i].candidate = candidates.at[i];
    out->count = out->tried = candidates.count;
    candidates_close(&candidates);
    if (!out->rows)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for the settings");
    struct trace_source *trace = self->prepared.trace;
    status = trial_each(trace, config->jobs, out->count, try_at, count_done, self, error);
    if (!status)
        status = doubt_all(self, error);
    for (size_t i = 0; i < out->count && !status; i++)
        self->single_fits |= out->rows[i].candidate.own && !is_pair(&out->rows[i].candidate) &&
                             advise_fits(&out->rows[i]) == ADVISE_FITS;
    if (!status)
        status =
            trial_each(trace, config->jobs, out->count, search_single, count_done, self, error);
    if (!status)
        status = trial_each(trace, config->jobs, out->count, search_pair, count_done, self, error);
    if (status)
        return status;
    drop_same(out);
    rank(out);
    return AR_OK;
}

enum ar_status advise_run(const struct advise_config *config, struct advise_result *result,
                          struct ar_error *error)
{
    struct advising self = {.config = config, .out = result};
    *result = (struct advise_result){0};
    if (config->source->ops->served)
        return ar_error_set(
            error, AR_INVALID,
            "what %s asks for depends on the policy; write it to a file first with gen",
            config->source->info.name);
    enum ar_status status = prepare(&self, error);
    if (!status)
        status = set_up(&self, error);
    if (!status)
        status = try_all(&self, error);
    trace_close(self.prepared.trace);
    trace_close(self.unreleased.trace);
    tries_close(&self.tries);
    if (status)
        advise_result_close(result);
    return status;
}

enum ar_status advise_predict(const struct advise_config *config, const char *policy,
                              uint64_t capacity_bytes, struct trial *out, struct ar_error *error)
{
    struct advise_result result = {0};
    struct advising self = {.config = config, .out = &result};
    enum ar_status status = prepare(&self, error);
    if (!status)
        status = set_up(&self, error);
    self.setup.as_limit = false;
    if (!status)
        status =
            trial_run(&self.setup, self.prepared.trace, policy, capacity_bytes, true, out, error);
    struct doubting list[DOUBTS];
    size_t count = status ? 0 : doubts_of(&self, list);
    for (size_t i = 0; i < count && !status; i++)
        status = list[i].ask(&self.setup, list[i].trace, policy, capacity_bytes, out, error);
    trace_close(self.prepared.trace);
    trace_close(self.unreleased.trace);
    tries_close(&self.tries);
    return status;
}

void advise_result_close(struct advise_result *result)
{
    free(result->rows);
    result->rows = NULL;
    result->count = result->own_count = 0;
}

/* Whether a is the better advice: fewer settings first, then less time lost. */
static bool better(const struct advise_row *a, const struct advise_row *b)
{
    if (!b || a->candidate.given != b->candidate.given)
        return !b || a->candidate.given;
    bool other_a = a->candidate.text[0], other_b = b->candidate.text[0];
    if (other_a != other_b)
        return other_b;
    if (is_pair(&a->candidate) != is_pair(&b->candidate))
        return is_pair(&b->candidate);
    double slow_a = a->at.slowdown, slow_b = b->at.slowdown;
    return slow_a < slow_b || (slow_a <= slow_b && a->safe_bytes < b->safe_bytes);
}

enum advise_fit advise_fits(const struct advise_row *row)
{
    const struct trial *at = &row->at;
    return !at->begun   ? ADVISE_FITS_NOT
           : at->doubt  ? ADVISE_UNSURE
           : at->passed ? ADVISE_FITS
                        : ADVISE_FITS_NOT;
}

const struct advise_row *advise_best(const struct advise_result *result)
{
    const struct advise_row *best = NULL;
    for (size_t i = 0; i < result->own_count; i++)
        if (advise_fits(&result->rows[i]) == ADVISE_FITS && better(&result->rows[i], best))
            best = &result->rows[i];
    return best;
}

/* Requests are compared as a bag of sizes: workspaces that a library tries out (autotuning) come
 * and go anywhere, and one more of them must not make all that follow look different. */

struct sizes {
    uint64_t *at;
    size_t count, room;
};

static enum ar_status add(struct sizes *self, uint64_t bytes, struct ar_error *error)
{
    if (!AR_ARRAY_ADD(self->at, self->count, self->room, bytes))
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for %zu sizes", self->count);
    return AR_OK;
}

static enum ar_status collect(struct trace_source *source, struct sizes *out,
                              struct ar_error *error)
{
    const struct trace_event *events;
    size_t count = 1;
    enum ar_status status = trace_rewind(source, error);
    while (!status && count) {
        status = trace_next(source, &events, &count, error);
        for (size_t i = 0; !status && i < count; i++)
            if (events[i].kind == TRACE_ALLOC || events[i].kind == TRACE_PROBE)
                status = add(out, events[i].value, error);
    }
    if (!status && out->count)
        ar_array_sort(out->at, out->count);
    return status;
}

static enum ar_status compare_requests(struct trace_source *from, struct trace_source *to,
                                       struct whatif *out, struct ar_error *error)
{
    struct sizes a = {0}, b = {0};
    enum ar_status status = collect(from, &a, error);
    if (!status)
        status = collect(to, &b, error);
    size_t i = 0, j = 0;
    while (!status && (i < a.count || j < b.count)) {
        if (j == b.count || (i < a.count && a.at[i] < b.at[j])) {
            out->only_from++;
            i++;
        } else if (i == a.count || b.at[j] < a.at[i]) {
            out->only_to++;
            j++;
        } else {
            i++;
            j++;
        }
    }
    out->requests_from = a.count;
    out->requests_to = b.count;
    free(a.at);
    free(b.at);
    return status;
}

/* What the other recording itself says: its peak, and whether it came to its end. */
static enum ar_status look_up(const struct advise_config *config, struct trace_source *to,
                              struct whatif *out, struct ar_error *error)
{
    struct ar_spec policy;
    struct prepared whole;
    struct fidelity_result held = {0};
    enum ar_status status = ar_spec_parse(out->spec, &policy, error);
    if (status)
        return status;
    const struct fidelity fidelity = {.policy = &policy, .source = to, .seed = config->seed};
    status = fidelity_run(&fidelity, &held, error);
    ar_spec_close(&policy);
    out->has_peak = !status;
    out->recorded_peak_reserved_bytes = held.recorded_peak_reserved_bytes;
    fidelity_result_close(&held);
    if (status)
        return status;
    status = prepare_trace(to, NULL, 0, &whole, error);
    if (status)
        return status;
    out->recorded_passed = to->info.complete && !whole.has_failed_request;
    trace_close(whole.trace);
    return AR_OK;
}

enum ar_status whatif_predict(const struct advise_config *config, struct trace_source *to,
                              struct whatif *out, struct ar_error *error)
{
    memset(out, 0, sizeof *out);
    enum ar_status status = fidelity_default_spec(&to->info, out->spec, sizeof out->spec, error);
    if (!status)
        status = compare_requests(config->source, to, out, error);
    if (!status)
        status = look_up(config, to, out, error);
    if (!status)
        status = advise_predict(config, out->spec, 0, &out->predicted, error);
    return status;
}
