/* 1. Plan: all bad input shows here. 2. Open the files that were asked for: a place that cannot
 * be written shows here. 3. Run. 4. Print the tables. 5. Put all files in their places. */
#include "bench/suite/suite_run.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/report/context.h"
#include "bench/report/draw_pairs.h"
#include "bench/report/junit_xml.h"
#include "bench/report/latex.h"
#include "bench/report/openmetrics.h"
#include "bench/report/output_file.h"
#include "bench/report/repetitions_table.h"
#include "bench/report/results_csv.h"
#include "bench/report/results_json.h"
#include "bench/report/results_notes.h"
#include "bench/report/results_table.h"
#include "bench/report/sentence.h"
#include "bench/report/thin_series.h"
#include "bench/suite/matrix.h"
#include "bench/suite/probe.h"
#include "bench/suite/result_folder.h"
#include "bench/suite/run_files.h"
#include "bench/suite/slowdown.h"

struct suite_work {
    const struct suite *suite;
    const struct suite_files *files;
    struct environment environment;
    struct plan plan;
    struct run_record *records;      /* of the plan's cells */
    struct thin_series **thin;       /* of the plan's cells; NULL: not wanted of that one */
    struct observer *thin_observers; /* of the plan's cells: they fill in `thin` */
    struct slowdown_curve curve;
    struct output_set outputs;
    FILE *streams[SUITE_FILE_COUNT]; /* NULL: not wanted */
    struct run_files run_files;
    struct result_folder folder;
    struct journal journal;
    bool has_journal;
};

/* Whether a file is wanted that holds events of runs. */
static bool holds_events(const struct suite_files *files)
{
    return suite_files_of_one_run(files) != SUITE_FILE_COUNT || files->path[SUITE_FILE_chrome];
}

/* Files that hold one run's events must have one run to hold. */
static enum ar_status want_one_run(const struct suite_work *self, struct ar_error *error)
{
    enum suite_file file = suite_files_of_one_run(self->files);
    char what[24];
    if (file == SUITE_FILE_COUNT && self->files->path[SUITE_FILE_chrome])
        for (size_t i = 0; i < self->plan.cell_count; i++)
            if (self->plan.cells[i].alone)
                file = SUITE_FILE_chrome;
    if (file == SUITE_FILE_COUNT)
        return AR_OK;
    snprintf(what, sizeof what, "--%s", suite_file_name(file));
    if (self->plan.policy_count > 1 || self->plan.workload_count > 1)
        return ar_error_set(error, AR_INVALID,
                            "%s holds one run and this is %zu; name one policy and one workload",
                            what, self->plan.cell_count);
    if (self->plan.workloads[0].frees_count > 1)
        return ar_error_set(
            error, AR_INVALID,
            "%s holds one run, and %s is replayed in two ways; add --frees at-once or "
            "--frees recorded",
            what, self->plan.workloads[0].text);
    if (self->plan.cell_count > 1)
        return ar_error_set(
            error, AR_INVALID,
            "%s holds one run and this is %zu; name one device and leave out --reps "
            "and --draws",
            what, self->plan.cell_count);
    return AR_OK;
}

/* Of a run whose process died, files hold what was flushed by chance, cut off within a line:
 * nothing is better. What went to a pipe or a terminal cannot be taken back. */
static void forget_cut_off_rows(struct suite_work *self)
{
    const struct run_record *record = &self->records[0];
    if (record->end != RUN_CRASHED && record->end != RUN_TIMED_OUT)
        return;
    for (unsigned i = 0; i < SUITE_FILE_COUNT; i++) {
        bool events = suite_file_holds_one_run((enum suite_file)i) || i == SUITE_FILE_chrome;
        FILE *stream = events ? self->streams[i] : NULL;
        if (stream && fflush(stream) == 0 && ftruncate(fileno(stream), 0) == 0)
            rewind(stream);
    }
    run_files_headers(self->streams);
}

static enum ar_status open_files(struct suite_work *self, struct ar_error *error)
{
    for (unsigned i = 0; i < SUITE_FILE_COUNT; i++) {
        if (!self->files->path[i])
            continue;
        self->streams[i] = output_set_open(&self->outputs, self->files->path[i], error);
        if (!self->streams[i])
            return AR_IO;
    }
    enum ar_status status = AR_OK;
    if (self->suite->output)
        status =
            result_folder_check(self->suite->output, &self->outputs, self->files->journal, error);
    if (!status)
        status = run_files_open(&self->run_files, self->streams, self->files, &self->plan, error);
    if (!status)
        run_files_headers(self->streams);
    return status;
}

