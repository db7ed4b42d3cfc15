/* Shared by the commands: the list of commands, and a parser of command lines. A table of options
 * drives the parser, the help and where values go. (argp prints its own errors, on several lines.)
 */
#pragma once

#include "allocators/base/status.h"
#include "workloads/formats/formats.h"
#include "workloads/trace/trace.h"
#include "workloads/workload.h"

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
    cmd_model, cmd_record, cmd_run, cmd_script, cmd_sweep, cmd_tenants, cmd_trace, cmd_twin;

/* A command returns this to end the program with the exit status of a program that it ran. The
 * error says why. */
#define CLI_EXIT 0x100
static inline enum ar_status cli_exit(int code)
{
    return code ? (enum ar_status)(CLI_EXIT + code) : AR_OK;
}

/* What cli_parse returns after it printed the help: the command ends, with exit status 0. */
#define CLI_HELPED ((enum ar_status)CLI_EXIT)

/* ---- options -------------------------------------------------------------------------------- */

/* The values of an option that may be given several times, and of arguments. */
#define CLI_WORDS_MOST 256
struct cli_words {
    const char *at[CLI_WORDS_MOST];
    size_t count;
};

/* The value of --device: a device, or the number of a GPU of the workload. */
struct cli_device {
    const char *spec; /* NULL: not given */
    bool gpu_given;
    uint32_t gpu;
};

/* The GPU that is selected, or all of them. */
static inline struct workload_choice cli_choice(const struct cli_device *device, bool recording)
{
    return (struct workload_choice){.gpu = device->gpu_given ? &device->gpu : NULL,
                                    .recording = recording};
}

/* Takes a value that needs code of its own. `arguments` is the structure of the command. */
struct cli_option;
typedef enum ar_status cli_take(void *arguments, const struct cli_option *option, const char *value,
                                struct ar_error *error);

/* Keys of the field `suite` of the arguments: the key with the option's name, a policy, a workload,
 * a card as the device. */
cli_take cli_suite_key, cli_suite_policy, cli_suite_workload, cli_suite_card;

/* The row of --card, an alias of --device; the rest is what takes it. */
#define CLI_CARD_ROW                                                                               \
    0, "card", "NAME", "a card of `list devices`, such as rtx4090: the same as -d sim:profile=NAME"
/* The row of --capacity, the memory in question; the rest is what takes it. */
#define CLI_CAPACITY_ROW                                                                           \
    0, "capacity", "BYTES",                                                                        \
        "what the process may have of the card, without its context of about 0.5 GiB; default: "   \
        "that of --device, or the recorded limit or card"

struct sim_profile;

/* The built-in profile of a card by its name, or by that of the profile. */
enum ar_status cli_card_find(const char *name, struct sim_profile *out, struct ar_error *error);

struct suite;

/* Adds the policy that imitates the recorded allocator, and closes the recording. */
enum ar_status cli_recorded_policy(struct trace_source *recording, struct suite *suite,
                                   struct ar_error *error);

/* Refuses an argument before the "--" of a command. */
cli_take cli_no_command;

enum cli_kind {
    CLI_KIND_NONE,   /* of arguments: there are none */
    CLI_KIND_TEXT,   /* const char *, given once */
    CLI_KIND_FLAG,   /* bool */
    CLI_KIND_COUNT,  /* uint64_t, from `least` to `most` */
    CLI_KIND_NUMBER, /* double, above 0 and from `least` to `most` */
    CLI_KIND_BYTES,  /* uint64_t, at least 1 */
    CLI_KIND_CARD,   /* the same, memory of a card */
    CLI_KIND_GPU,    /* struct cli_device: the number of a GPU, given once */
    CLI_KIND_DEVICE, /* the same, or a device */
    CLI_KIND_WORDS,  /* struct cli_words, at most `most` */
    CLI_KIND_CALL,   /* calls `take` */
};

struct cli_option {
    char letter;       /* of the short form; 0: it has none */
    const char *name;  /* without the dashes; NULL: a heading in the help */
    const char *value; /* the name of the value in the help; NULL: the option takes none */
    const char *help;  /* one line; NULL ends a table */
    enum cli_kind kind;
    bool writes;       /* the value names a file or folder to write */
    bool regular;      /* a pipe is refused, and not waited for */
    bool many;         /* may be given several times, as CLI_KIND_WORDS always may */
    bool lists;        /* the value is a file whose lines name further inputs */
    const char *alias; /* the name of the option that this one is; NULL: it is its own */
    size_t at;         /* the place of the value in the arguments */
    double least, most;
    cli_take *take;
};

