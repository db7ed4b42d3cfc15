/* Runs a suite or a grid (suite_run.h). 1. Plan: all bad input is reported here. 2. Open the
 * files: a place that cannot be written is reported here. 3. Run. 4. Group the results. 5. Print
 * the tables. 6. Put all files in their places. */
#include "bench/suite/suite_run.h"

#include <unistd.h>

#include "bench/report/sentence.h"
#include "bench/suite/run.h"
#include "workloads/workload.h"

struct suite_work {
    const struct suite *suite;
    const struct suite_files *files;
    struct environment environment;
    struct plan plan;
    struct run_record *records;        /* of the plan's runs */
    struct thin_series **series;       /* of the plan's runs; NULL: that run has none */
    struct observer *series_observers; /* of the plan's runs: they fill in `series` */
    struct slowdown_curve curve;
    struct results results;
    struct output_set outputs;
    FILE *streams[SUITE_FILE_COUNT]; /* NULL: not wanted */
    struct run_files run_files;
    struct result_folder folder;
    struct journal journal;
    bool has_journal;
    bool made_output; /* for a file in it, before it has contents */
};

static bool holds_events(const struct suite_files *files)
{
    return suite_files_of_one_run(files) != SUITE_FILE_COUNT || files->path[SUITE_FILE_chrome];
}

/* A file that holds the events of one run needs a plan of one run. */
static enum ar_status want_one_run(const struct suite_work *self, struct ar_error *error)
{
    enum suite_file file = suite_files_of_one_run(self->files);
    char what[24];
    if (file == SUITE_FILE_COUNT && self->files->path[SUITE_FILE_chrome])
        for (size_t i = 0; i < self->plan.run_count; i++)
            if (self->plan.runs[i].alone)
                file = SUITE_FILE_chrome;
    if (file == SUITE_FILE_COUNT)
        return AR_OK;
    snprintf(what, sizeof what, "--%s", suite_file_name(file));
    if (self->plan.policy_count > 1 || self->plan.workload_count > 1)
        return ar_invalid(
            error, "%s holds one run and this is %zu; name one policy and one workload%s", what,
            self->plan.run_count,
            workload_gpu_of(self->plan.workloads[0].text) ? ", and select one GPU with --device N"
                                                          : "");
    if (self->plan.workloads[0].frees_count > 1)
        return ar_invalid(error,
                          "%s holds one run, and %s is replayed in two ways; add --frees at-once "
                          "or --frees recorded",
                          what, self->plan.workloads[0].text);
    if (self->plan.run_count > 1)
        return ar_invalid(error,
                          "%s holds one run and this is %zu; name one device and leave out --reps "
                          "and --replicates",
                          what, self->plan.run_count);
    return AR_OK;
}

/* If the process of a run died, its files hold what happened to be flushed, cut off within a line:
 * they are emptied. What went to a pipe or a terminal remains. */
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

/* Makes the folder of results if it is not there and another file is to be in it. */
static enum ar_status make_output(struct suite_work *self, struct ar_error *error)
{
    const char *output = self->suite->output;
    size_t length = output ? strlen(output) : 0;
    while (length && output[length - 1] == '/')
        length--;
    for (unsigned i = 0; i < SUITE_FILE_COUNT && length && !self->made_output; i++) {
        const char *path = self->files->path[i];
        self->made_output = path && strncmp(path, output, length) == 0 && path[length] == '/' &&
                            access(output, F_OK) != 0;
    }
    return self->made_output ? output_folder(output, error) : AR_OK;
}

static enum ar_status open_files(struct suite_work *self, struct ar_error *error)
{
    AR_TRY(make_output(self, error));
    for (unsigned i = 0; i < SUITE_FILE_COUNT; i++)
        AR_TRY(output_set_add(&self->outputs, self->files->path[i], &self->streams[i], error));
    if (self->suite->output)
        AR_TRY(
            result_folder_check(self->suite->output, &self->outputs, self->files->journal, error));
    AR_TRY(run_files_open(&self->run_files, self->streams, self->files, &self->plan, error));
    run_files_headers(self->streams);
    return AR_OK;
}

/* Figures show each policy and workload once: on the first device, with the first way to free, the
 * first replicate and repetition. */
