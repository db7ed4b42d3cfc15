/* Binary traces: the same trace in either form, damage, and files that are
 * complete or absent. */
#include <signal.h>
#include <sys/resource.h>

#include "tests/support/amount.h"
#include "tests/support/test.h"
#include "tests/support/trace_rig.h"
#include "workloads/formats/formats.h"
#include "workloads/trace/forms.h"
#include "workloads/io/sha256.h"

static const char *const recordings[] = {
    "workloads/data/dlrm_embedding.default.csv.gz",    "workloads/data/side_streams.default.csv.gz",
    "workloads/data/resnet50_train.expandable.csv.gz", "workloads/data/graphs.default.csv.gz",
    "workloads/data/lora_recompute.limit5.csv.gz",     "workloads/data/gpt2_train.default.csv.gz",
    "workloads/data/streams_prefetch.default.csv.gz",  "workloads/data/tape_small.default.csv.gz",
};

static void written(struct trace_source *source, const char *path, enum trace_format format,
                    bool compress)
{
    const struct trace_write_options options = {.format = format, .compress = compress};
    assert_ok(trace_write(source, path, &options, &test_error));
}

static void assert_same_file(const char *left, const char *right)
{
    size_t left_count, right_count;
    FREED char *left_bytes = trace_rig_read(left, &left_count);
    FREED char *right_bytes = trace_rig_read(right, &right_count);
    assert_int_equal(left_count, right_count);
    assert_memory_equal(left_bytes, right_bytes, left_count);
}

/* recording -> text -> binary -> packed binary -> text: the same bytes, the same hash. */
TRACE_TEST(recordings_survive_both_forms)
{
    struct trace_rig *rig = *state;
    for (size_t i = 0; i < test_amount(COUNT(recordings), COUNT(recordings)); i++) {
        struct trace_source *source = trace_rig_source(recordings[i]);
        struct trace_info first = source->info;
        written(source, rig->path[0], TRACE_FORMAT_TEXT, false);
        trace_close(source);
        const struct {
            const char *from, *to;
            enum trace_format format;
            bool compress;
        } ways[] = {
            {rig->path[0], rig->path[1], TRACE_FORMAT_BINARY, false},
            {rig->path[1], rig->path[2], TRACE_FORMAT_BINARY, true},
            {rig->path[2], rig->path[3], TRACE_FORMAT_TEXT, false},
        };
        for (size_t way = 0; way < COUNT(ways); way++) {
            source = trace_rig_source(ways[way].from);
            assert_memory_equal(source->info.sha256, first.sha256, 32);
            written(source, ways[way].to, ways[way].format, ways[way].compress);
            memcpy(source->info.format, first.format, sizeof first.format);
            assert_memory_equal(&source->info, &first, sizeof first);
            trace_close(source);
        }
        assert_same_file(rig->path[0], rig->path[3]);
    }
}

static const char small[] = "# allocrig-trace 1\n# name: small\n# conf: a,b\n"
                            "!,segment,0,4096,0\na,0,512,1,pool=3\nt,5\nk,0,7\nm,step\nr,0\n"
                            "p,1,0\ne,2,1\nw,0,2\nf,0\no,9\ns\nc\nm,end\nu,1,2\n";

/* A mapped file and an unpacked one give the same events. */
TRACE_TEST(events_are_the_same_in_each_form)
{
    struct trace_rig *rig = *state;
    struct trace_source *text, *packed, *plain;
    assert_ok(trace_rig_text(rig, small, &text, &test_error));
    written(text, rig->path[1], TRACE_FORMAT_BINARY, false);
    written(text, rig->path[2], TRACE_FORMAT_BINARY, true);
    assert_ok(trace_rewind(text, &test_error));
    plain = trace_rig_source(rig->path[1]);
    packed = trace_rig_source(rig->path[2]);
    for (int round = 0; round < 2; round++) {
        const struct trace_event *a, *b, *c;
        size_t counts[3];
        assert_ok(trace_next(text, &a, &counts[0], &test_error));
        assert_ok(trace_next(plain, &b, &counts[1], &test_error));
        assert_ok(trace_next(packed, &c, &counts[2], &test_error));
        assert_int_equal(counts[0], 15);
        assert_int_equal(counts[1], 15);
        assert_int_equal(counts[2], 15);
        assert_memory_equal(a, b, 15 * sizeof *a);
        assert_memory_equal(a, c, 15 * sizeof *a);
        assert_string_equal(trace_text_of(plain, b[0].value), "segment,0,4096,0");
        assert_int_equal(trace_attributes_of(plain, b[1].attributes)->pool, 3);
        assert_ok(trace_rewind(text, &test_error));
        assert_ok(trace_rewind(plain, &test_error));
        assert_ok(trace_rewind(packed, &test_error));
    }
    trace_close(text);
    trace_close(plain);
    trace_close(packed);
}

