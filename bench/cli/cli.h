/* Shared by the commands: the list of commands, and a parser of command lines. A table of options
 * drives both the parser and the help. (argp prints its own errors, on several lines.) */
#ifndef BENCH_CLI_CLI_H
#define BENCH_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>

#include "allocators/base/status.h"

/* argv[0] is the name of the command. Results go to standard output; only main prints errors and
 * ends the program. */
typedef enum ar_status cli_run(int argc, char **argv, struct ar_error *error);

struct cli_command {
    const char *name;
    const char *summary; /* one line */
    cli_run *run;
};

/* Ends with a NULL name. */
extern const struct cli_command cli_commands[];

cli_run cmd_advise, cmd_bound, cmd_calibrate, cmd_capacity, cmd_compare, cmd_convert, cmd_drift,
    cmd_explain, cmd_fidelity, cmd_fits, cmd_gen, cmd_history, cmd_inspect, cmd_list, cmd_minimize,
    cmd_model, cmd_record, cmd_run, cmd_search, cmd_submit, cmd_sweep, cmd_tenants, cmd_trace,
    cmd_twin;

/* A command returns this to end the program with the exit status of a program that it ran. The
 * error says why. */
#define CLI_EXIT 0x100
static inline enum ar_status cli_exit(int code)
{
    return code ? (enum ar_status)(CLI_EXIT + code) : AR_OK;
}

struct cli_option {
    int key;           /* a letter for the short form, or from 256 up; 0 ends a table */
    const char *name;  /* without the dashes; NULL: a heading in the help */
    const char *value; /* the name of the value in the help; NULL: the option takes none */
    const char *help;  /* one line */
};

#define CLI_HEADING  1   /* key of a heading */
#define CLI_ARGUMENT 2   /* key of an argument that is not an option */
#define CLI_KEYS     256 /* keys of options without a short form start here */

/* The help of a command. */
struct cli_page {
    const char *arguments; /* after the name of the command; one form in each line */
    const char *text;      /* describes the command */
    const struct cli_option *options;
};

/* Called for each option and argument, in order; `value` is NULL for options that take none. */
typedef enum ar_status cli_take(void *self, int key, const char *value, struct ar_error *error);

/* Reads the arguments after argv[0]. Options may be abbreviated if they stay unambiguous, may
 * follow arguments, and end at "--". If --help is among them, prints the help and sets `*help`: the
 * command is done. INVALID names the argument and the nearest option. */
enum ar_status cli_parse(const struct cli_page *page, int argc, char **argv, cli_take *take,
                         void *self, bool *help, struct ar_error *error) AR_STATUS_CHECKED;

/* Reads the value of an option, a number above 0 and at most `most`; otherwise INVALID. */
enum ar_status cli_number(const char *name, const char *value, double most, double *number,
                          struct ar_error *error) AR_STATUS_CHECKED;

/* The name of the option with that key. */
const char *cli_option_name(const struct cli_page *page, int key);

/* Sets the error for an unknown word. `what` is its kind, such as "command". The error suggests the
 * nearest of `names`, or lists them all. */
enum ar_status cli_unknown(const char *what, const char *word, const char *const *names,
                           size_t count, struct ar_error *error);

#endif
