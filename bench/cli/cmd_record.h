#ifndef BENCH_CLI_CMD_RECORD_H
#define BENCH_CLI_CMD_RECORD_H

#include <stdbool.h>

#include "allocators/base/status.h"

/* A program run to its end with the recording library in it. */
struct record_program {
    char **command;     /* ends with NULL */
    const char *folder; /* of the spools; absolute */
    bool kernels;
};

struct record_end {
    int code;   /* the exit status; 128 + the signal's number */
    int signal; /* that ended it, or 0 */
};

/* INVALID: there is no such command, or it cannot be executed. MISSING: there is no driver, or the
 * library is not beside this program. A folder from mkdtemp is left empty then. */
enum ar_status record_program_run(const struct record_program *program, struct record_end *end,
                                  struct ar_error *error) AR_STATUS_CHECKED;

#endif
