/* `fits`: one page on whether a program fits on a card that it never ran on: runs it with the
 * tracer, or reads a trace, and answers. */
#include <signal.h>
#include <unistd.h>

#include "bench/cli/program.h"
#include "bench/machine/environment.h"
#include "bench/report/data_writer.h"
#include "bench/report/output_file.h"
#include "bench/report/pages.h"
#include "bench/report/sentence.h"
#include "sim/sim_device/profile.h"
#include "workloads/io/fields.h"

#define WIDE       64    /* cards: room for what fails on one */
#define SEEDS_MOST 10000 /* each is a run of the program */
#define PATH_ROOM  (TRACED_PATH_ROOM + 32)

/* The trace that was tried last, of all its GPUs. */
struct fits_tried {
    uint64_t capacity_bytes;
    struct {
        bool passes;
        uint64_t bytes; /* reserved; if it fails, on a card with room for it */
    } under[FITS_SETTINGS];
};

/* What is known of the largest value: the largest that fits, the least that fails, and their
 * bytes. */
struct fits_bracket {
    uint64_t fits, fails;
    uint64_t fits_bytes, fails_bytes;
};

struct arguments {
    struct traced_program program;
    const char *file, *json;
    uint64_t first_seed, seeds;
    struct fits_vary vary;
    /* Of the whole command: */
    char folder[TRACED_PATH_ROOM];
    char card[SIM_PROFILE_ROOM(name)]; /* the profile that is asked about; "": none */
    struct fits_tried tried;
    struct fits_spread spread;
    uint64_t runs_most; /* of the search; 0: not known yet, or it is over */
    uint64_t last;      /* the value that was tried last; 0: none */
    size_t searched;    /* the setting whose largest value is searched */
    struct output_set files;
    struct json_writer writer;
    bool begun, fits; /* a page was printed; all fit */
};

static enum ar_status take_vary(void *arguments, const struct cli_option *option AR_UNUSED,
                                const char *value, struct ar_error *error)
{
    struct fits_vary *vary = &((struct arguments *)arguments)->vary;
    char end;
    if (sscanf(value, "%63[^=]=%" SCNu64 "..%" SCNu64 "%c", vary->name, &vary->low, &vary->high,
               &end) != 3 ||
        !vary->low || vary->low > vary->high || vary->high > UINT32_MAX)
        return ar_invalid(error,
                          "--vary %s: write a name and two numbers from 1 on, such as "
                          "BATCH=1..64",
                          value);
    return AR_OK;
}

static enum ar_status take_trace(void *arguments, const struct cli_option *option AR_UNUSED,
                                 const char *value, struct ar_error *error)
{
    struct arguments *self = arguments;
    if (self->file)
        return ar_invalid(error,
                          "\"%s\" after \"%s\": fits reads one trace, and the command goes after "
                          "--: write fits -- %s %s",
                          value, self->file, self->file, value);
    self->file = value;
    return AR_OK;
}

static const struct cli_option options[] = {
    {CLI_HEADING("Options:")},
    {0, "card", "NAME",
     "the card in question, a profile of `list devices`: exit status 1 if the program does not fit "
     "on it; default: that of the trace, or h100",
     CLI_TEXT(program.card)},
    {0, "vary", "NAME=LOW..HIGH",
     "find the largest value that fits, of NAME in the environment and {NAME} in the arguments",
     CLI_CALL(take_vary)},
    TRACED_OPTIONS,
    {0, "seeds", "N",
     "trace with N seeds from --seed on, for the spread of the answer; a signal then "
     "ends it without a page",
     CLI_COUNT(seeds, 1, SEEDS_MOST)},
    {0, "json", "FILE", "write the answer as JSON; - is standard output", CLI_FILE(json)},
    {0},
};

static const struct cli_page page = {
    .arguments = "[options] -- COMMAND [ARGUMENT..]\nFILE [options]",
    .text =
        "Traces COMMAND, a PyTorch or JAX program, without a GPU (see `trace`), or reads a trace,\n"
        "and prints on one page: the live peak, the reserved bytes and the safe capacity under\n"
        "the program's own setting of the allocator and the three best others, the smallest card\n"
        "that serves each, where the peak is, and how sure that is. What COMMAND prints goes to\n"
        "standard error. Exit status 1: the program does not fit on the card that --card names\n"
        "(without --card the answer is only on the page); 2: COMMAND failed; above 128: a\n"
        "signal ended it.",
    .options = options,
    .argument = {.value = "trace", CLI_CALL(take_trace), .many = true},
    .program = true,
};

