/* The BFC family in addition to its goldens: limits, settings, alignment, two ends, failures of the
 * host and of the backing, the index, and the faults that validate finds. */
#include "allocators/base/rng.h"
#include "allocators/policies/bfc/bfc.h"
#include "tests/support/bfc_rig.h"
#include "tests/support/test.h"

static struct bfc *bfc_of(const struct bfc_rig *rig)
{
    return (struct bfc *)rig->policy;
}

/* ---- limits ---------------------------------------------------------------------------------- */

static uint64_t limit_of(const char *spec, uint64_t total_bytes)
{
    struct bfc_rig *rig = bfc_rig_open(spec, total_bytes);
    uint64_t limit = bfc_of(rig)->regions.limit_bytes;
    bfc_rig_close(rig);
    return limit;
}

TEST(test_limit_by_default)
{
    assert_int_equal(limit_of("greedy", 80 * AR_GIB), 80 * AR_GIB - 1800 * AR_MIB);
    assert_int_equal(limit_of("greedy:compute_capability=8", 80 * AR_GIB),
                     80 * AR_GIB - 1536 * AR_MIB);
    assert_int_equal(limit_of("greedy:compute_capability=7", 32 * AR_GIB),
                     32 * AR_GIB - 1050 * AR_MIB);
    assert_int_equal(limit_of("greedy:compute_capability=6", 16 * AR_GIB),
                     16 * AR_GIB - 500 * AR_MIB);
    assert_int_equal(limit_of("growth", 2 * AR_GIB - 1), 2 * AR_GIB - 1 - 225 * AR_MIB);
    assert_int_equal(limit_of("growth", 2 * AR_GIB), 2 * AR_GIB - 1800 * AR_MIB);
    /* If no more is free than the share of the system, all of it is used (tensorflow#8170: 190.3125
 * MiB). */
    assert_int_equal(limit_of("greedy", 199557120), 199557120);
    assert_int_equal(limit_of("growth", 100 * AR_MIB), 100 * AR_MIB);
    assert_int_equal(limit_of("bfc", 225 * AR_MIB), 225 * AR_MIB);
    assert_int_equal(limit_of("bfc", 225 * AR_MIB + 1), 1);
    assert_int_equal(limit_of("growth:framework=jax", 80 * AR_GIB), 60 * AR_GIB);
}

TEST(test_limit_by_option)
{
    assert_int_equal(limit_of("bfc:limit=3GiB,fraction=0.5", 80 * AR_GIB), 3 * AR_GIB);
    assert_int_equal(limit_of("bfc:fraction=0.5", 80 * AR_GIB), 40 * AR_GIB);
    assert_int_equal(limit_of("bfc:fraction=0.1,framework=jax", 85018542080), 8501854208);
    assert_int_equal(limit_of("bfc:system_memory=1GiB,fraction=0.5", 80 * AR_GIB), 79 * AR_GIB);
    /* more than is free: ignored */
    assert_int_equal(limit_of("bfc:system_memory=100GiB,fraction=0.5", 80 * AR_GIB), 40 * AR_GIB);
}

TEST(test_limit_of_unlimited_device)
{
    assert_int_equal(limit_of("greedy", UINT64_MAX), (UINT64_C(1) << 60) - 1800 * AR_MIB);
    struct bfc_rig *rig = bfc_rig_open("growth", UINT64_MAX);
    assert_int_equal(bfc_rig_alloc(rig, 0, UINT64_C(1) << 59), 0);
    assert_int_equal(bfc_rig_alloc(rig, 1, UINT64_C(1) << 59), BFC_RIG_FAILED);
    bfc_rig_close(rig);
    rig = bfc_rig_open("greedy", UINT64_MAX);
    assert_int_equal(bfc_rig_alloc(rig, 0, 1), 0);
    bfc_rig_close(rig);
}

TEST(test_nothing_fits_in_no_memory)
{
    CLOSED(close_bfc_rig) struct bfc_rig *rig = bfc_rig_open("growth", 0);
    assert_int_equal(bfc_rig_alloc(rig, 0, 1), BFC_RIG_FAILED);
    assert_int_equal(rig->backing.calls, 0);
}

