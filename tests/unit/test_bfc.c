/* The BFC family: random requests at two ends, failures of the host and of the backing, the index,
 * and the faults that validate finds. Its rules, step by step: tests/steps/bfc, bfc_examples. */
#include "allocators/base/rng.h"
#include "allocators/policies/bfc/bfc.h"
#include "tests/support/bfc_rig.h"
#include "tests/support/test.h"

static struct bfc *bfc_of(const struct bfc_rig *rig)
{
    return (struct bfc *)rig->policy;
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
    ar_policy_watch(rig->policy, &watch); /* validate compares it after each call */
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
