#include <stdlib.h>

#include "bench/report/output_file.h"
#include "bench/report/result_writers.h"
#include "bench/suite/grid.h"
#include "bench/suite/matrix.h"
#include "bench/suite/result_folder.h"
#include "bench/suite/suite_run.h"

struct sweep {
    struct plan plan;
    struct run_record *records;
    struct results results;
    struct journal journal;
    bool has_journal;
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

/* For each workload and device: the number of runs that finished, and the best of them. */
static enum ar_status print_best(const struct sweep *self, FILE *stream, enum table_form form,
                                 struct ar_error *error)
{
    static const struct table_column columns[] = {
        {"workload", "", true, 40},      {"device", "", true, 32},   {"finished", "", false, 0},
        {"peak phys.", "MiB", false, 0}, {"overhead", "", false, 0}, {"best policy", "", true, 0},
    };
    struct table *table = table_of(columns);
    for (size_t i = 0; i < self->results.group_count; i++) {
        const struct result_group *group = &self->results.groups[i];
        const struct run_record *best = NULL;
        size_t passed = 0;
        for (const struct run_record *run = group->runs; run < group->runs + group->run_count;
             run++) {
            passed += run->passed;
            if (run->passed && run->ranked && (!best || run_record_rank_order(run, best) < 0))
                best = run;
        }
        table_cell(table, "%s", group->runs->workload_spec);
        table_cell(table, "%s", group->runs->device_spec);
        table_cell(table, "%zu of %zu", passed, group->run_count);
        if (!best) {
            table_rest(table, "none finished");
            continue;
        }
        table_cell(table, "%.1f",
                   metric_number(&best->metrics, METRIC_peak_physical_bytes, 0) / 1048576);
        table_cell(table, "%.3f", metric_number(&best->metrics, METRIC_overhead, 0));
        table_cell(table, "%s", best->policy_spec);
    }
    return table_end(table, stream, form, error);
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

static enum ar_status run_all(struct sweep *self, const struct sweep_files *files,
                              struct ar_error *error)
{
    const size_t count = self->plan.run_count;
    for (size_t i = 0; i < count; i++) {
        struct plan_run *run = &self->plan.runs[i];
        run->alone = self->plan.alone[run->device]; /* policies of shared objects run here too */
        if (run->alone)
            return ar_error_set(
                error, AR_INVALID,
                "sweep: cases share this process; a card and isolate are for `run`");
    }
    self->records = calloc(count ? count : 1, sizeof *self->records);
    if (!self->records)
        return no_memory(error);
    enum ar_status status =
        matrix_run_journal(&self->plan, plan_jobs(&self->plan), true, files->journal,
                           &self->journal, &self->has_journal, self->records, error);
    return status ? status : results_open(&self->results, self->records, count, error);
}

/* The folder that `run` writes, without series: a sweep keeps none. */
static enum ar_status write_folder(const struct sweep *self, struct result_folder *folder,
                                   const char *path, struct output_set *outputs,
                                   struct ar_error *error)
{
    enum ar_status status = result_folder_open(folder, path, outputs, error);
    if (!status) {
        result_folder_summary(folder, &self->results);
        status = print_best(self, folder->summary, TABLE_MARKDOWN, error);
    }
    return status ? status : result_folder_write(folder, &self->results, NULL, error);
}

static enum ar_status finish(const struct sweep *self, const struct suite *suite,
                             struct output_set *outputs, FILE *json, FILE *csv, FILE *stream,
                             struct ar_error *error)
{
    if (json)
        results_json_write(json, &self->results);
    if (csv)
        results_csv_write(csv, &self->results);
    struct result_folder folder = {0};
    bool quiet = (json == stdout) || (csv == stdout);
    enum ar_status status = quiet ? AR_OK : print_best(self, stream, TABLE_TEXT, error);
    if (!status && suite->output)
        status = write_folder(self, &folder, suite->output, outputs, error);
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
    struct sweep self = {.has_journal = false};
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
        status = run_all(&self, files, error);
    self.results.environment = environment;
    self.results.suite = suite->name;
    if (!status)
        status = finish(&self, suite, &outputs, json, csv, stream, error);
    if (self.has_journal)
        journal_close(&self.journal, status == AR_OK);
    output_set_abandon(&outputs);
    results_close(&self.results);
    free(self.records);
    plan_close(&self.plan);
    return status;
}
