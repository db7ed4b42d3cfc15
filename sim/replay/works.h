/* Kernels that work on blocks: the keys of k events become calls of `work` on a device that has
 * memory, and lengths on one that only knows how long they take. Blocks are found by id; what they
 * are is up to the caller, who gives each a number. */
#ifndef SIM_REPLAY_WORKS_H
#define SIM_REPLAY_WORKS_H

#include "sim/device.h"
#include "workloads/trace/id_map.h"
#include "workloads/trace/source.h"
#include "workloads/trace/work_keys.h"

struct works_entry {
    bool read, works;
    enum device_work_kind kind;
    enum device_type type;
    struct trace_work keys;
};

struct works {
    struct device *device;
    struct trace_source *source;
    struct works_entry *entries; /* by index of the keys: each is read once */
    size_t entry_count;
    struct id_map blocks; /* the caller's number of each block that is there */
    uint64_t next_id;
    /* Where the block with that number lies now; bytes 0: nowhere. */
    void (*place)(const void *argument, uint64_t number, struct device_operand *out);
    const void *argument;
};

/* Whether kernels of a run on this device can do work. */
static inline bool works_wanted(const struct device *device)
{
    return device->ops->work != NULL;
}

/* Whether works_length has anything to say on this device. */
static inline bool works_lengths(const struct device *device)
{
    return device->ops->prepare != NULL || device->ops->work_ns != NULL;
}

/* A k event on a device that cannot do its work: the host does what it does for it first, and `*ns`
 * is the kernel's length, the event's own where the device knows none. INVALID with a sentence: keys
 * that cannot be, or, where the length is asked for, a block that is not live. HOST_MEMORY. */
enum status works_length(struct works *works, const struct trace_event *event, uint64_t *ns,
                         struct error *error) STATUS_CHECKED;

/* A request: `number` is the caller's. HOST_MEMORY. */
enum status works_born(struct works *works, uint64_t id, uint64_t number) STATUS_CHECKED;
void works_gone(struct works *works, uint64_t id);

/* A k event: queues its work, or a kernel of its length where it has none or the device does not
 * know how (UNSUPPORTED). INVALID with a sentence: keys that cannot be, or a block that is not
 * live. Others are the device's. */
enum status works_kernel(struct works *works, const struct trace_event *event,
                         struct error *error) STATUS_CHECKED;

void works_close(struct works *works);

#endif
