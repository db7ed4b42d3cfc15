/* The requests of a trace as an offline placement problem: lifetimes and the live peak. */
#include "sim/bounds/bounds.h"
#include "tests/support/test.h"
#include "tests/support/tiny_trace.h"

static void expect(const char *events, enum replay_frees frees, const uint64_t (*lives)[2],
                   size_t count, uint64_t peak_bytes, uint64_t peak_event)
{
    CLOSED(close_trace) struct trace_source *source = tiny_trace(events);
    const struct bound_options options = {.frees = frees, .card_bytes = 1000};
    CLOSED(bound_blocks_close) struct bound_blocks blocks;
    assert_ok(bound_blocks_open(&blocks, source, &options, &test_error));
    assert_int_equal(blocks.count, count);
    for (size_t i = 0; i < count; i++)
        if (blocks.blocks[i].born != lives[i][0] || blocks.blocks[i].dies != lives[i][1])
            fail_msg("%s: block %zu lives from %" PRIu64 " to %" PRIu64, events, i,
                     blocks.blocks[i].born, blocks.blocks[i].dies);
    assert_int_equal(blocks.live_peak_bytes, peak_bytes);
    assert_int_equal(blocks.live_peak_event, peak_event);
}

/* The use on another stream ends nothing; the last block is never freed. */
#define EVENTS "a,0,1000 a,1,500 u,0,1 r,0 m,step a,2,300 f,0 a,3,100 r,1 f,1 r,3 f,3"

TEST(blocks_live_until_their_free_is_requested)
{
    static const uint64_t lives[][2] = {{0, 3}, {1, 8}, {5, 12}, {7, 10}};
    expect(EVENTS, REPLAY_AT_ONCE, lives, COUNT(lives), 1500, 1);
}

TEST(blocks_live_until_their_free_is_completed)
{
    static const uint64_t lives[][2] = {{0, 6}, {1, 9}, {5, 12}, {7, 11}};
    expect(EVENTS, REPLAY_RECORDED, lives, COUNT(lives), 1800, 5);
}

/* A probe that just fits on the card counts, one with a byte more does not. */
TEST(probes_that_no_card_serves_do_not_count)
{
    static const uint64_t lives[][2] = {{0, 5}, {1, 2}};
    expect("a,0,600 p,1,400 f,1 p,2,401 f,2 f,0", REPLAY_AT_ONCE, lives, COUNT(lives), 1000, 1);
}

/* Requests of one moment of another program are born at the event of the first, but not if a block
 * was freed in between: the later one may take its place. */
TEST(requests_of_one_moment_are_born_together)
{
    static const uint64_t lives[][2] = {{0, 3}, {0, 6}, {2, 6}, {4, 6}, {5, 6}};
#define AT(lower) ",x=1,lower=" #lower ",upper=9"
    expect("a,0,10" AT(0) " a,1,10" AT(0) " a,2,10" AT(1) " r,0 a,3,10" AT(1) " a,4,10" AT(2),
           REPLAY_AT_ONCE, lives, COUNT(lives), 40, 5);
}
