#include "tests/support/steps.h"

#include <ctype.h>
#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/amount.h"
#include "tests/support/folder_tests.h"
#include "tests/support/plugin_rig.h"
#include "tests/support/steps_state.h"
#include "tests/support/temporary_file.h"

void steps_wrong(const struct steps *s, const char *format, ...)
{
    char text[512];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (s->in_child || s->fails) {
        printf("%s, line %u: %s: %s\n", s->path, s->lines[s->line].number, s->text, text);
        fflush(stdout);
        _exit(1);
    }
    fail_msg("%s, line %u: %s: %s", s->path, s->lines[s->line].number, s->text, text);
    abort();
}

/* ---- the words of a line --------------------------------------------------------------------- */

bool steps_at_end(struct steps *s)
{
    s->at += strspn(s->at, " ");
    return !*s->at;
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* Reads the text if it is next, and no longer name begins with it. */
bool steps_take(struct steps *s, const char *text)
{
    size_t length = strlen(text);
    (void)steps_at_end(s);
    if (strncmp(s->at, text, length) != 0 || (is_name(text[length - 1]) && is_name(s->at[length])))
        return false;
    s->at += length;
    return true;
}

void steps_name(struct steps *s, char name[NAME])
{
    size_t length = 0;
    for (; !steps_at_end(s) && is_name(s->at[length]) && length < NAME - 1; length++)
        name[length] = s->at[length];
    name[length] = '\0';
    if (!length)
        steps_wrong(s, "a name is missing before \"%s\"", s->at);
    s->at += length;
}

void steps_word(struct steps *s, char *word, size_t room)
{
    size_t length = steps_at_end(s) || strncmp(s->at, "->", 2) == 0 ? 0 : strcspn(s->at, " ");
    snprintf(word, room, "%.*s", (int)length, s->at);
    s->at += length;
}

void steps_until_arrow(struct steps *s, char *text, size_t room)
{
    bool none = steps_at_end(s) || strncmp(s->at, "->", 2) == 0;
    const char *arrow = strstr(s->at, " -> ");
    size_t length = none ? 0 : arrow ? (size_t)(arrow - s->at) : strlen(s->at);
    snprintf(text, room, "%.*s", (int)length, s->at);
    s->at += length;
}

const char *steps_rest(struct steps *s)
{
    (void)steps_at_end(s);
    const char *text = s->at;
    s->at += strlen(s->at);
    return text;
}

/* ---- values ---------------------------------------------------------------------------------- */

struct thing *steps_find(struct steps *s, const char *name)
{
    for (size_t i = 0; i < s->thing_count; i++)
        if (strcmp(s->things[i].name, name) == 0)
            return &s->things[i];
    return NULL;
}

struct thing *steps_make(struct steps *s, const char *name)
{
    struct thing *found = steps_find(s, name);
    if (found)
        return found;
    assert_true(s->thing_count < MOST_THINGS);
    found = &s->things[s->thing_count++];
    memset(found, 0, sizeof *found);
    snprintf(found->name, sizeof found->name, "%s", name);
    return found;
}

struct thing *steps_thing(struct steps *s)
{
    char name[NAME];
    steps_name(s, name);
    struct thing *found = steps_find(s, name);
    if (!found)
        steps_wrong(s, "there is no %s", name);
    return found;
}

struct thing *steps_new(struct steps *s)
{
    char name[NAME];
    steps_name(s, name);
    return steps_make(s, name);
}

static long double number(struct steps *s)
{
    static const struct {
        const char *text;
        uint64_t factor;
    } units[] = {{"KiB", AR_KIB}, {"MiB", AR_MIB}, {"GiB", AR_GIB},
                 {"us", 1000},    {"ms", 1000000}, {"s", 1000000000}};
    char *end;
    long double value = strtold(s->at, &end);
    s->at = end;
    for (size_t i = 0; i < COUNT(units); i++)
        if (isalpha((unsigned char)*s->at) && steps_take(s, units[i].text))
            return value * (long double)units[i].factor;
    return value;
}

/* Reads a term that is no number: a block or what was set, or a figure. */
static long double named(struct steps *s)
{
    char name[NAME];
    uint64_t whole = 0;
    long double result = 0;
    steps_name(s, name);
    struct thing *thing = steps_find(s, name);
    char *dot = strrchr(name, '.');
    if (thing)
        return thing->value;
    if (steps_twin_figure(s, name, &result) || steps_rules_figure(s, name, &result) ||
        steps_suites_figure(s, name, &result) || steps_traces_figure(name, &result))
        return result;
    if (steps_figure(s, name, &whole))
        return (long double)whole;
    if (dot && strcmp(dot, ".granted") == 0) {
        *dot = '\0';
        thing = steps_find(s, name);
    }
    if (!thing)
        steps_wrong(s, "there is no %s", name);
    return (long double)thing->block.granted_bytes;
}

static long double term(struct steps *s)
{
    if (!steps_at_end(s) && isdigit((unsigned char)*s->at))
        return number(s);
    if (steps_take(s, "-"))
        return -term(s);
    if (!steps_take(s, "("))
        return named(s);
    long double result = steps_real(s);
    if (!steps_take(s, ")"))
        steps_wrong(s, "no ) before \"%s\"", s->at);
    return result;
}

static long double product(struct steps *s)
{
    long double result = term(s);
    for (;;) {
        if (steps_take(s, "*"))
            result *= term(s);
        else if (steps_take(s, "//"))
            result = floorl(result / term(s));
        else if (steps_take(s, "/"))
            result /= term(s);
        else if (steps_take(s, "%"))
            result = fmodl(result, term(s));
        else
            return result;
    }
}

long double steps_real(struct steps *s)
{
    long double result = product(s);
    for (;;) {
        if (steps_take(s, "+"))
            result += product(s);
        else if (!steps_at_end(s) && s->at[0] == '-' && s->at[1] != '>' && steps_take(s, "-"))
            result -= product(s);
        else
            return result;
    }
}

uint64_t steps_value(struct steps *s)
{
    long double result = steps_real(s);
    if (result < (long double)INT64_MIN || result > (long double)UINT64_MAX ||
        result != floorl(result))
        steps_wrong(s, "%.20Lg is no whole number", result);
    return result < 0 ? (uint64_t)(int64_t)result : (uint64_t)result; /* 0 - 1 is the largest */
}

uint32_t steps_id(struct steps *s, const char *of)
{
    uint64_t id = steps_value(s);
    if (id > UINT32_MAX)
        steps_wrong(s, "%" PRIu64 " is no %s; the largest is %" PRIu32, id, of, UINT32_MAX);
    return (uint32_t)id;
}

/* ---- fields of structs ----------------------------------------------------------------------- */

bool steps_get(const char *name, const struct steps_field *fields, size_t count, const void *base,
               long double *value)
{
    for (size_t i = 0; i < count; i++) {
        const void *from = (const char *)base + fields[i].offset;
        uint64_t whole = 0;
        double real = 0;
        if (strcmp(name, fields[i].name) != 0)
            continue;
        memcpy(fields[i].real ? (void *)&real : &whole, from, fields[i].bytes);
        *value = fields[i].real ? (long double)real : (long double)whole;
        return true;
    }
    return false;
}

bool steps_set_field(struct steps *s, const struct steps_field *fields, size_t count, void *base)
{
    char name[NAME];
    if (steps_at_end(s) || strncmp(s->at, "->", 2) == 0)
        return false;
    steps_name(s, name);
    for (size_t i = 0; i < count && steps_take(s, "="); i++) {
        if (strcmp(name, fields[i].name) != 0) {
            s->at--; /* at the sign again */
            continue;
        }
        const long double value = steps_real(s);
        const double real = (double)value;
        const uint64_t whole = value > 0 ? (uint64_t)value : 0; /* cut, as the rules do */
        memcpy((char *)base + fields[i].offset, fields[i].real ? (const void *)&real : &whole,
               fields[i].bytes);
        return true;
    }
    steps_wrong(s, "there is no %s=", name);
}

/* ---- results --------------------------------------------------------------------------------- */

enum ar_status steps_status(struct steps *s)
{
    char name[NAME];
    steps_name(s, name);
    for (int status = AR_OK; status <= AR_NEGATIVE; status++)
        if (strcmp(ar_status_name((enum ar_status)status), name) == 0)
            return (enum ar_status)status;
    steps_wrong(s, "%s is no status", name);
}

void steps_is_status(struct steps *s, enum ar_status status, enum ar_status wanted,
                     const char *sentence)
{
    if (status != wanted || !strstr(sentence, steps_rest(s)))
        steps_wrong(s, "%s \"%s\"", ar_status_name(status), sentence);
}

void steps_ended(struct steps *s, enum ar_status status, const char *sentence)
{
    steps_is_status(s, status, steps_take(s, "->") ? steps_status(s) : AR_OK, sentence);
}

void steps_is_equal(struct steps *s, uint64_t got, uint64_t wanted)
{
    if (got != wanted)
        steps_wrong(s, "%" PRIu64 ", not %" PRIu64, got, wanted);
}

void steps_answered(struct steps *s, uint64_t got)
{
    if (steps_take(s, "->"))
        steps_is_equal(s, got, steps_value(s));
}

void steps_is_text(struct steps *s, const char *got, bool whole)
{
    const char *wanted = steps_rest(s);
    if (whole || !*wanted ? strcmp(got, wanted) != 0 : !strstr(got, wanted))
        steps_wrong(s, "\"%s\"", got);
}

/* ---- the script ------------------------------------------------------------------------------ */

static void set(struct steps *s)
{
    char name[NAME];
    steps_name(s, name);
    long double to = steps_real(s);
    steps_make(s, name)->value = to;
}

static bool holds(const char *sign, long double left, long double right)
{
    bool equal = left == right && sign[1] == '=';
    return sign[0] == '<'   ? left < right || equal
           : sign[0] == '>' ? left > right || equal
           : sign[0] == '!' ? left != right
                            : equal;
}

/* Whether a comparison holds; if it `must`, the test fails if not. */
static bool compare(struct steps *s, bool must)
{
    static const char *const signs[] = {"==", "!=", "<=", ">=", "<", ">"};
    long double left = steps_real(s);
    if (steps_take(s, "~")) {
        long double wanted = steps_real(s), allowed = 0;
        if (!steps_take(s, "within") || (allowed = steps_real(s), 0))
            steps_wrong(s, "within what?");
        bool near = fabsl(left - wanted) <= allowed;
        if (!near && must)
            steps_wrong(s, "%.20Lg is not within %.6Lg of %.20Lg", left, allowed, wanted);
        return near;
    }
    do {
        size_t i = 0;
        while (i < COUNT(signs) && !steps_take(s, signs[i]))
            i++;
        if (i == COUNT(signs))
            steps_wrong(s, "neither an operation nor a comparison");
        long double right = steps_real(s);
        if (!holds(signs[i], left, right) && must)
            steps_wrong(s, "%.20Lg %s %.20Lg is not so", left, signs[i], right);
        if (!holds(signs[i], left, right))
            return false;
        left = right;
    } while (!steps_at_end(s));
    return true;
}

static void file_says(struct steps *s)
{
    char path[LINE];
    steps_word(s, path, sizeof path);
    steps_is_text(s, plugin_rig_text(path), false);
}

/* Words from `first` on go, and the files that they name. */
static void forget(struct steps *s, size_t first)
{
    for (size_t i = first; i < s->word_count; i++)
        if (s->words[i].is_file)
            unlink(s->words[i].text);
    s->word_count = first;
}

/* The word that the line names next: a new one, or that of the turn before. */
static size_t word_of(struct steps *s)
{
    char name[NAME];
    size_t word = 0;
    steps_name(s, name);
    while (word < s->word_count && strcmp(s->words[word].name, name) != 0)
        word++;
    if (word < s->word_count && s->words[word].is_file)
        unlink(s->words[word].text);
    if (word == s->word_count) {
        assert_true(s->word_count < MOST_WORDS);
        strcpy(s->words[s->word_count++].name, name);
    }
    s->words[word].is_file = false;
    return word;
}

/* `text NAME REST`: $NAME is the rest of the line. */
static void set_text(struct steps *s)
{
    size_t word = word_of(s);
    snprintf(s->words[word].text, LINE, "%s", steps_rest(s));
}

static void run_line(struct steps *s);

/* `fails TEXT: LINE`: the line ends the test, with a sentence that holds the text. */
static void fails(struct steps *s)
{
    char output[1024], text[LINE];
    const char *colon = strstr(s->at, ": ");
    int ends[2];
    if (!colon)
        steps_wrong(s, "no \": \"");
    snprintf(text, sizeof text, "%.*s", (int)(colon - s->at - 1), s->at + 1);
    assert_int_equal(pipe(ends), 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        s->fails = true;
        s->at = colon + 2;
        run_line(s);
        _exit(0);
    }
    close(ends[1]);
    ssize_t got = read(ends[0], output, sizeof output - 1);
    close(ends[0]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    output[got > 0 ? got : 0] = '\0';
    const char *sentence = strstr(output, s->text);
    if (status != 1 << 8 || !sentence || !strstr(sentence + strlen(s->text), text))
        steps_wrong(s, "status %d, \"%s\"", status, output);
    (void)steps_rest(s);
}

static void run_line(struct steps *s)
{
    if (steps_take(s, "set"))
        set(s);
    else if (steps_take(s, "text"))
        set_text(s);
    else if (steps_take(s, "fails"))
        fails(s);
    else if (steps_take(s, "file_says"))
        file_says(s);
    else if (!steps_twin_operation(s) && !steps_rules_operation(s) && !steps_suites_operation(s) &&
             !steps_kernel_operation(s) && !steps_traces_operation(s) && !steps_operation(s))
        (void)compare(s, true);
    if (!steps_at_end(s))
        steps_wrong(s, "not understood: %s", s->at);
}

/* Makes the line the one that runs, with values in place of $names. */
static void load(struct steps *s, size_t line)
{
    char *to = s->text, *end = s->text + sizeof s->text - LINE;
    s->line = line;
    for (const char *from = s->lines[line].text; *from && to < end;) {
        char name[NAME] = "";
        size_t length = strspn(from + 1, "abcdefghijklmnopqrstuvwxyz_"), i = s->word_count;
        if (*from != '$') {
            *to++ = *from++;
            continue;
        }
        snprintf(name, sizeof name, "%.*s", (int)length, from + 1);
        from += 1 + length;
        for (size_t word = 0; word < s->word_count; word++) /* the last one of that name */
            if (strcmp(s->words[word].name, name) == 0)
                i = word;
        *to = '\0';
        const struct thing *thing = steps_find(s, name);
        if (i == s->word_count && !thing)
            steps_wrong(s, "there is no %s", name);
        to += i < s->word_count ? sprintf(to, "%s", s->words[i].text)
                                : sprintf(to, "%.20Lg", thing->value);
    }
    *to = '\0';
    s->at = s->text;
}

/* Writes the lines after this one that begin with "|" to a file, whose path is $NAME; "\n" is a
 * line end in them too, and after "|=" each blank is. Returns the last of these lines. */
static size_t file(struct steps *s, size_t line)
{
    char text[16 * LINE], *to = text;
    size_t word = word_of(s);
    for (; line + 1 < s->count && s->lines[line + 1].text[0] == '|'; line++) {
        load(s, line + 1);
        bool split = s->text[1] == '=';
        for (const char *from = s->text + strspn(s->text, "|= "); *from; from++) {
            bool line_end = from[0] == '\\' && from[1] == 'n';
            *to++ = line_end || (split && *from == ' ') ? '\n' : *from;
            from += line_end;
        }
        *to++ = '\n';
        assert_true(to < text + sizeof text - sizeof s->text);
    }
    *to = '\0';
    struct temporary_file made = temporary_file(text);
    snprintf(s->words[word].text, LINE, "%s", made.path);
    s->words[word].is_file = true;
    return line;
}

static bool begins_block(const char *text);

/* The line `end` that belongs to the block at `line`. */
static size_t end_of(const struct steps *s, size_t line)
{
    for (size_t i = line + 1, depth = 1; i < s->count; i++) {
        depth += begins_block(s->lines[i].text);
        depth -= strcmp(s->lines[i].text, "end") == 0;
        if (!depth)
            return i;
    }
    steps_wrong(s, "it has no end");
}

static void run_for(struct steps *s, size_t line, size_t end)
{
    struct thing *thing = steps_new(s);
    size_t index = (size_t)(thing - s->things);
    uint64_t from = steps_value(s), below = steps_value(s),
             step = steps_at_end(s) ? 1 : steps_value(s);
    for (uint64_t i = from; i < below; i += step) {
        s->things[index].value = (long double)i;
        steps_run_lines(s, line + 1, end);
    }
}

static void run_each(struct steps *s, size_t line, size_t end)
{
    size_t first = s->word_count, body = line + 1;
    while (!steps_at_end(s)) {
        assert_true(s->word_count < MOST_WORDS);
        s->words[s->word_count].is_file = false;
        steps_name(s, s->words[s->word_count++].name);
    }
    size_t last = s->word_count - 1;
    while (strcmp(s->lines[body].text, "do") != 0 && body < end)
        body++;
    for (size_t row = line + 1; row < body; row++) {
        load(s, row);
        for (size_t i = first; i <= last; i++) {
            if (steps_at_end(s))
                steps_wrong(s, "there is no word for %s", s->words[i].name);
            size_t length = i == last ? strlen(s->at) : strcspn(s->at, " ");
            snprintf(s->words[i].text, LINE, "%.*s", (int)length, s->at);
            s->at += length;
        }
        steps_run_lines(s, body + 1, end);
    }
    forget(s, first);
}

static void run_if(struct steps *s, size_t line, size_t end)
{
    if (compare(s, false))
        steps_run_lines(s, line + 1, end);
}

static void run_long(struct steps *s, size_t line, size_t end)
{
    if (test_long())
        steps_run_lines(s, line + 1, end);
}

static void run_plugin(struct steps *s, size_t line, size_t end)
{
    steps_plugin_run(s, line + 1, end);
}

static void run_fork(struct steps *s, size_t line, size_t end)
{
    steps_fork_run(s, line + 1, end);
}

/* Lines that begin a block, up to its `end`. */
static const struct {
    const char *name;
    void (*run)(struct steps *s, size_t line, size_t end);
} blocks[] = {{"for", run_for},   {"each", run_each},     {"if", run_if},
              {"long", run_long}, {"plugin", run_plugin}, {"fork", run_fork}};

static bool begins_block(const char *text)
{
    size_t length = strcspn(text, " ");
    for (size_t i = 0; i < COUNT(blocks); i++)
        if (strlen(blocks[i].name) == length && strncmp(text, blocks[i].name, length) == 0)
            return true;
    return false;
}

void steps_run_lines(struct steps *s, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        size_t block = 0;
        load(s, i);
        while (block < COUNT(blocks) && !steps_take(s, blocks[block].name))
            block++;
        if (block < COUNT(blocks)) {
            size_t end = end_of(s, i);
            blocks[block].run(s, i, end);
            i = end;
        } else if (steps_take(s, "file")) {
            i = file(s, i);
        } else {
            run_line(s);
        }
    }
}

/* `include NAME` stands for the lines of that section. */
static void read_section(struct steps *s, const char *section)
{
    char line[LINE];
    size_t before = s->count;
    bool within = false;
    FILE *file = fopen(s->path, "r");
    assert_non_null(file);
    for (unsigned number = 1; fgets(line, sizeof line, file); number++) {
        assert_non_null(strchr(line, '\n'));
        char *comment = line[strspn(line, " ")] == '|' ? NULL : strstr(line, " # ");
        if (comment)
            *comment = '\0';
        for (size_t length = strlen(line); length && strchr("\n ", line[length - 1]); length--)
            line[length - 1] = '\0';
        if (strncmp(line, "== ", 3) == 0)
            within = strcmp(line + 3, section) == 0;
        else if (within && strncmp(line + strspn(line, " "), "include ", 8) == 0)
            read_section(s, line + strspn(line, " ") + 8);
        else if (within && line[0] && line[0] != '#') {
            assert_true(s->count < MOST_LINES);
            s->lines[s->count].number = number;
            strcpy(s->lines[s->count++].text, line + strspn(line, " "));
        }
    }
    fclose(file);
    assert_true(s->count > before);
}

static void run_section(const char *file, const char *section)
{
    static struct steps steps;
    char path[128];
    snprintf(path, sizeof path, "tests/steps/%s", file);
    memset(&steps, 0, sizeof steps);
    steps.path = path;
    steps_run_begin();
    steps_learned_begin();
    steps_twin_begin();
    steps_rules_begin();
    steps_suites_begin();
    steps_traces_begin();
    read_section(&steps, section);
    steps_run_lines(&steps, 0, steps.count);
    forget(&steps, 0);
    steps_close_rig(&steps);
}

static const char *only;

static bool is_wanted(const char *file)
{
    return only ? strcmp(file, only) == 0 : strcmp(file, "plugin") != 0;
}

int steps_main(const char *file)
{
    only = file;
    return sections_run("steps", "tests/steps/", is_wanted, run_section);
}