static bool in_figures(const struct plan *plan, const struct plan_run *run)
{
    return run->device == 0 && run->repetition == 0 && run->seed == plan->suite->seed &&
           run->frees == plan->workloads[run->workload].frees[0];
}

/* A run that has a process to itself, with no other at the same time, also reads the clocks (in a
 * pass of its own); on a card a second process for that would double the time. */
static bool timed_at_once(const struct suite_work *self, const struct plan_run *run)
{
    return run->alone && plan_jobs_alone(&self->plan) == 1;
}

/* Sets the functions that get the events of each run. */
static enum ar_status attach(struct suite_work *self, struct ar_error *error)
{
    for (size_t i = 0; i < self->plan.run_count; i++) {
        struct plan_run *run = &self->plan.runs[i];
        run->measure_time = self->suite->time && timed_at_once(self, run);
        if (holds_events(self->files))
            run->observer = run_files_observer(&self->run_files, i);
        if (self->suite->output && in_figures(&self->plan, run) &&
            !self->streams[SUITE_FILE_placements] && !self->streams[SUITE_FILE_series]) {
            self->series[i] = calloc(1, sizeof *self->series[i]);
            AR_TRY_MEMORY(self->series[i], error, "the results");
            self->series_observers[i] = (struct observer){
                .next = run->observer, .sample = thin_series_add, .argument = self->series[i]};
            run->observer = &self->series_observers[i];
            run->thin = self->series[i];
        }
    }
    return AR_OK;
}

/* Reads the clock around every call of the other runs, in a pass of its own on one worker, because
 * that takes longer than many calls; adds the timed metrics to the records. */
static enum ar_status time_runs(struct suite_work *self, struct ar_error *error)
{
    size_t most = self->plan.run_count;
    size_t count = 0;
    AR_FREED struct plan_run *runs = calloc(most, sizeof *runs);
    AR_FREED struct run_record *timed = calloc(most, sizeof *timed);
    AR_FREED size_t *places = calloc(most, sizeof *places);
    AR_TRY_MEMORY(runs && timed && places, error, "the results");
    for (size_t i = 0; i < most; i++) {
        const struct plan_run *run = &self->plan.runs[i];
        if (timed_at_once(self, run))
            continue;
        places[count] = i;
        runs[count] = *run;
        runs[count].measure = REPLAY_METRICS_NONE;
        runs[count].measure_time = true;
        runs[count].thin = NULL;
        runs[count++].observer = run_files_timed(&self->run_files);
    }
    if (count)
        AR_TRY(matrix_run(&self->plan, runs, count, 1, timed, error));
    for (size_t i = 0; i < count; i++)
        for (int j = 0; j < METRIC_COUNT; j++)
            if (metric_info((enum metric)j)->class == METRIC_TIMED)
                self->records[places[i]].metrics.at[j] = timed[i].metrics.at[j];
    return AR_OK;
}

/* Does the runs of the plan; with a journal, those that it does not hold. */
static enum ar_status do_runs(struct suite_work *self, unsigned jobs, struct ar_error *error)
{
    const char *path = self->files->journal;
    if (!path)
        return matrix_run(&self->plan, self->plan.runs, self->plan.run_count, jobs, self->records,
                          error);
    if (holds_events(self->files))
        return ar_invalid(error, "--journal keeps the figures of runs and not their events; leave "
                                 "out --journal, or the file of events");
    return matrix_run_journal(&self->plan, jobs, false, path, &self->journal, &self->has_journal,
                              self->records, error);
}

static enum ar_status run_all(struct suite_work *self, struct ar_error *error)
{
    unsigned jobs = plan_jobs(&self->plan);
    self->records = calloc(self->plan.run_count, sizeof *self->records);
    self->series = calloc(self->plan.run_count, sizeof(*self->series));
    self->series_observers = calloc(self->plan.run_count, sizeof *self->series_observers);
    AR_TRY_MEMORY(self->records && self->series && self->series_observers, error, "the results");
    enum ar_status status = attach(self, error);
    AR_THEN(status, do_runs(self, jobs, error));
    if (!status && holds_events(self->files) && self->plan.run_count == 1)
        forget_cut_off_rows(self);
    if (!status && self->suite->ratio_count)
        status = slowdown_run(&self->plan, self->records, jobs, &self->curve, error);
    if (!status && self->suite->time)
        status = time_runs(self, error);
    AR_THEN(status, results_open(&self->results, self->records, self->plan.run_count, error));
    self->results.environment = &self->environment;
    self->results.suite = self->suite->name;
    self->results.points = self->curve.points;
    self->results.point_count = self->curve.count;
    return status;
}

