#include "sim/advise/trial.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/size.h"
#include "sim/advise/waiting.h"
#include "sim/experiment/session.h"
#include "workloads/trace/trace.h"

#define FINE_PER_CENT   2 /* of the live peak: steps up to twice that */
#define COARSE_PER_CENT 5 /* and above */
#define FROM_LIVE_PEAKS 4 /* a search begins there at most */
#define UNIT_BYTES      (2 * AR_MIB)
#define PAGE_BYTES      (20 * AR_MIB) /* the largest that PyTorch maps at once, by default */
#define JOBS_MOST       256

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

/* A limit is looked at before pages are mapped, so a growing segment may overrun it by a page. One
 * that took more than that does not keep to it. Its own count decides, which leaves out what the
 * card rounds up. */
static bool overran(const struct trial_setup *setup, uint64_t capacity_bytes,
                    const struct trial *trial)
{
    return setup->as_limit && capacity_bytes && trial->passed &&
           trial->peak_physical_bytes > capacity_bytes + PAGE_BYTES &&
           (!trial->peak_reserved_bytes ||
            trial->peak_reserved_bytes > capacity_bytes + PAGE_BYTES);
}

static enum ar_status replay(const struct trial_setup *setup, struct trace_source *trace,
                             struct session *session, bool exact, struct trial *out,
                             struct ar_error *error)
{
    struct replay_result result;
    const struct replay_config config = {
        .policy = session->policy,
        .device = session->device,
        .source = trace,
        .frees = setup->frees,
        .host = setup->host,
        .measure = exact ? REPLAY_METRICS_EXACT : REPLAY_METRICS_NONE,
        .stop_on_failure = true,
        .limit_bytes = session->limit_bytes,
    };
    enum ar_status status = session_plan(session, trace, setup->frees, error);
    if (!status)
        status = trace_rewind(trace, error);
    if (!status)
        status = replay_run(&config, &result, error);
    if (status)
        return status;
    if (setup->baseline && result.passed)
        baseline_report(setup->baseline, &result);
    note_metrics(&result, out);
    replay_result_close(&result);
    return AR_OK;
}

/* Of a policy that cannot begin here, or whose settings contradict each other: no fault of the
 * trace, which the caller has replayed before. */
static bool says_no(enum ar_status status)
{
    return status == AR_UNSUPPORTED || status == AR_NO_MEMORY || status == AR_REFUSED ||
           status == AR_INVALID;
}

/* When the driver's pool has memory again depends on when kernels end and on who waits for them. */
static bool is_untimed(const struct trial_setup *setup, const struct trace_source *trace,
                       const struct ar_policy_ops *ops)
{
    return (ops->capabilities & AR_POLICY_OPAQUE) && !trace->info.kernels &&
           setup->host == REPLAY_HOST_NONE;
}

/* The spec with the capacity as its limit, where that is how it is meant. */
static void write_spec(const struct trial_setup *setup, const char *policy, uint64_t capacity_bytes,
                       char *text, size_t text_bytes)
{
    if (setup->as_limit && capacity_bytes)
        snprintf(text, text_bytes, "%s%slimit=%" PRIu64, policy, strchr(policy, ':') ? "," : ":",
                 capacity_bytes);
    else
        snprintf(text, text_bytes, "%s", policy);
}

/* Does the policy know of the capacity only by calls that fail? PyTorch's does, but for what these
 * settings make of it. */
static bool is_blind(const struct trial_setup *setup, const struct ar_spec *spec)
{
    static const char *const sees[] = {"expandable_segments", "per_process_memory_fraction", "conf",
                                       "limit"};
    const struct ar_spec_link *link = &spec->links[spec->link_count - 1];
    if (setup->as_limit || setup->has_outside || spec->link_count > 1 ||
        strcmp(link->name, "torch") != 0)
        return false;
    for (size_t i = 0; i < link->pair_count; i++)
        for (size_t j = 0; j < sizeof sees / sizeof *sees; j++)
            if (strcmp(link->pairs[i].key, sees[j]) == 0)
                return false;
    return true;
}

