/* Kineto traces: small ones written here, generated ones compared with their generator, and the one
 * recorded example. With arguments, BYTES FILE [MEMORY_EVERY], it writes a large one instead, to
 * measure the reader with by hand. */
#include "tests/support/kineto_maker.h"
#include "tests/support/test.h"
#include "tests/support/trace_rig.h"
#include "workloads/formats/formats.h"
#include "workloads/formats/import_report.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Memory event with address, bytes, microseconds; then a comma. */
#define MEMORY(address, bytes, us)                                                                 \
    "{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"ts\":" us                 \
    ",\"args\":{\"Device Type\":1,\"Device Id\":0,\"Addr\":" address ",\"Bytes\":" bytes "}},"
#define OLD(bytes, us)                                                                             \
    "{\"ph\":\"i\",\"name\":\"[memory]\",\"ts\":" us                                               \
    ",\"args\":{\"Device Type\":1,\"Device Id\":0,\"Bytes\":" bytes "}},"
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

static void expect(const char *json, const char *events, const char *const *guesses)
{
    struct trace_rig rig;
    struct trace_source *source;
    trace_rig_open(&rig);
    char *text = events_of(&rig, json, &source);
    assert_string_equal(text, events);
    for (; guesses && *guesses; guesses++)
        if (!guessed(source, *guesses))
            fail_msg("no guess says \"%s\"", *guesses);
    free(text);
    trace_close(source);
    trace_rig_close(&rig);
}

static void refused(const char *json, const char *words)
{
    struct trace_rig rig;
    struct trace_source *source;
    struct ar_error error = {""};
    trace_rig_open(&rig);
    assert_int_not_equal(trace_rig_text(&rig, json, &source, &error), AR_OK);
    if (!strstr(error.text, words))
        fail_msg("\"%s\" does not say \"%s\"", error.text, words);
    trace_rig_close(&rig);
}

TEST(test_by_address)
{
    expect("{\"schemaVersion\":1,\"traceEvents\":[" MEMORY("4096", "512", "1.5")
               MEMORY("8192", "1024", "2") MEMORY("4096", "-512", "3.001")
                   MEMORY("4096", "2048", "4") LAST "]}",
           "t,0\na,0,512\n!,alloc,4096\nt,500\na,1,1024\n!,alloc,8192\nt,1501\nf,0\n"
           "t,2500\na,2,2048\n!,alloc,4096\n",
           (const char *[]){"sizes are those of the blocks", "there are no kernels", NULL});
}

TEST(test_array_alone_and_sorted)
{
    expect("[" MEMORY("1024", "-512", "\"9\"") MEMORY("1024", "512", "\"7.25\"") LAST "]",
           "t,0\na,0,512\n!,alloc,1024\nt,1750\nf,0\n",
           (const char *[]){"1 events follow later ones in the file", NULL});
}

TEST(test_live_at_the_start)
{
    expect("[" MEMORY("1024", "512", "1") MEMORY("2048", "-4096", "2") LAST "]",
           "a,0,4096,initial=yes\n!,alloc,2048\nt,0\na,1,512\n!,alloc,1024\nt,1000\nf,0\n", NULL);
}

TEST(test_contradictions)
{
    struct trace_rig rig;
    struct trace_source *source;
    trace_rig_open(&rig);
    char *text = events_of(&rig,
                           "[" MEMORY("1024", "512", "1") MEMORY("1024", "-512", "2")
                               MEMORY("1024", "-512", "3") MEMORY("2048", "512", "4")
                                   MEMORY("2048", "1024", "5") MEMORY("2048", "-512", "6") LAST "]",
                           &source);
    assert_string_equal(text, "t,0\na,0,512\n!,alloc,1024\nt,1000\nf,0\nt,2000\nt,3000\na,1,512\n"
                              "!,alloc,2048\nt,4000\nf,1\na,2,1024\n!,alloc,2048\nt,5000\nf,2\n");
    assert_int_equal(source->report->double_frees, 1);
    assert_int_equal(source->report->unmatched_frees, 0);
    assert_int_equal(source->report->records, 7);
    assert_int_equal(source->report->left_out, 1);
    assert_true(guessed(source, "1 blocks have the address of one that was never freed"));
    assert_true(guessed(source, "1 frees name another size"));
    free(text);
    trace_close(source);
    trace_rig_close(&rig);
}

