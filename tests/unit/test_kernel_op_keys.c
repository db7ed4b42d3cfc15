/* The keys of a kernel op: reading and writing them, and their new block names when a trace is
 * rewritten. */
#include "tests/support/test.h"
#include "tests/support/trace_rig.h"
#include "workloads/trace/filter.h"
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

#define HEAD "# allocrig-trace 1\n# name: x\n"

static const char two_steps[] = HEAD "a,0,100\na,1,100\nk,0,5,x=1,op=set,out=~1\nf,1\nm,step\n"
                                     "a,2,50\na,3,200\nk,0,5,op=copy,out=3,in=0+~2\n"
                                     "k,0,5,op=my own\nf,3\nm,step\n";

TEST(a_filter_gives_blocks_their_new_names)
{
    CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
    trace_rig_filtered(&rig, two_steps, &(struct trace_filter_options){0}, two_steps);
    /* Only the second step: block 0 stays 0, 2 and 3 become 1 and 2. */
    trace_rig_filtered(&rig, two_steps,
                       &(struct trace_filter_options){.first_step = 2, .last_step = 2},
                       HEAD "a,0,100,initial=yes\na,1,50\na,2,200\nk,0,5,op=copy,out=2,in=0+~2\n"
                            "k,0,5,op=my own\nf,2\nm,step\n");
    /* Without block 2 the copy lacks an operand: the kernel has no kernel op. */
    trace_rig_filtered(&rig, two_steps, &(struct trace_filter_options){.min_bytes = 60},
                       HEAD
                       "a,0,100\na,1,100\nk,0,5,x=1,op=set,out=~1\nf,1\nm,step\na,2,200\nk,0,5\n"
                       "k,0,5,op=my own\nf,2\nm,step\n");
}

TEST(a_merge_gives_blocks_their_new_names)
{
    CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
    struct trace_source *sources[2] = {NULL, NULL}, *merged = NULL;
    for (int i = 0; i < 2; i++)
        assert_ok(trace_rig_text(&rig, HEAD "a,0,8\na,1,8\nk,0,5,op=copy,out=0,in=~1\n",
                                 &sources[i], &test_error));
    assert_ok(trace_merge(sources, 2, &merged, &test_error));
    FREED char *got = trace_rig_print(&rig, merged);
    /* Requests alternate: 0 2 of the first trace, 1 3 of the second. */
    assert_non_null(strstr(got, "k,0,5,tenant=0,op=copy,out=0,in=~"));
    assert_non_null(strstr(got, "k,1,5,tenant=1,op=copy,out=1,in=~1"));
    trace_close(merged);
}
