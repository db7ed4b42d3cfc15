/* Regressions that are known and accepted for a while: a file of
 *
 *   [waiver NAME]
 *   metric = PATTERN      (default *: every figure)
 *   policy = PATTERN      (a spec; default *)
 *   workload = PATTERN    (a name or spec; default *)
 *   commit = PATTERN      (at which it became worse; of a comparison the new side's; default *)
 *   at-most = 5%          (no worse than that; without it: however much)
 *   reason = TEXT         (required)
 *   until = 2027-01-31    (required; the last day on which it counts)
 *
 * Patterns are those of file names in a shell: * ? [..]. */
#ifndef BENCH_REGRESS_WAIVERS_H
#define BENCH_REGRESS_WAIVERS_H

#include <stdbool.h>
#include <stddef.h>

#include "allocators/base/status.h"

struct waiver {
    char *name, *metric, *policy, *workload, *commit, *reason;
    char until[11];
    double at_most; /* as a fraction; below 0: however much */
    bool expired;
    bool used;
};

struct waivers {
    struct waiver *items;
    size_t count;
};

/* Reads the file; `today` is YYYY-MM-DD. Errors name file and waiver. On success the caller
 * closes it. */
enum ar_status waivers_read(struct waivers *self, const char *path, const char *today,
                            struct ar_error *error) AR_STATUS_CHECKED;
void waivers_close(struct waivers *self);

/* A change for the worse. */
struct waiver_case {
    const char *metric, *policy, *workload, *workload_name;
    const char *commit; /* NULL: not known, so that only waivers without one cover it */
    double change;      /* as a fraction; below 0: it has no size */
};

/* The first that covers it, and marks it as used: one that has not expired where there is any, else
 * one that has. NULL: none. */
const struct waiver *waivers_find(struct waivers *self, const struct waiver_case *of);

/* True for a date as it is written here. */
bool waivers_is_date(const char *text);

#endif