static enum ar_status no_memory(struct ar_error *error)
{
    return ar_error_set(error, AR_HOST_MEMORY, "no host memory left for the results");
}

/* The figures show each policy and workload once: on the first device, in the first way to
 * free, the first draw and repetition. */
static bool in_figures(const struct plan *plan, const struct plan_cell *cell)
{
    return cell->device == 0 && cell->repetition == 0 && cell->seed == plan->suite->seed &&
           cell->frees == plan->workloads[cell->workload].frees[0];
}

/* A run that has a process to itself, with no other beside it, reads the clocks in it too (the
 * experiment has passes of its own for that); on a card a second process for them would double the
 * time. */
static bool timed_at_once(const struct suite_work *self, const struct plan_cell *cell)
{
    return cell->alone && plan_jobs_alone(&self->plan) == 1;
}

/* Gives each cell what wants to see its events. */
static enum ar_status attach(struct suite_work *self, struct ar_error *error)
{
    for (size_t i = 0; i < self->plan.cell_count; i++) {
        struct plan_cell *cell = &self->plan.cells[i];
        cell->measure_time = self->suite->time && timed_at_once(self, cell);
        if (holds_events(self->files))
            cell->observer = run_files_observer(&self->run_files, i);
        if (self->suite->output && in_figures(&self->plan, cell) &&
            !self->streams[SUITE_FILE_placements] && !self->streams[SUITE_FILE_series]) {
            self->thin[i] = calloc(1, sizeof *self->thin[i]);
            if (!self->thin[i])
                return no_memory(error);
            self->thin_observers[i] = (struct observer){
                .next = cell->observer, .sample = thin_series_add, .argument = self->thin[i]};
            cell->observer = &self->thin_observers[i];
            cell->thin = self->thin[i];
        }
    }
    return AR_OK;
}

/* Reads the clock around every call of the other cells, in a pass of its own on one worker, since
 * that costs more than many a call; its timed metrics join the records. */
static enum ar_status time_cells(struct suite_work *self, struct ar_error *error)
{
    size_t most = self->plan.cell_count;
    size_t count = 0;
    struct plan_cell *cells = calloc(most, sizeof *cells);
    struct run_record *timed = calloc(most, sizeof *timed);
    size_t *places = calloc(most, sizeof *places);
    enum ar_status status = cells && timed && places ? AR_OK : no_memory(error);
    for (size_t i = 0; i < most && !status; i++) {
        const struct plan_cell *cell = &self->plan.cells[i];
        if (timed_at_once(self, cell))
            continue;
        places[count] = i;
        cells[count] = *cell;
        cells[count].measure = REPLAY_METRICS_NONE;
        cells[count].measure_time = true;
        cells[count].thin = NULL;
        cells[count++].observer = run_files_timed(&self->run_files);
    }
    if (!status && count)
        status = matrix_run(&self->plan, cells, count, 1, timed, error);
    for (size_t i = 0; i < count && !status; i++)
        for (int j = 0; j < METRIC_COUNT; j++)
            if (metric_info((enum metric)j)->class == METRIC_TIMED)
                self->records[places[i]].metrics.at[j] = timed[i].metrics.at[j];
    free(cells);
    free(timed);
    free(places);
    return status;
}

/* The plan's cells: those that the journal does not hold, where there is one. */
static enum ar_status run_cells(struct suite_work *self, unsigned jobs, struct ar_error *error)
{
    const char *path = self->files->journal;
    if (!path)
        return matrix_run(&self->plan, self->plan.cells, self->plan.cell_count, jobs, self->records,
                          error);
    if (holds_events(self->files))
        return ar_error_set(error, AR_INVALID,
                            "--journal keeps the figures of runs and not their events; leave out "
                            "--journal, or the file of events");
    bool *done = calloc(self->plan.cell_count + 1, sizeof *done);
    if (!done)
        return no_memory(error);
    enum ar_status status =
        journal_open(&self->journal, path, &self->plan, self->records, done, error);
    self->has_journal = !status;
    if (!status)
        status = matrix_run_on(&self->plan, jobs, self->records, done, &self->journal, error);
    free(done);
    return status;
}

