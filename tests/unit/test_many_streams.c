/* Tens of thousands of streams. The index that avoids a visit of every stream gives the same
 * decisions as a visit, and a program with the maximum number of streams ends with every policy.
 * No time is measured: if the work grew with the square of the streams, the second test would not
 * end within minutes. */
#include "allocators/base/rng.h"
#include "tests/support/amount.h"
#include "tests/support/policy_rig.h"
#include "tests/support/sim.h"
#include "tests/support/test.h"

enum { STREAMS = 200, SLOTS = 300 };

struct crowd {
    struct ar_device *device;
    struct policy_rig rig;
    struct ar_policy_block blocks[SLOTS];
    bool live[SLOTS];
};

/* A policy with a list for each stream; `fail_at`: which of the host's allocations for the first
 * request fails. False: that request did. */
static bool open_crowd(struct crowd *self, const char *policy, uint64_t fail_at)
{
    struct ar_policy_request request = {.bytes = AR_MIB, .stream = STREAMS - 1};
    *self = (struct crowd){.device = sim_test_open("sim:capacity=1GiB")};
    assert_int_equal(policy_rig_open(&self->rig, policy, self->device->backing, 0), AR_OK);
    self->rig.host.fail_at = fail_at ? self->rig.host.calls + fail_at : 0;
    self->live[0] = ar_policy_alloc(self->rig.policy, &request, &self->blocks[0]) == AR_OK;
    return self->live[0];
}

static void close_crowd(struct crowd *self)
{
    for (uint32_t i = 0; i < SLOTS; i++)
        if (self->live[i])
            assert_int_equal(ar_policy_free(self->rig.policy, &self->blocks[i], i % STREAMS),
                             AR_OK);
    assert_int_equal(policy_rig_close(&self->rig), 0);
    ar_device_close(self->device);
}

static enum ar_status turn(struct crowd *self, struct ar_rng *rng)
{
    uint32_t slot = (uint32_t)ar_rng_below(rng, SLOTS);
    uint32_t stream = (uint32_t)ar_rng_below(rng, STREAMS);
    struct ar_policy_request request = {
        .bytes = 1 + ar_rng_below(rng, ar_rng_below(rng, 4) ? AR_MIB : 20 * AR_MIB),
        .stream = stream};
    if (ar_rng_below(rng, 4) == 0)
        self->device->ops->kernel(self->device, stream, 1000 + ar_rng_below(rng, 100000));
    if (self->live[slot]) {
        self->live[slot] = false;
        return ar_policy_free(self->rig.policy, &self->blocks[slot], stream);
    }
    enum ar_status status = ar_policy_alloc(self->rig.policy, &request, &self->blocks[slot]);
    self->live[slot] = status == AR_OK;
    return status;
}

static void the_same(struct crowd *a, struct crowd *b)
{
    struct ar_policy_stats one, other;
    ar_policy_stats(a->rig.policy, &one);
    ar_policy_stats(b->rig.policy, &other);
    assert_int_equal(one.largest_free_block_bytes, other.largest_free_block_bytes);
    assert_int_equal(one.totals.reserved_bytes, other.totals.reserved_bytes);
    assert_int_equal(ar_policy_servable(a->rig.policy, AR_POLICY_EFFORT_TRIM),
                     ar_policy_servable(b->rig.policy, AR_POLICY_EFFORT_TRIM));
    assert_int_equal(a->device->ops->now(a->device), b->device->ops->now(b->device));
    assert_int_equal(a->device->counters.stall_ns, b->device->counters.stall_ns);
    for (uint32_t i = 0; i < SLOTS; i++) {
        assert_int_equal(a->live[i], b->live[i]);
        if (a->live[i])
            assert_int_equal(a->blocks[i].address, b->blocks[i].address);
    }
}

/* Once with the index, and once when the host has no memory for it. */
static void a_policy_decides_as_if_all_lists_were_looked_at(void **state)
{
    const char *const *policy = *state;
    struct crowd with, without;
    assert_true(open_crowd(&with, *policy, 0));
    uint64_t fail_at = 1;
    while (!open_crowd(&without, *policy, fail_at)) {
        close_crowd(&without);
        assert_true(++fail_at < 20);
    }
    assert_true(without.rig.host.now_bytes < with.rig.host.now_bytes);
    struct ar_rng one, other;
    ar_rng_seed(&one, 5);
    ar_rng_seed(&other, 5);
    uint32_t refused = 0;
    const uint32_t turns = (uint32_t)test_amount(12000, 12000);
    for (uint32_t i = 0; i < turns; i++) {
        enum ar_status status = turn(&with, &one);
        assert_true(status == AR_OK || status == AR_NO_MEMORY);
        assert_int_equal(status, turn(&without, &other));
        refused += status != AR_OK;
        if (i % 64 == 0) {
            if (ar_policy_validate(with.rig.policy, &test_error))
                fail_msg("turn %u: %s", i, test_error.text);
            the_same(&with, &without);
        }
    }
    assert_true(refused > 0 && refused < turns / 4);
    assert_true(with.device->counters.stall_ns > 0);
    close_crowd(&with);
    close_crowd(&without);
}

