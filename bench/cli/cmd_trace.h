#ifndef BENCH_CLI_CMD_TRACE_H
#define BENCH_CLI_CMD_TRACE_H

#include <stdint.h>

#include "bench/cli/program.h"

/* A program to run with the tracer (workloads/record/tracer), which writes the requests that the
 * program would make on a card. No card is needed. */
struct traced_program {
    char **command;       /* ends with NULL */
    const char *path;     /* of the trace, in the text form; absolute */
    const char *card;     /* the name of a profile, or of a card that has one; NULL: h100 */
    const char *seed;     /* of draws; NULL: 1 */
    const char *steps;    /* the program ends after so many; NULL: at its own end */
    uint64_t rank, world; /* of a program of several processes; world 0: one process */
    struct program_variable variable; /* one more; name NULL: none */
    enum program_output output;
};

/* Runs the program to its end. INVALID: the card is not known, or the command cannot be executed.
 * MISSING: the tracer is not installed. No trace may be there at the end: traced_program_why. */
enum ar_status traced_program_run(const struct traced_program *self, struct program_end *end,
                                  struct ar_error *error) AR_STATUS_CHECKED;

/* Sets the error for a program that wrote no trace, with what is missing. */
enum ar_status traced_program_why(const struct traced_program *self, const struct program_end *end,
                                  struct ar_error *error);

/* Makes an empty temporary folder and the path of a trace in it. The caller removes both with
 * traced_folder_remove. IO. */
#define TRACED_PATH_ROOM 512
enum ar_status traced_folder_make(char path[TRACED_PATH_ROOM],
                                  struct ar_error *error) AR_STATUS_CHECKED;
void traced_folder_remove(const char *path);

/* The built-in profile of a card; NULL, with the error: none, or not an NVIDIA card. */
struct sim_profile;
enum ar_status traced_card_find(const char *name, struct sim_profile *out,
                                struct ar_error *error) AR_STATUS_CHECKED;

#endif
