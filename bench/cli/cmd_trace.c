/* `trace`: runs a PyTorch or JAX program without a card and writes the requests that it would make
 * on one. The report goes to standard error, because standard output belongs to the program.
 *
 * The tracer is Python (workloads/record/tracer). It gets its parameters in variables of the
 * environment, and Python finds it by PYTHONPATH. It writes a text to a temporary file, which is
 * read, checked and written in the form that the user wants. */
#include "bench/cli/program.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "allocators/base/size.h"
#include "bench/report/sentence.h"
#include "sim/advise/fits.h"
#include "sim/sim_device/profile.h"

struct arguments {
    struct traced_program program;
    const char *path;
};

static const struct cli_option options[] = {
    {CLI_HEADING("Options:")},
    {'o', "output", "FILE",
     "the trace to write: .txt or .trace, .bin, each also with .zst; default: out.trace",
     CLI_FILE(path)},
    {0, "card", "NAME",
     "the card that the program sees: a profile of `list devices`; default: h100",
     CLI_TEXT(program.card)},
    TRACED_OPTIONS,
    {0},
};

static const struct cli_page page = {
    .arguments = "[-o FILE] [options] -- COMMAND [ARGUMENT..]",
    .text =
        "Runs COMMAND, a PyTorch or JAX program, without a GPU, and writes the memory requests\n"
        "that it would make on one. Tensors on the GPU have shapes and no data. Python and a\n"
        "CPU build of PyTorch are enough. Returns the exit status of COMMAND. The trace is also\n"
        "written if the program fails or is interrupted.",
    .options = options,
    .argument = {CLI_CALL(cli_no_command)},
    .program = true,
};

static enum ar_status read_arguments(int argc, char **argv, struct arguments *self,
                                     struct ar_error *error)
{
    int own;
    self->program.command = program_command(argc, argv, &own);
    enum ar_status status = cli_parse(&page, own, argv, self, error);
    if (!self->path)
        self->path = "out.trace";
    if (!status && !self->program.command)
        status = ar_invalid(error, "trace: no command is given; write trace -- python3 train.py");
    return status;
}

/* ---- the traced program --------------------------------------------------------------------- */

enum ar_status traced_number(void *arguments, const struct cli_option *option, const char *value,
                             struct ar_error *error)
{
    const char **place = (const char **)((char *)arguments + option->at);
    uint64_t number;
    *place = value;
    enum ar_status status = ar_count_parse(value, &number, error);
    if (!status && !number &&
        (strcmp(option->name, "steps") == 0 || strcmp(option->name, "world") == 0))
        status = ar_invalid(error, "\"%s\" must be a whole number from 1 on", value);
    return ar_error_prefix(error, status, "--%s", option->name);
}

enum ar_status traced_card_find(const char *name, struct sim_profile *out, struct ar_error *error)
{
    enum ar_status status = cli_card_find(name, out, error);
    /* A second profile of a card may not state it. */
    const char *first = status ? NULL : sim_profile_of_card(out->card);
    if (!status && !out->compute[0] && first)
        status = sim_profile_read(sim_profile_builtin(first), first, out, error);
    if (!status && !out->compute[0])
        return ar_invalid(error, "%s is not an NVIDIA card; name another one of `list devices`",
                          name);
    return status;
}

/* PYTHONPATH with the folder of the tracer, which is ALLOCRIG_TRACER or belongs to the program. */
static enum ar_status find_tracer(char *path, size_t room, struct ar_error *error)
{
    static const char *const places[] = {"../../workloads/record/tracer",
                                         "../share/allocrig/tracer", NULL};
    char found[PATH_MAX];
    const char *before = getenv("PYTHONPATH"), *other = getenv("ALLOCRIG_TRACER");
    if (other && *other)
        snprintf(found, sizeof found, "%s", other);
    else if (!program_find(places, found, sizeof found))
        return ar_error_set(error, AR_MISSING,
                            "the tracer is neither in the tree that %s was built in nor in "
                            "../share/allocrig/tracer: run `make install`, or start the program "
                            "in its tree",
                            found);
    char *whole = realpath(found, NULL);
    int used = snprintf(path, room, "%s/start:%s%s%s", whole ? whole : found, whole ? whole : found,
                        before && *before ? ":" : "", before ? before : "");
    free(whole);
    return used > 0 && (size_t)used < room ? AR_OK : ar_invalid(error, "PYTHONPATH is too long");
}

#define VARIABLES_MOST 11

enum ar_status traced_program_run(const struct traced_program *self, struct program_end *end,
                                  struct ar_error *error)
{
    struct sim_profile card;
    char python_path[4 * PATH_MAX], bytes[24];
    const char *world = self->world ? self->world : self->rank ? "0" : "1";
    *end = (struct program_end){0};
    AR_TRY(traced_card_find(self->card ? self->card : SIM_PROFILE_DEFAULT, &card, error));
    if (strtoull(self->rank ? self->rank : "0", NULL, 10) >= strtoull(world, NULL, 10))
        return ar_invalid(error, "--rank %s needs --world with a larger number",
                          self->rank ? self->rank : "0");
    AR_TRY(find_tracer(python_path, sizeof python_path, error));
    snprintf(bytes, sizeof bytes, "%" PRIu64, card.total_bytes);
    const struct program_variable given[VARIABLES_MOST] = {
        {"PYTHONPATH", python_path},
        {"ALLOCRIG_TRACE", self->path},
        {"ALLOCRIG_TRACE_CARD", card.card},
        {"ALLOCRIG_TRACE_CARD_BYTES", bytes},
        {"ALLOCRIG_TRACE_CARD_SM", card.compute},
        {"ALLOCRIG_TRACE_SEED", self->seed ? self->seed : "1"},
        {"ALLOCRIG_TRACE_PROGRESS", isatty(STDERR_FILENO) ? "1" : "0"},
        {"ALLOCRIG_TRACE_STEPS", self->steps},
        self->variable,
        {"ALLOCRIG_TRACE_RANK", self->rank},
        {"ALLOCRIG_TRACE_WORLD", self->world},
    };
    struct program_variable variables[VARIABLES_MOST + 1];
    size_t count = 0;
    for (size_t i = 0; i < VARIABLES_MOST; i++)
        if (given[i].name && given[i].value)
            variables[count++] = given[i];
    variables[count] = (struct program_variable){NULL, NULL};
    const struct program program = {
        .command = self->command, .variables = variables, .output = self->output};
    return program_run(&program, end, error);
}

