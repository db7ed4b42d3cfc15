/* Traces as text, and those of the oracles: the grammar, what is refused, canonical form. */
#include "tests/support/test.h"
#include "tests/support/trace_rig.h"
#include "workloads/formats/formats.h"
#include "workloads/trace/tables.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const char every_event[] = "# allocrig-trace 1\n"
                                  "# name: all\n"
                                  "# recorder: torch 2.11.0\n"
                                  "# conf: roundup_power2_divisions:[256:1,512:2]\n"
                                  "# limit: 2147483648\n"
                                  "# capacity: 85899345920\n"
                                  "# card: NVIDIA H100 80GB HBM3\n"
                                  "# complete: no\n"
                                  "!,segment,4096,2097152,0\n"
                                  "t,0\n"
                                  "a,0,512\n"
                                  "!,alloc,4096\n"
                                  "a,1,1048576,1,tag=weights,pool=2,align=256,device=1,thread=7,"
                                  "tenant=3,space=pinned,end=upper,"
                                  "mempool=no_split\n"
                                  "p,2,4294967296,end=lower,mempool=use_on_oom+allocator\n"
                                  "a,3,0,pool=0,space=device,later=1,x=\n"
                                  "k,0,1500\n"
                                  "k,1,20,tag=gemm\n"
                                  "e,5,0\n"
                                  "w,1,5\n"
                                  "u,0,1\n"
                                  "r,0\n"
                                  "r,1,0,tag=side\n"
                                  "t,2500\n"
                                  "f,0\n"
                                  "s\n"
                                  "s,1\n"
                                  "c\n"
                                  "o,600000000\n"
                                  "m,step\n"
                                  "m,warm,tag=x\n"
                                  "f,3\n";

TRACE_TEST(every_event_is_read_and_written)
{
    struct trace_rig *rig = *state;
    struct trace_source *source;
    struct ar_error error;
    assert_int_equal(trace_rig_text(rig, every_event, &source, &error), AR_OK);
    const struct trace_info *info = &source->info;
    assert_string_equal(info->name, "all");
    assert_string_equal(info->recorder, "torch 2.11.0");
    assert_string_equal(info->conf, "roundup_power2_divisions:[256:1,512:2]");
    assert_string_equal(info->format, "text");
    assert_int_equal(info->limit_bytes, 2147483648);
    assert_int_equal(info->capacity_bytes, 85899345920);
    assert_false(info->complete);
    assert_int_equal(info->events, 23);
    assert_int_equal(info->allocs, 3);
    assert_int_equal(info->probes, 1);
    assert_int_equal(info->frees, 3);
    assert_int_equal(info->kernels, 2);
    assert_int_equal(info->steps, 1);
    assert_int_equal(info->streams, 2);
    assert_int_equal(info->slots, 4);
    assert_true(info->has_uses && info->has_split_frees && info->has_times);
    const struct trace_event *events;
    size_t count;
    assert_int_equal(trace_next(source, &events, &count, &error), AR_OK);
    const struct trace_attributes *keys = trace_attributes_of(source, events[4].attributes);
    assert_string_equal(keys->tag, "weights");
    assert_int_equal(keys->align, 256);
    assert_int_equal(keys->pool, 2);
    assert_int_equal(keys->device, 1);
    assert_int_equal(keys->thread, 7);
    assert_int_equal(keys->tenant, 3);
    assert_int_equal(keys->space, TRACE_SPACE_PINNED);
    assert_int_equal(keys->end, TRACE_END_UPPER);
    assert_string_equal(trace_attributes_of(source, events[6].attributes)->rest, "later=1,x=");
    char *again = trace_rig_print(rig, source);
    assert_string_equal(again, every_event);
    free(again);
    trace_close(source);
}

/* Any valid text becomes the canonical text. */
TRACE_TEST(text_is_made_canonical)
{
    struct trace_rig *rig = *state;
    struct trace_source *source;
    assert_ok(trace_rig_text(rig,
                             "# allocrig-trace 1\r\n# made by hand\n# name:x\n# limit: 2K\n"
                             "a,0,007,0,end=lower,z=9,pool=1\r\n\nr,0,0\na,1,8,2\nr,1",
                             &source, &test_error));
    char *again = trace_rig_print(rig, source);
    assert_string_equal(again, "# allocrig-trace 1\n# name: x\n# limit: 2048\n# let-go: final\n"
                               "a,0,7,pool=1,end=lower,z=9\nr,0\na,1,8,2\nr,1\n");
    free(again);
    assert_int_equal(source->info.slots, 1);
    trace_close(source);
}

TRACE_TEST(oracle_traces_are_read)
{
    struct trace_rig *rig = *state;
    struct trace_source *source;
    assert_ok(trace_rig_text(rig, "a,0,1,0\nf,0\na,1,2,0\n", &source, &test_error));
    assert_string_equal(source->info.format, "oracle");
    assert_string_equal(source->info.name, "0");
    assert_int_equal(source->info.events, 3);
    trace_close(source);
    assert_says(trace_rig_text(rig, "a,0,1,0\nm,step\n", &source, &test_error), AR_INVALID,
                ":2: a file without the line");
}

struct refusal {
    const char *lines, *part;
};

