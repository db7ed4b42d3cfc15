/* 1. Cells that share this process. Workers take them in their order from one counter. Each keeps
 *    the workload of its last cell open, since cells of one workload stand together and reading a
 *    trace costs more than many a replay.
 * 2. Then, with no thread left, the cells that want a process of their own, as many at a time as
 *    there are jobs for them. That is one on a card, unless the user says otherwise.
 * 3. Repetitions go round: all cells once, all cells again. So a machine that warms up or slows
 *    down does it to all alike, and it does not look like a difference between policies.
 * 4. After a failure nobody takes another cell; of several failures the one of the first cell is
 *    reported, which does not depend on the workers: every cell before it was taken before.
 * 5. With a journal a record enters it as its cell ends, and what it holds already is not run. */
#include "bench/suite/matrix.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "bench/suite/cell.h"
#include "bench/suite/progress.h"

struct matrix {
    const struct plan *plan;
    const struct plan_cell *cells;
    struct run_record *records;
    size_t *order; /* the indices of the cells to do, in that order */
    size_t count;
    pthread_mutex_t lock; /* for all below */
    size_t next;
    size_t failed; /* the first of the order that failed; SIZE_MAX: none */
    enum ar_status status;
    struct ar_error error;
    struct progress progress;
    const bool *done;        /* of the cells; NULL: none is */
    struct journal *journal; /* NULL: not wanted */
};

/* Puts the cells of one kind in order, by repetition first. */
static void put_in_order(struct matrix *self, size_t count, bool alone)
{
    unsigned repetitions = 0;
    self->count = 0;
    self->next = 0;
    for (size_t i = 0; i < count; i++)
        if (self->cells[i].repetition >= repetitions)
            repetitions = self->cells[i].repetition + 1;
    for (unsigned repetition = 0; repetition < repetitions; repetition++)
        for (size_t i = 0; i < count; i++)
            if (self->cells[i].repetition == repetition && self->cells[i].alone == alone &&
                !(self->done && self->done[i]))
                self->order[self->count++] = i;
}

/* The place in the order of the next cell to do, or SIZE_MAX where there is none. */
static size_t take_cell(struct matrix *self)
{
    pthread_mutex_lock(&self->lock);
    size_t place = self->failed == SIZE_MAX && self->next < self->count ? self->next++ : SIZE_MAX;
    pthread_mutex_unlock(&self->lock);
    return place;
}

static void finish_cell(struct matrix *self, size_t place, enum ar_status status,
                        struct ar_error *error)
{
    const size_t index = self->order[place];
    const struct plan_cell *cell = &self->cells[index];
    pthread_mutex_lock(&self->lock);
    if (!status && self->journal)
        status = journal_add(self->journal, self->plan, index, &self->records[index], error);
    if (status && place < self->failed) {
        self->failed = place;
        self->status = status;
        self->error = *error;
    }
    progress_step(&self->progress, self->plan->workloads[cell->workload].text);
    pthread_mutex_unlock(&self->lock);
}

static void *work(void *argument)
{
    struct matrix *self = argument;
    struct cell_worker worker = {0};
    for (size_t place; (place = take_cell(self)) != SIZE_MAX;) {
        struct ar_error error = {{0}};
        size_t cell = self->order[place];
        enum ar_status status =
            cell_run(&worker, self->plan, &self->cells[cell], &self->records[cell], &error);
        finish_cell(self, place, status, &error);
    }
    trace_close(worker.source);
    return NULL;
}

/* The cells that share this process. */
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
    work(self); /* this thread is a worker too, also where no other could be made */
    for (unsigned i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    return AR_OK;
}

/* The processes that run, and what each does. */
struct crew {
    struct child *children;
    struct cell_job *jobs;
    size_t *places;
    size_t count;
};

static void begin_next(struct matrix *self, struct crew *crew, size_t child)
{
    struct ar_error error = {{0}};
    size_t place = take_cell(self);
    if (place == SIZE_MAX)
        return;
    crew->places[child] = place;
    crew->jobs[child] = (struct cell_job){self->plan, &self->cells[self->order[place]]};
    enum ar_status status = child_begin(&crew->children[child], cell_work, &crew->jobs[child],
                                        self->plan->suite->timeout_s, &error);
    if (status)
        finish_cell(self, place, status, &error);
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
            cell_receive(&crew->jobs[ended], &answer, &self->records[self->order[place]], &error);
        child_close(&crew->children[ended]);
        finish_cell(self, place, status, &error);
        begin_next(self, crew, ended);
    }
}

/* The cells that have a process of their own. */
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

enum ar_status matrix_run(const struct plan *plan, const struct plan_cell *cells, size_t count,
                          unsigned jobs, struct run_record *records, struct ar_error *error)
{
    struct matrix self = {.plan = plan, .cells = cells, .records = records};
    return run_all(&self, count, jobs, error);
}

enum ar_status matrix_run_on(const struct plan *plan, unsigned jobs, struct run_record *records,
                             const bool *done, struct journal *journal, struct ar_error *error)
{
    struct matrix self = {
        .plan = plan, .cells = plan->cells, .records = records, .done = done, .journal = journal};
    return run_all(&self, plan->cell_count, jobs, error);
}
