/* The exact search compared with brute force of two kinds: every offset for every block; and
 * placement at the lowest free offset in every order, which finds the optimum because the blocks of
 * an optimal plan can be placed again in the order of their offsets. */
#include "allocators/planning/packing.h"
#include "tests/support/amount.h"
#include "tests/support/planning_rig.h"
#include "tests/support/test.h"

#define MOST   16
#define BLOCKS 7

/* Every order, by Heap's algorithm. */
static uint64_t every_order(const struct packing *packing)
{
    uint32_t order[BLOCKS], turns[BLOCKS] = {0};
    uint64_t offsets[BLOCKS], top_bytes, best_bytes = PACKING_NOWHERE;
    for (uint32_t i = 0; i < BLOCKS; i++)
        order[i] = i;
    for (uint32_t i = 0; i < BLOCKS;) {
        assert_int_equal(packing_place(packing, order, best_bytes, offsets, &top_bytes, NULL),
                         AR_OK);
        best_bytes = top_bytes < best_bytes ? top_bytes : best_bytes;
        while (i < BLOCKS && turns[i] >= i)
            turns[i++] = 0;
        if (i == BLOCKS)
            break;
        uint32_t from = i % 2 ? turns[i] : 0, moved = order[from];
        order[from] = order[i];
        order[i] = moved;
        turns[i]++;
        i = 1;
    }
    return best_bytes;
}

/* Solves one problem, which must be proven, and checks the plan. */
static struct packing_exact solve(const struct packing_block *blocks, size_t count,
                                  uint64_t (*brute)(const struct packing *packing))
{
    uint64_t offsets[MOST];
    struct ar_host host = {0};
    struct packing packing;
    struct packing_best best;
    struct packing_exact exact;
    const struct packing_exact_options options = {.steps_most = 0};
    assert_int_equal(packing_open(&packing, &host, blocks, count, NULL), AR_OK);
    assert_int_equal(packing_best_order(&packing, offsets, &best), AR_OK);
    exact.top_bytes = best.top_bytes * 2; /* a plan that is easy to improve */
    assert_int_equal(packing_exact(&packing, &options, offsets, &exact), AR_OK);
    assert_int_equal(exact.top_bytes, brute(&packing));
    assert_int_equal(exact.least_bytes, exact.top_bytes);
    assert_true(planning_rig_is_plan(blocks, count, offsets, exact.top_bytes));
    assert_int_equal(exact.end, exact.top_bytes == packing.peak_bytes ? PACKING_EXACT_MEETS_BOUND
                                                                      : PACKING_EXACT_EXHAUSTED);
    packing_close(&packing);
    assert_int_equal(host.now_bytes, 0);
    return exact;
}

/* Blocks from `at` on at every possible offset. */
static bool try_offsets(const struct packing_block *blocks, size_t count, uint64_t *offsets,
                        size_t at, uint64_t capacity_bytes)
{
    if (at == count)
        return true;
    for (uint64_t offset = 0; offset + blocks[at].bytes <= capacity_bytes; offset++) {
        bool fits = true;
        for (size_t i = 0; i < at && fits; i++)
            fits = blocks[i].born >= blocks[at].dies || blocks[at].born >= blocks[i].dies ||
                   offset >= offsets[i] + blocks[i].bytes ||
                   offsets[i] >= offset + blocks[at].bytes;
        offsets[at] = offset;
        if (fits && try_offsets(blocks, count, offsets, at + 1, capacity_bytes))
            return true;
    }
    return false;
}

static uint64_t every_offset(const struct packing *packing)
{
    uint64_t offsets[MOST], capacity_bytes = packing->peak_bytes;
    while (!try_offsets(packing->blocks, packing->count, offsets, 0, capacity_bytes))
        capacity_bytes++;
    return capacity_bytes;
}

TEST(finds_what_every_offset_finds)
{
    struct ar_rng rng = ar_rng_of(1);
    unsigned above = 0;
    for (uint64_t round = 0; round < 300; round++) {
        struct packing_block blocks[MOST];
        size_t count = planning_rig_fill(&rng, blocks, MOST, 12, 9, 10);
        above += solve(blocks, count, every_offset).end == PACKING_EXACT_EXHAUSTED;
    }
    assert_true(above > 2);
}

