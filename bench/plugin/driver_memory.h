/* The memory of a card for a policy inside another program. A thread of the program may have any
 * context current, or none, and may be capturing a graph. So the first driver call makes the card's
 * primary context current and relaxes the thread's capture mode, as PyTorch's own allocator does;
 * driver_memory_leave restores both. A request that needs no driver call changes neither. */
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
/* Called at the end of each call of the program. */
void driver_memory_leave(struct driver_memory *self);

/* Free bytes of the card as the driver reports them; 0 if it fails. */
uint64_t driver_memory_free_bytes(struct driver_memory *self);

/* Sets the peak of physical bytes to the current value. */
void driver_memory_reset_peak(struct driver_memory *self);

/* Whether a stream may still use freed memory. If not, no order has to be kept. */
bool driver_memory_has_uses(const struct driver_memory *self);

/* Whether the stream is being captured into a graph. */
bool driver_memory_is_captured(struct driver_memory *self, CUstream stream);

/* Limits the policy to so many bytes of the card. It keeps what it has. */
void driver_memory_limit(struct driver_memory *self, uint64_t bytes);

#endif
