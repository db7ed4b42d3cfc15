/* Waivers: regressions that are accepted until a date. The file has sections
 *
 *   [waiver NAME]
 *   metric = PATTERN      (default *: every figure)
 *   policy = PATTERN      (a spec; default *)
 *   workload = PATTERN    (a name or spec; default *)
 *   commit = PATTERN      (that made it worse; in a comparison the one of NEW; default *)
 *   at-most = 5%          (the largest change that it covers; default: any)
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
    double at_most; /* as a fraction; below 0: no limit */
    bool expired;
    bool used;
};

struct waivers {
    struct waiver *items;
    size_t count;
};

/* Reads the file; `today` is YYYY-MM-DD. Errors name the file and the waiver. On success the caller
 * closes it. */
enum ar_status waivers_read(struct waivers *self, const char *path, const char *today,
                            struct ar_error *error) AR_STATUS_CHECKED;
void waivers_close(struct waivers *self);

/* A change for the worse. */
struct waiver_case {
    const char *metric, *policy, *workload, *workload_name;
    const char *commit; /* NULL: unknown; only waivers without a commit cover it */
    double change;      /* its size, as a fraction; below 0: it has none */
};

/* The first waiver that covers the change, marked as used. An expired one is returned only if no
 * other covers it. NULL: none. */
const struct waiver *waivers_find(struct waivers *self, const struct waiver_case *of);

/* True for YYYY-MM-DD. */
bool waivers_is_date(const char *text);

#endif
