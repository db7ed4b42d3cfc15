/* 1. Runs that share this process: workers take them in order from one counter. Each worker keeps
 *    the workload of its last run open, because runs of one workload are adjacent and reading a
 *    trace takes longer than many replays.
 * 2. Then, with no other thread, the runs that have a process of their own, as many at a time as
 *    there are jobs for them: one on a card, unless the user says otherwise.
 * 3. Repetitions go round: all runs once, then all runs again. So a machine that becomes slower
 *    affects all policies alike, and it does not look like a difference between them.
 * 4. After a failure no worker takes another run. Of several failures that of the first run is
 *    reported, which does not depend on the workers: every run before it was taken before. */
#include "bench/suite/matrix.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/suite/progress.h"
#include "bench/suite/run.h"

/* ---- the journal ---------------------------------------------------------------------------- */

static uint64_t add_text(uint64_t hash, const char *text)
{
    return fnv_add(hash, text, strlen(text) + 1);
}

/* The spec of a policy; of one in a shared object the file too. */
static uint64_t add_policy(uint64_t hash, const char *text)
{
    char path[4096];
    snprintf(path, sizeof path, "%.*s", (int)strcspn(text, ":"), text);
    const char *name = strrchr(path, '+') ? strrchr(path, '+') + 1 : path;
    hash = add_text(hash, text);
    return strchr(name, '/') ? journal_add_file(hash, name) : hash;
}

static uint64_t key_of(const struct plan *plan)
{
    const struct suite *suite = plan->suite;
    /* The last one: whether runs have series, which a folder of results holds. */
    const uint64_t how[] = {
        suite->frees, suite->host,   suite->measure, suite->seed,     suite->stop_on_failure,
        suite->time,  suite->verify, suite->isolate, plan->run_count, suite->output != NULL};
    uint64_t hash = journal_key();
    hash = fnv_add(hash, how, sizeof how);
    for (size_t i = 0; i < plan->policy_count; i++)
        hash = add_policy(hash, plan->policies[i].text);
    if (suite->pinned)
        hash = add_policy(hash, suite->pinned);
    for (size_t i = 0; i < plan->workload_count; i++) {
        const struct plan_workload *workload = &plan->workloads[i];
        hash = add_text(hash, workload->text);
        hash = fnv_add(hash, workload->info.sha256, sizeof workload->info.sha256);
    }
    for (size_t i = 0; i < plan->device_texts.count; i++)
        hash = add_text(hash, plan->device_texts.items[i]);
    return hash;
}

/* What a journal is read into. */
struct records {
    const struct plan *plan;
    struct run_record *at;
    bool *done; /* of the runs */
};

static bool take_record(void *argument, uint64_t run, const void *payload, size_t bytes)
{
    struct records *self = argument;
    struct ar_error error;
    if (run >= self->plan->run_count)
        return false;
    const struct run_job job = {self->plan, &self->plan->runs[run]};
    const struct child_answer answer = {.end = CHILD_ANSWERED, .payload = payload, .bytes = bytes};
    self->done[run] = run_receive(&job, &answer, &self->at[run], &error) == AR_OK;
    return self->done[run];
}

static enum ar_status add_record(struct journal *journal, const struct plan *plan, size_t run,
                                 const struct run_record *record, struct ar_error *error)
{
    void *payload = NULL;
    size_t bytes = 0;
    enum ar_status status = run_pack(&plan->runs[run], record, &payload, &bytes, error);
    if (!status)
        status = journal_add(journal, run, payload, bytes, error);
    free(payload);
    return status;
}

/* ---- the workers ---------------------------------------------------------------------------- */

struct matrix {
    const struct plan *plan;
    const struct plan_run *runs;
    struct run_record *records;
    size_t *order; /* the indices of the runs to do, in that order */
    size_t count;
    pthread_mutex_t lock; /* for all below */
    size_t next;
    size_t failed; /* the first of the order that failed; SIZE_MAX: none */
    enum ar_status status;
    struct ar_error error;
    struct progress progress;
    bool *done;              /* of the runs; NULL: none is */
    struct journal *journal; /* NULL: not wanted */
    bool longest_first;
};

/* By length of workload, then as in the plan. */
static int longest_first(const void *left, const void *right, void *argument)
{
    const struct matrix *self = argument;
    const size_t a = *(const size_t *)left, b = *(const size_t *)right;
    const struct plan_workload *workloads = self->plan->workloads;
    uint64_t a_events = workloads[self->runs[a].workload].info.events;
    uint64_t b_events = workloads[self->runs[b].workload].info.events;
    return a_events != b_events ? (a_events < b_events ? 1 : -1) : (a > b) - (a < b);
}

/* Puts the runs that share this process, or those that do not, in order, by repetition first. */
static void put_in_order(struct matrix *self, size_t count, bool alone)
{
    unsigned repetitions = 0;
    self->count = 0;
    self->next = 0;
    for (size_t i = 0; i < count; i++)
        if (self->runs[i].repetition >= repetitions)
            repetitions = self->runs[i].repetition + 1;
    for (unsigned repetition = 0; repetition < repetitions; repetition++)
        for (size_t i = 0; i < count; i++)
            if (self->runs[i].repetition == repetition && self->runs[i].alone == alone &&
                !(self->done && self->done[i]))
                self->order[self->count++] = i;
    if (self->longest_first)
        qsort_r(self->order, self->count, sizeof *self->order, longest_first, self);
}

/* The place in the order of the next run to do; SIZE_MAX if there is none. */
static size_t take_next(struct matrix *self)
{
    pthread_mutex_lock(&self->lock);
    size_t place = self->failed == SIZE_MAX && self->next < self->count ? self->next++ : SIZE_MAX;
    pthread_mutex_unlock(&self->lock);
    return place;
}