static enum ar_status run_all(struct suite_work *self, struct ar_error *error)
{
    unsigned jobs = plan_jobs(&self->plan);
    self->records = calloc(self->plan.cell_count, sizeof *self->records);
    self->thin = calloc(self->plan.cell_count, sizeof(struct thin_series *));
    self->thin_observers = calloc(self->plan.cell_count, sizeof *self->thin_observers);
    if (!self->records || !self->thin || !self->thin_observers)
        return no_memory(error);
    enum ar_status status = attach(self, error);
    if (!status)
        status = run_cells(self, jobs, error);
    if (!status && holds_events(self->files) && self->plan.cell_count == 1)
        forget_cut_off_rows(self);
    if (!status && self->suite->ratio_count)
        status = slowdown_run(&self->plan, self->records, jobs, &self->curve, error);
    if (!status && self->suite->time)
        status = time_cells(self, error);
    return status;
}

/* What stands above a table in LaTeX. */
static void print_paragraph(FILE *stream, const char *title, const char *more)
{
    fputs("\n\\paragraph{", stream);
    latex_text(stream, title);
    latex_text(stream, more);
    fputs("}\n", stream);
}

/* The curve as tables: time lost always, the others where there is something to see. */
static enum ar_status print_curve(const struct suite_work *self, FILE *stream, enum table_form form,
                                  struct ar_error *error)
{
    static const char *const titles[] = {
        [SLOWDOWN_TIME] = "Slowdown (time / time with an allocator that costs nothing)",
        [SLOWDOWN_FLUSHES] = "Flushes: times that all cached memory was given back for a request",
        [SLOWDOWN_REMAPPED] = "MiB of pages unmapped at one place and mapped at another",
    };
    enum ar_status status = AR_OK;
    for (int figure = SLOWDOWN_TIME; figure <= SLOWDOWN_REMAPPED && !status; figure++) {
        if (!self->curve.count || !slowdown_has(&self->curve, (enum slowdown_figure)figure))
            continue;
        if (table_is_latex(form)) {
            print_paragraph(stream, titles[figure],
                            self->suite->draws > 1
                                ? " by capacity / peak live, median over the draws, or in how many "
                                  "a policy finished"
                                : " by capacity / peak live");
        } else {
            char title[256];
            snprintf(title, sizeof title, "%s by capacity / peak live%s", titles[figure],
                     self->suite->draws > 1
                         ? ", median over the draws, or in how many a policy finished"
                         : "");
            fputc('\n', stream);
            sentence_wrap(stream, title, 0, 0, SENTENCE_WIDTH);
            fputc('\n', stream);
        }
        status = slowdown_table_print(&self->curve, self->suite, (enum slowdown_figure)figure,
                                      stream, form, error);
    }
    return status;
}

/* The intervals of the repetitions' table would be those of one draw, and lucky as that. */
static bool shows_repetitions(const struct suite_work *self)
{
    return self->suite->draws == 1 && repetitions_any(self->records, self->plan.cell_count);
}

/* Median, range and places over the draws, then pairs of draws. For LaTeX titles are all that is
 * said. */
static enum ar_status print_draws(const struct suite_work *self, FILE *stream, enum table_form form,
                                  struct ar_error *error)
{
    size_t count = self->plan.cell_count;
    if (table_is_latex(form))
        print_paragraph(
            stream, "Median over the draws, its interval at 95 % or more (low, high), range", "");
    else
        fputs("\nMedian and range over the draws. Low and high, from six draws on: between them\n"
              "lies the median with 95 % confidence or more. A place is stated by peak physical\n"
              "bytes: policies are told apart by that interval of their difference draw by draw\n"
              "(of fewer draws: where ranges do not overlap); `=` shares it.\n\n",
              stream);
    enum ar_status status = spread_table_print(self->records, count, stream, form, error);
    if (status || !draw_pairs_any(self->records, count))
        return status;
    if (table_is_latex(form))
        print_paragraph(stream, "Ratios of each draw to the same draw of the first policy", "");
    else
        fputs("\nPairs: each draw by the same draw of the first policy, where both finished. The\n"
              "median ratio with its interval, and in how many draws it is below, at and\n"
              "above 1. `steady`, of programs with steps: the slowdown of the second half of\n"
              "them, without the first, in which libraries load.\n\n",
              stream);
    return draw_pairs_print(self->records, count, stream, form, error);
}

