#ifndef BENCH_CLI_CMD_RECORD_H
#define BENCH_CLI_CMD_RECORD_H

#include <stdbool.h>

#include "bench/cli/program.h"

/* A program to run with the recording library. */
struct record_program {
    char **command;     /* ends with NULL */
    const char *folder; /* of the spools; absolute */
    bool kernels;
};

/* Runs the program to its end. INVALID: the command does not exist or cannot be executed. MISSING:
 * there is no driver, or the library is not next to this program. After an error the folder is
 * empty. */
enum ar_status record_program_run(const struct record_program *program, struct program_end *end,
                                  struct ar_error *error) AR_STATUS_CHECKED;

#endif
