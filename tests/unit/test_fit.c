/* first-fit and best-fit on a backing whose allocations touch, compared with known answers. The
 * comments have the sums. */
#include "tests/support/fake_backing.h"
#include "tests/support/policy_rig.h"
#include "tests/support/test.h"

static const char *const fits[] = {"first-fit", "best-fit"};
#define FITS 2

static struct ar_policy_block take(struct policy_rig *rig, uint64_t bytes)
{
    struct ar_policy_block block;
    assert_int_equal(policy_rig_alloc(rig, bytes, &block), AR_OK);
    return block;
}

static void free_requested(struct policy_rig *rig, struct ar_policy_block block)
{
    assert_int_equal(policy_rig_free(rig, &block), AR_OK);
}

/* Eight of 16, all freed, four of 32 fit into the same 128 MiB. */
TEST(order_flip)
{
    for (int f = 0; f < FITS; f++) {
        CLOSED(fake_rig_close) struct policy_rig rig;
        struct ar_policy_block blocks[8];
        fake_rig_open(&rig, fits[f], UINT64_MAX);
        for (int i = 0; i < 8; i++)
            blocks[i] = take(&rig, 16 * AR_MIB);
        for (int i = 0; i < 8; i++)
            free_requested(&rig, blocks[i]);
        for (int i = 0; i < 4; i++)
            take(&rig, 32 * AR_MIB);
        assert_int_equal(rig.policy->totals.reserved_bytes, 128 * AR_MIB);
    }
}

/* k * 16 MiB for k up to 40. One live: each grows the free block at the top, so the arena is the
 * last one, 640. Two live: the arena is the result of alternating growth, 1872. */
TEST(linear_ramp)
{
    static const uint64_t want[] = {640, 1872};
    for (int f = 0; f < FITS; f++) {
        for (int live = 1; live <= 2; live++) {
            CLOSED(fake_rig_close) struct policy_rig rig;
            struct ar_policy_block held[2];
            fake_rig_open(&rig, fits[f], UINT64_MAX);
            for (int k = 1; k <= 40; k++) {
                if (k > live)
                    free_requested(&rig, held[(k - 1 - live) % 2]);
                held[(k - 1) % 2] = take(&rig, (uint64_t)k * 16 * AR_MIB);
            }
            assert_int_equal(rig.policy->totals.reserved_bytes, want[live - 1] * AR_MIB);
        }
    }
}

/* 16 MiB doubled to 4 GiB, old and new both live: no free block is ever large enough, so the arena
 * is the sum, 16 * (2^9 - 1). */
TEST(sawtooth)
{
    for (int f = 0; f < FITS; f++) {
        CLOSED(fake_rig_close) struct policy_rig rig;
        fake_rig_open(&rig, fits[f], UINT64_MAX);
        struct ar_policy_block old = take(&rig, 16 * AR_MIB);
        for (uint64_t bytes = 32 * AR_MIB; bytes <= 4 * AR_GIB; bytes *= 2) {
            struct ar_policy_block grown = take(&rig, bytes);
            free_requested(&rig, old);
            old = grown;
        }
        assert_int_equal(rig.policy->totals.reserved_bytes, 8176 * AR_MIB);
    }
}

TEST(pool_boundary)
{
    for (int f = 0; f < FITS; f++) {
        CLOSED(fake_rig_close) struct policy_rig rig;
        fake_rig_open(&rig, fits[f], UINT64_MAX);
        free_requested(&rig, take(&rig, 2 * AR_MIB));
        take(&rig, AR_MIB / 2);
        assert_int_equal(rig.policy->totals.reserved_bytes, 2 * AR_MIB);
    }
}

/* 64 blocks of 8 MiB, every second freed, then 16 MiB: a new end of 512 + 16, and with a
 * capacity of 512 a failure although 256 MiB are free. */
