/* Offline placement compared with brute force: peaks counted for each moment, plans checked for
 * each pair, the lowest offset found by trying every one. */
#include "allocators/planning/packing.h"
#include "tests/support/amount.h"
#include "tests/support/planning_rig.h"
#include "tests/support/test.h"

#define BLOCKS 40
#define ROUNDS test_amount(400, 400)

static bool is_free(const struct packing_block *blocks, const uint64_t *offsets, const bool *placed,
                    size_t block, uint64_t offset)
{
    for (size_t i = 0; i < BLOCKS; i++)
        if (placed[i] && blocks[i].born < blocks[block].dies &&
            blocks[block].born < blocks[i].dies && offset < offsets[i] + blocks[i].bytes &&
            offsets[i] < offset + blocks[block].bytes)
            return false;
    return true;
}

/* The same by trying offsets from 0 upward. */
static void place_slowly(const struct packing_block *blocks, const uint32_t *order,
                         uint64_t *offsets)
{
    bool placed[BLOCKS] = {false};
    for (size_t i = 0; i < BLOCKS; i++) {
        uint64_t offset = 0, step = blocks[order[i]].alignment ? blocks[order[i]].alignment : 1;
        while (!is_free(blocks, offsets, placed, order[i], offset))
            offset += step;
        offsets[order[i]] = offset;
        placed[order[i]] = true;
    }
}

TEST(places_at_the_lowest_gap)
{
    struct ar_rng rng = ar_rng_of(1);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct packing_block blocks[BLOCKS];
        uint32_t order[BLOCKS];
        uint64_t offsets[BLOCKS], slow[BLOCKS], top_bytes;
        struct ar_host host = {0};
        struct packing packing;
        planning_rig_draw(&rng, blocks, BLOCKS, 20, 1 + ar_rng_below(&rng, 60));
        for (uint32_t i = 0; i < BLOCKS; i++) {
            uint32_t at = (uint32_t)ar_rng_below(&rng, i + 1);
            order[i] = order[at];
            order[at] = i;
            blocks[i].alignment = round % 2 ? UINT64_C(1) << ar_rng_below(&rng, 4) : 0;
        }
        assert_int_equal(packing_open(&packing, &host, blocks, BLOCKS, NULL), AR_OK);
        assert_int_equal(packing.peak_bytes, planning_rig_peak(blocks, BLOCKS));
        assert_int_equal(packing_place(&packing, order, PACKING_NOWHERE, offsets, &top_bytes, NULL),
                         AR_OK);
        place_slowly(blocks, order, slow);
        assert_memory_equal(offsets, slow, sizeof offsets);
        assert_true(planning_rig_is_plan(blocks, BLOCKS, offsets, top_bytes));
        assert_int_equal(packing_place(&packing, order, top_bytes - 1, slow, &top_bytes, NULL),
                         AR_OK);
        assert_int_equal(top_bytes, PACKING_NOWHERE);
        packing_close(&packing);
        assert_int_equal(host.now_bytes, 0);
    }
}

#define CROWD 3000

static int by_offset(const void *left, const void *right)
{
    const struct keyed *a = left, *b = right;
    return (a->key > b->key) - (a->key < b->key);
}

/* The lowest gap between the sorted blocks that are placed and live at the same time. */
static uint64_t gap_by_sorting(const struct packing_block *blocks, const uint32_t *order,
                               size_t placed, const uint64_t *offsets)
{
    static struct keyed found[CROWD];
    const struct packing_block *block = &blocks[order[placed]];
    size_t count = 0;
    uint64_t offset = 0;
    for (size_t i = 0; i < placed; i++) {
        const struct packing_block *other = &blocks[order[i]];
        if (other->born < block->dies && block->born < other->dies)
            found[count++] = (struct keyed){offsets[order[i]], offsets[order[i]] + other->bytes};
    }
    qsort(found, count, sizeof *found, by_offset);
    for (size_t i = 0; i < count && found[i].key < offset + block->bytes; i++)
        if (found[i].value > offset)
            offset = (found[i].value + block->alignment - 1) & ~(block->alignment - 1);
    return offset;
}

/* Many blocks, over a deep tree: short lives and long ones, with gaps and without. */
TEST(places_many_at_the_lowest_gap)
{
    static struct packing_block blocks[CROWD];
    static uint32_t order[CROWD];
    static uint64_t offsets[CROWD];
    struct ar_rng rng = ar_rng_of(5);
    for (int round = 0; round < 6; round += 1 + (test_amount(3, 3) < 3)) {
        struct ar_host host = {0};
        struct packing packing;
        uint64_t top_bytes;
        uint64_t moments = round % 3 == 0 ? 50 : round % 3 == 1 ? 1000 : 100000;
        planning_rig_draw(&rng, blocks, CROWD, round < 3 ? 100000 : 10, moments);
        for (uint32_t i = 0; i < CROWD; i++) {
            uint32_t at = (uint32_t)ar_rng_below(&rng, i + 1);
            order[i] = order[at];
            order[at] = i;
            blocks[i].alignment = UINT64_C(1) << ar_rng_below(&rng, 4);
            if (i % 2 && blocks[i].dies > blocks[i].born + 40)
                blocks[i].dies = blocks[i].born + 1 + ar_rng_below(&rng, 40);
        }
        assert_int_equal(packing_open(&packing, &host, blocks, CROWD, NULL), AR_OK);
        assert_int_equal(packing_place(&packing, order, PACKING_NOWHERE, offsets, &top_bytes, NULL),
                         AR_OK);
        for (size_t i = 0; i < CROWD; i++)
            assert_int_equal(offsets[order[i]], gap_by_sorting(blocks, order, i, offsets));
        packing_close(&packing);
        assert_int_equal(host.now_bytes, 0);
    }
}

