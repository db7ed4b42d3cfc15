/* Pools that threads share: the pool's answers, and threads on real policies with nothing lost,
 * which `make tsan` runs under the thread sanitizer. */
#include "bench/host/locked_pool.h"
#include "tests/support/policy_rig.h"
#include "tests/support/sim.h"
#include "tests/support/test.h"

/* ---- the pool -------------------------------------------------------------------------------- */

TEST(a_pool_takes_addresses_back)
{
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim:profile=bump");
    struct policy_rig rig;
    assert_int_equal(policy_rig_open(&rig, "growth", device->backing, 0), AR_OK);
    struct locked_pool *pool = locked_pool_open(rig.policy, &rig.host);
    struct ar_policy_request request = {.bytes = 1000};
    struct locked_pool_counts counts;
    uint64_t first, second, none;
    assert_int_equal(locked_pool_alloc(pool, &request, &first), AR_OK);
    assert_int_equal(locked_pool_alloc(pool, &request, &second), AR_OK);
    assert_int_equal(locked_pool_free(pool, first, 0), AR_OK);
    assert_int_equal(locked_pool_free(pool, first, 0), AR_INVALID);
    assert_int_equal(locked_pool_free(pool, second + 1, 0), AR_INVALID);
    request.bytes = 0;
    assert_int_equal(locked_pool_alloc(pool, &request, &none), AR_OK);
    assert_true(none == LOCKED_POOL_NO_BLOCK);
    assert_int_equal(locked_pool_free(pool, none, 0), AR_OK);
    request.bytes = UINT64_C(1) << 60;
    assert_int_equal(locked_pool_alloc(pool, &request, &none), AR_INVALID);
    locked_pool_counts(pool, &counts);
    assert_int_equal(counts.blocks, 1);
    assert_int_equal(counts.unknown, 2);
    assert_int_equal(counts.waits, 0);
    assert_int_equal(rig.policy->totals.live_bytes, 1000);
    /* Live blocks are freed with the pool. */
    locked_pool_close(pool);
    assert_int_equal(rig.policy->totals.live_blocks, 0);
    assert_int_equal(policy_rig_close(&rig), 0);
}

/* ---- threads --------------------------------------------------------------------------------- */

#define MOST 8u

struct crowd {
    struct ar_device *devices[MOST];
    struct policy_rig rigs[MOST];
    struct locked_pool *own[MOST], *pools[MOST];
    unsigned count;
};

static void crowd_open(struct crowd *crowd, const char *spec, unsigned threads, bool shared)
{
    memset(crowd, 0, sizeof *crowd);
    crowd->count = shared ? 1 : threads;
    for (unsigned i = 0; i < crowd->count; i++) {
        crowd->devices[i] = sim_test_open("sim:profile=h100");
        assert_int_equal(policy_rig_open(&crowd->rigs[i], spec, crowd->devices[i]->backing, 0),
                         AR_OK);
        crowd->own[i] = locked_pool_open(crowd->rigs[i].policy, &crowd->rigs[i].host);
        assert_non_null(crowd->own[i]);
    }
    for (unsigned i = 0; i < threads; i++)
        crowd->pools[i] = crowd->own[shared ? 0 : i];
}

/* No block is live, and every invariant holds. */
static void crowd_close(struct crowd *crowd)
{
    for (unsigned i = 0; i < crowd->count; i++) {
        struct locked_pool_counts counts;
        locked_pool_counts(crowd->own[i], &counts);
        assert_int_equal(counts.blocks, 0);
        assert_int_equal(counts.unknown, 0);
        assert_ok(ar_policy_validate(crowd->rigs[i].policy, &test_error));
        assert_int_equal(crowd->rigs[i].policy->totals.live_blocks, 0);
        locked_pool_close(crowd->own[i]);
        assert_int_equal(policy_rig_close(&crowd->rigs[i]), 0);
        ar_device_close(crowd->devices[i]);
    }
}

static void run_crowd(const char *spec, unsigned threads, bool shared, bool latency)
{
    CLOSED(crowd_close) struct crowd crowd;
    FREED struct threads_result *result = malloc(sizeof *result);
    crowd_open(&crowd, spec, threads, shared);
    struct threads_config config = {.threads = threads,
                                    .pools = crowd.pools,
                                    .turns = 2000,
                                    .live = 32,
                                    .least_bytes = 256,
                                    .most_bytes = 4 << 20,
                                    .think = shared ? 0 : 50,
                                    .seed = 3,
                                    .latency = latency};
    assert_ok(threads_run(&config, result, &test_error));
    assert_int_equal(result->failed, 0);
    assert_int_equal(result->allocs, result->frees);
    assert_true(result->allocs + result->frees >= threads * 2000u);
    assert_true(result->wall_ns > 0);
    assert_int_equal(result->alloc_ns.total, latency ? result->allocs : 0);
    assert_int_equal(result->free_ns.total, latency ? result->frees : 0);
}

