#include "bench/suite/sweep.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bench/report/output_file.h"
#include "bench/report/results_csv.h"
#include "bench/report/results_json.h"
#include "bench/report/table.h"
#include "bench/suite/axes.h"
#include "bench/suite/cell.h"
#include "bench/suite/grid.h"
#include "bench/suite/journal.h"
#include "bench/suite/progress.h"
#include "bench/suite/result_folder.h"

struct place {
    uint64_t events;
    size_t cell, workload;
};

struct sweep {
    struct plan plan;
    struct run_record *records;
    bool *done;
    struct place *order;
    size_t count;
    struct journal journal;
    pthread_mutex_t lock; /* for all below, and the journal */
    size_t next;
    enum ar_status status; /* of the first that failed */
    struct ar_error error;
    struct progress progress;
};

static enum ar_status no_memory(struct ar_error *error)
{
    return ar_error_set(error, AR_HOST_MEMORY, "no host memory left for the sweep");
}

static enum ar_status check(const struct suite *suite, struct ar_error *error)
{
    if (suite->time)
        return ar_error_set(error, AR_INVALID,
                            "sweep: cases side by side disturb each other's host times; leave time "
                            "out, or use `run --time`");
    if (suite->ratio_count)
        return ar_error_set(error, AR_INVALID,
                            "sweep: [slowdown] is for `run`; list capacities in [suite] instead");
    return AR_OK;
}

static int longest_first(const void *left, const void *right)
{
    const struct place *a = left;
    const struct place *b = right;
    if (a->events != b->events)
        return a->events < b->events ? 1 : -1;
    if (a->workload != b->workload)
        return a->workload < b->workload ? -1 : 1;
    return (a->cell > b->cell) - (a->cell < b->cell);
}

static void put_in_order(struct sweep *self)
{
    for (size_t i = 0; i < self->plan.cell_count; i++) {
        size_t workload = self->plan.cells[i].workload;
        if (!self->done[i])
            self->order[self->count++] =
                (struct place){self->plan.workloads[workload].info.events, i, workload};
    }
    qsort(self->order, self->count, sizeof *self->order, longest_first);
}

static void *work(void *argument)
{
    struct sweep *self = argument;
    struct cell_worker worker = {0};
    for (;;) {
        struct ar_error error = {{0}};
        pthread_mutex_lock(&self->lock);
        size_t place = self->status || self->next == self->count ? SIZE_MAX : self->next++;
        pthread_mutex_unlock(&self->lock);
        if (place == SIZE_MAX)
            break;
        size_t cell = self->order[place].cell;
        enum ar_status status =
            cell_run(&worker, &self->plan, &self->plan.cells[cell], &self->records[cell], &error);
        pthread_mutex_lock(&self->lock);
        if (!status)
            status = journal_add(&self->journal, &self->plan, cell, &self->records[cell], &error);
        if (status && !self->status) {
            self->status = status;
            self->error = error;
        }
        progress_step(&self->progress, self->records[cell].policy_spec);
        pthread_mutex_unlock(&self->lock);
    }
    trace_close(worker.source);
    return NULL;
}

