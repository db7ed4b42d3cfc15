/* Trees of ranges compared with a linear search of an array. */
#include "allocators/base/range_tree.h"
#include "allocators/base/rng.h"
#include "tests/support/test.h"

#define SLOTS 200

/* Slot s may hold one range somewhere in [1000 s, 1000 s + 1000). */
struct model {
    struct ar_range_pool pool;
    struct ar_host host;
    uint32_t root;
    uint32_t node[SLOTS]; /* 0: none */
};

static const struct ar_range_node *at(const struct model *m, size_t slot)
{
    return m->node[slot] ? &m->pool.nodes[m->node[slot]] : NULL;
}

static void check_first(const struct model *m, uint64_t address, uint64_t bytes)
{
    uint32_t want = 0;
    for (size_t s = 0; s < SLOTS && !want; s++)
        if (at(m, s) && at(m, s)->address >= address && at(m, s)->bytes >= bytes)
            want = m->node[s];
    assert_int_equal(ar_range_tree_first(&m->pool, m->root, address, bytes), want);
}

static void check_most_below(const struct model *m, uint64_t address)
{
    uint64_t want = 0;
    for (size_t s = 0; s < SLOTS; s++)
        if (at(m, s) && at(m, s)->address < address && at(m, s)->bytes > want)
            want = at(m, s)->bytes;
    assert_int_equal(ar_range_tree_most_below(&m->pool, m->root, address), want);
}

static void check_best(const struct model *m, uint64_t bytes, uint64_t address)
{
    uint32_t want = 0;
    for (size_t s = 0; s < SLOTS; s++) {
        const struct ar_range_node *n = at(m, s);
        if (!n || n->bytes < bytes || (n->bytes == bytes && n->address < address))
            continue;
        if (!want || n->bytes < m->pool.nodes[want].bytes)
            want = m->node[s];
    }
    assert_int_equal(ar_range_tree_best(&m->pool, m->root, bytes, address), want);
}

static bool in_order(void *argument, const struct ar_range_node *node)
{
    uint64_t *last = argument;
    bool good = node->address >= *last;
    *last = node->address;
    return good;
}

static void check_whole(const struct model *m, enum ar_range_order order)
{
    uint64_t count;
    uint64_t want = 0;
    uint64_t most = 0;
    uint64_t last = 0;
    for (size_t s = 0; s < SLOTS; s++) {
        want += m->node[s] != 0;
        if (at(m, s) && at(m, s)->bytes > most)
            most = at(m, s)->bytes;
    }
    assert_true(ar_range_tree_check(&m->pool, m->root, order, &count));
    assert_int_equal(count, want);
    assert_int_equal(ar_range_tree_most(&m->pool, m->root), most);
    if (order == AR_RANGE_BY_ADDRESS)
        assert_true(ar_range_tree_walk(&m->pool, m->root, in_order, &last));
}

TEST(against_an_array)
{
    for (int o = 0; o < 2; o++) {
        enum ar_range_order order = o ? AR_RANGE_BY_SIZE : AR_RANGE_BY_ADDRESS;
        struct model m = {.root = 0};
        struct ar_rng rng = ar_rng_of(9);
        ar_range_pool_open(&m.pool, &m.host);
        for (int step = 0; step < 20000; step++) {
            size_t slot = ar_rng_below(&rng, SLOTS);
            uint64_t address = slot * 1000 + ar_rng_below(&rng, 500);
            uint64_t bytes = 1 + ar_rng_below(&rng, 40); /* many of the same size */
            if (!m.node[slot]) {
                assert_true(ar_range_pool_reserve(&m.pool, 1));
                m.node[slot] = ar_range_pool_take(&m.pool);
                m.pool.nodes[m.node[slot]].address = address;
                m.pool.nodes[m.node[slot]].bytes = bytes;
                ar_range_tree_insert(&m.pool, &m.root, order, m.node[slot]);
            } else if (order == AR_RANGE_BY_ADDRESS && ar_rng_below(&rng, 2)) {
                ar_range_tree_change(&m.pool, m.root, m.node[slot], address, bytes);
            } else {
                ar_range_tree_remove(&m.pool, &m.root, order, m.node[slot]);
                ar_range_pool_give(&m.pool, m.node[slot]);
                m.node[slot] = 0;
            }
            uint64_t from = ar_rng_below(&rng, SLOTS * 1000);
            if (order == AR_RANGE_BY_ADDRESS)
                check_first(&m, from, ar_rng_below(&rng, 42));
            else
                check_best(&m, ar_rng_below(&rng, 42), from);
            if (order == AR_RANGE_BY_ADDRESS)
                check_most_below(&m, ar_rng_below(&rng, SLOTS * 1000));
            check_whole(&m, order);
        }
        assert_true(m.pool.made <= SLOTS + 1); /* nodes are used again */
        ar_range_pool_close(&m.pool);
        assert_int_equal(m.host.now_bytes, 0);
    }
}

