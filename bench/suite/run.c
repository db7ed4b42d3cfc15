/* A child sends the bytes of one struct of this same program, and then of a thin series. Lengths,
 * the numbers of the run, every enumeration and the ends of texts are checked before they are used.
 * What records borrow from the plan is not sent. */
#include "bench/suite/run.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "bench/report/run_output.h"
#include "workloads/workload.h"

/* Opens the workload of the run, or returns to its first event. */
static enum ar_status open_source(struct run_worker *worker, const struct plan_run *run,
                                  struct ar_error *error)
{
    if (worker->source && worker->workload == run->workload_text)
        return trace_rewind(worker->source, error);
    trace_close(worker->source);
    worker->source = NULL;
    worker->workload = run->workload_text;
    return workload_open(run->workload_text, &worker->source, error);
}

static void fill_record(struct run_record *record, const struct plan *plan,
                        const struct plan_run *run)
{
    const struct plan_policy *policy = &plan->policies[run->policy];
    *record = (struct run_record){
        .policy_spec = policy->text,
        .workload_spec = plan->workloads[run->workload].text,
        .device_spec = plan->devices.items[run->device],
        .drawn_device_spec = run->device_text,
        .ranked = !(policy->ops->capabilities & AR_POLICY_UNRANKED),
        .workload = plan->workloads[run->workload].info,
        .device = plan->props[run->device],
        .frees = run->frees,
        .host = plan->suite->host,
        .repetition = run->repetition,
        .seed = run->seed,
    };
    snprintf(record->policy_name, sizeof record->policy_name, "%s", policy->ops->name);
}

/* The policy or the device could not start: that is a result. */
static void not_started(struct run_record *record, enum ar_status status,
                        const struct ar_error *why)
{
    record->end = RUN_NOT_STARTED;
    record->unsupported = status == AR_UNSUPPORTED;
    snprintf(record->detail, sizeof record->detail, "not started: %.*s",
             (int)sizeof record->detail - 16,
             why->text[0] ? why->text : "the device has no memory");
}

/* The experiment of a run; it borrows from the run and the device. */
static struct experiment experiment_of(const struct run_worker *worker, const struct plan *plan,
                                       const struct plan_run *run, const struct ar_spec *device)
{
    return (struct experiment){
        .policy = &plan->policies[run->policy].spec,
        .pinned =
            plan->policies[run->policy].pinned_text ? &plan->policies[run->policy].pinned : NULL,
        .device = device,
        .source = worker->source,
        .frees = run->frees,
        .host = plan->suite->host,
        .measure = run->measure,
        .stop_on_failure = plan->suite->stop_on_failure,
        .verify = plan->suite->verify,
        .measure_time = run->measure_time,
        .seed = run->seed,
        .observer = run->observer,
    };
}

enum ar_status run_execute(struct run_worker *worker, const struct plan *plan,
                           const struct plan_run *run, struct run_record *record,
                           struct ar_error *error)
{
    struct ar_spec device;
    struct replay_result result;
    enum ar_status status = open_source(worker, run, error);
    if (status)
        return status;
    fill_record(record, plan, run);
    status = ar_spec_parse(run->device_text, &device, error);
    if (status)
        return status;
    device.catalog = plan->suite->catalog;
    const struct experiment experiment = experiment_of(worker, plan, run, &device);
    status = experiment_run(&experiment, &result, &record->device, error);
    ar_spec_close(&device);
    if (status == AR_REFUSED || status == AR_UNSUPPORTED) {
        not_started(record, status, error);
        return AR_OK;
    }
    if (status)
        return ar_error_prefix(error, status, "%s with policy %s", record->workload.name,
                               record->policy_spec);
    record->workload = worker->source->info; /* a generator knows its length only now */
    record->passed = result.passed;
    record->first_failed_event = result.first_failed_event;
    record->first_failed_bytes = result.first_failed_bytes;
    record->cause = result.cause;
    if (!result.passed && result.cause == REPLAY_CAUSE_DRIVER)
        snprintf(record->detail, sizeof record->detail, "%.255s", result.problem);
    record->metrics = result.metrics;
    replay_result_close(&result);
    return AR_OK;
}

