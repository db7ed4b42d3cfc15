/* allocrig: finds the command, runs it, prints its error as one sentence, and turns its status
 * into the exit status. Nothing else in the program exits. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "bench/cli/cli.h"
#include "bench/report/sentence.h"
#include "bench/machine/build_info.h"

const struct cli_command cli_commands[] = {
    {"run", "every policy x workload: a table, and files", cmd_run},
    {"capacity", "the smallest capacities at which workloads pass", cmd_capacity},
    {"advise", "which settings would let a recorded program run in less memory", cmd_advise},
    {"explain", "why memory ran out, in a run or in a pasted message", cmd_explain},
    {"tenants", "several processes on the cards of one machine", cmd_tenants},
    {"bound", "lower bounds, offline plans, and a checker for plans", cmd_bound},
    {"fidelity", "hold a recording against the policy that imitates its allocator", cmd_fidelity},
    {"gen", "make a trace by rule", cmd_gen},
    {"convert", "translate and filter a trace", cmd_convert},
    {"inspect", "describe a trace", cmd_inspect},
    {"record", "run a program and write what it asks of the GPU driver", cmd_record},
    {"calibrate", "measure what this card's driver calls cost, into a profile", cmd_calibrate},
    {"minimize", "the smallest trace that still shows something", cmd_minimize},
    {"model", "hold the simulated device against runs on a card", cmd_model},
    {"sweep", "a grid of cases over all cores, which can be interrupted", cmd_sweep},
    {"compare", "two results compared, exit 1 on a regression", cmd_compare},
    {"history", "results over commits: where they changed, exit 1 on a regression", cmd_history},
    {"list", "the policies, workloads, devices, metrics and formats there are", cmd_list},
    {NULL, NULL, NULL},
};

static void print_help(void)
{
    puts("Usage: allocrig COMMAND [options]\n\n"
         "A test rig for GPU memory allocator policies: replays programs under policies\n"
         "on a simulated GPU and reports memory, fragmentation, driver calls and speed.\n");
    for (const struct cli_command *command = cli_commands; command->name; command++)
        printf("  %-10s %s\n", command->name, command->summary);
    puts("  help       this page; help COMMAND is COMMAND --help\n\n"
         "Sizes take KiB, MiB and GiB (K, M and G mean the same). Results go to standard\n"
         "output. Exit status: 0 done; 1 the answer is no; 2 bad usage or input; 3 no such\n"
         "device or a missing component; 4 an internal fault.\n\n"
         "  allocrig run -p all -w order_flip\n"
         "  allocrig run -p growth -p bfc -w my_trace.csv --json out.json\n"
         "  allocrig list policies growth");
}

static const struct cli_command *find_command(const char *name)
{
    for (const struct cli_command *command = cli_commands; command->name; command++)
        if (strcmp(command->name, name) == 0)
            return command;
    return NULL;
}

static enum ar_status unknown_command(const char *word, struct ar_error *error)
{
    const char *names[sizeof cli_commands / sizeof cli_commands[0] + 1];
    size_t count = 0;
    for (const struct cli_command *command = cli_commands; command->name; command++)
        names[count++] = command->name;
    names[count++] = "help";
    return cli_unknown("command", word, names, count, error);
}

static enum ar_status run_command(int argc, char **argv, struct ar_error *error)
{
    char help[] = "--help";
    const struct cli_command *command = find_command(argv[0]);
    if (strcmp(argv[0], "--version") == 0 || strcmp(argv[0], "-V") == 0) {
        printf("allocrig %s\n", build_info()->version);
        return AR_OK;
    }
    bool is_help = strcmp(argv[0], "help") == 0;
    if (is_help && argc > 1 && argv[1][0] != '-') {
        command = find_command(argv[1]);
        char *arguments[] = {argv[1], help, NULL};
        return command ? command->run(2, arguments, error) : unknown_command(argv[1], error);
    }
    if (is_help || strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0) {
        print_help();
        return AR_OK;
    }
    return command ? command->run(argc, argv, error) : unknown_command(argv[0], error);
}

int main(int argc, char **argv)
{
    struct ar_error error = {{0}};
    /* A file over the size limit is then a failed write like any other, with its sentence. */
    signal(SIGXFSZ, SIG_IGN);
    enum ar_status status =
        argc > 1 ? run_command(argc - 1, argv + 1, &error)
                 : ar_error_set(&error, AR_INVALID, "no command given; `allocrig help` lists them");
    if ((fflush(stdout) != 0 || ferror(stdout)) && !status)
        status = ar_error_set(&error, AR_IO, "standard output cannot be written");
    if (status)
        sentence_say(stderr, "allocrig: %s",
                     error.text[0] ? error.text : ar_status_meaning(status));
    return (int)status > CLI_EXIT ? (int)status - CLI_EXIT : ar_status_exit(status);
}
