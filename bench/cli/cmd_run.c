/* `run`: replays every workload under every policy, from a suite file or from options. The options
 * set the keys of a suite and have priority over a suite file. */
#include <sys/stat.h>

#include "allocators/registry.h"
#include "bench/cli/cli.h"
#include "bench/suite/plan.h"
#include "bench/suite/suite_run.h"
#include "workloads/gen/gen.h"
#include "workloads/workload.h"

struct arguments {
    struct suite suite;
    struct suite_files files;
    const char *suite_path;
    bool policies_given, workloads_given, devices_given;
};

/* The first option replaces the list of the suite file; further ones are added to it. */
static void begin_list(struct text_list *list, bool *given)
{
    if (!*given)
        text_list_close(list);
    *given = true;
}

static enum ar_status take_list(void *arguments, const struct cli_option *option, const char *value,
                                struct ar_error *error)
{
    struct arguments *self = arguments;
    struct suite *suite = &self->suite;
    switch (option->letter) {
    case 'p':
        begin_list(&suite->policies, &self->policies_given);
        return suite_add_policy(suite, value, error);
    case 'w':
        begin_list(&suite->workloads, &self->workloads_given);
        return text_list_add(&suite->workloads, value, error);
    case 'd':
        if (!workload_is_gpu(value))
            begin_list(&suite->devices, &self->devices_given);
        return suite_add_device(suite, value, error);
    default:
        begin_list(&suite->devices, &self->devices_given);
        return cli_suite_card(&self->suite, &(struct cli_option){0}, value, error);
    }
}

#define FILE_OF(file) CLI_FILE(files.path[SUITE_FILE_##file])

static const struct cli_option options[] = {
    {CLI_HEADING("What to run:")},
    {'p', "policy", "SPEC", "a policy, NAME:key=value,...; `all`: every one", CLI_CALL(take_list),
     .many = true},
    {'w', "workload", "WORKLOAD", "a trace file, or a generator's NAME:key=value,...",
     CLI_CALL(take_list), .many = true},
    {'d', "device", "DEVICE",
     "sim[:profile=h100,...], cuda[:...]; default: cuda if there is a card, otherwise sim; a "
     "number N: only GPU N of the workloads",
     CLI_CALL(take_list), .many = true},
    {CLI_CARD_ROW, CLI_CALL(take_list), .many = true},
    {CLI_HEADING("Output files (- is standard output):")},
    {0, "json", "FILE", "every figure of every run (results/schema.json)", FILE_OF(json)},
    {0, "csv", "FILE", "the same, a row for each run", FILE_OF(csv)},
    {0, "latex", "FILE", "the tables, for LaTeX with booktabs", FILE_OF(latex)},
    {0, "junit", "FILE", "each run as a test case, as JUnit XML", FILE_OF(junit)},
    {0, "openmetrics", "FILE", "every figure as a gauge, as OpenMetrics text",
     FILE_OF(openmetrics)},
    {0, "placements", "FILE", "of one run: the address of each block", FILE_OF(placements)},
    {0, "series", "FILE", "of one run: the state after each event", FILE_OF(series)},
    {0, "stats", "FILE", "of one run: the statistics of the allocator, as JSON", FILE_OF(stats)},
    {0, "calls", "FILE", "of one run: each driver call with its cost", FILE_OF(calls)},
    {0, "snapshot", "FILE", "of one run: a PyTorch memory snapshot", FILE_OF(snapshot)},
    {0, "chrome", "FILE", "bytes and driver calls over time, for Perfetto and Chrome",
     FILE_OF(chrome)},
    {0, "chrome-most", "N",
     "most values and driver calls of each run in it; 0: all; default 100000",
     CLI_COUNT(files.chrome_most, 0, CLI_NO_LIMIT)},
    {0, "hdr", "FILE", "of one run with --time: latencies by percentile, in HdrHistogram's format",
     FILE_OF(hdr)},
    {0, "hdr-of", "METRIC",
     "metric of --hdr: alloc_ns (default), free_ns, alloc_total_ns or free_total_ns",
     CLI_TEXT(files.hdr_of)},
    {0, "output", "FOLDER", "write results, a summary and the data of the figures", .writes = true,
     CLI_SUITE(cli_suite_key)},
    {CLI_HEADING("Options:")},
    {0, "pinned", "SPEC", "policy of pinned host memory: torch-pinned (default), or none",
     CLI_SUITE(cli_suite_key)},
    {0, "frees", "MODE", "ordered (default), at-once or recorded", CLI_SUITE(cli_suite_key)},
    {0, "host", "MODE", "host time: none (default), recorded or open", CLI_SUITE(cli_suite_key)},
    {0, "metrics", "MODE", "exact (default): all; none: only those without a cost",
     CLI_SUITE(cli_suite_key)},
    {0, "reps", "N", "repetitions of each run; default: 6 on a card, otherwise 1",
     CLI_SUITE(cli_suite_key)},
    {0, "seed", "N", "seed of policies that use random numbers, and of the first replicate",
     CLI_SUITE(cli_suite_key)},
    {0, "replicates", "N", "repeat with N seeds of addresses=random and of generators",
     CLI_SUITE(cli_suite_key)},
    {0, "draws", "N", "alias of --replicates, for one release", .alias = "replicates"},
    {0, "against", "SPEC", "policy that others are compared with in pairs; default: the first",
     CLI_SUITE(cli_suite_key)},
    {0, "jobs", "N", "workers; default: one for each processor; 1 on a card",
     CLI_SUITE(cli_suite_key)},
    {0, "isolate", NULL, "run each in its own process, as on a card", CLI_SUITE(cli_suite_key)},
    {0, "journal", "FILE", "finished runs; the same command continues from it", .regular = true,
     CLI_FILE(files.journal)},
    {0, "timeout", "SECONDS", "time limit of a run in its own process; default 600",
     CLI_SUITE(cli_suite_key)},
    {0, "time", NULL, "measure the host time of each call, in a separate pass",
     CLI_SUITE(cli_suite_key)},
    {0, "verify", NULL, "fill and check the memory, on a real card", CLI_SUITE(cli_suite_key)},
    {0, "on-fail", "MODE", "go (default) or stop after a failed request", CLI_SUITE(cli_suite_key)},
    {0, "require-pass", NULL, "exit status 1 if a run did not finish", CLI_SUITE(cli_suite_key)},
    {0, "wide", NULL, "print tables with all columns, wider than 80 columns; also in LaTeX",
     CLI_FLAG(suite.wide)},
    {0},
};

