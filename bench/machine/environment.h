/* Where and how a result was made: all that the result record holds of this machine. */
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
    char governor[32];     /* "" where the machine has none */
    char hypervisor[64];   /* "" on bare metal, as far as the processor says */
    char machine[128];     /* vendor and product; "" where it does not say */
    char numa_nodes[32];   /* "0-1"; "" where the kernel does not say */
    struct nvml_card card; /* the first card that is used */
    unsigned card_ordinal;
    unsigned cpus;
    uint64_t seed;
    int argc; /* the command and its arguments, borrowed */
    char *const *argv;
};

/* Looks around. What cannot be found out stays empty: never fails. */
void environment_capture(struct environment *self, int argc, char *const *argv, uint64_t seed);

/* Looks at the card of that device spec, before and after the runs. Does nothing for `sim`. */
void environment_card_before(struct environment *self, const char *device);
void environment_card_after(struct environment *self);

/* True for a variable ("NAME=VALUE") by which frameworks and the driver choose how memory is
 * allocated. */
bool environment_is_allocator_variable(const char *variable);

/* The first line of a file, without its end; "" where it cannot be read. */
void environment_line(const char *path, char *text, size_t text_bytes);

#endif