static void print_left_out(FILE *stream, const char *why)
{
    char sentence[sizeof((struct ar_error *)0)->text + 16];
    snprintf(sentence, sizeof sentence, "Left out: %s.", why);
    sentence_print(stream, sentence);
}

static enum ar_status print_tables(const struct suite_work *self, FILE *stream,
                                   enum table_form form, struct ar_error *error)
{
    size_t count = self->plan.cell_count;
    if (self->suite->device_note[0]) {
        sentence_print(stream, self->suite->device_note);
        fputc('\n', stream);
    }
    enum ar_status status = results_table_print(self->records, count, stream, form, error);
    fputs("\nPeaks of bytes; ext.frag is the mean of 1 - largest servable / free. Ranked by\n"
          "peak physical bytes; DNF: did not finish. `allocrig list metrics` defines each\n"
          "figure.\n",
          stream);
    if (self->suite->draws > 1)
        fputs("Medians over the draws, or in how many a policy finished; places stand below.\n",
              stream);
    context_card_print(stream, &self->environment);
    for (size_t i = 0; i < self->plan.left_out.count; i++)
        print_left_out(stream, self->plan.left_out.items[i]);
    results_notes_print(stream, self->records, count);
    if (!status && shows_repetitions(self)) {
        fputc('\n', stream);
        status = repetitions_table_print(self->records, count, stream, form, error);
    }
    if (!status && self->suite->draws > 1)
        status = print_draws(self, stream, form, error);
    if (!status)
        status = print_curve(self, stream, form, error);
    if (!status && self->suite->time) {
        fputs("\nHost time of each call, clock cost subtracted\n\n", stream);
        status = latency_table_print(self->records, count, stream, form, error);
    }
    return status;
}

/* The tables alone, to be included in a paper. */
static enum ar_status write_latex(const struct suite_work *self, FILE *stream,
                                  struct ar_error *error)
{
    size_t count = self->plan.cell_count;
    enum table_form form = self->suite->wide ? TABLE_LATEX_WIDE : TABLE_LATEX;
    fputs("% Tables of `allocrig run`, for a document with \\usepackage{booktabs,textcomp} and "
          "[T1]{fontenc}.\n"
          "% Each has a \\label to \\ref to; captions are its headings, for you to put in words. "
          "All columns:\n% --wide.\n",
          stream);
    if (self->suite->draws > 1)
        print_paragraph(stream, "Medians over the draws, or in how many a policy finished", "");
    enum ar_status status = results_table_print(self->records, count, stream, form, error);
    if (!status && shows_repetitions(self))
        status = repetitions_table_print(self->records, count, stream, form, error);
    if (!status && self->suite->draws > 1)
        status = print_draws(self, stream, form, error);
    if (!status)
        status = print_curve(self, stream, form, error);
    if (!status && self->suite->time) {
        print_paragraph(stream, "Host time of each call, clock cost subtracted", "");
        status = latency_table_print(self->records, count, stream, form, error);
    }
    return status;
}

static struct result_set result_set(const struct suite_work *self)
{
    return (struct result_set){
        .environment = &self->environment,
        .suite = self->suite->name,
        .records = self->records,
        .record_count = self->plan.cell_count,
        .points = self->curve.points,
        .point_count = self->curve.count,
    };
}

static enum ar_status write_files(struct suite_work *self, struct ar_error *error)
{
    struct result_set set = result_set(self);
    if (self->streams[SUITE_FILE_json])
        results_json_write(self->streams[SUITE_FILE_json], &set);
    if (self->streams[SUITE_FILE_csv])
        results_csv_write(self->streams[SUITE_FILE_csv], self->records, self->plan.cell_count);
    if (self->streams[SUITE_FILE_junit])
        junit_xml_write(self->streams[SUITE_FILE_junit], self->suite->name, self->records,
                        self->plan.cell_count);
    if (self->streams[SUITE_FILE_openmetrics])
        openmetrics_write(self->streams[SUITE_FILE_openmetrics], self->records,
                          self->plan.cell_count);
    enum ar_status status = run_files_finish(&self->run_files, error);
    if (!status && self->streams[SUITE_FILE_latex])
        status = write_latex(self, self->streams[SUITE_FILE_latex], error);
    if (status || !self->suite->output)
        return status;
    /* Not before there is something to put into it: who interrupts a run finds no folder. */
    status = result_folder_open(&self->folder, self->suite->output, &self->outputs, error);
    if (status)
        return status;
    result_folder_summary(&self->folder, &set);
    status = print_tables(self, self->folder.summary, TABLE_MARKDOWN, error);
    if (!status)
        status = result_folder_write(&self->folder, &set,
                                     (const struct thin_series *const *)self->thin, error);
    return status;
}

