#ifndef BENCH_CLI_CMD_RECORD_H
#define BENCH_CLI_CMD_RECORD_H

#include <stdbool.h>

#include "allocators/base/status.h"

/* A program to run with the recording library. */
struct record_program {
    char **command;     /* ends with NULL */
    const char *folder; /* of the spools; absolute */
    bool kernels;
};

struct record_end {
    int code;   /* the exit status; 128 + the signal's number */
    int signal; /* that ended it, or 0 */
};

/* Runs the program to its end. INVALID: the command does not exist or cannot be executed. MISSING:
 * there is no driver, or the library is not next to this program. After an error the folder is
 * empty. */
enum ar_status record_program_run(const struct record_program *program, struct record_end *end,
                                  struct ar_error *error) AR_STATUS_CHECKED;

#endif