/* A workload without frees: each block meets all others, but this must not take n^2 steps. */
TEST(blocks_that_all_live_take_few_steps)
{
    const uint32_t count = 70000;
    FREED struct packing_block *blocks = calloc(count, sizeof *blocks);
    FREED uint64_t *offsets = calloc(count, sizeof *offsets);
    struct ar_host host = {0};
    struct packing packing;
    uint64_t steps = 0, top_bytes = 0;
    struct ar_rng rng = ar_rng_of(6);
    assert_true(blocks && offsets);
    for (uint32_t i = 0; i < count; i++)
        blocks[i] = (struct packing_block){
            .bytes = ar_rng_between(&rng, 1, 1 << 20), .born = i, .dies = count};
    assert_int_equal(packing_open(&packing, &host, blocks, count, NULL), AR_OK);
    assert_int_equal(packing_place_by(&packing, PACKING_ORDER_size, offsets, &top_bytes, &steps),
                     AR_OK);
    assert_int_equal(top_bytes, packing.peak_bytes);
    assert_true(steps < UINT64_C(100) * count); /* n (n - 1) / 2 is 35,000 a block */
    packing_close(&packing);
    assert_int_equal(host.now_bytes, 0);
}

TEST(the_best_order_is_the_lowest)
{
    struct ar_rng rng = ar_rng_of(2);
    unsigned different = 0;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct packing_block blocks[BLOCKS];
        uint64_t offsets[BLOCKS], one[BLOCKS], top_bytes;
        struct ar_host host = {0};
        struct packing packing;
        struct packing_best best;
        planning_rig_draw(&rng, blocks, BLOCKS, 1000, 60);
        assert_int_equal(packing_open(&packing, &host, blocks, BLOCKS, NULL), AR_OK);
        assert_int_equal(packing_best_order(&packing, offsets, &best), AR_OK);
        assert_true(planning_rig_is_plan(blocks, BLOCKS, offsets, best.top_bytes));
        assert_true(best.top_bytes >= packing.peak_bytes);
        for (enum packing_order order = 0; order < PACKING_ORDER_COUNT; order++) {
            assert_int_equal(packing_place_by(&packing, order, one, &top_bytes, NULL), AR_OK);
            assert_int_equal(top_bytes, best.tops_bytes[order]);
            assert_true(best.top_bytes < top_bytes ||
                        (best.top_bytes == top_bytes && best.order <= order));
        }
        different += best.order != PACKING_ORDER_size;
        packing_close(&packing);
        assert_int_equal(host.now_bytes, 0);
    }
    assert_true(different > ROUNDS / 10);
}

TEST(no_host_memory_leaves_nothing_behind)
{
    struct ar_rng rng = ar_rng_of(3);
    struct packing_block blocks[BLOCKS];
    uint64_t offsets[BLOCKS];
    planning_rig_draw(&rng, blocks, BLOCKS, 1000, 60);
    bool done = false;
    for (uint64_t fail_at = 1; !done; fail_at++) {
        struct ar_host host = {.fail_at = fail_at};
        struct packing packing;
        struct packing_best best;
        enum ar_status status = packing_open(&packing, &host, blocks, BLOCKS, NULL);
        if (!status) {
            status = packing_best_order(&packing, offsets, &best);
            packing_close(&packing);
        }
        done = status == AR_OK;
        assert_true(done || status == AR_HOST_MEMORY);
        assert_int_equal(host.now_bytes, 0);
    }
}

TEST(refuses_what_is_no_block)
{
    static const struct packing_block bad[] = {
        {.bytes = 0, .born = 0, .dies = 1},
        {.bytes = 1, .born = 1, .dies = 1},
        {.bytes = 1, .born = 0, .dies = 1, .alignment = 3},
        {.bytes = PACKING_LIMIT, .born = 0, .dies = 1},
    };
    const struct packing_block many[] = {{.bytes = PACKING_LIMIT - 1, .born = 0, .dies = 2},
                                         {.bytes = 1, .born = 1, .dies = 2}};
    struct ar_host host = {0};
    struct packing packing;
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(packing_open(&packing, &host, &bad[i], 1, &test_error), AR_INVALID);
    assert_says(packing_open(&packing, &host, many, 2, &test_error), AR_INVALID, "2^62");
    assert_ok(packing_open(&packing, &host, many, 0, &test_error));
    assert_int_equal(packing.peak_bytes, 0);
    packing_close(&packing);
    assert_int_equal(host.now_bytes, 0);
}

/* Few and many keys, wide ones and ones that differ in one digit. */
TEST(sorting_keeps_equals_in_order)
{
    static struct keyed keys[2][3000];
    struct ar_rng rng = ar_rng_of(4);
    for (size_t count = 0; count < 3000; count = 2 * count + 1) {
        for (unsigned shift = 0; shift < 64; shift += 21) {
            for (size_t i = 0; i < count; i++)
                keys[0][i] = (struct keyed){ar_rng_below(&rng, 50) << shift | shift, i};
            const struct keyed *sorted = keyed_sort(keys[0], keys[1], count);
            uint64_t values = 0;
            for (size_t i = 0; i < count; i++) {
                values += sorted[i].value + 1;
                assert_true(
                    i == 0 || sorted[i - 1].key < sorted[i].key ||
                    (sorted[i - 1].key == sorted[i].key && sorted[i - 1].value < sorted[i].value));
            }
            assert_int_equal(values, count * (count + 1) / 2);
        }
    }
}
