/* The kinds of device that are built in. The table ends with NULL and belongs to the program
 * (bench/device_kinds.c), because sim cannot know the kinds in bench. */
#ifndef SIM_DEVICE_KINDS_H
#define SIM_DEVICE_KINDS_H

#include "sim/device.h"

extern const struct ar_device_kind *const device_kinds[];

#endif