/* The same of few streams with many superblocks: each request of 1 MiB takes one. */
static void superblocks_are_counted_as_if_all_were_looked_at(void **state AR_UNUSED)
{
    enum { BLOCKS = 1100 };
    struct policy_rig rig;
    struct ar_policy_block blocks[BLOCKS];
    uint64_t address = 0, run = 0, most = 0;
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim:capacity=2GiB");
    assert_int_equal(policy_rig_open(&rig, "rmm-arena:arena_size=1100MiB", device->backing, 0),
                     AR_OK);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        struct ar_policy_request request = {.bytes = AR_MIB, .stream = i % 3};
        assert_int_equal(ar_policy_alloc(rig.policy, &request, &blocks[i]), AR_OK);
        address = i ? address : blocks[i].address;
        assert_int_equal(blocks[i].address, address + i * AR_MIB);
    }
    assert_int_equal(ar_policy_servable(rig.policy, AR_POLICY_EFFORT_WAIT), 0);
    /* Neighbours of different streams join in a clean. */
    for (uint32_t i = 0; i < BLOCKS; i++) {
        bool stays = i * 7919u % 31 == 0;
        run = stays ? 0 : run + AR_MIB;
        most = run > most ? run : most;
        if (!stays)
            assert_int_equal(ar_policy_free(rig.policy, &blocks[i], i % 3), AR_OK);
        assert_int_equal(ar_policy_servable(rig.policy, AR_POLICY_EFFORT_WAIT), most);
        if (i % 64 == 0)
            assert_ok(ar_policy_validate(rig.policy, &test_error));
    }
    struct ar_policy_request large = {.bytes = most, .stream = 70};
    assert_int_equal(ar_policy_alloc(rig.policy, &large, &blocks[0]), AR_OK);
    assert_ok(ar_policy_validate(rig.policy, &test_error));
    assert_int_equal(policy_rig_close(&rig), 0);
}

/* Each stream's block is freed while its stream has queued work. Then every stream requests again
 * and examines the pending blocks of the others. */
static void a_program_of_65535_streams_ends(void **state)
{
    const uint32_t all = (uint32_t)test_amount(65535, 65535);
    const char *const *policy = *state;
    struct policy_rig rig;
    FREED struct ar_policy_block *blocks = calloc(all, sizeof *blocks);
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim:capacity=70GiB");
    assert_non_null(blocks);
    assert_int_equal(policy_rig_open(&rig, *policy, device->backing, 0), AR_OK);
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < all; i++) {
            struct ar_policy_request request = {.bytes = 512 * (1 + i * 7919 % 61 + round),
                                                .stream = i * 31 % all};
            assert_int_equal(ar_policy_alloc(rig.policy, &request, &blocks[i]), AR_OK);
            (void)device->ops->handed_out(device, blocks[i].address, blocks[i].granted_bytes,
                                          request.stream, false, i);
            (void)ar_policy_servable(rig.policy, AR_POLICY_EFFORT_TRIM);
            device->ops->kernel(device, request.stream, 1000);
        }
        for (uint32_t i = 0; i < all; i++) {
            device->ops->used(device, blocks[i].address, blocks[i].granted_bytes, i * 31 % all, i);
            assert_int_equal(ar_policy_free(rig.policy, &blocks[i], i * 31 % all), AR_OK);
        }
    }
    assert_string_equal(device->ops->problem(device), "");
    assert_int_equal(policy_rig_close(&rig), 0);
}

#define DECIDES(policy)                                                                            \
    {                                                                                              \
        "decides_as_if_all_lists_were_looked_at " policy,                                          \
            a_policy_decides_as_if_all_lists_were_looked_at, NULL, NULL, (void *)&(const char *)   \
        {                                                                                          \
            policy                                                                                 \
        }                                                                                          \
    }

#define ENDS(policy)                                                                               \
    {                                                                                              \
        "a_program_of_65535_streams_ends " policy, a_program_of_65535_streams_ends, NULL, NULL,    \
            (void *)&(const char *)                                                                \
        {                                                                                          \
            policy                                                                                 \
        }                                                                                          \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        DECIDES("rmm-pool:limit=512MiB"),
        DECIDES("rmm-arena:arena_size=512MiB"),
        cmocka_unit_test(superblocks_are_counted_as_if_all_were_looked_at),
        DECIDES("gmlake:limit=512MiB,frag_limit=2MiB"),
        ENDS("rmm-pool"),
        ENDS("async"),
        ENDS("growth"),
        ENDS("slab"),
        ENDS("rmm-arena"),
    };
    return cmocka_run_group_tests_name("many_streams", tests, NULL, NULL);
}