TEST(check_finds_damage)
{
    struct model m = {.root = 0};
    uint64_t count;
    ar_range_pool_open(&m.pool, &m.host);
    assert_true(ar_range_pool_reserve(&m.pool, 20));
    for (uint64_t i = 0; i < 20; i++) {
        m.node[i] = ar_range_pool_take(&m.pool);
        m.pool.nodes[m.node[i]].address = i * 10;
        m.pool.nodes[m.node[i]].bytes = 1 + i % 5;
        ar_range_tree_insert(&m.pool, &m.root, AR_RANGE_BY_ADDRESS, m.node[i]);
    }
    for (uint64_t i = 0; i < 20; i++) {
        struct ar_range_node *n = &m.pool.nodes[m.node[i]];
        struct ar_range_node good = *n;
        n->most_bytes += 1;
        assert_false(ar_range_tree_check(&m.pool, m.root, AR_RANGE_BY_ADDRESS, &count));
        *n = good;
        n->address = i < 10 ? 1000 : 0; /* out of order; the last and the first stay */
        if (i != 0 && i != 19)
            assert_false(ar_range_tree_check(&m.pool, m.root, AR_RANGE_BY_ADDRESS, &count));
        *n = good;
        assert_true(ar_range_tree_check(&m.pool, m.root, AR_RANGE_BY_ADDRESS, &count));
    }
    ar_range_pool_close(&m.pool);
}

/* Cuts runs, some of them empty, checks both trees, and joins them again. */
TEST(cut_and_join)
{
    struct model m = {.root = 0};
    struct ar_rng rng = ar_rng_of(8);
    uint64_t count;
    ar_range_pool_open(&m.pool, &m.host);
    assert_true(ar_range_pool_reserve(&m.pool, SLOTS));
    for (uint64_t s = 0; s < SLOTS; s++) {
        m.node[s] = ar_range_pool_take(&m.pool);
        m.pool.nodes[m.node[s]].address = s * 1000;
        m.pool.nodes[m.node[s]].bytes = 1 + ar_rng_below(&rng, 900);
        ar_range_tree_insert(&m.pool, &m.root, AR_RANGE_BY_ADDRESS, m.node[s]);
    }
    for (int round = 0; round < 500; round++) {
        uint64_t low = ar_rng_below(&rng, SLOTS);
        uint64_t high = low + ar_rng_below(&rng, SLOTS + 1 - low);
        uint32_t other = ar_range_tree_cut(&m.pool, &m.root, low * 1000, high * 1000);
        assert_true(ar_range_tree_check(&m.pool, m.root, AR_RANGE_BY_ADDRESS, &count));
        assert_int_equal(count, SLOTS - (high - low));
        assert_true(ar_range_tree_check(&m.pool, other, AR_RANGE_BY_ADDRESS, &count));
        assert_int_equal(count, high - low);
        if (high > low) {
            assert_int_equal(ar_range_tree_first(&m.pool, other, 0, 1), m.node[low]);
            assert_int_equal(ar_range_tree_first(&m.pool, m.root, low * 1000, 1),
                             high < SLOTS ? m.node[high] : 0);
        }
        ar_range_tree_join(&m.pool, &m.root, other);
        check_whole(&m, AR_RANGE_BY_ADDRESS);
    }
    ar_range_pool_close(&m.pool);
    assert_int_equal(m.host.now_bytes, 0);
}

TEST(pool_without_memory)
{
    struct ar_host host = {.fail_at = 2};
    struct ar_range_pool pool;
    ar_range_pool_open(&pool, &host);
    assert_true(ar_range_pool_reserve(&pool, 1));
    uint32_t room = pool.room;
    assert_false(ar_range_pool_reserve(&pool, room + 1));
    assert_int_equal(pool.room, room);
    assert_false(ar_range_pool_reserve(&pool, UINT32_MAX)); /* more than an index can count */
    ar_range_pool_close(&pool);
    assert_int_equal(host.now_bytes, 0);
}
