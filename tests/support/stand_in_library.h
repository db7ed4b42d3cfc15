/* The stand-in for the driver in this process. */
#pragma once

#include "tests/support/cuda_stand_in/stand_in.h"

/* Loads it from beside the folder of this program, with kernels that take their time; once it is
 * loaded, devices find it by its name. */
struct stand_in *stand_in_library(void);

/* Closes a device on it, and compares: nothing was left when the context was released. */
struct ar_device;
void stand_in_close(struct ar_device *device);
