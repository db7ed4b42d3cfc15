/* allocrig: finds the command, runs it, prints its error as one sentence, and returns its status as
 * the exit status. No other code ends the program. */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench/cli/cli.h"
#include "bench/machine/crash.h"
#include "bench/machine/environment.h"
#include "bench/report/sentence.h"

const struct cli_command cli_commands[] = {
    {"run", "replay workloads under policies: tables and result files", cmd_run},
    {"capacity", "find the smallest capacity at which a workload passes", cmd_capacity},
    {"advise", "find settings that let a recorded program run in less memory", cmd_advise},
    {"fits", "say on which card a program fits that never ran there", cmd_fits},
    {"drift", "predict how memory changes over a long run of a recorded program", cmd_drift},
    {"explain", "explain an out-of-memory error of a run or a message", cmd_explain},
    {"tenants", "run several processes on the cards of one machine", cmd_tenants},
    {"twin", "say where memory is if training and inference share cards", cmd_twin},
    {"bound", "compute lower bounds and offline plans; check a plan", cmd_bound},
    {"fidelity", "compare a recording with the policy that imitates its allocator", cmd_fidelity},
    {"gen", "write a synthetic workload as a trace", cmd_gen},
    {"convert", "convert, filter and merge traces", cmd_convert},
    {"inspect", "describe a trace", cmd_inspect},
    {"record", "run a program and record its GPU memory calls", cmd_record},
    {"trace", "run a PyTorch or JAX program without a card and write its requests", cmd_trace},
    {"calibrate", "measure the cost of driver calls on this card as a profile", cmd_calibrate},
    {"minimize", "find the smallest trace that still shows a condition", cmd_minimize},
    {"model", "compare the simulated device with runs on a card", cmd_model},
    {"sweep", "run every combination of a grid; can be interrupted", cmd_sweep},
    {"compare", "compare two result sets; exit status 1 on a regression", cmd_compare},
    {"history", "find changes of results over commits; exit status 1 on a regression", cmd_history},
    {"search", "search for a better policy on the train split of the data set", cmd_script},
    {"submit", "check a submission to the benchmark, make its row or the page", cmd_script},
    {"list", "list policies, workloads, devices, metrics and formats", cmd_list},
    {NULL, NULL, NULL},
};

static void print_help(void)
{
    puts("Usage: allocrig COMMAND [options]\n\n"
         "A test rig for GPU memory allocator policies: replays programs under policies\n"
         "on a simulated GPU and reports memory, fragmentation, driver calls and speed.\n");
    for (const struct cli_command *command = cli_commands; command->name; command++)
        printf("  %-10s %s\n", command->name, command->summary);
    puts("  help       print this help; help COMMAND is COMMAND --help\n\n"
         "Sizes take KiB, MiB and GiB (M, MB and so on mean the same). Results go to\n"
         "standard output. Exit status: 0 success; 1 the answer is no; 2 bad usage or\n"
         "input; 3 a device or component is missing; 4 internal error.\n\n"
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
    const char *names[AR_COUNT(cli_commands) + 2];
    size_t count = 0;
    for (const struct cli_command *command = cli_commands; command->name; command++)
        names[count++] = command->name;
    names[count++] = "help";
    names[count++] = "--version";
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

/* A standard stream that is closed gets a descriptor that can be neither read nor written: the next
 * file to be opened would take its number, and be filled with what is printed. */
static void hold_standard_streams(void)
{
    for (int file = 0; file <= 2; file++)
        if (fcntl(file, F_GETFD) < 0)
            (void)open("/dev/null", (file ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
}

/* A shared object that ends the process calls these, because the program exports them. */
AR_API void _exit(int status)
{
    crash_reports_exit(status);
    for (;;)
        (void)syscall(SYS_exit_group, status);
}

AR_API void _Exit(int status)
{
    _exit(status);
}

/* Ends the process with libc's function of this name. */
static _Noreturn void end_by(const char *name, int status)
{
    void (*next)(int) = NULL;
    crash_reports_exit(status);
    *(void **)&next = dlsym(RTLD_NEXT, name);
    if (next)
        next(status);
    _exit(status);
}

AR_API void exit(int status)
{
    end_by("exit", status);
}

AR_API void quick_exit(int status)
{
    end_by("quick_exit", status);
}

int main(int argc, char **argv)
{
    struct ar_error error = {{0}};
    hold_standard_streams();
    /* A file over the size limit is then a failed write with an error message. */
    signal(SIGXFSZ, SIG_IGN);
    crash_reports_begin(argc > 1 && strcmp(argv[1], "run") == 0);
    enum ar_status status =
        argc > 1 ? run_command(argc - 1, argv + 1, &error)
                 : ar_invalid(&error, "no command given; `allocrig help` lists them");
    if ((fflush(stdout) != 0 || ferror(stdout)) && (!status || status == CLI_HELPED))
        status = ar_error_set(&error, AR_IO, "standard output cannot be written");
    if (status && status != CLI_HELPED)
        sentence_say(stderr, "allocrig: %s",
                     error.text[0] ? error.text : ar_status_meaning(status));
    crash_reports_returned();
    return (int)status >= CLI_EXIT ? (int)status - CLI_EXIT : ar_status_exit(status);
}
