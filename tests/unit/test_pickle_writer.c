/* Pickles byte by byte, and a snapshot of a small recording as a golden: which opcodes there are is
 * asserted by walking over them as an unpickler does. */
#include <math.h>

#include "tests/support/test.h"
#include "tests/support/trace_rig.h"
#include "workloads/formats/torch/pickle.h"
#include "workloads/formats/torch/snapshot_image.h"
#include "workloads/formats/torch/snapshot_tree.h"
#include "workloads/formats/formats.h"

struct bytes {
    unsigned char at[1 << 17];
    size_t count;
    enum ar_status status; /* that the sink answers */
};

static enum ar_status keep(void *argument, const void *bytes, size_t count, struct ar_error *error)
{
    struct bytes *self = argument;
    if (self->status)
        return ar_error_set(error, self->status, "the disk is full");
    assert_true(self->count + count <= sizeof self->at);
    memcpy(self->at + self->count, bytes, count);
    self->count += count;
    return AR_OK;
}

struct rig {
    struct pickle_writer writer;
    struct bytes bytes;
    struct ar_error error;
};

static struct rig *rig_open(void)
{
    struct rig *rig = calloc(1, sizeof *rig);
    assert_non_null(rig);
    pickle_begin(&rig->writer, keep, &rig->bytes, &rig->error);
    return rig;
}

/* The pickle must have just these bytes between its protocol and its end. */
static void rig_is(struct rig *rig, const char *wanted, size_t count)
{
    assert_int_equal(pickle_end(&rig->writer), AR_OK);
    assert_int_equal(rig->bytes.count, count + 3);
    assert_memory_equal(rig->bytes.at, "\x80\x04", 2);
    assert_memory_equal(rig->bytes.at + 2, wanted, count);
    assert_int_equal(rig->bytes.at[count + 2], '.');
    free(rig);
}

#define RIG_IS(rig, wanted) rig_is(rig, wanted, sizeof(wanted) - 1)

TEST(integers_are_as_short_as_they_can_be)
{
    static const struct {
        int64_t integer;
        const char *bytes;
        size_t count;
    } cases[] = {
        {0, "K\0", 2},
        {255, "K\xff", 2},
        {256, "M\0\1", 3},
        {65535, "M\xff\xff", 3},
        {65536, "J\0\0\1\0", 5},
        {INT32_MAX, "J\xff\xff\xff\x7f", 5},
        {-1, "J\xff\xff\xff\xff", 5},
        {INT32_MIN, "J\0\0\0\x80", 5},
        {INT64_C(2147483648), "\x8a\5\0\0\0\x80\0", 7},
        {INT64_C(-2147483649), "\x8a\5\xff\xff\xff\x7f\xff", 7},
        {INT64_C(549755813887), "\x8a\5\xff\xff\xff\xff\x7f", 7},
        {INT64_C(549755813888), "\x8a\6\0\0\0\0\x80\0", 8},
        {INT64_C(140693943091200), "\x8a\6\x00\x00\x80\xdc\xf5\x7f", 8},
        {INT64_MAX, "\x8a\x8\xff\xff\xff\xff\xff\xff\xff\x7f", 10},
        {INT64_MIN, "\x8a\x8\0\0\0\0\0\0\0\x80", 10},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct rig *rig = rig_open();
        pickle_put_integer(&rig->writer, cases[i].integer);
        rig_is(rig, cases[i].bytes, cases[i].count);
    }
    struct rig *rig = rig_open();
    pickle_put_unsigned(&rig->writer, UINT64_MAX);
    RIG_IS(rig, "\x8a\x9\xff\xff\xff\xff\xff\xff\xff\xff\0");
}

TEST(other_values_have_their_opcodes)
{
    struct rig *rig = rig_open();
    pickle_begin_dictionary(&rig->writer);
    pickle_put_text(&rig->writer, "a");
    pickle_put_real(&rig->writer, -1.5);
    pickle_put_text(&rig->writer, "b");
    pickle_put_bool(&rig->writer, true);
    pickle_put_bool(&rig->writer, false);
    pickle_make_pair(&rig->writer);
    pickle_put_text(&rig->writer, "a");
    pickle_put_bool(&rig->writer, true);
    pickle_end_dictionary(&rig->writer);
    RIG_IS(rig, "}(\x8c\1a\x94G\xbf\xf8\0\0\0\0\0\0\x8c\1b\x94\x88\x89\x86h\0\x88u");
}