enum ar_status traced_program_why(const struct traced_program *self, const struct program_end *end,
                                  struct ar_error *error)
{
    const char *command = self->command[0];
    if (!end->code)
        return ar_error_set(error, AR_MISSING,
                            "no trace was written: %s imported neither torch nor jax", command);
    return program_failed(command, end,
                          end->code > 128
                              ? "no trace was written"
                              : "no trace was written: it imported neither torch nor jax, or ended "
                                "before the tracer could write; what it printed may say why (if "
                                "torch is missing: python3 -m pip install torch)",
                          error);
}

void traced_steps_say(const struct traced_program *self, const struct trace_info *info)
{
    const uint64_t asked = self->steps ? strtoull(self->steps, NULL, 10) : 0;
    const bool torch = strncmp(info->recorder, "torch", 5) == 0;
    if (info->complete && info->steps < asked)
        sentence_say(stderr,
                     "allocrig: the program ended by itself after %" PRIu64 " of %" PRIu64
                     " steps%s",
                     info->steps, asked,
                     torch ? "; a step ends when its first optimizer has stepped or, without one, "
                             "at torch.cuda.synchronize()"
                           : "");
}

enum ar_status traced_folder_make(char folder[TRACED_PATH_ROOM], struct ar_error *error)
{
    const char *root = getenv("TMPDIR");
    int used = snprintf(folder, TRACED_PATH_ROOM, "%s/allocrig-XXXXXX",
                        root && *root == '/' ? root : "/tmp");
    if (used < 0 || used >= TRACED_PATH_ROOM || !mkdtemp(folder))
        return ar_error_set(error, AR_IO, "no temporary folder can be made as %s: %s", folder,
                            strerror(errno));
    return AR_OK;
}

void traced_folder_remove(const char *folder)
{
    DIR *entries = opendir(folder);
    struct dirent *entry;
    while (entries && (entry = readdir(entries)))
        if (entry->d_name[0] != '.')
            (void)unlinkat(dirfd(entries), entry->d_name, 0);
    if (entries)
        closedir(entries);
    (void)rmdir(folder);
}

/* ---- the command ---------------------------------------------------------------------------- */

static void report(const char *path, const struct trace_info *info)
{
    sentence_say(stderr, "wrote %s: %" PRIu64 " allocation%s, live peak %s, %" PRIu64 " step%s%s",
                 path, info->allocs, info->allocs == 1 ? "" : "s", AR_SIZE(info->peak_card_bytes),
                 info->steps, info->steps == 1 ? "" : "s",
                 info->complete ? "" : "; the program ended early, so the rest is missing");
}

static enum ar_status save(const struct traced_program *program, const char *path,
                           const struct trace_output_choice *format, struct ar_error *error)
{
    AR_CLOSED(trace_close_at) struct trace_source *source = NULL;
    AR_CLOSED(fits_notes_close) struct fits_notes notes = {0};
    enum ar_status status = trace_open(program->path, &source, error);
    AR_THEN(status, fits_notes_read(source, &notes, error));
    AR_TRY(ar_error_prefix(error, status, "the tracer wrote a trace that is not valid"));
    AR_TRY(trace_output_save(source, path, format, error));
    report(path, &source->info);
    traced_steps_say(program, &source->info);
    if (notes.refusal[0])
        sentence_say(stderr, "  the trace is not what a card would be asked: %s", notes.refusal);
    return AR_OK;
}

static enum ar_status finish(const struct arguments *self, const char *folder,
                             const struct trace_output_choice *format,
                             const struct program_end *end, struct ar_error *error)
{
    const struct traced_program *program = &self->program;
    enum ar_status status = AR_OK;
    if (access(program->path, F_OK) != 0)
        status = traced_program_why(program, end, error);
    else if (save(program, self->path, format, error))
        return ar_error_prefix(error, AR_FORMAT, "the trace is kept in %s", program->path);
    else if (end->code)
        status = program_failed(program->command[0], end, "its trace is written", error);
    traced_folder_remove(folder);
    return status;
}

enum ar_status cmd_trace(int argc, char **argv, struct ar_error *error)
{
    struct arguments self = {0};
    struct trace_output_choice format;
    struct program_end end;
    char folder[TRACED_PATH_ROOM], path[TRACED_PATH_ROOM + 16];
    AR_TRY(read_arguments(argc, argv, &self, error));
    AR_TRY(trace_output_choose(self.path, NULL, false, &format, error));
    AR_TRY(traced_folder_make(folder, error));
    snprintf(path, sizeof path, "%s/trace.txt", folder);
    self.program.path = path;
    enum ar_status status = traced_program_run(&self.program, &end, error);
    if (!status)
        return finish(&self, folder, &format, &end, error);
    traced_folder_remove(folder);
    return status;
}
