/* `vmm`: reuse of addresses, memory that moves only when no work uses it, blocks that other streams
 * use, memory left to other users, and a repeating program that stops moving memory. On the
 * simulated device, which refuses to unmap under pending work and detects races; tests of bytes use
 * the device that runs late and has memory. */
#include "allocators/base/rng.h"
#include "tests/support/fake_backing.h"
#include "tests/support/late_device.h"
#include "tests/support/policy_rig.h"
#include "tests/support/sim.h"
#include "tests/support/test.h"

#define PAGE (2 * AR_MIB)
#define MS   UINT64_C(1000000)

enum { A, B };

/* A request. Its stream uses the block from now on. */
static enum ar_status ask(struct device_rig *rig, uint64_t bytes, uint32_t stream, bool may_fail,
                          struct ar_policy_block *block)
{
    const struct ar_policy_request request = {
        .bytes = bytes, .stream = stream, .may_fail = may_fail};
    return device_rig_ask(rig, &request, block);
}

static struct ar_policy_block take(struct device_rig *rig, uint64_t bytes, uint32_t stream)
{
    struct ar_policy_block block;
    assert_int_equal(ask(rig, bytes, stream, false, &block), AR_OK);
    return block;
}

static uint64_t calls(const struct device_rig *rig, enum ar_device_call call)
{
    return rig->device->counters.calls[call];
}

/* All except events. */
static uint64_t driver_calls(const struct device_rig *rig)
{
    uint64_t sum = 0;
    for (int call = 0; call < AR_DEVICE_CALL_COUNT; call++)
        sum += call == AR_DEVICE_CALL_event ? 0 : calls(rig, (enum ar_device_call)call);
    return sum;
}

static uint64_t now(const struct device_rig *rig)
{
    return rig->device->ops->now(rig->device);
}

/* ---- handles --------------------------------------------------------------------------------- */

/* The handles and pages of a first block on a card of 5 GiB. */
static void first_block(uint64_t bytes, uint64_t handles, uint64_t pages)
{
    CLOSED(device_rig_close) struct device_rig rig;
    device_rig_open(&rig, "vmm", "sim:capacity=5GiB");
    struct ar_policy_block block = take(&rig, bytes, A);
    assert_int_equal(calls(&rig, AR_DEVICE_CALL_create), handles);
    assert_int_equal(rig.device->counters.physical_bytes, pages * PAGE);
    device_rig_give(&rig, &block, A);
}

/* 1/128 of this card is 20 pages, limited to 16; 1/256 is 10 pages. */
TEST(own_handles_are_as_large_as_shared_ones)
{
    first_block(64 * PAGE, 4, 64);
    first_block(16 * PAGE, 1, 16);
    first_block(PAGE, 1, 1);
    first_block(3 * PAGE, 1, 3);
}

/* A page in which a block ends is shared: it comes with the last whole pages of the block and with
 * some pages after it. If a block ends at a page boundary, nothing more is taken. */
TEST(one_handle_goes_over_the_end_of_a_block)
{
    first_block(3 * PAGE + PAGE / 2, 1, 10);
    first_block(18 * PAGE + PAGE / 2, 2, 16 + 9);
}

