/* Who uses which memory, for policies that leave the order between streams to the engine.
 *
 * 1. `used` keeps, for the memory behind a range, the point in the stream's work, with a fence.
 *    Work that is known to be done needs nothing.
 * 2. `handed_out` with order: the new owner's stream waits for each such point of another stream.
 *    How long it waits shows in the step's time only; the device does not tell it, so the stall
 *    returned is 0.
 * 3. Without order the policy answers for it. Races are not looked for here: what is a race does
 *    not depend on the device, so the simulated one finds it for sure, and a wrong byte shows it
 *    here (--verify). From then on uses need not be kept. */
#include "bench/cuda/state.h"

void cuda_used(struct ar_device *device, uint64_t address, uint64_t bytes, uint32_t ordinal,
               uint64_t event)
{
    struct cuda_device *self = cuda_of(device);
    const struct cuda_streams *streams = &self->streams;
    if (self->trusts_policy || ordinal >= streams->count ||
        (!streams->embedded &&
         streams->streams[ordinal].sequence <= streams->streams[ordinal].known))
        return;
    uint64_t sequence = cuda_stream_fence(self, ordinal);
    memory_use(&self->memory, address, bytes,
               (struct sim_use){.sequence = sequence, .event = event, .stream = ordinal});
}

struct hand_out {
    struct cuda_device *self;
    uint32_t stream;
};

static bool hand_out_visit(void *argument, const struct sim_use *use, uint64_t start, uint64_t end)
{
    const struct hand_out *hand_out = argument;
    (void)start;
    (void)end;
    cuda_stream_order(hand_out->self, use->stream, use->sequence, hand_out->stream);
    return true;
}

uint64_t cuda_handed_out(struct ar_device *device, uint64_t address, uint64_t bytes,
                         uint32_t stream, bool order, uint64_t event)
{
    struct cuda_device *self = cuda_of(device);
    (void)event;
    if (!order)
        self->trusts_policy = true;
    if (self->trusts_policy || !self->memory.hazards.ranges.root)
        return 0;
    struct hand_out hand_out = {.self = self, .stream = stream};
    while (bytes) {
        struct memory_piece piece = memory_piece_at(&self->memory, address, bytes);
        memory_pass_on(&self->memory, &piece, hand_out_visit, &hand_out);
        address += piece.length;
        bytes -= piece.length;
    }
    return 0;
}
