#include "sim/advise/trial.h"

#include "allocators/base/size.h"
#include "sim/advise/waiting.h"
#include "sim/search/search.h"

#define FINE_PER_CENT   2 /* of the live peak: the steps below twice the live peak */
#define COARSE_PER_CENT 5 /* the steps above it */
#define UNIT_BYTES      (2 * AR_MIB)
#define PAGE_BYTES      (20 * AR_MIB) /* the largest map of PyTorch by default */

static void note_metrics(const struct replay_result *result, struct trial *out)
{
    const struct metric_values *metrics = &result->metrics;
    out->passed = result->passed;
    out->event = result->first_failed_event;
    out->bytes = result->first_failed_bytes;
    out->cause = result->cause;
    out->peak_reserved_bytes = (uint64_t)metric_number(metrics, METRIC_peak_reserved_bytes, 0);
    out->peak_physical_bytes = (uint64_t)metric_number(metrics, METRIC_peak_physical_bytes, 0);
    out->retries = (uint64_t)metric_number(metrics, METRIC_retries, 0);
    out->flushes = (uint64_t)metric_number(metrics, METRIC_flushes, 0);
    out->driver_calls = (uint64_t)metric_number(metrics, METRIC_driver_calls, 0);
    out->slowdown = metric_number(metrics, METRIC_slowdown, 0);
}

/* PyTorch checks its limit before it maps pages, so a growing segment may exceed the limit by one
 * page. A policy that exceeds it by more does not keep its limit. The policy's own count is used;
 * it does not include the rounding of the card. */
static bool overran(const struct trial_setup *setup, uint64_t capacity_bytes,
                    const struct trial *trial)
{
    uint64_t most_bytes = trial->peak_physical_bytes;
    if (trial->peak_reserved_bytes && trial->peak_reserved_bytes < most_bytes)
        most_bytes = trial->peak_reserved_bytes;
    return setup->as_limit && capacity_bytes && trial->passed &&
           most_bytes > capacity_bytes + PAGE_BYTES;
}

/* How a trial is run. */
struct manner {
    bool peaks;              /* also measures the peak of the policy's own reserved bytes */
    const struct lean *lean; /* the trace; NULL: it is in the form that was recorded */
    bool is_equal; /* result: of a trial without times, that its answers are those with times */
};

static enum ar_status replay(const struct trial_setup *setup, struct trace_source *trace,
                             struct session *session, const struct manner *manner,
                             struct trial *out, struct ar_error *error)
{
    AR_CLOSED(replay_result_close) struct replay_result result = {0};
    bool timeless = manner->lean && manner->lean->timeless;
    const struct replay_config config = {
        .frees = setup->frees,
        .host = timeless ? REPLAY_HOST_NONE : setup->host,
        .timeless = timeless,
        .measure = manner->peaks ? REPLAY_METRICS_RESERVED : REPLAY_METRICS_NONE,
        .stop_on_failure = true,
    };
    AR_TRY(session_replay(session, trace, config, &result, error));
    if (setup->baseline && result.passed && !timeless)
        baseline_report(setup->baseline, &result);
    note_metrics(&result, out);
    if (manner->lean && !out->passed && out->event < manner->lean->count)
        out->event = manner->lean->numbers[out->event];
    return AR_OK;
}

/* Whether the status means that the policy cannot start on this device or that its settings
 * contradict each other. The trace is valid: the caller has replayed it before. */
static bool says_no(enum ar_status status)
{
    return status == AR_UNSUPPORTED || status == AR_NO_MEMORY || status == AR_REFUSED ||
           status == AR_INVALID || status == AR_FORMAT;
}

/* The time at which the driver's pool can reuse memory depends on the ends of kernels and on
 * waits. */
static bool is_untimed(const struct trial_setup *setup, const struct trace_source *trace,
                       const struct ar_policy_ops *ops)
{
    return (ops->capabilities & AR_POLICY_OPAQUE) && !trace->info.kernels &&
           setup->host == REPLAY_HOST_NONE;
}