/* The curve as tables: of the slowdown always, the others if they have any figure. */
static enum ar_status print_curve(const struct suite_work *self, FILE *stream, enum table_form form,
                                  struct ar_error *error)
{
    static const char *const titles[] = {
        [SLOWDOWN_TIME] = "Slowdown (time / time with an allocator that costs nothing)",
        [SLOWDOWN_FLUSHES] = "Flushes: times that all cached memory was released for a request",
        [SLOWDOWN_REMAPPED] = "MiB of pages unmapped at one place and mapped at another",
    };
    for (int figure = SLOWDOWN_TIME; figure <= SLOWDOWN_REMAPPED; figure++) {
        if (!self->curve.count || !slowdown_has(&self->curve, (enum slowdown_figure)figure))
            continue;
        char title[256];
        snprintf(title, sizeof title, "%s by capacity / peak live%s%s%s", titles[figure],
                 self->suite->replicates > 1
                     ? ", median over the replicates, or in how many a policy finished"
                     : "",
                 figure == SLOWDOWN_TIME ? "" : "; policies that have none are left out",
                 table_is_latex(form) ? "; DNF: did not finish." : "");
        fputc('\n', stream);
        if (!table_is_latex(form)) {
            sentence_wrap(stream, title, 0, 0, SENTENCE_WIDTH);
            fputc('\n', stream);
        }
        AR_TRY(slowdown_table_print(&self->curve, self->suite, (enum slowdown_figure)figure, title,
                                    stream, form, error));
    }
    return AR_OK;
}

/* What is above a table; in LaTeX its caption says that. */
static void print_title(FILE *stream, enum table_form form, const char *text)
{
    fputs(table_is_latex(form) ? "\n" : text, stream);
}

/* Median, range and places over the replicates, then their pairs. */
static enum ar_status print_replicates(const struct suite_work *self, FILE *stream,
                                       enum table_form form, struct ar_error *error)
{
    print_title(
        stream, form,
        "\nMedian and range over the replicates. Low and high, from six replicates on: the\n"
        "median lies between them with 95 % confidence or more. `all`: all replicates are\n"
        "equal as printed. Places are by peak physical bytes: one more than the number of\n"
        "policies that are told apart as better; `=`: some other policy cannot be told\n"
        "from it. Two are told apart if the interval of their difference, seed by seed,\n"
        "excludes 0 (of fewer than six replicates: if their ranges do not overlap).\n\n");
    AR_TRY(spread_table_print(&self->results, stream, form, error));
    if (!results_have_pairs(&self->results))
        return AR_OK;
    print_title(
        stream, form,
        "\nPairs: each replicate divided by the first policy's with the same seed, if both\n"
        "finished. The median ratio with its interval, and the number of replicates\n"
        "below, at and above 1. `steady`: the slowdown of the second half of the steps,\n"
        "which leaves out the loading of libraries.\n\n");
    return pairs_table_print(&self->results, stream, form, error);
}

static enum ar_status print_further_tables(const struct suite_work *self, FILE *stream,
                                           enum table_form form, struct ar_error *error)
{
    /* The table of repetitions shows one replicate, and that by chance if there are several. */
    if (self->suite->replicates == 1 && self->results.repeated) {
        if (!table_is_latex(form))
            fputc('\n', stream);
        AR_TRY(repetitions_table_print(&self->results, stream, form, error));
    }
    if (self->suite->replicates > 1)
        AR_TRY(print_replicates(self, stream, form, error));
    AR_TRY(print_curve(self, stream, form, error));
    if (!self->suite->time)
        return AR_OK;
    if (self->results.repeated || self->suite->replicates > 1)
        print_title(
            stream, form,
            "\nHost time of each call, clock cost subtracted, and throughput: medians, and\n"
            "below each the ends of its interval (of fewer than 6 values: least and most)\n\n");
    else
        print_title(stream, form,
                    "\nHost time of each call, clock cost subtracted, and throughput\n\n");
    AR_TRY(latency_table_print(&self->results, stream, form, error));
    if (!table_is_latex(form))
        throughput_note_print(stream, &self->results);
    return AR_OK;
}

