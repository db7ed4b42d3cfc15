/* `mosaic`: PyTorch's expandable segments until memory runs out; then pages are divided. */
#include "allocators/base/rng.h"
#include "allocators/relay.h"
#include "tests/support/policy_rig.h"
#include "tests/support/sim.h"
#include "tests/support/test.h"

enum { SLOTS = 48 };

struct mosaic_rig {
    struct ar_device *device;
    struct relay relay;
    struct policy_rig policy;
    unsigned copies;
    bool takes_memory; /* another process takes what is free after a copy */
};

/* A copy was seen: all memory that is released now is another's. */
static enum ar_status watch(struct relay *relay, enum relay_hook hook)
{
    struct mosaic_rig *rig =
        (struct mosaic_rig *)((char *)relay - offsetof(struct mosaic_rig, relay));
    rig->copies += hook == RELAY_COPY;
    return hook == RELAY_CREATE && rig->copies && rig->takes_memory ? AR_REFUSED : AR_OK;
}

static void open_rig(struct mosaic_rig *rig, const char *device, const char *policy)
{
    *rig = (struct mosaic_rig){.device = sim_test_open(device), .relay.before = watch};
    relay_open(&rig->relay, rig->device->backing);
    if (policy_rig_open(&rig->policy, policy, &rig->relay.base, 0))
        fail_msg("%s", rig->policy.error.text);
}

static void close_rig(struct mosaic_rig *rig)
{
    assert_int_equal(policy_rig_close(&rig->policy), 0);
    assert_int_equal(rig->device->counters.physical_bytes, 0);
    ar_device_close(rig->device);
}

static void check(struct mosaic_rig *rig, uint64_t reserved_bytes)
{
    assert_ok(ar_policy_validate(rig->policy.policy, &test_error));
    assert_int_equal(rig->policy.policy->totals.reserved_bytes, reserved_bytes);
    assert_int_equal(rig->device->counters.physical_bytes, reserved_bytes);
    assert_string_equal(rig->device->ops->problem(rig->device), "");
}

static struct ar_policy_block take(struct mosaic_rig *rig, uint64_t mib)
{
    struct ar_policy_block block;
    assert_int_equal(policy_rig_alloc(&rig->policy, mib * AR_MIB, &block), AR_OK);
    return block;
}

/* Pages of 20 MiB, each with a block in use of `kept` MiB at its start and free memory after it.
 * With 20 the page is full. `before_mib` are reserved before. */
static void half_use(struct mosaic_rig *rig, const uint64_t *kept, unsigned pages,
                     struct ar_policy_block *blocks, uint64_t before_mib)
{
    struct ar_policy_block freed[8];
    for (unsigned i = 0; i < pages; i++) {
        blocks[i] = take(rig, kept[i]);
        if (kept[i] < 20)
            freed[i] = take(rig, 20 - kept[i]);
    }
    for (unsigned i = 0; i < pages; i++)
        if (kept[i] < 20)
            assert_int_equal(policy_rig_free(&rig->policy, &freed[i]), AR_OK);
    check(rig, (before_mib + pages * 20) * AR_MIB);
}

/* Every address, total and driver call is that of expandable segments. */
TEST(before_memory_runs_out_it_is_torch)
{
    static const char *const specs[] = {"torch:expandable_segments=true", "mosaic"};
    struct mosaic_rig rig[2];
    struct ar_policy_block blocks[2][SLOTS] = {0};
    struct ar_rng rng;
    ar_rng_seed(&rng, 7);
    for (int p = 0; p < 2; p++)
        open_rig(&rig[p], "sim:capacity=900MiB", specs[p]);
    for (int i = 0; i < 4000; i++) {
        uint32_t slot = (uint32_t)ar_rng_below(&rng, SLOTS);
        uint64_t bytes = 1 + ar_rng_below(&rng, UINT64_C(1) << (10 + ar_rng_below(&rng, 15)));
        for (int p = 0; p < 2; p++) {
            struct ar_policy_block *block = &blocks[p][slot];
            if (block->granted_bytes) {
                assert_int_equal(policy_rig_free(&rig[p].policy, block), AR_OK);
                *block = (struct ar_policy_block){0};
            } else {
                assert_int_equal(policy_rig_alloc(&rig[p].policy, bytes, block), AR_OK);
            }
        }
        assert_int_equal(blocks[0][slot].address, blocks[1][slot].address);
    }
    assert_memory_equal(&rig[0].device->counters, &rig[1].device->counters,
                        sizeof rig[0].device->counters);
    for (int p = 0; p < 2; p++)
        close_rig(&rig[p]);
}

/* 4 MiB of the device are free, and 48 are requested. Each page gives 18, and the blocks in use
 * stay where they are. */
