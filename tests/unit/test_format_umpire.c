/* Umpire's replay logs in both layouts: which memory is kept, requests without a result,
 * reallocations, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/format_rig.h"

/* A line of the first layout, and one of the second. */
#define FIRST(time, event, rest)                                                                   \
    "{ \"kind\":\"replay\", \"uid\":7, \"timestamp\":" time ", \"event\": \"" event "\", " rest    \
    " }\n"
#define SECOND(time, name, rest)                                                                   \
    "{\"category\":\"operation\",\"name\":\"" name "\"," rest ",\"timestamp\":" time "}\n"

#define RESOURCE(name, ref)                                                                        \
    FIRST("1", "makeMemoryResource",                                                               \
          "\"payload\": { \"name\": \"" name "\" }, \"result\": \"" ref "\"")
#define ALLOCATE(time, ref, size)                                                                  \
    FIRST(time, "allocate", "\"payload\": { \"allocator_ref\": \"" ref "\", \"size\": " size " }")
#define ALLOCATED(time, ref, size, address)                                                        \
    FIRST(time, "allocate",                                                                        \
          "\"payload\": { \"allocator_ref\": \"" ref "\", \"size\": " size " }, "                  \
          "\"result\": { \"memory_ptr\": \"" address "\" }")
#define DEALLOCATE(time, ref, address)                                                             \
    FIRST(time, "deallocate",                                                                      \
          "\"payload\": { \"allocator_ref\": \"" ref "\", \"memory_ptr\": \"" address "\" }")
#define REALLOCATED(time, address, size, result)                                                   \
    FIRST(time, "reallocate",                                                                      \
          "\"payload\": { \"ptr\": \"" address "\", \"size\": " size " }" result)
#define POOL(result)                                                                               \
    FIRST("2", "makeAllocator",                                                                    \
          "\"payload\": { \"type\":\"umpire::strategy::DynamicPool\", "                            \
          "\"with_introspection\":true, \"allocator_name\":\"pool\", \"args\": "                   \
          "[ \"DEVICE_base\", 1024 ] }" result)

static void the_first_layout(void **state)
{
    struct import_report report;
    format_rig_converts(
        *state,
        "# a comment\n" FIRST("1", "version",
                              "\"payload\": { \"major\":0, \"minor\":3, \"patch\":3 }")
            RESOURCE("HOST", "0x1") RESOURCE("DEVICE", "0x2") RESOURCE("PINNED", "0x3") POOL("")
                POOL(", \"result\": { \"allocator_ref\":\"0x9\" }") ALLOCATE("100", "0x9", "64")
                    ALLOCATED("101", "0x9", "64", "0x1000") ALLOCATED("102", "0x1", "7", "0x77")
                        ALLOCATED("103", "0x3", "32", "0x2000") DEALLOCATE("104", "0x1", "0x77")
                            DEALLOCATE("105", "0x9", "0x1000") FIRST(
                                "106", "release", "\"payload\": { \"allocator_ref\": \"0x9\" }"),
        "# recorder: umpire 0.3.3\n"
        "t,0\na,0,64,tag=pool\n!,alloc,4096\nt,2\na,1,32,tag=PINNED,space=pinned\n!,alloc,8192\n"
        "t,4\nf,0\nt,5\nc\n",
        &report);
    assert_int_equal(report.records, 13);
    assert_int_equal(report.left_out, 2);
    assert_int_equal(report.guess_count, 1);
    assert_string_equal(report.guesses[0], "1 requests of host memory are left out");
}

static void requests_without_result_failed(void **state)
{
    struct import_report report;
    format_rig_converts(*state,
                        RESOURCE("DEVICE", "0x2") ALLOCATE("10", "0x2", "99999")
                            ALLOCATE("11", "0x2", "8") ALLOCATED("12", "0x2", "8", "0x1000")
                                ALLOCATE("13", "0x2", "88888"),
                        "# recorder: umpire\n# complete: no\n# let-go: final\n"
                        "t,0\np,0,99999,tag=DEVICE\n!,oom\nr,0\nt,2\na,1,8,tag=DEVICE\n"
                        "!,alloc,4096\nt,3\na,2,88888,tag=DEVICE\n!,oom\nr,2\n",
                        &report);
    assert_int_equal(report.failures, 2);
    assert_true(report.ends_in_failure);
}

static void reallocations(void **state)
{
    format_rig_converts(
        *state,
        RESOURCE("DEVICE", "0x2") ALLOCATED("10", "0x2", "8", "0x1000")
            REALLOCATED("11", "0x1000", "16", "")
                REALLOCATED("12", "0x1000", "16", ", \"result\": { \"memory_ptr\": \"0x2000\" }")
        /* this one has its parts besides */
        REALLOCATED("13", "0x2000", "32", "") ALLOCATED("14", "0x2", "32", "0x3000")
            DEALLOCATE("15", "0x2", "0x2000")
                REALLOCATED("16", "0x2000", "32", ", \"result\": { \"memory_ptr\": \"0x3000\" }"),
        "# recorder: umpire\n"
        "t,0\na,0,8,tag=DEVICE\n!,alloc,4096\nt,2\nf,0\na,1,16,tag=DEVICE\n"
        "!,alloc,8192\nt,4\na,2,32,tag=DEVICE\n!,alloc,12288\nt,5\nf,1\n",
        NULL);
}