TEST(texts_are_readable_and_remembered)
{
    FREED struct rig *rig = rig_open();
    pickle_put_text(&rig->writer, "\xff\xc3\xa4");
    pickle_put_text(&rig->writer, "");
    pickle_put_text(&rig->writer, "\xff\xc3\xa4");
    RIG_IS(rig, "\x8c\5\xef\xbf\xbd\xc3\xa4\x94\x8c\0\x94h\0");

    char text[301];
    memset(text, 'x', sizeof text);
    text[300] = '\0';
    rig = rig_open();
    pickle_put_text(&rig->writer, text);
    assert_int_equal(pickle_end(&rig->writer), AR_OK);
    assert_memory_equal(rig->bytes.at + 2, "X\x2c\1\0\0", 5);
}

TEST(more_than_256_texts_are_found_again)
{
    FREED struct rig *rig = rig_open();
    char text[16];
    for (int i = 0; i < 300; i++) {
        (void)snprintf(text, sizeof text, "t%d", i);
        pickle_put_text(&rig->writer, text);
    }
    pickle_put_text(&rig->writer, "t255");
    pickle_put_text(&rig->writer, "t256");
    assert_int_equal(pickle_end(&rig->writer), AR_OK);
    assert_memory_equal(rig->bytes.at + rig->bytes.count - 8, "h\xffj\0\1\0\0.", 8);
}

/* A viewer in JavaScript hands a batch to a function as its arguments: it must not be long. */
TEST(long_lists_go_out_in_batches)
{
    struct rig *rig = rig_open();
    pickle_begin_list(&rig->writer);
    for (int i = 0; i < 2001; i++) {
        pickle_next_item(&rig->writer);
        pickle_put_bool(&rig->writer, false);
    }
    pickle_end_list(&rig->writer);
    assert_int_equal(pickle_end(&rig->writer), AR_OK);
    const unsigned char *at = rig->bytes.at + 2;
    assert_int_equal(*at++, ']');
    for (int left = 2001; left > 0; left -= 1000) {
        assert_int_equal(*at++, '(');
        for (int i = 0; i < (left < 1000 ? left : 1000); i++)
            assert_int_equal(*at++, 0x89);
        assert_int_equal(*at++, 'e');
    }
    assert_int_equal(*at, '.');
    free(rig);

    rig = rig_open();
    pickle_begin_list(&rig->writer);
    pickle_end_list(&rig->writer);
    RIG_IS(rig, "]");
}

TEST(a_failing_sink_ends_it_with_its_sentence)
{
    FREED struct rig *rig = rig_open();
    rig->bytes.status = AR_IO;
    for (int i = 0; i < PICKLE_BUFFER; i++)
        pickle_put_text(&rig->writer, "again");
    for (int i = 0; i < 100; i++) { /* its depth is not the error */
        pickle_begin_list(&rig->writer);
        pickle_end_list(&rig->writer);
    }
    assert_int_equal(pickle_end(&rig->writer), AR_IO);
    assert_string_equal(rig->error.text, "the disk is full");
}

/* The length of an opcode that the viewer knows, with its operand. 0: another opcode. */
static size_t opcode_bytes(const unsigned char *at)
{
    switch (*at) {
    case 0x80:
    case 'K':
    case 'h':
    case 'q':
        return 2;
    case 'M':
        return 3;
    case 'J':
    case 'j':
    case 'r':
        return 5;
    case 'G':
    case 0x95:
        return 9;
    case 0x8a:
    case 0x8c:
        return 2 + (size_t)at[1];
    case 'X':
        return 5 + (size_t)at[1] + ((size_t)at[2] << 8) + ((size_t)at[3] << 16);
    default:
        return strchr("(.}])dlteausN\x85\x86\x87\x88\x89\x94", *at) && *at ? 1 : 0;
    }
}

static void only_known_opcodes(const char *bytes, size_t count)
{
    size_t at = 0;
    while (at < count) {
        size_t length = opcode_bytes((const unsigned char *)bytes + at);
        assert_true(length > 0);
        if (bytes[at] == '.')
            break;
        at += length;
    }
    assert_int_equal(at, count - 1);
}

/* Held byte for byte against a file that PyTorch's own script has read: what others open now they
 * must go on opening. */
TEST(a_small_snapshot_is_just_this)
{
    struct cases block = {0};
    CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
    struct trace_source *source;
    size_t count;
    assert_ok(trace_rig_text(&rig, cases_text(&block, "pickle_writer", "recording"), &source,
                             &test_error));
    assert_ok(format_write(&format_writer_snapshot, source, rig.path[1], false, &test_error));
    trace_close(source);
    FREED char *bytes = trace_rig_read(rig.path[1], &count);
    only_known_opcodes(bytes, count);
    size_t wanted_count;
    FREED char *wanted = trace_rig_read("tests/golden/data/writers/tiny.pickle", &wanted_count);
    assert_int_equal(count, wanted_count);
    assert_memory_equal(bytes, wanted, count);
}