/* Whether a word of the command has {NAME}. */
static bool has_mark(char *const *command, const char *name)
{
    char mark[80];
    snprintf(mark, sizeof mark, "{%s}", name);
    for (; command && *command; command++)
        if (strstr(*command, mark))
            return true;
    return false;
}

static enum ar_status read_arguments(int argc, char **argv, struct arguments *self,
                                     struct ar_error *error)
{
    int own;
    const struct traced_program *program = &self->program;
    self->program.command = program_command(argc, argv, &own);
    struct sim_profile card = {.name = ""};
    AR_TRY(cli_parse(&page, own, argv, self, error));
    if (program->card)
        AR_TRY(ar_error_prefix(error, traced_card_find(program->card, &card, error), "fits"));
    memcpy(self->card, card.name, sizeof self->card);
    self->vary.is_argument = has_mark(program->command, self->vary.name);
    if (program->seed)
        self->first_seed = strtoull(program->seed, NULL, 10);
    if (!self->file == !program->command)
        return ar_invalid(error, self->file ? "fits: give a trace or a command, not both"
                                            : "fits: no command is given; write fits -- python3 "
                                              "train.py, or name a trace");
    if (self->file && field_ends_with(self->file, ".py"))
        return ar_invalid(error, "fits: %s is a program, not a trace; write fits -- python3 %s",
                          self->file, self->file);
    if (self->file && (self->vary.name[0] || self->seeds > 1 || program->seed || program->steps ||
                       program->rank || program->world))
        return ar_invalid(error,
                          "fits: %s is a trace, which is not traced again: of the options only "
                          "--card and --json apply to it; others need a command after --",
                          self->file);
    return AR_OK;
}

/* ---- one trace ------------------------------------------------------------------------------ */

/* A part of a trace, one GPU, with what is asked of it. */
struct opened {
    struct fits_notes notes;
    struct ar_spec device;
    struct advise_config config;
};

static enum ar_status no_request(const struct trace_info *info, struct ar_error *error)
{
    return ar_invalid(error,
                      "%s made no request on a GPU, so there is nothing to answer; does it use "
                      "the device cuda?",
                      info->name);
}

static enum ar_status open_part(const struct arguments *self, struct trace_source *source,
                                struct opened *out, struct ar_error *error)
{
    char spec[RECORDED_CARD_SPEC_ROOM];
    struct trace_info *info = &source->info;
    struct sim_profile card = {.name = ""};
    const char *name = self->card[0]       ? self->card
                       : info->limit_bytes ? NULL
                                           : sim_profile_of_card(info->card);
    AR_TRY(fits_notes_read(source, &out->notes, error));
    if (out->notes.refusal[0])
        return ar_error_set(error, AR_UNSUPPORTED, "fits cannot answer for %s: %s", info->name,
                            out->notes.refusal);
    if (!info->allocs)
        return no_request(info, error);
    recorded_card_spec(info, spec);
    if (self->card[0])
        snprintf(spec, RECORDED_CARD_SPEC_ROOM, "sim:profile=%s", self->card);
    if (name)
        AR_TRY(sim_profile_read(sim_profile_builtin(name), name, &card, error));
    out->config = (struct advise_config){
        .source = source,
        .device = &out->device,
        /* The traced capacity is that of the whole card, of which a process has a part. */
        .card_asked = name != NULL,
        .capacity_bytes = name ? fits_usable_bytes(&out->notes, &card) : 0,
        .frees = replay_frees_nearest(info, REPLAY_ORDERED),
        .host = REPLAY_HOST_RECORDED, /* decides when blocks of other streams come back */
        .seed = 1,
        .jobs = environment_jobs(0),
    };
    return ar_spec_parse(spec, &out->device, error);
}

static void close_opened(struct opened *self)
{
    ar_spec_close(&self->device);
    fits_notes_close(&self->notes);
}

