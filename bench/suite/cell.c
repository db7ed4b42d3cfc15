/* What a child sends is the bytes of one struct of this very program, and then of a thin series:
 * lengths, the cell's numbers, every enumeration and the ends of texts are looked at before any
 * of it is believed. What records borrow from the plan is never sent. */
#include "bench/suite/cell.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "bench/report/thin_series.h"
#include "workloads/workload.h"

/* The source of the cell's workload at its first event. */
static enum ar_status open_source(struct cell_worker *worker, const struct plan_cell *cell,
                                  struct ar_error *error)
{
    if (worker->source && worker->workload == cell->workload_text)
        return trace_rewind(worker->source, error);
    trace_close(worker->source);
    worker->source = NULL;
    worker->workload = cell->workload_text;
    return workload_open(cell->workload_text, &worker->source, error);
}

static void fill_record(struct run_record *record, const struct plan *plan,
                        const struct plan_cell *cell)
{
    const struct plan_policy *policy = &plan->policies[cell->policy];
    *record = (struct run_record){
        .policy_spec = policy->text,
        .workload_spec = plan->workloads[cell->workload].text,
        .device_spec = plan->devices.items[cell->device],
        .drawn_device_spec = cell->device_text,
        .ranked = !(policy->ops->capabilities & AR_POLICY_UNRANKED),
        .workload = plan->workloads[cell->workload].info,
        .device = plan->props[cell->device],
        .frees = cell->frees,
        .host = plan->suite->host,
        .repetition = cell->repetition,
        .seed = cell->seed,
    };
    snprintf(record->policy_name, sizeof record->policy_name, "%s", policy->ops->name);
}

/* The policy or the device could not begin: that is a result. */
static void not_started(struct run_record *record, enum ar_status status,
                        const struct ar_error *why)
{
    record->end = RUN_NOT_STARTED;
    record->unsupported = status == AR_UNSUPPORTED;
    snprintf(record->detail, sizeof record->detail, "not started: %.*s",
             (int)sizeof record->detail - 16,
             why->text[0] ? why->text : "the device has no memory");
}

/* What a cell asks for, on a device; it borrows from both. */
static struct experiment experiment_of(const struct cell_worker *worker, const struct plan *plan,
                                       const struct plan_cell *cell, const struct ar_spec *device)
{
    return (struct experiment){
        .policy = &plan->policies[cell->policy].spec,
        .device = device,
        .source = worker->source,
        .frees = cell->frees,
        .host = plan->suite->host,
        .measure = cell->measure,
        .stop_on_failure = plan->suite->stop_on_failure,
        .verify = plan->suite->verify,
        .measure_time = cell->measure_time,
        .seed = cell->seed,
        .observer = cell->observer,
    };
}

