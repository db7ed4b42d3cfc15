/* A real card through the CUDA driver: `cuda:ordinal=0,capacity=24GiB` in a table of kinds. */
#ifndef BENCH_CUDA_CUDA_DEVICE_H
#define BENCH_CUDA_CUDA_DEVICE_H

#include "sim/device.h"

extern const struct ar_device_kind cuda_device_kind;

struct cuda_options {
    uint64_t ordinal;
    uint64_t capacity_bytes; /* 0: all that the card has free */
    const char *record_addresses, *record_ranges;
    int matmul; /* enum kernels_matmul */
    /* Inside another program: memory alone, on streams that are the program's, and of the card
     * whatever the driver gives. There are no kernels, and no times. */
    bool embedded;
    /* Others come and go: whatever the driver gives, and what others hold is looked at again. */
    bool shared;
};

/* What the kind's hooks call in a build that has cuda.h. Statuses: MISSING where there is no
 * driver or no such card, INVALID for options that the card cannot meet. */
enum ar_status cuda_device_open(const struct cuda_options *options, struct ar_device **out,
                                struct ar_error *error) AR_STATUS_CHECKED;
bool cuda_device_available(char *text, size_t text_bytes);

/* The thread that opened a device may use it at once; another one says this first. One thread at a
 * time. */
void cuda_device_enter(struct ar_device *device);

/* The same in every build, for a program with devices on several cards: before it turns to another
 * one. */
void cuda_kind_enter(struct ar_device *device);

/* For an embedded device: the ordinal stands for a stream of the program, a CUstream, which may be
 * the default one, NULL. False: no host memory, or too many. */
bool cuda_device_adopt_stream(struct ar_device *device, uint32_t ordinal, void *stream);

#endif
