/* `twin`: runs a scenario of training and inference on the cards of one machine and says where the
 * memory is. */
#include <errno.h>
#include <unistd.h>

#include "bench/cli/cli.h"
#include "bench/cli/program.h"
#include "bench/report/output_file.h"
#include "bench/suite/twin_study.h"
#include "workloads/io/fields.h"

struct arguments {
    const char *path, *json, *series, *figure, *journal, *what_if;
    struct cli_words sets;
    uint64_t cycles; /* NOT_GIVEN */
    bool check, again;
};

#define NOT_GIVEN UINT64_MAX

static const struct cli_option options[] = {
    {CLI_HEADING("Options:")},
    {0, "cycles", "N", "replaces the number of cycles of the schedule",
     CLI_COUNT(cycles, 0, SCENARIO_CYCLES)},
    {0, "set", "NAME.KEY=VALUE", "replaces a key of a section; again for another key",
     CLI_WORDS(sets, CLI_WORDS_MOST)},
    {0, "what-if", "yes|no", "also run it with changes; default yes, with --check no",
     CLI_TEXT(what_if)},
    {0, "check", NULL, "exit status 1 if a reported figure differs too much", CLI_FLAG(check)},
    {0, "json", "FILE", "write all figures; - is standard output", CLI_FILE(json)},
    {0, "series", "FILE", "write bytes by owner after each phase as CSV", CLI_FILE(series)},
    {0, "figure", "FILE", "draw them, .svg, .png or .pdf (needs gnuplot)", CLI_FILE(figure)},
    {0, "journal", "FILE", "finished runs; the same command continues from it", .regular = true,
     CLI_FILE(journal)},
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
        "the parts. Exit status 1: the scenario does not fit (without --check).",
    .options = options,
    .argument = {.value = "scenario", .lists = true, CLI_TEXT(path)},
};

static enum ar_status check_figure(const char *path, struct ar_error *error)
{
    static const char *const endings[] = {".svg", ".png", ".pdf"};
    for (size_t i = 0; i < 3; i++)
        if (field_ends_with(path, endings[i]))
            return AR_OK;
    return ar_invalid(error, "twin: --figure %s: the name ends with .svg, .png or .pdf", path);
}

/* An edit of --set. No two give the same key, nor one of them what --cycles gives. */
static enum ar_status edit(const struct arguments *self, size_t index, struct scenario *out,
                           struct ar_error *error)
{
    static const char cycles[] = "schedule.cycles=";
    const char *text = self->sets.at[index];
    size_t length = strcspn(text, "=") + 1;
    bool again = self->cycles != NOT_GIVEN && !strncmp(text, cycles, sizeof cycles - 1);
    for (size_t i = 0; i < index; i++)
        again |= !strncmp(text, self->sets.at[i], length);
    if (again)
        return ar_invalid(error, "--set %s: %.*s is given a second time; leave one out", text,
                          (int)length - 1, text);
    return ar_error_prefix(error, scenario_set_text(out, text, error), "--set %s", text);
}

static enum ar_status read_scenario(const struct arguments *self, struct scenario *out,
                                    struct ar_error *error)
{
    const char *kinds[TWIN_KINDS_MOST];
    size_t count = twin_setup_kinds(kinds, TWIN_KINDS_MOST);
    AR_TRY(scenario_read(self->path, kinds, count, out, error));
    AR_TRY(twin_compare_check(out, error));
    for (size_t i = 0; i < self->sets.count; i++)
        AR_TRY(edit(self, i, out, error));
    if (self->cycles != NOT_GIVEN) {
        out->cycles = self->cycles;
        out->cycles_line = 0;
    }
    enum ar_status status = scenario_check_cycles(out, error);
    if (out->cycles_line)
        return status;
    return ar_error_prefix(error, status,
                           self->cycles != NOT_GIVEN ? "--cycles" : "--set schedule.cycles");
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
    AR_TRY(program_run(&program, &end, error));
    if (end.code)
        return ar_error_set(error, end.code == 3 ? AR_MISSING : AR_IO,
                            "--figure %s: it was not drawn%s", figure,
                            end.code == 3 ? "; gnuplot is missing" : "");
    return AR_OK;
}