TEST(threads_share_a_policy)
{
    run_crowd("growth", 4, true, false);
    run_crowd("torch", 4, true, true);
    run_crowd("vmm", 4, true, false);
}

TEST(threads_have_policies_of_their_own)
{
    run_crowd("torch", 4, false, true);
    run_crowd("tlsf:limit=4GiB", 4, false, false);
}

static void count_one(void *argument)
{
    __atomic_fetch_add((unsigned *)argument, 1, __ATOMIC_RELAXED);
}

/* Each thread has its own policy on one device: all their memory is released. */
TEST(threads_share_a_device)
{
    static const char *const specs[4] = {"torch", "vmm", "growth:limit=2GiB", "async"};
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim:profile=h100");
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct locked_backing backings[4];
    struct policy_rig rigs[4];
    struct locked_pool *pools[4];
    unsigned entered = 0;
    FREED struct threads_result *result = malloc(sizeof *result);
    for (unsigned i = 0; i < 4; i++) {
        locked_backing_open(&backings[i], device->backing, &lock);
        assert_int_equal(backings[i].relay.base.page_bytes, device->backing->page_bytes);
        assert_int_equal(policy_rig_open(&rigs[i], specs[i], &backings[i].relay.base, 0), AR_OK);
        pools[i] = locked_pool_open(rigs[i].policy, &rigs[i].host);
    }
    struct threads_config config = {.threads = 4,
                                    .pools = pools,
                                    .turns = 1000,
                                    .live = 32,
                                    .least_bytes = 256,
                                    .most_bytes = 4 << 20,
                                    .seed = 3,
                                    .enter = count_one,
                                    .argument = &entered};
    assert_ok(threads_run(&config, result, &test_error));
    assert_int_equal(entered, 4);
    assert_int_equal(result->failed, 0);
    assert_true(device->counters.segments_made >= 4);
    /* A misuse is reported only to the policy that made it. */
    assert_int_equal(ar_backing_segment_free(&backings[0].relay.base, 12345), AR_INVALID);
    assert_string_equal(ar_backing_problem(&backings[0].relay.base),
                        ar_backing_problem(device->backing));
    assert_string_equal(ar_backing_problem(&backings[1].relay.base), "");
    for (unsigned i = 0; i < 4; i++) {
        locked_pool_close(pools[i]);
        assert_int_equal(policy_rig_close(&rigs[i]), 0);
    }
    assert_int_equal(device->counters.physical_bytes, 0);
}

/* The locked form of a device has no operation that the device does not have. */
TEST(a_locked_device_offers_what_the_device_offers)
{
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim:profile=bump");
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct locked_backing locked;
    ar_backing_handle handle;
    locked_backing_open(&locked, device->backing, &lock);
    const struct ar_backing_ops *ops = locked.relay.base.ops, *inner = device->backing->ops;
    assert_true(!ops->create == !inner->create && !ops->pool_alloc == !inner->pool_alloc &&
                !ops->order == !inner->order && !ops->pool_open == !inner->pool_open);
    assert_int_equal(ar_backing_create(&locked.relay.base, 2 << 20, &handle),
                     ar_backing_create(device->backing, 2 << 20, &handle));
}

/* One thread's calls do not depend on the others, so the counts are those of any run. */
TEST(the_calls_of_a_thread_are_the_same_on_every_run)
{
    uint64_t allocs[2];
    FREED struct threads_result *result = malloc(sizeof *result);
    for (unsigned i = 0; i < 2; i++) {
        CLOSED(crowd_close) struct crowd crowd;
        crowd_open(&crowd, "growth", MOST, i == 0);
        struct threads_config config = {.threads = MOST,
                                        .pools = crowd.pools,
                                        .turns = 501,
                                        .live = 7,
                                        .least_bytes = 1,
                                        .most_bytes = 1 << 20,
                                        .seed = 1};
        assert_ok(threads_run(&config, result, &test_error));
        allocs[i] = result->allocs;
    }
    assert_int_equal(allocs[0], allocs[1]);
}

TEST(failed_requests_are_counted_and_bad_configurations_refused)
{
    CLOSED(crowd_close) struct crowd crowd;
    struct ar_error error;
    FREED struct threads_result *result = malloc(sizeof *result);
    crowd_open(&crowd, "growth:limit=8MiB", 2, true);
    struct threads_config config = {.threads = 2,
                                    .pools = crowd.pools,
                                    .turns = 500,
                                    .live = 8,
                                    .least_bytes = 1 << 20,
                                    .most_bytes = 4 << 20,
                                    .seed = 1};
    assert_int_equal(threads_run(&config, result, &error), AR_OK);
    assert_true(result->failed > 0);
    assert_int_equal(result->allocs, result->frees);
    config.threads = THREADS_MOST + 1;
    assert_int_equal(threads_run(&config, result, &error), AR_INVALID);
    config.threads = 2;
    config.live = 0;
    assert_int_equal(threads_run(&config, result, &error), AR_INVALID);
}
