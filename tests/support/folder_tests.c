#include "tests/support/folder_tests.h"

#include "tests/support/test.h"

#include <dirent.h>

#define MOST_FILES    128
#define MOST_SECTIONS 1024

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

/* ---- sections -------------------------------------------------------------------------------- */

static sections_check *section_check;

static void check_section(void **state)
{
    char file[64];
    const char *name = *state, *dot = strchr(name, '.');
    snprintf(file, sizeof file, "%.*s", (int)(dot - name), name);
    section_check(file, dot + 1);
}

static size_t add_sections(struct CMUnitTest *tests, size_t count, const char *folder,
                           const char *file)
{
    char path[128], name[256];
    static char line[8192];
    snprintf(path, sizeof path, "%s%s", folder, file);
    FILE *opened = fopen(path, "r");
    while (opened && fgets(line, sizeof line, opened) && count < MOST_SECTIONS) {
        if (strncmp(line, "== ", 3) != 0 || line[3] == '.') /* one that others include */
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(name, sizeof name, "%.60s.%.180s", file, line + 3);
        char *kept = strdup(name);
        tests[count++] =
            (struct CMUnitTest){.name = kept, .test_func = check_section, .initial_state = kept};
    }
    if (opened)
        fclose(opened);
    return count;
}

int sections_run(const char *group, const char *folder, bool (*wanted)(const char *file),
                 sections_check *check)
{
    static struct CMUnitTest tests[MOST_SECTIONS];
    struct dirent **files = NULL;
    int file_count = scandir(folder, &files, NULL, alphasort);
    size_t count = 0;
    section_check = check;
    for (int i = 0; i < file_count; i++) {
        if (files[i]->d_name[0] != '.' && wanted(files[i]->d_name))
            count = add_sections(tests, count, folder, files[i]->d_name);
        free(files[i]);
    }
    free(files);
    if (!count)
        fprintf(stderr,
                file_count > 0 ? "%s has no such file, or it has no cases\n"
                               : "%s has no cases: run this from the root of the tree\n",
                folder);
    int failed = count ? _cmocka_run_group_tests(group, tests, count, NULL, NULL) : 1;
    for (size_t i = 0; i < count; i++)
        free(tests[i].initial_state);
    return failed;
}
