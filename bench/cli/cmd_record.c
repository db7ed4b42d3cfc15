/* `record`: runs a program and writes its calls of the GPU driver as a trace. The report goes to
 * standard error, because standard output belongs to the program. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "bench/cli/cli.h"
#include "bench/cli/program.h"
#include "bench/report/sentence.h"
#include "workloads/io/fields.h"
#include "workloads/record/recording.h"
#include "workloads/record/spool.h"

struct arguments {
    const char *path, *format, *from;
    bool kernels;
    char **command;
};

static const struct cli_option options[] = {
    {CLI_HEADING("Options:")},
    {'o', "output", "FILE", "the trace to write: .txt or .trace, .bin, each also with .zst",
     CLI_FILE(path)},
    {0, "kernels", NULL, "also record kernels with their times", CLI_FLAG(kernels)},
    {0, "from", "FOLDER", "run no program; read what an earlier recording left in FOLDER",
     CLI_TEXT(from)},
    {0, "format", "FORMAT", "text or binary; default: by the ending", CLI_TEXT(format)},
    {0},
};

static const struct cli_page page = {
    .arguments = "-o FILE [--kernels] -- COMMAND [ARGUMENT..]\n-o FILE --from FOLDER",
    .text =
        "Runs COMMAND, any program that uses CUDA, and records the driver calls of it and of the\n"
        "processes that it starts: plain, stream-ordered and virtual memory, pinned host\n"
        "memory, events and waits. Returns the exit status of COMMAND. The trace is also\n"
        "written if the program fails or is killed.",
    .options = options,
    .argument = {CLI_CALL(cli_no_command)},
    .program = true,
};

static enum ar_status read_arguments(int argc, char **argv, struct arguments *self,
                                     struct ar_error *error)
{
    int own;
    self->command = program_command(argc, argv, &own);
    AR_TRY(cli_parse(&page, own, argv, self, error));
    if (!self->path)
        return ar_invalid(error,
                          "record: no output file is given; write record -o FILE -- COMMAND");
    if (!self->command == !self->from)
        return ar_invalid(
            error, self->command ? "record: --from reads an earlier recording and runs no command; "
                                   "leave one of them out"
                                 : "record: no command is given; write record -o FILE -- COMMAND");
    return AR_OK;
}

/* ---- report --------------------------------------------------------------------------------- */

static void print_count(uint64_t count, const char *what)
{
    if (count)
        fprintf(stderr, "  %" PRIu64 " %s\n", count, what);
}

static void report(const char *path, const struct recording_counts *counts,
                   const struct spools *spools)
{
    fprintf(stderr, "wrote %s: %" PRIu64 " allocations, %" PRIu64 " frees", path, counts->allocs,
            counts->frees);
    if (counts->cost_samples)
        fprintf(stderr, ", mean overhead %.0f ns",
                (double)counts->cost_total_ns / (double)counts->cost_samples);
    fprintf(stderr, "\n");
    print_count(counts->processes > 1 ? counts->processes : 0, "processes, each a tenant");
    print_count(counts->pinned, "of the allocations are pinned memory of the host (space=pinned)");
    print_count(counts->managed,
                "are managed memory (tag=managed), which moves between host and card");
    print_count(counts->mappings, "are mappings of virtual memory (tag=mapped)");
    print_count(counts->kernels, "kernels");
    print_count(counts->untimed_kernels,
                "of them without a time (0): the program ended before it was known");
    print_count(counts->unplaced_kernels, "kernels of launches that were not recorded: left out");
    print_count(counts->failed_allocs, "allocations failed");
    print_count(counts->failed_frees, "frees failed");
    print_count(counts->unknown_frees, "frees of addresses that were not in use");
    print_count(counts->reused,
                "blocks were released with their context: freed when that was noticed");
    print_count(counts->dropped_waits,
                "waits for events never recorded, or too many events: left out");
    print_count(counts->lost, "records are missing, because the disk was full");
    if (spools->unrecorded)
        sentence_say(stderr, "  %" PRIu32 " processes were not recorded: %s", spools->unrecorded,
                     spools->why);
}

/* ---- spools into a trace -------------------------------------------------------------------- */

