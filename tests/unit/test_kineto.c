/* Kineto traces: small ones written here, generated ones compared with their generator, and the one
 * recorded example. With arguments, BYTES FILE [MEMORY_EVERY], it writes a large one instead, to
 * measure the reader with by hand. */
#include "tests/support/format_rig.h"
#include "tests/support/kineto_maker.h"
#include "tests/support/test.h"
#include "workloads/formats/formats.h"
#include "workloads/formats/import_report.h"

#define LAST "{\"ph\":\"M\",\"name\":\"process_name\",\"ts\":1}"

static bool guessed(const struct trace_source *source, const char *words)
{
    for (unsigned i = 0; i < source->report->guess_count; i++)
        if (strstr(source->report->guesses[i], words))
            return true;
    return false;
}

/* The events of the trace of a file, without its header lines; the source is the caller's. */
static char *events_of(struct trace_rig *rig, const char *json, struct trace_source **source)
{
    assert_ok(trace_rig_text(rig, json, source, &test_error));
    assert_string_equal((*source)->info.format, "kineto");
    char *text = trace_rig_print(rig, *source);
    char *at = text;
    while (*at == '#')
        at = strchr(at, '\n') + 1;
    memmove(text, at, strlen(at) + 1);
    return text;
}

static enum ar_status read_text(const char *json, struct ar_error *error)
{
    struct trace_rig rig = trace_rig_open();
    struct trace_source *source;
    enum ar_status status = trace_rig_text(&rig, json, &source, error);
    trace_rig_close(&rig);
    return status;
}

FORMAT_CASES("kineto", test_by_address)
FORMAT_CASES("kineto", test_array_alone_and_sorted)
FORMAT_CASES("kineto", test_live_at_the_start)
FORMAT_CASES("kineto", test_contradictions)
FORMAT_CASES("kineto", test_by_size)
FORMAT_CASES("kineto", test_kernels_and_steps)
FORMAT_CASES("kineto", test_devices_and_failures)

TEST(test_refused)
{
    cases_refused("kineto", "test_refused", read_text);
}

#define TOTAL(bytes, total, us)                                                                    \
    "{\"name\":\"[memory]\",\"ts\":" us                                                            \
    ",\"args\":{\"Device Type\":1,\"Addr\":4096,\"Bytes\":" bytes ",\"Total Allocated\":" total    \
    "}},"

/* The profiler's count: 100 bytes more than the trace knows of, then 90. */
TEST(test_totals)
{
    CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
    struct trace_source *source;
    char *text = events_of(&rig,
                           "[" TOTAL("512", "612", "1") TOTAL("-512", "100", "2")
                               TOTAL("512", "612", "3") TOTAL("-500", "90", "4") LAST "]",
                           &source);
    assert_true(guessed(source,
                        ": 100 bytes at the first event (never freed here), 90 at the last; "
                        "changed 1 times"));
    assert_true(source->report->begins_in_the_middle);
    free(text);
    trace_close(source);
    static const char huge[] =
        "{\"name\":\"[memory]\",\"ts\":1,\"args\":{\"Device Type\":1,\"Total Allocated\":"
        "4611686018427387903,\"Bytes\":1152921504606846975}},";
    FREED char *many = malloc(20 * sizeof huge);
    assert_non_null(many);
    many[0] = '[';
    for (size_t i = 0; i < 16; i++)
        memcpy(many + 1 + i * (sizeof huge - 1), huge, sizeof huge);
    memcpy(many + 1 + 16 * (sizeof huge - 1), LAST "]", sizeof LAST "]");
    assert_says(trace_rig_text(&rig, many, &source, &test_error), AR_INVALID, "2^63 bytes");
}

FORMAT_CASES("kineto", test_before_the_first)

/* Generated files: the reader finds what the generator wrote. */
static void check_made(const struct kineto_making *making)
{
    CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
    struct kineto_made made;
    FILE *file = fopen(rig.path[0], "w");
    assert_non_null(file);
    kineto_make(file, making, &made);
    assert_int_equal(fclose(file), 0);
    CLOSED(close_trace) struct trace_source *source = trace_rig_source(rig.path[0]);
    assert_int_equal(source->info.allocs, made.allocs);
    assert_int_equal(source->info.frees, made.frees);
    assert_int_equal(source->info.kernels, made.kernels);
    assert_int_equal(source->info.steps, made.steps);
    assert_int_equal(source->info.peak_live_bytes, made.peak_bytes);
    assert_int_equal(source->report->unmatched_frees, 0);
    assert_int_equal(source->report->double_frees, 0);
    assert_true(guessed(source, "equals \"Total Allocated\" at every event"));
    assert_int_equal(guessed(source, "name no address"), making->without_addresses);
    assert_int_equal(guessed(source, "sorted by time"), making->shuffled);
}

TEST(test_made)
{
    check_made(&(struct kineto_making){.seed = 1, .bytes = 3000000});
    check_made(
        &(struct kineto_making){.seed = 2, .bytes = 3000000, .memory_every = 1, .shuffled = true});
    check_made(&(struct kineto_making){
        .seed = 3, .bytes = 1000000, .memory_every = 2, .without_addresses = true});
}

static int write_large(char **arguments)
{
    struct kineto_making making = {.seed = 1, .bytes = strtoull(arguments[1], NULL, 10)};
    struct kineto_made made;
    if (arguments[3])
        making.memory_every = (unsigned)strtoul(arguments[3], NULL, 10);
    FILE *file = fopen(arguments[2], "w");
    if (!file)
        return 2;
    kineto_make(file, &making, &made);
    return fclose(file) ? 2 : 0;
}

int main(int count, char **arguments)
{
    if (count >= 3)
        return write_large(arguments);
    return test_run(__FILE__);
}