TEST(test_by_size)
{
    expect("[" OLD("512", "1") OLD("512", "2") OLD("1024", "3") OLD("-512", "4") OLD("-512", "5")
               OLD("-512", "6") LAST "]",
           "a,0,512,initial=yes\nt,0\na,1,512\nt,1000\na,2,512\nt,2000\na,3,1024\nt,3000\nf,2\n"
           "t,4000\nf,1\nt,5000\nf,0\n",
           (const char *[]){"2 frees name no address", NULL});
}

TEST(test_kernels_and_steps)
{
    expect(
        "{\"traceEvents\":[" MEMORY(
            "1024", "512",
            "10") "{\"args\":{\"stream\":7,\"device\":0,\"correlation\":5,\"blocks per SM\":inf},"
                  "\"ts\":30,\"dur\":1.5,\"name\":\"gemm\",\"cat\":\"kernel\",\"ph\":\"X\"},"
                  "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"ts\":12,"
                  "\"dur\":2,\"args\":{\"correlation\":5}},"
                  "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"x\",\"ts\":31,\"dur\":2,"
                  "\"args\":{\"stream\":20,\"device\":1}},"
                  "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"y\",\"ts\":32,\"dur\":2,"
                  "\"args\":{\"stream\":7,\"device\":0}},"
                  "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#3\",\"ts\":9,"
                  "\"dur\":51,\"args\":{}},"
                  "{\"ph\":\"X\",\"cat\":\"gpu_user_annotation\",\"name\":\"ProfilerStep#3\","
                  "\"ts\":9,"
                  "\"dur\":51,\"args\":{}}]}",
        "t,0\na,0,512\n!,alloc,1024\nt,2000\nk,0,1500\nt,21000\nk,1,2000,device=1\n"
        "t,22000\nk,0,2000\nt,50000\nm,step\n",
        (const char *[]){"profiler's stream 7", "2 of 3 kernels are placed at their begin", NULL});
}

TEST(test_devices_and_failures)
{
    struct trace_rig rig;
    struct trace_source *source;
    trace_rig_open(&rig);
    char *text = events_of(
        &rig,
        "{\"deviceProperties\":[{\"id\":0,\"name\":\"a card\",\"totalGlobalMem\":1024},"
        "{\"id\":1,\"name\":\"another\",\"totalGlobalMem\":9}],\"traceEvents\":["
        "{\"name\":\"[memory]\",\"ts\":1,\"args\":{\"Device Type\":0,\"Bytes\":64,\"Addr\":1}},"
        "{\"name\":\"[memory]\",\"ts\":2,\"args\":{\"Device Type\":1,\"Device Id\":1,\"Bytes\":64,"
        "\"Addr\":\"0x10\",\"Total Allocated\":64}},"
        "{\"name\":\"[memory]\",\"ts\":2,\"args\":{\"Device Type\":1,\"Addr\":3}},"
        "{\"name\":\"[OutOfMemory]\",\"ts\":3,\"args\":{\"Device Type\":1,\"Device Id\":1,"
        "\"Bytes\":4096}}]}",
        &source);
    assert_string_equal(text, "t,0\na,0,64,device=1\n!,alloc,16\nt,1000\na,1,4096,device=1\n"
                              "!,oom\nr,1\n");
    assert_string_equal(source->info.card, "a card");
    assert_int_equal(source->info.capacity_bytes, 1024);
    assert_false(source->info.complete);
    assert_true(source->report->ends_in_failure);
    assert_int_equal(source->report->failures, 1);
    assert_true(guessed(source, "1 memory events of the host"));
    assert_true(guessed(source, "1 events lack a usable time, size or duration"));
    assert_true(guessed(source, "equals \"Total Allocated\" at every event"));
    free(text);
    trace_close(source);
    trace_rig_close(&rig);
}

