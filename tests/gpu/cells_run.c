/* Cells one after the other in one process.
 *
 * 1. A device of its own, open as long as the process, keeps the card's context: a cell's own
 *    device then joins it, and neither context nor libraries are loaded anew.
 * 2. Where the process is the only one on the card, the bytes that the card holds are read before
 *    and after each cell. What a cell leaves may be the driver's, made once (kernels of a library,
 *    a queue's memory): so the cell is run again. What it leaves each of ROUNDS times was not given
 *    back.
 * 3. After an error of the driver the context is of no use: the answer says that the process is
 *    spent. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocators/base/size.h"
#include "sim/experiment/session.h"
#include "tests/gpu/cells.h"
#include "workloads/workload.h"

#define ROUNDS 3

struct cells_runner {
    const struct cells_wish *wish;
    struct ar_device *keeper;
    pid_t process;               /* this one: names the folder of files of addresses */
    struct trace_source *source; /* of `workload` */
    const char *workload;        /* of the list; NULL: none */
};

#define FOLDER_ROOM 960 /* one with a longer TMPDIR cannot be made, which is said */
#define FILE_ROOM   (FOLDER_ROOM + 16)

static void folder_of(pid_t process, char *path, size_t bytes)
{
    const char *where = getenv("TMPDIR");
    snprintf(path, bytes, "%.900s/allocrig-cells.%ld", where && where[0] ? where : "/tmp",
             (long)process);
}

static void file_of(pid_t process, const char *name, char *path, size_t bytes)
{
    char folder[FOLDER_ROOM];
    folder_of(process, folder, sizeof folder);
    snprintf(path, bytes, "%s/%s", folder, name);
}

static void remove_files(pid_t process)
{
    char path[FILE_ROOM];
    file_of(process, "addresses", path, sizeof path);
    unlink(path);
    file_of(process, "ranges", path, sizeof path);
    unlink(path);
}

void cells_runner_clean(pid_t process)
{
    char folder[FOLDER_ROOM];
    remove_files(process);
    folder_of(process, folder, sizeof folder);
    rmdir(folder);
}

enum ar_status cells_runner_open(const struct cells_wish *wish, struct cells_runner **out,
                                 struct ar_error *error)
{
    char folder[FOLDER_ROOM];
    struct cells_runner *self = calloc(1, sizeof *self);
    AR_TRY_MEMORY(self, error, "the cells");
    self->wish = wish;
    self->process = getpid();
    folder_of(self->process, folder, sizeof folder);
    enum ar_status status = AR_OK;
    if (mkdir(folder, 0700) != 0)
        status = ar_error_set(error, AR_IO, "%s cannot be made: %s", folder, strerror(errno));
    if (!status)
        status = ar_device_open_text("cuda:matmul=early", &self->keeper, error);
    if (status)
        cells_runner_close(self);
    else
        *out = self;
    return status;
}

const char *cells_runner_card(const struct cells_runner *runner)
{
    return runner->keeper->props.profile;
}

void cells_runner_close(struct cells_runner *runner)
{
    if (!runner)
        return;
    trace_close(runner->source);
    ar_device_close(runner->keeper);
    free(runner);
}

static enum ar_status open_workload(struct cells_runner *self, const struct cell *cell,
                                    struct ar_error *error)
{
    if (self->source && self->workload == cell->workload)
        return AR_OK;
    trace_close(self->source);
    self->source = NULL;
    self->workload = cell->workload;
    return workload_open(cell->workload, &self->source, error);
}

/* The trace that the passes replay: an adaptive workload is played once, simulated, with the
 * policy. */
static enum ar_status open_trace(struct cells_runner *self, const struct cell *cell,
                                 enum replay_frees frees, struct trace_source **trace,
                                 struct trace_source **owned, struct ar_error *error)
{
    struct ar_spec policy, device;
    char text[64];
    *owned = NULL;
    snprintf(text, sizeof text, "sim:capacity=%.40s", self->wish->capacity);
    enum ar_status status = ar_spec_parse(cell->policy, &policy, error);
    if (status)
        return status;
    status = ar_spec_parse(text, &device, error);
    if (!status) {
        const struct experiment experiment = {.policy = &policy,
                                              .device = &device,
                                              .source = self->source,
                                              .frees = frees,
                                              .seed = 1};
        status = session_trace(&experiment, !cell->recorded, trace, owned, error);
        ar_spec_close(&device);
    }
    ar_spec_close(&policy);
    return status;
}

/* The device writes a file where it makes something; growing ranges need no segments. */
static void make_empty(const char *path)
{
    FILE *file = fopen(path, "ae");
    if (file)
        fclose(file);
}