static void a_log_of_host_memory_is_a_test(void **state)
{
    struct import_report report;
    format_rig_converts(*state,
                        RESOURCE("HOST", "0x1") ALLOCATED("10", "0x1", "0", "0x1000")
                            ALLOCATED("11", "0x1", "8", "0x1000") DEALLOCATE("12", "0x1", "0x1000")
                                DEALLOCATE("13", "0x1", "0x1000"),
                        "# recorder: umpire\n"
                        "t,0\na,0,0,tag=HOST\n!,alloc,4096\nt,1\na,1,8,tag=HOST\n!,alloc,4096\n"
                        "t,2\nf,1\nt,3\nf,0\n",
                        &report);
    assert_int_equal(report.guess_count, 1);
    assert_string_equal(report.guesses[0], "2 requests of host memory are taken for device memory, "
                                           "since there are no others");
}

static void the_second_layout(void **state)
{
    struct import_report report;
    format_rig_converts(
        *state,
        "{\"category\":\"metadata\",\"name\":\"version\",\"numeric_args\":{\"major\":2023,"
        "\"minor\":6,\"patch\":0},\"tags\":{},\"timestamp\":5}\n" SECOND(
            "6", "make_memory_resource",
            "\"string_args\":{\"allocator_ref\":\"0x11\"},\"tags\":{\"allocator_name\":\"UM\"}")
            SECOND("7", "make_allocator",
                   "\"string_args\":{\"allocator_ref\":\"0x12\",\"arg0\":\"DEVICE::1\"},\"tags\":"
                   "{\"allocator_name\":\"quick, pool\"}")
                SECOND("8", "allocate",
                       "\"numeric_args\":{\"size\":64},\"string_args\":{\"allocator_ref\":\"0x12\","
                       "\"pointer\":\"0x2000\"}")
                    SECOND("9", "allocate",
                           "\"numeric_args\":{\"size\":16},\"string_args\":{\"allocator_ref\":"
                           "\"0x11\",\"pointer\":\"0x4000\"}")
                        SECOND("10", "named_allocate",
                               "\"numeric_args\":{\"size\":64},\"string_args\":{\"allocator_ref\":"
                               "\"0x12\",\"pointer\":\"(nil)\"}")
                            SECOND("11", "deallocate",
                                   "\"string_args\":{\"allocator_ref\":\"0x12\",\"pointer\":"
                                   "\"0x2000\"}"),
        "# recorder: umpire 2023.6.0\n# complete: no\n# let-go: final\n"
        "t,0\na,0,64,tag=quick_ pool,device=1\n!,alloc,8192\nt,2\na,1,64,tag=quick_ pool,device=1\n"
        "!,oom\nr,1\nt,3\nf,0\n",
        &report);
    assert_int_equal(report.guess_count, 1);
    assert_string_equal(report.guesses[0], "1 requests of managed memory are left out");
}

static void what_came_before_has_no_size(void **state)
{
    struct import_report report;
    format_rig_converts(*state, RESOURCE("DEVICE", "0x2") DEALLOCATE("10", "0x2", "0x1000"),
                        "# recorder: umpire\na,0,0,initial=yes\n!,alloc,4096\nt,0\nf,0\n", &report);
    assert_int_equal(report.unmatched_frees, 1);
    assert_int_equal(report.guess_count, 1);
    assert_non_null(strstr(report.guesses[0], "of a size that the file does not say"));
}

static void bad_lines_are_refused(void **state)
{
    static const struct format_rig_refusal cases[] = {
        {RESOURCE("DEVICE", "0x2") "{ \"kind\":\"replay\"\n", ":2: this is no JSON"},
        {RESOURCE("DEVICE", "0x2") "[]\n", ":2: there is neither an event nor a name"},
        {RESOURCE("DEVICE", "0x2") ALLOCATED("1", "0x2", "-1", "0x1"), ":2: size: a whole number"},
        {RESOURCE("DEVICE", "0x2") ALLOCATED("1", "0x2", "\"8\"", "0x1"), ":2: size: a whole"},
        {RESOURCE("DEVICE", "0x2") ALLOCATED("1", "0x2", "8", "there"),
         ":2: memory_ptr: \"there\""},
        {RESOURCE("DEVICE", "2x"), ":1: \"2x\" is no address"},
    };
    format_rig_refuses(*state, cases, sizeof cases / sizeof cases[0]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, format_rig_open, format_rig_close)
    const struct CMUnitTest tests[] = {
        TEST(the_first_layout),      TEST(requests_without_result_failed),
        TEST(reallocations),         TEST(a_log_of_host_memory_is_a_test),
        TEST(the_second_layout),     TEST(what_came_before_has_no_size),
        TEST(bad_lines_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