/* A workload_take: under which settings the part passes on all of the card. */
static enum ar_status try_part(void *argument, struct workload_part *part, struct ar_error *error)
{
    struct arguments *self = argument;
    char specs[FITS_SETTINGS][CANDIDATE_SPEC_ROOM] = {"", "torch:expandable_segments=true"};
    AR_CLOSED(close_opened) struct opened opened = {0};
    fits_own_spec(&part->source->info, specs[0]);
    self->vary.settings = strncmp(specs[0], "torch", 5) == 0 ? 2 : 1;
    AR_TRY(open_part(self, part->source, &opened, error));
    for (size_t i = 0; i < self->vary.settings; i++) {
        struct trial trial, wide;
        AR_TRY(
            advise_predict(&opened.config, specs[i], opened.config.capacity_bytes, &trial, error));
        wide = trial;
        if (!trial.passed)
            AR_TRY(advise_predict(&opened.config, specs[i], WIDE * trial.capacity_bytes, &wide,
                                  error));
        uint64_t bytes =
            wide.passed ? wide.peak_reserved_bytes : part->source->info.peak_live_bytes;
        self->tried.capacity_bytes = trial.capacity_bytes;
        self->tried.under[i].passes &= trial.begun && trial.passed;
        AR_RAISE(self->tried.under[i].bytes, bytes);
        if (i == 0)
            fits_spread_add(&self->spread, trial.peak_reserved_bytes);
    }
    return AR_OK;
}

/* Refuses a trace for which no run says whether it fits. */
static enum ar_status check_answer(const struct trace_info *info,
                                   const struct advise_result *advice, struct ar_error *error)
{
    const struct advise_row *rows[FITS_ROWS_MOST];
    size_t count = fits_rows(advice, rows);
    if (!advice->peak.bytes && !advice->has_failed_request)
        return no_request(info, error);
    for (size_t i = 0; i < count; i++)
        if (rows[i]->at.begun || rows[i]->at.full)
            return AR_OK;
    return ar_error_set(error, AR_FORMAT, "%s", rows[0]->at.why);
}

static enum ar_status print_part(struct arguments *self, struct opened *opened,
                                 struct ar_error *error)
{
    AR_CLOSED(advise_result_close) struct advise_result advice = {0};
    struct fits_page shown = {.info = &opened->config.source->info,
                              .advice = &advice,
                              .source = opened->config.source,
                              .frees = opened->config.frees,
                              .host = opened->config.host,
                              .notes = &opened->notes,
                              .vary = &self->vary};
    AR_TRY(advise_run(&opened->config, &advice, error));
    AR_TRY(check_answer(shown.info, &advice, error));
    if (!self->begun)
        traced_steps_say(&self->program, shown.info);
    if (!self->begun) /* further seeds are those of the first GPU */
        shown.spread = self->spread;
    const struct advise_row *rows[FITS_ROWS_MOST];
    (void)fits_rows(&advice, rows);
    fits_spread_add(&shown.spread, rows[0]->alone.peak_reserved_bytes);
    self->fits &= fits_page_fits(&shown);
    if (!self->files.standard) {
        fputs(self->begun ? "\n\n" : "", stdout);
        AR_TRY(fits_page_print(stdout, &shown, error));
    }
    if (self->writer.stream)
        fits_json_write(&self->writer, &shown);
    self->begun = true;
    return AR_OK;
}

/* A workload_take. */
static enum ar_status answer_part(void *argument, struct workload_part *part,
                                  struct ar_error *error)
{
    AR_CLOSED(close_opened) struct opened opened = {0};
    AR_TRY(open_part(argument, part->source, &opened, error));
    return print_part(argument, &opened, error);
}

static enum ar_status each_part(struct arguments *self, const char *path, workload_take *take_part,
                                struct ar_error *error)
{
    const struct workload_choice choice = {.recording = true};
    return workload_each(path, &choice, take_part, self, error);
}

/* The status of a command that failed does not become that of fits, where 1 means that the program
 * does not fit; those of signals do. */
static enum ar_status own_status(const struct program_end *end, enum ar_status status)
{
    return end->code && end->code <= 128 ? AR_INVALID : status;
}

/* Sets the error to how the command ended. */
static enum ar_status command_failed(const struct arguments *self, const struct program_end *end,
                                     const char *more, struct ar_error *error)
{
    return own_status(end, program_failed(self->program.command[0], end, more, error));
}

/* ---- runs of the command -------------------------------------------------------------------- */

/* A copy of a word with {NAME} replaced by the value; NULL: no host memory. */
static char *replace_value(const char *word, const char *name, const char *value)
{
    char mark[80], *out = NULL;
    size_t bytes = 0, length = (size_t)snprintf(mark, sizeof mark, "{%s}", name);
    FILE *stream = open_memstream(&out, &bytes);
    if (!stream)
        return NULL;
    for (const char *found; (found = strstr(word, mark)); word = found + length)
        fprintf(stream, "%.*s%s", (int)(found - word), word, value);
    fputs(word, stream);
    (void)text_end(stream, &out);
    return out;
}

