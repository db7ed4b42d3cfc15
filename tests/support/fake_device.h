/* A device for tests of the engine alone: memory from a fake backing, one clock that kernels and
 * recorded time advance, and a record of its calls. No call waits. */
#pragma once

#include "sim/device.h"
#include "tests/support/fake_backing.h"

#define FAKE_CALLS 64

struct fake_device {
    struct ar_device base;
    struct fake_backing memory;
    uint64_t host_ns, idle_ns;
    uint64_t syncs, records, waits;
    struct fake_call {
        char what; /* 'u' used, 'h' handed out and ordered, 'r' handed out, not ordered */
        uint64_t address, bytes, event;
        uint32_t stream;
    } calls[FAKE_CALLS];
    unsigned call_count;
};

/* On the heap; fake_device_close frees it. `cap_bytes` as in fake_backing_open. */
struct fake_device *fake_device_open(uint64_t cap_bytes);
void fake_device_close(struct fake_device *self);
