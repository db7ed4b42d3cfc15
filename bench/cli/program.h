/* Runs a program of the user to its end, with variables of its environment set. */
#pragma once

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
    bool survives; /* it goes on if this process is killed; otherwise it ends too */
};

struct program_end {
    int code;   /* the exit status; 128 + the signal's number */
    int signal; /* that ended it, or 0 */
};

/* A signal from the terminal reaches the program too, so this process only waits for its end. A
 * signal that was sent to this process alone is passed on. INVALID: the command does not exist or
 * cannot be executed. */
enum ar_status program_run(const struct program *program, struct program_end *end,
                           struct ar_error *error);

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
         "end the program after N steps: of its first optimizer or, without one, calls of "        \
         "torch.cuda.synchronize; default: at its own end",                                        \
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
                                  struct ar_error *error);

/* Sets the error for a program that wrote no trace, with what is missing. */
enum ar_status traced_program_why(const struct traced_program *self, const struct program_end *end,
                                  struct ar_error *error);
/* Says so on standard error if a program that ended by itself made fewer steps than --steps. */
void traced_steps_say(const struct traced_program *self, const struct trace_info *info);

/* Makes an empty temporary folder for traces. The caller removes it, with all files in it. IO. */
#define TRACED_PATH_ROOM 512
enum ar_status traced_folder_make(char folder[TRACED_PATH_ROOM], struct ar_error *error);
void traced_folder_remove(const char *folder);

/* The built-in profile of a card. INVALID: none, or not an NVIDIA card. */
struct sim_profile;
enum ar_status traced_card_find(const char *name, struct sim_profile *out, struct ar_error *error);
