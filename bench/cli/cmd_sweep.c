/* `sweep`: runs every combination of a grid over all cores, and continues after an interruption. */

#include "bench/cli/cli.h"
#include "bench/suite/suite_run.h"

struct arguments {
    struct sweep_files files;
    const char *path, *jobs, *output;
};

static const struct cli_option options[] = {
    {0, "csv", "FILE", "write every figure, a row for each run", CLI_FILE(files.csv)},
    {0, "json", "FILE", "write the results as JSON (results/schema.json)", CLI_FILE(files.json)},
    {0, "output", "FOLDER", "write results and a summary; default: output of the suite",
     CLI_FILE(output)},
    {0, "jobs", "N", "workers; default: one for each processor", CLI_TEXT(jobs)},
    {0, "journal", "FILE", "finished runs, to continue from; default: SUITE.ini.journal",
     .regular = true, CLI_FILE(files.journal)},
    {0},
};

static const struct cli_page page = {
    .arguments = "SUITE.ini [options]",
    .text = "Runs every combination of a grid. A grid is a suite with lists of values in its\n"
            "section [grid], such as torch:max_split_size_mb = 32 64 128, or in its specs, such\n"
            "as gradient_tape:width=1024|2048|4096. An interrupted sweep continues with the same\n"
            "command; its results are the same bytes.",
    .options = options,
    .argument = {.value = "suite", .lists = true, CLI_TEXT(path)},
};

enum ar_status cmd_sweep(int argc, char **argv, struct ar_error *error)
{
    struct arguments self = {.path = NULL};
    AR_CLOSED(suite_close) struct suite suite = SUITE_DEFAULTS;
    struct environment environment;
    AR_FREED char *journal = NULL;
    AR_TRY(cli_parse(&page, argc, argv, &self, error));
    if (!self.path)
        return ar_invalid(error, "sweep: no suite is given; write sweep SUITE.ini");
    if (!self.files.journal && asprintf(&journal, "%s.journal", self.path) < 0)
        return ar_no_memory(error, "a name");
    if (journal)
        self.files.journal = journal;
    self.files.suite = self.path;
    AR_TRY(suite_read(&suite, self.path, error));
    if (self.jobs)
        AR_TRY(suite_set(&suite, "jobs", self.jobs, error));
    if (self.output)
        AR_TRY(suite_set(&suite, "output", self.output, error));
    environment_capture(&environment, argc, argv, suite.seed);
    return sweep_run(&suite, &self.files, &environment, stdout, error);
}
