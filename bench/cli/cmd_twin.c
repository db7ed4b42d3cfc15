/* `twin`: runs a scenario of training and inference on the cards of one machine and says where the
 * memory is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allocators/base/size.h"
#include "bench/cli/cli.h"
#include "bench/cli/program.h"
#include "bench/report/output_file.h"
#include "bench/suite/twin_compare.h"
#include "bench/suite/twin_study.h"

enum option_key {
    KEY_CHECK = CLI_KEYS,
    KEY_JSON,
    KEY_SERIES,
    KEY_FIGURE,
    KEY_CYCLES,
    KEY_SET,
    KEY_WHAT_IF,
    KEY_JOURNAL
};

static const struct cli_option options[] = {
    {CLI_HEADING, NULL, NULL, "Options:"},
    {KEY_CYCLES, "cycles", "N", "replaces the number of cycles of the schedule"},
    {KEY_SET, "set", "NAME.KEY=VALUE", "replaces a key of a section; may be given again"},
    {KEY_WHAT_IF, "what-if", "yes|no", "also run it with changes; default yes, with --check no"},
    {KEY_CHECK, "check", NULL, "exit status 1 if a reported figure differs too much"},
    {KEY_JSON, "json", "FILE", "write all figures; - is standard output"},
    {KEY_SERIES, "series", "FILE", "write bytes by owner after each phase as CSV"},
    {KEY_FIGURE, "figure", "FILE", "draw them, .svg, .png or .pdf (needs gnuplot)"},
    {KEY_JOURNAL, "journal", "FILE", "finished runs; the same command continues from it"},
    {0},
};

static const struct cli_page page = {
    .arguments = "SCENARIO.ini [options]",
    .text =
        "Runs trainers, inference engines, graphs, communication buffers and other parts of\n"
        "processes on the cards of a simulated machine, phase by phase. Prints whether they fit,\n"
        "bytes by owner, the peak, what is left after sleeping and grows from cycle to cycle, the\n"
        "largest key-value cache that is safe, figures that others reported, and which changes\n"
        "save memory. The files are explained in workloads/scenarios; `allocrig list parts` has\n"
        "the parts.",
    .options = options,
};

#define SETS_MOST 64

struct twin_arguments {
    const char *path, *json, *series, *figure, *journal;
    const char *sets[SETS_MOST];
    size_t set_count;
    uint64_t cycles;
    bool cycles_given, check, again, again_given;
};

static enum ar_status take_figure(struct twin_arguments *self, const char *value,
                                  struct ar_error *error)
{
    static const char *const endings[] = {".svg", ".png", ".pdf"};
    size_t length = strlen(value);
    for (size_t i = 0; i < 3; i++)
        if (length > 4 && !strcmp(value + length - 4, endings[i])) {
            self->figure = value;
            return AR_OK;
        }
    return ar_error_set(error, AR_INVALID, "--figure %s: the name ends with .svg, .png or .pdf",
                        value);
}

static enum ar_status take(void *argument, int key, const char *value, struct ar_error *error)
{
    struct twin_arguments *self = argument;
    switch (key) {
    case KEY_CHECK:
        self->check = true;
        return AR_OK;
    case KEY_JSON:
        self->json = value;
        return AR_OK;
    case KEY_SERIES:
        self->series = value;
        return AR_OK;
    case KEY_FIGURE:
        return take_figure(self, value, error);
    case KEY_JOURNAL:
        self->journal = value;
        return AR_OK;
    case KEY_CYCLES:
        self->cycles_given = true;
        return ar_count_parse(value, &self->cycles, NULL) || self->cycles > SCENARIO_CYCLES
                   ? ar_error_set(error, AR_INVALID, "--cycles %s: a number from 0 to 1000000",
                                  value)
                   : AR_OK;
    case KEY_SET:
        if (self->set_count == SETS_MOST)
            return ar_error_set(error, AR_INVALID, "--set %s: at most 64 of them", value);
        self->sets[self->set_count++] = value;
        return AR_OK;
    case KEY_WHAT_IF:
        self->again_given = true;
        self->again = !strcmp(value, "yes");
        return self->again || !strcmp(value, "no")
                   ? AR_OK
                   : ar_error_set(error, AR_INVALID, "--what-if %s: yes or no", value);
    default:
        if (self->path)
            return ar_error_set(error, AR_INVALID, "\"%s\" is one scenario too many", value);
        self->path = value;
        return AR_OK;
    }
}

static enum ar_status read_scenario(const struct twin_arguments *self, struct scenario *out,
                                    struct ar_error *error)
{
    const char *kinds[TWIN_KINDS_MOST];
    size_t count = twin_setup_kinds(kinds, TWIN_KINDS_MOST);
    enum ar_status status = scenario_read(self->path, kinds, count, out, error);
    if (status)
        return status;
    status = twin_compare_check(out, error);
    if (self->cycles_given)
        out->cycles = self->cycles;
    for (size_t i = 0; i < self->set_count && !status; i++)
        if ((status = scenario_set_text(out, self->sets[i], error)))
            status = ar_error_prefix(error, AR_INVALID, "--set %s", self->sets[i]);
    if (status)
        scenario_close(out);
    return status;
}

/* Draws the series in `series` with the script of the tree or of the installation. */
static enum ar_status draw(const char *series, const char *figure, const char *title,
                           struct ar_error *error)
{
    static const char *const places[] = {"../../plots/twin.sh", "../share/allocrig/plots/twin.sh",
                                         NULL};
    char script[4096];
    struct program_end end;
    if (!program_find(places, script, sizeof script))
        return ar_error_set(error, AR_MISSING,
                            "--figure: plots/twin.sh is neither in the tree of %s nor in "
                            "../share/allocrig; run `make install`",
                            script);
    char *command[] = {(char[]){"bash"},          script,
                       (char *)(uintptr_t)series, (char *)(uintptr_t)figure,
                       (char *)(uintptr_t)title,  NULL};
    const struct program_variable none[] = {{NULL, NULL}};
    const struct program program = {
        .command = command, .variables = none, .output = PROGRAM_TO_ERROR};
    enum ar_status status = program_run(&program, &end, error);
    if (!status && end.code)
        status = ar_error_set(error, end.code == 3 ? AR_MISSING : AR_IO,
                              "--figure %s: it was not drawn%s", figure,
                              end.code == 3 ? "; gnuplot is missing" : "");
    return status;
}

