/* Executes one run of a plan (run.h), here or in a child. A child sends the bytes of one struct of
 * this same program, and then of a thin series. Lengths, the numbers of the run, every enumeration
 * and the ends of texts are checked before they are used. What records borrow from the plan is not
 * sent. */
#include "bench/suite/run.h"

#include <pthread.h>

#include "allocators/base/fnv.h"
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

/* The policy or the device could not start, or could not follow the workload: that is a result. */
static void not_started(struct run_record *record, enum ar_status status,
                        const struct ar_error *why)
{
    record->end = RUN_NOT_STARTED;
    record->unsupported = status == AR_UNSUPPORTED;
    record->bad_input = status == AR_FORMAT;
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
    AR_CLOSED(ar_spec_close) struct ar_spec device = {0};
    AR_CLOSED(replay_result_close) struct replay_result result = {0};
    AR_TRY(open_source(worker, run, error));
    fill_record(record, plan, run);
    AR_TRY(ar_spec_parse(run->device_text, &device, error));
    device.catalog = plan->suite->catalog;
    const struct experiment experiment = experiment_of(worker, plan, run, &device);
    enum ar_status status = experiment_run(&experiment, &result, &record->device, error);
    if (status == AR_REFUSED || status == AR_UNSUPPORTED || status == AR_FORMAT) {
        not_started(record, status, error);
        return AR_OK;
    }
    AR_TRY(ar_error_prefix(error, status, "%s with policy %s", record->workload.name,
                           record->policy_spec));
    record->workload = worker->source->info; /* a generator knows its length only now */
    record->passed = result.passed;
    record->first_failed_event = result.first_failed_event;
    record->first_failed_bytes = result.first_failed_bytes;
    record->cause = result.cause;
    if (!result.passed && result.problem[0])
        snprintf(
            record->detail, sizeof record->detail, "%s%.200s",
            result.cause == REPLAY_CAUSE_DRIVER ? "" : "then the driver failed: ", result.problem);
    else if (!result.passed && result.cause == REPLAY_CAUSE_CAPACITY)
        snprintf(record->detail, sizeof record->detail, "%s", result.refused_by);
    record->metrics = result.metrics;
    return AR_OK;
}

enum ar_status run_find_capacity(const struct plan *plan, const struct plan_run *run,
                                 struct capacity_result *out, enum ar_status *refusal, char *why,
                                 size_t why_bytes, struct ar_error *error)
{
    AR_CLOSED(trace_close_at) struct trace_source *source = NULL;
    AR_CLOSED(ar_spec_close) struct ar_spec device = {0};
    const struct plan_policy *policy = &plan->policies[run->policy];
    why[0] = '\0';
    *refusal = AR_OK;
    AR_TRY(workload_open(run->workload_text, &source, error));
    AR_TRY(ar_spec_parse(run->device_text, &device, error));
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
    enum ar_status status = capacity_find(&experiment, plan_jobs(plan), out, error);
    if (status == AR_UNSUPPORTED || status == AR_FORMAT) { /* the others may begin */
        snprintf(why, why_bytes, "not started: %.240s", error->text);
        *refusal = status;
        return AR_OK;
    }
    return ar_error_prefix(error, status, "%s with policy %s",
                           plan->workloads[run->workload].info.name, policy->text);
}

#define RESULT_MAGIC UINT64_C(0x746c757365722d6c) /* "l-result" in memory */

struct run_message {
    uint64_t magic;
    uint64_t policy, workload, device, repetition, seed; /* which run this is */
    struct trace_info info;
    struct ar_device_props props;
    uint64_t end, unsupported, bad_input, passed, cause;
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

/* The record of a run as bytes, which run_receive() of the same program reads; the caller frees
 * them. HOST_MEMORY. */
static enum ar_status run_pack(const struct plan_run *run, const struct run_record *record,
                               void **payload, size_t *bytes, struct ar_error *error)
{
    size_t more = series_bytes(run);
    struct run_message *result = calloc(1, sizeof *result + more);
    AR_TRY_MEMORY(result, error, "a result");
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
        .bad_input = record->bad_input,
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

/* A child_work: executes the run and returns its record, and its thin series if it has one, as
 * bytes. Rows and samples go from there straight to their files. */
static enum ar_status run_work(void *argument, void **payload, size_t *bytes,
                               struct ar_error *error)
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
    return result->end < RUN_END_COUNT && result->unsupported <= 1 && result->bad_input <= 1 &&
           result->passed <= 1 && result->cause <= REPLAY_CAUSE_DRIVER && ENDS(info->name) &&
           ENDS(info->recorder) && ENDS(info->conf) && ENDS(info->card) && ENDS(info->format) &&
           ENDS(result->detail) && ENDS(result->props.kind) && ENDS(result->props.profile) &&
           ENDS(result->props.costs_of);
}

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
    record->bad_input = result->bad_input == 1;
    record->passed = result->passed == 1;
    record->cause = (enum replay_cause)result->cause;
    memcpy(record->detail, result->detail, sizeof record->detail);
    record->first_failed_event = result->first_failed_event;
    record->first_failed_bytes = result->first_failed_bytes;
    record->metrics = result->metrics;
}

