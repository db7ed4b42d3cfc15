/* What a command line would do to the files that it names:
 * 1. Options of one of the names below write a file; any other value may name one that is read.
 * 2. An output is given once: the first would silently not be written.
 * 3. An output is no other output: the second would replace the first.
 * 4. An output is nothing that is read: a slip (`history FILE --json FILE`) would replace it.
 *    Compared are the files, so that another way of writing the path changes nothing. A second
 *    argument may be the first (`convert A A`): whoever writes that means it. */
#include "bench/cli/files.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

static const char *const outputs[] = {
    "calls",    "chrome",      "csv",    "hdr",        "journal", "json",   "junit",    "latex",
    "markdown", "openmetrics", "output", "placements", "plan",    "series", "snapshot", "stats",
};

static bool is_output(const struct cli_file *file)
{
    for (size_t i = 0; file->option && i < sizeof outputs / sizeof *outputs; i++)
        if (strcmp(file->option->name, outputs[i]) == 0)
            return true;
    return false;
}

/* Do both name one file? Standard output, terminals, pipes and /dev/null are none. */
static bool same_file(const char *left, const char *right)
{
    struct stat a, b;
    if (strcmp(left, "-") == 0)
        return false;
    bool there = stat(left, &a) == 0;
    if (there && !S_ISREG(a.st_mode))
        return false;
    if (strcmp(left, right) == 0)
        return true;
    return there && stat(right, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

enum ar_status cli_files_check(const struct cli_file *files, size_t count, struct ar_error *error)
{
    for (size_t i = 0; i < count; i++) {
        if (!is_output(&files[i]))
            continue;
        for (size_t k = 0; k < count; k++) {
            bool output = is_output(&files[k]);
            if (k == i || (output && k > i))
                continue;
            if (files[k].option == files[i].option)
                return ar_error_set(error, AR_INVALID, "--%s is given twice",
                                    files[i].option->name);
            if (!same_file(files[i].value, files[k].value))
                continue;
            if (output)
                return ar_error_set(error, AR_INVALID,
                                    "\"%s\" is named for two outputs; give each its own",
                                    files[i].value);
            return ar_error_set(
                error, AR_INVALID,
                "--%s would write over \"%s\", which is read; give it another place",
                files[i].option->name, files[i].value);
        }
    }
    return AR_OK;
}