enum ar_status run_find_capacity(const struct plan *plan, const struct plan_run *run,
                                 struct capacity_result *out, char *why, size_t why_bytes,
                                 struct ar_error *error)
{
    struct trace_source *source = NULL;
    struct ar_spec device;
    const struct plan_policy *policy = &plan->policies[run->policy];
    why[0] = '\0';
    enum ar_status status = workload_open(run->workload_text, &source, error);
    if (status)
        return status;
    status = ar_spec_parse(run->device_text, &device, error);
    if (!status) {
        device.catalog = plan->suite->catalog;
        const struct experiment experiment = {
            .policy = &policy->spec,
            .device = &device,
            .source = source,
            .frees = run->frees,
            .host = plan->suite->host,
            .measure = REPLAY_METRICS_NONE,
            .stop_on_failure = true,
            .seed = run->seed,
        };
        status = capacity_find(&experiment, plan_jobs(plan), out, error);
        if (status == AR_UNSUPPORTED) { /* the others may begin */
            snprintf(why, why_bytes, "not started: %.240s", error->text);
            status = AR_OK;
        }
        if (status)
            status = ar_error_prefix(error, status, "%s with policy %s",
                                     plan->workloads[run->workload].info.name, policy->text);
        ar_spec_close(&device);
    }
    trace_close(source);
    return status;
}

#define RESULT_MAGIC UINT64_C(0x746c757365722d6c) /* "l-result" in memory */

struct run_message {
    uint64_t magic;
    uint64_t policy, workload, device, repetition, seed; /* which run this is */
    struct trace_info info;
    struct ar_device_props props;
    uint64_t end, unsupported, passed, cause;
    char detail[sizeof((struct run_record *)0)->detail];
    uint64_t first_failed_event, first_failed_bytes;
    struct metric_values metrics;
    uint64_t series_bytes; /* bytes that follow */
};

/* The bytes of the series in use; 0 if the run has none. */
static size_t series_bytes(const struct plan_run *run)
{
    const struct thin_series *series = run->thin;
    if (!series)
        return 0;
    return offsetof(struct thin_series, buckets) + series->count * sizeof series->buckets[0];
}

enum ar_status run_pack(const struct plan_run *run, const struct run_record *record, void **payload,
                        size_t *bytes, struct ar_error *error)
{
    size_t more = series_bytes(run);
    struct run_message *result = calloc(1, sizeof *result + more);
    if (!result)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory left for a result");
    *result = (struct run_message){
        .magic = RESULT_MAGIC,
        .policy = run->policy,
        .workload = run->workload,
        .device = run->device,
        .repetition = run->repetition,
        .seed = run->seed,
        .info = record->workload,
        .props = record->device,
        .end = (uint64_t)record->end,
        .unsupported = record->unsupported,
        .passed = record->passed,
        .cause = (uint64_t)record->cause,
        .first_failed_event = record->first_failed_event,
        .first_failed_bytes = record->first_failed_bytes,
        .metrics = record->metrics,
        .series_bytes = more,
    };
    memcpy(result->detail, record->detail, sizeof result->detail);
    if (more)
        memcpy(result + 1, run->thin, more);
    *payload = result;
    *bytes = sizeof *result + more;
    return AR_OK;
}

enum ar_status run_work(void *argument, void **payload, size_t *bytes, struct ar_error *error)
{
    const struct run_job *job = argument;
    struct run_worker worker = {0};
    struct run_record record;
    enum ar_status status = run_execute(&worker, job->plan, job->run, &record, error);
    trace_close(worker.source);
    return status ? status : run_pack(job->run, &record, payload, bytes, error);
}

#define ENDS(text) (memchr((text), '\0', sizeof(text)) != NULL)

