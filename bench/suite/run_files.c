/* A run on a card has a process of its own, so what is written at its end is written in that
 * process: it shares the streams but not the memory. Therefore a timeline of several runs, which is
 * one file, needs runs in this process. */
#include "bench/suite/run_files.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/replay/latency.h"

static const struct {
    const char *name;
    bool one_run;
} about[SUITE_FILE_COUNT] = {
#define X(name, one_run) {#name, one_run},
    SUITE_FILES(X)
#undef X
};

const char *suite_file_name(enum suite_file file)
{
    return about[file].name;
}

bool suite_file_holds_one_run(enum suite_file file)
{
    return about[file].one_run;
}

enum suite_file suite_files_of_one_run(const struct suite_files *files)
{
    unsigned file = 0;
    while (file < SUITE_FILE_COUNT && !(files->path[file] && about[file].one_run))
        file++;
    return (enum suite_file)file;
}

#define CALLS_MOST  (UINT32_C(1) << 20) /* driver calls kept before they are written: 48 MiB */
#define CALLS_READY (UINT32_C(1) << 16) /* those whose memory is touched before the run */

/* The histograms, by the metrics computed from them. */
#define HISTOGRAMS(X)                                                                              \
    X(alloc_ns, alloc) X(free_ns, free) X(alloc_total_ns, alloc_total) X(free_total_ns, free_total)

static enum ar_status write_placement(void *argument, const struct replay_row *row,
                                      struct ar_error *error)
{
    const struct run_files *self = argument;
    (void)error;
    placements_csv_row(self->streams[SUITE_FILE_placements], row);
    return AR_OK;
}

static enum ar_status write_sample(void *argument, const struct replay_sample *sample,
                                   struct ar_error *error)
{
    const struct run_files *self = argument;
    (void)error;
    series_csv_row(self->streams[SUITE_FILE_series], sample);
    return AR_OK;
}

static void write_calls(struct run_files *self)
{
    for (size_t i = 0; i < self->calls.count; i++)
        calls_csv_row(self->streams[SUITE_FILE_calls], &self->calls.items[i]);
    self->calls.count = 0;
}

/* Without this memory calls are still kept, or written at once. */
static enum ar_status make_room(void *argument, struct ar_error *error)
{
    struct run_files *self = argument;
    (void)error;
    (void)call_list_ready(&self->calls, CALLS_READY);
    return AR_OK;
}

/* Called within the policy's call, whose time may be measured: writing would take longer than many
 * policies. */
static void keep_call(void *argument, const struct observer_driver_call *made)
{
    struct run_files *self = argument;
    const struct driver_call row = {made->event, made->call,      made->bytes,
                                    made->ns,    made->waited_ns, made->refused};
    if (self->calls.count < self->calls_most && call_list_add(&self->calls, &row))
        return;
    write_calls(self);
    calls_csv_row(self->streams[SUITE_FILE_calls], &row);
}

static enum ar_status write_end(void *argument, const struct ar_policy *policy,
                                struct ar_error *error)
{
    struct run_files *self = argument;
    enum ar_status status = AR_OK;
    if (self->streams[SUITE_FILE_calls])
        write_calls(self);
    if (self->streams[SUITE_FILE_stats])
        policy_figures_write(self->streams[SUITE_FILE_stats], policy);
    if (self->streams[SUITE_FILE_snapshot])
        status =
            run_snapshot_write(&self->snapshot, policy, self->streams[SUITE_FILE_snapshot], error);
    if (!status && self->chromes && self->alone)
        status = chrome_trace_write(self->chromes, 1, self->streams[SUITE_FILE_chrome], error);
    return status;
}