/* ", after 16 fitted, trace 4 of at most 9" during a search; nothing later, or if that is not known
 * yet. */
static const char *progress_text(const struct arguments *self, char *out, size_t room)
{
    out[0] = '\0';
    if (self->vary.runs < self->runs_most)
        snprintf(out, room, ", after %" PRIu64 " %s, trace %" PRIu64 " of at most %" PRIu64,
                 self->last, self->tried.under[self->searched].passes ? "fitted" : "did not fit",
                 self->vary.runs + 1, self->runs_most);
    return out;
}

/* Traces the command with a value (if there is a search) and a seed to `path`. */
static enum ar_status trace_once(struct arguments *self, uint64_t value, uint64_t seed,
                                 const char *path, struct program_end *end, struct ar_error *error)
{
    char value_text[24], seed_text[24], progress[128];
    struct traced_program program = self->program;
    size_t count = 0;
    snprintf(value_text, sizeof value_text, "%" PRIu64, value);
    snprintf(seed_text, sizeof seed_text, "%" PRIu64, seed);
    program.path = path;
    program.seed = seed_text;
    program.output =
        self->vary.runs || seed != self->first_seed ? PROGRAM_TO_NOTHING : PROGRAM_TO_ERROR;
    if (self->vary.name[0])
        program.variable = (struct program_variable){self->vary.name, value_text};
    while (program.command[count])
        count++;
    program.command = calloc(count + 1, sizeof *program.command);
    for (size_t i = 0; program.command && i < count; i++)
        program.command[i] = replace_value(self->program.command[i],
                                           self->vary.name[0] ? self->vary.name : "}", value_text);
    if (self->vary.name[0] || self->seeds > 1)
        fprintf(stderr, "allocrig fits: %s%s%s%sseed %s%s\n", self->vary.name,
                self->vary.name[0] ? "=" : "", self->vary.name[0] ? value_text : "",
                self->vary.name[0] ? " " : "", seed_text,
                progress_text(self, progress, sizeof progress));
    enum ar_status status = program.command && program.command[0]
                                ? traced_program_run(&program, end, error)
                                : ar_error_set(error, AR_HOST_MEMORY, "no host memory");
    if (!status && access(path, F_OK) != 0)
        status = own_status(end, traced_program_why(&program, end, error));
    for (size_t i = 0; program.command && i < count; i++)
        free(program.command[i]);
    free(program.command);
    return status;
}

/* Tries the trace at `path`. A signal ends the command after that, with what is known. */
static enum ar_status try_trace(struct arguments *self, const char *path, struct ar_error *error)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    const struct timespec at_once = {0};
    sigset_t set, before;
    sigemptyset(&set);
    for (size_t i = 0; i < AR_COUNT(ends); i++) {
        struct sigaction way; /* nohup ignores SIGHUP, and a blocked signal waits all the same */
        if (sigaction(ends[i], NULL, &way) == 0 && way.sa_handler != SIG_IGN)
            sigaddset(&set, ends[i]);
    }
    sigprocmask(SIG_BLOCK, &set, &before);
    enum ar_status status = each_part(self, path, try_part, error);
    int got = sigtimedwait(&set, NULL, &at_once);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (got <= 0)
        return status;
    (void)ar_error_set(error, AR_OK, "the command was ended by signal %d (%s)", got,
                       strsignal(got));
    return cli_exit(128 + got);
}

static enum ar_status try_value(struct arguments *self, uint64_t value,
                                struct fits_bracket brackets[FITS_SETTINGS], struct ar_error *error)
{
    char path[PATH_ROOM];
    struct program_end end;
    snprintf(path, sizeof path, "%s/%" PRIu64 ".txt", self->folder, value);
    enum ar_status status = trace_once(self, value, self->first_seed, path, &end, error);
    if (!status && end.code)
        status = command_failed(self, &end, "the search ends", error);
    self->tried = (struct fits_tried){.under = {{true, 0}, {true, 0}}};
    AR_THEN(status, try_trace(self, path, error));
    for (size_t i = 0; i < self->vary.settings && !status; i++) {
        struct fits_bracket *at = &brackets[i];
        if (self->tried.under[i].passes && value > at->fits) {
            at->fits = value;
            at->fits_bytes = self->tried.under[i].bytes;
        } else if (!self->tried.under[i].passes && value < at->fails) {
            at->fails = value;
            at->fails_bytes = self->tried.under[i].bytes;
        }
        self->vary.fits[i] = at->fits;
        self->vary.fails[i] = at->fails;
    }
    if (status)
        return ar_error_prefix(error, status, "%s=%" PRIu64, self->vary.name, value);
    self->vary.runs++;
    self->last = value;
    return AR_OK;
}

