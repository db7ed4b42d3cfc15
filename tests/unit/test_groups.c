/* Rows of one cause become one: by policy, by figure; and which rows stay separate. */
#include "bench/regress/change_table.h"
#include "tests/support/test.h"

TEST(a_policy_and_a_figure_take_their_rows)
{
    /* `torch` in five figures; `slowdown` under four others; two rows that share nothing with
     * four; and one of another kind. */
    static const struct group_item items[] = {{0, "torch", "a", "slowdown", 0.1, CHANGE_OTHER},
                                              {0, "torch", "b", "calls", 0.4, CHANGE_OTHER},
                                              {0, "torch", "a", "stall", 0.2, CHANGE_OTHER},
                                              {0, "torch", "b", "waits", 0.1, CHANGE_OTHER},
                                              {0, "torch", "a", "peak", 0.3, CHANGE_OTHER},
                                              {0, "vmm", "a", "slowdown", 0.1, CHANGE_OTHER},
                                              {0, "slab", "a", "slowdown", 0.5, CHANGE_OTHER},
                                              {0, "bfc", "a", "slowdown", 0.1, CHANGE_OTHER},
                                              {0, "tlsf", "a", "slowdown", 0.1, CHANGE_OTHER},
                                              {0, "bfc", "a", "calls", 0.1, CHANGE_OTHER},
                                              {0, "tlsf", "b", "peak", 0.1, CHANGE_OTHER},
                                              {7, "torch", "a", "frees", 0.1, CHANGE_OTHER}};
    CLOSED(groups_close) struct groups groups;
    char text[800];
    assert_ok(groups_make(&groups, items, COUNT(items), &test_error));
    assert_int_equal(groups.count, 5);
    assert_int_equal(groups.folded, 9);
    assert_int_equal(groups.items[0].by, GROUP_OF_FIGURE);
    assert_int_equal(groups.items[0].worst, 6);
    assert_string_equal(group_text(&groups.items[0], &items[6], text, sizeof text),
                        "figure slowdown, 4 policies in a; first: slab on a");
    assert_int_equal(groups.items[1].by, GROUP_OF_POLICY);
    assert_int_equal(groups.items[1].count, 5);
    assert_int_equal(groups.items[1].worst, 1);
    assert_string_equal(group_text(&groups.items[1], &items[1], text, sizeof text),
                        "policy torch, 5 figures in 2 workloads; first: calls of b");
    assert_int_equal(groups.items[2].worst, 9);
    assert_string_equal(group_text(&groups.items[2], &items[9], text, sizeof text),
                        "calls of a with policy bfc");
    assert_int_equal(groups.items[3].worst, 10);
    assert_int_equal(groups.items[4].worst, 11);
}

TEST(bytes_are_told_in_mib_too)
{
    static const char *const cases[][3] = {
        {"peak_granted_bytes", "1048576", "1048576 (1.0 MiB)"},
        {"peak_granted_bytes", "18446744073709551615",
         "18446744073709551615 (17592186044416.0 MiB)"},
        {"peak_granted_bytes", "1048575", "1048575"},
        {"peak_granted_bytes", "DNF @ 1048576", "DNF @ 1048576"},
        {"peak_granted_bytes", "1048576 or so", "1048576 or so"},
        {"driver_calls", "1048576", "1048576"},
    };
    char text[CHANGE_VALUE_ROOM];
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_string_equal(change_value_text(cases[i][0], cases[i][1], text), cases[i][2]);
}

TEST(what_has_no_size_is_the_worst)
{
    static const struct group_item items[] = {{0, "torch", "a", "calls", 0.4, CHANGE_OTHER},
                                              {0, "torch", "b", "outcome", -1, CHANGE_OTHER},
                                              {0, "torch", "a", "outcome", -1, CHANGE_OTHER},
                                              {0, "torch", "c", "calls", 9, CHANGE_OTHER}};
    CLOSED(groups_close) struct groups groups;
    assert_ok(groups_make(&groups, items, 4, &test_error));
    assert_int_equal(groups.count, 1);
    assert_int_equal(groups.items[0].worst, 1);
}

/* An outcome, memory and time come before a larger change of something else, and a share last: so
 * the group is described by its memory, and a single row of memory precedes a group of shares. */
TEST(what_matters_comes_first)
{
    static const struct group_item items[] = {
        {0, "torch", "a", "internal_fragmentation_mean", 0.9, CHANGE_SHARE},
        {0, "torch", "b", "internal_fragmentation_mean", 0.9, CHANGE_SHARE},
        {0, "torch", "c", "driver_calls", 9, CHANGE_OTHER},
        {0, "torch", "d", "internal_fragmentation_mean", -1, CHANGE_SHARE},
        {0, "slab", "a", "external_fragmentation_mean", 0.9, CHANGE_SHARE},
        {0, "slab", "b", "external_fragmentation_mean", 0.9, CHANGE_SHARE},
        {0, "slab", "c", "slowdown", 0.01, CHANGE_TIME},
        {0, "slab", "d", "peak_physical_bytes", 0.01, CHANGE_MEMORY},
        {0, "vmm", "a", "outcome", -1, CHANGE_OUTCOME}};
    static const size_t worst[] = {8, 7, 2};
    CLOSED(groups_close) struct groups groups;
    assert_ok(groups_make(&groups, items, COUNT(items), &test_error));
    assert_int_equal(groups.count, COUNT(worst));
    for (size_t i = 0; i < COUNT(worst); i++)
        assert_int_equal(groups.items[i].worst, worst[i]);
}

TEST(a_share_changes_by_points)
{
    char text[48];
    assert_true(change_is_share("ratio", 1.9e-7, 1.7e-6));
    assert_true(change_is_share("ratio", 0, 1));
    assert_false(change_is_share("ratio", 1.3, 1));
    assert_false(change_is_share("bytes", 0, 1));
    assert_int_equal(change_place("internal_fragmentation_mean", true), CHANGE_SHARE);
    assert_int_equal(change_place("driver_calls", false), CHANGE_OTHER);
    assert_int_equal(change_place("slowdown", true), CHANGE_TIME);
    change_size_text(1.51e-6, true, "worse", text);
    assert_string_equal(text, "0.000151 percentage points worse");
    change_size_text(8, false, "worse", text);
    assert_string_equal(text, "800 % worse");
}

TEST(few_rows_and_none_stay_what_they_are)
{
    static const struct group_item items[] = {{0, "torch", "a", "calls", 0.4, CHANGE_OTHER},
                                              {0, "torch", "b", "calls", 0.4, CHANGE_OTHER},
                                              {0, "torch", "c", "calls", 0.4, CHANGE_OTHER}};
    struct groups groups;
    assert_ok(groups_make(&groups, items, 3, &test_error));
    assert_int_equal(groups.count, 3);
    assert_int_equal(groups.folded, 0);
    groups_close(&groups);
    assert_ok(groups_make(&groups, items, 0, &test_error));
    assert_int_equal(groups.count, 0);
    groups_close(&groups);
}
