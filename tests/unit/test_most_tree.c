/* The tree of maxima compared with a linear search of an array. */
#include "allocators/base/most_tree.h"
#include "allocators/base/rng.h"
#include "tests/support/test.h"

enum { MOST = 700, TURNS = 4000 };

static uint32_t plain_next(const uint64_t *plain, uint32_t from, uint64_t least)
{
    while (from < MOST && plain[from] < least)
        from++;
    return from < MOST ? from : AR_MOST_TREE_NONE;
}

TEST(it_answers_as_an_array)
{
    struct ar_host host = {0};
    struct ar_most_tree tree = {0};
    struct ar_rng rng = ar_rng_of(3);
    uint64_t plain[MOST] = {0};
    assert_int_equal(ar_most_tree_top(&tree), 0);
    assert_true(ar_most_tree_next(&tree, 0, 1) == AR_MOST_TREE_NONE);
    for (uint32_t i = 0; i < TURNS; i++) {
        uint32_t count = 1 + i * MOST / TURNS; /* it grows while it is used */
        uint32_t number = (uint32_t)ar_rng_below(&rng, count);
        assert_true(ar_most_tree_reserve(&tree, &host, count));
        plain[number] = ar_rng_below(&rng, 3) ? 0 : ar_rng_below(&rng, 50);
        ar_most_tree_set(&tree, number, plain[number]);
        uint64_t top = 0;
        for (uint32_t k = 0; k < MOST; k++)
            top = plain[k] > top ? plain[k] : top;
        assert_int_equal(ar_most_tree_top(&tree), top);
        uint32_t from = (uint32_t)ar_rng_below(&rng, MOST + 400);
        uint64_t least = 1 + ar_rng_below(&rng, 55);
        assert_int_equal(ar_most_tree_next(&tree, from, least), plain_next(plain, from, least));
        assert_int_equal(ar_most_tree_next(&tree, 0, 1), plain_next(plain, 0, 1));
    }
    ar_most_tree_close(&tree, &host);
    assert_int_equal(host.now_bytes, 0);
}

TEST(without_memory_nothing_changes)
{
    struct ar_host host = {0};
    struct ar_most_tree tree = {0};
    assert_true(ar_most_tree_reserve(&tree, &host, 5));
    ar_most_tree_set(&tree, 4, 9);
    host.fail_at = host.calls + 1;
    assert_false(ar_most_tree_reserve(&tree, &host, 500));
    assert_int_equal(tree.room, 8);
    assert_int_equal(ar_most_tree_next(&tree, 0, 9), 4);
    assert_true(ar_most_tree_reserve(&tree, &host, 500));
    assert_int_equal(ar_most_tree_next(&tree, 0, 9), 4);
    ar_most_tree_close(&tree, &host);
    assert_int_equal(host.now_bytes, 0);
}