TEST(test_back_off_ends)
{
    CLOSED(close_bfc_rig) struct bfc_rig *rig = bfc_rig_open("greedy:limit=4096", 0);
    static const uint64_t attempts[] = {4096, 3840, 3584, 3328, 3072, 2816, 2560, 2304,
                                        2048, 1792, 1536, 1280, 1024, 768,  512,  256};
    assert_int_equal(bfc_rig_alloc(rig, 0, 1), BFC_RIG_FAILED);
    assert_int_equal(rig->backing.calls, 16);
    for (unsigned i = 0; i < 16; i++)
        assert_int_equal(rig->backing.attempts[i], attempts[i]);
}

TEST(test_first_region)
{
    CLOSED(close_bfc_rig)
    struct bfc_rig *rig = bfc_rig_open("growth:limit=1GiB,first_region=32MiB", UINT64_MAX);
    bfc_rig_alloc(rig, 0, 1);
    assert_int_equal(rig->backing.attempts[0], 32 * AR_MIB);
}

static void check_refused(const char *spec, bool adjacent, const char *part)
{
    FREED struct fake_backing *backing = malloc(sizeof *backing);
    assert_non_null(backing);
    fake_backing_open(backing, AR_GIB);
    backing->base.adjacent = adjacent;
    struct ar_host host = {0};
    struct ar_policy_context context = {.backing = &backing->base, .host = &host};
    struct ar_policy *policy = NULL;
    assert_int_equal(bfc_rig_make(spec, &context, &policy, &test_error), AR_INVALID);
    assert_null(policy);
    assert_non_null(strstr(test_error.text, part));
    assert_int_equal(host.now_bytes, 0);
}

TEST(test_contradictions)
{
    check_refused("bfc:two_ended=true,growth=true", true, "two_ended");
    check_refused("growth:coalesce=true", false, "coalesce");
    check_refused("growth:two_ended=true", true, "two_ended");
    check_refused("greedy:fraction=1.5", true, "fraction");
}

static void check_setting(const char *spec, const char *expected)
{
    CLOSED(close_bfc_rig) struct bfc_rig *rig = bfc_rig_open(spec, 80 * AR_GIB);
    char text[256];
    bool there = rig->policy->ops->setting(rig->policy, text, sizeof text);
    assert_int_equal(there, expected != NULL);
    if (expected)
        assert_string_equal(text, expected);
}

TEST(test_settings)
{
    check_setting("growth", "TF_FORCE_GPU_ALLOW_GROWTH=true");
    check_setting("greedy:garbage_collection=false,system_memory=2GiB",
                  "TF_FORCE_GPU_ALLOW_GROWTH=false TF_ENABLE_GPU_GARBAGE_COLLECTION=false "
                  "TF_DEVICE_MIN_SYS_MEMORY_IN_MB=2048");
    check_setting("greedy:limit=4GiB",
                  "TF_FORCE_GPU_ALLOW_GROWTH=false; tf.config.set_logical_device_configuration("
                  "gpu, [tf.config.LogicalDeviceConfiguration(memory_limit=4096)])");
    check_setting("growth:framework=jax,fraction=0.5",
                  "XLA_PYTHON_CLIENT_PREALLOCATE=false XLA_CLIENT_MEM_FRACTION=0.5");
    check_setting("greedy:framework=jax,limit=20GiB",
                  "XLA_PYTHON_CLIENT_PREALLOCATE=true XLA_CLIENT_MEM_FRACTION=0.25");
    check_setting("growth:coalesce=true", NULL);
    check_setting("greedy:two_ended=true", NULL);
    check_setting("greedy:framework=jax,garbage_collection=true", NULL);
}

/* ---- alignment and two ends ------------------------------------------------------------------ */

TEST(test_alignment)
{
    CLOSED(close_bfc_rig) struct bfc_rig *rig = bfc_rig_open("greedy:limit=1MiB", UINT64_MAX);
    assert_int_equal(bfc_rig_alloc(rig, 0, 256), 0);
    assert_int_equal(bfc_rig_alloc_at(rig, 1, 1000, 4096, false), 4096);
    assert_int_equal(rig->blocks[1].granted_bytes, 1024);
    /* the padding is a free chunk */
    assert_int_equal(bfc_rig_alloc(rig, 2, 3840), 256);
    bfc_rig_free(rig, 0);
    bfc_rig_free(rig, 1);
    bfc_rig_free(rig, 2);
    assert_int_equal(bfc_rig_stats(rig).largest_free_block_bytes, AR_MIB);
}