static enum ar_status print_tables(const struct suite_work *self, FILE *stream,
                                   enum table_form form, struct ar_error *error)
{
    if (self->suite->device_note[0]) {
        say(stream, "%s", self->suite->device_note);
        fputc('\n', stream);
    }
    enum ar_status status = results_table_print(&self->results, stream, form, error);
    fputs("\nPeaks of bytes; ext.frag is the mean of 1 - largest servable / free. Ranked by\n"
          "peak physical bytes; DNF: did not finish. `allocrig list metrics` defines each\n"
          "figure.\n",
          stream);
    if (results_have(&self->results, METRIC_peak_pinned_reserved_bytes))
        fputs("pinned: the most bytes of pinned host memory that its cache holds (--pinned).\n",
              stream);
    if (self->suite->replicates > 1)
        fputs("Medians over the replicates, or in how many a policy finished; # is the place\n"
              "in the table of replicates.\n",
              stream);
    context_card_print(stream, &self->environment);
    for (size_t i = 0; i < self->plan.left_out.count; i++)
        say(stream, "Left out: %s.", self->plan.left_out.items[i]);
    results_notes_print(stream, &self->results, self->suite->verify);
    return status ? status : print_further_tables(self, stream, form, error);
}

/* Only the tables, to include in a paper. */
static enum ar_status write_latex(const struct suite_work *self, FILE *stream,
                                  struct ar_error *error)
{
    enum table_form form = self->suite->wide ? TABLE_LATEX_WIDE : TABLE_LATEX;
    const struct build_info *build = self->environment.build;
    fprintf(stream, "%% allocrig %s, commit %.12s%s\n", build->version, build->commit,
            build->dirty ? " with changes" : "");
    fputs("% Tables of `allocrig run`, for a document with \\usepackage{booktabs,textcomp} and "
          "[T1]{fontenc}.\n"
          "% Each has a \\label to \\ref to; captions are its headings, for you to put in words. "
          "All columns:\n% --wide.\n",
          stream);
    AR_TRY(results_table_print(&self->results, stream, form, error));
    return print_further_tables(self, stream, form, error);
}

/* What figures leave out, on standard error and in the summary. */
static void tell_figures(const struct plan *plan, FILE *summary)
{
    static const char text[] =
        "Figures: of several tables of a workload (devices, frees) they show "
        "the first. For time by capacity use a suite with [slowdown] (`at = "
        "1.05 1.5 2`).";
    bool several = plan->devices.count > 1;
    for (size_t i = 0; i < plan->workload_count; i++)
        several |= plan->workloads[i].frees_count > 1;
    if (several) {
        sentence_say(stderr, "%s", text);
        say(summary, "%s", text);
    }
}

static enum ar_status write_files(struct suite_work *self, struct ar_error *error)
{
    static const struct {
        enum suite_file file;
        void (*write)(FILE *stream, const struct results *results);
    } writers[] = {
        {SUITE_FILE_json, results_json_write},
        {SUITE_FILE_csv, results_csv_write},
        {SUITE_FILE_junit, junit_xml_write},
        {SUITE_FILE_openmetrics, openmetrics_write},
    };
    for (size_t i = 0; i < AR_COUNT(writers); i++)
        if (self->streams[writers[i].file])
            writers[i].write(self->streams[writers[i].file], &self->results);
    AR_TRY(run_files_finish(&self->run_files, error));
    if (self->streams[SUITE_FILE_latex])
        AR_TRY(write_latex(self, self->streams[SUITE_FILE_latex], error));
    if (!self->suite->output)
        return AR_OK;
    /* Opened only now that it has contents: an interrupted run leaves no folder. */
    AR_TRY(result_folder_open(&self->folder, self->suite->output, &self->outputs, error));
    result_folder_summary(&self->folder, &self->results);
    AR_TRY(print_tables(self, self->folder.summary, TABLE_MARKDOWN, error));
    tell_figures(&self->plan, self->folder.summary);
    return result_folder_write(&self->folder, &self->results,
                               (const struct thin_series *const *)self->series, error);
}

