/* The simulated device, `sim:profile=h100,...`, as a kind of device. */
#ifndef SIM_SIM_DEVICE_SIM_DEVICE_H
#define SIM_SIM_DEVICE_SIM_DEVICE_H

#include "sim/device.h"

extern const struct ar_device_kind sim_device_kind;

#endif