TEST(test_alignment_skips_chunks_that_are_too_small)
{
    struct bfc_rig *rig = bfc_rig_open("greedy:limit=1MiB", UINT64_MAX);
    bfc_rig_alloc(rig, 0, 256);
    bfc_rig_alloc(rig, 1, 1024); /* 256 to 1280: too small for 1024 at a multiple of 1024 */
    bfc_rig_alloc(rig, 2, 768);
    bfc_rig_alloc(rig, 3, 1024); /* 2048 to 3072: fits */
    bfc_rig_alloc(rig, 4, 256);
    bfc_rig_free(rig, 1);
    bfc_rig_free(rig, 3);
    assert_int_equal(bfc_rig_alloc_at(rig, 5, 1024, 1024, false), 2048);
    assert_int_equal(bfc_rig_alloc(rig, 6, 1024), 256);
    bfc_rig_free_all(rig);
    bfc_rig_close(rig);
}

TEST(test_two_ends)
{
    struct bfc_rig *rig = bfc_rig_open("greedy:limit=4096,two_ended=true", UINT64_MAX);
    uint64_t lower = bfc_rig_alloc_at(rig, 0, 256, 0, false);
    uint64_t upper = bfc_rig_alloc_at(rig, 1, 256, 0, true);
    assert_int_equal(upper - lower, 4096 - 256);
    assert_int_equal(bfc_rig_stats(rig).largest_free_block_bytes, 4096 - 512);
    bfc_rig_free_all(rig);
    assert_int_equal(bfc_rig_stats(rig).largest_free_block_bytes, 4096);
    bfc_rig_close(rig);
}

TEST(test_free_blocks_of_the_other_end_stay)
{
    CLOSED(close_bfc_rig)
    struct bfc_rig *rig =
        bfc_rig_open("greedy:limit=1024,two_ended=true,garbage_collection=false", UINT64_MAX);
    bfc_rig_alloc_at(rig, 0, 256, 0, false);
    bfc_rig_alloc_at(rig, 1, 256, 0, false);
    bfc_rig_alloc_at(rig, 2, 512, 0, true);
    bfc_rig_free(rig, 0);
    struct ar_policy_stats stats = bfc_rig_stats(rig);
    assert_int_equal(ar_policy_free_bytes(&stats.totals), 256);
    assert_int_equal(bfc_rig_alloc_at(rig, 3, 256, 0, true), BFC_RIG_FAILED);
    assert_int_equal(bfc_rig_alloc_at(rig, 3, 256, 0, false), 0);
}

/* Four free blocks of 1 KiB of the lower end, at 0, 2, 4 and 6 KiB. */
static struct bfc_rig *with_lower_free_blocks(const char *spec)
{
    struct bfc_rig *rig = bfc_rig_open(spec, UINT64_MAX);
    for (unsigned i = 0; i < 8; i++)
        bfc_rig_alloc_at(rig, i, AR_KIB, 0, false);
    for (unsigned i = 0; i < 8; i += 2)
        bfc_rig_free(rig, i);
    return rig;
}

TEST(test_order_and_split_of_free_blocks)
{
    struct bfc_rig *rig = with_lower_free_blocks("greedy:limit=1MiB,two_ended=true");
    assert_int_equal(bfc_rig_alloc(rig, 0, 768), 0);
    assert_int_equal(rig->blocks[0].granted_bytes, AR_KIB);
    bfc_rig_close(rig);
    rig = with_lower_free_blocks(
        "greedy:limit=1MiB,two_ended=true,lower_order=descending,lower_split=exact");
    assert_int_equal(bfc_rig_alloc(rig, 0, 768), 6 * AR_KIB);
    assert_int_equal(rig->blocks[0].granted_bytes, 768);
    assert_int_equal(bfc_rig_alloc(rig, 2, AR_KIB), 4 * AR_KIB);
    bfc_rig_close(rig);
}