TEST(pages_are_divided)
{
    struct mosaic_rig rig;
    struct ar_policy_block kept[3], more;
    open_rig(&rig, "sim:capacity=64MiB", "mosaic");
    half_use(&rig, (const uint64_t[]){2, 2, 2}, 3, kept, 0);
    more = take(&rig, 48);
    check(&rig, (3 * 2 + 48) * AR_MIB);
    assert_int_equal(rig.copies, 3); /* on the device */
    for (int i = 0; i < 3; i++)
        assert_int_equal(policy_rig_free(&rig.policy, &kept[i]), AR_OK);
    assert_int_equal(policy_rig_free(&rig.policy, &more), AR_OK);
    assert_int_equal(ar_policy_trim(rig.policy.policy, 0), AR_OK);
    check(&rig, 0);
    (void)take(&rig, 2); /* memory is plentiful again: a whole page */
    check(&rig, 20 * AR_MIB);
    close_rig(&rig);
}

/* No more pages are divided than the request needs, those with most free memory first. */
TEST(the_rule_divide_chooses)
{
    static const struct {
        const char *policy;
        uint64_t reserved_mib;
    } cases[] = {
        {"mosaic", 20 + 2 + 20 + 20},
        {"mosaic:divide='0 - used'", 4 + 20 + 20 + 20},
        {"mosaic:divide='start < 20MiB ? 0 : 1'", 4 + 20 + 20 + 20},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mosaic_rig rig;
        struct ar_policy_block kept[3];
        open_rig(&rig, "sim:capacity=64MiB", cases[i].policy);
        half_use(&rig, (const uint64_t[]){4, 2, 20}, 3, kept, 0);
        (void)take(&rig, 20);
        check(&rig, cases[i].reserved_mib * AR_MIB);
        close_rig(&rig);
    }
}

/* Of two pages that lose as much the lower one is divided. */
TEST(the_lower_page_is_first)
{
    struct mosaic_rig rig;
    struct ar_policy_block kept[3];
    open_rig(&rig, "sim:capacity=64MiB", "mosaic");
    half_use(&rig, (const uint64_t[]){2, 2, 20}, 3, kept, 0);
    (void)take(&rig, 20);
    assert_int_equal(take(&rig, 18).address, kept[1].address + 2 * AR_MIB);
    check(&rig, (2 + 20 + 20 + 20) * AR_MIB);
    close_rig(&rig);
}

/* Without a free byte the copies go through host memory, one out and one in for each page. */
TEST(a_full_device_copies_by_host)
{
    struct mosaic_rig rig;
    struct ar_policy_block kept[3];
    open_rig(&rig, "sim:capacity=60MiB", "mosaic");
    half_use(&rig, (const uint64_t[]){2, 2, 2}, 3, kept, 0);
    (void)take(&rig, 36); /* of which 18 MiB are free at the end of the last page */
    check(&rig, (2 + 2 * 20 + 18) * AR_MIB);
    assert_int_equal(rig.copies, 2);
    close_rig(&rig);
}

TEST(lost_content_stops_the_run)
{
    struct mosaic_rig rig;
    struct ar_policy_block kept[3], more;
    open_rig(&rig, "sim:capacity=60MiB", "mosaic");
    half_use(&rig, (const uint64_t[]){2, 2, 2}, 3, kept, 0);
    rig.takes_memory = true;
    assert_int_equal(policy_rig_alloc(&rig.policy, 36 * AR_MIB, &more), AR_INVALID);
    assert_non_null(strstr(ar_policy_problem(rig.policy.policy), "the page's content is lost"));
    close_rig(&rig);
}

/* What cannot be divided fails as with expandable segments: blocks that fill their page, a device
 * that does not copy, and a private pool, which may be of a captured graph. */
TEST(not_helped)
{
    struct mosaic_rig rig;
    struct ar_policy_block kept[3], more;
    const struct ar_policy_request captured = {.bytes = 36 * AR_MIB, .pool = 1};
    open_rig(&rig, "sim:capacity=64MiB", "mosaic");
    half_use(&rig, (const uint64_t[]){20, 20, 20}, 3, kept, 0);
    assert_int_equal(policy_rig_alloc(&rig.policy, 8 * AR_MIB, &more), AR_NO_MEMORY);
    check(&rig, 60 * AR_MIB);
    close_rig(&rig);

    open_rig(&rig, "sim:capacity=64MiB", "mosaic");
    half_use(&rig, (const uint64_t[]){2, 2, 2}, 3, kept, 0);
    assert_int_equal(ar_policy_alloc(rig.policy.policy, &captured, &more), AR_NO_MEMORY);
    check(&rig, 60 * AR_MIB);
    close_rig(&rig);

    rig = (struct mosaic_rig){.device = sim_test_open("sim:capacity=64MiB"), .relay.before = watch};
    relay_open(&rig.relay, rig.device->backing);
    rig.relay.ops.copy = NULL;
    assert_int_equal(policy_rig_open(&rig.policy, "mosaic", &rig.relay.base, 0), AR_OK);
    half_use(&rig, (const uint64_t[]){2, 2, 2}, 3, kept, 0);
    assert_int_equal(policy_rig_alloc(&rig.policy, 36 * AR_MIB, &more), AR_NO_MEMORY);
    check(&rig, 60 * AR_MIB);
    close_rig(&rig);
}

