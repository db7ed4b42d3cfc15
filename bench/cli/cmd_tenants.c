/* `tenants`: runs several processes on one machine with one virtual clock. */
#include <errno.h>

#include "bench/cli/cli.h"
#include "bench/report/data_writer.h"
#include "bench/report/output_file.h"
#include "bench/report/pages.h"
#include "bench/suite/tenants_suite.h"

struct arguments {
    const char *path, *csv, *series, *device, *mode; /* device NULL: simulated */
    uint64_t replicates, seed, timeout_s;            /* replicates 0, seed NOT_GIVEN */
    bool no_alone, wide;
};

#define NOT_GIVEN UINT64_MAX

static enum ar_status take_device(void *arguments, const struct cli_option *option AR_UNUSED,
                                  const char *value, struct ar_error *error)
{
    struct arguments *self = arguments;
    self->device = strncmp(value, "cuda", 4) == 0 ? value : NULL;
    return self->device || !strcmp(value, "sim")
               ? AR_OK
               : ar_invalid(error,
                            "-d %s: write sim (the simulated cards of the suite) or cuda (the "
                            "cards of the driver)",
                            value);
}

static const struct cli_option options[] = {
    {CLI_HEADING("Options:")},
    {'d', "device", "DEVICE", "cuda: real processes on the cards of the driver, in order",
     CLI_CALL(take_device)},
    {0, "timeout", "SECONDS", "on a card: time without progress of a process; default 120",
     CLI_COUNT(timeout_s, 1, 86400)},
    {0, "mode", "barriered|free", "replaces the mode of the suite", CLI_TEXT(mode)},
    {0, "replicates", "N", "mode free: number of interleavings or, on a card, trials",
     CLI_COUNT(replicates, 1, 10000)},
    {0, "draws", "N", "alias of --replicates, for one release", .alias = "replicates"},
    {0, "seed", "N", "seed of the first replicate", CLI_COUNT(seed, 0, (double)SUITE_SEED_MOST)},
    {0, "no-alone", NULL, "do not also run each process alone (no slowdown)", CLI_FLAG(no_alone)},
    {0, "csv", "FILE", "write a row for each replicate and process; - is standard output",
     CLI_FILE(csv)},
    {0, "wide", NULL, "print all columns; the table is then wider than 80 columns", CLI_FLAG(wide)},
    {0, "series", "FILE",
     "write the memory of each process after each round of the first replicate", CLI_FILE(series)},
    {0},
};

static const struct cli_page page = {
    .arguments = "SUITE.ini [options]",
    .text =
        "Runs several processes, each with a policy or framework settings, workloads and a CUDA\n"
        "context, on the cards of one simulated machine. Prints which processes start and fail,\n"
        "which processes caused a failure, and the memory released when one ends. The files are\n"
        "explained in workloads/suites/tenants. In the mode barriered all processes step\n"
        "together, with one outcome; in the mode free many interleavings run, and the outcomes\n"
        "are counted.",
    .options = options,
    .argument = {.value = "suite", .lists = true, CLI_TEXT(path)},
};

/* The state of one command. */
struct job {
    const struct arguments *arguments;
    struct tenants_suite *suite;
    struct output_set files;
    FILE *csv; /* NULL: not requested */
    struct tenants_page page;
    struct tenant_result *results;
    struct tenant_result *alone;
};

struct series {
    FILE *stream;
    const struct tenants_suite *suite;
};

static enum ar_status add_sample(void *argument, const struct tenant_sample *sample,
                                 struct ar_error *error AR_UNUSED)
{
    struct series *self = argument;
    fprintf(self->stream, "%" PRIu64 ",%" PRIu64 ",", sample->round, sample->time_ns);
    csv_text(self->stream, self->suite->setups[sample->tenant].name);
    if (sample->pinned)
        fputs(",host", self->stream);
    else
        fprintf(self->stream, ",%" PRIu32, sample->card);
    fprintf(self->stream, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", sample->live_bytes,
            sample->reserved_bytes, sample->physical_bytes, sample->card_free_bytes);
    return AR_OK;
}

static enum ar_status run_once(const struct job *self, const struct tenants *tenants,
                               struct tenant_result *results, struct ar_error *error)
{
    const struct arguments *arguments = self->arguments;
    return arguments->device
               ? tenants_card_run(tenants, arguments->device, arguments->timeout_s, results, error)
               : tenants_run(tenants, results, error);
}

/* Runs each process alone on the same machine, from its start. */
static enum ar_status run_alone(struct job *self, const struct tenants *together,
                                struct ar_error *error)
{
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < together->count && !status; i++) {
        struct tenant_setup setup = together->setups[i];
        struct tenants tenants = *together;
        setup.arrives = setup.leaves = 0;
        tenants.setups = &setup;
        tenants.count = 1;
        tenants.free = false;
        tenants.sample = NULL;
        status = run_once(self, &tenants, &self->alone[i], error);
    }
    self->page.alone = self->alone;
    return status;
}

/* In simulation the file appears when it is complete; on a card, with the first trial. */
static enum ar_status open_csv(struct job *self, struct ar_error *error)
{
    const char *path = self->arguments->csv;
    if (!self->arguments->device || strcmp(path, "-") == 0)
        AR_TRY(output_set_add(&self->files, path, &self->csv, error));
    else if (!(self->csv = fopen(path, "w")))
        return ar_error_set(error, AR_IO, "cannot write %s: %s", path, strerror(errno));
    tenants_csv_head(self->csv);
    return AR_OK;
}