TEST(test_upper_end_takes_the_upper_part)
{
    struct bfc_rig *rig = bfc_rig_open("greedy:limit=1MiB,two_ended=true", UINT64_MAX);
    uint64_t top = bfc_rig_alloc_at(rig, 0, 256, 0, true);
    uint64_t free_block = bfc_rig_alloc_at(rig, 1, 4096, 0, true);
    uint64_t last = bfc_rig_alloc_at(rig, 2, 256, 0, true);
    assert_int_equal(top, AR_MIB - 256);
    assert_int_equal(free_block, top - 4096);
    assert_int_equal(last, free_block - 256);
    bfc_rig_free(rig, 1);
    assert_int_equal(bfc_rig_alloc_at(rig, 3, 1024, 0, true), free_block + 3072); /* split */
    assert_int_equal(bfc_rig_alloc_at(rig, 4, 2048, 0, true), free_block);        /* whole */
    assert_int_equal(rig->blocks[4].granted_bytes, 3072);
    assert_int_equal(bfc_rig_alloc_at(rig, 5, 256, 1024, true), last - last % 1024);
    bfc_rig_free_all(rig);
    assert_int_equal(bfc_rig_stats(rig).largest_free_block_bytes, AR_MIB);
    bfc_rig_close(rig);
}

TEST(test_two_ends_at_random)
{
    static const char *const specs[] = {
        "greedy:limit=256KiB,two_ended=true",
        "greedy:limit=256KiB,two_ended=true,lower_order=descending,upper_order=descending,"
        "lower_split=exact,upper_split=exact",
    };
    for (unsigned s = 0; s < 2; s++) {
        struct bfc_rig *rig = bfc_rig_open(specs[s], UINT64_MAX);
        struct ar_rng rng = ar_rng_of(7 + s);
        for (unsigned i = 0; i < 20000; i++) {
            unsigned block = (unsigned)ar_rng_below(&rng, 96);
            if (rig->live[block]) {
                bfc_rig_free(rig, block);
                continue;
            }
            uint64_t alignment = ar_rng_below(&rng, 4) ? 0 : UINT64_C(256) << ar_rng_below(&rng, 5);
            uint64_t address = bfc_rig_alloc_at(rig, block, ar_rng_log_uniform(&rng, 1, 20000),
                                                alignment, ar_rng_below(&rng, 2));
            if (alignment && address != BFC_RIG_FAILED)
                assert_int_equal(address % alignment, 0);
        }
        bfc_rig_free_all(rig);
        assert_int_equal(bfc_rig_stats(rig).largest_free_block_bytes, 256 * AR_KIB);
        bfc_rig_close(rig);
    }
}

/* ---- failures -------------------------------------------------------------------------------- */

/* A fixed sequence of requests with growth, splits, merges and a collection, in which any host or
 * backing call can fail. Returns the number of failed requests. */
static unsigned run_with_failures(struct bfc_rig *rig)
{
    unsigned failed = 0;
    for (unsigned i = 0; i < 400; i++) {
        struct ar_policy_request request = {.bytes = 1 + i * 7919 % 100000,
                                            .alignment = i % 9 ? 0 : 1024};
        enum ar_status status = ar_policy_alloc(rig->policy, &request, &rig->blocks[i]);
        bfc_rig_check(rig);
        rig->live[i] = status == AR_OK;
        failed += status != AR_OK;
        if (i % 3 == 2 && rig->live[i - 1])
            bfc_rig_free(rig, i - 1);
    }
    bfc_rig_free_all(rig);
    struct ar_policy_request large = {.bytes = 30 * AR_MIB};
    failed += ar_policy_alloc(rig->policy, &large, &rig->blocks[0]) != AR_OK;
    bfc_rig_check(rig);
    return failed;
}

TEST(test_host_memory_runs_out)
{
    uint64_t calls = 1;
    for (uint64_t fail_at = 2; fail_at <= calls + 1; fail_at++) { /* call 1 is create */
        CLOSED(close_bfc_rig) struct bfc_rig *rig = bfc_rig_open("growth:limit=32MiB", UINT64_MAX);
        rig->host.fail_at = fail_at;
        unsigned failed = run_with_failures(rig);
        calls = rig->host.calls;
        assert_int_equal(failed != 0, fail_at <= calls);
    }
    assert_true(calls > 10);
}

