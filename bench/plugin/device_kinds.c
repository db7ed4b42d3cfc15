/* The kinds of devices that the plug-in has: the card. */
#include <stddef.h>

#include "bench/cuda/cuda_device.h"
#include "sim/device_kinds.h"

const struct ar_device_kind *const device_kinds[] = {&cuda_device_kind, NULL};
