/* Kineto traces of any size, made from a seed, laid out as the profiler lays them out. */
#ifndef TESTS_SUPPORT_KINETO_MAKER_H
#define TESTS_SUPPORT_KINETO_MAKER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct kineto_making {
    uint64_t seed;
    uint64_t bytes;        /* about so long */
    unsigned memory_every; /* one memory event in so many host operations; 0: 16 */
    bool without_addresses;
    bool shuffled; /* neighbours change places, so that times go back */
};

/* What a reader must find in it. */
struct kineto_made {
    uint64_t allocs, frees, kernels, steps, live_bytes, peak_bytes;
};

/* Writes the whole file; its counts go to `made`. A failed write stops the test. */
void kineto_make(FILE *file, const struct kineto_making *making, struct kineto_made *made);

#endif
