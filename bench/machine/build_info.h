/* What this program was built from, and how: part of the `context` of every result. The Makefile
 * writes the values to an object of their own when one of them changes, so that a commit costs one
 * compilation and a link, not a rebuild. */
#ifndef BENCH_MACHINE_BUILD_INFO_H
#define BENCH_MACHINE_BUILD_INFO_H

#include <stdbool.h>

struct build_info {
    const char *version;  /* "0.1.0", from the Makefile */
    const char *commit;   /* full hash; "unknown" outside of a git checkout */
    bool dirty;           /* tracked files differed from the commit */
    const char *variant;  /* "release", "san": the folder under .build */
    const char *compiler; /* first line of the compiler's --version */
    const char *flags;    /* all compiler flags, warnings included */
};

/* A constant. */
const struct build_info *build_info(void);

#endif
