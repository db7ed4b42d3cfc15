/* `run`: replays every workload under every policy, from a suite file or from options. The options
 * set the keys of a suite and have priority over a suite file. */
#include <stdio.h>
#include <string.h>

#include "allocators/base/size.h"
#include "bench/cli/cli.h"
#include "bench/suite/plan.h"
#include "bench/suite/suite_run.h"
#include "workloads/workload.h"

enum option_key {
    KEY_FILE = CLI_KEYS, /* one key for each enum suite_file */
    KEY_OUTPUT = KEY_FILE + SUITE_FILE_COUNT,
    KEY_HDR_OF,
    KEY_CHROME_MOST,
    KEY_PINNED,
    KEY_FREES,
    KEY_HOST,
    KEY_METRICS,
    KEY_REPS,
    KEY_SEED,
    KEY_JOBS,
    KEY_REPLICATES,
    KEY_DRAWS,
    KEY_AGAINST,
    KEY_TIME,
    KEY_VERIFY,
    KEY_ISOLATE,
    KEY_TIMEOUT,
    KEY_ON_FAIL,
    KEY_REQUIRE_PASS,
    KEY_WIDE,
    KEY_JOURNAL,
};

static const struct cli_option options[] = {
    {CLI_HEADING, NULL, NULL, "What to run:"},
    {'p', "policy", "SPEC", "a policy, NAME:key=value,...; `all`: every one"},
    {'w', "workload", "WORKLOAD", "a trace file, or a generator's NAME:key=value,..."},
    {'d', "device", "DEVICE",
     "sim[:profile=h100,...], cuda[:...]; default: cuda if there is a card, otherwise sim; a "
     "number N: only GPU N of the workloads"},
    {CLI_HEADING, NULL, NULL, "Output files (- is standard output):"},
    {KEY_FILE + SUITE_FILE_json, "json", "FILE", "every figure of every run (results/schema.json)"},
    {KEY_FILE + SUITE_FILE_csv, "csv", "FILE", "the same, a row for each run"},
    {KEY_FILE + SUITE_FILE_latex, "latex", "FILE", "the tables, for LaTeX with booktabs"},
    {KEY_FILE + SUITE_FILE_junit, "junit", "FILE", "each run as a test case, as JUnit XML"},
    {KEY_FILE + SUITE_FILE_openmetrics, "openmetrics", "FILE",
     "every figure as a gauge, as OpenMetrics text"},
    {KEY_FILE + SUITE_FILE_placements, "placements", "FILE",
     "of one run: the address of each block"},
    {KEY_FILE + SUITE_FILE_series, "series", "FILE", "of one run: the state after each event"},
    {KEY_FILE + SUITE_FILE_stats, "stats", "FILE",
     "of one run: the statistics of the allocator, as JSON"},
    {KEY_FILE + SUITE_FILE_calls, "calls", "FILE", "of one run: each driver call with its cost"},
    {KEY_FILE + SUITE_FILE_snapshot, "snapshot", "FILE", "of one run: a PyTorch memory snapshot"},
    {KEY_FILE + SUITE_FILE_chrome, "chrome", "FILE",
     "bytes and driver calls over time, for Perfetto and Chrome"},
    {KEY_CHROME_MOST, "chrome-most", "N",
     "most values and driver calls of each run in it; 0: all; default 100000"},
    {KEY_FILE + SUITE_FILE_hdr, "hdr", "FILE",
     "of one run with --time: latencies by percentile, in HdrHistogram's format"},
    {KEY_HDR_OF, "hdr-of", "METRIC",
     "metric of --hdr: alloc_ns (default), free_ns, alloc_total_ns or free_total_ns"},
    {KEY_OUTPUT, "output", "FOLDER", "write results, a summary and the data of the figures"},
    {CLI_HEADING, NULL, NULL, "Options:"},
    {KEY_PINNED, "pinned", "SPEC", "policy of pinned host memory: torch-pinned (default), or none"},
    {KEY_FREES, "frees", "MODE", "ordered (default), at-once or recorded"},
    {KEY_HOST, "host", "MODE", "host time: none (default), recorded or open"},
    {KEY_METRICS, "metrics", "MODE", "exact (default): all; none: only those without a cost"},
    {KEY_REPS, "reps", "N", "repetitions of each run; default: 6 on a card, otherwise 1"},
    {KEY_SEED, "seed", "N", "seed of policies that use random numbers, and of the first replicate"},
    {KEY_REPLICATES, "replicates", "N",
     "repeat with N seeds of addresses=random and of generators"},
    {KEY_DRAWS, "draws", "N", "alias of --replicates, for one release"},
    {KEY_AGAINST, "against", "SPEC",
     "policy that others are compared with in pairs; default: the first"},
    {KEY_JOBS, "jobs", "N", "workers; default: one for each processor; 1 on a card"},
    {KEY_ISOLATE, "isolate", NULL, "run each in its own process, as on a card"},
    {KEY_JOURNAL, "journal", "FILE", "finished runs; the same command continues from it"},
    {KEY_TIMEOUT, "timeout", "SECONDS", "time limit of a run in its own process; default 600"},
    {KEY_TIME, "time", NULL, "measure the host time of each call, in a separate pass"},
    {KEY_VERIFY, "verify", NULL, "fill and check the memory, on a real card"},
    {KEY_ON_FAIL, "on-fail", "MODE", "go (default) or stop after a failed request"},
    {KEY_REQUIRE_PASS, "require-pass", NULL, "exit status 1 if a run did not finish"},
    {KEY_WIDE, "wide", NULL, "print tables with all columns, wider than 80 columns; also in LaTeX"},
    {0},
};