/* Where no policy could begin on the device there is nothing to show. */
static enum ar_status want_one_begun(const struct suite_work *self, struct ar_error *error)
{
    for (size_t i = 0; i < self->plan.cell_count; i++)
        if (!self->records[i].unsupported)
            return AR_OK;
    const struct run_record *first = self->records;
    return ar_error_set(error, AR_MISSING, "%s with policy %s: %s", first->workload.name,
                        first->policy_spec, first->detail);
}

static enum ar_status judge(const struct suite_work *self, struct ar_error *error)
{
    size_t failed = 0;
    const struct run_record *first = NULL;
    for (size_t i = 0; i < self->plan.cell_count; i++) {
        if (self->records[i].passed)
            continue;
        first = first ? first : &self->records[i];
        failed++;
    }
    if (!failed || !self->suite->require_pass)
        return AR_OK;
    char where[sizeof first->detail];
    if (first->end == RUN_PLAYED)
        snprintf(where, sizeof where, " at event %llu",
                 (unsigned long long)first->first_failed_event);
    else
        snprintf(where, sizeof where, ": %.200s", first->detail);
    return ar_error_set(error, AR_NEGATIVE,
                        "%zu of %zu runs did not finish, first %s with policy %s%s", failed,
                        self->plan.cell_count, first->workload.name, first->policy_spec, where);
}

static void close_work(struct suite_work *self)
{
    output_set_abandon(&self->outputs);
    for (size_t i = 0; self->thin && i < self->plan.cell_count; i++)
        free(self->thin[i]);
    free(self->thin);
    free(self->thin_observers);
    free(self->records);
    slowdown_close(&self->curve);
    result_folder_close(&self->folder);
    run_files_close(&self->run_files);
    plan_close(&self->plan);
}

/* One stream, one format: results on standard output leave no room for a table. */
static enum ar_status want_one_format(const struct suite_files *files, bool *quiet,
                                      struct ar_error *error)
{
    unsigned count = 0;
    for (unsigned i = 0; i < SUITE_FILE_COUNT; i++)
        count += files->path[i] && strcmp(files->path[i], "-") == 0;
    *quiet = count > 0;
    if (count > 1)
        return ar_error_set(error, AR_INVALID,
                            "only one file can be - (standard output); name the others");
    return AR_OK;
}

/* The first card among the devices, or a device that is none. */
static const char *card_of(const struct plan *plan)
{
    for (size_t i = 0; i < plan->devices.count; i++)
        if (probe_wants_process(plan->devices.items[i]))
            return plan->devices.items[i];
    return plan->devices.items[0];
}

enum ar_status suite_run(const struct suite *suite, const struct suite_files *files,
                         const struct environment *environment, FILE *stream,
                         struct ar_error *error)
{
    struct suite_work self = {.suite = suite, .files = files, .environment = *environment};
    bool quiet = false;
    enum ar_status status = want_one_format(files, &quiet, error);
    if (!status)
        status = plan_make(&self.plan, suite, error);
    if (status)
        return status;
    status = want_one_run(&self, error);
    if (!status)
        status = open_files(&self, error);
    environment_card_before(&self.environment, card_of(&self.plan));
    if (!status)
        status = run_all(&self, error);
    environment_card_after(&self.environment);
    if (!status)
        status = want_one_begun(&self, error);
    if (!status && !quiet)
        status = print_tables(&self, stream, suite->wide ? TABLE_TEXT_WIDE : TABLE_TEXT, error);
    if (!status)
        status = write_files(&self, error);
    if (!status)
        status = result_folder_commit(&self.folder, &self.outputs, quiet ? NULL : stream, error);
    if (status) {
        output_set_abandon(&self.outputs);
        result_folder_take_away(&self.folder);
    }
    if (self.has_journal)
        journal_close(&self.journal, status == AR_OK);
    if (!status)
        status = judge(&self, error);
    close_work(&self);
    return status;
}