TEST(keeps_alignments)
{
    struct ar_rng rng = ar_rng_of(3);
    unsigned above = 0;
    const uint64_t rounds = test_amount(250, 60);
    for (uint64_t round = 0; round < rounds; round++) {
        struct packing_block blocks[BLOCKS];
        planning_rig_draw(&rng, blocks, BLOCKS, 6, 9);
        for (size_t i = 0; i < BLOCKS; i++)
            blocks[i].alignment = UINT64_C(1) << ar_rng_below(&rng, 3);
        above += solve(blocks, BLOCKS, every_order).end == PACKING_EXACT_EXHAUSTED;
    }
    assert_true(above > rounds / 10);
}

/* Multiples of a unit have the same plans, scaled. */
TEST(units_do_not_matter)
{
    struct ar_rng rng = ar_rng_of(6);
    const uint64_t rounds = test_amount(50, 50);
    for (uint64_t round = 0; round < rounds; round++) {
        struct packing_block blocks[BLOCKS];
        planning_rig_draw(&rng, blocks, BLOCKS, 6, 9);
        uint64_t top_bytes = solve(blocks, BLOCKS, every_order).top_bytes;
        for (size_t i = 0; i < BLOCKS; i++)
            blocks[i].bytes *= 1536;
        assert_int_equal(solve(blocks, BLOCKS, every_order).top_bytes, 1536 * top_bytes);
    }
}

/* Larger problems, for which only the number of steps says whether it ends. */
TEST(says_how_far_it_got)
{
    struct ar_rng rng = ar_rng_of(4);
    unsigned cut = 0, done = 0;
    for (uint64_t round = 0; round < test_amount(60, 30); round++) {
        struct packing_block blocks[80];
        uint64_t offsets[2][80];
        struct ar_host host = {0};
        struct packing packing;
        struct packing_best best;
        struct packing_exact exact[2];
        const struct packing_exact_options options = {.steps_most = 3000};
        size_t count = planning_rig_fill(&rng, blocks, 80, 1000, 400, 30);
        assert_int_equal(packing_open(&packing, &host, blocks, count, NULL), AR_OK);
        for (int twice = 0; twice < 2; twice++) { /* and the same again */
            assert_int_equal(packing_best_order(&packing, offsets[twice], &best), AR_OK);
            memset(&exact[twice], 0, sizeof exact[twice]);
            exact[twice].top_bytes = best.top_bytes;
            assert_int_equal(packing_exact(&packing, &options, offsets[twice], &exact[twice]),
                             AR_OK);
        }
        assert_memory_equal(offsets[0], offsets[1], count * sizeof offsets[0][0]);
        assert_memory_equal(&exact[0], &exact[1], sizeof exact[0]);
        assert_true(planning_rig_is_plan(blocks, count, offsets[0], exact->top_bytes));
        assert_true(exact->least_bytes >= packing.peak_bytes && exact->steps <= 3000);
        assert_true(exact->least_bytes <= exact->top_bytes && exact->top_bytes <= best.top_bytes);
        assert_int_equal(exact->end == PACKING_EXACT_CUT, exact->least_bytes < exact->top_bytes);
        cut += exact->end == PACKING_EXACT_CUT;
        done += exact->end != PACKING_EXACT_CUT;
        packing_close(&packing);
        assert_int_equal(host.now_bytes, 0);
    }
    assert_true(cut > 0 && done > 0);
}

TEST(no_host_memory_keeps_a_plan)
{
    struct ar_rng rng = ar_rng_of(5);
    struct packing_block blocks[40];
    bool done = false;
    planning_rig_draw(&rng, blocks, 40, 40, 30);
    for (uint64_t fail_at = 1; !done; fail_at++) {
        uint64_t offsets[40];
        struct ar_host host = {0};
        struct packing packing;
        struct packing_best best;
        struct packing_exact exact;
        const struct packing_exact_options options = {.steps_most = 2000};
        assert_int_equal(packing_open(&packing, &host, blocks, 40, NULL), AR_OK);
        assert_int_equal(packing_best_order(&packing, offsets, &best), AR_OK);
        exact.top_bytes = best.top_bytes;
        host.fail_at = host.calls + fail_at;
        enum ar_status status = packing_exact(&packing, &options, offsets, &exact);
        done = status == AR_OK;
        assert_true(done || status == AR_HOST_MEMORY);
        assert_true(planning_rig_is_plan(blocks, 40, offsets, exact.top_bytes));
        packing_close(&packing);
        assert_int_equal(host.now_bytes, 0);
        assert_true(fail_at < 100);
    }
}
