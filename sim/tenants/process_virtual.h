/* GPUOptions.experimental.virtual_devices, as gpu_device.cc checks it: lists of memory limits, one for each
 * GPU in the order in which they are seen. */
#ifndef SIM_TENANTS_PROCESS_VIRTUAL_H
#define SIM_TENANTS_PROCESS_VIRTUAL_H

#include "sim/tenants/process_parts.h"

#define VIRTUAL_MOST 16 /* devices of a GPU */

enum virtual_key { VIRTUAL_LIMITS, VIRTUAL_PRIORITIES, VIRTUAL_ORDINALS, VIRTUAL_KEYS };

struct process_virtual {
    size_t gpu_count[VIRTUAL_KEYS]; /* lists of each kind; limits: 0 where the option is not set */
    size_t count[VIRTUAL_KEYS][PROCESS_CARDS];
    uint64_t mib[PROCESS_CARDS][VIRTUAL_MOST];
};

/* Takes the line if it is one of virtual_devices, virtual_device_priorities and
 * virtual_device_ordinals; `*taken` says so. Its lists have " / " between. */
enum ar_status process_virtual_line(struct process_virtual *self, struct process_reading *reading,
                                    const struct process_line *line, bool *taken) AR_STATUS_CHECKED;

/* What the framework says to them when it makes its devices, with `gpu_count` GPUs that it may use. */
enum ar_status process_virtual_check(const struct process_virtual *self,
                                     struct process_reading *reading,
                                     const struct process_line *line,
                                     size_t gpu_count) AR_STATUS_CHECKED;

#endif
