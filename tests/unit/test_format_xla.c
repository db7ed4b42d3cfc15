/* Files of JAX and XLA: buffer assignments as text, and device memory profiles. */
#include <unistd.h>

#include "tests/support/format_rig.h"
#include "tests/support/test.h"
#include "workloads/formats/formats.h"

/* ---- buffer assignment --------------------------------------------------------------------- */

#define HEAD "BufferAssignment:\n"

FORMAT_CASES("format_xla", assignment_of_a_module)
FORMAT_CASES("format_xla", assignment_of_older_versions)
FORMAT_CASES("format_xla", assignment_in_other_memory_spaces)
FORMAT_CASES("format_xla", assignment_that_is_cut)

TRACE_TEST(assignment_with_live_ranges)
{
    struct trace_rig *rig = *state;
    char path[2][160];
    static const char assignment[] = HEAD "allocation 0: size 64, preallocated-temp:\n"
                                          " value: <5 dot.4 @0> (size=32,offset=0): f32[8]{0}\n"
                                          " value: <6 t{1} @0> (size=32,offset=32): f32[8]{0}\n"
                                          " value: <7 no @0> (size=4,offset=32): f32[1]{0}\n";
    static const char ranges[] = "HloLiveRange (max 9):\n  InstructionSequence:\n    0:dot.4\n"
                                 "  BufferLiveRange:\n    dot.4{}:1-2\n    t{1}:2-9\n"
                                 "    bad:2-x\n    worse\n  Live ranges at 2 (peak):\n"
                                 "    dot.4{}: 32 bytes (cumulative: 32 bytes)\n";
    snprintf(path[0], sizeof path[0], "%s/m-buffer-assignment.txt", rig->folder);
    snprintf(path[1], sizeof path[1], "%s/m-live-range.txt", rig->folder);
    trace_rig_write(path[0], assignment, sizeof assignment - 1);
    trace_rig_write(path[1], ranges, sizeof ranges - 1);
    struct trace_source *source = trace_rig_source(path[0]);
    char *printed = trace_rig_print(rig, source);
    assert_non_null(strstr(printed, "!,value,0,0,32,dot.4,1,2\n!,value,0,32,32,t{1},2,9\n"
                                    "!,value,0,32,4,no\n"));
    free(printed);
    trace_close(source);
    unlink(path[0]);
    unlink(path[1]);
}

FORMAT_REFUSES("format_xla", bad_assignments_are_refused)

/* ---- device memory profiles ---------------------------------------------------------------- */

/* A message of a protobuf. */
struct bytes {
    unsigned char at[4096];
    size_t count;
};

static void put_varint(struct bytes *out, uint64_t value)
{
    for (; value > 0x7f; value >>= 7)
        out->at[out->count++] = (unsigned char)(value | 0x80);
    out->at[out->count++] = (unsigned char)value;
}

static void put_number(struct bytes *out, unsigned field, uint64_t value)
{
    put_varint(out, field << 3);
    put_varint(out, value);
}

static void put_bytes(struct bytes *out, unsigned field, const void *bytes, size_t count)
{
    put_varint(out, field << 3 | 2);
    put_varint(out, count);
    memcpy(out->at + out->count, bytes, count);
    out->count += count;
}

static void put_type(struct bytes *out, uint64_t name, uint64_t unit)
{
    struct bytes type = {.count = 0};
    put_number(&type, 1, name);
    put_number(&type, 2, unit);
    put_bytes(out, 1, type.at, type.count);
}

/* `location` 0: none; `device` 0: an executable. */
static void put_sample(struct bytes *out, uint64_t location, uint64_t count, uint64_t bytes,
                       uint64_t device, bool packed)
{
    struct bytes sample = {.count = 0}, values = {.count = 0}, label = {.count = 0};
    if (location)
        put_number(&sample, 1, location);
    put_varint(&values, count);
    put_varint(&values, bytes);
    if (packed) {
        put_bytes(&sample, 2, values.at, values.count);
    } else {
        put_number(&sample, 2, count);
        put_number(&sample, 2, bytes);
    }
    put_number(&label, 1, 5);
    put_number(&label, 2, device ? 6 : 7);
    put_bytes(&sample, 3, label.at, label.count);
    label.count = 0;
    put_number(&label, 1, 8);
    put_number(&label, 2, device);
    if (device)
        put_bytes(&sample, 3, label.at, label.count);
    put_bytes(out, 2, sample.at, sample.count);
}