/* Writes the spec, with the capacity as its limit if setup->as_limit. */
static void write_spec(const struct trial_setup *setup, const char *policy, uint64_t capacity_bytes,
                       char *text, size_t text_bytes)
{
    if (setup->as_limit && capacity_bytes)
        snprintf(text, text_bytes, "%s%slimit=%" PRIu64, policy, strchr(policy, ':') ? "," : ":",
                 capacity_bytes);
    else
        snprintf(text, text_bytes, "%s", policy);
}

/* Whether the policy notices the capacity only by failed calls. PyTorch's does, unless one of these
 * settings is used. A fraction of 1 is no limit. */
static bool is_blind(const struct trial_setup *setup, const struct ar_spec *spec)
{
    static const char *const sees[] = {"expandable_segments", "conf", "limit"};
    const struct ar_spec_link *link = &spec->links[spec->link_count - 1];
    const char *fraction = ar_spec_value(spec, "per_process_memory_fraction");
    if (fraction && strcmp(fraction, "1") != 0)
        return false;
    if (setup->as_limit || setup->has_outside || spec->link_count > 1 ||
        strcmp(link->name, "torch") != 0)
        return false;
    for (size_t i = 0; i < AR_COUNT(sees); i++)
        if (ar_spec_value(spec, sees[i]))
            return false;
    return true;
}

/* The capacity of the device; 0: its own. A limit of the policy is less than that of the card. */
static uint64_t device_bytes(const struct trial_setup *setup, uint64_t capacity_bytes)
{
    uint64_t whole_bytes = setup->whole_bytes ? setup->whole_bytes : setup->card_bytes;
    if (!setup->as_limit || !capacity_bytes)
        return capacity_bytes ? capacity_bytes : setup->whole_bytes;
    return capacity_bytes < whole_bytes ? setup->whole_bytes : 2 * capacity_bytes;
}

/* Calls that fail at this capacity also fail at a lower one, and successful calls need at most the
 * peak. So every capacity from the peak up to this one gives the same run. */
static void note_enough(const struct trial_setup *setup, const struct ar_spec *spec,
                        const struct session *session, struct trial *out)
{
    if (out->passed && is_blind(setup, spec))
        out->enough_bytes = out->peak_physical_bytes + session->device->counters.others_bytes;
}

static enum ar_status run_once(const struct trial_setup *setup, struct trace_source *trace,
                               const char *policy, uint64_t capacity_bytes, struct manner *manner,
                               struct trial *out, struct ar_error *error)
{
    AR_CLOSED(session_device_end) struct session_device device = {0};
    struct session session;
    AR_CLOSED(ar_spec_close) struct ar_spec spec = {0};
    char text[640];
    *out = (struct trial){0};
    write_spec(setup, policy, capacity_bytes, text, sizeof text);
    AR_TRY(ar_spec_parse(text, &spec, error));
    AR_TRY(session_device_as(&device, setup->device, NULL, device_bytes(setup, capacity_bytes),
                             error));
    enum ar_status status = session_open(&session, &spec, &device.spec, setup->seed, NULL, error);
    if (!status) {
        out->begun = true;
        out->capacity_bytes = session.device->props.capacity_bytes;
        const struct ar_policy_ops *ops = session.policy->ops;
        if (!ops->setting || !ops->setting(session.policy, out->setting, sizeof out->setting))
            out->setting[0] = '\0';
        if (setup->frees == REPLAY_RECORDED && trace->info.has_split_frees && !setup->as_run)
            status = waiting_wrap(&session, trace->info.streams, error);
        AR_THEN(status, replay(setup, trace, &session, manner, out, error));
        manner->is_equal = lean_is_equal(session.device, session.policy);
        if (!status)
            note_enough(setup, &spec, &session, out);
        if (is_untimed(setup, trace, ops) &&
            (!capacity_bytes || capacity_bytes >= setup->live_peak_bytes))
            out->sensitivity = TRIAL_UNTIMED;
        AR_THEN(status, session_end(&session, error));
        session_close(&session);
    }
    if (says_no(status)) {
        out->begun = false;
        out->full = status == AR_NO_MEMORY || status == AR_REFUSED;
        snprintf(out->why, sizeof out->why, "%.190s", error->text);
        status = AR_OK;
    }
    return status;
}