TEST(test_create_without_host_memory)
{
    for (uint64_t fail_at = 1; fail_at <= 2; fail_at++) {
        FREED struct fake_backing *backing = malloc(sizeof *backing);
        assert_non_null(backing);
        fake_backing_open(backing, AR_GIB);
        struct ar_host host = {.fail_at = fail_at};
        struct ar_policy_context context = {.backing = &backing->base, .host = &host};
        struct ar_policy *policy = NULL;
        assert_int_equal(bfc_rig_make("greedy:two_ended=true", &context, &policy, &test_error),
                         AR_HOST_MEMORY);
        assert_null(policy);
        assert_int_equal(host.now_bytes, 0);
    }
}

TEST(test_backing_refuses)
{
    uint64_t calls = 1;
    for (uint64_t fail_at = 1; fail_at <= calls; fail_at++) {
        CLOSED(close_bfc_rig) struct bfc_rig *rig = bfc_rig_open("growth:limit=32MiB", UINT64_MAX);
        rig->backing.fail_at = fail_at;
        run_with_failures(rig);
        calls = rig->backing.calls;
        if (fail_at <= 3) /* it is tried again with less */
            assert_true(rig->backing.attempts[fail_at] < rig->backing.attempts[fail_at - 1]);
    }
    assert_true(calls >= 4);
}

/* ---- the index and its metadata -------------------------------------------------------------- */

static unsigned depth_of(const struct ar_span *chunks, uint32_t node)
{
    if (!node)
        return 0;
    unsigned left = depth_of(chunks, chunks[node].left);
    unsigned right = depth_of(chunks, chunks[node].right);
    return 1 + (left > right ? left : right);
}

/* 65,536 free blocks of one size: the tree of their class must not become a list, for any order of
 * frees. */
TEST(test_many_equal_free_blocks)
{
    enum { FREE_BLOCKS = 65536 };
    for (unsigned order = 0; order < 3; order++) {
        CLOSED(close_bfc_rig) struct bfc_rig *rig = bfc_rig_open("greedy:limit=1GiB", UINT64_MAX);
        FREED struct ar_policy_block *blocks = calloc(2 * FREE_BLOCKS, sizeof *blocks);
        assert_non_null(blocks);
        struct ar_policy_request request = {.bytes = AR_KIB};
        for (unsigned i = 0; i < 2 * FREE_BLOCKS; i++)
            assert_int_equal(ar_policy_alloc(rig->policy, &request, &blocks[i]), AR_OK);
        for (unsigned i = 0; i < FREE_BLOCKS; i++) {
            unsigned j = order == 0   ? i
                         : order == 1 ? FREE_BLOCKS - 1 - i
                                      : i * 40503u % FREE_BLOCKS;
            assert_int_equal(ar_policy_free(rig->policy, &blocks[2 * j], 0), AR_OK);
        }
        bfc_rig_check(rig);
        const struct bfc *self = bfc_of(rig);
        assert_in_range(depth_of(self->chunks.at, self->index.roots[10]), 17, 60);
        assert_int_equal(bfc_rig_alloc(rig, 0, AR_KIB), 0); /* the lowest address */
        assert_true(rig->host.peak_bytes < 2 * FREE_BLOCKS * 60);
    }
}

static uint64_t metadata_for(uint64_t scale)
{
    struct bfc_rig *rig = bfc_rig_open("growth:limit=512GiB", UINT64_MAX);
    rig->careful = false;
    for (unsigned i = 0; i < 1000; i++)
        bfc_rig_alloc(rig, i, (1 + i % 17) * 256 * scale);
    uint64_t peak = rig->host.peak_bytes;
    bfc_rig_close(rig);
    return peak;
}

TEST(test_metadata)
{
    assert_true(metadata_for(1) <= 96 * 1000);
    assert_true(metadata_for(100000) <= 96 * 1000); /* not in proportion to reserved bytes */
}

TEST(test_watch)
{
    CLOSED(close_bfc_rig) struct bfc_rig *rig = bfc_rig_open("growth:limit=64MiB", UINT64_MAX);
    struct ar_policy_free_watch watch = {.unit_bytes = 3000};
    rig->policy->watch = &watch; /* validate compares it after each call */
    run_with_failures(rig);
    assert_true(watch.usable_bytes > 0);
}

/* ---- validate -------------------------------------------------------------------------------- */

static bool counts_ranges(void *argument, const struct ar_policy_range *range)
{
    uint64_t *bytes = argument;
    bytes[range->state == AR_POLICY_RANGE_USED] += range->bytes;
    bytes[2]++;
    return bytes[2] != bytes[3]; /* stops there */
}

