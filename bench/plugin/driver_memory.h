/* The memory of a card for a policy inside another program. The program's threads come with any
 * context current, or none, and perhaps in the midst of capturing a graph. So at the first call
 * that reaches the driver the card's primary context is made current and the thread's capture mode
 * is relaxed, as PyTorch's own allocator does; driver_memory_leave puts both back. A request that
 * the policy serves by itself asks the driver for nothing. */
#ifndef BENCH_PLUGIN_DRIVER_MEMORY_H
#define BENCH_PLUGIN_DRIVER_MEMORY_H

#include <stdbool.h>

#include "allocators/relay.h"
#include "bench/cuda/api.h"
#include "sim/device.h"

struct driver_memory {
    struct relay relay; /* its base is the backing of the policy */
    struct ar_device *device;
    bool inside; /* the context is current */
    CUcontext before;
    CUstreamCaptureMode mode;
};

/* Opens the card on the process' primary context. `self` does not move. */
enum ar_status driver_memory_open(struct driver_memory *self, unsigned ordinal,
                                  struct ar_error *error) AR_STATUS_CHECKED;
void driver_memory_close(struct driver_memory *self);

void driver_memory_enter(struct driver_memory *self);
/* At the end of what the program asked for. */
void driver_memory_leave(struct driver_memory *self);

/* Bytes of the card that are free, as the driver says; 0 where it does not. */
uint64_t driver_memory_free_bytes(struct driver_memory *self);

/* The peak of physical bytes starts again from what is held now. */
void driver_memory_reset_peak(struct driver_memory *self);

/* Whether a stream may still use memory that was freed: without it there is no order to be
 * kept. */
bool driver_memory_has_uses(const struct driver_memory *self);

/* Whether work on the stream goes into a graph now. */
bool driver_memory_is_captured(struct driver_memory *self, CUstream stream);

/* The most bytes that the policy may have of the card from now on; what it has it keeps. */
void driver_memory_limit(struct driver_memory *self, uint64_t bytes);

#endif