TEST(test_refused)
{
    refused("{\"traceEvents\":[]}", "no events of GPU memory");
    refused("[]", "no events of GPU memory");
    refused("{\"traceEvents\":7}", "is not an array");
    refused("{\"traceEvents\":[" MEMORY("1", "9223372036854775807", "1") LAST "]}", "2^60 bytes");
    refused("{\"traceEvents\":[" MEMORY("1", "512", "1") "{\"name\":\"[mem", "is cut off");
    refused("{\"traceEvents\":[" MEMORY("1", "512", "1"), "is cut off");
    refused("{\"traceEvents\":[" MEMORY("1", "512", "1") LAST "]}{", "continues after the end");
}

#define TOTAL(bytes, total, us)                                                                    \
    "{\"name\":\"[memory]\",\"ts\":" us                                                            \
    ",\"args\":{\"Device Type\":1,\"Addr\":4096,\"Bytes\":" bytes ",\"Total Allocated\":" total    \
    "}},"

/* The profiler's count: 100 bytes more than the trace knows of, then 90. */
TEST(test_totals)
{
    struct trace_rig rig;
    struct trace_source *source;
    trace_rig_open(&rig);
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
    char *many = malloc(20 * sizeof huge);
    assert_non_null(many);
    many[0] = '[';
    for (size_t i = 0; i < 16; i++)
        memcpy(many + 1 + i * (sizeof huge - 1), huge, sizeof huge);
    memcpy(many + 1 + 16 * (sizeof huge - 1), LAST "]", sizeof LAST "]");
    assert_says(trace_rig_text(&rig, many, &source, &test_error), AR_INVALID, "2^63 bytes");
    free(many);
    trace_rig_close(&rig);
}

/* What the profiler counted before the first event is one block of each device. Other makers' types
 * of devices count as GPUs; the host (0) and a tensor without memory (14) do not. */
TEST(test_before_the_first)
{
    struct trace_rig rig;
    struct trace_source *source;
    trace_rig_open(&rig);
#define OF(type, device, total, us)                                                                \
    "{\"name\":\"[memory]\",\"ts\":" us ",\"args\":{\"Device Type\":" type                         \
    ",\"Device Id\":" device ",\"Addr\":16,\"Bytes\":64,\"Total Allocated\":" total "}},"
    char *text =
        events_of(&rig,
                  "[" OF("12", "1", "164", "1") OF("20", "2", "64", "2") OF("0", "0", "900", "3")
                      OF("14", "0", "900", "4") OF("6", "3", "74", "5") LAST "]",
                  &source);
#undef OF
    assert_string_equal(text, "a,0,100,device=1,initial=yes\na,1,10,device=3,initial=yes\nt,0\n"
                              "a,2,64,device=1\n!,alloc,16\nt,1000\na,3,64,device=2\n"
                              "!,alloc,16\nt,4000\na,4,64,device=3\n!,alloc,16\n");
    assert_int_equal(source->info.peak_live_bytes, 3 * 64 + 110);
    assert_true(guessed(source, "2 memory events of the host"));
    assert_true(guessed(source, "before the first event are one block"));
    free(text);
    trace_close(source);
    trace_rig_close(&rig);
}

/* Generated files: the reader finds what the generator wrote. */
static void check_made(const struct kineto_making *making)
{
    struct trace_rig rig;
    struct trace_source *source;
    struct kineto_made made;
    trace_rig_open(&rig);
    FILE *file = fopen(rig.path[0], "w");
    assert_non_null(file);
    kineto_make(file, making, &made);
    assert_int_equal(fclose(file), 0);
    assert_ok(trace_open(rig.path[0], &source, &test_error));
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
    trace_close(source);
    trace_rig_close(&rig);
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
