/* What the engine remembers of blocks: one slot each, found by the slot number of the trace,
 * and for workloads with several streams the streams that a block is used on. */
#include "sim/replay/run.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS_MOST (UINT32_C(1) << 31)

enum ar_status replay_slots_grow(struct replay *run, const struct trace_event *event,
                                 struct ar_error *error)
{
    if (event->slot >= SLOTS_MOST)
        return replay_bad_input(run, event, "its slot number is out of range", error);
    uint64_t count = run->slot_count ? run->slot_count : 64;
    while (count <= event->slot)
        count *= 2;
    struct replay_slot *slots =
        run->slots ? realloc(run->slots, count * sizeof *slots) : calloc(count, sizeof *slots);
    if (!slots)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for %llu blocks live at once",
                            (unsigned long long)count);
    if (run->slots)
        memset(slots + run->slot_count, 0, (count - run->slot_count) * sizeof *slots);
    run->slots = slots;
    run->slot_count = count;
    return AR_OK;
}

static enum ar_status grow_uses(struct replay *run, struct ar_error *error)
{
    uint32_t count = run->use_count ? run->use_count * 2 : 64;
    struct replay_use *uses = realloc(run->uses, count * sizeof *uses);
    if (!uses || count > UINT32_C(1) << 28)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for %u uses of blocks", count);
    for (uint32_t i = run->use_count; i < count; i++)
        uses[i].next = i + 1 < count ? i + 2 : 0;
    run->use_unused = run->use_count + 1;
    run->uses = uses;
    run->use_count = count;
    return AR_OK;
}

enum ar_status replay_use_add(struct replay *run, struct replay_slot *slot, uint32_t stream,
                              struct ar_error *error)
{
    if (stream == slot->stream)
        return AR_OK;
    for (uint32_t i = slot->uses; i; i = run->uses[i - 1].next)
        if (run->uses[i - 1].stream == stream)
            return AR_OK;
    if (!run->use_unused) {
        enum ar_status status = grow_uses(run, error);
        if (status != AR_OK)
            return status;
    }
    uint32_t node = run->use_unused;
    run->use_unused = run->uses[node - 1].next;
    run->uses[node - 1] = (struct replay_use){.stream = stream, .next = slot->uses};
    slot->uses = node;
    return AR_OK;
}

void replay_uses_end(struct replay *run, struct replay_slot *slot, uint32_t stream, uint64_t event)
{
    struct ar_device *device = run->device;
    const struct ar_policy_block *block = &slot->block;
    bool seen = stream == slot->stream;
    device->ops->used(device, block->address, block->granted_bytes, slot->stream, event);
    while (slot->uses) {
        uint32_t node = slot->uses;
        struct replay_use *use = &run->uses[node - 1];
        device->ops->used(device, block->address, block->granted_bytes, use->stream, event);
        seen |= use->stream == stream;
        slot->uses = use->next;
        use->next = run->use_unused;
        run->use_unused = node;
    }
    if (!seen)
        device->ops->used(device, block->address, block->granted_bytes, stream, event);
}