TEST(checkerboard)
{
    for (int f = 0; f < FITS; f++) {
        for (int capped = 0; capped < 2; capped++) {
            CLOSED(fake_rig_close) struct policy_rig rig;
            struct ar_policy_block blocks[64];
            struct ar_policy_block last;
            fake_rig_open(&rig, fits[f], capped ? 512 * AR_MIB : UINT64_MAX);
            for (int i = 0; i < 64; i++)
                blocks[i] = take(&rig, 8 * AR_MIB);
            for (int i = 0; i < 64; i += 2)
                free_requested(&rig, blocks[i]);
            enum ar_status status = policy_rig_alloc(&rig, 16 * AR_MIB, &last);
            assert_int_equal(status, capped ? AR_NO_MEMORY : AR_OK);
            assert_int_equal(rig.policy->totals.reserved_bytes, (capped ? 512 : 528) * AR_MIB);
            assert_int_equal(ar_policy_free_bytes(&rig.policy->totals), 256 * AR_MIB);
        }
    }
}

/* Robson's program (Bounds for some functions concerning dynamic storage allocation, JACM 1974): at
 * most M live units, blocks up to n. At each step the blocks that contain an address of the chosen
 * residue stay. Both fits need exactly M (1 + log2(n) / 2) - n + 1. */
static uint64_t robson(struct policy_rig *rig, uint64_t m, uint64_t n)
{
    static struct ar_policy_block blocks[65536];
    size_t count = 0;
    uint64_t live = m;
    uint64_t offset = 0;
    for (; count < m; count++)
        blocks[count] = take(rig, 1);
    for (uint64_t size = 2; size <= n; size *= 2) {
        uint64_t gain[2] = {0, 0};
        for (int c = 0; c < 2; c++) {
            uint64_t residue = offset + (uint64_t)c * size / 2;
            for (size_t i = 0; i < count; i++)
                if ((residue - blocks[i].address) % size < blocks[i].requested_bytes)
                    gain[c] += size - blocks[i].requested_bytes;
        }
        if (gain[1] > gain[0])
            offset += size / 2;
        size_t kept = 0;
        live = 0;
        for (size_t i = 0; i < count; i++) {
            if ((offset - blocks[i].address) % size < blocks[i].requested_bytes) {
                live += blocks[i].requested_bytes;
                blocks[kept++] = blocks[i];
            } else {
                free_requested(rig, blocks[i]);
            }
        }
        count = kept;
        for (uint64_t more = (m - live) / size; more > 0; more--)
            blocks[count++] = take(rig, size);
    }
    return rig->policy->totals.reserved_bytes;
}

TEST(robson_table)
{
    static const uint64_t table[][3] = {
        {1024, 16, 3057},   {1024, 64, 4033},    {1024, 256, 4865},    {4096, 64, 16321},
        {4096, 256, 20225}, {4096, 1024, 23553}, {16384, 1024, 97281},
    };
    for (int f = 0; f < FITS; f++) {
        for (size_t row = 0; row < COUNT(table); row++) {
            CLOSED(fake_rig_close) struct policy_rig rig;
            fake_rig_open(&rig, fits[f], UINT64_MAX);
            assert_int_equal(robson(&rig, table[row][0], table[row][1]), table[row][2]);
        }
    }
}

/* Free blocks of 3, 2 and 4 MiB, each after a live block: for 2 MiB first fit takes the first, best
 * fit the exact one. */
TEST(which_free_block)
{
    static const uint64_t sizes[] = {3 * AR_MIB, 2 * AR_MIB, 4 * AR_MIB};
    for (int f = 0; f < FITS; f++) {
        CLOSED(fake_rig_close) struct policy_rig rig;
        struct ar_policy_block free_blocks[3];
        fake_rig_open(&rig, fits[f], UINT64_MAX);
        for (int i = 0; i < 3; i++) {
            free_blocks[i] = take(&rig, sizes[i]);
            take(&rig, 1);
        }
        for (int i = 0; i < 3; i++)
            free_requested(&rig, free_blocks[i]);
        struct ar_policy_stats stats;
        ar_policy_stats(rig.policy, &stats);
        assert_int_equal(stats.largest_free_block_bytes, 4 * AR_MIB);
        assert_int_equal(take(&rig, 2 * AR_MIB).address, free_blocks[f].address);
    }
}

/* Free blocks of 4 and, at the end, 3 MiB, for 2 MiB. The tightest fit is the last one, but with
 * `wilderness` it counts as unlimited: it serves only if no other does, before the arena grows. */
