/* Where and how a result was made: all that the result record holds of this machine. */
#ifndef BENCH_SUITE_ENVIRONMENT_H
#define BENCH_SUITE_ENVIRONMENT_H

#include <stdint.h>

#include "bench/suite/build_info.h"

struct environment {
    const struct build_info *build;
    char time[32]; /* UTC, ISO 8601 */
    char host[65];
    char kernel[160];
    char cpu[128];
    char governor[32]; /* "" where the machine has none */
    unsigned cpus;
    uint64_t seed;
    int argc; /* the command and its arguments, borrowed */
    char *const *argv;
};

/* Looks around. What cannot be found out stays empty: never fails. */
void environment_capture(struct environment *self, int argc, char *const *argv, uint64_t seed);

#endif
