/* The arguments of -w. */
#include "tests/support/test.h"
#include "workloads/workload.h"

static void paths_and_specs(void **state)
{
    struct trace_source *source;
    struct ar_error error;
    assert_int_equal(workload_open("workloads/data/graphs.default.csv.gz", &source, &error), AR_OK);
    assert_string_equal(source->info.name, "graphs");
    trace_close(source);
    assert_int_equal(workload_open("random:seed=3", &source, &error), AR_OK);
    assert_string_equal(source->info.name, "random:seed=3");
    assert_string_equal(source->info.format, "generator");
    trace_close(source);
}

struct refusal {
    const char *text, *part;
    enum ar_status status;
};

static const struct refusal refusals[] = {
    {"randon", "did you mean \"random\"?", AR_INVALID},
    {"graphs", "write its file, workloads/data/graphs.default.csv.gz", AR_INVALID},
    {"tape_small.expandable", "write its file, workloads/data/tape_small.expandable.csv.gz",
     AR_INVALID},
    {"graph", "`list workloads` names all of them", AR_INVALID},
    {"nothing.csv", "nothing.csv: cannot be opened: No such file", AR_IO},
    {"./nothing", "./nothing: cannot be opened: No such file", AR_IO},
    {"trace.csv.gz", "trace.csv.gz: cannot be opened", AR_IO},
    {"workloads", "workloads: is a directory", AR_INVALID},
    {"workloads/data", "workloads/data: is a directory", AR_INVALID},
    {"Makefile", "Makefile: no trace", AR_FORMAT},
    {"checked+random", "no decorators", AR_INVALID},
    {"random:sed=3", "seed", AR_INVALID},
};

static void other_arguments_are_refused(void **state)
{
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        struct trace_source *source;
        struct ar_error error = {""};
        assert_int_equal(workload_open(refusals[i].text, &source, &error), refusals[i].status);
        if (!strstr(error.text, refusals[i].part))
            fail_msg("\"%s\" is not in \"%s\"", refusals[i].part, error.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_and_specs),
        cmocka_unit_test(other_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
