/* The memory for a trace is bounded by the blocks live at once, not by its length: a source of nine
 * million events with 64 live blocks is written in each form, opened and pulled, and the resident
 * memory of this process does not grow. With a sanitizer, whose own memory is resident too, shorter
 * traces are only read back. */
#include <unistd.h>

#include "tests/support/test.h"
#include "tests/support/trace_rig.h"

enum { LIVE = 64, SPAN = 1024 };

#define EVENTS                                                                                     \
    UINT64_C(9000000) /* 288 MB as a binary file: above the limit from which pages are released */
#define ROOM_MIB 24

struct ring {
    struct trace_source base;
    uint64_t events, at;
    struct trace_event span[SPAN];
};

/* Alternating requests and frees; each block is freed LIVE requests later. */
static struct trace_event ring_event(uint64_t at)
{
    uint64_t id = at / 2;
    if (at % 2 && id >= LIVE)
        return (struct trace_event){.kind = TRACE_FREE_COMPLETED,
                                    .id = id - LIVE,
                                    .slot = (uint32_t)((id - LIVE) % (2 * LIVE))};
    if (at % 2)
        return (struct trace_event){.kind = TRACE_KERNEL, .value = 7};
    return (struct trace_event){.kind = TRACE_ALLOC,
                                .id = id,
                                .slot = (uint32_t)(id % (2 * LIVE)),
                                .value = 256 + id % 1000};
}

static enum ar_status ring_next(struct trace_source *self, const struct trace_event **events,
                                size_t *count, struct ar_error *error)
{
    struct ring *ring = (struct ring *)self;
    for (*count = 0; *count < SPAN && ring->at < ring->events; ++*count)
        ring->span[*count] = ring_event(ring->at++);
    *events = ring->span;
    return AR_OK;
}

static enum ar_status ring_rewind(struct trace_source *self, struct ar_error *error)
{
    ((struct ring *)self)->at = 0;
    return AR_OK;
}

static const struct trace_source_ops ring_ops = {.next = ring_next, .rewind = ring_rewind};

static uint64_t resident_mib(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*u %lu", &pages) != 1)
        fail_msg("/proc/self/statm cannot be read");
    (void)fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE) >> 20;
}

static void check_resident(uint64_t now_mib, uint64_t before_mib)
{
#ifdef __SANITIZE_ADDRESS__
    (void)now_mib, (void)before_mib; /* its shadow memory is resident too */
#else
    assert_true(now_mib <= before_mib + ROOM_MIB);
#endif
}

static void pull_in_bounded_memory(const char *path, uint64_t events, uint64_t before_mib)
{
    CLOSED(close_trace) struct trace_source *source = trace_rig_source(path);
    assert_int_equal(source->info.events, events);
    assert_int_equal(source->info.slots, LIVE + 1);
    check_resident(resident_mib(), before_mib);
    const struct trace_event *span;
    uint64_t pulled = 0, bytes = 0, most_mib = 0;
    size_t count;
    while (trace_next(source, &span, &count, &test_error) == AR_OK && count) {
        for (size_t i = 0; i < count; i++)
            bytes += span[i].kind == TRACE_ALLOC ? span[i].value : 0;
        pulled += count;
        uint64_t now_mib = resident_mib();
        most_mib = now_mib > most_mib ? now_mib : most_mib;
    }
    assert_int_equal(pulled, events);
    assert_int_equal(bytes, source->info.allocated_bytes);
    check_resident(most_mib, before_mib);
}

static void length_costs_no_memory(enum trace_format format, bool compress, uint64_t events)
{
#ifdef __SANITIZE_ADDRESS__
    events /= 16; /* memory is not measured here, so a shorter trace is enough */
#endif
    CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
    struct ring ring = {.base = {.ops = &ring_ops}, .events = events};
    const struct trace_write_options options = {.format = format, .compress = compress};
    uint64_t before_mib = resident_mib();
    assert_ok(trace_write(&ring.base, rig.path[0], &options, &test_error));
    check_resident(resident_mib(), before_mib);
    pull_in_bounded_memory(rig.path[0], events, before_mib);
}

TEST(a_long_mapped_trace)
{
    length_costs_no_memory(TRACE_FORMAT_BINARY, false, EVENTS);
}

TEST(a_long_packed_trace)
{
    length_costs_no_memory(TRACE_FORMAT_BINARY, true, EVENTS / 4);
}

TEST(a_long_text)
{
    length_costs_no_memory(TRACE_FORMAT_TEXT, false, EVENTS / 4);
}
