/* Arrays that grow: items stay, the capacity doubles, and without memory nothing changes. Sorted
 * arrays: the first item above a value. */
#include "allocators/base/array.h"
#include "allocators/base/parts.h"
#include "tests/support/test.h"

TEST(items_stay_as_it_grows)
{
    FREED uint32_t *items = NULL;
    size_t room = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        size_t before = room;
        items = ar_array_grow(items, i, &room, sizeof *items);
        assert_non_null(items);
        assert_true(room > i);
        assert_true(room == before || i == before);
        items[i] = 3 * i;
    }
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(items[i], 3 * i);
    assert_int_equal(room, 1024);
}

/* Twice as many items as the address space can hold. */
TEST(what_cannot_be_had_changes_nothing)
{
    FREED char *items = malloc(1);
    size_t room = SIZE_MAX / 2;
    assert_null(ar_array_grow(items, room, &room, 4));
    assert_int_equal(room, SIZE_MAX / 2);
}

struct item {
    char name;
    uint64_t address;
};

TEST(the_first_above_is_found)
{
    static const struct item items[] = {{'a', 10}, {'b', 20}, {'c', 20}, {'d', UINT64_MAX}};
    static const uint64_t values[] = {0, 9, 10, 19, 20, 21, UINT64_MAX};
    static const size_t wanted[] = {0, 0, 1, 1, 3, 3, 4};
    const size_t key_at = offsetof(struct item, address);
    for (size_t i = 0; i < COUNT(values); i++)
        assert_int_equal(ar_array_above(items, 4, sizeof *items, key_at, values[i]), wanted[i]);
    assert_int_equal(ar_array_above(NULL, 0, sizeof *items, key_at, 5), 0);
}

/* Values whose difference exceeds an int, equal values, and a single one. */
TEST(values_are_put_in_order)
{
    uint64_t values[] = {UINT64_MAX, 3, UINT64_C(1) << 40, 0, 3};
    static const uint64_t wanted[] = {0, 3, 3, UINT64_C(1) << 40, UINT64_MAX};
    ar_array_sort(values, 1);
    assert_true(values[0] == UINT64_MAX);
    ar_array_sort(values, 5);
    assert_memory_equal(values, wanted, sizeof wanted);
}

/* No search finds it, except the last class, which policies use for a part that none shall find. */
TEST(a_class_above_the_highest_is_a_fault)
{
    struct ar_host host = {0};
    struct ar_parts parts = {0};
    uint64_t count;
    assert_true(ar_parts_reserve(&parts, &host, 1, 10));
    uint32_t part = ar_parts_new(&parts, 0, 4096, 127);
    ar_parts_push(&parts, part, 127);
    assert_null(ar_parts_fault(&parts, &count));
    ar_parts_remove(&parts, part, 127);
    ar_parts_push(&parts, part, 128);
    assert_string_equal(ar_parts_fault(&parts, &count), "a class is above the highest one");
    ar_parts_remove(&parts, part, 128);
    ar_parts_push(&parts, part, AR_CLASSES - 1);
    assert_null(ar_parts_fault(&parts, &count));
    assert_int_equal(count, 1);
    ar_parts_close(&parts, &host);
}

TEST(an_array_reaches_an_index_with_zeros)
{
    size_t count = 0;
    FREED uint64_t *items = ar_array_reach(NULL, &count, 5, sizeof *items);
    assert_non_null(items);
    assert_true(count > 5);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(items[i], 0);
    items[5] = 7;
    assert_ptr_equal(ar_array_reach(items, &count, 4, sizeof *items), items);
    items = ar_array_reach(items, &count, 1000, sizeof *items);
    assert_non_null(items);
    assert_true(count > 1000);
    assert_int_equal(items[5], 7);
    for (size_t i = 6; i < count; i++)
        assert_int_equal(items[i], 0);
}
