/* cmocka, the headers that most tests use, and TEST(), which makes a case. */
#pragma once

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocators/base/size.h"
#include "allocators/base/status.h"
#include "sim/device.h"
#include "tests/support/cases.h"
#include "workloads/trace/source.h"

/* TEST(name) { ... } is a case of its file's program, which runs the cases in the order of the
 * file. TEST_WITH runs it between a set-up and a tear-down. A file without a main() needs nothing
 * else; the main() of one that takes arguments returns test_run(__FILE__). */
struct test_case {
    const char *file;
    int line;
    struct CMUnitTest test;
};

#define TEST(name) TEST_WITH(name, NULL, NULL)
#define TEST_WITH(name, setup, teardown)                                                           \
    static void name(void **state);                                                                \
    static const struct test_case *const name##_case                                               \
        __attribute__((used, section("test_cases"))) =                                             \
            &(const struct test_case){__FILE__, __LINE__, {#name, name, setup, teardown, NULL}};   \
    static void name(void **state)

/* In front of a variable: at the end of its block it is closed by a function that takes a pointer
 * to it, or what it points to is freed. The last one is closed first. Not if a case fails.
 *     CLOSED(trace_rig_close) struct trace_rig rig;
 *     CLOSED(close_trace) struct trace_source *source = tiny_trace("a,0,64 f,0");
 *     FREED char *text = trace_rig_print(&rig, source); */
#define CLOSED(close) AR_CLOSED(close)
#define FREED         AR_FREED

static inline void close_trace(struct trace_source **source)
{
    trace_close(*source);
}

static inline void close_device(struct ar_device **device)
{
    ar_device_close(*device);
}

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* For calls that take a place for their error: assert_ok(trace_open(path, &out, &test_error)). */
extern struct ar_error test_error;

#define assert_ok(call)                                                                            \
    do {                                                                                           \
        if ((call) != AR_OK)                                                                       \
            fail_msg("%s: %s", #call, test_error.text);                                            \
    } while (0)

/* The spec of a text, which must be one. */
static inline struct ar_spec spec_of(const char *text)
{
    struct ar_spec spec;
    assert_ok(ar_spec_parse(text, &spec, &test_error));
    return spec;
}

/* The call returns this status, and its sentence holds `part`. */
#define assert_says(call, status, part)                                                            \
    do {                                                                                           \
        test_error.text[0] = '\0';                                                                 \
        assert_int_equal(call, status);                                                            \
        if (!strstr(test_error.text, part))                                                        \
            fail_msg("%s: \"%s\" does not say \"%s\"", #call, test_error.text, part);              \
    } while (0)

/* Runs the cases of a source file. Returns the number of those that failed. */
int test_run(const char *file);
