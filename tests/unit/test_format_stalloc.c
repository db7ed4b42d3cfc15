/* STAlloc's traces: requests, frees, steps and marks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/format_rig.h"

static void lines_become_events(void **state)
{
    struct import_report report;
    format_rig_converts(*state,
                        "1 0x1000 1024 0\n"
                        "Iteration Index : 0\n"
                        "micro-batch : F\n"
                        "decoder.layers.0.mlp->ParallelMLP Layer : F-start\n"
                        "1 0x2000 512 0x5581\n"
                        "0 0x2000 512 0x5581\n"
                        "Iteration Index : 1\n"
                        "1 0x2000 256 0\n"
                        "Iteration Index : end\n"
                        "0 0x2000 256 0\n"
                        "0 0x1000 1024 0\n",
                        "# recorder: stalloc\n"
                        "a,0,1024\n!,alloc,4096\nm,micro-batch:F\n"
                        "m,decoder.layers.0.mlp->ParallelMLP_Layer:F-start\n"
                        "a,1,512,1\n!,alloc,8192\nf,1\nm,step\na,2,256\n!,alloc,8192\nm,step\n"
                        "f,2\nf,0\n",
                        &report);
    assert_int_equal(report.records, 6);
    assert_int_equal(report.guess_count, 0);
}

/* The first line may be of either kind; a mark holds no comma and no equals sign. */
static void a_file_may_begin_with_a_place(void **state)
{
    format_rig_converts(*state,
                        "token_dispatcher preprocess: F-start, n=2\r\n"
                        "1 0x1000 8 0\r\n",
                        "# recorder: stalloc\n"
                        "m,token_dispatcher_preprocess:F-start_n_2\na,0,8\n!,alloc,4096\n",
                        NULL);
}

static void bad_lines_are_refused(void **state)
{
    static const struct format_rig_refusal cases[] = {
        {"1 0x1000 8 0\n1 0x1000 8\n", ":2: there are 3 words where 4 are wanted"},
        {"1 0x1000 8 0\n1 0x1000 8 0 0\n", ":2: there are 5 words"},
        {"1 0x1000 8 0\n2 0x1000 8 0\n", ":2: \"2\" is neither 1 (a request) nor 0 (a free)"},
        {"1 0x1000 8 0\n1 here 8 0\n", ":2: address: \"here\" is no address"},
        {"1 0x1000 8 0\n1 0x1000 -8 0\n", ":2: size"},
        {"1 0x1000 8 0\n1 0x1000 8 s\n", ":2: stream"},
        {"1 0x1000 8 0\nsomething else\n", ":2: there are 2 words"},
    };
    format_rig_refuses(*state, cases, sizeof cases / sizeof cases[0]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, format_rig_open, format_rig_close)
    const struct CMUnitTest tests[] = {
        TEST(lines_become_events),
        TEST(a_file_may_begin_with_a_place),
        TEST(bad_lines_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