static enum ar_status run_equal(struct cells_runner *self, const struct cell *cell,
                                struct trace_source *trace, struct cell_answer *answer,
                                struct ar_error *error)
{
    const enum replay_frees frees = cell->recorded ? REPLAY_RECORDED : REPLAY_ORDERED;
    char addresses[FILE_ROOM], ranges[FILE_ROOM], device[2 * FILE_ROOM + 128];
    char wrong[sizeof answer->text];
    struct cell_tape card, sim;
    file_of(self->process, "addresses", addresses, sizeof addresses);
    file_of(self->process, "ranges", ranges, sizeof ranges);
    remove_files(self->process);
    snprintf(device, sizeof device, "cuda:capacity=%s,record_addresses=%s,record_ranges=%s",
             self->wish->capacity, addresses, ranges);
    enum ar_status status =
        cell_play(cell->policy, device, trace, frees, false, true, &card, error);
    if (!status && card.result.problem[0])
        status = ar_error_set(error, AR_CORRUPT, "%s", card.result.problem);
    if (status) {
        cell_tape_close(&card);
        answer->spent = 1;
        return ar_error_prefix(error, status, "on the card");
    }
    make_empty(addresses);
    make_empty(ranges);
    snprintf(device, sizeof device, "sim:capacity=%s,addresses=%s,ranges=%s", self->wish->capacity,
             addresses, ranges);
    status = cell_play(cell->policy, device, trace, frees, false, true, &sim, error);
    if (status)
        status = ar_error_prefix(error, status, "on sim");
    else
        cell_compare(&card, &sim, wrong, sizeof wrong);
    answer->good = !status && !wrong[0];
    if (!status && wrong[0])
        snprintf(answer->text, sizeof answer->text, "%s", wrong + 1);
    else
        snprintf(answer->text, sizeof answer->text, "%zu placements, %zu driver calls%s",
                 card.row_count, card.call_count,
                 card.result.passed ? "" : ", did not finish on either");
    cell_tape_close(&card);
    cell_tape_close(&sim);
    return status;
}

/* A run that did not finish passes where no byte was wrong; the line says so. */
static enum ar_status run_verify(struct cells_runner *self, const struct cell *cell,
                                 struct trace_source *trace, enum replay_frees frees,
                                 struct cell_answer *answer, struct ar_error *error)
{
    char device[64], bytes[32];
    struct cell_tape card;
    snprintf(device, sizeof device, "cuda:capacity=%.40s", self->wish->capacity);
    enum ar_status status =
        cell_play(cell->policy, device, trace, frees, true, false, &card, error);
    const struct replay_result *result = &card.result;
    if (!status && result->problem[0])
        status = ar_error_set(error, AR_CORRUPT, "%s", result->problem);
    answer->spent = status != AR_OK;
    answer->good = !status;
    if (!status && !result->passed)
        snprintf(answer->text, sizeof answer->text, "DNF @ %" PRIu64 ": %s, a request of %s",
                 result->first_failed_event, replay_cause_name(result->cause),
                 ar_size_print(result->first_failed_bytes, bytes, sizeof bytes));
    cell_tape_close(&card);
    return status;
}

static void run_once(struct cells_runner *self, const struct cell *cell, struct cell_answer *answer)
{
    struct ar_error error = {""};
    struct trace_source *trace = NULL, *owned = NULL;
    enum replay_frees frees[2] = {cell->recorded ? REPLAY_RECORDED : REPLAY_ORDERED};
    unsigned count = 1;
    answer->good = answer->skipped = answer->spent = 0;
    answer->text[0] = '\0';
    enum ar_status status = open_workload(self, cell, &error);
    if (!status && self->wish->task == CELLS_VERIFY)
        count = replay_frees_choices(&self->source->info, REPLAY_ORDERED, frees);
    for (unsigned i = 0; i < count && !status; i++) {
        status = open_trace(self, cell, frees[i], &trace, &owned, &error);
        if (!status && self->wish->task == CELLS_EQUAL)
            status = run_equal(self, cell, trace, answer, &error);
        else if (!status)
            status = run_verify(self, cell, trace, frees[i], answer, &error);
        trace_close(owned);
        owned = NULL;
    }
    if (status) {
        answer->good = 0;
        answer->skipped = status == AR_MISSING && !answer->spent;
        snprintf(answer->text, sizeof answer->text, "%.*s", (int)sizeof answer->text - 1,
                 error.text[0] ? error.text : ar_status_meaning(status));
    }
}

static uint64_t held_bytes(const struct cells_runner *self)
{
    return self->keeper->ops->card_bytes(self->keeper);
}

void cells_runner_run(struct cells_runner *runner, const struct cell *cell,
                      struct cell_answer *answer)
{
    const bool looks = runner->wish->jobs == 1;
    for (int round = 1; round <= ROUNDS; round++) {
        uint64_t before_bytes = looks ? held_bytes(runner) : 0;
        run_once(runner, cell, answer);
        uint64_t after_bytes = looks && !answer->spent ? held_bytes(runner) : 0;
        if (!answer->good || after_bytes <= before_bytes)
            return;
        if (round < ROUNDS)
            continue;
        answer->good = 0;
        snprintf(answer->text, sizeof answer->text,
                 "the card holds %" PRIu64 " bytes more after it than before, each of %d times",
                 after_bytes - before_bytes, ROUNDS);
    }
}
