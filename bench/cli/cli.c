#include "bench/cli/cli.h"

#include <ctype.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocators/base/size.h"
#include "allocators/options.h"
#include "allocators/registry.h"
#include "bench/report/sentence.h"
#include "bench/suite/suite.h"
#include "sim/fidelity/fidelity.h"
#include "sim/sim_device/profile.h"
#include "workloads/formats/torch/sidecar.h"
#include "workloads/io/file.h"

#define NAMES_MOST 64

static bool is_before(const char *const *names, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (strcmp(names[i], names[at]) == 0)
            return true;
    return false;
}

/* The names once each, as many as fit, and how many more there are. */
static void join_names(const char *const *names, size_t count, char *all, size_t bytes)
{
    size_t i = 0;
    all[0] = 0;
    for (; i < count && strlen(all) + strlen(names[i]) + sizeof ", and 9999 more" < bytes; i++)
        if (!is_before(names, i))
            text_add(all, bytes, "%s%s", all[0] ? ", " : "", names[i]);
    if (i < count)
        text_add(all, bytes, ", and %zu more", count - i);
}

/* The names that begin with a word of at least 3 characters, or contain it; returns how many `out`
 * has. */
static size_t names_with(const char *word, bool begin, const char *const *names, size_t count,
                         const char *out[], size_t room)
{
    size_t length = strlen(word), found = 0;
    for (size_t i = 0; length >= 3 && i < count && found < room; i++)
        if (begin ? strncmp(names[i], word, length) == 0 : strstr(names[i], word) != NULL)
            out[found++] = names[i];
    return found;
}

/* The shortest name; NULL if there are two, or none. */
static const char *shortest(const char *const *names, size_t count)
{
    const char *found = NULL;
    bool two = false;
    for (size_t i = 0; i < count; i++) {
        if (!found || strlen(names[i]) < strlen(found)) {
            found = names[i];
            two = false;
        } else if (strlen(names[i]) == strlen(found)) {
            two = two || strcmp(names[i], found) != 0;
        }
    }
    return two ? NULL : found;
}

/* `word` as in `names`; `written`: as the user wrote it. */
static enum ar_status unknown_as(const char *what, const char *word, const char *written,
                                 const char *const *names, size_t count, struct ar_error *error)
{
    const char *longer[16];
    char all[512];
    const size_t room = AR_COUNT(longer);
    size_t with = names_with(word, true, names, count, longer, room);
    const char *begins = shortest(longer, with);
    const char *near = !with    ? ar_nearest_name(word, names, count)
                       : begins ? ar_nearest_name(word, &begins, 1)
                                : NULL;
    if (!with && !near)
        with = names_with(word, false, names, count, longer, room);
    if (with && !near) {
        join_names(longer, with, all, sizeof all);
        return ar_invalid(error, "there is no %s \"%.60s\"; did you mean: %s?", what, written, all);
    }
    if (near)
        return ar_invalid(error, "there is no %s \"%.60s\"; did you mean \"%s\"?", what, written,
                          near);
    join_names(names, count, all, sizeof all);
    return ar_invalid(error, "there is no %s \"%.60s\"; there are: %s", what, written, all);
}

enum ar_status cli_unknown(const char *what, const char *word, const char *const *names,
                           size_t count, struct ar_error *error)
{
    return unknown_as(what, word, word, names, count, error);
}

/* ---- values --------------------------------------------------------------------------------- */

enum ar_status cli_suite_key(void *arguments, const struct cli_option *option, const char *value,
                             struct ar_error *error)
{
    return suite_set((struct suite *)((char *)arguments + option->at), option->name,
                     value ? value : "yes", error);
}

enum ar_status cli_suite_policy(void *arguments, const struct cli_option *option, const char *value,
                                struct ar_error *error)
{
    return suite_add_policy((struct suite *)((char *)arguments + option->at), value, error);
}