TEST(test_walk)
{
    CLOSED(close_bfc_rig) struct bfc_rig *rig = bfc_rig_open("growth:limit=64MiB", UINT64_MAX);
    for (unsigned i = 0; i < 20; i++)
        bfc_rig_alloc(rig, i, (i + 1) * 100000);
    for (unsigned i = 0; i < 20; i += 3)
        bfc_rig_free(rig, i);
    struct ar_policy_stats stats = bfc_rig_stats(rig);
    uint64_t all[4] = {0};
    ar_policy_walk(rig->policy, counts_ranges, all);
    assert_int_equal(all[0], ar_policy_free_bytes(&stats.totals));
    assert_int_equal(all[1], stats.totals.granted_bytes);
    uint64_t some[4] = {0, 0, 0, 5};
    ar_policy_walk(rig->policy, counts_ranges, some);
    assert_int_equal(some[2], 5);
}

/* Breaks one field at a time and expects a sentence with `part`. */
#define EXPECT_BROKEN(rig, lvalue, wrong, part)                                                    \
    do {                                                                                           \
        __typeof__(lvalue) kept = (lvalue);                                                        \
        (lvalue) = (__typeof__(lvalue))(wrong);                                                    \
        struct ar_error error = {{0}};                                                             \
        assert_int_equal(ar_policy_validate((rig)->policy, &error), AR_CORRUPT);                   \
        if (!strstr(error.text, part))                                                             \
            fail_msg("\"%s\" does not say \"%s\"", error.text, part);                              \
        (lvalue) = kept;                                                                           \
        bfc_rig_check(rig);                                                                        \
    } while (0)

TEST(test_validate_finds_it)
{
    CLOSED(close_bfc_rig) struct bfc_rig *rig = bfc_rig_open("growth:limit=64MiB", UINT64_MAX);
    for (unsigned i = 0; i < 40; i++)
        bfc_rig_alloc(rig, i, 4096);
    for (unsigned i = 0; i < 40; i += 2)
        bfc_rig_free(rig, i);
    struct bfc *self = bfc_of(rig);
    struct ar_span *chunks = self->chunks.at;
    uint32_t used = (uint32_t)rig->blocks[5].cookie;
    uint32_t free_block = chunks[used].next;
    uint32_t root = self->index.roots[12];
    struct ar_policy_totals *totals = &self->base.totals;
    EXPECT_BROKEN(rig, chunks[used].address, chunks[used].address + 256, "instead of one");
    EXPECT_BROKEN(rig, chunks[used].bytes, chunks[used].bytes + 1, "not a multiple");
    EXPECT_BROKEN(rig, chunks[used].previous, 0, "neighbour");
    EXPECT_BROKEN(rig, chunks[used].requested_bytes, 5000, "for 5000");
    EXPECT_BROKEN(rig, chunks[used].used, 0, "both free");
    EXPECT_BROKEN(rig, chunks[free_block].mark, BFC_UPPER, "end");
    EXPECT_BROKEN(rig, totals->live_bytes, 1, "live_bytes");
    EXPECT_BROKEN(rig, totals->granted_bytes, 1, "granted_bytes");
    EXPECT_BROKEN(rig, totals->reserved_bytes, 1, "reserved_bytes");
    EXPECT_BROKEN(rig, totals->releasable_bytes, 1, "releasable_bytes");
    EXPECT_BROKEN(rig, totals->live_blocks, 1, "live_blocks");
    EXPECT_BROKEN(rig, self->gap, 1, "another gap");
    EXPECT_BROKEN(rig, self->index.classes, 0, "bitmap");
    EXPECT_BROKEN(rig, self->index.roots[12], chunks[root].left, "");
    EXPECT_BROKEN(rig, chunks[root].priority, 1, "shape");
    EXPECT_BROKEN(rig, self->index.address_flip, ~UINT64_C(0), "order");
    EXPECT_BROKEN(rig, self->chunks.spare_count, 0, "records");
    EXPECT_BROKEN(rig, self->regions.limit_bytes, 256, "limit");
    EXPECT_BROKEN(rig, self->regions.at[0].bytes, 256, "end where it does");
    EXPECT_BROKEN(rig, self->regions.segments[0].bytes, 256, "driver allocations");
    EXPECT_BROKEN(rig, self->regions.at[0].held, false, "not held");
}
