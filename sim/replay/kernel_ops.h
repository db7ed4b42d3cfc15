/* Kernels that work on blocks: the keys of k events become calls of `work` on a device that has
 * memory, and lengths on one that only knows how long they take. Blocks are found by id; what they
 * are is up to the caller, who gives each a number. */
#ifndef SIM_REPLAY_KERNEL_OPS_H
#define SIM_REPLAY_KERNEL_OPS_H

#include "allocators/base/map.h"
#include "sim/device.h"
#include "workloads/trace/source.h"
#include "workloads/trace/kernel_op_keys.h"

struct kernel_ops_entry {
    bool read, kernel_ops;
    enum ar_kernel_op_kind kind;
    enum ar_device_type type;
    struct trace_kernel_op keys;
};

struct kernel_ops {
    struct ar_device *device;
    struct trace_source *source;
    struct kernel_ops_entry *entries; /* by index of the keys: each is read once */
    size_t entry_count;
    struct ar_map blocks; /* the caller's number of each block that is there */
    uint64_t next_id;
    /* Where the block with that number lies now; bytes 0: nowhere. */
    void (*place)(const void *argument, uint64_t number, struct ar_device_operand *out);
    const void *argument;
};

/* Whether kernels of a run on this device can do work. */
static inline bool kernel_ops_wanted(const struct ar_device *device)
{
    return device->ops->kernel_op != NULL;
}

/* Whether kernel_ops_length has anything to say on this device. */
static inline bool kernel_ops_lengths(const struct ar_device *device)
{
    return device->ops->prepare != NULL || device->ops->kernel_op_ns != NULL;
}

/* A k event on a device that cannot do its work: the host does what it does for it first, and `*ns`
 * is the kernel's length, the event's own where the device knows none. INVALID with a sentence: keys
 * that cannot be, or, where the length is asked for, a block that is not live. HOST_MEMORY. */
enum ar_status kernel_ops_length(struct kernel_ops *kernel_ops, const struct trace_event *event,
                                 uint64_t *ns, struct ar_error *error) AR_STATUS_CHECKED;

/* A request: `number` is the caller's. HOST_MEMORY. */
enum ar_status kernel_ops_born(struct kernel_ops *kernel_ops, uint64_t id,
                               uint64_t number) AR_STATUS_CHECKED;
void kernel_ops_gone(struct kernel_ops *kernel_ops, uint64_t id);

/* A k event: queues its work, or a kernel of its length where it has none or the device does not
 * know how (UNSUPPORTED). INVALID with a sentence: keys that cannot be, or a block that is not
 * live. Others are the device's. */
enum ar_status kernel_ops_kernel(struct kernel_ops *kernel_ops, const struct trace_event *event,
                                 struct ar_error *error) AR_STATUS_CHECKED;

void kernel_ops_close(struct kernel_ops *kernel_ops);

#endif