/* The bytes of the small trace as a binary file; the caller frees them. */
static char *small_binary(struct trace_rig *rig, size_t *count)
{
    struct trace_source *source;
    assert_ok(trace_rig_text(rig, small, &source, &test_error));
    written(source, rig->path[1], TRACE_FORMAT_BINARY, false);
    trace_close(source);
    return trace_rig_read(rig->path[1], count);
}

/* A file with any bit flipped, or cut anywhere, is refused, with its name. */
TRACE_TEST(all_damage_is_found)
{
    struct trace_rig *rig = *state;
    struct trace_source *source;
    struct ar_error error;
    size_t count;
    FREED char *bytes = small_binary(rig, &count);
    assert_true(count > 256 + 15 * 32);
    for (size_t bit = 0; bit < count * 8; bit += 1 + bit % 3) {
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
        trace_rig_write(rig->path[2], bytes, count);
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
        if (trace_open(rig->path[2], &source, &error) == AR_OK)
            fail_msg("bit %zu of byte %zu may flip", bit % 8, bit / 8);
        assert_non_null(strstr(error.text, rig->path[2]));
    }
    for (size_t cut = 0; cut < count; cut++) {
        trace_rig_write(rig->path[2], bytes, cut);
        assert_int_equal(trace_open(rig->path[2], &source, &error), AR_FORMAT);
    }
}

TRACE_TEST(damage_is_named)
{
    struct trace_rig *rig = *state;
    struct trace_source *source;
    size_t count;
    FREED char *bytes = small_binary(rig, &count);
    trace_rig_write(rig->path[2], bytes, count - 33);
    assert_says(trace_open(rig->path[2], &source, &test_error), AR_FORMAT,
                "it ends at event 13 of 15; the file is cut off");
    const uint64_t checksum_at = offsetof(struct binary_header, checksum);
    struct binary_header header;
    memcpy(&header, bytes, sizeof header);
    header.zero[5] = 1;
    uint64_t sum = ar_fnv64(AR_FNV64_SEED, &header, checksum_at);
    header.checksum = ar_fnv64(sum, bytes + sizeof header, header.head_bytes);
    char *changed = malloc(count);
    assert_non_null(changed);
    memcpy(changed, bytes, count);
    memcpy(changed, &header, sizeof header);
    trace_rig_write(rig->path[2], changed, count);
    free(changed);
    assert_says(trace_open(rig->path[2], &source, &test_error), AR_FORMAT,
                "its header has other bytes where version 1 has zeros");
    /* the first line of the keys, which has no checksum of its own */
    char *key = bytes + sizeof header + header.head_bytes, first = *key;
    *key = '?';
    trace_rig_write(rig->path[2], bytes, count);
    *key = first;
    assert_says(trace_open(rig->path[2], &source, &test_error), AR_FORMAT, ": in its tables: ");
    bytes[count - 3 * 32] = 77;
    trace_rig_write(rig->path[2], bytes, count);
    assert_says(trace_open(rig->path[2], &source, &test_error), AR_FORMAT,
                "event 12: there is no event of kind 77; the file is");
}