enum ar_status cli_suite_workload(void *arguments, const struct cli_option *option,
                                  const char *value, struct ar_error *error)
{
    struct suite *suite = (struct suite *)((char *)arguments + option->at);
    return text_list_add(&suite->workloads, value, error);
}

/* The names of the profiles that are of a card; returns their number. */
static size_t card_names(const char *names[SIM_PROFILES_MOST])
{
    const size_t count = sim_profile_names(names, SIM_PROFILES_MOST);
    size_t cards = 0;
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], "bump") != 0)
            names[cards++] = names[i];
    return cards;
}

/* Case and spaces of a name do not matter: "RTX 4090" is rtx4090. */
enum ar_status cli_card_find(const char *name, struct sim_profile *out, struct ar_error *error)
{
    const char *names[SIM_PROFILES_MOST];
    static const char as_device[] = "sim:profile=";
    char plain[64];
    size_t length = 0;
    if (strncmp(name, as_device, sizeof as_device - 1) == 0)
        name += sizeof as_device - 1;
    for (const char *at = name; *at && length + 1 < sizeof plain; at++)
        if (*at != ' ')
            plain[length++] = (char)tolower((unsigned char)*at);
    plain[length] = '\0';
    const size_t count = card_names(names);
    const char *profile = sim_profile_of_card(name);
    for (size_t i = 0; i < count && !profile; i++)
        if (strcmp(names[i], plain) == 0)
            profile = names[i];
    uint64_t bytes;
    bool has_unit = !name[0] || name[strspn(name, "0123456789")];
    if (!profile && has_unit && !ar_size_parse(name, &bytes, NULL))
        return ar_invalid(error,
                          "there is no card \"%.40s\"; name one of `list devices`, or ask `advise "
                          "TRACE --capacity %.40s` about a size",
                          name, name);
    if (!profile)
        return unknown_as("card", plain, name, names, count, error);
    return sim_profile_read(sim_profile_builtin(profile), profile, out, error);
}

enum ar_status cli_suite_card(void *arguments, const struct cli_option *option, const char *value,
                              struct ar_error *error)
{
    struct sim_profile card;
    char device[sizeof card.name + 16];
    AR_TRY(cli_card_find(value, &card, error));
    snprintf(device, sizeof device, "sim:profile=%s", card.name);
    return suite_set((struct suite *)((char *)arguments + option->at), "device", device, error);
}

enum ar_status cli_recorded_policy(struct trace_source *recording, struct suite *suite,
                                   struct ar_error *error)
{
    char policy[1024];
    const struct ar_policy_ops *ops;
    AR_CLOSED(ar_spec_close) struct ar_spec spec = {0};
    AR_CLOSED(trace_close_at) struct trace_source *source = recording;
    AR_TRY(ar_error_prefix(error,
                           fidelity_default_spec(&source->info, policy, sizeof policy, error),
                           "give a policy, -p SPEC"));
    enum ar_status status = ar_spec_parse(policy, &spec, error);
    AR_THEN(status, registry_lookup(&spec, &ops, error));
    AR_TRY(
        ar_error_prefix(error, status, "%s: the recorded settings cannot be", source->info.name));
    return suite_add_policy(suite, policy, error);
}

enum ar_status cli_no_command(void *arguments AR_UNUSED, const struct cli_option *option AR_UNUSED,
                              const char *value, struct ar_error *error)
{
    return ar_invalid(error, "\"%s\": write -- before the command", value);
}

static enum ar_status too_many(const struct cli_option *option, const char *value,
                               struct ar_error *error)
{
    if (option->name && option->kind != CLI_KIND_WORDS)
        return ar_invalid(error, "--%s is given twice; give it once", option->name);
    return ar_invalid(error, "\"%s\" is one %s too many", value,
                      option->name ? option->name : option->value);
}

