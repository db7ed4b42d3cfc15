/* Rows of one cause become one: by policy, by figure; and which rows stay separate. */
#include "bench/regress/change_table.h"
#include "tests/support/test.h"

TEST(a_policy_and_a_figure_take_their_rows)
{
    /* `torch` in five figures; `slowdown` under four others; two rows that share nothing with
     * four; and one of another kind. */
    static const struct group_item items[] = {
        {0, "torch", "a", "slowdown", 0.1}, {0, "torch", "b", "calls", 0.4},
        {0, "torch", "a", "stall", 0.2},    {0, "torch", "b", "waits", 0.1},
        {0, "torch", "a", "peak", 0.3},     {0, "vmm", "a", "slowdown", 0.1},
        {0, "slab", "a", "slowdown", 0.5},  {0, "bfc", "a", "slowdown", 0.1},
        {0, "tlsf", "a", "slowdown", 0.1},  {0, "bfc", "a", "calls", 0.1},
        {0, "tlsf", "b", "peak", 0.1},      {7, "torch", "a", "frees", 0.1}};
    CLOSED(groups_close) struct groups groups;
    char text[800];
    assert_ok(groups_make(&groups, items, COUNT(items), &test_error));
    assert_int_equal(groups.count, 5);
    assert_int_equal(groups.folded, 9);
    assert_int_equal(groups.items[0].by, GROUP_OF_POLICY);
    assert_int_equal(groups.items[0].count, 5);
    assert_int_equal(groups.items[0].worst, 1);
    assert_string_equal(group_text(&groups.items[0], &items[1], text, sizeof text),
                        "policy torch, 5 figures in 2 workloads; largest: calls of b");
    assert_int_equal(groups.items[1].by, GROUP_OF_FIGURE);
    assert_int_equal(groups.items[1].worst, 6);
    assert_string_equal(group_text(&groups.items[1], &items[6], text, sizeof text),
                        "figure slowdown, 4 policies in a; largest: slab on a");
    assert_int_equal(groups.items[2].worst, 9);
    assert_string_equal(group_text(&groups.items[2], &items[9], text, sizeof text),
                        "calls of a with policy bfc");
    assert_int_equal(groups.items[3].worst, 10);
    assert_int_equal(groups.items[4].worst, 11);
}

TEST(what_has_no_size_is_the_worst)
{
    static const struct group_item items[] = {{0, "torch", "a", "calls", 0.4},
                                              {0, "torch", "b", "outcome", -1},
                                              {0, "torch", "a", "outcome", -1},
                                              {0, "torch", "c", "calls", 9}};
    CLOSED(groups_close) struct groups groups;
    assert_ok(groups_make(&groups, items, 4, &test_error));
    assert_int_equal(groups.count, 1);
    assert_int_equal(groups.items[0].worst, 1);
}

TEST(few_rows_and_none_stay_what_they_are)
{
    static const struct group_item items[] = {{0, "torch", "a", "calls", 0.4},
                                              {0, "torch", "b", "calls", 0.4},
                                              {0, "torch", "c", "calls", 0.4}};
    struct groups groups;
    assert_ok(groups_make(&groups, items, 3, &test_error));
    assert_int_equal(groups.count, 3);
    assert_int_equal(groups.folded, 0);
    groups_close(&groups);
    assert_ok(groups_make(&groups, items, 0, &test_error));
    assert_int_equal(groups.count, 0);
    groups_close(&groups);
}