/* While memory is short, the pages of a block are separate from those that it shares. */
TEST(own_pages_stay_apart_while_memory_is_short)
{
    CLOSED(device_rig_close) struct device_rig rig;
    device_rig_open(&rig, "vmm", "sim:capacity=5GiB");
    struct ar_policy_block most = take(&rig, 1700 * PAGE, A);
    uint64_t before = rig.device->counters.physical_bytes;
    uint64_t made = calls(&rig, AR_DEVICE_CALL_create);
    struct ar_policy_block block = take(&rig, PAGE + PAGE / 2, A);
    assert_int_equal(calls(&rig, AR_DEVICE_CALL_create) - made, 2);
    assert_int_equal(rig.device->counters.physical_bytes - before, PAGE + 6 * PAGE);
    device_rig_give(&rig, &most, A);
    device_rig_give(&rig, &block, A);
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* A window of live blocks of changing sizes moves many times over the length of a range: freed
 * places are used again, and only the first range is reserved. */
TEST(places_given_up_are_used_again)
{
    enum { WINDOW = 5, REQUESTS = 3000 };
    CLOSED(device_rig_close) struct device_rig rig;
    struct ar_policy_block window[WINDOW];
    struct ar_rng rng = ar_rng_of(7);
    uint64_t given_bytes = 0;
    device_rig_open(&rig, "vmm", "sim:capacity=76MiB");
    for (int i = 0; i < REQUESTS; i++) {
        if (i >= WINDOW)
            device_rig_give(&rig, &window[i % WINDOW], A);
        window[i % WINDOW] = take(&rig, PAGE + ar_rng_below(&rng, 6 * PAGE), A);
        given_bytes += window[i % WINDOW].granted_bytes;
    }
    assert_true(given_bytes > 50 * 152 * AR_MIB);
    assert_int_equal(calls(&rig, AR_DEVICE_CALL_reserve), 1);
    assert_true(calls(&rig, AR_DEVICE_CALL_unmap) > 0); /* it was not a rest that kept it there */
}

/* Small blocks start with an eighth of the addresses of the device. If these do not suffice,
 * another range is added, until all blocks fit. */
TEST(where_addresses_run_out_a_range_is_added)
{
    enum { BLOCKS = 40 };
    CLOSED(device_rig_close) struct device_rig rig;
    struct ar_policy_block blocks[BLOCKS];
    device_rig_open(&rig, "vmm", "sim:capacity=64MiB");
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < BLOCKS; i++) {
            blocks[i] = take(&rig, AR_MIB, A);
            for (int j = 0; j < i; j++) /* no two at the same address */
                assert_true(blocks[i].address >= blocks[j].address + AR_MIB ||
                            blocks[j].address >= blocks[i].address + AR_MIB);
        }
        assert_int_equal(calls(&rig, AR_DEVICE_CALL_reserve), 3); /* 8, 16 and 32 MiB */
        for (int i = 0; i < BLOCKS; i++)
            device_rig_give(&rig, &blocks[i], A);
    }
}

/* ---- fences ---------------------------------------------------------------------------------- */

/* All memory of the card is under a free block of A, whose kernel still runs, and B needs it. The
 * device refuses to unmap before the kernel is done, so the request waits exactly that long. */
TEST(memory_moves_once_its_work_is_done)
{
    CLOSED(device_rig_close) struct device_rig rig;
    device_rig_open(&rig, "vmm", "sim:capacity=64MiB");
    struct ar_policy_block block = take(&rig, 60 * AR_MIB, A);
    rig.device->ops->kernel(rig.device, A, 50 * MS);
    device_rig_give(&rig, &block, A);
    struct ar_policy_block other = take(&rig, 60 * AR_MIB, B);
    assert_true(now(&rig) >= 50 * MS);
    assert_true(rig.device->counters.stall_ns > 40 * MS);
    assert_true(calls(&rig, AR_DEVICE_CALL_unmap) > 0);
    device_rig_check(&rig);
    /* When the work is done, no request waits. */
    rig.device->ops->sync(rig.device, UINT32_MAX);
    uint64_t stall_ns = rig.device->counters.stall_ns;
    device_rig_give(&rig, &other, B);
    (void)take(&rig, 60 * AR_MIB, A);
    assert_int_equal(rig.device->counters.stall_ns, stall_ns);
}

/* A frees one block, then another under a much longer kernel. The memory that B needs is under the
 * first, so B does not wait for the second. */
TEST(only_the_first_fence_is_waited_for)
{
    CLOSED(device_rig_close) struct device_rig rig;
    device_rig_open(&rig, "vmm", "sim:capacity=64MiB");
    struct ar_policy_block first = take(&rig, 20 * AR_MIB, A);
    struct ar_policy_block held = take(&rig, 4 * AR_MIB, A);
    struct ar_policy_block second = take(&rig, 24 * AR_MIB, A); /* more is reserved than is free */
    rig.device->ops->kernel(rig.device, A, 50 * MS);
    device_rig_give(&rig, &first, A);
    rig.device->ops->kernel(rig.device, A, 5000 * MS);
    device_rig_give(&rig, &second, A);
    (void)take(&rig, 30 * AR_MIB, B);
    assert_in_range(now(&rig), 50 * MS, 500 * MS);
    device_rig_check(&rig);
    device_rig_give(&rig, &held, A);
}