static enum ar_status take_text(const char **place, const struct cli_option *option,
                                const char *value, struct ar_error *error)
{
    if (*place)
        return too_many(option, value, error);
    *place = value;
    return AR_OK;
}

static enum ar_status take_count(uint64_t *place, const struct cli_option *option,
                                 const char *value, struct ar_error *error)
{
    const uint64_t least = (uint64_t)option->least;
    const uint64_t most = option->most < CLI_NO_LIMIT ? (uint64_t)option->most : UINT64_MAX;
    if (ar_count_parse(value, place, NULL) || *place < least || *place > most)
        return ar_invalid(
            error, "--%s is \"%.40s\"; it must be a whole number from %" PRIu64 " to %" PRIu64,
            option->name, value, least, most);
    return AR_OK;
}

static enum ar_status take_number(double *place, const struct cli_option *option, const char *value,
                                  struct ar_error *error)
{
    if (ar_number_parse(value, place) && *place > 0 && *place >= option->least &&
        *place <= option->most)
        return AR_OK;
    if (option->least > 0)
        return ar_invalid(error, "--%s is \"%.40s\"; it must be a number from %g to %g",
                          option->name, value, option->least, option->most);
    return ar_invalid(error, "--%s is \"%.40s\"; it must be a number above 0, at most %g",
                      option->name, value, option->most);
}

static enum ar_status take_bytes(uint64_t *place, const char *name, const char *value,
                                 struct ar_error *error)
{
    enum ar_status status = ar_size_parse(value, place, error);
    if (!status && !*place)
        status = ar_invalid(error, "0 bytes are not possible");
    return ar_error_prefix(error, status, "--%s", name);
}

enum ar_status cli_card_bytes(const char *name, const char *value, uint64_t *bytes,
                              struct ar_error *error)
{
    if (*value && !isdigit((unsigned char)*value))
        return ar_invalid(error,
                          "--%s: \"%.40s\" is not a size; write a number with GiB, or name a card: "
                          "-d sim:profile=NAME (`list devices`)",
                          name, value);
    AR_TRY(take_bytes(bytes, name, value, error));
    if (*bytes < 1024)
        return ar_invalid(error, "--%s %.40s is %" PRIu64 " byte%s; did you mean %" PRIu64 "GiB?",
                          name, value, *bytes, *bytes == 1 ? "" : "s", *bytes);
    return AR_OK;
}

static enum ar_status take_device(struct cli_device *place, const struct cli_option *option,
                                  const char *value, struct ar_error *error)
{
    if (option->kind == CLI_KIND_DEVICE && !workload_is_gpu(value))
        return take_text(&place->spec, option, value, error);
    if (place->gpu_given)
        return too_many(option, value, error);
    place->gpu_given = true;
    return ar_error_prefix(error, workload_gpu_parse(value, &place->gpu, error), "--%s",
                           option->name);
}

static enum ar_status take_word(struct cli_words *place, const struct cli_option *option,
                                const char *value, struct ar_error *error)
{
    if ((double)place->count >= option->most || place->count == CLI_WORDS_MOST)
        return too_many(option, value, error);
    place->at[place->count++] = value;
    return AR_OK;
}

/* `value` is NULL for options that take none. */
static enum ar_status take_value_of(const struct cli_option *option, void *arguments,
                                    const char *value, struct ar_error *error)
{
    void *place = (char *)arguments + option->at;
    switch (option->kind) {
    case CLI_KIND_TEXT:
        return take_text(place, option, value, error);
    case CLI_KIND_FLAG:
        *(bool *)place = true;
        return AR_OK;
    case CLI_KIND_COUNT:
        return take_count(place, option, value, error);
    case CLI_KIND_NUMBER:
        return take_number(place, option, value, error);
    case CLI_KIND_BYTES:
        return take_bytes(place, option->name, value, error);
    case CLI_KIND_CARD:
        return cli_card_bytes(option->name, value, place, error);
    case CLI_KIND_GPU:
    case CLI_KIND_DEVICE:
        return take_device(place, option, value, error);
    case CLI_KIND_WORDS:
        return take_word(place, option, value, error);
    case CLI_KIND_CALL:
        return option->take(arguments, option, value, error);
    default:
        return ar_invalid(error, "\"%s\" belongs to no option", value);
    }
}