static const struct cli_page page = {
    .arguments = "-p SPEC [-p SPEC].. -w WORKLOAD [-w WORKLOAD].. [options]\nSUITE.ini [options]",
    .text = "Replays every workload under every policy and prints a table, best policy first.\n"
            "`allocrig list metrics` defines the figures.",
    .options = options,
};

struct run_arguments {
    struct suite suite;
    struct suite_files files;
    uint64_t chrome_most;
    const char *suite_path;
    bool policies_given, workloads_given, devices_given;
};

/* The first pass finds the suite file; options replace its keys afterwards. */
static enum ar_status find_suite(void *argument, int key, const char *value, struct ar_error *error)
{
    struct run_arguments *self = argument;
    if (key != CLI_ARGUMENT)
        return AR_OK;
    if (self->suite_path)
        return ar_error_set(error, AR_INVALID,
                            "\"%s\" is one suite file too many; policies and workloads go after -p "
                            "and -w",
                            value);
    self->suite_path = value;
    return AR_OK;
}

static enum ar_status set_file(struct run_arguments *self, int key, const char *path,
                               struct ar_error *error)
{
    const char **place = key == KEY_HDR_OF    ? &self->files.hdr_of
                         : key == KEY_JOURNAL ? &self->files.journal
                                              : &self->files.path[key - KEY_FILE];
    if (*place)
        return ar_error_set(error, AR_INVALID, "--%s is given twice", cli_option_name(&page, key));
    *place = path;
    return AR_OK;
}

/* The first option replaces the list of the suite file; further ones are added to it. */
static void begin_list(struct text_list *list, bool *given)
{
    if (!*given)
        text_list_close(list);
    *given = true;
}

static enum ar_status set_option(void *argument, int key, const char *value, struct ar_error *error)
{
    struct run_arguments *self = argument;
    struct suite *suite = &self->suite;
    enum ar_status status;
    if (key >= KEY_FILE && key < KEY_FILE + SUITE_FILE_COUNT)
        return set_file(self, key, value, error);
    switch (key) {
    case CLI_ARGUMENT:
        return AR_OK;
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
    case KEY_HDR_OF:
    case KEY_JOURNAL:
        return set_file(self, key, value, error);
    case KEY_CHROME_MOST:
        self->files.chrome_most = &self->chrome_most;
        status = ar_count_parse(value, &self->chrome_most, error);
        return status ? ar_error_prefix(error, status, "--chrome-most") : AR_OK;
    case KEY_WIDE:
        suite->wide = true;
        return AR_OK;
    case KEY_REQUIRE_PASS:
    case KEY_TIME:
    case KEY_ISOLATE:
    case KEY_VERIFY:
        return suite_set(suite, cli_option_name(&page, key), "yes", error);
    default:
        return suite_set(suite, cli_option_name(&page, key), value, error);
    }
}

