#include "bench/cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/options.h"
#include "bench/cli/files.h"
#include "bench/report/sentence.h"

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
    size_t used = 0, i = 0;
    all[0] = 0;
    for (; i < count && used + strlen(names[i]) + sizeof ", and 9999 more" < bytes; i++)
        if (!is_before(names, i))
            used += (size_t)snprintf(all + used, bytes - used, "%s%s", used ? ", " : "", names[i]);
    if (i < count)
        snprintf(all + used, bytes - used, ", and %zu more", count - i);
}

/* The names that begin with a word of at least 3 characters; returns how many `out` has. */
static size_t names_that_begin(const char *word, const char *const *names, size_t count,
                               const char *out[], size_t room)
{
    size_t length = strlen(word), found = 0;
    for (size_t i = 0; length >= 3 && i < count && found < room; i++)
        if (strncmp(names[i], word, length) == 0)
            out[found++] = names[i];
    return found;
}

enum ar_status cli_unknown(const char *what, const char *word, const char *const *names,
                           size_t count, struct ar_error *error)
{
    const char *near = ar_nearest_name(word, names, count), *longer[16];
    char all[512];
    size_t begin = names_that_begin(word, names, count, longer, sizeof longer / sizeof *longer);
    if (begin && !(near && strncmp(near, word, strlen(word)) == 0)) {
        join_names(longer, begin, all, sizeof all);
        return ar_error_set(error, AR_INVALID, "there is no %s \"%.60s\"; did you mean: %s?", what,
                            word, all);
    }
    if (near)
        return ar_error_set(error, AR_INVALID, "there is no %s \"%.60s\"; did you mean \"%s\"?",
                            what, word, near);
    join_names(names, count, all, sizeof all);
    return ar_error_set(error, AR_INVALID, "there is no %s \"%.60s\"; there are: %s", what, word,
                        all);
}

enum ar_status cli_number(const char *name, const char *value, double most, double *number,
                          struct ar_error *error)
{
    char *end = NULL;
    *number = strtod(value, &end);
    if (end == value || *end || !(*number > 0 && *number <= most))
        return ar_error_set(error, AR_INVALID,
                            "--%s is \"%.40s\"; it must be a number above 0, at most %g", name,
                            value, most);
    return AR_OK;
}

const char *cli_option_name(const struct cli_page *page, int key)
{
    for (const struct cli_option *option = page->options; option->key; option++)
        if (option->key == key && option->name)
            return option->name;
    return "";
}

#define HELP_COLUMN 28 /* column of the help of options */

static void print_option(const struct cli_option *option)
{
    char left[64];
    int used = option->key < CLI_KEYS ? snprintf(left, sizeof left, "-%c, ", option->key)
                                      : snprintf(left, sizeof left, "    ");
    snprintf(left + used, sizeof left - (size_t)used, "--%s%s%s", option->name,
             option->value ? " " : "", option->value ? option->value : "");
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
    for (const struct cli_option *option = page->options; option->key; option++) {
        if (option->name)
            print_option(option);
        else
            printf("\n%s\n", option->help);
    }
    printf("%s  %-26s%s\n", page->options->key ? "" : "\n", "-h, --help", "print this help");
}

static enum ar_status unknown_long(const struct cli_page *page, const char *name,
                                   struct ar_error *error)
{
    const char *names[NAMES_MOST];
    size_t count = 0;
    for (const struct cli_option *option = page->options; option->key; option++)
        if (option->name && count < NAMES_MOST)
            names[count++] = option->name;
    const char *near = ar_nearest_name(name, names, count);
    if (near)
        return ar_error_set(error, AR_INVALID, "there is no option --%s; did you mean --%s?", name,
                            near);
    return ar_error_set(error, AR_INVALID, "there is no option --%s; --help lists them", name);
}

