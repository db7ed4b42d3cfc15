/* The cases of tests/steps. */
#include "tests/support/steps.h"

#include <dirent.h>

#include "tests/support/test.h"

#define FOLDER     "tests/steps/"
#define MOST_CASES 1024

static void run_case(void **state)
{
    char path[128];
    const char *name = *state, *dot = strchr(name, '.');
    snprintf(path, sizeof path, FOLDER "%.*s", (int)(dot - name), name);
    steps_run(path, dot + 1);
}

static size_t add_file(struct CMUnitTest *tests, size_t count, const char *file)
{
    char path[128], line[256], name[256];
    snprintf(path, sizeof path, FOLDER "%s", file);
    FILE *opened = fopen(path, "r");
    while (opened && fgets(line, sizeof line, opened) && count < MOST_CASES) {
        if (strncmp(line, "== ", 3) != 0 || line[3] == '.') /* one that others include */
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(name, sizeof name, "%.60s.%.180s", file, line + 3);
        char *kept = strdup(name);
        tests[count++] =
            (struct CMUnitTest){.name = kept, .test_func = run_case, .initial_state = kept};
    }
    if (opened)
        fclose(opened);
    return count;
}

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

int steps_main(const char *only)
{
    static struct CMUnitTest tests[MOST_CASES];
    struct dirent **files;
    int file_count = scandir(FOLDER, &files, visible, alphasort);
    size_t count = 0;
    for (int i = 0; i < file_count; i++) {
        const char *name = files[i]->d_name;
        if (only ? strcmp(only, name) == 0 : strcmp(name, "plugin") != 0)
            count = add_file(tests, count, name);
        free(files[i]);
    }
    if (file_count > 0)
        free(files);
    if (!count && file_count > 0 && only)
        fprintf(stderr, FOLDER "%s: there is no such file, or it has no cases\n", only);
    else if (!count)
        fprintf(stderr, FOLDER " has no cases: run this from the root of the tree\n");
    int failed = count ? _cmocka_run_group_tests("steps", tests, count, NULL, NULL) : 1;
    for (size_t i = 0; i < count; i++)
        free(tests[i].initial_state);
    return failed;
}