static enum ar_status run_all(struct sweep *self, struct ar_error *error)
{
    unsigned jobs = plan_jobs(&self->plan);
    pthread_t *threads = calloc(jobs, sizeof *threads);
    if (!threads)
        return no_memory(error);
    unsigned started = 0;
    pthread_mutex_init(&self->lock, NULL);
    progress_begin(&self->progress, self->count);
    while (started + 1 < jobs && pthread_create(&threads[started], NULL, work, self) == 0)
        started++;
    work(self);
    for (unsigned i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    progress_end(&self->progress);
    pthread_mutex_destroy(&self->lock);
    free(threads);
    if (self->status)
        *error = self->error;
    return self->status;
}

/* Of each workload and device: how many finished, and the best of them. */
static enum ar_status print_best(const struct sweep *self, FILE *stream, enum table_form form,
                                 struct ar_error *error)
{
    static const struct table_column columns[] = {
        {"workload", "", true, 40},      {"device", "", true, 32},   {"finished", "", false, 0},
        {"peak phys.", "MiB", false, 0}, {"overhead", "", false, 0}, {"best policy", "", true, 0},
    };
    struct table *table = table_create(columns, sizeof columns / sizeof columns[0]);
    if (!table)
        return no_memory(error);
    size_t all = self->plan.cell_count;
    for (size_t first = 0, end; first < all; first = end) {
        const struct run_record *best = NULL;
        size_t passed = 0;
        for (end = first;
             end < all && run_record_same_group(&self->records[first], &self->records[end]);
             end++) {
            const struct run_record *record = &self->records[end];
            passed += record->passed;
            if (record->passed && record->ranked &&
                (!best || run_record_rank_order(record, best) < 0))
                best = record;
        }
        table_cell(table, "%s", self->records[first].workload_spec);
        table_cell(table, "%s", self->records[first].device_spec);
        table_cell(table, "%zu of %zu", passed, end - first);
        if (!best) {
            table_rest(table, "none finished");
            continue;
        }
        table_cell(table, "%.1f",
                   metric_number(&best->metrics, METRIC_peak_physical_bytes, 0) / 1048576);
        table_cell(table, "%.3f", metric_number(&best->metrics, METRIC_overhead, 0));
        table_cell(table, "%s", best->policy_spec);
    }
    enum ar_status status = table_print(table, stream, form, error);
    table_close(table);
    return status;
}

static enum ar_status open_files(const struct sweep_files *files, const char *folder,
                                 struct output_set *outputs, FILE **json, FILE **csv,
                                 struct ar_error *error)
{
    *json = files->json ? output_set_open(outputs, files->json, error) : NULL;
    if (files->json && !*json)
        return AR_IO;
    *csv = files->csv ? output_set_open(outputs, files->csv, error) : NULL;
    if (files->csv && !*csv)
        return AR_IO;
    return folder ? result_folder_check(folder, outputs, files->journal, error) : AR_OK;
}

static enum ar_status prepare(struct sweep *self, const struct sweep_files *files,
                              struct ar_error *error)
{
    size_t count = self->plan.cell_count;
    for (size_t i = 0; i < count; i++)
        if (self->plan.cells[i].alone)
            return ar_error_set(
                error, AR_INVALID,
                "sweep: cases share this process; a card and isolate are for `run`");
    self->records = calloc(count ? count : 1, sizeof *self->records);
    self->done = calloc(count ? count : 1, sizeof *self->done);
    self->order = calloc(count ? count : 1, sizeof *self->order);
    if (!self->records || !self->done || !self->order)
        return no_memory(error);
    return journal_open(&self->journal, files->journal, &self->plan, self->records, self->done,
                        error);
}

/* The folder that `run` leaves, without series: cases side by side keep none. */
static enum ar_status write_folder(const struct sweep *self, const struct result_set *set,
                                   struct result_folder *folder, const char *path,
                                   struct output_set *outputs, struct ar_error *error)
{
    const struct thin_series **none = calloc(self->plan.cell_count + 1, sizeof *none);
    if (!none)
        return no_memory(error);
    enum ar_status status = result_folder_open(folder, path, outputs, error);
    if (!status) {
        result_folder_summary(folder, set);
        status = print_best(self, folder->summary, TABLE_MARKDOWN, error);
    }
    if (!status)
        status = result_folder_write(folder, set, none, error);
    free(none);
    return status;
}

static enum ar_status finish(struct sweep *self, const struct suite *suite,
                             const struct environment *environment, struct output_set *outputs,
                             FILE *json, FILE *csv, FILE *stream, struct ar_error *error)
{
    const struct result_set set = {.environment = environment,
                                   .suite = suite->name,
                                   .records = self->records,
                                   .record_count = self->plan.cell_count};
    if (json)
        results_json_write(json, &set);
    if (csv)
        results_csv_write(csv, self->records, self->plan.cell_count);
    struct result_folder folder = {0};
    bool quiet = (json == stdout) || (csv == stdout);
    enum ar_status status = quiet ? AR_OK : print_best(self, stream, TABLE_TEXT, error);
    if (!status && suite->output)
        status = write_folder(self, &set, &folder, suite->output, outputs, error);
    if (!status)
        status =
            result_folder_commit(&folder, outputs, suite->output && !quiet ? stream : NULL, error);
    if (status) {
        output_set_abandon(outputs);
        result_folder_take_away(&folder);
    }
    result_folder_close(&folder);
    return status;
}

static enum ar_status expand_all(struct suite *suite, const char *path, struct ar_error *error)
{
    enum ar_status status = grid_expand(&suite->policies, error);
    if (!status)
        status = grid_expand(&suite->workloads, error);
    if (!status)
        status = grid_expand(&suite->devices, error);
    if (!status)
        status = axes_apply(suite, path, error);
    return status ? status : suite_put_first(suite, error);
}

enum ar_status sweep_run(struct suite *suite, const struct sweep_files *files,
                         const struct environment *environment, FILE *stream,
                         struct ar_error *error)
{
    struct sweep self = {.next = 0};
    struct output_set outputs = {0};
    FILE *json = NULL;
    FILE *csv = NULL;
    enum ar_status status = check(suite, error);
    if (!status)
        status = expand_all(suite, files->suite, error);
    if (!status)
        status = plan_make(&self.plan, suite, error);
    if (status)
        return status;
    status = open_files(files, suite->output, &outputs, &json, &csv, error);
    if (!status)
        status = prepare(&self, files, error);
    if (!status) {
        put_in_order(&self);
        status = run_all(&self, error);
        if (!status)
            status = finish(&self, suite, environment, &outputs, json, csv, stream, error);
        journal_close(&self.journal, status == AR_OK);
    }
    output_set_abandon(&outputs);
    free(self.records);
    free(self.done);
    free(self.order);
    plan_close(&self.plan);
    return status;
}