static enum ar_status write_latencies(void *argument, const struct latency *latency,
                                      struct ar_error *error)
{
    const struct run_files *self = argument;
    const struct ar_hist *hist = NULL;
    (void)error;
#define X(name, field)                                                                             \
    if (strcmp(self->hdr_of, #name) == 0)                                                          \
        hist = &latency->field;
    HISTOGRAMS(X)
#undef X
    if (hist)
        hdr_percentiles_write(self->streams[SUITE_FILE_hdr], hist);
    return AR_OK;
}

static enum ar_status check_histogram(const char *name, struct ar_error *error)
{
#define X(known, field)                                                                            \
    if (strcmp(name, #known) == 0)                                                                 \
        return AR_OK;
    HISTOGRAMS(X)
#undef X
    return ar_error_set(error, AR_INVALID,
                        "--hdr-of \"%.40s\" is no histogram; there are alloc_ns, free_ns, "
                        "alloc_total_ns and free_total_ns",
                        name);
}

/* The timeline of a run's run. */
static void open_chrome(struct run_files *self, const struct suite_files *files,
                        const struct plan *plan, size_t index)
{
    const struct plan_run *run = &plan->runs[index];
    char name[sizeof self->chromes->name], which[48] = "";
    if (plan->suite->reps > 1 || plan->suite->replicates > 1)
        (void)snprintf(which, sizeof which, ", seed %" PRIu64 ", repetition %u", run->seed,
                       run->repetition + 1);
    (void)snprintf(
        name, sizeof name, "%.120s on %s%s%s%s", plan->policies[run->policy].text,
        plan->workloads[run->workload].info.name,
        plan->workloads[run->workload].frees_count > 1 ? ", frees " : "",
        plan->workloads[run->workload].frees_count > 1 ? replay_frees_name(run->frees) : "", which);
    chrome_trace_open(&self->chromes[index], name, files->chrome_most);
    self->chrome_observers[index] = (struct observer){
        .next = &self->events, .memory = chrome_trace_observe, .argument = &self->chromes[index]};
}

/* Links the observers that all runs share: events, memory, end, timed. */
static void open_observers(struct run_files *self)
{
    FILE *const *streams = self->streams;
    bool calls = streams[SUITE_FILE_calls] != NULL;
    self->timed = (struct observer){.argument = self,
                                    .latencies = streams[SUITE_FILE_hdr] ? write_latencies : NULL};
    self->end = (struct observer){.next = &self->timed, .argument = self, .finished = write_end};
    self->memory =
        (struct observer){.next = &self->end,
                          .argument = &self->snapshot,
                          .memory = streams[SUITE_FILE_snapshot] ? run_snapshot_observe : NULL};
    self->events = (struct observer){.next = &self->memory,
                                     .argument = self,
                                     .begin = calls ? make_room : NULL,
                                     .row = streams[SUITE_FILE_placements] ? write_placement : NULL,
                                     .sample = streams[SUITE_FILE_series] ? write_sample : NULL,
                                     .driver_call = calls ? keep_call : NULL};
}

enum ar_status run_files_open(struct run_files *self, FILE *const *streams,
                              const struct suite_files *files, const struct plan *plan,
                              struct ar_error *error)
{
    *self = (struct run_files){.streams = streams, .hdr_of = "alloc_ns", .calls_most = CALLS_MOST};
    open_observers(self);
    if (files->hdr_of)
        self->hdr_of = files->hdr_of;
    enum ar_status status = check_histogram(self->hdr_of, error);
    if (!status && files->path[SUITE_FILE_hdr] && !plan->suite->time)
        status =
            ar_error_set(error, AR_INVALID,
                         "--hdr writes the host time of calls, which only --time measures; add "
                         "--time");
    if (status || (!files->path[SUITE_FILE_snapshot] && !files->path[SUITE_FILE_chrome]))
        return status;
    self->count = plan->run_count;
    self->alone = plan->runs[0].alone;
    if (files->path[SUITE_FILE_snapshot])
        run_snapshot_open(&self->snapshot, plan->workloads[0].info.name);
    if (!files->path[SUITE_FILE_chrome])
        return AR_OK;
    self->chromes = calloc(self->count, sizeof *self->chromes);
    self->chrome_observers = calloc(self->count, sizeof *self->chrome_observers);
    if (!self->chromes || !self->chrome_observers)
        return ar_no_memory(error, "a run's files");
    for (size_t i = 0; i < self->count; i++)
        open_chrome(self, files, plan, i);
    return AR_OK;
}

enum ar_status run_files_finish(const struct run_files *self, struct ar_error *error)
{
    if (!self->chromes || self->alone)
        return AR_OK;
    return chrome_trace_write(self->chromes, self->count, self->streams[SUITE_FILE_chrome], error);
}

void run_files_close(struct run_files *self)
{
    for (size_t i = 0; self->chromes && i < self->count; i++)
        chrome_trace_close(&self->chromes[i]);
    free(self->chrome_observers);
    free(self->chromes);
    run_snapshot_close(&self->snapshot);
    call_list_close(&self->calls);
    *self = (struct run_files){0};
}

const struct observer *run_files_observer(const struct run_files *self, size_t index)
{
    return self->chrome_observers ? &self->chrome_observers[index] : &self->events;
}

const struct observer *run_files_timed(const struct run_files *self)
{
    return self->streams[SUITE_FILE_hdr] ? &self->timed : NULL;
}

void run_files_headers(FILE *const *streams)
{
    if (streams[SUITE_FILE_placements])
        placements_csv_header(streams[SUITE_FILE_placements]);
    if (streams[SUITE_FILE_series])
        series_csv_header(streams[SUITE_FILE_series]);
    if (streams[SUITE_FILE_calls])
        calls_csv_header(streams[SUITE_FILE_calls]);
}
