/* `submit`: checks a submission to the benchmark, makes its row, or the page of all rows. The work
 * is done by bench/leaderboard/submit.py, which takes the place of this process. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/cli/cli.h"
#include "bench/cli/program.h"

static const struct cli_option options[] = {{0}};

static const struct cli_page page = {
    .arguments = "check FOLDER\nrun FOLDER [options]\npage ROW.. -o PAGE",
    .text =
        "Checks a submission to the benchmark (workloads/dataset/RULES.md), makes its row on the\n"
        "data set that `make dataset` built, or makes the page of all rows. FOLDER has\n"
        "submission.ini. `submit run --help` lists the options of `run`. Python 3 is needed.\n"
        "The exit status is 1 if a check failed.",
    .options = options,
};

static enum ar_status take(void *self, int key, const char *value, struct ar_error *error)
{
    static const char *const actions[] = {"check", "run", "page"};
    (void)self, (void)key;
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (strcmp(value, actions[i]) == 0)
            return AR_OK;
    return cli_unknown("action", value, actions, sizeof actions / sizeof *actions, error);
}

/* Starts the script with the words of the command line in place of this process. */
static enum ar_status start(char *script, char **words, int count, struct ar_error *error)
{
    char own[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    char **command = calloc((size_t)count + 3, sizeof *command);
    if (!command)
        return ar_error_set(error, AR_NO_MEMORY, "no memory for a command line");
    command[0] = (char[]){"python3"};
    command[1] = script;
    memcpy(command + 2, words, (size_t)count * sizeof *words);
    if (length > 0) {
        own[length] = '\0';
        setenv("ALLOCRIG", own, 0);
    }
    execvp(command[0], command);
    int why = errno;
    free(command);
    return ar_error_set(error, AR_MISSING, "submit: python3 cannot be started: %s", strerror(why));
}

enum ar_status cmd_submit(int argc, char **argv, struct ar_error *error)
{
    static const char *const places[] = {"../../bench/leaderboard/submit.py",
                                         "../share/allocrig/leaderboard/submit.py", NULL};
    char script[PATH_MAX];
    bool help = false;
    enum ar_status status = cli_parse(&page, argc > 1 ? 2 : 1, argv, take, NULL, &help, error);
    if (status || help)
        return status;
    if (argc == 1)
        return ar_error_set(error, AR_INVALID,
                            "submit: no action is given; write submit check FOLDER");
    if (!program_find(places, script, sizeof script))
        return ar_error_set(error, AR_MISSING,
                            "submit.py is neither in the tree of %s nor in ../share/allocrig: run "
                            "`make install`, or start the program in its tree",
                            script);
    return start(script, argv + 1, argc - 1, error);
}