TEST(settings_are_read_as_pytorch_reads_them)
{
    struct snapshot_settings settings;
    snapshot_settings_read("", &settings);
    assert_int_equal(settings.max_split_bytes, -1);
    assert_false(settings.expandable_segments);
    snapshot_settings_read("max_split_size_mb:64,unknown:[1:2,3:4],expandable_segments:True,"
                           "garbage_collection_threshold:0.6,"
                           "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
                           &settings);
    assert_int_equal(settings.max_split_bytes, 64 << 20);
    assert_true(settings.expandable_segments);
    assert_true(fabs(settings.garbage_collection_threshold - 0.6) < 1e-12);
    static const uint64_t wanted[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 8, 8, 8, 8};
    for (int i = 0; i < TORCH_DIVISION_INTERVALS; i++)
        assert_int_equal(settings.roundup_power2_divisions[i], wanted[i]);
    snapshot_settings_read("roundup_power2_divisions:4", &settings);
    for (int i = 0; i < TORCH_DIVISION_INTERVALS; i++)
        assert_int_equal(settings.roundup_power2_divisions[i], 4);
}

/* Blocks, free ones and pages at the end: worked out by hand. */
TEST(segments_at_the_end_follow_from_the_entries)
{
    CLOSED(snapshot_image_close) struct snapshot_image image = {0};
    static const struct snapshot_entry entries[] = {
        {.action = SNAPSHOT_SEGMENT_ALLOC, .address = 1000, .bytes = 100},
        {.action = SNAPSHOT_SEGMENT_FREE, .address = 1000, .bytes = 100},
        {.action = SNAPSHOT_SEGMENT_ALLOC, .address = 1000, .bytes = 50, .stream = 3},
        {.action = SNAPSHOT_SEGMENT_MAP, .address = 5000, .bytes = 300},
        {.action = SNAPSHOT_SEGMENT_MAP, .address = 5300, .bytes = 100},
        {.action = SNAPSHOT_SEGMENT_UNMAP, .address = 5100, .bytes = 150},
    };
    static const struct snapshot_block blocks[] = {
        {.address = 5250, .bytes = 60, .requested_bytes = 55, .state = SNAPSHOT_ACTIVE},
        {.address = 1010, .bytes = 10, .requested_bytes = 10, .state = SNAPSHOT_PENDING},
        {.address = 9000, .bytes = 7, .requested_bytes = 7, .state = SNAPSHOT_ACTIVE},
    };
    for (size_t i = 0; i < COUNT(entries); i++)
        assert_ok(snapshot_add_entry(&image, &entries[i], &test_error));
    for (size_t i = 0; i < COUNT(blocks); i++)
        assert_ok(snapshot_add_block(&image, &blocks[i], &test_error));
    assert_ok(snapshot_settle(&image, &test_error));
    static const struct {
        uint64_t address, bytes;
        size_t blocks;
    } wanted[] = {{1000, 50, 3}, {5000, 100, 1}, {5250, 150, 2}, {9000, 7, 1}};
    assert_int_equal(image.segment_count, 4);
    for (size_t i = 0; i < 4; i++) {
        uint64_t sum = 0;
        assert_int_equal(image.segments[i].address, wanted[i].address);
        assert_int_equal(image.segments[i].bytes, wanted[i].bytes);
        assert_int_equal(image.segments[i].block_count, wanted[i].blocks);
        for (size_t j = 0; j < image.segments[i].block_count; j++)
            sum += image.blocks[image.segments[i].first_block + j].bytes;
        assert_int_equal(sum, wanted[i].bytes);
    }
    assert_int_equal(image.segments[0].stream, 3);
    assert_true(image.segments[1].expandable);
    assert_int_equal(image.blocks[1].state, SNAPSHOT_PENDING);
}

/* An input that cannot be a snapshot is refused, and leaves no file. */
TEST(a_trace_without_addresses_is_no_recording)
{
    CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
    CLOSED(close_trace) struct trace_source *source;
    assert_ok(trace_rig_text(&rig, "# allocrig-trace 1\na,0,100\nf,0\n", &source, &test_error));
    assert_says(format_write(&format_writer_snapshot, source, rig.path[1], false, &test_error),
                AR_INVALID, "holds no addresses");
    assert_int_equal(trace_rig_files(&rig), 1);
}