#define BROKEN_MOST 230

static const char *without(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0 ? text + strlen(with) : text;
}

/* The sentence of run_execute without the workload and the policy, which stand beside it: "event
 * 10: a free failed: call 11: ..". */
static void tell_broken(struct run_record *record, const char *text)
{
    char with[600];
    snprintf(with, sizeof with, "%s with policy %s: ", record->workload.name, record->policy_spec);
    text = without(text, with);
    snprintf(with, sizeof with, "%s: ", record->workload.name);
    text = without(text, with);
    const char *policy = strncmp(text, "event ", 6) == 0 ? strstr(text, ": policy ") : NULL;
    const char *rest = policy ? strstr(policy + strlen(": policy "), ": ") : NULL;
    const int before = rest ? (int)(policy - text) : 0;
    snprintf(record->detail, sizeof record->detail, RUN_BROKEN "%.*s%.*s", before, text,
             BROKEN_MOST - before, rest ? rest : text);
}

/* The record of a run from the answer of its process. One that crashed or exceeded its time is a
 * run that did not finish. CORRUPT if the answer is not from run_work(). */
static enum ar_status run_receive(const struct run_job *job, const struct child_answer *answer,
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
        tell_broken(record, error->text);
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

/* ---- all runs of a plan ---------------------------------------------------------------------- */

/* 1. Runs that share this process: workers take them in order from one counter. Each worker keeps
 *    the workload of its last run open, because runs of one workload are adjacent and reading a
 *    trace takes longer than many replays.
 * 2. Then, with no other thread, the runs that have a process of their own, as many at a time as
 *    there are jobs for them: one on a card, unless the user says otherwise.
 * 3. Repetitions go round: all runs once, then all runs again. So a machine that becomes slower
 *    affects all policies alike, and it does not look like a difference between them.
 * 4. After a failure no worker takes another run. Of several failures that of the first run is
 *    reported, which does not depend on the workers: every run before it was taken before. */

/* ---- the journal ---------------------------------------------------------------------------- */

static uint64_t key_of(const struct plan *plan)
{
    const struct suite *suite = plan->suite;
    /* The last one: whether runs have series, which a folder of results holds. */
    const uint64_t how[] = {
        suite->frees, suite->host,   suite->measure, suite->seed,     suite->stop_on_failure,
        suite->time,  suite->verify, suite->isolate, plan->run_count, suite->output != NULL};
    uint64_t hash = journal_key();
    hash = ar_fnv64(hash, how, sizeof how);
    for (size_t i = 0; i < plan->policy_count; i++)
        hash = journal_add_spec(hash, plan->policies[i].text);
    if (suite->pinned)
        hash = journal_add_spec(hash, suite->pinned);
    for (size_t i = 0; i < plan->workload_count; i++) {
        const struct plan_workload *workload = &plan->workloads[i];
        hash = journal_add_spec(hash, workload->text);
        hash = ar_fnv64(hash, workload->info.sha256, sizeof workload->info.sha256);
    }
    for (size_t i = 0; i < plan->device_texts.count; i++) {
        const char *text = plan->device_texts.items[i];
        bool reads = strncmp(text, "sim", 3) == 0; /* files of other devices are outputs */
        hash = reads ? journal_add_spec(hash, text) : ar_fnv64(hash, text, strlen(text) + 1);
    }
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
    AR_FREED void *payload = NULL;
    size_t bytes = 0;
    AR_TRY(run_pack(&plan->runs[run], record, &payload, &bytes, error));
    return journal_add(journal, run, payload, bytes, error);
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
    AR_TRY_MEMORY(threads, error, "the workers");
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
        status = ar_no_memory(error, "the processes");
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
    AR_TRY_MEMORY(self->order, error, "the order of runs");
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
                  : ar_no_memory(error, "the journal");
    *opened = !status;
    AR_THEN(status, run_all(&self, plan->run_count, jobs, error));
    free(self.done);
    return status;
}