/* Fences of two streams are not done: the one that was recorded first is waited for, whatever the
 * number of its stream. */
TEST(the_oldest_fence_of_all_streams_is_waited_for)
{
    for (uint32_t early = A; early <= B; early++) {
        CLOSED(device_rig_close) struct device_rig rig;
        uint32_t late = early == A ? B : A;
        device_rig_open(&rig, "vmm", "sim:capacity=64MiB");
        struct ar_policy_block blocks[2] = {take(&rig, 20 * AR_MIB, early),
                                            take(&rig, 20 * AR_MIB, late)};
        (void)take(&rig, 10 * AR_MIB, 2);
        rig.device->ops->kernel(rig.device, early, 50 * MS);
        rig.device->ops->kernel(rig.device, late, 5000 * MS);
        device_rig_give(&rig, &blocks[0], early);
        struct ar_policy_block block;
        assert_int_equal(ask(&rig, 100 * AR_MIB, 2, true, &block), AR_NO_MEMORY);
        assert_true(now(&rig) < 50 * MS); /* a request that may fail waits for nothing */
        device_rig_give(&rig, &blocks[1], late);
        (void)take(&rig, 30 * AR_MIB, 2);
        assert_in_range(now(&rig), 50 * MS, 500 * MS);
    }
}

/* While memory is short a fence is recorded when more than a sixteenth of the reserved memory was
 * freed, so that what is freed later does not delay its use. */
TEST(a_sixteenth_freed_has_a_fence)
{
    CLOSED(device_rig_close) struct device_rig rig;
    struct ar_policy_block blocks[15], block;
    device_rig_open(&rig, "vmm", "sim:capacity=64MiB");
    for (size_t i = 0; i < 15; i++)
        blocks[i] = take(&rig, 4 * AR_MIB, A);
    assert_int_equal(rig.policy.policy->totals.reserved_bytes, 60 * AR_MIB);
    assert_int_equal(ask(&rig, 100 * AR_MIB, B, true, &block), AR_NO_MEMORY);
    rig.device->ops->kernel(rig.device, A, 50 * MS);
    uint64_t before = calls(&rig, AR_DEVICE_CALL_event);
    device_rig_give(&rig, &blocks[0], A);
    assert_int_equal(calls(&rig, AR_DEVICE_CALL_event) - before, 1);
    rig.device->ops->kernel(rig.device, A, 5000 * MS);
    device_rig_give(&rig, &blocks[2], A);
    (void)take(&rig, 8 * AR_MIB, B); /* 4 MiB that are free, and the 4 MiB of the first block */
    assert_in_range(now(&rig), 50 * MS, 500 * MS);
}

static enum ar_status no_address_space(struct ar_backing *self, uint64_t bytes, uint64_t *address)
{
    return AR_REFUSED;
}

/* Without address space a request is not served, and a later one is. */
TEST(no_address_space_is_no_memory)
{
    FREED struct fake_backing *backing = malloc(sizeof *backing);
    assert_non_null(backing);
    fake_backing_open(backing, 64 * AR_MIB);
    fake_backing_virtual(backing, PAGE, 64 * AR_MIB);
    const struct ar_backing_ops *own = backing->base.ops;
    struct ar_backing_ops without = *own;
    without.reserve = no_address_space;
    backing->base.ops = &without;
    struct policy_rig rig;
    struct ar_policy_block block;
    assert_int_equal(policy_rig_open(&rig, "vmm", &backing->base, 0), AR_OK);
    enum ar_status status = policy_rig_alloc(&rig, 8 * AR_MIB, &block);
    assert_true(status == AR_REFUSED || status == AR_NO_MEMORY);
    assert_int_equal(rig.policy->totals.reserved_bytes, 0);
    backing->base.ops = own;
    assert_int_equal(policy_rig_alloc(&rig, 8 * AR_MIB, &block), AR_OK);
    assert_int_equal(policy_rig_free(&rig, &block), AR_OK);
    assert_int_equal(policy_rig_close(&rig), 0);
}