TEST(the_end_is_kept_for_last)
{
    static const char *const specs[] = {"best-fit:granule=1", "best-fit:granule=1,wilderness=yes"};
    for (int kept = 0; kept < 2; kept++) {
        CLOSED(fake_rig_close) struct policy_rig rig;
        fake_rig_open(&rig, specs[kept], UINT64_MAX);
        struct ar_policy_block inner = take(&rig, 4 * AR_MIB);
        take(&rig, AR_MIB);
        struct ar_policy_block tail = take(&rig, 3 * AR_MIB);
        free_requested(&rig, inner);
        free_requested(&rig, tail);
        assert_int_equal(take(&rig, 2 * AR_MIB).address, kept ? inner.address : tail.address);
        assert_int_equal(take(&rig, 3 * AR_MIB).address, kept ? tail.address : inner.address);
        assert_int_equal(rig.policy->totals.reserved_bytes, 8 * AR_MIB);
    }
}

TEST(alignment)
{
    for (int f = 0; f < FITS; f++) {
        CLOSED(fake_rig_close) struct policy_rig rig;
        fake_rig_open(&rig, fits[f], UINT64_MAX);
        fake_rig_backing.next = 3; /* the first memory of the arena is not aligned */
        for (uint64_t align = 1; align <= AR_MIB; align *= 4) {
            struct ar_policy_block block;
            const struct ar_policy_request request = {.bytes = 5, .alignment = align};
            assert_int_equal(ar_policy_alloc(rig.policy, &request, &block), AR_OK);
            assert_int_equal(block.address % align, 0);
        }
    }
}

/* The limit is exact; a gap in the supply is not memory; trim releases the top. */
TEST(limit_gap_and_trim)
{
    for (int f = 0; f < FITS; f++) {
        CLOSED(fake_rig_close) struct policy_rig rig;
        char spec[64];
        struct ar_policy_block block;
        snprintf(spec, sizeof spec, "%s:limit=10MiB", fits[f]);
        fake_rig_open(&rig, spec, UINT64_MAX);
        take(&rig, 4 * AR_MIB);
        fake_rig_backing.next += 100 * AR_MIB;
        struct ar_policy_block behind = take(&rig, 4 * AR_MIB);
        assert_int_equal(rig.policy->totals.reserved_bytes, 8 * AR_MIB);
        assert_int_equal(policy_walk_sum(rig.policy).bytes[AR_POLICY_RANGE_UNMAPPED], 104 * AR_MIB);
        assert_int_equal(policy_rig_alloc(&rig, 2 * AR_MIB + 1, &block), AR_NO_MEMORY);
        take(&rig, 2 * AR_MIB);
        free_requested(&rig, behind);
        assert_int_equal(rig.policy->totals.releasable_bytes, 4 * AR_MIB);
        assert_int_equal(ar_policy_trim(rig.policy, 0), AR_OK);
        assert_int_equal(rig.policy->totals.reserved_bytes, 10 * AR_MIB); /* the top is in use */
    }
}

TEST(trim_to_nothing)
{
    for (int f = 0; f < FITS; f++) {
        CLOSED(fake_rig_close) struct policy_rig rig;
        fake_rig_open(&rig, fits[f], UINT64_MAX);
        for (int round = 0; round < 3; round++) {
            struct ar_policy_block a = take(&rig, 3 * AR_MIB);
            struct ar_policy_block b = take(&rig, 5 * AR_MIB);
            free_requested(&rig, a);
            free_requested(&rig, b);
            assert_int_equal(ar_policy_trim(rig.policy, 4 * AR_MIB), AR_OK);
            assert_int_equal(rig.policy->totals.reserved_bytes, 3 * AR_MIB);
            assert_int_equal(ar_policy_trim(rig.policy, 0), AR_OK);
            assert_int_equal(rig.policy->totals.reserved_bytes, 0);
            assert_int_equal(fake_rig_backing.held_bytes, 0);
        }
    }
}

TEST(no_way_to_grow)
{
    for (int f = 0; f < FITS; f++) {
        struct policy_rig rig;
        fake_backing_open(&fake_rig_backing, UINT64_MAX);
        fake_rig_backing.base.adjacent = false;
        assert_int_equal(policy_rig_open(&rig, fits[f], &fake_rig_backing.base, 0), AR_UNSUPPORTED);
        assert_non_null(strstr(rig.error.text, fits[f]));
        assert_int_equal(policy_rig_close(&rig), 0);
    }
}