/* The same; a policy that exceeds its limit fails. If it does by the card's count, the run is made
 * again with the policy's own, which decides. */
static enum ar_status run(const struct trial_setup *setup, struct trace_source *trace,
                          const char *policy, uint64_t capacity_bytes, struct manner *manner,
                          struct trial *out, struct ar_error *error)
{
    AR_TRY(run_once(setup, trace, policy, capacity_bytes, manner, out, error));
    if (overran(setup, capacity_bytes, out) && !manner->peaks) {
        manner->peaks = true;
        AR_TRY(run_once(setup, trace, policy, capacity_bytes, manner, out, error));
    }
    if (overran(setup, capacity_bytes, out)) {
        out->passed = false;
        out->cause = REPLAY_CAUSE_CAPACITY;
    }
    return AR_OK;
}

/* The same with the trace in fewer events, if `lean` is not NULL and has any. */
static enum ar_status run_lean(const struct trial_setup *setup, struct trace_source *trace,
                               const struct lean *lean, const char *policy, uint64_t capacity_bytes,
                               struct manner *manner, struct trial *out, struct ar_error *error)
{
    struct lean_source source;
    if (!lean || !lean->events)
        return run(setup, trace, policy, capacity_bytes, manner, out, error);
    manner->lean = lean;
    lean_open(lean, &source);
    return run(setup, &source.base, policy, capacity_bytes, manner, out, error);
}

enum ar_status trial_run(const struct trial_setup *setup, struct trace_source *trace,
                         const char *policy, uint64_t capacity_bytes, bool peaks, struct trial *out,
                         struct ar_error *error)
{
    return run_lean(setup, trace, setup->timed, policy, capacity_bytes,
                    &(struct manner){.peaks = peaks}, out, error);
}

enum ar_status trial_alone(const struct trial_setup *setup, struct trace_source *trace,
                           const char *policy, struct trial *out, struct ar_error *error)
{
    struct trial_setup wide = *setup;
    enum ar_status status = trial_run(setup, trace, policy, 0, true, out, error);
    wide.whole_bytes = capacity_grid_end(setup->live_peak_bytes);
    if (status || !out->begun || out->passed || wide.whole_bytes <= out->capacity_bytes)
        return status;
    struct trial wider = {0};
    status = trial_run(&wide, trace, policy, 0, true, &wider, error);
    if (wider.begun && wider.passed)
        *out = wider;
    return status;
}

/* The search of one setting at decreasing capacities. */
struct walk {
    const struct trial_setup *setup;
    struct trace_source *trace;
    const char *policy;
    uint64_t enough_bytes, tried_bytes; /* of the last trial that passed; 0: none, or not known */
    bool needs_times;                   /* a trial without times was not equal */
};

/* A trial whose times are not needed. */
static enum ar_status try_quickly(struct walk *self, uint64_t bytes, struct trial *out,
                                  struct ar_error *error)
{
    const struct lean *lean = self->setup->timeless;
    if (lean && lean->events && !self->needs_times) {
        struct manner manner = {0};
        enum ar_status status =
            run_lean(self->setup, self->trace, lean, self->policy, bytes, &manner, out, error);
        if (manner.is_equal)
            return status;
        self->needs_times = true;
    }
    return trial_run(self->setup, self->trace, self->policy, bytes, false, out, error);
}

static enum ar_status passes(struct walk *self, uint64_t bytes, bool *passed,
                             struct ar_error *error)
{
    struct trial trial = {0};
    *passed = self->enough_bytes && bytes >= self->enough_bytes && bytes <= self->tried_bytes;
    if (*passed)
        return AR_OK;
    enum ar_status status = try_quickly(self, bytes, &trial, error);
    *passed = trial.begun && trial.passed;
    if (*passed) {
        self->enough_bytes = trial.enough_bytes;
        self->tried_bytes = bytes;
    }
    return status;
}

