/* Where and how a result was made: the description of this machine in a result. */
#ifndef BENCH_MACHINE_ENVIRONMENT_H
#define BENCH_MACHINE_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/machine/build_info.h"
#include "bench/machine/nvml.h"

struct environment {
    const struct build_info *build;
    char time[32]; /* UTC, ISO 8601 */
    char host[65];
    char kernel[160];
    char cpu[128];
    char governor[32];     /* "": none */
    char hypervisor[64];   /* "": the processor reports none */
    char machine[128];     /* vendor and product; "": unknown */
    char numa_nodes[32];   /* "0-1"; "": unknown */
    struct nvml_card card; /* the first card that is used */
    unsigned card_ordinal;
    unsigned cpus;
    uint64_t seed;
    int argc; /* the command and its arguments, borrowed */
    char *const *argv;
};

/* Never fails: what cannot be determined stays empty. */
void environment_capture(struct environment *self, int argc, char *const *argv, uint64_t seed);

/* Reads the state of the card of that device spec, before and after the runs. Nothing for `sim`. */
void environment_card_before(struct environment *self, const char *device);
void environment_card_after(struct environment *self);

/* True for a variable ("NAME=VALUE") that sets how frameworks and the driver allocate memory. */
bool environment_is_allocator_variable(const char *variable);

/* The first line of a file, without the line end; "" if it cannot be read. */
void environment_line(const char *path, char *text, size_t text_bytes);

/* The number of workers: `wanted`, or with 0 one for each processor. */
unsigned environment_jobs(uint64_t wanted);

#endif
