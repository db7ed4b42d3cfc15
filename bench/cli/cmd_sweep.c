/* `sweep`: runs every combination of a grid over all cores, and continues after an interruption. */
#include <stdio.h>
#include <stdlib.h>

#include "bench/cli/cli.h"
#include "bench/suite/suite_run.h"

enum option_key { KEY_JSON = CLI_KEYS, KEY_CSV, KEY_OUTPUT, KEY_JOURNAL, KEY_JOBS };

static const struct cli_option options[] = {
    {KEY_CSV, "csv", "FILE", "write every figure, a row for each run"},
    {KEY_JSON, "json", "FILE", "write the results as JSON (results/schema.json)"},
    {KEY_OUTPUT, "output", "FOLDER", "write results and a summary; default: output of the suite"},
    {KEY_JOBS, "jobs", "N", "workers; default: one for each processor"},
    {KEY_JOURNAL, "journal", "FILE", "finished runs, to continue from; default: SUITE.ini.journal"},
    {0},
};

static const struct cli_page page = {
    .arguments = "SUITE.ini [options]",
    .text = "Runs every combination of a grid. A grid is a suite with lists of values in its\n"
            "section [grid], such as torch:max_split_size_mb = 32 64 128, or in its specs, such\n"
            "as gradient_tape:width=1024|2048|4096. An interrupted sweep continues with the same\n"
            "command; its results are the same bytes.",
    .options = options,
};

struct arguments {
    struct suite suite;
    struct sweep_files files;
    const char *path, *jobs, *output;
};

static enum ar_status take(void *argument, int key, const char *value, struct ar_error *error)
{
    struct arguments *self = argument;
    const char **place = key == KEY_JSON      ? &self->files.json
                         : key == KEY_CSV     ? &self->files.csv
                         : key == KEY_JOURNAL ? &self->files.journal
                         : key == KEY_JOBS    ? &self->jobs
                         : key == KEY_OUTPUT  ? &self->output
                                              : &self->path;
    if (*place)
        return ar_error_set(error, AR_INVALID, "\"%s\" is one %s too many", value,
                            key == CLI_ARGUMENT ? "suite" : cli_option_name(&page, key));
    *place = value;
    return AR_OK;
}

enum ar_status cmd_sweep(int argc, char **argv, struct ar_error *error)
{
    struct arguments self = {.path = NULL};
    struct environment environment;
    char *journal = NULL;
    bool help = false;
    enum ar_status status = cli_parse(&page, argc, argv, take, &self, &help, error);
    if (status || help)
        return status;
    if (!self.path)
        return ar_error_set(error, AR_INVALID, "sweep: no suite is given; write sweep SUITE.ini");
    if (!self.files.journal && asprintf(&journal, "%s.journal", self.path) < 0)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory left for a name");
    if (journal)
        self.files.journal = journal;
    self.files.suite = self.path;
    suite_init(&self.suite);
    status = suite_read(&self.suite, self.path, error);
    if (!status && self.jobs)
        status = suite_set(&self.suite, "jobs", self.jobs, error);
    if (!status && self.output)
        status = suite_set(&self.suite, "output", self.output, error);
    if (!status) {
        environment_capture(&environment, argc, argv, self.suite.seed);
        status = sweep_run(&self.suite, &self.files, &environment, stdout, error);
    }
    suite_close(&self.suite);
    free(journal);
    return status;
}
