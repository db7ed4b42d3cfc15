/* The simulated device, from the outside: it is opened from a spec and used as any device. */
#ifndef SIM_SIM_DEVICE_SIM_DEVICE_H
#define SIM_SIM_DEVICE_SIM_DEVICE_H

#include "allocators/base/status.h"
#include "allocators/spec.h"
#include "sim/device.h"

/* `sim:profile=h100,...`: see sim_device_options. The caller closes it. INVALID, IO or
 * FORMAT with a sentence. */
enum status sim_device_open(const struct spec_link *link, struct device **out,
                            struct error *error) STATUS_CHECKED;

#endif