/* The option whose name is `name`, or the only one that begins with it. */
static enum ar_status find_long(const struct cli_page *page, const char *name,
                                const struct cli_option **found, struct ar_error *error)
{
    unsigned count = 0;
    size_t length = strlen(name);
    for (const struct cli_option *option = page->options; option->key; option++) {
        if (!option->name || length == 0 || strncmp(option->name, name, length) != 0)
            continue;
        *found = option;
        count++;
        if (option->name[length] == '\0')
            return AR_OK;
    }
    if (count > 1)
        return ar_error_set(error, AR_INVALID,
                            "--%s is ambiguous; write the whole name of the option", name);
    return count ? AR_OK : unknown_long(page, name, error);
}

/* The state of the parser. */
struct cursor {
    const struct cli_page *page;
    int argc, at; /* argv[at] is read next */
    char **argv;
    cli_take *take;
    void *self;
    struct cli_file *named; /* all values read so far */
    size_t count;
};

static enum ar_status take_value(struct cursor *cursor, const struct cli_option *option,
                                 const char *value, struct ar_error *error)
{
    if (value)
        cursor->named[cursor->count++] = (struct cli_file){option, value};
    return cursor->take(cursor->self, option ? option->key : CLI_ARGUMENT, value, error);
}

static enum ar_status read_long(struct cursor *cursor, struct ar_error *error)
{
    char name[64];
    const char *word = cursor->argv[cursor->at] + 2;
    const char *equals = strchr(word, '=');
    const char *value = equals ? equals + 1 : NULL;
    const struct cli_option *option = NULL;
    snprintf(name, sizeof name, "%.*s", (int)(equals ? (size_t)(equals - word) : strlen(word)),
             word);
    enum ar_status status = find_long(cursor->page, name, &option, error);
    if (status)
        return status;
    if (!option->value && value)
        return ar_error_set(error, AR_INVALID, "--%s takes no value", option->name);
    if (option->value && !value) {
        if (cursor->at + 1 == cursor->argc)
            return ar_error_set(error, AR_INVALID, "--%s needs a value: --%s %s", option->name,
                                option->name, option->value);
        value = cursor->argv[++cursor->at];
    }
    return take_value(cursor, option, value, error);
}

static enum ar_status read_short(struct cursor *cursor, struct ar_error *error)
{
    for (const char *letter = cursor->argv[cursor->at] + 1; *letter; letter++) {
        const struct cli_option *option = cursor->page->options;
        while (option->key && !(option->name && option->key == *letter))
            option++;
        if (!option->key)
            return ar_error_set(error, AR_INVALID, "there is no option -%c; --help lists them",
                                *letter);
        const char *value = NULL;
        if (option->value && letter[1])
            value = letter + 1;
        else if (option->value && cursor->at + 1 < cursor->argc)
            value = cursor->argv[++cursor->at];
        else if (option->value)
            return ar_error_set(error, AR_INVALID, "-%c needs a value: -%c %s", *letter, *letter,
                                option->value);
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

enum ar_status cli_parse(const struct cli_page *page, int argc, char **argv, cli_take *take,
                         void *self, bool *help, struct ar_error *error)
{
    struct cursor cursor = {page, argc, 1, argv, take, self, NULL, 0};
    bool options_end = false;
    enum ar_status status = AR_OK;
    *help = wants_help(argc, argv);
    if (*help) {
        print_page(page, argv[0]);
        return AR_OK;
    }
    cursor.named = calloc((size_t)argc, sizeof *cursor.named); /* a word has at most one value */
    if (!cursor.named)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for the command line");
    for (; cursor.at < argc && !status; cursor.at++) {
        const char *word = argv[cursor.at];
        if (!options_end && strcmp(word, "--") == 0)
            options_end = true;
        else if (!options_end && strncmp(word, "--", 2) == 0)
            status = read_long(&cursor, error);
        else if (!options_end && word[0] == '-' && word[1])
            status = read_short(&cursor, error);
        else
            status = take_value(&cursor, NULL, word, error);
    }
    if (!status)
        status = cli_files_check(cursor.named, cursor.count, error);
    free(cursor.named);
    return status ? ar_error_prefix(error, status, "%s", argv[0]) : AR_OK;
}
