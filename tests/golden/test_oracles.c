/* Recordings of real allocators on a real card, event by event: the policy with the name of an
 * allocator must place every block at the same offset of the same segment, with the same granted
 * and reserved bytes. Each test is one recording in tests/golden/data/oracles, or one of programs
 * with torch.cuda.MemPool in tests/golden/data/mempool, which have their trace in the same file. */
#include <unistd.h>

#include "allocators/spec.h"
#include "sim/replay.h"
#include "tests/support/folder_tests.h"
#include "tests/support/test.h"
#include "tests/support/trace_rig.h"
#include "workloads/trace/trace.h"

#define FOLDER   "tests/golden/data/oracles"
#define MEMPOOLS "tests/golden/data/mempool"

struct oracle {
    struct recorded_lines from;
    char spec[256];
    char trace[256];
    char addresses[64]; /* a temporary file */
    char events[64];    /* the same, if the trace is in the recording */
};

/* Opens a temporary file. */
static FILE *temporary(char *path, size_t room)
{
    snprintf(path, room, "/tmp/allocrig-oracle-XXXXXX");
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    FILE *out = fdopen(descriptor, "w");
    assert_non_null(out);
    return out;
}

/* Reads up to the first row. Writes the addresses where the device finds them, and the events of a
 * trace in the same file. */
static void open_oracle(struct oracle *oracle, const char *folder, const char *name)
{
    recorded_open(&oracle->from, folder, name);
    assert_memory_equal(oracle->from.line, "spec ", 5);
    snprintf(oracle->spec, sizeof oracle->spec, "%s", oracle->from.line + 5);
    oracle->events[0] = '\0';
    assert_true(recorded_next(&oracle->from));
    if (strncmp(oracle->from.line, "trace ", 6) == 0) {
        snprintf(oracle->trace, sizeof oracle->trace, "tests/golden/data/traces/%.200s",
                 oracle->from.line + 6);
        assert_true(recorded_next(&oracle->from));
    }
    FILE *out = temporary(oracle->addresses, sizeof oracle->addresses);
    for (int first = 1; strncmp(oracle->from.line, "segment ", 8) == 0; first = 0) {
        fprintf(out, "%s%s\n", first ? "ordinal,bytes,address\n" : "", oracle->from.line + 8);
        assert_true(recorded_next(&oracle->from));
    }
    assert_int_equal(fclose(out), 0);
    if (strncmp(oracle->from.line, "event ", 6) != 0)
        return;
    out = temporary(oracle->events, sizeof oracle->events);
    fputs("# allocrig-trace 1\n", out);
    for (; strncmp(oracle->from.line, "event ", 6) == 0; assert_true(recorded_next(&oracle->from)))
        fprintf(out, "%s\n", oracle->from.line + 6);
    assert_int_equal(fclose(out), 0);
    snprintf(oracle->trace, sizeof oracle->trace, "%s", oracle->events);
}

/* Compares a row of the replay with a line, and reads the next line. */
static enum ar_status compare(void *argument, const struct replay_row *row, struct ar_error *error)
{
    struct oracle *oracle = argument;
    char place[2][24];
    uint64_t granted;
    uint64_t reserved;
    if (sscanf(oracle->from.line, "row %23s %23s %" SCNu64 " %" SCNu64, place[0], place[1],
               &granted, &reserved) != 4)
        return ar_error_set(error, AR_INVALID, "event %" PRIu64 ": the oracle has no more rows",
                            row->event);
    bool placed = place[0][0] != '-' || place[0][1] != '\0';
    if (placed &&
        (strtoll(place[0], NULL, 10) != row->segment || strtoll(place[1], NULL, 10) != row->offset))
        return ar_error_set(error, AR_NEGATIVE,
                            "event %" PRIu64 ": %" PRIu64 " bytes at segment %" PRId64
                            " offset %" PRId64 ", the real one put it at %s %s",
                            row->event, row->requested_bytes, row->segment, row->offset, place[0],
                            place[1]);
    if (granted != row->granted_total_bytes || reserved != row->reserved_bytes)
        return ar_error_set(error, AR_NEGATIVE,
                            "event %" PRIu64 ": granted %" PRIu64 " reserved %" PRIu64
                            ", the real one %" PRIu64 " and %" PRIu64,
                            row->event, row->granted_total_bytes, row->reserved_bytes, granted,
                            reserved);
    if (!recorded_next(&oracle->from))
        oracle->from.line[0] = '\0';
    return AR_OK;
}

static void check_in(const char *folder, const char *name)
{
    struct oracle oracle;
    struct ar_spec policy;
    struct ar_spec device;
    struct replay_result result;
    struct ar_device_props props;
    char text[256];
    open_oracle(&oracle, folder, name);
    snprintf(text, sizeof text, "sim:profile=h100,addresses=%s", oracle.addresses);
    assert_ok(ar_spec_parse(oracle.spec, &policy, &test_error));
    assert_ok(ar_spec_parse(text, &device, &test_error));
    struct trace_source *source = trace_rig_source(oracle.trace);
    const struct observer observer = {.row = compare, .argument = &oracle};
    struct experiment experiment = {.policy = &policy,
                                    .device = &device,
                                    .source = source,
                                    .frees = REPLAY_ORDERED,
                                    .observer = &observer};
    enum ar_status status = experiment_run(&experiment, &result, &props, &test_error);
    if (status != AR_OK)
        fail_msg("%s", test_error.text);
    assert_string_equal(oracle.from.line, ""); /* all rows were met */
    replay_result_close(&result);
    trace_close(source);
    ar_spec_close(&policy);
    ar_spec_close(&device);
    gzclose(oracle.from.file);
    unlink(oracle.addresses);
    if (oracle.events[0])
        unlink(oracle.events);
}

static void check_oracle(void **state)
{
    check_in(FOLDER, *state);
}

static void check_mempool(void **state)
{
    check_in(MEMPOOLS, *state);
}

int main(void)
{
    int status = folder_tests_run("oracles", FOLDER, check_oracle);
    return folder_tests_run("mempool", MEMPOOLS, check_mempool) ? 1 : status;
}