static uint64_t step_at(const struct trial_setup *setup, uint64_t bytes)
{
    bool coarse = bytes / 2 > setup->live_peak_bytes;
    uint64_t step = setup->live_peak_bytes / 100 * (coarse ? COARSE_PER_CENT : FINE_PER_CENT);
    return step > UNIT_BYTES ? ar_size_round_up(step, UNIT_BYTES) : UNIT_BYTES;
}

/* The number of coarse steps that a search goes down at once: as many as are that share of the
 * capacity, and at most those to the first fine step. After a failure there it goes one by one. */
static uint64_t steps_at_once(const struct trial_setup *setup, uint64_t bytes, uint64_t step)
{
    uint64_t many = bytes / 100 * COARSE_PER_CENT / step;
    if (bytes / 2 <= setup->live_peak_bytes || many < 2)
        return 1;
    uint64_t left = (bytes - 2 * setup->live_peak_bytes + step - 1) / step;
    return many < left ? many : left;
}

/* Finds the edge between `low`, which fails, and *high, which passes, to 2 MiB. */
static enum ar_status bisect(struct walk *self, uint64_t low, uint64_t *high,
                             struct ar_error *error)
{
    while (*high - low > UNIT_BYTES) {
        uint64_t middle = low + ar_size_round_down((*high - low) / 2, UNIT_BYTES);
        bool there;
        AR_TRY(passes(self, middle, &there, error));
        *high = there ? middle : *high;
        low = there ? low : middle;
    }
    return AR_OK;
}

/* `alone`: a trial with all of the card; NULL: none was run. */
static enum ar_status walk_down(const struct trial_setup *setup, struct trace_source *trace,
                                const char *policy, const struct trial *alone, uint64_t from_bytes,
                                uint64_t *safe_bytes, struct ar_error *error)
{
    uint64_t least = ar_size_round_up(setup->live_peak_bytes, UNIT_BYTES);
    uint64_t high = ar_size_round_up(from_bytes, UNIT_BYTES), low = high;
    struct walk walk = {.setup = setup, .trace = trace, .policy = policy};
    bool passed = false, careful = false;
    if (alone) {
        walk.enough_bytes = alone->enough_bytes;
        walk.tried_bytes = alone->capacity_bytes;
    }
    *safe_bytes = 0;
    enum ar_status begun = passes(&walk, high, &passed, error);
    if (begun || !passed)
        return begun;
    while (passed && high > least) { /* no capacity below the live peak passes */
        uint64_t step = step_at(setup, high);
        uint64_t many = careful ? 1 : steps_at_once(setup, high, step);
        low = high - least > many * step ? high - many * step : least;
        AR_TRY(passes(&walk, low, &passed, error));
        high = passed ? low : high;
        careful |= !passed; /* from here on one by one */
        passed |= many > 1;
    }
    *safe_bytes = high;
    return passed ? AR_OK : bisect(&walk, low, safe_bytes, error);
}

enum ar_status trial_safe(const struct trial_setup *setup, struct trace_source *trace,
                          const char *policy, uint64_t from_bytes, uint64_t *safe_bytes,
                          struct ar_error *error)
{
    return walk_down(setup, trace, policy, NULL, from_bytes, safe_bytes, error);
}

enum ar_status trial_safe_on(const struct trial_setup *setup, struct trace_source *trace,
                             const char *policy, const uint64_t *grid_bytes, size_t count,
                             uint64_t failed_bytes, uint64_t *safe_bytes, struct ar_error *error)
{
    struct walk walk = {.setup = setup, .trace = trace, .policy = policy};
    uint64_t above_bytes = 0; /* the lowest point above `failed_bytes` */
    bool passed = true, below = false;
    *safe_bytes = 0;
    while (count && passed && !below) {
        below = grid_bytes[count - 1] <= failed_bytes; /* one such point is tried too */
        AR_TRY(passes(&walk, grid_bytes[count - 1], &passed, error));
        if (passed)
            *safe_bytes = grid_bytes[--count];
        if (passed && !below)
            above_bytes = *safe_bytes;
    }
    if (*safe_bytes && !passed)
        AR_TRY(bisect(&walk, grid_bytes[count - 1], safe_bytes, error));
    if (!*safe_bytes || *safe_bytes > failed_bytes)
        return AR_OK;
    *safe_bytes = above_bytes; /* a gap that the grid does not show */
    return above_bytes ? bisect(&walk, failed_bytes, safe_bytes, error) : AR_OK;
}

