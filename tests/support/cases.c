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
    snprintf(path, sizeof path, "tests/unit/cases/%s", file);
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

static size_t divide(struct cases *self)
{
    char *to = self->text;
    size_t count = 0;
    memset(self->field, 0, sizeof self->field);
    for (const char *at = self->text; at; count++) {
        const char *end = strchr(at, '\t');
        assert_true(count < CASES_FIELDS);
        bool none = *at == '-' && (at[1] == '\t' || !at[1]);
        self->field[count] = none ? NULL : to;
        for (; *at && *at != '\t'; at++)
            if (*at == '\\' && at++)
                *to++ = escaped(&at);
            else
                *to++ = *at;
        *to++ = '\0';
        at = end ? end + 1 : NULL;
    }
    return count;
}

bool cases_next(struct cases *self, const char *file, const char *section, size_t least)
{
    if (!self->file)
        begin(self, file, section);
    while (next_line(self) && strncmp(self->text, "== ", 3) != 0) {
        if (!self->text[0] || self->text[0] == '#')
            continue;
        if (divide(self) < least)
            fail_msg("%s, line %u: fewer than %zu fields", file, self->line, least);
        self->count++;
        return true;
    }
    fclose(self->file);
    if (!self->count)
        fail_msg("%s: section %s has no rows", file, section);
    return false;
}
