/* The raw memory timeline of PyTorch's profiler: small ones written here. */
#include "tests/support/format_rig.h"
#include "tests/support/test.h"

TRACE_TEST(test_pairs)
{
    struct import_report report;
    format_rig_converts(*state,
                        "[[-1, 1, 4096, 0], [1700000000000000000, 2, 512, 3],\n"
                        " [1700000000000000500, 2, 512, 4], [1700000000000000600, 2, 512, 3],\n"
                        " [1700000000000000700, 4, -512, 3], [1700000000000000800, 4, -512, 4],\n"
                        " [1700000000000000900, 4, -512, 3], [1700000000000001000, 4, -4096, 0]]\n",
                        "# recorder: torch.profiler\na,0,4096,tag=parameter,initial=yes\nt,0\n"
                        "a,1,512,tag=temporary\nt,500\na,2,512,tag=activation\nt,600\n"
                        "a,3,512,tag=temporary\nt,700\nf,3\nt,800\nf,2\nt,900\nf,1\nt,1000\nf,0\n",
                        &report);
    assert_int_equal(report.records, 8);
    assert_int_equal(report.unmatched_frees, 0);
    assert_true(report.begins_in_the_middle);
}

TRACE_TEST(test_writes_change_the_category)
{
    struct import_report report;
    format_rig_converts(*state,
                        "[[5,2,64,7],[6,2,64,4],[7,3,-64,7],[7,3,64,5],[8,4,-64,5],[9,4,-64,4]]",
                        "# recorder: torch.profiler\nt,0\na,0,64\nt,1\na,1,64,tag=activation\nt,3\n"
                        "f,0\nt,4\nf,1\n",
                        &report);
    assert_int_equal(report.left_out, 0);
}

TRACE_TEST(test_what_was_never_made)
{
    struct import_report report;
    format_rig_converts(*state,
                        "[[5,2,64,7],[6,4,-128,2],[7,4,-64,1],[8,3,-9,1],[8,3,9,1],[8,3,9,1]]",
                        "# recorder: torch.profiler\na,0,128,tag=input,initial=yes\nt,0\na,1,64\n"
                        "t,1\nf,0\nt,2\nf,1\n",
                        &report);
    assert_int_equal(report.unmatched_frees, 1);
    assert_int_equal(report.left_out, 3);
}

TRACE_TEST(test_units_and_order_of_times)
{
    format_rig_converts(
        *state, "[[1700000000000002,2,1,7],[1700000000000001,2,2,7],[1700000000000004,2,0,7]]",
        "# recorder: torch.profiler\nt,1000\na,0,1\na,1,2\nt,3000\na,2,0\n", NULL);
}

TRACE_TEST(test_refused)
{
    static const struct format_rig_refusal cases[] = {
        {"[[1,2,3]]", ":1: byte 8: the row has 3 numbers"},
        {"[[1,2,3,4,5]]", ":1: byte 11: each row must have four numbers"},
        {"[[1,2,3,4,5]", ":1: byte 11: each row must have four numbers"},
        {"[[1,2,3,4],\n[1,9,1,1]]", ":2: byte 21: the action 9 is not known"},
        {"[[1,2,3,8]]", ":1: byte 10: the category 8 is not known"},
        {"[[1,2,-3,1]]", ":1: byte 11: a tensor of -3 bytes cannot be"},
        {"[[1,4,3,1]]", ":1: byte 10: a tensor of 3 bytes cannot be"},
        {"[[1,2,1152921504606846976,1]]",
         ":1: byte 28: a tensor of 1152921504606846976 bytes cannot be"},
        {"[[1,2,3,\"x\"]]", ":1: byte 11: each row must have four numbers"},
        {"[[1,2,3,4], 7]", ":1: byte 13: a row in brackets is expected"},
        {"[[1,2,3,4], [1,2", ":1: byte 16: the file ends in the middle of its JSON: it is cut off"},
        {"[[[1]]]", ":1: byte 3: each row must have four numbers"},
        {"[[4611686018427387904,2,3,4]]", ":1: byte 21: each row must have four numbers"},
        {"[[2305843009213693952,2,3,4]]", ":1: byte 28: the time 2305843009213693952 cannot be"},
    };
    format_rig_refuses(*state, cases, sizeof cases / sizeof cases[0]);
}