/* The sixteenth event of the trace loses the flag that FORMAT.md gives it. */
TRACE_TEST(wrong_flags_are_of_their_event)
{
    static const struct {
        const char *text;
        uint8_t flags;
        const char *format;
    } cases[] = {
        {"!,limit,5", TRACE_CHANGE, "4 on `!,settings,..` and `!,limit,..`"},
        {"!,settings,a:1", TRACE_CHANGE, "4 on `!,settings,..` and `!,limit,..`"},
        {"m,step", TRACE_STEP, "; 2 on `m,step`"},
        {"!,driver,took,5", TRACE_DRIVER, "; 8 on `!,driver,..` |"},
    };
    struct trace_rig *rig = *state;
    FREED char *format = trace_rig_read("workloads/trace/FORMAT.md", &(size_t){0});
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[256];
        size_t count;
        struct trace_source *source;
        (void)snprintf(text, sizeof text, "%s%s\ns\n", small, cases[i].text);
        assert_ok(trace_rig_text(rig, text, &source, &test_error));
        written(source, rig->path[1], TRACE_FORMAT_BINARY, false);
        trace_close(source);
        FREED char *bytes = trace_rig_read(rig->path[1], &count);
        char *flags = &bytes[count - 2 * 32 + offsetof(struct trace_event, flags)];
        assert_int_equal(*flags, cases[i].flags);
        assert_non_null(strstr(format, cases[i].format));
        *flags = 0;
        trace_rig_write(rig->path[2], bytes, count);
        assert_says(trace_open(rig->path[2], &source, &test_error), AR_FORMAT,
                    "event 15: its flags, stream or unused fields are wrong; the file is");
    }
}

TRACE_TEST(files_are_complete_or_absent)
{
    struct trace_rig *rig = *state;
    const struct trace_write_options options = {.format = TRACE_FORMAT_TEXT};
    CLOSED(close_trace) struct trace_source *source = trace_rig_source(recordings[0]);
    struct rlimit old, low;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    low = old;
    low.rlim_cur = 200000; /* like a full disk, in the middle */
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    trace_rig_close(rig);
    *rig = trace_rig_open();
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    enum ar_status status = trace_write(source, rig->path[1], &options, &test_error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    (void)signal(SIGXFSZ, handler);
    assert_int_equal(status, AR_IO);
    assert_non_null(strstr(test_error.text, "nothing was written"));
    assert_int_equal(trace_rig_files(rig), 0);
    assert_says(trace_write(source, "/dev/full", &options, &test_error), AR_IO, "No space left");
    assert_null(strstr(test_error.text, "nothing was written"));
    assert_int_equal(trace_write(source, rig->folder, &options, &test_error), AR_INVALID);
    assert_int_equal(trace_write(source, "/nowhere/at/all", &options, &test_error), AR_IO);
    /* An existing file is unchanged until the new one is complete. */
    trace_rig_write(rig->path[1], "old", 3);
    assert_ok(trace_write(source, rig->path[1], &options, &test_error));
    assert_int_equal(trace_rig_files(rig), 1);
}

/* The examples of FIPS 180-4, and a length at each edge of a block. */
TRACE_TEST(sha256_is_that_of_the_standard)
{
    static const struct {
        const char *text, *hex;
    } cases[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    for (size_t i = 0; i < 2 * COUNT(cases); i++) {
        struct sha256 hash;
        uint8_t digest[32];
        char hex[65];
        sha256_start(&hash);
        hash.fast &= i % 2; /* both ways, if the processor has two */
        sha256_add(&hash, cases[i / 2].text, strlen(cases[i / 2].text));
        sha256_end(&hash, digest);
        for (int byte = 0; byte < 32; byte++)
            (void)snprintf(hex + 2 * byte, 3, "%02x", digest[byte]);
        assert_string_equal(hex, cases[i / 2].hex);
    }
    uint8_t bytes[200], whole[32], parts[32];
    for (size_t at = 0; at < sizeof bytes; at++)
        bytes[at] = (uint8_t)(at * 37);
    for (size_t length = 0; length <= sizeof bytes; length++) {
        struct sha256 hash;
        sha256_start(&hash);
        sha256_add(&hash, bytes, length);
        sha256_end(&hash, whole);
        sha256_start(&hash);
        hash.fast = false;
        for (size_t at = 0; at < length; at++)
            sha256_add(&hash, bytes + at, 1);
        sha256_end(&hash, parts);
        assert_memory_equal(whole, parts, 32);
    }
}