/* What was refused at its capacity is refused at a lower one; what was granted took no more than
 * its peak. So nothing is different from that peak on. */
static void note_enough(const struct trial_setup *setup, const struct ar_spec *spec,
                        const struct session *session, struct trial *out)
{
    if (out->passed && is_blind(setup, spec))
        out->enough_bytes = out->peak_physical_bytes + session->device->counters.others_bytes;
}

enum ar_status trial_run(const struct trial_setup *setup, struct trace_source *trace,
                         const char *policy, uint64_t capacity_bytes, bool exact, struct trial *out,
                         struct ar_error *error)
{
    struct session_device device;
    struct session session;
    struct ar_spec spec;
    char text[640];
    *out = (struct trial){0};
    write_spec(setup, policy, capacity_bytes, text, sizeof text);
    enum ar_status status = ar_spec_parse(text, &spec, error);
    if (status)
        return status;
    status =
        session_device_with(&device, setup->device, setup->as_limit ? 0 : capacity_bytes, error);
    if (status) {
        ar_spec_close(&spec);
        return status;
    }
    status = session_open(&session, &spec, &device.spec, setup->seed, NULL, error);
    session_device_end(&device);
    if (!status) {
        out->begun = true;
        const struct ar_policy_ops *ops = session.policy->ops;
        if (!ops->setting || !ops->setting(session.policy, out->setting, sizeof out->setting))
            out->setting[0] = '\0';
        if (setup->frees == REPLAY_RECORDED && trace->info.has_split_frees)
            status = waiting_wrap(&session, trace->info.streams, error);
        if (!status)
            status = replay(setup, trace, &session, exact, out, error);
        if (!status)
            note_enough(setup, &spec, &session, out);
        if (is_untimed(setup, trace, ops) &&
            (!capacity_bytes || capacity_bytes >= setup->live_peak_bytes))
            out->doubt = TRIAL_UNTIMED;
        session_close(&session);
    }
    if (says_no(status)) {
        out->begun = false;
        snprintf(out->why, sizeof out->why, "%.190s", error->text);
        status = AR_OK;
    }
    ar_spec_close(&spec);
    if (!status && overran(setup, capacity_bytes, out) && !exact)
        return trial_run(setup, trace, policy, capacity_bytes, true, out, error);
    if (overran(setup, capacity_bytes, out)) {
        out->passed = false;
        out->cause = REPLAY_CAUSE_CAPACITY;
    }
    return status;
}

/* One setting at falling capacities. */
struct walk {
    const struct trial_setup *setup;
    struct trace_source *trace;
    const char *policy;
    uint64_t enough_bytes, tried_bytes; /* of the last one that passed; 0: none, or not known */
};

