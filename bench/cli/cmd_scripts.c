/* `submit` and `search`: commands whose work is done by a Python script, which takes the place of
 * this process. */
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "bench/cli/cli.h"
#include "bench/cli/program.h"

static const struct cli_option options[] = {{0}};

struct script {
    const char *name, *file, *example;
    const char *actions[4];
    const char *places[3]; /* beside the program */
    struct cli_page page;
};

static enum ar_status take(void *self, const struct cli_option *option AR_UNUSED, const char *value,
                           struct ar_error *error)
{
    const struct script *script = self;
    size_t count = 0;
    for (; script->actions[count]; count++)
        if (strcmp(value, script->actions[count]) == 0)
            return AR_OK;
    return cli_unknown("action", value, script->actions, count, error);
}

/* Starts the script with the words of the command line in place of this process. */
static enum ar_status start(const char *name, char *script, char **words, int count,
                            struct ar_error *error)
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
    return ar_error_set(error, AR_MISSING, "%s: python3 cannot be started: %s", name,
                        strerror(why));
}

static const struct script scripts[] = {
    {.name = "submit",
     .file = "submit.py",
     .example = "submit check FOLDER",
     .actions = {"check", "run", "page"},
     .places = {"../../bench/leaderboard/submit.py", "../share/allocrig/leaderboard/submit.py"},
     .page = {.arguments = "check FOLDER\nrun FOLDER [options]\npage ROW.. -o PAGE",
              .text =
                  "Checks a submission to the benchmark (workloads/dataset/RULES.md), makes its "
                  "row on the\n"
                  "data set that `make dataset` built, or makes the page of all rows. FOLDER "
                  "has\n"
                  "submission.ini. `submit run --help` lists the options of `run`. Python 3 is "
                  "needed.\n"
                  "The exit status is 1 if a check failed.",
              .options = options,
              .argument = {CLI_CALL(take)}}},
    {.name = "search",
     .file = "search.py",
     .example = "search run",
     .actions = {"run", "report"},
     .places = {"../../bench/search/search.py"},
     .page = {.arguments = "run [SPACE] [options]\nreport FOLDER.. [-o FILE]",
              .text = "Searches for a better policy on the train split of the data set that `make "
                      "dataset`\n"
                      "built, by successive halving; bench/search/README.md describes it. SPACE "
                      "says what is\n"
                      "varied (default: bench/search/mosaic.ini). `report` merges the folders of "
                      "several machines.\n"
                      "It works in the tree after `make all tests`. `search run --help` lists the "
                      "options.\n"
                      "Python 3 is needed.",
              .options = options,
              .argument = {CLI_CALL(take)}}},
};

enum ar_status cmd_script(int argc, char **argv, struct ar_error *error)
{
    char path[PATH_MAX];
    struct script script = scripts[strcmp(argv[0], scripts[0].name) != 0];
    AR_TRY(cli_parse(&script.page, argc > 1 ? 2 : 1, argv, &script, error));
    if (argc == 1)
        return ar_invalid(error, "%s: no action is given; write %s", script.name, script.example);
    if (!program_find(script.places, path, sizeof path))
        return ar_error_set(error, AR_MISSING,
                            "%s is neither in the tree of %s nor in ../share/allocrig: run `make "
                            "install`, or start the program in its tree",
                            script.file, path);
    return start(script.name, path, argv + 1, argc - 1, error);
}
