/* A real card through the CUDA driver: `cuda:ordinal=0,capacity=24GiB` in a table of kinds. */
#ifndef BENCH_CUDA_CUDA_DEVICE_H
#define BENCH_CUDA_CUDA_DEVICE_H

#include "sim/device.h"

extern const struct device_kind cuda_device_kind;

#endif
