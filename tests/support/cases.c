#include "tests/support/cases.h"

#include "tests/support/test.h"

static bool next_line(struct cases *self)
{
    if (!fgets(self->text, sizeof self->text, self->file))
        return false;
    self->line++;
    size_t length = strcspn(self->text, "\n");
    assert_true(self->text[length] == '\n');
    self->text[length] = '\0';
    return true;
}

static void begin(struct cases *self, const char *file, const char *section)
{
    char path[128];
    const char *test = strstr(file, "/test_");
    int length = test ? (int)strlen(test + 6) - 2 : (int)strlen(file);
    snprintf(path, sizeof path, "tests/unit/cases/%.*s", length, test ? test + 6 : file);
    self->file = fopen(path, "r");
    if (!self->file)
        fail_msg("%s cannot be read", path);
    while (next_line(self))
        if (strncmp(self->text, "== ", 3) == 0 && strcmp(self->text + 3, section) == 0)
            return;
    fail_msg("%s has no section %s", path, section);
}

/* The character behind a backslash. */
static char escaped(const char **at)
{
    static const char letters[] = "n\nt\tr\r\\\\";
    const char *letter = strchr(letters, **at);
    if (**at == 'x') {
        char digits[3] = {(*at)[1], (*at)[2], '\0'};
        *at += 2;
        return (char)strtoul(digits, NULL, 16);
    }
    assert_true(letter && *letter && (letter - letters) % 2 == 0);
    return letter[1];
}

/* The fields of the line, in self->fields. */
static size_t divide(struct cases *self)
{
    char *to = self->fields, *end = self->fields + sizeof self->fields - sizeof self->head;
    size_t count = 0;
    memset(self->field, 0, sizeof self->field);
    for (const char *at = self->text; at; count++) {
        assert_true(count < CASES_FIELDS);
        bool none = *at == '-' && (at[1] == '\t' || !at[1]);
        self->field[count] = none ? NULL : to;
        if (strncmp(at, "{}", 2) == 0) {
            to = stpcpy(to, self->head);
            at += 2;
        }
        for (; *at && *at != '\t'; at++)
            if (*at == '\\' && at++)
                *to++ = escaped(&at);
            else
                *to++ = *at;
        *to++ = '\0';
        assert_true(to < end);
        at = *at ? at + 1 : NULL;
    }
    return count;
}

/* Whether the line begins with the word; then `*rest` is what follows a blank. */
static bool begins(const struct cases *self, const char *word, const char **rest)
{
    size_t length = strlen(word);
    *rest = self->text + length + 1;
    return strncmp(self->text, word, length) == 0 && self->text[length] == ' ';
}

bool cases_next(struct cases *self, const char *file, const char *section, size_t least)
{
    const char *rest;
    if (!self->file)
        begin(self, file, section);
    while (next_line(self) && !begins(self, "==", &rest)) {
        if (!self->text[0] || self->text[0] == '#')
            continue;
        size_t count = divide(self);
        if (begins(self, "head:", &rest)) {
            assert_true(strlen(self->fields) < sizeof self->head);
            strcpy(self->head, self->fields + 6);
            continue;
        }
        if (count < least)
            fail_msg("%s, line %u: fewer than %zu fields", file, self->line, least);
        self->count++;
        return true;
    }
    fclose(self->file);
    if (!self->count)
        fail_msg("%s: section %s has no rows", file, section);
    return false;
}

uint64_t cases_number(const struct cases *self, size_t field)
{
    uint64_t number = 0;
    assert_ok(ar_size_parse(self->field[field], &number, &test_error));
    return number;
}

double cases_real(const struct cases *self, size_t field)
{
    char *end;
    double number = strtod(self->field[field], &end);
    assert_true(end != self->field[field] && !*end);
    return number;
}

bool cases_block(struct cases *self, const char *file, const char *section)
{
    static const char *const marks[] = {"-->", "--"};
    const char *rest;
    char *to = self->fields;
    size_t part = 0;
    if (!self->file)
        begin(self, file, section);
    memset(self->field, 0, sizeof self->field);
    bool there = next_line(self);
    while (there && (!self->text[0] || strncmp(self->text, "//", 2) == 0))
        there = next_line(self);
    if (!there || begins(self, "==", &rest)) {
        fclose(self->file);
        if (!self->count)
            fail_msg("%s: section %s has no blocks", file, section);
        return false;
    }
    self->count++;
    self->field[0] = to;
    for (; there && strcmp(self->text, "----") != 0; there = next_line(self)) {
        const char *at = self->text;
        if (strncmp(at, "//", 2) == 0)
            continue;
        if (part < 2 && strcmp(at, marks[part]) == 0) {
            *to++ = '\0';
            self->field[++part] = to;
            continue;
        }
        for (; *at && strcmp(at, "\\") != 0; at++)
            if (*at == '\\' && at++)
                *to++ = escaped(&at);
            else
                *to++ = *at;
        if (!*at)
            *to++ = '\n';
        assert_true(to < self->fields + sizeof self->fields - sizeof self->text);
    }
    assert_true(there);
    *to = '\0';
    return true;
}

const char *cases_text(struct cases *self, const char *file, const char *section)
{
    (void)cases_block(self, file, section);
    fclose(self->file);
    return self->field[0];
}

void cases_refused(const char *file, const char *section, case_read *read)
{
    for (struct cases row = {0}; cases_next(&row, file, section, 2);) {
        struct ar_error error = {""};
        enum ar_status status = read(row.field[0], &error);
        if (!status)
            fail_msg("%s, line %u: \"%s\" is taken", file, row.line, row.field[0]);
        for (size_t i = 1; i < CASES_FIELDS && row.field[i]; i++) {
            if (strcmp(row.field[i], ar_status_name(status)) != 0 &&
                !strstr(error.text, row.field[i]))
                fail_msg("%s, line %u: %s, \"%s\" says not \"%s\"", file, row.line,
                         ar_status_name(status), error.text, row.field[i]);
        }
    }
}