/* Between both ends of a bracket: where a line through their bytes meets the capacity. If earlier
 * tries by lines left most of it, the end that is near is verified: a little beyond, then more. */
static uint64_t between(const struct fits_bracket *self, uint64_t capacity_bytes, int misses,
                        bool fitted)
{
    uint64_t reach = misses ? UINT64_C(1) << 3 * (misses - 1) : 0;
    double apart = (double)(self->fails - self->fits), least = (double)self->fits_bytes;
    double part = ((double)capacity_bytes - least) / ((double)self->fails_bytes - least);
    uint64_t step = part > 0 ? (uint64_t)(part < 1 ? part * apart : apart - 1) : 0;
    step = fitted ? step + reach : step > reach ? step - reach : 1;
    step = step < self->fails - self->fits ? step : self->fails - self->fits - 1;
    return self->fits + (step ? step : 1);
}

#define LINES_MOST 4 /* tries by lines that may leave more than half; later ones are halves */

/* The tries that a bracket takes at most if each leaves half of it, rounded up. */
static uint64_t halves(const struct fits_bracket *self)
{
    uint64_t tries = 0;
    for (uint64_t apart = self->fits ? self->fails - self->fits : 1; apart > 1; tries++)
        apart -= apart / 2;
    return tries;
}

/* Closes in on the largest value under setting `at`. */
static enum ar_status close_in(struct arguments *self, size_t at,
                               struct fits_bracket brackets[FITS_SETTINGS], struct ar_error *error)
{
    struct fits_bracket *bracket = &brackets[at];
    int lines = LINES_MOST;
    self->searched = at;
    for (uint64_t before; (before = halves(bracket));) {
        self->runs_most = self->vary.runs + (uint64_t)lines + before;
        for (size_t i = at + 1; i < self->vary.settings; i++)
            self->runs_most += halves(&brackets[i]) ? LINES_MOST + halves(&brackets[i]) : 0;
        AR_TRY(try_value(self,
                         lines ? between(bracket, self->tried.capacity_bytes, LINES_MOST - lines,
                                         self->tried.under[at].passes)
                               : bracket->fits + (bracket->fails - bracket->fits) / 2,
                         brackets, error));
        lines -= lines && halves(bracket) >= before;
    }
    return AR_OK;
}

/* Finds the largest value under each setting: tries both ends, then closes in. */
static enum ar_status search(struct arguments *self, struct ar_error *error)
{
    struct fits_vary *vary = &self->vary;
    struct fits_bracket brackets[FITS_SETTINGS] = {{.fails = vary->high + 1},
                                                   {.fails = vary->high + 1}};
    enum ar_status status = try_value(self, vary->low, brackets, error);
    struct fits_tried low = self->tried;
    if (!status && vary->high > vary->low && brackets[0].fits + brackets[1].fits) {
        status = try_value(self, vary->high, brackets, error);
        vary->has_no_effect = low.under[0].bytes == self->tried.under[0].bytes &&
                              low.under[1].bytes == self->tried.under[1].bytes;
    }
    for (size_t i = 0; i < vary->settings; i++)
        AR_THEN(status, close_in(self, i, brackets, error));
    for (size_t i = vary->settings; i-- > 0;)
        vary->value = vary->fits[i] ? vary->fits[i] : vary->value;
    if (!vary->value)
        vary->value = vary->low;
    self->spread = (struct fits_spread){0}; /* it is that of one value */
    self->runs_most = 0;
    if (vary->has_no_effect && !status)
        fprintf(stderr,
                "allocrig: %s=%" PRIu64 " and %s=%" PRIu64 " take the same memory; the page says "
                "what to do\n",
                vary->name, vary->low, vary->name, vary->high);
    for (size_t i = 0; i < vary->settings && !status && !vary->has_no_effect; i++)
        if (vary->fits[i])
            fprintf(stderr, "allocrig: the search found %s=%" PRIu64 "%s\n", vary->name,
                    vary->fits[i], i ? " with expandable_segments:True" : "");
    return status;
}

