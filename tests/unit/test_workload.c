/* What a user may write after -w. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "workloads/workload.h"

static void paths_and_specs(void **state)
{
    (void)state;
    struct trace_source *source;
    struct error error;
    assert_int_equal(workload_open("workloads/data/graphs.default.csv.gz", &source, &error),
                     STATUS_OK);
    assert_string_equal(source->info.name, "graphs");
    trace_close(source);
    assert_int_equal(workload_open("random:seed=3", &source, &error), STATUS_OK);
    assert_string_equal(source->info.name, "random:seed=3");
    assert_string_equal(source->info.format, "generator");
    trace_close(source);
}

struct refusal {
    const char *text, *part;
    enum status status;
};

static const struct refusal refusals[] = {
    {"randon", "did you mean \"random\"?", STATUS_INVALID},
    {"graphs", "write its file, workloads/data/graphs.default.csv.gz", STATUS_INVALID},
    {"tape_small.expandable", "write its file, workloads/data/tape_small.expandable.csv.gz",
     STATUS_INVALID},
    {"graph", "`list workloads` shows those there are", STATUS_INVALID},
    {"nothing.csv", "nothing.csv: cannot be opened: No such file", STATUS_IO},
    {"./nothing", "./nothing: cannot be opened: No such file", STATUS_IO},
    {"trace.csv.gz", "trace.csv.gz: cannot be opened", STATUS_IO},
    {"workloads", "workloads: is a directory", STATUS_INVALID},
    {"workloads/data", "workloads/data: is a directory", STATUS_INVALID},
    {"Makefile", "Makefile: no trace", STATUS_FORMAT},
    {"checked+random", "no decorators", STATUS_INVALID},
    {"random:sed=3", "seed", STATUS_INVALID},
};

static void what_is_neither_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        struct trace_source *source;
        struct error error = {""};
        assert_int_equal(workload_open(refusals[i].text, &source, &error), refusals[i].status);
        if (!strstr(error.text, refusals[i].part))
            fail_msg("\"%s\" is not in \"%s\"", refusals[i].part, error.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_and_specs),
        cmocka_unit_test(what_is_neither_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