/* The rest of a row, for the fields of `struct arguments`, which each command has. */
#define CLI_NO_LIMIT      0x1p64 /* of a count */
#define CLI_AT(field)     .at = offsetof(struct arguments, field)
#define CLI_TEXT(field)   .kind = CLI_KIND_TEXT, CLI_AT(field)
#define CLI_FILE(field)   .kind = CLI_KIND_TEXT, .writes = true, CLI_AT(field)
#define CLI_FLAG(field)   .kind = CLI_KIND_FLAG, CLI_AT(field)
#define CLI_BYTES(field)  .kind = CLI_KIND_BYTES, CLI_AT(field)
#define CLI_CARD(field)   .kind = CLI_KIND_CARD, CLI_AT(field)
#define CLI_GPU(field)    .kind = CLI_KIND_GPU, CLI_AT(field)
#define CLI_DEVICE(field) .kind = CLI_KIND_DEVICE, CLI_AT(field)
#define CLI_COUNT(field, from, to)                                                                 \
    .kind = CLI_KIND_COUNT, .least = (from), .most = (to), CLI_AT(field)
#define CLI_NUMBER(field, from, to)                                                                \
    .kind = CLI_KIND_NUMBER, .least = (from), .most = (to), CLI_AT(field)
#define CLI_WORDS(field, to) .kind = CLI_KIND_WORDS, .most = (to), CLI_AT(field)
#define CLI_CALL(function)   .kind = CLI_KIND_CALL, .take = (function)
#define CLI_SUITE(function)  .kind = CLI_KIND_CALL, .take = (function), CLI_AT(suite)
#define CLI_HEADING(text)    .help = (text)

/* A command: its help, and what it takes. */
struct cli_page {
    const char *arguments; /* after the name of the command; one form in each line */
    const char *text;      /* describes the command */
    const struct cli_option *options;
    struct cli_option argument; /* those that are no options; `value`: the word for one */
    const char *capacity;       /* in place of --capacity, if the command has no such option */
    bool quiet;                 /* pipes are named by another call */
    bool program;               /* after the last argument, argv has "--", a program and NULL */
};

/* Reads the words after argv[0] into `arguments`. Options may be abbreviated if they stay
 * unambiguous, may follow arguments, and end at "--". If --help is among them, prints the help and
 * returns CLI_HELPED. INVALID names the argument and the nearest option; also if an option with a
 * value is given twice that takes one, or an output is the same file as another output or an
 * input, also one that a spec, a suite or the words of a program name. Opens no other file. Names
 * pipes that will be waited for on standard error. */
enum ar_status cli_parse(const struct cli_page *page, int argc, char **argv, void *arguments,
                         struct ar_error *error);

/* Sets the error for an unknown word. `what` is its kind, such as "command". The error suggests the
 * nearest of `names`, or lists them all. */
enum ar_status cli_unknown(const char *what, const char *word, const char *const *names,
                           size_t count, struct ar_error *error);

/* The size of a card's memory, or of a part of it, given by `--NAME`. INVALID if it is 0, or so few
 * bytes that a unit is missing. */
enum ar_status cli_card_bytes(const char *name, const char *value, uint64_t *bytes,
                              struct ar_error *error);

/* ---- files ---------------------------------------------------------------------------------- */

/* A value of the command line, which may name a file. */
struct cli_file {
    const struct cli_option *option;
    const char *value;
};

/* True if both name one regular file, which need not exist, or if they are equal. */
bool cli_same_file(const char *left, const char *right);
/* The check of cli_parse for files that a command names itself. */
enum ar_status cli_files_check(const struct cli_file *files, size_t count, struct ar_error *error);

/* The format of a trace file that a command writes. */
struct trace_output_choice {
    const struct format_writer *writer; /* of another program's format; NULL: one of allocrig's */
    struct trace_write_options own;     /* `compress` applies to both */
    bool standard;                      /* to standard output, which has nothing else then */
};

/* `format` is "text", "binary", the name of a writer, or NULL. NULL chooses by the ending of the
 * path: .txt or .trace for text, .bin for binary, or the ending of a writer; each may be followed
 * by .zst for a compressed file. "-" is standard output if `piped`, as text by default. INVALID if
 * neither tells the format. */
enum ar_status trace_output_choose(const char *path, const char *format, bool piped,
                                   struct trace_output_choice *out, struct ar_error *error);

/* Writes all of `source`. */
enum ar_status trace_output_save(struct trace_source *source, const char *path,
                                 const struct trace_output_choice *choice, struct ar_error *error);
