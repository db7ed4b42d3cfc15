/* Frees that wait for the work of other streams: when they complete, and what they take of the
 * host. */
#include "allocators/deferred.h"
#include "tests/support/test.h"

#define BLOCKS 200

/* A backing whose fences are done in the order of their making, up to `done`. */
struct rig {
    struct ar_backing backing;
    struct ar_host host;
    struct deferred deferred;
    uint64_t made, done;
    unsigned completed[BLOCKS];
};

static struct rig *of(struct ar_backing *backing)
{
    return (struct rig *)backing;
}

static struct ar_backing_ticket fence(struct ar_backing *backing, uint32_t stream)
{
    return (struct ar_backing_ticket){stream, ++of(backing)->made};
}

static bool is_done(struct ar_backing *backing, struct ar_backing_ticket ticket)
{
    return ticket.value <= of(backing)->done;
}

static void wait(struct ar_backing *backing, struct ar_backing_ticket ticket)
{
    if (of(backing)->done < ticket.value)
        of(backing)->done = ticket.value;
}

static void completes(void *argument, uint32_t block)
{
    ((struct rig *)argument)->completed[block]++;
}

static void open_rig(struct rig *rig)
{
    static const struct ar_backing_ops ops = {.fence = fence, .done = is_done, .wait = wait};
    *rig = (struct rig){.backing.ops = &ops};
    deferred_open(&rig->deferred, &rig->backing, &rig->host, completes, rig);
}

static void close_rig(struct rig *rig)
{
    assert_int_equal(rig->deferred.pending_events, 0);
    deferred_close(&rig->deferred);
    assert_int_equal(rig->host.now_bytes, 0);
}

static void free_used(struct rig *rig, uint32_t block, uint32_t stream)
{
    assert_true(deferred_use(&rig->deferred, block, 0, stream));
    assert_true(deferred_free(&rig->deferred, block));
}

/* A run of any length in which some frees are always pending takes no more of the host. */
TEST(pending_frees_take_bounded_memory)
{
    CLOSED(close_rig) struct rig rig;
    unsigned sum = 0;
    open_rig(&rig);
    for (uint32_t i = 0; i < 50000; i++) {
        assert_true(deferred_use(&rig.deferred, i % BLOCKS, 0, 2));
        free_used(&rig, i % BLOCKS, 1);
        rig.done = rig.made < 20 ? 0 : rig.made - 20;
        deferred_poll(&rig.deferred);
        assert_int_equal(rig.deferred.pending_events, rig.made - rig.done);
    }
    assert_true(rig.host.peak_bytes < 6000);
    deferred_wait_all(&rig.deferred);
    for (unsigned i = 0; i < BLOCKS; i++)
        sum += rig.completed[i];
    assert_int_equal(sum, 50000);
}

/* Blocks are named by indices: their records have a quarter of room to spare. */
TEST(a_high_block_takes_the_room_below_it)
{
    CLOSED(close_rig) struct rig rig;
    open_rig(&rig);
    assert_true(deferred_use(&rig.deferred, 1000000, 0, 1));
    assert_in_range(rig.host.now_bytes, 10000000, 10100000);
    assert_false(deferred_is_used(&rig.deferred, 999999));
    deferred_forget(&rig.deferred, 1000000);
    assert_false(deferred_free(&rig.deferred, 1000000));
}

/* Each block is used by many streams, whose numbers come in no order, and is free after all. */
TEST(a_free_completes_after_all_streams)
{
    CLOSED(close_rig) struct rig rig;
    open_rig(&rig);
    for (unsigned round = 1; round < 3; round++) {
        for (uint32_t i = 0; i < BLOCKS * 20; i++) {
            assert_true(deferred_use(&rig.deferred, i % BLOCKS, 0, 1 + (i / BLOCKS * 7 + i) % 20));
            assert_true(deferred_use(&rig.deferred, i % BLOCKS, 0,
                                     1 + (i / BLOCKS * 7 + i) % 20)); /* again */
        }
        uint64_t before = rig.made;
        for (uint32_t block = 0; block < BLOCKS; block++) {
            assert_true(deferred_free(&rig.deferred, block));
            assert_false(deferred_is_used(&rig.deferred, block));
        }
        uint64_t each = (rig.made - before) / BLOCKS;
        assert_int_equal(each, 20);
        assert_int_equal(rig.deferred.pending_events, each * BLOCKS);
        rig.done = before + each - 1; /* all but one of the first block */
        deferred_poll(&rig.deferred);
        assert_int_equal(rig.completed[0], round - 1);
        rig.done++;
        deferred_poll(&rig.deferred);
        assert_int_equal(rig.completed[0], round);
        assert_int_equal(rig.completed[1], round - 1);
        deferred_wait_all(&rig.deferred);
        assert_int_equal(rig.done, rig.made);
        for (unsigned i = 0; i < BLOCKS; i++)
            assert_int_equal(rig.completed[i], round);
    }
}

static bool is_block(void *argument, uint32_t block)
{
    return block == *(const uint32_t *)argument;
}

/* Waiting for one block completes it alone; waiting for the oldest, one of each stream. */
TEST(some_are_waited_for)
{
    CLOSED(close_rig) struct rig rig;
    uint32_t wanted = 4;
    open_rig(&rig);
    for (uint32_t block = 1; block <= 8; block++)
        free_used(&rig, block, block % 2 ? 7 : 3);
    rig.done = 2;
    deferred_poll(&rig.deferred);
    deferred_wait_for(&rig.deferred, is_block, &wanted);
    assert_int_equal(rig.done, 4);
    assert_memory_equal(rig.completed, ((unsigned[]){0, 1, 1, 0, 1, 0, 0}), 7 * sizeof(unsigned));
    deferred_wait_oldest(&rig.deferred);
    assert_int_equal(rig.done, 6);
    assert_memory_equal(rig.completed, ((unsigned[]){0, 1, 1, 1, 1, 0, 1}), 7 * sizeof(unsigned));
    assert_int_equal(rig.deferred.pending_events, 3);
    deferred_poll(&rig.deferred);
    assert_int_equal(rig.completed[5], 1);
    deferred_wait_all(&rig.deferred);
    assert_int_equal(rig.completed[7] + rig.completed[8], 2);
}
