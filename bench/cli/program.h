/* Runs a program of the user to its end, with variables of its environment set. */
#ifndef BENCH_CLI_PROGRAM_H
#define BENCH_CLI_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

#include "bench/cli/cli.h"

struct program_variable {
    const char *name, *value;
};

/* Where the standard output of the program goes. */
enum program_output { PROGRAM_TO_OUTPUT, PROGRAM_TO_ERROR, PROGRAM_TO_NOTHING };

struct program {
    char **command;                           /* ends with NULL */
    const struct program_variable *variables; /* ends with a NULL name */
    enum program_output output;
};

struct program_end {
    int code;   /* the exit status; 128 + the signal's number */
    int signal; /* that ended it, or 0 */
};

/* A signal from the terminal reaches the program too, so this process only waits for its end. A
 * signal that was sent to this process alone is passed on. INVALID: the command does not exist or
 * cannot be executed. */
enum ar_status program_run(const struct program *program, struct program_end *end,
                           struct ar_error *error) AR_STATUS_CHECKED;

/* For a program that failed: sets the error to how it ended and `more`, and returns the status with
 * which the command ends (cli_exit). */
enum ar_status program_failed(const char *command, const struct program_end *end, const char *more,
                              struct ar_error *error);

/* The words after "--", which are the command; NULL: none. `*own`: the number of those before. */
char **program_command(int argc, char **argv, int *own);

/* Finds a file that belongs to allocrig: the first of `places` (ends with NULL), relative to the
 * folder of the running executable, that exists. If there is none, returns false, and `path` is
 * that folder. */
bool program_find(const char *const *places, char *path, size_t room);

#endif
