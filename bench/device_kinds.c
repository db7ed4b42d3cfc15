/* The devices of this program. Another one is another line here. */
#include "sim/device.h"

#include "bench/cuda/cuda_device.h"

const struct ar_device_kind *const device_kinds[] = {
    &sim_device_kind,
    &cuda_device_kind,
    NULL,
};
