/* What the commands share: the list of commands, and reading a command line by a table of
 * options, from which the help is printed too. (argp would do, but prints its own errors on
 * several lines, and its header takes the name `struct ar_option`, which is the policies' here.) */
#ifndef BENCH_CLI_CLI_H
#define BENCH_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>

#include "allocators/base/status.h"

/* argv[0] of a command is its name. Results go to standard output; only main prints errors and
 * only main leaves the program. */
typedef enum ar_status cli_run(int argc, char **argv, struct ar_error *error);

struct cli_command {
    const char *name;
    const char *summary; /* one line */
    cli_run *run;
};

/* Ends with a NULL name. */
extern const struct cli_command cli_commands[];

cli_run cmd_bound, cmd_calibrate, cmd_capacity, cmd_convert, cmd_explain, cmd_fidelity, cmd_gen,
    cmd_inspect, cmd_list, cmd_minimize, cmd_model, cmd_run;
cli_run cmd_advise;
cli_run cmd_record;
cli_run cmd_tenants;
cli_run cmd_compare, cmd_history, cmd_sweep;

/* What a command returns to leave the program with a status of its own: that of a program it ran.
 * The error's sentence says why. */
#define CLI_EXIT 0x100
static inline enum ar_status cli_exit(int code)
{
    return code ? (enum ar_status)(CLI_EXIT + code) : AR_OK;
}

struct cli_option {
    int key;           /* a letter for the short form, or from 256 up; 0 ends a table */
    const char *name;  /* of the long form; NULL: a heading in the help */
    const char *value; /* what the help calls the value; NULL: it takes none */
    const char *help;  /* one line */
};

#define CLI_HEADING  1   /* key of a heading */
#define CLI_ARGUMENT 2   /* given to `take` for what is no option */
#define CLI_KEYS     256 /* keys of options without a short form start here */

/* The page of a command: --help prints it. */
struct cli_page {
    const char *arguments; /* after the command's name; several forms stand on several lines */
    const char *text;      /* what it does */
    const struct cli_option *options;
};

/* Called for each option and argument in their order; `value` is NULL for options without. */
typedef enum ar_status cli_take(void *self, int key, const char *value, struct ar_error *error);

/* Reads the arguments after argv[0]. Options may be shortened as far as they stay clear, may
 * stand anywhere, and end at "--". Where --help is among them, prints the page and sets
 * `*help`: the command is done. INVALID names the argument, and the nearest option. */
enum ar_status cli_parse(const struct cli_page *page, int argc, char **argv, cli_take *take,
                         void *self, bool *help, struct ar_error *error) AR_STATUS_CHECKED;

/* Reads the value of an option, a number above 0 and at most `most`. INVALID otherwise. */
enum ar_status cli_number(const char *name, const char *value, double most, double *number,
                          struct ar_error *error) AR_STATUS_CHECKED;

/* The name of the option with that key. */
const char *cli_option_name(const struct cli_page *page, int key);

/* A sentence for an unknown word: `what` is "command", with the nearest of `names` if any. */
enum ar_status cli_unknown(const char *what, const char *word, const char *const *names,
                           size_t count, struct ar_error *error);

#endif