enum ar_status trial_search(const struct trial_setup *setup, struct trace_source *trace,
                            const char *policy, const struct trial *alone, uint64_t *safe_bytes,
                            struct ar_error *error)
{
    uint64_t most = capacity_grid_end(setup->live_peak_bytes), card = most;
    uint64_t from = alone->peak_physical_bytes;
    from = from > alone->peak_reserved_bytes ? from : alone->peak_reserved_bytes;
    if (card > alone->capacity_bytes)
        card = ar_size_round_down(alone->capacity_bytes, UNIT_BYTES);
    from = from < card ? from : card;
    AR_TRY(walk_down(setup, trace, policy, alone, from, safe_bytes, error));
    if (!*safe_bytes && from < card) /* the policy leaves a part of the card unused */
        AR_TRY(walk_down(setup, trace, policy, alone, card, safe_bytes, error));
    if (!*safe_bytes && card < most)
        AR_TRY(walk_down(setup, trace, policy, alone, most, safe_bytes, error));
    return AR_OK;
}

/* ---- sensitivity ---- */

/* Runs the trial again with the other trace. A sensitivity that was found before is kept. */
static enum ar_status sensitivity_with(const struct trial_setup *setup, struct trace_source *trace,
                                       const char *policy, uint64_t capacity_bytes,
                                       enum trial_sensitivity sensitivity, struct trial *trial,
                                       struct ar_error *error)
{
    struct trial other = {0};
    struct trial_setup as_given = *setup; /* another trace, or with another mode of frees */
    as_given.timed = as_given.timeless = NULL;
    if (!trial->begun || trial->sensitivity)
        return AR_OK;
    AR_TRY(trial_run(&as_given, trace, policy, capacity_bytes, false, &other, error));
    if (other.begun && other.passed != trial->passed)
        trial->sensitivity = sensitivity;
    return AR_OK;
}

enum ar_status sensitivity_tries(const struct trial_setup *setup, struct trace_source *trace,
                                 const char *policy, uint64_t capacity_bytes, struct trial *trial,
                                 struct ar_error *error)
{
    if (trial->passed)
        return AR_OK;
    return sensitivity_with(setup, trace, policy, capacity_bytes, TRIAL_TRIES, trial, error);
}

enum ar_status sensitivity_releases(const struct trial_setup *setup, struct trace_source *trace,
                                    const char *policy, uint64_t capacity_bytes,
                                    struct trial *trial, struct ar_error *error)
{
    if (!capacity_bytes)
        return AR_OK;
    return sensitivity_with(setup, trace, policy, capacity_bytes, TRIAL_RELEASES, trial, error);
}

enum ar_status sensitivity_late(const struct trial_setup *setup, struct trace_source *trace,
                                const char *policy, uint64_t capacity_bytes, struct trial *trial,
                                struct ar_error *error)
{
    struct trial_setup at_once = *setup;
    if (!capacity_bytes)
        return AR_OK;
    at_once.frees = REPLAY_AT_ONCE;
    AR_TRY(sensitivity_with(&at_once, trace, policy, capacity_bytes, TRIAL_LATE, trial, error));
    if (!setup->late_bytes || capacity_bytes <= setup->late_bytes)
        return AR_OK;
    uint64_t near_bytes =
        trial->passed ? capacity_bytes - setup->late_bytes : capacity_bytes + setup->late_bytes;
    return sensitivity_with(setup, trace, policy, near_bytes, TRIAL_LATE, trial, error);
}
