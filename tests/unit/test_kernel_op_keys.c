/* The keys of a kernel op: reading and writing them. Their new block names in a part of a trace are
 * in tests/steps/trace_filter. */
#include "tests/support/test.h"
#include "workloads/trace/kernel_op_keys.h"

TEST(texts_that_are_read_are_written)
{
    static const char *const texts[] = {
        "op=matmul,out=~1,in=~2+14,shape=4992x2048x2048,type=bf16",
        "op=set,out=0",
        "op=elementwise,out=7,in=1+2+~3+4",
        "op=reduce,out=1152921504606846975,in=0,shape=3",
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct trace_kernel_op kernel_op;
        char text[TRACE_KERNEL_OP_TEXT], mixed[400];
        assert_ok(trace_kernel_op_parse(texts[i], &kernel_op, &test_error));
        trace_kernel_op_print(&kernel_op, text);
        assert_string_equal(text, texts[i]);
        snprintf(mixed, sizeof mixed, "x=1,%s,note=a=b", texts[i]);
        assert_ok(trace_kernel_op_parse(mixed, &kernel_op, &test_error));
        trace_kernel_op_replace(mixed, &kernel_op, text, sizeof text);
        assert_int_equal(strncmp(text, "x=1,note=a=b,op=", 16), 0);
        trace_kernel_op_replace(mixed, NULL, text, sizeof text);
        assert_string_equal(text, "x=1,note=a=b");
    }
}

TEST(a_kernel_without_an_operation_has_no_kernel_op)
{
    static const char *const texts[] = {NULL, "", "x=1", "opera=7,outer=3"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct trace_kernel_op kernel_op;
        assert_ok(trace_kernel_op_parse(texts[i], &kernel_op, &test_error));
        assert_string_equal(kernel_op.op, "");
    }
}

static enum ar_status parse(const char *text, struct ar_error *error)
{
    struct trace_kernel_op kernel_op;
    enum ar_status status = trace_kernel_op_parse(text, &kernel_op, error);
    assert_int_equal(status, AR_INVALID);
    return status;
}

TEST(invalid_keys_are_refused)
{
    cases_refused("kernel_op_keys", "invalid_keys_are_refused", parse);
}

TEST(references_count_back_from_the_latest_request)
{
    uint64_t id;
    assert_true(trace_kernel_op_id((struct trace_reference){true, 1}, 5, &id));
    assert_int_equal(id, 4);
    assert_true(trace_kernel_op_id((struct trace_reference){true, 5}, 5, &id));
    assert_int_equal(id, 0);
    assert_false(trace_kernel_op_id((struct trace_reference){true, 6}, 5, &id));
    assert_true(trace_kernel_op_id((struct trace_reference){false, 4}, 5, &id));
    assert_int_equal(id, 4);
    assert_false(trace_kernel_op_id((struct trace_reference){false, 5}, 5, &id));
}
