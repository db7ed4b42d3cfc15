/* A real card through the CUDA driver: `cuda:ordinal=0,capacity=24GiB` in a table of kinds. */
#ifndef BENCH_CUDA_CUDA_DEVICE_H
#define BENCH_CUDA_CUDA_DEVICE_H

#include "sim/device.h"

extern const struct device_kind cuda_device_kind;

struct cuda_options {
    uint64_t ordinal;
    uint64_t capacity_bytes; /* 0: all that the card has free */
    const char *record_addresses, *record_ranges;
    int matmul; /* enum kernels_matmul */
};

/* What the kind's hooks call in a build that has cuda.h. Statuses: MISSING where there is no
 * driver or no such card, INVALID for options that the card cannot meet. */
enum status cuda_device_open(const struct cuda_options *options, struct device **out,
                             struct error *error) STATUS_CHECKED;
bool cuda_device_available(char *text, size_t text_bytes);

/* The thread that opened a device may use it at once; another one says this first. One thread at a
 * time. */
void cuda_device_enter(struct device *device);

#endif
