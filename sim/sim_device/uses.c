/* Uses of memory by streams, and races.
 *
 * 1. `used` records the stream's work so far as a use of the memory behind a range.
 * 2. `handed_out` checks all such uses by other streams. A use is harmless if it comes before all
 *    future work of the new owner: through events and waits, or because the host knows that it is
 *    done. That its time has passed is not enough: on a slower card it would not have.
 * 3. For other uses the new owner waits, or there is a race. Either way the old uses are removed:
 *    the use of the new owner comes after them.
 * 4. A stream that owns a block counts as using it even without a kernel: recordings do not contain
 *    copies, and some contain no kernels at all. */
#include <inttypes.h>
#include <stdio.h>

#include "sim/sim_device/state.h"

void sim_used(struct ar_device *device, uint64_t address, uint64_t bytes, uint32_t stream,
              uint64_t event)
{
    struct sim_device *self = (struct sim_device *)device;
    struct sim_moment here = sim_clock_here(&self->clock, stream);
    if (here.sequence == 0)
        here.sequence = sim_clock_touch(&self->clock, stream);
    memory_use(
        &self->memory, address, bytes,
        (struct sim_use){
            .sequence = here.sequence, .time_ns = here.time_ns, .event = event, .stream = stream});
}

struct hand_out {
    struct sim_device *self;
    uint64_t address; /* of the block */
    uint64_t event;
    uint64_t stall_ns;
    uint32_t stream;
    bool order, raced;
};

static void report_race(struct hand_out *hand_out, const struct sim_use *use, uint64_t bytes)
{
    struct sim_device *self = hand_out->self;
    if (!self->race[0])
        snprintf(self->race, sizeof self->race,
                 "event %" PRIu64 ": the block at %" PRIu64 " on stream %" PRIu32 " got %" PRIu64
                 " bytes that stream %" PRIu32 " may still use: they were freed at event %" PRIu64
                 " and nothing since makes stream %" PRIu32 " wait for it",
                 hand_out->event, hand_out->address, hand_out->stream, bytes, use->stream,
                 use->event, hand_out->stream);
    hand_out->raced = true;
}

static bool hand_out_visit(void *argument, const struct sim_use *use, uint64_t start, uint64_t end)
{
    struct hand_out *hand_out = argument;
    struct sim_clock *clock = &hand_out->self->clock;
    if (sim_clock_ordered(clock, use->stream, use->sequence, hand_out->stream))
        return true;
    if (hand_out->order)
        hand_out->stall_ns +=
            sim_clock_order(clock, use->stream, use->sequence, use->time_ns, hand_out->stream);
    else
        report_race(hand_out, use, end - start);
    return true;
}

static void report_unusable(struct hand_out *hand_out, uint64_t address, bool mapped)
{
    struct sim_device *self = hand_out->self;
    if (!self->race[0])
        snprintf(self->race, sizeof self->race,
                 "event %" PRIu64 ": the block at %" PRIu64 " on stream %" PRIu32
                 " got memory at %" PRIu64 " that %s",
                 hand_out->event, hand_out->address, hand_out->stream, address,
                 mapped ? "is mapped without access" : "is not mapped");
    hand_out->raced = true;
}

uint64_t sim_handed_out(struct ar_device *device, uint64_t address, uint64_t bytes, uint32_t stream,
                        bool order, uint64_t event)
{
    struct sim_device *self = (struct sim_device *)device;
    struct hand_out hand_out = {
        .self = self, .address = address, .event = event, .stream = stream, .order = order};
    while (bytes) {
        struct memory_piece piece = memory_piece_at(&self->memory, address, bytes);
        if (!piece.usable)
            report_unusable(&hand_out, address, piece.mapping != 0);
        memory_pass_on(&self->memory, &piece, hand_out_visit, &hand_out);
        address += piece.length;
        bytes -= piece.length;
    }
    (void)sim_clock_touch(&self->clock, stream);
    self->base.counters.races += hand_out.raced;
    sim_stream_stalls(self, hand_out.stall_ns);
    return hand_out.stall_ns;
}