static const struct refusal refusals[] = {
    {"a,0,-5", ":2: the size \"-5\" is not a whole number (it is negative)"},
    {"a,0,99999999999999999999999", ":2: the size 99999999999999999999999 is too large"},
    {"a,0,1152921504606846976", ":2: 1152921504606846976 bytes are requested"},
    {"a,0,12x", ":2: the size \"12x\" is not a whole number"},
    {"a,0,", ":2: the size \"\" is not a whole number"},
    {"a,0", ":2: the size is missing"},
    {"a", ":2: the id is missing"},
    {"f,0", ":2: no block of id 0 was allocated before this"},
    {"a,0,1\nf,0\nf,0", ":4: block 0 was freed before this"},
    {"a,0,1\na,0,1", ":3: id 0 was used before"},
    {"a,0,1\nr,0\nr,0", ":4: the free of block 0 was requested before this"},
    {"a,0,1\nr,0\nu,0,0", ":4: the free of block 0 was requested before this"},
    {"a,0,1\nu,0", ":3: the stream is missing"},
    {"k,70000,5", ":2: stream 70000: ordinals are below 65536"},
    {"w,0,1", ":2: a stream waits for event 1, which was not recorded"},
    {"t,5\nt,4", ":3: the time goes back"},
    {"x,1", ":2: \"x\" is no event"},
    {"alloc,1", ":2: \"alloc\" is no event"},
    {"a,0,8,0,0", ":2: \"0\" is one field too many"},
    {"a,0,8,tag", ":2: \"tag\" is not key=value"},
    {"a,0,8,align=3", ":2: align=3: must be a power of two"},
    {"a,0,8,pool=-1", ":2: pool=-1: must be a whole number"},
    {"a,0,8,space=moon", ":2: space=moon: must be device or pinned"},
    {"a,0,8,mempool=yes", ":2: mempool=yes: must be plain, or of use_on_oom, no_split and"},
    {"a,0,8,align=0", ":2: align=0: must be a power of two"},
    {"a,0,8,x=1,tag=a,x=2", ":2: the key \"x\" is given twice"},
    {"a,0,8,xy=1,x=2,xy=1", ":2: the key \"xy\" is given twice"},
    {"a,0,8,x=1,_y=2", ":2: the key \"_y=2\" does not begin with a letter"},
    {"a,0,8,x=1,7=2", ":2: the key \"7=2\" does not begin with a letter"},
    {"a,0,8,pool=1,pool=2", ":2: the key \"pool\" is given twice"},
    {"m", ":2: the label of the mark is missing"},
    {"m,a=b", ":2: a mark has a label"},
    {"!", ":2: the text of the note is missing"},
    {"c\n# late", ":3: a # line follows the first event"},
    {"# limit: many", ":2: "},
    {"# complete: perhaps", ":2: complete: perhaps: must be yes or no"},
    {"# name: a\n# name: b", ":3: the header \"name\" is given twice"},
    {"a,0,8,tag=\x01", ":2: the set of keys contains a control byte"},
    {"# let-go: final\na,0,1\nr,0\nf,0", ":5: block 0 was freed before this"},
};

TRACE_TEST(bad_lines_are_refused)
{
    struct trace_rig *rig = *state;
    for (size_t i = 0; i < COUNT(refusals); i++) {
        char text[256];
        struct trace_source *source;
        struct ar_error error;
        (void)snprintf(text, sizeof text, "# allocrig-trace 1\n%s\n", refusals[i].lines);
        assert_int_equal(trace_rig_text(rig, text, &source, &error), AR_INVALID);
        size_t length = strlen(rig->path[0]);
        if (strncmp(error.text, rig->path[0], length) != 0 ||
            strncmp(error.text + length, refusals[i].part, strlen(refusals[i].part)) != 0)
            fail_msg("\"%s\" begins not with \"%s\"", error.text, refusals[i].part);
    }
}

TRACE_TEST(no_traces_are_refused)
{
    struct trace_rig *rig = *state;
    struct trace_source *source;
    assert_says(trace_open(rig->path[1], &source, &test_error), AR_IO, "No such file");
    assert_says(trace_open(rig->folder, &source, &test_error), AR_INVALID, "is a directory");
    assert_says(trace_rig_text(rig, "", &source, &test_error), AR_FORMAT, "the file is empty");
    assert_says(trace_rig_text(rig, "hello\n", &source, &test_error), AR_FORMAT, "no trace");
    assert_says(trace_rig_text(rig, "# allocrig-trace 2\n", &source, &test_error), AR_FORMAT,
                "version \"2\"");
    trace_rig_write(rig->path[0], "# allocrig-trace 1\nc\n\0", 22);
    assert_says(trace_open(rig->path[0], &source, &test_error), AR_INVALID,
                ":3: the line holds a NUL byte");
}

TRACE_TEST(long_lines_are_read_or_refused)
{
    struct trace_rig *rig = *state;
    struct trace_source *source;
    enum { LONGEST = 65535 };
    char *text = malloc(LONGEST + 64);
    assert_non_null(text);
    int used = snprintf(text, 64, "# allocrig-trace 1\nc,tag=");
    memset(text + used, 'x', TRACE_TEXT_LIMIT - 4);
    strcpy(text + used + TRACE_TEXT_LIMIT - 4, "\nc\n");
    assert_ok(trace_rig_text(rig, text, &source, &test_error));
    assert_int_equal(source->info.events, 2);
    trace_close(source);
    memset(text + used, 'x', TRACE_TEXT_LIMIT - 3);
    strcpy(text + used + TRACE_TEXT_LIMIT - 3, "\nc\n");
    assert_says(trace_rig_text(rig, text, &source, &test_error), AR_INVALID,
                ":2: the set of keys has more than 65000 bytes");
    memset(text + used, 'x', LONGEST - 5);
    strcpy(text + used + LONGEST - 5, "\nc\n");
    assert_says(trace_rig_text(rig, text, &source, &test_error), AR_INVALID,
                ":2: the line has more than");
    free(text);
}
