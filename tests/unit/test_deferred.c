/* Frees that wait for the work of other streams: when they complete, and what they take of the
 * host. */
#include "allocators/deferred.h"
#include "tests/support/test.h"

#define BLOCKS 64

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
    struct rig rig;
    open_rig(&rig);
    for (uint32_t i = 0; i < 100000; i++) {
        free_used(&rig, i % BLOCKS, 1);
        rig.done = rig.made < 10 ? 0 : rig.made - 10;
        deferred_poll(&rig.deferred);
        assert_int_equal(rig.deferred.pending_events, rig.made - rig.done);
    }
    assert_true(rig.host.peak_bytes < 4096);
    deferred_wait_all(&rig.deferred);
    unsigned sum = 0;
    for (unsigned i = 0; i < BLOCKS; i++)
        sum += rig.completed[i];
    assert_int_equal(sum, 100000);
    close_rig(&rig);
}

/* A block that two streams use is free after both. */
TEST(a_free_completes_after_all_streams)
{
    struct rig rig;
    open_rig(&rig);
    assert_true(deferred_use(&rig.deferred, 1, 0, 9));
    free_used(&rig, 1, 4);
    free_used(&rig, 2, 2);
    assert_false(deferred_free(&rig.deferred, 3));
    assert_int_equal(rig.deferred.pending_events, 3);
    rig.done = 1;
    deferred_poll(&rig.deferred);
    assert_int_equal(rig.completed[1], 0);
    deferred_wait_all(&rig.deferred);
    assert_int_equal(rig.completed[1], 1);
    assert_int_equal(rig.completed[2], 1);
    deferred_wait_all(&rig.deferred);
    close_rig(&rig);
}

static bool is_block(void *argument, uint32_t block)
{
    return block == *(const uint32_t *)argument;
}

/* Waiting for one block completes it alone; waiting for the oldest, one of each stream. */
TEST(some_are_waited_for)
{
    struct rig rig;
    uint32_t wanted = 2;
    open_rig(&rig);
    for (uint32_t block = 1; block <= 4; block++)
        free_used(&rig, block, block % 2 ? 7 : 3);
    deferred_wait_for(&rig.deferred, is_block, &wanted);
    assert_memory_equal(rig.completed, ((unsigned[]){0, 0, 1, 0, 0}), 5 * sizeof(unsigned));
    deferred_wait_oldest(&rig.deferred);
    assert_memory_equal(rig.completed, ((unsigned[]){0, 1, 1, 0, 1}), 5 * sizeof(unsigned));
    assert_int_equal(rig.deferred.pending_events, 1);
    deferred_poll(&rig.deferred);
    assert_int_equal(rig.completed[3], 1);
    close_rig(&rig);
}