static void put_frame(struct bytes *out, uint64_t id, uint64_t line)
{
    struct bytes location = {.count = 0}, inner = {.count = 0};
    put_number(&location, 1, id);
    put_number(&inner, 1, id);
    put_number(&inner, 2, line);
    put_bytes(&location, 4, inner.at, inner.count);
    put_bytes(out, 4, location.at, location.count);
}

static void put_function(struct bytes *out, uint64_t id, uint64_t name, uint64_t file)
{
    struct bytes function = {.count = 0};
    put_number(&function, 1, id);
    put_number(&function, 2, name);
    put_number(&function, 4, file);
    put_bytes(out, 5, function.at, function.count);
}

/* What samples refer to: location 1 is train.py:12:make, location 2 is JAX's own. */
static void put_tables(struct bytes *out)
{
    static const char *const strings[] = {
        "",       "allocations", "count",       "space",  "bytes",
        "kind",   "buffer",      "executable",  "device", "cuda:0",
        "cuda:3", "TFRT_CPU_1",  "/x/train.py", "make",   "/site-packages/jax/api.py",
        "jit"};
    put_frame(out, 1, 12);
    put_frame(out, 2, 99);
    put_function(out, 1, 13, 12);
    put_function(out, 2, 15, 14);
    for (size_t i = 0; i < COUNT(strings); i++)
        put_bytes(out, 6, strings[i], strlen(strings[i]));
}

TRACE_TEST(profile_of_two_gpus)
{
    struct import_report report;
    struct bytes profile = {.count = 0};
    put_type(&profile, 1, 2);
    put_type(&profile, 3, 4);
    put_sample(&profile, 1, 2, 8192, 9, true);
    put_sample(&profile, 2, 1, 100, 10, false);
    put_sample(&profile, 0, 1, 7, 9, true);
    put_sample(&profile, 1, 3, 600, 0, true);  /* executables */
    put_sample(&profile, 1, 4, 400, 11, true); /* of the host */
    put_tables(&profile);
    format_rig_converts_bytes(*state, profile.at, profile.count,
                              "# recorder: xla\n"
                              "a,0,4096,tag=train.py:12:make,initial=yes\n"
                              "a,1,4096,tag=train.py:12:make,initial=yes\n"
                              "a,2,100,tag=api.py:99:jit,device=3,initial=yes\n"
                              "a,3,7,initial=yes\n",
                              &report);
    assert_int_equal(report.records, 5);
    assert_non_null(strstr(report.guesses[1], "code of 3 executables, 600 bytes: left out"));
    assert_non_null(strstr(report.guesses[2], "4 buffers of the host are left out"));
}

TRACE_TEST(profile_of_the_host)
{
    struct import_report report;
    struct bytes profile = {.count = 0};
    put_type(&profile, 3, 4); /* in the other order */
    put_type(&profile, 1, 2);
    put_sample(&profile, 1, 64, 2, 11, true);
    put_sample(&profile, 0, UINT64_MAX - 2, 3, 0, true); /* three executables of -1 bytes */
    put_tables(&profile);
    format_rig_converts_bytes(*state, profile.at, profile.count,
                              "# recorder: xla\n"
                              "a,0,32,tag=train.py:12:make,device=1,initial=yes\n"
                              "a,1,32,tag=train.py:12:make,device=1,initial=yes\n",
                              &report);
    assert_non_null(strstr(report.guesses[1], "code of 3 executables, of unknown size: left out"));
    assert_non_null(strstr(report.guesses[2], "2 buffers of the host are taken for device memory"));
}

/* The fields in another order: strings first, as no program is forbidden to write them. */
TRACE_TEST(profile_in_another_order)
{
    struct bytes profile = {.count = 0}, tables = {.count = 0};
    put_tables(&tables);
    size_t strings = 0; /* the strings begin with an empty one */
    while (tables.at[strings] != (6 << 3 | 2) || tables.at[strings + 1] != 0)
        strings++;
    memcpy(profile.at, tables.at + strings, tables.count - strings);
    profile.count = tables.count - strings;
    memcpy(profile.at + profile.count, tables.at, strings);
    profile.count += strings;
    put_sample(&profile, 1, 1, 64, 10, false);
    put_type(&profile, 1, 2);
    put_type(&profile, 3, 4);
    format_rig_converts_bytes(*state, profile.at, profile.count,
                              "# recorder: xla\n"
                              "a,0,64,tag=train.py:12:make,device=3,initial=yes\n",
                              NULL);
}