/* Trials on a card take long and may be interrupted, so each result is printed at once. */
static enum ar_status report_trial(struct job *self, size_t replicate, struct ar_error *error)
{
    enum ar_status status = self->arguments->csv && !self->csv ? open_csv(self, error) : AR_OK;
    if (status == AR_OK && self->csv)
        tenants_csv_replicate(self->csv, &self->page, replicate);
    if (status != AR_OK || !self->arguments->device)
        return status;
    if (self->csv != stdout && self->page.replicates > 1) {
        char text[4096];
        tenants_outcome_text(&self->page, replicate, text, sizeof text);
        printf("trial %zu of %zu: %s\n", replicate + 1, self->page.replicates, text);
    }
    fflush(stdout);
    if (self->csv)
        fflush(self->csv);
    return AR_OK;
}

static enum ar_status run_replicates(struct job *self, struct ar_error *error)
{
    const struct tenants_suite *suite = self->suite;
    struct series series = {NULL, suite};
    struct tenants tenants = {
        .cards = suite->cards,
        .card_count = suite->card_count,
        .setups = suite->setups,
        .count = suite->count,
        .free = suite->free,
        .turn_events = suite->turn_events,
        .host_bytes = suite->host_bytes,
    };
    enum ar_status status = AR_OK;
    AR_TRY(output_set_add(&self->files, self->arguments->series, &series.stream, error));
    if (series.stream) {
        fputs("round,time_ns,process,card,live_bytes,reserved_bytes,physical_bytes,"
              "card_free_bytes\n",
              series.stream);
        tenants.argument = &series;
    }
    if (!self->arguments->no_alone)
        status = run_alone(self, &tenants, error);
    for (size_t replicate = 0; replicate < self->page.replicates && !status; replicate++) {
        tenants.seed = suite->seed + replicate;
        tenants.sample = series.stream && !replicate ? add_sample : NULL;
        status = run_once(self, &tenants, self->results + replicate * suite->count, error);
        AR_THEN(status, report_trial(self, replicate, error));
    }
    return ar_error_prefix(error, status, "%s", self->arguments->path);
}

static enum ar_status close_csv(struct job *self, struct ar_error *error)
{
    FILE *stream = self->arguments->device && self->csv != stdout ? self->csv : NULL;
    self->csv = NULL;
    if (!stream)
        return AR_OK;
    bool bad = ferror(stream) != 0;
    return fclose(stream) || bad ? ar_error_set(error, AR_IO, "cannot write %s: %s",
                                                self->arguments->csv, strerror(errno))
                                 : AR_OK;
}

static enum ar_status run_suite(const struct arguments *arguments, struct tenants_suite *suite,
                                struct ar_error *error)
{
    size_t replicates = suite->free ? (size_t)suite->replicates : 1;
    char title[256];
    struct job self = {
        .arguments = arguments,
        .suite = suite,
        .results = calloc(replicates * suite->count, sizeof *self.results),
        .alone = calloc(suite->count, sizeof *self.alone),
    };
    snprintf(title, sizeof title, "%s: %zu process%s on %zu %scard%s, %s", suite->name,
             suite->count, suite->count == 1 ? "" : "es", suite->card_count,
             arguments->device ? "real " : "", suite->card_count == 1 ? "" : "s",
             suite->free ? "free" : "barriered");
    self.page = (struct tenants_page){
        .title = title,
        .setups = suite->setups,
        .count = suite->count,
        .replicates = replicates,
        .real = arguments->device != NULL,
        .wide = arguments->wide,
        .results = self.results,
    };
    enum ar_status status = self.results && self.alone
                                ? run_replicates(&self, error)
                                : ar_no_memory(error, "%zu replicates", replicates);
    enum ar_status closed = close_csv(&self, status ? NULL : error);
    status = status ? status : closed;
    if (!status && !self.files.standard)
        status = tenants_page_print(stdout, &self.page, error);
    AR_THEN(status, output_set_commit(&self.files, error));
    output_set_abandon(&self.files);
    free(self.results);
    free(self.alone);
    return status;
}

enum ar_status cmd_tenants(int argc, char **argv, struct ar_error *error)
{
    struct arguments self = {.seed = NOT_GIVEN};
    AR_CLOSED(tenants_suite_close) struct tenants_suite suite = {0};
    AR_TRY(cli_parse(&page, argc, argv, &self, error));
    if (!self.path)
        return ar_invalid(error, "tenants: no suite is given; write tenants SUITE.ini");
    if (self.mode && strcmp(self.mode, "free") != 0 && strcmp(self.mode, "barriered") != 0)
        return ar_invalid(error, "tenants: --mode %s: barriered or free", self.mode);
    AR_TRY(tenants_suite_read(self.path, &suite, error));
    suite.free = self.mode ? !strcmp(self.mode, "free") : suite.free;
    suite.replicates = self.replicates ? self.replicates : suite.replicates;
    suite.seed = self.seed == NOT_GIVEN ? suite.seed : self.seed;
    if (self.series && self.device)
        return ar_invalid(error, "--series needs simulated processes");
    for (size_t i = 0; i < suite.count && self.device; i++)
        if (suite.setups[i].pinned)
            return ar_invalid(error, "%s: process %s: pinned memory needs simulated processes",
                              self.path, suite.setups[i].name);
    if (self.replicates && !suite.free)
        return ar_invalid(error,
                          "--replicates needs mode = free: barriered processes have one outcome");
    return run_suite(&self, &suite, error);
}