/* Defaults: a card if there is one, and what files of a single run need. */
static enum ar_status fill_in(struct run_arguments *self, struct ar_error *error)
{
    char why[sizeof error->text];
    self->suite.once = suite_files_of_one_run(&self->files) != SUITE_FILE_COUNT ||
                       self->files.path[SUITE_FILE_chrome];
    if (self->suite.devices.count)
        return AR_OK;
    const char *device = plan_default_device(why, sizeof why);
    if (why[0]) /* the reason without its advice */
        snprintf(self->suite.device_note, sizeof self->suite.device_note,
                 "On the simulated device, because no card can be used: %.*s.",
                 (int)(strcspn(why, ";") < 240 ? strcspn(why, ";") : 240), why);
    return text_list_add(&self->suite.devices, device, error);
}

/* True if two paths, which need not exist, name one file. */
static bool same_path(const char *left, const char *right)
{
    while (strncmp(left, "./", 2) == 0)
        left += 2;
    while (strncmp(right, "./", 2) == 0)
        right += 2;
    return strcmp(left, right) == 0;
}

static enum ar_status check_files(const struct run_arguments *self, struct ar_error *error)
{
    enum { COUNT = SUITE_FILE_COUNT + 2 };
    const char *paths[COUNT];
    memcpy(paths, self->files.path, sizeof self->files.path);
    paths[SUITE_FILE_COUNT] = self->files.journal;
    paths[SUITE_FILE_COUNT + 1] = self->suite.output;
    for (size_t i = 0; i < COUNT; i++) {
        if (!paths[i])
            continue;
        if (!paths[i][0])
            return ar_error_set(error, AR_INVALID, "run: an output has an empty name; name a %s",
                                i + 1 < COUNT ? "file, or - for standard output" : "folder");
        for (size_t j = 0; j < i; j++)
            if (paths[j] && strcmp(paths[i], "-") != 0 && same_path(paths[i], paths[j]))
                return ar_error_set(
                    error, AR_INVALID,
                    "run: \"%s\" is named for two outputs; name another file for one of them",
                    paths[i]);
    }
    return AR_OK;
}

static enum ar_status check(const struct run_arguments *self, struct ar_error *error)
{
    enum ar_status status = check_files(self, error);
    if (status)
        return status;
    if (self->suite.policies.count == 0)
        return ar_error_set(
            error, AR_INVALID,
            "run: no policy given; add -p NAME (`allocrig list policies`), or name a "
            "suite file");
    if (self->suite.workloads.count == 0)
        return ar_error_set(error, AR_INVALID,
                            "run: no workload given; add -w FILE or -w NAME (`allocrig list "
                            "workloads`)");
    return AR_OK;
}

static enum ar_status read_and_run(struct run_arguments *self, int argc, char **argv,
                                   struct ar_error *error)
{
    bool help = false;
    enum ar_status status = cli_parse(&page, argc, argv, find_suite, self, &help, error);
    if (status || help)
        return status;
    if (self->suite_path)
        status = suite_read(&self->suite, self->suite_path, error);
    if (!status && self->suite.axis_count)
        status = ar_error_set(error, AR_INVALID,
                              "%s:%u: a suite with [grid] is run by `allocrig sweep %s`",
                              self->suite_path, self->suite.axes[0].line, self->suite_path);
    if (!status)
        status = cli_parse(&page, argc, argv, set_option, self, &help, error);
    if (!status)
        status = check(self, error);
    if (!status)
        status = suite_put_first(&self->suite, error);
    if (!status)
        status = fill_in(self, error);
    if (status)
        return status;
    struct environment environment;
    environment_capture(&environment, argc, argv, self->suite.seed);
    return suite_run(&self->suite, &self->files, &environment, stdout, error);
}

enum ar_status cmd_run(int argc, char **argv, struct ar_error *error)
{
    struct run_arguments self = {0};
    suite_init(&self.suite);
    enum ar_status status = read_and_run(&self, argc, argv, error);
    suite_close(&self.suite);
    return status;
}
