/* Kernels with an operation on blocks (`op=` in FORMAT.md). On a device that has memory, the keys
 * of a k event become a call of `kernel_op`; on a device that only knows how long an operation
 * takes, a length. Blocks are found by id, and the caller gives each a number of its own. Replays
 * and baselines use it. */
#pragma once

#include "allocators/base/map.h"
#include "sim/device.h"
#include "workloads/trace/source.h"
#include "workloads/trace/kernel_op_keys.h"

struct kernel_ops_entry {
    bool read, has_op;
    enum ar_kernel_op_kind kind;
    enum ar_device_type type;
    struct trace_kernel_op keys;
};

struct kernel_ops {
    struct ar_device *device;
    struct trace_source *source;
    struct kernel_ops_entry *entries; /* by index of the keys, each read once */
    size_t entry_count;
    struct ar_map blocks; /* from the id of a live block to the caller's number */
    uint64_t next_id;     /* of the next request, from which `~N` counts back */
    /* The address of the block with that number; bytes 0: it has none. */
    void (*memory)(const void *argument, uint64_t number, struct ar_device_operand *out);
    const void *argument;
};

/* Whether this device runs kernel ops. */
static inline bool kernel_ops_wanted(const struct ar_device *device)
{
    return device->ops->kernel_op != NULL;
}

/* Whether kernel_ops_length must be called: the device knows lengths, or prepares kernels. */
static inline bool kernel_ops_lengths(const struct ar_device *device)
{
    return device->ops->prepare != NULL || device->ops->kernel_op_ns != NULL;
}

/* For a k event on a device without memory: the host's time to prepare the operation passes, and
 * `*ns` is the length of the kernel, that of the event if the device knows none. INVALID with a
 * sentence: impossible keys, or, if the length is needed, a block that is not live. HOST_MEMORY. */
enum ar_status kernel_ops_length(struct kernel_ops *kernel_ops, const struct trace_event *event,
                                 uint64_t *ns, struct ar_error *error);

/* A request, with the caller's number for its block. HOST_MEMORY. */
enum ar_status kernel_ops_requested(struct kernel_ops *kernel_ops, uint64_t id, uint64_t number);
void kernel_ops_freed(struct kernel_ops *kernel_ops, uint64_t id);

/* Queues the kernel of a k event: its operation, or a kernel of its length if it has none or the
 * device does not support it. INVALID with a sentence: impossible keys, or a block that is not
 * live. Other statuses come from the device. */
enum ar_status kernel_ops_kernel(struct kernel_ops *kernel_ops, const struct trace_event *event,
                                 struct ar_error *error);

void kernel_ops_close(struct kernel_ops *kernel_ops);