/* Traces the value of the page with one of the seeds. A signal interrupts the whole command. If the
 * first one fails, the page is about the part before that. */
static enum ar_status trace_seed(struct arguments *self, uint64_t number, const char *path,
                                 struct program_end *end, struct ar_error *error)
{
    const uint64_t seed = self->first_seed + number;
    AR_TRY(trace_once(self, self->vary.value, seed, path, end, error));
    if (number ? !end->code : !end->signal || self->seeds == 1)
        return AR_OK;
    return ar_error_prefix(error, command_failed(self, end, "no further seed is tried", error),
                           "seed %" PRIu64, seed);
}

/* Makes the trace of the page, that of the first seed, at `path`, then those of further seeds. */
static enum ar_status run_command(struct arguments *self, char path[PATH_ROOM],
                                  struct program_end *end, struct ar_error *error)
{
    char further[PATH_ROOM];
    struct program_end ended;
    enum ar_status status = self->vary.name[0] ? search(self, error) : AR_OK;
    snprintf(path, PATH_ROOM, "%s/%" PRIu64 ".txt", self->folder, self->vary.value);
    snprintf(further, PATH_ROOM, "%s/seed.txt", self->folder);
    if (!self->vary.name[0])
        status = trace_seed(self, 0, path, end, error);
    for (uint64_t i = 1; i < self->seeds && !status && !end->code; i++) {
        status = trace_seed(self, i, further, &ended, error);
        AR_THEN(status, try_trace(self, further, error));
        (void)unlink(further); /* the tracer refuses a second program in one trace */
    }
    return status;
}

static enum ar_status does_not_fit(const struct arguments *self, struct ar_error *error)
{
    const struct fits_vary *vary = &self->vary;
    char next[256] = "";
    if (vary->name[0] && vary->low > 1)
        snprintf(next, sizeof next,
                 "; %s=%" PRIu64 " is the least that was asked for, a smaller "
                 "one may fit: --vary %s=1..%" PRIu64,
                 vary->name, vary->low, vary->name, vary->low - 1);
    else if (vary->name[0] && !vary->is_argument)
        snprintf(
            next, sizeof next,
            "; if the program does not read %s from its environment, write {%s} in the command",
            vary->name, vary->name);
    else if (self->program.command && !vary->name[0])
        snprintf(next, sizeof next,
                 "; --vary BATCH=1..64 finds the largest that fits of BATCH in the environment, or "
                 "{BATCH} in the command");
    return ar_error_set(error, AR_NEGATIVE,
                        "it does not fit on %s under any setting of the allocator%s",
                        self->program.card, next);
}

static enum ar_status answer(struct arguments *self, struct ar_error *error)
{
    char path[PATH_ROOM];
    struct program_end end = {0};
    AR_TRY(output_set_add(&self->files, self->json, &self->writer.stream, error));
    if (self->json) {
        json_begin_object(&self->writer, NULL);
        json_put_text(&self->writer, "schema", "allocrig.fits/1");
        json_begin_array(&self->writer, "answers");
    }
    enum ar_status status = self->program.command ? run_command(self, path, &end, error) : AR_OK;
    if (status && self->vary.name[0] && !self->files.standard)
        fits_page_ended(stdout, &self->vary);
    AR_THEN(status, each_part(self, self->file ? self->file : path, answer_part, error));
    if (!status && self->json) {
        json_end_array(&self->writer);
        json_end_object(&self->writer);
    }
    AR_THEN(status, output_set_commit(&self->files, error));
    if (status == AR_INVALID && end.code && access(path, F_OK) == 0)
        return command_failed(self, &end, "it made no request on a GPU before that", error);
    if (!status && end.code)
        status = command_failed(self, &end, "the answer is about the part before that", error);
    return !status && self->program.card && !self->fits ? does_not_fit(self, error) : status;
}

enum ar_status cmd_fits(int argc, char **argv, struct ar_error *error)
{
    struct arguments self = {.first_seed = 1, .seeds = 1, .fits = true};
    AR_TRY(read_arguments(argc, argv, &self, error));
    if (self.program.command)
        AR_TRY(traced_folder_make(self.folder, error));
    enum ar_status status = answer(&self, error);
    output_set_abandon(&self.files);
    if (self.folder[0])
        traced_folder_remove(self.folder);
    return status;
}
