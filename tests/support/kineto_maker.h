/* Kineto traces of any size, made from a seed, laid out as the profiler lays them out. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct kineto_making {
    uint64_t seed;
    uint64_t bytes;        /* the approximate size of the file */
    unsigned memory_every; /* host operations for each memory event; 0: 16 */
    bool without_addresses;
    bool shuffled; /* neighbours are swapped, so that times go back */
};

/* The counts that a reader must find. */
struct kineto_made {
    uint64_t allocs, frees, kernels, steps, live_bytes, peak_bytes;
};

/* Writes the whole file and its counts to `made`. A failed write stops the test. */
void kineto_make(FILE *file, const struct kineto_making *making, struct kineto_made *made);
