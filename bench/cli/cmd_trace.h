#ifndef BENCH_CLI_CMD_TRACE_H
#define BENCH_CLI_CMD_TRACE_H

#include <stdint.h>

#include "bench/cli/cli.h"
#include "bench/cli/program.h"

/* A program to run with the tracer (workloads/record/tracer), which writes the requests that the
 * program would make on a card. No card is needed. */
struct traced_program {
    char **command;           /* ends with NULL */
    const char *path;         /* of the trace, in the text form; absolute */
    const char *card;         /* the name of a profile, or of a card that has one; NULL: h100 */
    const char *seed;         /* of draws; NULL: 1 */
    const char *steps;        /* the program ends after so many; NULL: at its own end */
    const char *rank, *world; /* of a program of several processes; NULL: one process */
    struct program_variable variable; /* one more; name NULL: none */
    enum program_output output;
};

/* Options of each command that traces a program, whose `struct arguments` has a field `program`. */
#define TRACED_OPTIONS                                                                             \
    {0,                                                                                            \
     "seed",                                                                                       \
     "N",                                                                                          \
     "seed of sizes that depend on data; default: 1",                                              \
     CLI_CALL(traced_number),                                                                      \
     CLI_AT(program.seed)},                                                                        \
        {0,                                                                                        \
         "steps",                                                                                  \
         "N",                                                                                      \
         "end the program after N steps; default: at its own end",                                 \
         CLI_CALL(traced_number),                                                                  \
         CLI_AT(program.steps)},                                                                   \
        {0,                                                                                        \
         "rank",                                                                                   \
         "R",                                                                                      \
         "trace rank R of the --world ranks; default: 0",                                          \
         CLI_CALL(traced_number),                                                                  \
         CLI_AT(program.rank)},                                                                    \
    {                                                                                              \
        0, "world", "N", "the program is distributed over N ranks; one of them runs",              \
            CLI_CALL(traced_number), CLI_AT(program.world)                                         \
    }
cli_take traced_number;

/* Runs the program to its end. INVALID: the card is not known, or the command cannot be executed.
 * MISSING: the tracer is not installed. No trace may be there at the end: traced_program_why. */
enum ar_status traced_program_run(const struct traced_program *self, struct program_end *end,
                                  struct ar_error *error) AR_STATUS_CHECKED;

/* Sets the error for a program that wrote no trace, with what is missing. */
enum ar_status traced_program_why(const struct traced_program *self, const struct program_end *end,
                                  struct ar_error *error);

/* Makes an empty temporary folder for traces. The caller removes it, with all files in it. IO. */
#define TRACED_PATH_ROOM 512
enum ar_status traced_folder_make(char folder[TRACED_PATH_ROOM],
                                  struct ar_error *error) AR_STATUS_CHECKED;
void traced_folder_remove(const char *folder);

/* The built-in profile of a card. INVALID: none, or not an NVIDIA card. */
struct sim_profile;
enum ar_status traced_card_find(const char *name, struct sim_profile *out,
                                struct ar_error *error) AR_STATUS_CHECKED;

#endif