/* ---- help ----------------------------------------------------------------------------------- */

#define HELP_COLUMN 28 /* column of the help of options */

static void print_option(const struct cli_option *option)
{
    char left[64] = "    ";
    if (option->letter)
        snprintf(left, sizeof left, "-%c, ", option->letter);
    text_add(left, sizeof left, "--%s%s%s", option->name, option->value ? " " : "",
             option->value ? option->value : "");
    printf("  %-*s", HELP_COLUMN - 2, left);
    if (strlen(left) > HELP_COLUMN - 3)
        printf("\n%*s", HELP_COLUMN, "");
    sentence_wrap(stdout, option->help, HELP_COLUMN, HELP_COLUMN, SENTENCE_WIDTH);
}

static void print_page(const struct cli_page *page, const char *command)
{
    const char *begin = page->arguments;
    for (const char *at = begin;; at++) {
        char form[256];
        if (*at != '\n' && *at != '\0')
            continue;
        snprintf(form, sizeof form, "%s allocrig %s %.*s",
                 begin == page->arguments ? "Usage:" : "or:", command, (int)(at - begin), begin);
        fputs(begin == page->arguments ? "" : "   ",
              stdout); /* sentence_wrap prints no leading spaces */
        sentence_wrap(stdout, form, begin == page->arguments ? 0 : 3, 10, SENTENCE_WIDTH);
        if (*at == '\0')
            break;
        begin = at + 1;
    }
    putchar('\n');
    sentence_wrap(stdout, page->text, 0, 0, SENTENCE_WIDTH);
    for (const struct cli_option *option = page->options; option->help; option++)
        if (option->name)
            print_option(option);
        else
            printf("\n%s\n", option->help);
    printf("%s  %-26s%s\n", page->options->help ? "" : "\n", "-h, --help", "print this help");
}

static const struct cli_option *page_option(const struct cli_page *page, const char *name)
{
    for (const struct cli_option *option = page->options; option->help; option++)
        if (option->name && strcmp(option->name, name) == 0)
            return option;
    return NULL;
}

/* What to write in place of an option of another command; NULL: nothing is known. */
static const char *written_elsewhere(const struct cli_page *page, const char *name)
{
    static const struct {
        const char *name, *instead;
    } known[] = {
        {"capacity", "a capacity is part of the device: -d sim:capacity=24GiB"},
        {"card", "a card is a profile of the device: -d sim:profile=NAME (`list devices`)"},
        {"profile", "a profile is part of the device: -d sim:profile=NAME (`list devices`)"},
    };
    if (strcmp(name, "version") == 0)
        return "`allocrig --version` prints that";
    if (page_option(page, "card") && (strcmp(name, "device") == 0 || strcmp(name, "profile") == 0))
        return "a card is written --card NAME (`list devices`)";
    if (page->capacity && strcmp(name, "capacity") == 0)
        return page->capacity;
    const bool has_device = page_option(page, "device");
    if (page_option(page, "card") && !has_device && strcmp(name, "capacity") == 0)
        return "it is about a card, --card NAME; `advise TRACE --capacity 24GiB` is about a size";
    if (!page_option(page, "workload") && strcmp(name, "workload") == 0 &&
        page->argument.kind != CLI_KIND_NONE)
        return "the workload or trace is written without an option";
    for (size_t i = 0; has_device && i < AR_COUNT(known); i++)
        if (strcmp(known[i].name, name) == 0)
            return known[i].instead;
    return NULL;
}