static bool is_of_run(const struct run_message *result, const struct plan_run *run)
{
    return result->magic == RESULT_MAGIC && result->policy == run->policy &&
           result->workload == run->workload && result->device == run->device &&
           result->repetition == run->repetition && result->seed == run->seed;
}

static bool is_sound(const struct run_message *result)
{
    const struct trace_info *info = &result->info;
    for (int i = 0; i < METRIC_COUNT; i++)
        if ((unsigned)result->metrics.at[i].kind > METRIC_REAL)
            return false;
    return result->end < RUN_END_COUNT && result->unsupported <= 1 && result->passed <= 1 &&
           result->cause <= REPLAY_CAUSE_DRIVER && ENDS(info->name) && ENDS(info->recorder) &&
           ENDS(info->conf) && ENDS(info->card) && ENDS(info->format) && ENDS(result->detail) &&
           ENDS(result->props.kind) && ENDS(result->props.profile) && ENDS(result->props.costs_of);
}

/* The series that follows the result. */
static bool take_series(const struct plan_run *run, const void *bytes, size_t count)
{
    const size_t least = offsetof(struct thin_series, buckets);
    struct thin_series *series = run->thin;
    if (!series)
        return count == 0;
    if (count < least || count > sizeof *series)
        return false;
    memcpy(series, bytes, count);
    return series->count <= THIN_BUCKETS &&
           count == least + series->count * sizeof series->buckets[0];
}

static void take_result(const struct run_message *result, struct run_record *record)
{
    record->workload = result->info;
    record->device = result->props;
    record->end = (enum run_end)result->end;
    record->unsupported = result->unsupported == 1;
    record->passed = result->passed == 1;
    record->cause = (enum replay_cause)result->cause;
    memcpy(record->detail, result->detail, sizeof record->detail);
    record->first_failed_event = result->first_failed_event;
    record->first_failed_bytes = result->first_failed_bytes;
    record->metrics = result->metrics;
}

#define BROKEN_MOST 230

/* The sentence of run_execute without the workload and the policy, which stand beside it. */
static const char *without_run(const char *text, const struct run_record *record)
{
    char with[600];
    snprintf(with, sizeof with, "%s with policy %s: ", record->workload.name, record->policy_spec);
    return strncmp(text, with, strlen(with)) == 0 ? text + strlen(with) : text;
}

enum ar_status run_receive(const struct run_job *job, const struct child_answer *answer,
                           struct run_record *record, struct ar_error *error)
{
    struct run_message result;
    fill_record(record, job->plan, job->run);
    if (answer->end != CHILD_ANSWERED) {
        record->end = answer->end == CHILD_TIMED_OUT ? RUN_TIMED_OUT : RUN_CRASHED;
        if (answer->end == CHILD_TIMED_OUT)
            snprintf(record->detail, sizeof record->detail, "timed out after %llu s",
                     (unsigned long long)job->plan->suite->timeout_s);
        else
            snprintf(record->detail, sizeof record->detail, "%s", answer->how);
        return AR_OK;
    }
    if (answer->status == AR_CORRUPT &&
        registry_names_object(&job->plan->policies[job->run->policy].spec)) {
        record->end = RUN_CRASHED;
        snprintf(record->detail, sizeof record->detail, RUN_BROKEN "%.*s", BROKEN_MOST,
                 without_run(error->text, record));
        return AR_OK;
    }
    if (answer->status)
        return answer->status; /* its error is set already */
    if (answer->bytes >= sizeof result) {
        memcpy(&result, answer->payload, sizeof result);
        size_t rest = answer->bytes - sizeof result;
        const char *series = (const char *)answer->payload + sizeof result;
        if (is_of_run(&result, job->run) && result.series_bytes == rest && is_sound(&result) &&
            take_series(job->run, series, rest)) {
            take_result(&result, record);
            return AR_OK;
        }
    }
    return ar_error_set(error, AR_CORRUPT,
                        "%s with policy %s: what its process sent is not the result of that run",
                        record->workload.name, record->policy_spec);
}