/* ---- blocks that other streams use ----------------------------------------------------------- */

/* A block of 30 MiB that stream A frees while work of 50 ms on B still reads it. */
static struct ar_policy_block free_requested_in_use(struct device_rig *rig)
{
    struct ar_policy_block block = take(rig, 30 * AR_MIB, A);
    assert_int_equal(ar_policy_use(rig->policy.policy, &block, B), AR_OK);
    rig->device->ops->kernel(rig->device, B, 50 * MS);
    rig->device->ops->used(rig->device, block.address, block.granted_bytes, B, ++rig->event);
    device_rig_give(rig, &block, A);
    return block;
}

/* While there is enough memory, the memory of the block stays pending. If there is no other, a
 * request waits for it and gets it without the driver. */
TEST(pending_blocks_come_back_after_their_fence)
{
    struct device_rig rig;
    device_rig_open(&rig, "vmm", "sim:capacity=64MiB");
    struct ar_policy_block block = free_requested_in_use(&rig);
    assert_int_equal(rig.policy.policy->totals.pending_bytes, 30 * AR_MIB);
    struct ar_policy_block other = take(&rig, 30 * AR_MIB, A);
    assert_true(other.address != block.address);
    assert_true(now(&rig) < 50 * MS);
    uint64_t before = driver_calls(&rig);
    struct ar_policy_block again = take(&rig, 30 * AR_MIB, A);
    assert_int_equal(again.address, block.address);
    assert_true(now(&rig) >= 50 * MS);
    assert_int_equal(driver_calls(&rig), before);
    assert_int_equal(rig.policy.policy->totals.pending_bytes, 0);
    device_rig_close(&rig);
}

/* The fence is done before the request, so nothing waits. */
TEST(a_done_fence_costs_no_wait)
{
    struct device_rig rig;
    device_rig_open(&rig, "vmm", "sim:capacity=64MiB");
    struct ar_policy_block block = free_requested_in_use(&rig);
    rig.device->ops->advance(rig.device, 60 * MS);
    uint64_t before = driver_calls(&rig);
    struct ar_policy_block again = take(&rig, 30 * AR_MIB, A);
    assert_int_equal(again.address, block.address);
    assert_int_equal(driver_calls(&rig), before);
    assert_int_equal(rig.device->counters.stall_ns, 0);
    device_rig_close(&rig);
}

/* ---- memory left to other users -------------------------------------------------------------- */

/* Other users took 8 MiB while the policy measured. A request that may fail leaves them as much
 * again. One that may not fail and needs it takes it, and then it is no longer kept. */
TEST(a_probe_leaves_what_others_took_last)
{
    struct device_rig rig;
    struct ar_policy_block probe;
    device_rig_open(&rig, "vmm", "sim:capacity=64MiB");
    (void)take(&rig, 8 * AR_MIB, A);
    assert_int_equal(rig.device->ops->outside(rig.device, 8 * AR_MIB), AR_OK);
    (void)take(&rig, 8 * AR_MIB, A); /* 40 are left */
    assert_int_equal(ask(&rig, 34 * AR_MIB, A, true, &probe), AR_NO_MEMORY);
    assert_int_equal(rig.device->counters.physical_bytes, 16 * AR_MIB);
    assert_int_equal(ask(&rig, 32 * AR_MIB, A, true, &probe), AR_OK);
    /* The next request is served, and other users take their memory again. */
    assert_int_equal(rig.device->ops->outside(rig.device, 16 * AR_MIB), AR_OK);
    device_rig_give(&rig, &probe, A);
    device_rig_close(&rig);

    device_rig_open(&rig, "vmm", "sim:capacity=64MiB");
    (void)take(&rig, 8 * AR_MIB, A);
    assert_int_equal(rig.device->ops->outside(rig.device, 8 * AR_MIB), AR_OK);
    struct ar_policy_block idle = take(&rig, 8 * AR_MIB, A);
    device_rig_give(&rig, &idle, A);
    struct ar_policy_block must = take(&rig, 44 * AR_MIB, B); /* 40 are left, and the idle ones */
    device_rig_give(&rig, &must, B);
    assert_int_equal(ar_policy_trim(rig.policy.policy, 0), AR_OK);
    device_rig_check(&rig);
    assert_int_equal(ask(&rig, 48 * AR_MIB, B, true, &probe), AR_OK);
    device_rig_close(&rig);
}

