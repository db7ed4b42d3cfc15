/* A run on a card has a process of its own, so what is written at its end is written there: the
 * streams are the same, what is held in memory is not. */
#include "bench/suite/run_files.h"

#include <string.h>

#include "bench/report/calls_csv.h"
#include "bench/report/hdr_percentiles.h"
#include "bench/report/policy_figures.h"
#include "bench/report/results_csv.h"
#include "sim/replay/latency.h"

/* The histograms there are, by the metrics that come from them. */
#define HISTOGRAMS(X)                                                                              \
    X(alloc_ns, alloc) X(free_ns, free) X(alloc_total_ns, alloc_total) X(free_total_ns, free_total)

static enum status write_placement(void *argument, const struct replay_row *row,
                                   struct error *error)
{
    const struct run_files *self = argument;
    (void)error;
    placements_csv_row(self->streams[SUITE_FILE_placements], row);
    return STATUS_OK;
}

static enum status write_sample(void *argument, const struct replay_sample *sample,
                                struct error *error)
{
    const struct run_files *self = argument;
    (void)error;
    series_csv_row(self->streams[SUITE_FILE_series], sample);
    return STATUS_OK;
}

static void write_call(void *argument, enum device_call call, uint64_t bytes, uint64_t ns,
                       uint64_t waited_ns, bool refused)
{
    const struct run_files *self = argument;
    const struct driver_call row = {self->event_now, call, bytes, ns, waited_ns, refused};
    calls_csv_row(self->streams[SUITE_FILE_calls], &row);
}

static enum status write_end(void *argument, const struct policy *policy, struct error *error)
{
    struct run_files *self = argument;
    enum status status = STATUS_OK;
    if (self->streams[SUITE_FILE_stats])
        policy_figures_write(self->streams[SUITE_FILE_stats], policy);
    if (self->streams[SUITE_FILE_snapshot])
        status =
            run_snapshot_write(&self->snapshot, policy, self->streams[SUITE_FILE_snapshot], error);
    if (!status && self->streams[SUITE_FILE_chrome])
        status = chrome_trace_write(&self->chrome, self->streams[SUITE_FILE_chrome], error);
    return status;
}

static enum status write_latencies(void *argument, const struct latency *latency,
                                   struct error *error)
{
    const struct run_files *self = argument;
    const struct hist *hist = NULL;
    (void)error;
#define X(name, field)                                                                             \
    if (strcmp(self->hdr_of, #name) == 0)                                                          \
        hist = &latency->field;
    HISTOGRAMS(X)
#undef X
    if (hist)
        hdr_percentiles_write(self->streams[SUITE_FILE_hdr], hist);
    return STATUS_OK;
}

static enum status check_histogram(const char *name, struct error *error)
{
#define X(known, field)                                                                            \
    if (strcmp(name, #known) == 0)                                                                 \
        return STATUS_OK;
    HISTOGRAMS(X)
#undef X
    return error_set(error, STATUS_INVALID,
                     "--hdr-of \"%.40s\" is no histogram; there are alloc_ns, free_ns, "
                     "alloc_total_ns and free_total_ns",
                     name);
}

enum status run_files_open(struct run_files *self, FILE *const *streams,
                           const struct suite_files *files, const struct plan *plan,
                           struct error *error)
{
    *self = (struct run_files){.streams = streams, .hdr_of = "alloc_ns"};
    if (files->hdr_of)
        self->hdr_of = files->hdr_of;
    enum status status = check_histogram(self->hdr_of, error);
    if (!status && files->path[SUITE_FILE_hdr] && !plan->suite->time)
        status = error_set(error, STATUS_INVALID,
                           "--hdr writes the host time of calls, which only --time measures; add "
                           "--time");
    bool wants = files->path[SUITE_FILE_snapshot] || files->path[SUITE_FILE_chrome];
    if (status || !wants)
        return status;
    self->witness = witness_create();
    if (!self->witness)
        return error_set(error, STATUS_HOST_MEMORY, "no host memory left for a run's files");
    const char *workload = plan->workloads[0].info.name;
    if (files->path[SUITE_FILE_snapshot]) {
        run_snapshot_open(&self->snapshot, workload);
        witness_listen(self->witness, run_snapshot_hear, &self->snapshot);
    }
    if (files->path[SUITE_FILE_chrome]) {
        uint64_t most = files->chrome_most ? *files->chrome_most : SUITE_CHROME_MOST;
        chrome_trace_open(&self->chrome, plan->policies[0].text, workload, most);
        witness_listen(self->witness, chrome_trace_hear, &self->chrome);
    }
    return STATUS_OK;
}

void run_files_close(struct run_files *self)
{
    witness_destroy(self->witness);
    run_snapshot_close(&self->snapshot);
    chrome_trace_close(&self->chrome);
    self->witness = NULL;
}

void run_files_attach(struct run_files *self, struct plan_cell *cell)
{
    if (self->streams[SUITE_FILE_placements]) {
        cell->row = write_placement;
        cell->argument = self;
    }
    if (self->streams[SUITE_FILE_series]) {
        cell->sample = write_sample;
        cell->argument = self;
    }
    if (self->streams[SUITE_FILE_stats] || self->witness) {
        cell->finished = write_end;
        cell->finished_argument = self;
        cell->witness = self->witness;
    }
    if (self->streams[SUITE_FILE_calls]) {
        cell->listener = (struct device_listener){write_call, self};
        cell->event_now = &self->event_now;
    }
    run_files_attach_timed(self, cell);
}

void run_files_attach_timed(struct run_files *self, struct plan_cell *cell)
{
    if (!self->streams[SUITE_FILE_hdr])
        return;
    cell->latencies = write_latencies;
    cell->latencies_argument = self;
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