static enum ar_status write_trace(const char *folder, const struct arguments *self,
                                  const struct trace_output_choice *format, bool died,
                                  struct ar_error *error)
{
    AR_CLOSED(spools_close) struct spools spools = {0};
    struct recording_counts counts;
    AR_CLOSED(trace_close_at) struct trace_source *source = NULL;
    AR_TRY(spools_open(folder, &spools, error));
    if (!spools.file_count)
        return spools.unrecorded
                   ? ar_error_set(error, AR_MISSING, "nothing was recorded: %s", spools.why)
               : spools.empty
                   ? ar_error_set(error, AR_MISSING,
                                  "nothing was recorded: there was no room for the records; is "
                                  "the disk full, or the size of files limited (ulimit -f)?")
               : self->command
                   ? ar_error_set(error, AR_MISSING,
                                  "nothing was recorded: the program made no CUDA driver call "
                                  "that is recorded")
                   : ar_invalid(error, "%s: it has no records; give the folder that `record` named",
                                folder);
    const char *name = self->command ? field_file_name(self->command[0]) : "recording";
    AR_TRY(recording_make(&spools, name, died, &source, &counts, error));
    AR_TRY(trace_output_save(source, self->path, format, error));
    report(self->path, &counts, &spools);
    return AR_OK;
}

/* Makes a folder next to the output, on the same file system. */
static enum ar_status make_folder(const char *path, char *folder, size_t room,
                                  struct ar_error *error)
{
    char given[PATH_MAX];
    int used = snprintf(given, sizeof given, "%s.spool-XXXXXX", path);
    if (used < 0 || (size_t)used >= sizeof given || !mkdtemp(given))
        return ar_error_set(error, AR_IO, "%s: no folder can be made next to it: %s", path,
                            strerror(errno));
    char *whole = realpath(given, NULL);
    if (!whole || strlen(whole) >= room) {
        free(whole);
        (void)rmdir(given);
        return ar_error_set(error, AR_IO, "%s: its path is too long", path);
    }
    strcpy(folder, whole);
    free(whole);
    return AR_OK;
}

static enum ar_status finish(const char *folder, const struct arguments *self,
                             const struct trace_output_choice *format,
                             const struct program_end *end, struct ar_error *error)
{
    bool died = end->code != 0;
    enum ar_status status = write_trace(folder, self, format, died, error);
    /* After a failed write the spools are kept, because the trace may be written later. */
    if (status && status != AR_MISSING)
        return ar_error_prefix(
            error, status, "the recording is in %s (write it with record -o FILE --from FOLDER)",
            folder);
    spools_remove(folder);
    if (!died)
        return status;
    return program_failed(self->command[0], end, status ? error->text : "its trace is written",
                          error);
}

/* ---- the recorded program -------------------------------------------------------------------
 *
 * The driver and the recording library must exist before the program is started, which gets the
 * library in a variable of CUDA. */

#define LIBRARY   "liballocrig_record.so"
#define INJECTION "CUDA_INJECTION64_PATH"

static enum ar_status check_driver(struct ar_error *error)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (!driver)
        return ar_error_set(
            error, AR_MISSING,
            "there is no NVIDIA driver on this machine, so no program can use a card: %s",
            dlerror());
    dlclose(driver);
    const char *other = getenv(INJECTION);
    if (other && *other)
        return ar_invalid(error,
                          INJECTION
                          " is %s: another tool records, and the driver allows only one; unset it",
                          other);
    return AR_OK;
}

/* Runs the command, with its spools in `folder` (an absolute path). MISSING: there is no driver, or
 * the library is not next to this program. After an error the folder is empty. */
static enum ar_status run_recorded(const struct arguments *self, const char *folder,
                                   struct program_end *end, struct ar_error *error)
{
    static const char *const places[] = {LIBRARY, "../lib/" LIBRARY, NULL};
    char library[PATH_MAX];
    *end = (struct program_end){0};
    AR_TRY(check_driver(error));
    if (!program_find(places, library, sizeof library))
        return ar_error_set(
            error, AR_MISSING,
            LIBRARY " is not in %s: it is built if cuda.h and cupti.h of CUDA 12 or "
                    "later are found; install the CUDA toolkit (or set CUDA_HOME), then run `make`",
            library);
    const struct program_variable variables[] = {
        {INJECTION, library},
        {SPOOL_FOLDER_VARIABLE, folder},
        {SPOOL_KERNELS_VARIABLE, self->kernels ? "1" : "0"},
        {NULL, NULL}};
    const struct program started = {
        .command = self->command, .variables = variables, .survives = true};
    return program_run(&started, end, error);
}

/* ---- the command ---------------------------------------------------------------------------- */

enum ar_status cmd_record(int argc, char **argv, struct ar_error *error)
{
    struct arguments self = {0};
    struct trace_output_choice format;
    struct program_end end;
    char folder[400];
    AR_TRY(read_arguments(argc, argv, &self, error));
    AR_TRY(trace_output_choose(self.path, self.format, false, &format, error));
    if (self.from)
        return write_trace(self.from, &self, &format, false, error);
    AR_TRY(make_folder(self.path, folder, sizeof folder, error));
    enum ar_status status = run_recorded(&self, folder, &end, error);
    if (status) {
        (void)rmdir(folder);
        return status;
    }
    return finish(folder, &self, &format, &end, error);
}