static enum ar_status write_figure(const struct twin_arguments *self,
                                   const struct twin_page *answer, struct ar_error *error)
{
    char path[] = "/tmp/allocrig-twin-XXXXXX";
    int file = mkstemp(path);
    FILE *stream = file < 0 ? NULL : fdopen(file, "w");
    if (!stream)
        return ar_error_set(error, AR_IO, "%s: no temporary file can be made", path);
    twin_series_write(stream, answer);
    bool bad = ferror(stream) != 0;
    bad = fclose(stream) != 0 || bad;
    enum ar_status status = bad ? ar_error_set(error, AR_IO, "%s: cannot be written", path)
                                : draw(path, self->figure, answer->name, error);
    unlink(path);
    return status;
}

static enum ar_status write_files(const struct twin_arguments *self, const struct twin_page *answer,
                                  struct output_set *files, FILE *json, FILE *series,
                                  struct ar_error *error)
{
    enum ar_status status = AR_OK;
    if (json)
        twin_json_write(json, answer);
    if (series)
        twin_series_write(series, answer);
    if (self->figure)
        status = write_figure(self, answer, error);
    bool shown =
        (self->json && !strcmp(self->json, "-")) || (self->series && !strcmp(self->series, "-"));
    if (!status && !shown)
        status = twin_page_print(stdout, answer, error);
    return status ? status : output_set_commit(files, error);
}

/* The exit status: of --check whether the figures agree, else whether the scenario fits. */
static enum ar_status verdict(const struct twin_arguments *self, const struct twin_page *answer,
                              struct ar_error *error)
{
    size_t off = 0;
    for (size_t i = 0; i < answer->reported_count; i++)
        off += !answer->reported[i].known || !answer->reported[i].agrees;
    if (self->check)
        return off ? ar_error_set(error, AR_NEGATIVE,
                                  "%s: %zu of %zu reported figures differ by more than %g %%",
                                  self->path, off, answer->reported_count, 100 * answer->tolerance)
                   : AR_OK;
    return answer->result->outcome == TWIN_PASSED
               ? AR_OK
               : ar_error_set(error, AR_NEGATIVE, "%s: %s", self->path,
                              answer->result->outcome == TWIN_REFUSED ? "it is refused"
                                                                      : "it does not fit");
}

static enum ar_status run(const struct twin_arguments *self, const struct scenario *text,
                          struct ar_error *error)
{
    struct output_set files = {0};
    struct twin_study study;
    FILE *json = NULL, *series = NULL;
    if ((self->json && !(json = output_set_open(&files, self->json, error))) ||
        (self->series && !(series = output_set_open(&files, self->series, error)))) {
        output_set_abandon(&files);
        return AR_IO;
    }
    enum ar_status status = twin_study_run(text, self->again, self->journal, &study, error);
    if (!status) {
        status = write_files(self, &study.page, &files, json, series, error);
        bool finished = !status;
        if (finished)
            status = verdict(self, &study.page, error);
        twin_study_close(&study, finished);
    }
    output_set_abandon(&files);
    return status;
}

enum ar_status cmd_twin(int argc, char **argv, struct ar_error *error)
{
    struct twin_arguments self = {.path = NULL};
    struct scenario text;
    bool help = false;
    enum ar_status status = cli_parse(&page, argc, argv, take, &self, &help, error);
    if (status || help)
        return status;
    if (!self.path)
        return ar_error_set(error, AR_INVALID,
                            "twin: no scenario is given; workloads/scenarios has examples");
    if (!self.again_given)
        self.again = !self.check;
    if (self.journal && !self.again)
        return ar_error_set(error, AR_INVALID,
                            "twin: --journal is of the runs with changes; write --what-if yes");
    status = read_scenario(&self, &text, error);
    if (status)
        return status;
    if (self.check && !text.reported_count)
        status = ar_error_set(error, AR_INVALID,
                              "%s: --check needs figures; write them below [reported]", self.path);
    if (!status)
        status = run(&self, &text, error);
    scenario_close(&text);
    return status;
}
