/* The files that a suite may write beside its table. */
#ifndef BENCH_SUITE_SUITE_FILES_H
#define BENCH_SUITE_SUITE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The option's name, and whether it holds the events of one run. (`chrome` holds events too, of as
 * many runs as there are in this process, or of one in a process of its own.) */
#define SUITE_FILES(X)                                                                             \
    X(json, false)                                                                                 \
    X(csv, false)                                                                                  \
    X(placements, true)                                                                            \
    X(series, true)                                                                                \
    X(stats, true)                                                                                 \
    X(calls, true)                                                                                 \
    X(snapshot, true)                                                                              \
    X(chrome, false)                                                                               \
    X(hdr, true)                                                                                   \
    X(latex, false)                                                                                \
    X(junit, false)                                                                                \
    X(openmetrics, false)

enum suite_file {
#define X(name, one_run) SUITE_FILE_##name,
    SUITE_FILES(X)
#undef X
        SUITE_FILE_COUNT
};

#define SUITE_CHROME_MOST 100000

/* Where each goes; NULL: not wanted, "-": standard output, and no table then. */
struct suite_files {
    const char *path[SUITE_FILE_COUNT];
    const char *hdr_of;          /* the histogram of `hdr`; NULL: alloc_ns */
    const uint64_t *chrome_most; /* values and driver calls of `chrome`; NULL: SUITE_CHROME_MOST;
                                    at 0 all of them */
    const char *journal;         /* what is done so far; NULL: not wanted */
};

const char *suite_file_name(enum suite_file file);
bool suite_file_holds_one_run(enum suite_file file);

/* The first that is wanted and holds one run; SUITE_FILE_COUNT: none. */
enum suite_file suite_files_of_one_run(const struct suite_files *files);

#endif
