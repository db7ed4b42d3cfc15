/* `vmm` under many requests: addresses are reused, bytes stay where memory moves, and a repeating
 * program stops moving memory. Its rules, step by step: tests/steps/vmm. */
#include "allocators/base/rng.h"
#include "tests/support/late_device.h"
#include "tests/support/policy_rig.h"
#include "tests/support/sim.h"
#include "tests/support/test.h"

#define PAGE (2 * AR_MIB)

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
