#include "bench/suite/suite_files.h"

static const struct {
    const char *name;
    bool one_run;
} about[SUITE_FILE_COUNT] = {
#define X(name, one_run) {#name, one_run},
    SUITE_FILES(X)
#undef X
};

const char *suite_file_name(enum suite_file file)
{
    return about[file].name;
}

bool suite_file_holds_one_run(enum suite_file file)
{
    return about[file].one_run;
}

enum suite_file suite_files_of_one_run(const struct suite_files *files)
{
    unsigned file = 0;
    while (file < SUITE_FILE_COUNT && !(files->path[file] && about[file].one_run))
        file++;
    return (enum suite_file)file;
}