/* If no policy could start on the device, or none follows the workload, there are no results. */
static enum ar_status want_one_begun(const struct suite_work *self, struct ar_error *error)
{
    for (size_t i = 0; i < self->plan.run_count; i++)
        if (!self->records[i].unsupported && !self->records[i].bad_input)
            return AR_OK;
    const struct run_record *first = self->records;
    return ar_error_set(error, first->bad_input ? AR_FORMAT : AR_MISSING, "%s with policy %s: %s",
                        first->workload.name, first->policy_spec, first->detail);
}

/* `quiet`: no table has been printed. */
static enum ar_status judge(const struct suite_work *self, bool quiet, struct ar_error *error)
{
    size_t failed = 0;
    const struct run_record *first = NULL;
    for (size_t i = 0; i < self->plan.run_count; i++) {
        const struct run_record *record = &self->records[i];
        const struct ar_spec *spec = &self->plan.policies[self->plan.runs[i].policy].spec;
        if (record->end != RUN_CRASHED || !registry_names_object(spec))
            continue;
        bool broken = strncmp(record->detail, RUN_BROKEN, strlen(RUN_BROKEN)) == 0;
        return quiet ? ar_error_set(error, AR_CORRUPT, "policy %s %s", record->policy_spec,
                                    record->detail)
                     : ar_error_set(error, AR_CORRUPT, "policy %s %s at %s: its row says how",
                                    record->policy_spec, broken ? "broke the contract" : "crashed",
                                    record->workload.name);
    }
    for (size_t i = 0; i < self->plan.run_count; i++) {
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
                        self->plan.run_count, first->workload.name, first->policy_spec, where);
}

static void close_work(struct suite_work *self)
{
    output_set_abandon(&self->outputs);
    if (self->made_output)
        (void)rmdir(self->suite->output); /* if it is empty */
    results_close(&self->results);
    for (size_t i = 0; self->series && i < self->plan.run_count; i++)
        free(self->series[i]);
    free(self->series);
    free(self->series_observers);
    free(self->records);
    slowdown_close(&self->curve);
    result_folder_close(&self->folder);
    run_files_close(&self->run_files);
    plan_close(&self->plan);
}

/* The events of several runs in one file are written by this process. */
static void share_process(struct suite_work *self)
{
    const struct plan *plan = &self->plan;
    if (self->files->path[SUITE_FILE_chrome] && plan->run_count > 1)
        for (size_t i = 0; i < plan->run_count; i++)
            plan->runs[i].alone = plan->alone[plan->runs[i].device];
}

/* The first card among the devices; the first device if there is no card. */
static const char *card_of(const struct plan *plan)
{
    for (size_t i = 0; i < plan->devices.count; i++)
        if (plan_wants_process(plan->devices.items[i]))
            return plan->devices.items[i];
    return plan->devices.items[0];
}

enum ar_status suite_run(const struct suite *suite, const struct suite_files *files,
                         const struct environment *environment, FILE *stream,
                         struct ar_error *error)
{
    AR_CLOSED(close_work)
    struct suite_work self = {.suite = suite, .files = files, .environment = *environment};
    AR_TRY(plan_make(&self.plan, suite, error));
    share_process(&self);
    AR_TRY(want_one_run(&self, error));
    AR_TRY(open_files(&self, error));
    const bool quiet = self.outputs.standard; /* it takes one format, and then no table */
    environment_card_before(&self.environment, card_of(&self.plan));
    enum ar_status status = run_all(&self, error);
    environment_card_after(&self.environment);
    AR_THEN(status, want_one_begun(&self, error));
    if (!status && !quiet)
        status = print_tables(&self, stream, suite->wide ? TABLE_TEXT_WIDE : TABLE_TEXT, error);
    AR_THEN(status, write_files(&self, error));
    AR_THEN(status,
            result_folder_commit(&self.folder, &self.outputs, quiet ? NULL : stream, error));
    if (status) {
        output_set_abandon(&self.outputs);
        result_folder_take_away(&self.folder);
    }
    if (self.has_journal)
        journal_close(&self.journal, status == AR_OK);
    AR_THEN(status, judge(&self, quiet, error));
    return status;
}