static enum ar_status passes(struct walk *self, uint64_t bytes, bool *passed,
                             struct ar_error *error)
{
    struct trial trial = {0};
    *passed = self->enough_bytes && bytes >= self->enough_bytes && bytes <= self->tried_bytes;
    if (*passed)
        return AR_OK;
    enum ar_status status =
        trial_run(self->setup, self->trace, self->policy, bytes, false, &trial, error);
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

enum ar_status trial_safe(const struct trial_setup *setup, struct trace_source *trace,
                          const char *policy, uint64_t from_bytes, uint64_t *safe_bytes,
                          struct ar_error *error)
{
    uint64_t least = ar_size_round_up(setup->live_peak_bytes, UNIT_BYTES);
    uint64_t high = ar_size_round_up(from_bytes, UNIT_BYTES), low = high;
    struct walk walk = {.setup = setup, .trace = trace, .policy = policy};
    bool passed;
    *safe_bytes = 0;
    enum ar_status begun = passes(&walk, high, &passed, error);
    if (begun || !passed)
        return begun;
    while (passed && high > least) { /* below the live peak nothing passes */
        uint64_t step = step_at(setup, high);
        low = high - least > step ? high - step : least;
        enum ar_status status = passes(&walk, low, &passed, error);
        if (status)
            return status;
        high = passed ? low : high;
    }
    while (!passed && high - low > UNIT_BYTES) {
        uint64_t middle = low + ar_size_round_down((high - low) / 2, UNIT_BYTES);
        bool there;
        enum ar_status status = passes(&walk, middle, &there, error);
        if (status)
            return status;
        high = there ? middle : high;
        low = there ? low : middle;
    }
    *safe_bytes = high;
    return AR_OK;
}

enum ar_status trial_search(const struct trial_setup *setup, struct trace_source *trace,
                            const char *policy, const struct trial *alone, uint64_t *safe_bytes,
                            struct ar_error *error)
{
    uint64_t most = FROM_LIVE_PEAKS * ar_size_round_up(setup->live_peak_bytes, UNIT_BYTES);
    uint64_t from = alone->peak_physical_bytes;
    from = from > alone->peak_reserved_bytes ? from : alone->peak_reserved_bytes;
    if (setup->card_bytes && most > setup->card_bytes)
        most = ar_size_round_down(setup->card_bytes, UNIT_BYTES);
    from = from < most ? from : most;
    enum ar_status status = trial_safe(setup, trace, policy, from, safe_bytes, error);
    if (!status && !*safe_bytes && from < most) /* it leaves a part of the card to others */
        status = trial_safe(setup, trace, policy, most, safe_bytes, error);
    return status;
}

struct crew {
    pthread_mutex_t lock;
    size_t count, next, failed;
    trial_work *work;
    trial_done *done;
    void *argument;
    enum ar_status status;
    struct ar_error error;
};

struct member {
    struct crew *crew;
    struct trace_source *trace;
    pthread_t thread;
    bool made;
};

static void *member_main(void *argument)
{
    struct member *self = argument;
    struct crew *crew = self->crew;
    struct ar_error error = {""};
    pthread_mutex_lock(&crew->lock);
    while (crew->next < crew->count && !crew->status) {
        size_t number = crew->next++;
        pthread_mutex_unlock(&crew->lock);
        enum ar_status status = crew->work(crew->argument, number, self->trace, &error);
        pthread_mutex_lock(&crew->lock);
        if (crew->done)
            crew->done(crew->argument);
        if (status && number < crew->failed) {
            crew->failed = number;
            crew->status = status;
            crew->error = error;
        }
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

enum ar_status trial_each(struct trace_source *trace, unsigned jobs, size_t count, trial_work *work,
                          trial_done *done, void *argument, struct ar_error *error)
{
    struct member members[JOBS_MOST] = {{0}};
    struct crew crew = {
        .count = count, .failed = count, .work = work, .done = done, .argument = argument};
    enum ar_status status = AR_OK;
    jobs = jobs > JOBS_MOST ? JOBS_MOST : jobs;
    if (pthread_mutex_init(&crew.lock, NULL))
        return ar_error_set(error, AR_HOST_MEMORY, "no lock can be made for the workers");
    members[0] = (struct member){.crew = &crew, .trace = trace};
    for (unsigned i = 1; i < jobs && i < count && !status; i++) {
        members[i].crew = &crew;
        status = trace_rewind(trace, error);
        if (!status)
            status = trace_memory_copy(trace, &members[i].trace, error);
    }
    for (unsigned i = 1; i < jobs && i < count && !status; i++)
        members[i].made = !pthread_create(&members[i].thread, NULL, member_main, &members[i]);
    if (!status)
        member_main(&members[0]);
    for (unsigned i = 1; i < jobs; i++) {
        if (members[i].made)
            pthread_join(members[i].thread, NULL);
        trace_close(members[i].trace);
    }
    pthread_mutex_destroy(&crew.lock);
    if (!status && crew.status) {
        *error = crew.error;
        status = crew.status;
    }
    return status;
}