static enum ar_status unknown_long(const struct cli_page *page, const char *name,
                                   struct ar_error *error)
{
    const char *names[NAMES_MOST];
    size_t count = 0;
    for (const struct cli_option *option = page->options; option->help; option++)
        if (option->name && count < NAMES_MOST)
            names[count++] = option->name;
    if (strcmp(name, "help") == 0)
        return ar_invalid(error, "--help takes no value");
    const char *instead = written_elsewhere(page, name);
    if (instead)
        return ar_invalid(error, "there is no option --%s; %s", name, instead);
    const char *near = ar_nearest_name(name, names, count);
    if (near)
        return ar_invalid(error, "there is no option --%s; did you mean --%s?", name, near);
    return ar_invalid(error, "there is no option --%s; --help lists them", name);
}

/* The option whose name is `name`, or the only one that begins with it. */
static enum ar_status find_long(const struct cli_page *page, const char *name,
                                const struct cli_option **found, struct ar_error *error)
{
    unsigned count = 0;
    size_t length = strlen(name);
    for (const struct cli_option *option = page->options; option->help; option++) {
        if (!option->name || length == 0 || strncmp(option->name, name, length) != 0)
            continue;
        *found = option;
        count++;
        if (option->name[length] == '\0')
            return AR_OK;
    }
    if (count > 1)
        return ar_invalid(error, "--%s is ambiguous; write the whole name of the option", name);
    return count ? AR_OK : unknown_long(page, name, error);
}

/* The state of the parser. */
struct cursor {
    const struct cli_page *page;
    int argc, at; /* argv[at] is read next */
    char **argv;
    void *arguments;
    struct cli_file *named; /* all values read so far */
    size_t count;
};

/* True if an option may be given again: a device and the number of a GPU are one option. */
static bool may_repeat(const struct cli_option *option)
{
    return !option->name || option->many || option->kind == CLI_KIND_WORDS ||
           option->kind == CLI_KIND_DEVICE;
}

static enum ar_status take_value(struct cursor *cursor, const struct cli_option *option,
                                 const char *value, struct ar_error *error)
{
    for (size_t i = 0; value && !may_repeat(option) && i < cursor->count; i++)
        if (cursor->named[i].option == option)
            return too_many(option, value, error);
    if (value)
        cursor->named[cursor->count++] = (struct cli_file){option, value};
    return take_value_of(option, cursor->arguments, value, error);
}

static enum ar_status read_long(struct cursor *cursor, struct ar_error *error)
{
    char name[64];
    const char *word = cursor->argv[cursor->at] + 2;
    const char *equals = strchr(word, '=');
    const char *value = equals ? equals + 1 : NULL;
    const struct cli_option *written = NULL;
    snprintf(name, sizeof name, "%.*s", (int)(equals ? (size_t)(equals - word) : strlen(word)),
             word);
    AR_TRY(find_long(cursor->page, name, &written, error));
    if (!written->value && value)
        return ar_invalid(error, "--%s takes no value", written->name);
    if (written->value && !value) {
        if (cursor->at + 1 == cursor->argc)
            return ar_invalid(error, "--%s needs a value: --%s %s", written->name, written->name,
                              written->value);
        value = cursor->argv[++cursor->at];
    }
    if (!written->alias)
        return take_value(cursor, written, value, error);
    return ar_error_prefix(
        error, take_value(cursor, page_option(cursor->page, written->alias), value, error),
        "--%s is --%s", written->name, written->alias);
}

