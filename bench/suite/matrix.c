/* Workers take the cells in their order from one counter. Each keeps the workload of its last
 * cell open, since cells of one workload stand together and reading a trace costs more than
 * many a replay. After a failure nobody takes another cell; of several failures the one of the
 * lowest cell is reported, which does not depend on the workers: every cell before it was
 * taken before it. */
#include "bench/suite/matrix.h"

#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "bench/suite/progress.h"
#include "workloads/workload.h"

struct matrix {
    const struct plan *plan;
    const struct plan_cell *cells;
    size_t count;
    struct run_record *records;
    pthread_mutex_t lock; /* for all below */
    size_t next;
    size_t failed; /* the lowest cell that failed; SIZE_MAX: none */
    enum status status;
    struct error error;
    struct progress progress;
};

struct worker {
    struct trace_source *source; /* of `workload`; NULL: none is open */
    size_t workload;
};

/* The source of the cell's workload at its first event. */
static enum status open_source(struct worker *worker, const struct plan *plan,
                               const struct plan_cell *cell, struct error *error)
{
    if (worker->source && worker->workload == cell->workload)
        return trace_rewind(worker->source, error);
    trace_close(worker->source);
    worker->source = NULL;
    worker->workload = cell->workload;
    return workload_open(plan->workloads[cell->workload].text, &worker->source, error);
}

static void fill_record(struct run_record *record, const struct plan *plan,
                        const struct plan_cell *cell, const struct trace_info *info)
{
    const struct plan_policy *policy = &plan->policies[cell->policy];
    *record = (struct run_record){
        .policy_spec = policy->text,
        .workload_spec = plan->workloads[cell->workload].text,
        .device_spec = plan->devices.items[cell->device],
        .drawn_device_spec = cell->device_text,
        .ranked = !(policy->ops->capabilities & POLICY_UNRANKED),
        .workload = *info,
        .frees = cell->frees,
        .host = plan->suite->host,
        .repetition = cell->repetition,
        .seed = cell->seed,
    };
    snprintf(record->policy_name, sizeof record->policy_name, "%s", policy->ops->name);
}

static enum status run_cell(struct worker *worker, const struct plan *plan,
                            const struct plan_cell *cell, struct run_record *record,
                            struct error *error)
{
    struct spec device;
    struct replay_result result;
    enum status status = open_source(worker, plan, cell, error);
    if (status)
        return status;
    fill_record(record, plan, cell, &worker->source->info);
    status = spec_parse(cell->device_text, &device, error);
    if (status)
        return status;
    const struct experiment experiment = {
        .policy = &plan->policies[cell->policy].spec,
        .device = &device,
        .source = worker->source,
        .frees = cell->frees,
        .host = plan->suite->host,
        .measure = cell->measure,
        .stop_on_failure = plan->suite->stop_on_failure,
        .measure_time = cell->measure_time,
        .seed = cell->seed,
        .row = cell->row,
        .sample = cell->sample,
        .argument = cell->argument,
        .finished = cell->finished,
        .finished_argument = cell->finished_argument,
    };
    status = experiment_run(&experiment, &result, &record->device, error);
    spec_close(&device);
    if (status)
        return error_prefix(error, status, "%s with policy %s", record->workload.name,
                            record->policy_spec);
    record->workload = worker->source->info; /* a generator is counted by now */
    record->passed = result.passed;
    record->first_failed_event = result.first_failed_event;
    record->first_failed_bytes = result.first_failed_bytes;
    record->cause = result.cause;
    record->metrics = result.metrics;
    replay_result_close(&result);
    return STATUS_OK;
}

/* The next cell to do, or SIZE_MAX where there is none. */
static size_t take_cell(struct matrix *self)
{
    pthread_mutex_lock(&self->lock);
    size_t cell = self->failed == SIZE_MAX && self->next < self->count ? self->next++ : SIZE_MAX;
    pthread_mutex_unlock(&self->lock);
    return cell;
}

static void finish_cell(struct matrix *self, size_t cell, enum status status,
                        const struct error *error)
{
    pthread_mutex_lock(&self->lock);
    if (status && cell < self->failed) {
        self->failed = cell;
        self->status = status;
        self->error = *error;
    }
    progress_step(&self->progress, self->plan->workloads[self->cells[cell].workload].text);
    pthread_mutex_unlock(&self->lock);
}

static void *work(void *argument)
{
    struct matrix *self = argument;
    struct worker worker = {0};
    for (size_t cell; (cell = take_cell(self)) != SIZE_MAX;) {
        struct error error = {{0}};
        enum status status =
            run_cell(&worker, self->plan, &self->cells[cell], &self->records[cell], &error);
        finish_cell(self, cell, status, &error);
    }
    trace_close(worker.source);
    return NULL;
}

enum status matrix_run(const struct plan *plan, const struct plan_cell *cells, size_t count,
                       unsigned jobs, struct run_record *records, struct error *error)
{
    struct matrix self = {
        .plan = plan, .cells = cells, .count = count, .records = records, .failed = SIZE_MAX};
    if (jobs > count)
        jobs = count ? (unsigned)count : 1;
    pthread_t *threads = calloc(jobs, sizeof *threads);
    if (!threads)
        return error_set(error, STATUS_HOST_MEMORY, "no host memory left for the workers");
    pthread_mutex_init(&self.lock, NULL);
    progress_begin(&self.progress, count);
    unsigned started = 0;
    while (started + 1 < jobs && pthread_create(&threads[started], NULL, work, &self) == 0)
        started++;
    work(&self); /* this thread is a worker too, also where no other could be made */
    for (unsigned i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    progress_end(&self.progress);
    pthread_mutex_destroy(&self.lock);
    free(threads);
    if (self.status && error)
        *error = self.error;
    return self.status;
}
