/* Memory that can sleep: a backing between policy and device.
 *
 * 1. While a region is open, segments that the policy obtains for it are made of a reserved address
 *    range and physical memory that is mapped there. Others are driver allocations as usual.
 * 2. A region sleeps: its physical memory is unmapped and released, and the addresses stay
 *    reserved. It wakes: new memory is created and mapped at the same addresses. The policy is not
 *    told, and its reserved bytes include sleeping segments, as torch.cuda.memory_reserved does.
 * 3. A segment that is dropped never wakes: vLLM releases segments without a block when it leaves
 *    a pool (use_memory_pool in vllm/device_allocator/cumem.py), and PyTorch's pool keeps them.
 *
 * Sources: vllm/device_allocator/cumem.py and csrc/cumem_allocator.cpp (commit 010c2112 of
 * vllm-project/vllm): sizes are rounded up to the granularity of cuMemCreate, a free waits for the
 * device. csrc/core.cpp of fzyzcjy/torch_memory_saver (commit 106fe07d). */
#ifndef SIM_TWIN_REGIONS_H
#define SIM_TWIN_REGIONS_H

#include "allocators/relay.h"
#include "sim/device.h"
#include "sim/twin/part.h"

struct regions_kind {
    enum twin_region_kind kind;
    char tag[48];
    bool backup, keeps_pool;
    uint32_t pool; /* 0: none */
};

enum regions_state { REGIONS_AWAKE, REGIONS_ASLEEP, REGIONS_DROPPED };

struct regions_segment {
    uint64_t address, bytes;
    ar_backing_handle handle; /* if it is awake */
    uint32_t region;          /* index */
    enum regions_state state;
    bool used;              /* for whoever walks the policy */
    struct twin_block copy; /* of its contents, in pinned memory of the process's pool */
    uint64_t host_address;  /* the same, of the driver; 0: none */
    uint32_t host_account;  /* of the process, of that copy */
};

struct regions {
    struct relay relay;
    struct ar_device *device;
    struct regions_kind *kinds; /* of all regions so far */
    size_t kind_count, kind_room;
    struct regions_segment *segments; /* by address */
    size_t segment_count, segment_room;
    uint32_t open;   /* 1 + index of the open region; 0: none */
    uint32_t target; /* the same, of the present request */
    uint64_t asleep_bytes;
    /* Copies of segments that were freed while they slept; the engine frees them. */
    struct twin_blocks orphans;
    /* The driver's copies that were freed with their segments. */
    void (*host_freed)(void *argument, uint32_t account, uint64_t bytes);
    void *argument;
};

/* The backing for the policy is &relay.base. Must not move. */
void regions_open(struct regions *self, struct ar_device *device);
void regions_close(struct regions *self); /* after the policy */

/* Opens a region; `pool` is new for POOL regions, and for the first SAVER region of its kind.
 * HOST_MEMORY. */
enum ar_status regions_begin(struct regions *self, const struct twin_region *region, uint32_t *pool,
                             uint32_t new_pool, struct ar_error *error) AR_STATUS_CHECKED;

/* The present request is for that pool. */
static inline void regions_route(struct regions *self, uint32_t pool)
{
    self->target = 0;
    if (self->open) {
        const struct regions_kind *kind = &self->kinds[self->open - 1];
        if (kind->kind != TWIN_REGION_POOL || kind->pool == pool)
            self->target = self->open;
    }
}

/* The segment that contains the address; NULL: none of a region. */
struct regions_segment *regions_find(const struct regions *self, uint64_t address);

/* Whether the address is in a segment without memory. */
static inline bool regions_asleep(const struct regions *self, uint64_t address)
{
    if (!self->asleep_bytes)
        return false;
    const struct regions_segment *segment = regions_find(self, address);
    return segment && segment->state != REGIONS_AWAKE;
}

/* One segment. Work of the device that uses it must be done. Statuses of the device: REFUSED if
 * there is no memory. */
enum ar_status regions_sleep(struct regions *self, struct regions_segment *segment,
                             enum regions_state state) AR_STATUS_CHECKED;
enum ar_status regions_wake(struct regions *self,
                            struct regions_segment *segment) AR_STATUS_CHECKED;

#endif