static void finish(struct matrix *self, size_t place, enum ar_status status, struct ar_error *error)
{
    const size_t index = self->order[place];
    const struct plan_run *run = &self->runs[index];
    pthread_mutex_lock(&self->lock);
    if (!status && self->journal)
        status = add_record(self->journal, self->plan, index, &self->records[index], error);
    if (status && place < self->failed) {
        self->failed = place;
        self->status = status;
        self->error = *error;
    }
    progress_step(&self->progress, self->plan->workloads[run->workload].text);
    pthread_mutex_unlock(&self->lock);
}

static void *work(void *argument)
{
    struct matrix *self = argument;
    struct run_worker worker = {0};
    for (size_t place; (place = take_next(self)) != SIZE_MAX;) {
        struct ar_error error = {{0}};
        size_t run = self->order[place];
        enum ar_status status =
            run_execute(&worker, self->plan, &self->runs[run], &self->records[run], &error);
        finish(self, place, status, &error);
    }
    trace_close(worker.source);
    return NULL;
}

static enum ar_status run_together(struct matrix *self, unsigned jobs, struct ar_error *error)
{
    if (jobs > self->count)
        jobs = self->count ? (unsigned)self->count : 1;
    pthread_t *threads = calloc(jobs, sizeof *threads);
    if (!threads)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory left for the workers");
    unsigned started = 0;
    while (started + 1 < jobs && pthread_create(&threads[started], NULL, work, self) == 0)
        started++;
    work(self); /* this thread is a worker too, even if no other could be created */
    for (unsigned i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    return AR_OK;
}

/* The processes that run, and the run of each. */
struct crew {
    struct child *children;
    struct run_job *jobs;
    size_t *places;
    size_t count;
};

static void begin_next(struct matrix *self, struct crew *crew, size_t child)
{
    struct ar_error error = {{0}};
    size_t place = take_next(self);
    if (place == SIZE_MAX)
        return;
    crew->places[child] = place;
    crew->jobs[child] = (struct run_job){self->plan, &self->runs[self->order[place]]};
    enum ar_status status = child_begin(&crew->children[child], run_work, &crew->jobs[child],
                                        self->plan->suite->timeout_s, &error);
    if (status)
        finish(self, place, status, &error);
}

static void work_alone(struct matrix *self, struct crew *crew)
{
    for (size_t i = 0; i < crew->count; i++)
        begin_next(self, crew, i);
    for (size_t ended; (ended = child_wait(crew->children, crew->count)) < crew->count;) {
        struct ar_error error = {{0}};
        struct child_answer answer;
        size_t place = crew->places[ended];
        child_answer(&crew->children[ended], &answer, &error);
        enum ar_status status =
            run_receive(&crew->jobs[ended], &answer, &self->records[self->order[place]], &error);
        child_close(&crew->children[ended]);
        finish(self, place, status, &error);
        begin_next(self, crew, ended);
    }
}

static enum ar_status run_alone(struct matrix *self, unsigned jobs, struct ar_error *error)
{
    struct crew crew = {.count = jobs < self->count ? jobs : self->count};
    if (crew.count == 0)
        return AR_OK;
    crew.children = calloc(crew.count, sizeof *crew.children);
    crew.jobs = calloc(crew.count, sizeof *crew.jobs);
    crew.places = calloc(crew.count, sizeof *crew.places);
    enum ar_status status = AR_OK;
    if (crew.children && crew.jobs && crew.places)
        work_alone(self, &crew);
    else
        status = ar_error_set(error, AR_HOST_MEMORY, "no host memory left for the processes");
    free(crew.children);
    free(crew.jobs);
    free(crew.places);
    return status;
}

static enum ar_status run_all(struct matrix *self, size_t count, unsigned jobs,
                              struct ar_error *error)
{
    size_t left = 0;
    self->failed = SIZE_MAX;
    self->order = calloc(count ? count : 1, sizeof *self->order);
    if (!self->order)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory left for the order of runs");
    for (size_t i = 0; i < count; i++)
        left += !(self->done && self->done[i]);
    pthread_mutex_init(&self->lock, NULL);
    progress_begin(&self->progress, left);
    put_in_order(self, count, false);
    enum ar_status status = run_together(self, jobs, error);
    if (!status && !self->status) {
        put_in_order(self, count, true);
        status = run_alone(self, jobs == 1 ? 1 : plan_jobs_alone(self->plan), error);
    }
    progress_end(&self->progress);
    pthread_mutex_destroy(&self->lock);
    free(self->order);
    if (self->status && error)
        *error = self->error;
    return self->status ? self->status : status;
}

enum ar_status matrix_run(const struct plan *plan, const struct plan_run *runs, size_t count,
                          unsigned jobs, struct run_record *records, struct ar_error *error)
{
    struct matrix self = {.plan = plan, .runs = runs, .records = records};
    return run_all(&self, count, jobs, error);
}

enum ar_status matrix_run_journal(const struct plan *plan, unsigned jobs, bool longest_first,
                                  const char *path, struct journal *journal, bool *opened,
                                  struct run_record *records, struct ar_error *error)
{
    struct matrix self = {.plan = plan,
                          .runs = plan->runs,
                          .records = records,
                          .done = calloc(plan->run_count + 1, sizeof *self.done),
                          .journal = journal,
                          .longest_first = longest_first};
    struct records taken = {plan, records, self.done};
    enum ar_status status =
        self.done ? journal_open(journal, path, key_of(plan), take_record, &taken, error)
                  : ar_error_set(error, AR_HOST_MEMORY, "no host memory left for the journal");
    *opened = !status;
    if (!status)
        status = run_all(&self, plan->run_count, jobs, error);
    free(self.done);
    return status;
}
