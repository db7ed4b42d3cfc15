#include "tests/support/folder_tests.h"

#include "tests/support/test.h"

#include <dirent.h>

#define MOST_FILES 128

void recorded_open(struct recorded_lines *self, const char *folder, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    *self = (struct recorded_lines){.file = gzopen(path, "rb")};
    assert_non_null(self->file);
    assert_true(recorded_next(self));
}

bool recorded_next(struct recorded_lines *self)
{
    if (!gzgets(self->file, self->line, sizeof self->line))
        return false;
    self->line[strcspn(self->line, "\n")] = '\0';
    self->number++;
    return true;
}

static int by_name(const void *a, const void *b)
{
    const struct CMUnitTest *left = a;
    const struct CMUnitTest *right = b;
    return strcmp(left->name, right->name);
}

int folder_tests_run(const char *group, const char *folder, void (*check)(void **state))
{
    struct CMUnitTest tests[MOST_FILES];
    size_t count = 0;
    DIR *opened = opendir(folder);
    if (!opened) {
        fprintf(stderr, "%s is not there: run this from the root of the tree\n", folder);
        return 1;
    }
    for (struct dirent *entry; (entry = readdir(opened)) != NULL && count < MOST_FILES;) {
        if (!strstr(entry->d_name, ".gz"))
            continue;
        char *name = strdup(entry->d_name);
        tests[count++] =
            (struct CMUnitTest){.name = name, .test_func = check, .initial_state = name};
    }
    closedir(opened);
    qsort(tests, count, sizeof *tests, by_name);
    int failed = _cmocka_run_group_tests(group, tests, count, NULL, NULL);
    for (size_t i = 0; i < count; i++)
        free(tests[i].initial_state);
    return count == 0 || failed;
}
