/* The kinds of memory that every policy must support, for conformance tests. */
#pragma once

#include "sim/device.h"

#define MEMORIES 3

struct memory {
    const char *name;
    struct ar_device *device; /* NULL: the fake one */
    void *fake;
    struct ar_backing *backing;
};

/* Kind 0: the fake backing; 1: the simulated device with profile bump; 2: with profile h100.
 * `cap_bytes` is its capacity. Fails the test if it cannot be opened. */
void memory_open(struct memory *memory, int kind, uint64_t cap_bytes);

/* Bytes that have not been released. */
uint64_t memory_held(const struct memory *memory);
void memory_close(struct memory *memory);