static const struct cli_page page = {
    .arguments = "-p SPEC [-p SPEC].. -w WORKLOAD [-w WORKLOAD].. [options]\nSUITE.ini [options]",
    .text = "Replays every workload under every policy and prints a table, best policy first.\n"
            "`allocrig list metrics` defines the figures.",
    .options = options,
    .argument = {.value = "suite file", .lists = true, CLI_TEXT(suite_path)},
};

/* Defaults: a card if there is one, and what files of a single run need. */
static enum ar_status fill_in(struct arguments *self, struct ar_error *error)
{
    char why[sizeof error->text];
    self->suite.once = suite_files_of_one_run(&self->files) != SUITE_FILE_COUNT ||
                       self->files.path[SUITE_FILE_chrome];
    if (self->suite.devices.count)
        return AR_OK;
    const char *device = plan_default_device(why, sizeof why);
    if (strstr(why, "there is no NVIDIA driver") && strstr(why, "No such file"))
        snprintf(self->suite.device_note, sizeof self->suite.device_note,
                 "No NVIDIA driver here: on the simulated device.");
    else if (why[0]) /* the reason without its advice */
        snprintf(self->suite.device_note, sizeof self->suite.device_note,
                 "On the simulated device, because no card can be used: %.*s.",
                 (int)(strcspn(why, ";") < 240 ? strcspn(why, ";") : 240), why);
    return text_list_add(&self->suite.devices, device, error);
}

static enum ar_status check_files(const struct arguments *self, struct ar_error *error)
{
    enum { COUNT = SUITE_FILE_COUNT + 2 };
    const char *paths[COUNT];
    memcpy(paths, self->files.path, sizeof self->files.path);
    paths[SUITE_FILE_COUNT] = self->files.journal;
    paths[SUITE_FILE_COUNT + 1] = self->suite.output;
    for (size_t i = 0; i < COUNT; i++) {
        if (!paths[i])
            continue;
        for (size_t j = 0; j < i; j++)
            if (paths[j] && cli_same_file(paths[i], paths[j]))
                return ar_invalid(
                    error,
                    "run: \"%s\" is named for two outputs; name another file for one of them",
                    paths[i]);
    }
    return AR_OK;
}

static enum ar_status check(const struct arguments *self, struct ar_error *error)
{
    AR_TRY(check_files(self, error));
    if (self->suite.policies.count == 0)
        return ar_invalid(error,
                          "run: no policy given; add -p NAME (`allocrig list policies`), or name a "
                          "suite file");
    if (self->suite.workloads.count == 0)
        return ar_invalid(error, "run: no workload given; add -w FILE or -w NAME (`allocrig list "
                                 "workloads`)");
    return AR_OK;
}

/* Options replace keys of the suite file, so the command line is read twice: first for its name. */
static enum ar_status find_suite(int argc, char **argv, const char **path, struct ar_error *error)
{
    struct arguments first = {.suite = SUITE_DEFAULTS};
    enum ar_status status = cli_parse(&page, argc, argv, &first, error);
    *path = first.suite_path;
    suite_close(&first.suite);
    return status;
}

/* A word that is no file may be the name of a policy or a generator, whose option is missing. */
static enum ar_status check_suite_path(const char *path, struct ar_error *error)
{
    struct stat about;
    if (stat(path, &about) == 0)
        return AR_OK;
    if (registry_find(path))
        return ar_invalid(error, "run: %s is a policy; write -p %s", path, path);
    if (gen_find(path))
        return ar_invalid(error, "run: %s is a workload; write -w %s", path, path);
    return AR_OK;
}

static enum ar_status read_and_run(struct arguments *self, int argc, char **argv,
                                   struct ar_error *error)
{
    const char *path;
    struct cli_page second = page;
    second.quiet = true;
    AR_TRY(find_suite(argc, argv, &path, error));
    if (path)
        AR_TRY(check_suite_path(path, error));
    if (path)
        AR_TRY(suite_read(&self->suite, path, error));
    if (self->suite.axis_count)
        return ar_invalid(error, "%s:%u: a suite with [grid] is run by `allocrig sweep %s`", path,
                          self->suite.axes[0].line, path);
    AR_TRY(cli_parse(&second, argc, argv, self, error));
    AR_TRY(check(self, error));
    AR_TRY(suite_put_first(&self->suite, error));
    AR_TRY(fill_in(self, error));
    struct environment environment;
    environment_capture(&environment, argc, argv, self->suite.seed);
    return suite_run(&self->suite, &self->files, &environment, stdout, error);
}

enum ar_status cmd_run(int argc, char **argv, struct ar_error *error)
{
    struct arguments self = {.suite = SUITE_DEFAULTS, .files.chrome_most = SUITE_CHROME_MOST};
    enum ar_status status = read_and_run(&self, argc, argv, error);
    suite_close(&self.suite);
    return status;
}