enum ar_status cell_run(struct cell_worker *worker, const struct plan *plan,
                        const struct plan_cell *cell, struct run_record *record,
                        struct ar_error *error)
{
    struct ar_spec device;
    struct replay_result result;
    enum ar_status status = open_source(worker, cell, error);
    if (status)
        return status;
    fill_record(record, plan, cell);
    status = ar_spec_parse(cell->device_text, &device, error);
    if (status)
        return status;
    device.catalog = plan->suite->catalog;
    const struct experiment experiment = experiment_of(worker, plan, cell, &device);
    status = experiment_run(&experiment, &result, &record->device, error);
    ar_spec_close(&device);
    if (status == AR_REFUSED || status == AR_UNSUPPORTED) {
        not_started(record, status, error);
        return AR_OK;
    }
    if (status)
        return ar_error_prefix(error, status, "%s with policy %s", record->workload.name,
                               record->policy_spec);
    record->workload = worker->source->info; /* a generator is counted by now */
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

#define RESULT_MAGIC UINT64_C(0x746c757365722d6c) /* "l-result" as it lies in memory */

struct cell_result {
    uint64_t magic;
    uint64_t policy, workload, device, repetition, seed; /* which cell it is of */
    struct trace_info info;
    struct ar_device_props props;
    uint64_t end, unsupported, passed, cause;
    char detail[sizeof((struct run_record *)0)->detail];
    uint64_t first_failed_event, first_failed_bytes;
    struct metric_values metrics;
    uint64_t series_bytes; /* that follow */
};

/* The bytes of a series that are in use; 0 where the cell has none. */
static size_t series_bytes(const struct plan_cell *cell)
{
    const struct thin_series *series = cell->thin;
    if (!series)
        return 0;
    return offsetof(struct thin_series, buckets) + series->count * sizeof series->buckets[0];
}

enum ar_status cell_pack(const struct plan_cell *cell, const struct run_record *record,
                         void **payload, size_t *bytes, struct ar_error *error)
{
    size_t more = series_bytes(cell);
    struct cell_result *result = calloc(1, sizeof *result + more);
    if (!result)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory left for a result");
    *result = (struct cell_result){
        .magic = RESULT_MAGIC,
        .policy = cell->policy,
        .workload = cell->workload,
        .device = cell->device,
        .repetition = cell->repetition,
        .seed = cell->seed,
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
        memcpy(result + 1, cell->thin, more);
    *payload = result;
    *bytes = sizeof *result + more;
    return AR_OK;
}

enum ar_status cell_work(void *argument, void **payload, size_t *bytes, struct ar_error *error)
{
    const struct cell_job *job = argument;
    struct cell_worker worker = {0};
    struct run_record record;
    enum ar_status status = cell_run(&worker, job->plan, job->cell, &record, error);
    trace_close(worker.source);
    return status ? status : cell_pack(job->cell, &record, payload, bytes, error);
}

#define ENDS(text) (memchr((text), '\0', sizeof(text)) != NULL)

static bool is_of_cell(const struct cell_result *result, const struct plan_cell *cell)
{
    return result->magic == RESULT_MAGIC && result->policy == cell->policy &&
           result->workload == cell->workload && result->device == cell->device &&
           result->repetition == cell->repetition && result->seed == cell->seed;
}

static bool is_sound(const struct cell_result *result)
{
    const struct trace_info *info = &result->info;
    for (int i = 0; i < METRIC_COUNT; i++)
        if ((unsigned)result->metrics.at[i].kind > METRIC_REAL)
            return false;
    return result->end < RUN_END_COUNT && result->unsupported <= 1 && result->passed <= 1 &&
           result->cause <= REPLAY_CAUSE_DRIVER && ENDS(info->name) && ENDS(info->recorder) &&
           ENDS(info->conf) && ENDS(info->card) && ENDS(info->format) && ENDS(result->detail) &&
           ENDS(result->props.kind) && ENDS(result->props.profile);
}

/* The series that came behind the result. */
static bool take_series(const struct plan_cell *cell, const void *bytes, size_t count)
{
    const size_t least = offsetof(struct thin_series, buckets);
    struct thin_series *series = cell->thin;
    if (!series)
        return count == 0;
    if (count < least || count > sizeof *series)
        return false;
    memcpy(series, bytes, count);
    return series->count <= THIN_BUCKETS &&
           count == least + series->count * sizeof series->buckets[0];
}

static void take_result(const struct cell_result *result, struct run_record *record)
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

enum ar_status cell_receive(const struct cell_job *job, const struct child_answer *answer,
                            struct run_record *record, struct ar_error *error)
{
    struct cell_result result;
    fill_record(record, job->plan, job->cell);
    if (answer->end != CHILD_ANSWERED) {
        record->end = answer->end == CHILD_TIMED_OUT ? RUN_TIMED_OUT : RUN_CRASHED;
        if (answer->end == CHILD_TIMED_OUT)
            snprintf(record->detail, sizeof record->detail, "timed out after %llu s",
                     (unsigned long long)job->plan->suite->timeout_s);
        else
            snprintf(record->detail, sizeof record->detail, "%s", answer->how);
        return AR_OK;
    }
    if (answer->status)
        return answer->status; /* its sentence is there already */
    if (answer->bytes >= sizeof result) {
        memcpy(&result, answer->payload, sizeof result);
        size_t rest = answer->bytes - sizeof result;
        const char *series = (const char *)answer->payload + sizeof result;
        if (is_of_cell(&result, job->cell) && result.series_bytes == rest && is_sound(&result) &&
            take_series(job->cell, series, rest)) {
            take_result(&result, record);
            return AR_OK;
        }
    }
    return ar_error_set(error, AR_CORRUPT,
                        "%s with policy %s: what its process sent is not the result of that run",
                        record->workload.name, record->policy_spec);
}
