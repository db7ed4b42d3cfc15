/* The addresses of first fit for every block of a trace: live blocks never overlap, the arena ends
 * at the highest block, and a request without memory has no place. */
#include "sim/experiment/session.h"
#include "tests/support/test.h"
#include "tests/support/tiny_trace.h"
#include "workloads/workload.h"

TEST(known_places)
{
    CLOSED(arena_close) struct arena arena;
    CLOSED(close_trace)
    struct trace_source *source = tiny_trace("a,0,512 a,1,1000 a,2,0 a,3,9,space=pinned f,0 "
                                             "p,4,100 f,1 a,5,1536 k,0,1 r,4");
    assert_ok(arena_plan(&arena, source, &test_error));
    static const uint64_t wanted[] = {0, 512, ARENA_NOWHERE, ARENA_NOWHERE, 0, 512};
    assert_int_equal(arena.count, 6);
    assert_memory_equal(arena.offsets, wanted, sizeof wanted);
    assert_int_equal(arena.bytes, 2048);
    assert_false(arena.needed);
}

TEST(work_needs_the_arena)
{
    CLOSED(arena_close) struct arena arena;
    CLOSED(close_trace) struct trace_source *source = tiny_trace("a,0,512 k,0,1,op=set,out=0");
    assert_ok(arena_plan(&arena, source, &test_error));
    assert_true(arena.needed);
}

struct place {
    uint64_t start, end;
};

static int by_start(const void *left, const void *right)
{
    uint64_t a = ((const struct place *)left)->start, b = ((const struct place *)right)->start;
    return (a > b) - (a < b);
}

/* The blocks that are live now do not overlap. */
static void check_apart(const struct place *live, size_t slots, struct place *scratch)
{
    size_t count = 0;
    for (size_t i = 0; i < slots; i++)
        if (live[i].end)
            scratch[count++] = live[i];
    qsort(scratch, count, sizeof *scratch, by_start);
    for (size_t i = 1; i < count; i++)
        assert_true(scratch[i - 1].end <= scratch[i].start);
}

TEST(live_blocks_lie_apart)
{
    enum { SLOTS = 4096 };
    static struct place live[SLOTS], scratch[SLOTS];
    static const char *const workloads[] = {"gradient_tape:steps=2",
                                            "random:events=2000,target=64MiB"};
    for (size_t w = 0; w < COUNT(workloads); w++) {
        CLOSED(arena_close) struct arena arena;
        CLOSED(close_trace) struct trace_source *source;
        const struct trace_event *events;
        size_t count;
        uint64_t highest = 0;
        if (workload_open(workloads[w], &source, &test_error) != AR_OK ||
            arena_plan(&arena, source, &test_error) != AR_OK ||
            trace_rewind(source, &test_error) != AR_OK)
            fail_msg("%s", test_error.text);
        do {
            assert_int_equal(trace_next(source, &events, &count, &test_error), AR_OK);
            for (size_t i = 0; i < count; i++) {
                if (!trace_kind_has_block(events[i].kind))
                    continue;
                assert_true(events[i].slot < SLOTS);
                struct place *place = &live[events[i].slot];
                *place = (struct place){0, 0};
                if (events[i].kind == TRACE_ALLOC) {
                    uint64_t start = arena.offsets[events[i].id];
                    *place = (struct place){start, start + events[i].value};
                    highest = place->end > highest ? place->end : highest;
                    check_apart(live, SLOTS, scratch);
                }
            }
        } while (count);
        assert_true(highest <= arena.bytes && arena.bytes - highest < 512);
        assert_true(arena.bytes >= source->info.peak_live_bytes);
        assert_true(arena.bytes <= 2 * source->info.peak_live_bytes);
        for (size_t i = 0; i < SLOTS; i++)
            live[i].end = 0;
    }
}
