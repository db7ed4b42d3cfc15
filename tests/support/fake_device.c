#include "tests/support/fake_device.h"

#include <stdlib.h>

static struct fake_device *fake(struct ar_device *base)
{
    return (struct fake_device *)base;
}

static enum ar_status fake_outside(struct ar_device *base, uint64_t bytes)
{
    struct fake_device *self = fake(base);
    uint64_t held_bytes = self->memory.held_bytes - base->counters.outside_bytes;
    if (bytes > self->memory.cap_bytes - held_bytes)
        return AR_REFUSED;
    self->memory.held_bytes = held_bytes + bytes;
    base->counters.outside_bytes = bytes;
    return AR_OK;
}

static void fake_advance(struct ar_device *base, uint64_t nanoseconds)
{
    fake(base)->host_ns += nanoseconds;
}

static uint64_t fake_now(struct ar_device *base)
{
    return fake(base)->host_ns;
}

static uint64_t fake_idle_at(struct ar_device *base)
{
    return fake(base)->idle_ns;
}

static uint64_t fake_mark(struct ar_device *base)
{
    struct fake_device *self = fake(base);
    return self->idle_ns > self->host_ns ? self->idle_ns : self->host_ns;
}

static uint64_t fake_mark_ns(struct ar_device *base, uint64_t mark)
{
    return mark;
}

static void fake_kernel(struct ar_device *base, uint32_t stream, uint64_t nanoseconds)
{
    struct fake_device *self = fake(base);
    if (self->idle_ns < self->host_ns)
        self->idle_ns = self->host_ns;
    self->idle_ns += nanoseconds;
}

static void fake_record(struct ar_device *base, uint64_t event, uint32_t stream)
{
    fake(base)->records++;
}

static void fake_stream_wait(struct ar_device *base, uint32_t stream, uint64_t event)
{
    fake(base)->waits++;
}

static void fake_sync(struct ar_device *base, uint32_t stream)
{
    fake(base)->syncs++;
}

static void note(struct ar_device *base, char what, uint64_t address, uint64_t bytes,
                 uint32_t stream, uint64_t event)
{
    struct fake_device *self = fake(base);
    if (self->call_count < FAKE_CALLS)
        self->calls[self->call_count++] = (struct fake_call){what, address, bytes, event, stream};
}

static void fake_used(struct ar_device *base, uint64_t address, uint64_t bytes, uint32_t stream,
                      uint64_t event)
{
    note(base, 'u', address, bytes, stream, event);
}

static uint64_t fake_handed_out(struct ar_device *base, uint64_t address, uint64_t bytes,
                                uint32_t stream, bool order, uint64_t event)
{
    note(base, order ? 'h' : 'r', address, bytes, stream, event);
    return 0;
}

static const char *fake_race_text(struct ar_device *base)
{
    return "";
}

static bool fake_segment_of(struct ar_device *base, uint64_t address, struct ar_device_segment *out)
{
    const struct fake_backing *memory = &fake(base)->memory;
    for (uint64_t i = 0; i < memory->made; i++) {
        uint64_t start = memory->segments[i].address, bytes = memory->segments[i].bytes;
        if (address >= start && address - start < bytes) {
            *out = (struct ar_device_segment){.ordinal = i, .address = start, .bytes = bytes};
            return true;
        }
    }
    return false;
}

static const char *fake_device_problem(struct ar_device *base)
{
    return fake(base)->memory.problem;
}

static void fake_close(struct ar_device *base)
{
    free(fake(base));
}

struct fake_device *fake_device_open(uint64_t cap_bytes)
{
    static const struct ar_device_ops ops = {
        .close = fake_close,
        .outside = fake_outside,
        .advance = fake_advance,
        .now = fake_now,
        .idle_at = fake_idle_at,
        .kernel = fake_kernel,
        .event_record = fake_record,
        .stream_wait = fake_stream_wait,
        .sync = fake_sync,
        .used = fake_used,
        .handed_out = fake_handed_out,
        .race_text = fake_race_text,
        .segment_of = fake_segment_of,
        .problem = fake_device_problem,
        .mark = fake_mark,
        .mark_ns = fake_mark_ns,
    };
    struct fake_device *self = calloc(1, sizeof *self);
    if (!self)
        return NULL;
    fake_backing_open(&self->memory, cap_bytes);
    self->base = (struct ar_device){
        .ops = &ops,
        .backing = &self->memory.base,
        .clock_ns = &self->host_ns,
        .props = {.kind = "sim", .profile = "fake", .capacity_bytes = cap_bytes},
    };
    return self;
}

void fake_device_close(struct fake_device *self)
{
    ar_device_close(&self->base);
}