static enum ar_status write_figure(const struct arguments *self, const struct twin_page *answer,
                                   struct ar_error *error)
{
    char path[4096];
    int file = file_temporary(path, sizeof path);
    FILE *stream = file < 0 ? NULL : fdopen(file, "w");
    if (!stream) {
        enum ar_status status = ar_error_set(
            error, AR_IO, "%s: no temporary file can be made: %s; set TMPDIR to a folder", path,
            strerror(errno));
        if (file >= 0) {
            close(file);
            unlink(path);
        }
        return status;
    }
    twin_series_write(stream, answer);
    bool bad = ferror(stream) != 0;
    bad = fclose(stream) != 0 || bad;
    enum ar_status status = bad ? ar_error_set(error, AR_IO, "%s: cannot be written", path)
                                : draw(path, self->figure, answer->name, error);
    unlink(path);
    return status;
}

static enum ar_status write_files(const struct arguments *self, const struct twin_page *answer,
                                  struct output_set *files, FILE *json, FILE *series,
                                  struct ar_error *error)
{
    if (json)
        twin_json_write(json, answer);
    if (series)
        twin_series_write(series, answer);
    if (self->figure)
        AR_TRY(write_figure(self, answer, error));
    if (!files->standard)
        AR_TRY(twin_page_print(stdout, answer, error));
    return output_set_commit(files, error);
}

/* The exit status: of --check whether the figures agree, else whether the scenario fits. */
static enum ar_status verdict(const struct arguments *self, const struct twin_page *answer,
                              struct ar_error *error)
{
    size_t off = 0;
    for (size_t i = 0; i < answer->reported_count; i++)
        off += (!answer->reported[i].known || !answer->reported[i].agrees) &&
               !answer->reported[i].in_range;
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

static enum ar_status run(const struct arguments *self, const struct scenario *text,
                          struct ar_error *error)
{
    AR_CLOSED(output_set_abandon) struct output_set files = {0};
    struct output_file figure = {0};
    struct twin_study study;
    FILE *json, *series;
    if (self->figure)
        AR_TRY(output_open(&figure, self->figure, error));
    output_abandon(&figure); /* gnuplot writes it: a place that cannot be written is told early */
    AR_TRY(output_set_add(&files, self->json, &json, error));
    AR_TRY(output_set_add(&files, self->series, &series, error));
    AR_TRY(twin_study_run(text, self->again, self->journal, &study, error));
    enum ar_status status = write_files(self, &study.page, &files, json, series, error);
    bool finished = !status;
    AR_THEN(status, verdict(self, &study.page, error));
    twin_study_close(&study, finished);
    return status;
}

enum ar_status cmd_twin(int argc, char **argv, struct ar_error *error)
{
    struct arguments self = {.cycles = NOT_GIVEN};
    AR_CLOSED(scenario_close) struct scenario text = {0};
    AR_TRY(cli_parse(&page, argc, argv, &self, error));
    if (self.figure)
        AR_TRY(check_figure(self.figure, error));
    if (!self.path)
        return ar_invalid(error, "twin: no scenario is given; workloads/scenarios has examples");
    if (self.what_if && strcmp(self.what_if, "yes") != 0 && strcmp(self.what_if, "no") != 0)
        return ar_invalid(error, "twin: --what-if %s: yes or no", self.what_if);
    self.again = self.what_if ? !strcmp(self.what_if, "yes") : !self.check;
    if (self.journal && !self.again)
        return ar_invalid(error,
                          "twin: --journal is of the runs with changes; write --what-if yes");
    AR_TRY(read_scenario(&self, &text, error));
    if (self.check && !text.reported_count)
        return ar_invalid(error, "%s: --check needs figures; write them below [reported]",
                          self.path);
    return run(&self, &text, error);
}