/* A request for more than there is divides nothing, and later requests are those of torch. */
TEST(a_hopeless_request_copies_nothing)
{
    struct mosaic_rig rig;
    struct ar_policy_block kept[3], more;
    open_rig(&rig, "sim:capacity=84MiB", "mosaic");
    half_use(&rig, (const uint64_t[]){2, 2, 2}, 3, kept, 0);
    assert_int_equal(policy_rig_alloc(&rig.policy, 84 * AR_MIB, &more), AR_NO_MEMORY);
    assert_int_equal(rig.copies, 0);
    (void)take(&rig, 19);
    check(&rig, 4 * 20 * AR_MIB); /* whole pages */
    close_rig(&rig);
}

/* The free memory of a private pool is not the device's while the pool lives. */
TEST(pages_of_private_pools_stay)
{
    struct mosaic_rig rig;
    struct ar_policy_block first, second, more;
    const struct ar_policy_request small = {.bytes = 2 * AR_MIB, .pool = 1},
                                   large = {.bytes = 18 * AR_MIB, .pool = 1};
    open_rig(&rig, "sim:capacity=40MiB", "mosaic");
    assert_int_equal(ar_policy_alloc(rig.policy.policy, &small, &first), AR_OK);
    assert_int_equal(ar_policy_alloc(rig.policy.policy, &large, &second), AR_OK);
    assert_int_equal(policy_rig_free(&rig.policy, &second), AR_OK);
    assert_int_equal(policy_rig_alloc(&rig.policy, 30 * AR_MIB, &more), AR_NO_MEMORY);
    check(&rig, 20 * AR_MIB);
    ar_policy_end_pool(rig.policy.policy, 1);
    assert_int_equal(ar_policy_servable(rig.policy.policy, AR_POLICY_EFFORT_TRIM), 18 * AR_MIB);
    (void)take(&rig, 30);
    check(&rig, (2 + 30) * AR_MIB);
    close_rig(&rig);
}

/* MemPool(allocator=..) has driver allocations of its own: they count for the limit, and are
 * released whole after the pool has ended. */
TEST(pools_without_ranges)
{
    struct mosaic_rig rig;
    struct ar_policy_block kept[3], freed, more;
    const struct ar_policy_request plain = {
        .bytes = 20 * AR_MIB, .pool = 1, .mempool = AR_MEMPOOL_PLAIN | AR_MEMPOOL_ALLOCATOR};
    open_rig(&rig, "sim:capacity=1GiB", "mosaic:limit=84MiB");
    assert_int_equal(ar_policy_alloc(rig.policy.policy, &plain, &freed), AR_OK);
    half_use(&rig, (const uint64_t[]){2, 2, 2}, 3, kept, 20);
    assert_int_equal(policy_rig_free(&rig.policy, &freed), AR_OK);
    (void)take(&rig, 40);
    check(&rig, 84 * AR_MIB);
    assert_int_equal(ar_policy_alloc(rig.policy.policy, &plain, &freed), AR_OK);
    assert_int_equal(ar_policy_alloc(rig.policy.policy, &plain, &more), AR_NO_MEMORY);
    assert_int_equal(policy_rig_free(&rig.policy, &freed), AR_OK);
    ar_policy_end_pool(rig.policy.policy, 1);
    (void)take(&rig, 30);
    check(&rig, (3 * 2 + 40 + 30) * AR_MIB);
    close_rig(&rig);
}

/* Pages of PyTorch's small pool have 2 MiB. */
TEST(a_device_with_larger_pages_is_refused)
{
    static const char *const specs[] = {"torch:expandable_segments=true", "mosaic"};
    struct ar_device *device = sim_test_open("sim:capacity=64MiB");
    struct relay relay = {0};
    struct policy_rig rig;
    relay_open(&relay, device->backing);
    relay.base.page_bytes = 4 * AR_MIB;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(policy_rig_open(&rig, specs[i], &relay.base, 0), AR_UNSUPPORTED);
        assert_non_null(strstr(rig.error.text, "virtual memory in pages of at most 2 MiB"));
        (void)policy_rig_close(&rig);
    }
    ar_device_close(device);
}

TEST(a_bad_rule_is_an_error_of_the_policy)
{
    struct ar_device *device = sim_test_open("sim:capacity=64MiB");
    struct policy_rig rig;
    assert_int_equal(policy_rig_open(&rig, "mosaic:place='missing+'", device->backing, 0),
                     AR_INVALID);
    assert_non_null(strstr(rig.error.text, "policy mosaic: rule place, character 9 of"));
    (void)policy_rig_close(&rig);
    assert_int_equal(policy_rig_open(&rig, "mosaic:divide=missing", device->backing, 0),
                     AR_INVALID);
    assert_non_null(strstr(rig.error.text, "names are used, free, start"));
    (void)policy_rig_close(&rig);
    ar_device_close(device);
}
