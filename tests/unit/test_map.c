/* The hash map: it has the same contents as an array of the same keys, with values of any width,
 * and without host memory it is unchanged. */
#include "allocators/base/map.h"
#include "allocators/base/rng.h"
#include "tests/support/test.h"

TEST(the_map_does_what_an_array_does)
{
    enum { IDS = 512 };
    uint64_t wanted[IDS] = {0}, value;
    CLOSED(ar_map_close) struct ar_map map = {.cells = NULL};
    struct ar_rng rng = ar_rng_of(7);
    size_t count = 0;
    for (uint64_t i = 0; i < 40000; i++) {
        uint64_t id = ar_rng_next(&rng) % IDS, spread = id * UINT64_C(0x100000001);
        if (ar_rng_next(&rng) % 2) {
            count += !wanted[id];
            wanted[id] = i + 1;
            assert_int_equal(ar_map_put(&map, spread, i + 1), AR_OK);
        } else {
            assert_int_equal(ar_map_remove(&map, spread), wanted[id] != 0);
            count -= wanted[id] != 0;
            wanted[id] = 0;
        }
        uint64_t other = ar_rng_next(&rng) % IDS;
        bool there = ar_map_get(&map, other * UINT64_C(0x100000001), &value);
        assert_int_equal(there, wanted[other] != 0);
        if (there)
            assert_int_equal(value, wanted[other]);
        assert_int_equal(map.count, count);
    }
    assert_true(map.room <= 4 * IDS);
    ar_map_clear(&map);
    assert_false(ar_map_get(&map, 0, &value));
}

TEST(values_of_several_words_move_whole)
{
    struct ar_host host = {0};
    struct ar_map map = {.host = &host, .more_words = 2};
    for (uint64_t key = 0; key < 1000; key++) {
        uint64_t *value = ar_map_add(&map, key << 21);
        assert_non_null(value);
        assert_int_equal(value[0] | value[1] | value[2], 0);
        value[0] = key;
        value[1] = key + 1;
        value[2] = key + 2;
    }
    for (uint64_t key = 0; key < 1000; key += 2)
        assert_true(ar_map_remove(&map, key << 21));
    size_t at = 0, visited = 0;
    for (const uint64_t *value; (value = ar_map_next(&map, &at)); visited++)
        assert_true(value[0] % 2 == 1 && value[2] == value[0] + 2);
    assert_int_equal(visited, 500);
    for (uint64_t key = 0; key < 1000; key++) {
        const uint64_t *value = ar_map_find(&map, key << 21);
        assert_int_equal(value != NULL, key % 2);
        if (value)
            assert_true(value[0] == key && value[1] == key + 1 && value[2] == key + 2);
    }
    ar_map_close(&map);
    assert_int_equal(host.now_bytes, 0);
}

TEST(without_host_memory_nothing_changes)
{
    struct ar_host host = {.fail_at = 2};
    struct ar_map map = {.host = &host};
    uint64_t value = 5;
    assert_int_equal(ar_map_put(&map, AR_MAP_NO_KEY, 1), AR_INVALID);
    assert_false(ar_map_get(&map, AR_MAP_NO_KEY, &value) || ar_map_remove(&map, AR_MAP_NO_KEY));
    uint64_t key = 0;
    while (ar_map_put(&map, key, key) == AR_OK)
        key++;
    assert_int_equal(map.count, key);
    assert_int_equal(map.room, 2 * key);
    assert_false(ar_map_get(&map, key, &value));
    assert_int_equal(value, 5);
    assert_true(ar_map_get(&map, key - 1, &value));
    assert_int_equal(value, key - 1);
    assert_int_equal(ar_map_reserve(&map), AR_OK); /* the host fails once only */
    assert_int_equal(ar_map_put(&map, key, key), AR_OK);
    ar_map_close(&map);
    assert_int_equal(host.now_bytes, 0);
}
