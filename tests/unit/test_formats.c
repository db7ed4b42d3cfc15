/* Files of other programs as traces: each section of tests/unit/cases/format_* is a case. Its
 * blocks are files, the traces that they become, and facts of the report (format_rig.h); a section
 * without blocks has rows: files that are refused, and why. */
#include "tests/support/folder_tests.h"
#include "tests/support/format_rig.h"
#include "tests/support/test.h"

#define FOLDER "tests/unit/cases/"

/* Databases are made by test_format_nsys. */
static bool is_wanted(const char *file)
{
    return strncmp(file, "format_", 7) == 0 && strcmp(file, "format_nsys") != 0;
}

static bool has_blocks(const char *name, const char *section)
{
    char path[128];
    static char line[8192];
    bool within = false, found = false;
    snprintf(path, sizeof path, FOLDER "%s", name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "== ", 3) == 0)
            within = strcmp(line + 3, section) == 0;
        found |= within && strcmp(line, "-->") == 0;
    }
    fclose(file);
    return found;
}

static void check(const char *file, const char *section)
{
    CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
    (has_blocks(file, section) ? format_rig_cases : format_rig_refuses)(&rig, file, section, NULL);
}

int main(void)
{
    return sections_run("formats", FOLDER, is_wanted, check);
}