/* A probe that fails takes nothing from the next request. */
TEST(a_failed_probe_costs_the_next_request_nothing)
{
    CLOSED(device_rig_close) struct device_rig rig;
    struct ar_policy_block probe;
    device_rig_open(&rig, "vmm", "sim:capacity=64MiB");
    struct ar_policy_block kept = take(&rig, 20 * AR_MIB, A);
    struct ar_policy_block free_block = take(&rig, 20 * AR_MIB, A);
    device_rig_give(&rig, &free_block, A);
    assert_int_equal(ask(&rig, 46 * AR_MIB, B, true, &probe), AR_NO_MEMORY);
    device_rig_check(&rig);
    struct ar_policy_block next = take(&rig, 44 * AR_MIB, B); /* all that is left */
    device_rig_give(&rig, &next, B);
    device_rig_give(&rig, &kept, A);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

struct written {
    struct ar_policy_block block;
    uint64_t number; /* 0: none */
    uint32_t stream;
};

static void read_back(struct device_rig *rig, const struct written *written)
{
    assert_int_equal(rig->device->ops->verify(rig->device, written->block.address,
                                              written->block.requested_bytes, written->number,
                                              written->stream),
                     AR_OK);
}

/* A card so full that memory moves all the time, with blocks of two streams that stay: each has the
 * bytes that were written to it, at its address, until it is freed. */
TEST(moving_memory_leaves_live_bytes)
{
    enum { SLOTS = 24, REQUESTS = 1500 };
    CLOSED(device_rig_close) struct device_rig rig;
    struct written slots[SLOTS] = {{.number = 0}};
    struct ar_rng rng = ar_rng_of(11);
    struct ar_device_wrong wrong;
    uint64_t number = 0, refused = 0;
    device_rig_open_on(&rig, "vmm", late_device_open("sim:capacity=128MiB", 3));
    for (int i = 0; i < REQUESTS; i++) {
        struct written *slot = &slots[ar_rng_below(&rng, SLOTS)];
        if (slot->number) {
            read_back(&rig, slot);
            device_rig_give(&rig, &slot->block, slot->stream);
            slot->number = 0;
            continue;
        }
        uint32_t stream = (uint32_t)ar_rng_below(&rng, 2);
        uint64_t bytes = ar_rng_below(&rng, 4) ? PAGE + ar_rng_below(&rng, 8 * PAGE) : 512 * AR_KIB;
        enum ar_status status = ask(&rig, bytes, stream, false, &slot->block);
        refused += status != AR_OK;
        if (status != AR_OK)
            continue;
        *slot = (struct written){.block = slot->block, .number = ++number, .stream = stream};
        assert_int_equal(
            rig.device->ops->fill(rig.device, slot->block.address, bytes, number, stream), AR_OK);
    }
    for (int i = 0; i < SLOTS; i++)
        if (slots[i].number)
            read_back(&rig, &slots[i]);
    assert_int_equal(rig.device->ops->wrong(rig.device, &wrong), AR_OK);
    if (wrong.count)
        fail_msg("block %llu: %llu bytes are others'", (unsigned long long)wrong.block,
                 (unsigned long long)wrong.count);
    assert_true(late_device_counts(rig.device)->readings > number / 2);
    assert_true(refused > 0 && refused < number);                /* the card was full */
    assert_true(calls(&rig, AR_DEVICE_CALL_unmap) > number / 4); /* and memory moved */
}

/* ---- a repeating program --------------------------------------------------------------------- */

/* One step: nested blocks, blocks that outlive others, small blocks, on two streams. */
static void step(struct device_rig *rig)
{
    static const uint64_t sizes[] = {9 * AR_MIB,   40 * AR_MIB, 700 * AR_KIB, 3 * AR_MIB,
                                     64 * AR_MIB,  4 * AR_KIB,  17 * AR_MIB,  2 * AR_MIB,
                                     90 * AR_KIB,  33 * AR_MIB, 12 * AR_MIB,  5 * AR_MIB,
                                     300 * AR_KIB, 21 * AR_MIB, 50 * AR_MIB,  6 * AR_MIB};
    enum { COUNT = COUNT(sizes) };
    struct ar_policy_block blocks[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        blocks[i] = take(rig, sizes[i], i % 3 == 2 ? B : A);
        rig->device->ops->kernel(rig->device, i % 3 == 2 ? B : A, 10000);
        if (i % 4 == 3)
            device_rig_give(rig, &blocks[i - 2], (i - 2) % 3 == 2 ? B : A);
    }
    for (uint32_t i = COUNT; i-- > 0;)
        if (i % 4 != 1)
            device_rig_give(rig, &blocks[i], i % 3 == 2 ? B : A);
}

TEST(a_repeating_step_comes_to_rest)
{
    CLOSED(device_rig_close) struct device_rig rig;
    device_rig_open(&rig, "vmm", "sim:capacity=8GiB");
    step(&rig);
    assert_true(driver_calls(&rig) > 0);
    step(&rig);
    uint64_t before = driver_calls(&rig);
    uint64_t reserved_bytes = rig.policy.policy->totals.reserved_bytes;
    for (int i = 0; i < 20; i++) {
        step(&rig);
        assert_int_equal(driver_calls(&rig), before);
        assert_int_equal(rig.policy.policy->totals.reserved_bytes, reserved_bytes);
    }
    assert_int_equal(rig.device->counters.stall_ns, 0);
}

/* A trim waits for the work and then releases all but the bytes that it may keep. */
TEST(a_trim_gives_back_what_is_free)
{
    CLOSED(device_rig_close) struct device_rig rig;
    device_rig_open(&rig, "vmm", "sim:capacity=1GiB");
    struct ar_policy_block kept = take(&rig, 10 * AR_MIB, A);
    struct ar_policy_block block = take(&rig, 80 * AR_MIB, A);
    rig.device->ops->kernel(rig.device, A, 50 * MS);
    device_rig_give(&rig, &block, A);
    assert_int_equal(ar_policy_trim(rig.policy.policy, 40 * AR_MIB), AR_OK);
    assert_true(now(&rig) >= 50 * MS);
    assert_in_range(rig.device->counters.physical_bytes, 10 * AR_MIB + PAGE, 50 * AR_MIB);
    assert_int_equal(ar_policy_trim(rig.policy.policy, 0), AR_OK);
    assert_in_range(rig.device->counters.physical_bytes, 10 * AR_MIB, 10 * AR_MIB + 16 * PAGE);
    device_rig_check(&rig);
    device_rig_give(&rig, &kept, A);
    assert_int_equal(ar_policy_trim(rig.policy.policy, 0), AR_OK);
    assert_int_equal(rig.device->counters.physical_bytes, 0);
}

/* A trim that finds nothing to release waits for all work; a block that is freed after it may still
 * be in use when memory becomes short. */
TEST(a_trim_says_nothing_about_later_frees)
{
    CLOSED(device_rig_close) struct device_rig rig;
    device_rig_open(&rig, "vmm", "sim:capacity=256MiB");
    (void)take(&rig, 8192000, A);
    assert_int_equal(ar_policy_trim(rig.policy.policy, 0), AR_OK);
    struct ar_policy_block freed = take(&rig, 8192000, A);
    device_rig_give(&rig, &freed, A);
    assert_int_equal(rig.device->ops->outside(rig.device, 105 * AR_MIB), AR_OK);
    (void)take(&rig, 64 * AR_MIB, B);
    (void)take(&rig, 924976, A);
}