static void refuses_profile(void *state, const struct bytes *profile, const char *part)
{
    struct trace_rig *rig = state;
    struct trace_source *source;
    struct ar_error error = {""};
    trace_rig_write(rig->path[0], profile->at, profile->count);
    if (trace_open(rig->path[0], &source, &error) == AR_OK)
        fail_msg("taken, without \"%s\"", part);
    if (!strstr(error.text, part))
        fail_msg("\"%s\" says not \"%s\"", error.text, part);
}

TRACE_TEST(bad_profiles_are_refused)
{
    struct bytes profile = {.count = 0};
    put_number(&profile, 9, UINT64_C(1700000000000000000)); /* Go writes the time first */
    put_type(&profile, 5, 6); /* "kind", as another program would name its values */
    put_type(&profile, 3, 4);
    put_sample(&profile, 1, 2, 8192, 9, true);
    put_tables(&profile);
    refuses_profile(*state, &profile, "a pprof profile of \"kind, space\", and not JAX's");
    profile.count = 0;
    put_type(&profile, 1, 2);
    put_type(&profile, 3, 4);
    size_t types = profile.count;
    put_sample(&profile, 1, 3, 8192, 9, true);
    put_tables(&profile);
    refuses_profile(*state, &profile, "a sample of 3 buffers with 8192 bytes, which are not of");
    profile.count = types;
    put_sample(&profile, 1, UINT64_C(1) << 40, 0, 9, true);
    put_tables(&profile);
    refuses_profile(*state, &profile, "the profile has more than 4194304 buffers");
    profile.count = types;
    put_sample(&profile, 1, 2, 64, 0, true);
    put_tables(&profile);
    refuses_profile(*state, &profile, "the profile has no buffers");
    /* a label that ends within a number */
    struct bytes sample = {.count = 0};
    profile.count = types;
    put_bytes(&sample, 3, "\x08\xff", 2);
    put_bytes(&profile, 2, sample.at, sample.count);
    put_sample(&profile, 1, 2, 8192, 9, true);
    put_tables(&profile);
    refuses_profile(*state, &profile, "the profile is damaged or cut off");
    /* the same at the end of a sample that is whole without it */
    sample.count = 0;
    profile.count = types;
    put_number(&sample, 2, 1);
    put_number(&sample, 2, 64);
    put_bytes(&sample, 3, "\x08\xff", 2);
    put_bytes(&profile, 2, sample.at, sample.count);
    put_sample(&profile, 1, 2, 8192, 9, true);
    put_tables(&profile);
    refuses_profile(*state, &profile, "the profile is damaged or cut off");
}

/* Each shorter file is refused, or is a smaller profile where a field ends. */
TRACE_TEST(cut_profiles)
{
    struct trace_rig *rig = *state;
    struct bytes profile = {.count = 0};
    size_t taken = 0;
    put_type(&profile, 1, 2);
    put_type(&profile, 3, 4);
    put_sample(&profile, 1, 2, 8192, 9, true);
    put_tables(&profile);
    for (size_t count = 0; count < profile.count; count++) {
        struct trace_source *source;
        trace_rig_write(rig->path[0], profile.at, count);
        if (trace_open(rig->path[0], &source, &test_error)) {
            assert_int_equal(strncmp(test_error.text, rig->path[0], strlen(rig->path[0])), 0);
            continue;
        }
        taken++;
        trace_close(source);
    }
    assert_true(taken < 16);
}

/* ---- recorded with JAX 0.10.2 on the host, two devices ---- */

TRACE_TEST(recorded_files)
{
    static const struct {
        const char *path;
        uint64_t events, peak_bytes, gpus;
    } cases[] = {{"tests/golden/data/jax/step.prof", 6, 65668, 3},
                 {"tests/golden/data/jax/step-buffer-assignment.txt", 16, 81940, 1}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        CLOSED(close_trace) struct trace_source *source = trace_rig_source(cases[i].path);
        assert_int_equal(source->info.events, cases[i].events);
        assert_int_equal(source->info.peak_live_bytes, cases[i].peak_bytes);
        assert_int_equal(source->info.gpus, cases[i].gpus);
    }
}

/* ---- files that are recognised and not read ---- */

FORMAT_REFUSES("format_xla", known_files_are_named)