static enum ar_status read_short(struct cursor *cursor, struct ar_error *error)
{
    for (const char *letter = cursor->argv[cursor->at] + 1; *letter; letter++) {
        const struct cli_option *option = cursor->page->options;
        while (option->help && !(option->name && option->letter == *letter))
            option++;
        const char *instead = *letter == 'w'   ? written_elsewhere(cursor->page, "workload")
                              : *letter == 'd' ? written_elsewhere(cursor->page, "device")
                                               : NULL;
        if (!option->help)
            return ar_invalid(error, "there is no option -%c; %s", *letter,
                              instead ? instead : "--help lists them");
        const char *value = NULL;
        if (option->value && letter[1])
            value = letter + 1;
        else if (option->value && cursor->at + 1 < cursor->argc)
            value = cursor->argv[++cursor->at];
        else if (option->value)
            return ar_invalid(error, "-%c needs a value: -%c %s", *letter, *letter, option->value);
        enum ar_status status = take_value(cursor, option, value, error);
        if (status || value)
            return status;
    }
    return AR_OK;
}

static bool wants_help(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

/* A program may read what its words name, first of all its script. */
static void add_program(struct cursor *cursor)
{
    for (int i = cursor->argc; cursor->argv[i]; i++)
        cursor->named[cursor->count++] =
            (struct cli_file){&cursor->page->argument, cursor->argv[i]};
}

/* A named pipe opens when a program opens its other end: without a word this looks like a fault.
 * (A shell's <(COMMAND) is a link to a pipe.) */
static void tell_pipe(const char *command, const struct cli_file *file)
{
    struct stat about;
    if (!file->option->regular && lstat(file->value, &about) == 0 && S_ISFIFO(about.st_mode))
        fprintf(stderr,
                "allocrig: %s: %s is a named pipe; this waits for a program at its other end\n",
                command, file->value);
}

enum ar_status cli_parse(const struct cli_page *page, int argc, char **argv, void *arguments,
                         struct ar_error *error)
{
    struct cursor cursor = {page, argc, 1, argv, arguments, NULL, 0};
    bool options_end = false;
    enum ar_status status = AR_OK;
    if (wants_help(argc, argv)) {
        print_page(page, argv[0]);
        return CLI_HELPED;
    }
    size_t words = (size_t)argc;
    while (page->program && argv[words])
        words++;
    cursor.named = calloc(words, sizeof *cursor.named); /* a word has at most one value */
    AR_TRY_MEMORY(cursor.named, error, "the command line");
    for (; cursor.at < argc && !status; cursor.at++) {
        const char *word = argv[cursor.at];
        if (!options_end && strcmp(word, "--") == 0)
            options_end = true;
        else if (!options_end && strncmp(word, "--", 2) == 0)
            status = read_long(&cursor, error);
        else if (!options_end && word[0] == '-' && word[1])
            status = read_short(&cursor, error);
        else if (!word[0] && page->argument.kind != CLI_KIND_WORDS)
            status = ar_invalid(error, "an argument is empty; name what is meant, or leave it out");
        else
            status = take_value(&cursor, &page->argument, word, error);
    }
    const size_t own = cursor.count;
    if (page->program && !status)
        add_program(&cursor);
    AR_THEN(status, cli_files_check(cursor.named, cursor.count, error));
    for (size_t i = 0; i < own && !status && !page->quiet; i++)
        tell_pipe(argv[0], &cursor.named[i]);
    free(cursor.named);
    return ar_error_prefix(error, status, "%s", argv[0]);
}

/* ---- files of a command line ------------------------------------------------------------------
 *
 * 1. Options of which `writes` is set name an output; any other value may name an input.
 * 2. An output has a name.
 * 3. Two outputs are two files; otherwise the second would replace the first. One of them may be
 *    standard output.
 * 4. An output is not an input: a slip such as `history FILE --json FILE` would replace it. The
 *    files are compared, not the paths.
 * 5. A spec has its file between other words: TRACE:device=0, sim:profile=FILE. So has a line of a
 *    suite, and the command line of a program. Which word is a file depends on the spec, so each
 *    part that is one counts. A recorded CSV is read with the .json beside it. */

static bool is_one(const struct stat *left, const struct stat *right)
{
    return left->st_dev == right->st_dev && left->st_ino == right->st_ino;
}

/* The folder of a path, which ends with "/"; "." for a name alone. Returns the name in it. */
static const char *folder_of(const char *path, char folder[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) + 1 : 0;
    snprintf(folder, PATH_MAX, "%.*s", length ? (int)length : 1, length ? path : ".");
    return path + length;
}

/* True if two files that do not exist would have one place. */
static bool same_place(const char *left, const char *right)
{
    AR_FREED char *here = file_behind_links(left);
    AR_FREED char *there = file_behind_links(right);
    char folder_left[PATH_MAX], folder_right[PATH_MAX];
    struct stat a, b;
    return here && there &&
           strcmp(folder_of(here, folder_left), folder_of(there, folder_right)) == 0 &&
           stat(folder_left, &a) == 0 && stat(folder_right, &b) == 0 && is_one(&a, &b);
}

bool cli_same_file(const char *left, const char *right)
{
    struct stat a, b;
    if (strcmp(left, "-") == 0)
        return false;
    bool there = stat(left, &a) == 0;
    if (there && !S_ISREG(a.st_mode))
        return false;
    if (strcmp(left, right) == 0)
        return true;
    return there ? stat(right, &b) == 0 && is_one(&a, &b) : same_place(left, right);
}

/* True if the file is the .json that is read with a recorded CSV, and no result beside one. */
static bool is_beside(const char *csv, const struct stat *file)
{
    struct stat about;
    char head[64] = "";
    AR_FREED char *path = strstr(csv, ".csv") ? sidecar_path(csv) : NULL;
    if (!path || stat(path, &about) != 0 || !is_one(&about, file))
        return false;
    FILE *in = fopen(path, "re");
    size_t length = in ? fread(head, 1, sizeof head - 1, in) : 0;
    head[length] = '\0';
    if (in)
        fclose(in);
    return !strstr(head, "\"allocrig.");
}

static bool is_file(void *file, const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && (is_one(&about, file) || is_beside(path, file));
}

static bool lines_name(const char *path, struct stat *file)
{
    AR_FREED char *line = NULL;
    size_t room = 0;
    bool found = false;
    FILE *in = fopen(path, "r");
    while (in && !found && getline(&line, &room, in) > 0)
        found = line[0] != '#' && file_parts(line, " \t\r\n" FILE_PARTS_SPEC, is_file, file);
    if (in)
        fclose(in);
    return found;
}

/* True if an input is the file, or names it. */
static bool input_names(const struct cli_file *input, const char *output)
{
    struct stat file, about;
    if (cli_same_file(output, input->value))
        return true;
    if (strcmp(output, "-") == 0 || stat(output, &file) != 0 || !S_ISREG(file.st_mode))
        return false;
    if (file_parts(input->value, FILE_PARTS_SPEC, is_file, &file))
        return true;
    return input->option->lists && stat(input->value, &about) == 0 && S_ISREG(about.st_mode) &&
           lines_name(input->value, &file);
}

enum ar_status cli_files_check(const struct cli_file *files, size_t count, struct ar_error *error)
{
    for (size_t i = 0; i < count; i++) {
        if (!files[i].option->writes)
            continue;
        if (!files[i].value[0])
            return ar_invalid(error, "an output has an empty name; name a %s for --%s",
                              strcmp(files[i].option->value, "FOLDER") ? "file" : "folder",
                              files[i].option->name);
        for (size_t k = 0; k < count; k++) {
            bool output = files[k].option->writes;
            if (k == i || (output && k > i))
                continue;
            if (output && !strcmp(files[i].value, "-") && !strcmp(files[k].value, "-"))
                return ar_invalid(error,
                                  "-: two outputs would mix in standard output; give one a file");
            if (output ? !cli_same_file(files[i].value, files[k].value)
                       : !input_names(&files[k], files[i].value))
                continue;
            if (output)
                return ar_invalid(
                    error, "\"%s\" is named for two outputs; name another file for one of them",
                    files[i].value);
            return ar_invalid(error,
                              "--%s would overwrite \"%s\", which is an input; name another file",
                              files[i].option->name, files[i].value);
        }
    }
    return AR_OK;
}

/* ---- format of a trace to write -------------------------------------------------------------- */

/* True if the first `length` characters of `text` end in `ending`. */
static bool ends_in(const char *text, size_t length, const char *ending)
{
    size_t size = strlen(ending);
    return length > size && strncmp(text + length - size, ending, size) == 0;
}

static enum ar_status by_name(const char *format, struct trace_output_choice *out,
                              struct ar_error *error)
{
    const char *names[NAMES_MOST] = {"text", "binary"};
    const struct format_writer *writer;
    size_t count = 2;
    if (!strcmp(format, names[0]) || !strcmp(format, names[1])) {
        out->own.format = strcmp(format, names[0]) ? TRACE_FORMAT_BINARY : TRACE_FORMAT_TEXT;
        return AR_OK;
    }
    if (strcmp(format, "csv") == 0)
        return ar_invalid(error, "the format csv is read and not written; write text, or rmm for a "
                                 "log with addresses");
    for (size_t i = 0; (writer = format_writer_at(i)) && count < NAMES_MOST; i++) {
        if (!strcmp(format, writer->name)) {
            out->writer = writer;
            return AR_OK;
        }
        names[count++] = writer->name;
    }
    return cli_unknown("format", format, names, count, error);
}

static bool by_ending(const char *path, size_t length, struct trace_output_choice *out)
{
    bool binary = ends_in(path, length, ".bin");
    if (binary || ends_in(path, length, ".txt") || ends_in(path, length, ".trace")) {
        out->own.format = binary ? TRACE_FORMAT_BINARY : TRACE_FORMAT_TEXT;
        return true;
    }
    for (size_t i = 0; (out->writer = format_writer_at(i)); i++)
        if (ends_in(path, length, out->writer->ending))
            return true;
    return false;
}

/* A trace for a pipe, as text if no other format is asked for. */
static enum ar_status to_standard_output(const char *format, struct trace_output_choice *out,
                                         struct ar_error *error)
{
    AR_TRY(by_name(format ? format : "text", out, error));
    out->standard = true;
    bool binary = out->writer ? out->writer->binary : out->own.format == TRACE_FORMAT_BINARY;
    if (binary && isatty(STDOUT_FILENO))
        return ar_invalid(error, "-: a trace in binary is not written to a terminal; write it into "
                                 "a pipe or name a file");
    return AR_OK;
}

enum ar_status trace_output_choose(const char *path, const char *format, bool piped,
                                   struct trace_output_choice *out, struct ar_error *error)
{
    size_t length = strlen(path);
    *out = (struct trace_output_choice){0};
    if (!path[0])
        return ar_invalid(error, "an output has an empty name; name a file, such as out.trace");
    if (strcmp(path, "-") == 0)
        return piped ? to_standard_output(format, out, error)
                     : ar_invalid(error, "this trace cannot be written to standard output, which "
                                         "has other text; name a file, such as out.trace");
    if (ends_in(path, length, ".zst")) {
        out->own.compress = true;
        length -= 4;
    }
    if (format)
        return by_name(format, out, error);
    if (by_ending(path, length, out))
        return AR_OK;
    return ar_invalid(error,
                      "%s: the ending does not tell the format; use .txt, .trace, .bin, .pickle, "
                      ".rmm.csv, .minimalloc.csv or .oracle.csv, add .zst to compress, or add "
                      "--format (`allocrig list formats`)",
                      path);
}

enum ar_status trace_output_save(struct trace_source *source, const char *path,
                                 const struct trace_output_choice *choice, struct ar_error *error)
{
    return choice->writer ? format_write(choice->writer, source, path, choice->own.compress, error)
                          : trace_write(source, path, &choice->own, error);
}
