/* Parts of the readers of other programs' files: times, lines, sizes in logs, counts of what was
 * read, areas of addresses, and pickles that are damaged. */
#include "tests/support/test.h"
#include "tests/support/trace_rig.h"
#include "workloads/formats/formats.h"
#include "workloads/formats/import_report.h"
#include "workloads/formats/torch/snapshot_image.h"
#include "workloads/formats/torch/snapshot_tree.h"
#include "workloads/formats/xla/bfc_log.h"
#include "workloads/io/fields.h"
#include "workloads/trace/trace.h"

#define DAY_NS (UINT64_C(86400) * 1000000000)

/* Days since 1970, over leap years and ends of years. */
TEST(dates_are_days_since_1970)
{
    EACH_ROW (row, 2) {
        char text[64];
        uint64_t time_ns;
        bool dated;
        snprintf(text, sizeof text, "%s 00:00:01.000000", row.field[0]);
        assert_ok(field_time(text, &time_ns, &dated, &test_error));
        assert_true(dated);
        assert_int_equal(time_ns, cases_number(&row, 1) * DAY_NS + 1000000000);
    }
}

static void lines_are(struct trace_rig *rig, const char *text, size_t bytes, size_t kept_bytes,
                      const char *const *wanted)
{
    struct trace_input *input;
    FREED struct trace_lines *lines = malloc(sizeof *lines);
    char *line;
    size_t length;
    assert_non_null(lines);
    trace_rig_write(rig->path[0], text, bytes);
    assert_ok(trace_input_open(rig->path[0], &input, &test_error));
    if (kept_bytes)
        trace_lines_start_log(lines, input, kept_bytes);
    else
        trace_lines_start(lines, input);
    for (size_t i = 0;; i++) {
        assert_ok(trace_lines_next(lines, &line, &length, &test_error));
        if (!line) {
            assert_null(wanted[i]);
            break;
        }
        assert_non_null(wanted[i]);
        assert_string_equal(line, wanted[i]);
        assert_int_equal(length, strlen(wanted[i]));
    }
    trace_input_close(input);
}

/* A byte-order mark is no part of the first line, and only there a mark. */
TRACE_TEST(a_byte_order_mark_is_skipped)
{
    static const char text[] = "\xef\xbb\xbf"
                               "one\r\n\xef\xbb\xbf"
                               "two\n\nthree";
    lines_are(*state, text, sizeof text - 1, 0,
              (const char *const[]){"one",
                                    "\xef\xbb\xbf"
                                    "two",
                                    "", "three", NULL});
    lines_are(*state, text, 4, 0, (const char *const[]){"o", NULL});
}

/* Of a line of a log the first bytes are given, however long it is, and the next line is whole. */
TRACE_TEST(long_lines_of_a_log_are_cut)
{
    enum { LONG = 1000000, KEPT = 64 };
    char *text = malloc(LONG + 64), kept[KEPT + 1];
    assert_non_null(text);
    for (size_t i = 0; i < LONG; i++)
        text[i] = (char)('a' + i % 26);
    memcpy(text, "short\n", 6);
    memcpy(text + LONG, "\nlast", 6);
    memcpy(kept, text + 6, KEPT);
    kept[KEPT] = 0;
    lines_are(*state, text, LONG + 5, KEPT, (const char *const[]){"short", kept, "last", NULL});
    text[LONG] = 'x'; /* to the end of the file */
    lines_are(*state, text, LONG + 5, KEPT, (const char *const[]){"short", kept, NULL});
    free(text);
}

TEST(sizes_in_logs_have_units)
{
    EACH_ROW (row, 2) {
        uint64_t slack;
        if (bfc_human_bytes(row.field[0], &slack) != cases_number(&row, 1))
            fail_msg("%s is %" PRIu64, row.field[0], bfc_human_bytes(row.field[0], &slack));
    }
}

/* Of blocks never freed, all sizes are listed, by the bytes of each. */
TRACE_TEST(blocks_never_freed_are_counted_by_size)
{
    CLOSED(close_trace) struct trace_source *source;
    struct import_counts counts;
    assert_ok(trace_rig_text(*state,
                             "# allocrig-trace 1\na,0,300\na,1,100\na,2,200\na,3,100\n"
                             "a,4,100\na,5,100\na,6,50\nf,6\n",
                             &source, &test_error));
    assert_ok(import_count(source, &counts, &test_error));
    assert_int_equal(counts.end_blocks, 6);
    assert_int_equal(counts.end_bytes, 900);
    assert_int_equal(counts.size_count, 3);
    static const struct import_size sizes[] = {{100, 4}, {300, 1}, {200, 1}};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(counts.sizes[i].bytes, sizes[i].bytes);
        assert_int_equal(counts.sizes[i].blocks, sizes[i].blocks);
    }
    assert_int_equal(counts.other_sizes, 0);
    assert_int_equal(counts.peak_bytes, 950);
    assert_int_equal(counts.peak_event, 6);
}

/* An address between two areas is in none. */
TEST(addresses_between_areas_are_in_none)
{
    struct snapshot_areas areas = {0};
    for (uint64_t address = 1000; address < 4000; address += 1000)
        assert_ok(snapshot_areas_add(
            &areas, &(struct snapshot_area){.address = address, .bytes = 100}, &test_error));
    static const struct {
        uint64_t address, area; /* its address; 0: none */
    } cases[] = {{0, 0},       {999, 0},  {1000, 1000}, {1099, 1000}, {1100, 0},      {1999, 0},
                 {2050, 2000}, {2999, 0}, {3099, 3000}, {3100, 0},    {UINT64_MAX, 0}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct snapshot_area *area = snapshot_areas_at(&areas, cases[i].address);
        assert_int_equal(area ? area->address : 0, cases[i].area);
    }
    assert_ok(snapshot_areas_cut(&areas, 1050, 2000, &test_error));
    assert_int_equal(areas.count, 2);
    assert_int_equal(areas.items[0].bytes, 50);
    assert_int_equal(areas.items[1].address, 3050);
    free(areas.items);
}

/* Pickles that are damaged, or are something else, are refused with what is wrong. */
TRACE_TEST(damaged_pickles_are_refused)
{
#define DICT(bytes) "\x80\x04" bytes "."
    static const struct {
        const char *bytes;
        size_t count;
        const char *says;
    } cases[] = {
        {DICT("}"), 4, "it is not a memory snapshot of PyTorch"},
        {DICT("}\x94\x8c\x01"
              "aK\x01s"),
         11, "it is not a memory snapshot of PyTorch"},
        {DICT("a"), 4, "APPEND finds too few values"},
        {DICT("]a"), 5, "APPEND finds too few values"},
        {DICT("K\x01K\x02"
              "a"),
         8, "finds no list"},
        {DICT("K\x01s"), 6, "SETITEM finds too few values"},
        {DICT("]K\x01K\x02s"), 9, "finds no dictionary"},
        {DICT("e"), 4, "APPENDS finds no mark"},
        {DICT("u"), 4, "SETITEMS finds no mark"},
        {DICT("l"), 4, "LIST finds no mark"},
        {DICT("(K\x01"
              "d"),
         7, "DICT"},
    };
    struct trace_rig *rig = *state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct trace_source *source = NULL;
        struct ar_error error = {""};
        char path[128];
        snprintf(path, sizeof path, "%s/x.pickle", rig->folder);
        trace_rig_write(path, cases[i].bytes, cases[i].count);
        if (trace_open(path, &source, &error) == AR_OK)
            fail_msg("case %zu is taken", i);
        if (!strstr(error.text, cases[i].says))
            fail_msg("case %zu: \"%s\" says not \"%s\"", i, error.text, cases[i].says);
    }
}

/* A snapshot of one device with one entry, which is in its list as often as `times`; `action` has
 * `action_bytes` bytes. Returns the status of opening it. */
static enum ar_status one_entry(struct trace_rig *rig, const char *action, unsigned action_bytes,
                                unsigned times, struct trace_source **source,
                                struct ar_error *error)
{
    static const char head[] = "\x80\x02}(X\x08\0\0\0segments]X\x0d\0\0\0device_traces]](}q\x01("
                               "X\x06\0\0\0"
                               "action";
    static const char rest[] = "X\x04\0\0\0"
                               "addrJ\0\x10\0\0X\x04\0\0\0sizeM\0\x02X\x06\0\0\0streamK\0u";
    char bytes[256], path[128];
    size_t count = 0;
    memcpy(bytes, head, sizeof head - 1);
    count += sizeof head - 1;
    bytes[count++] = 'X';
    bytes[count++] = (char)action_bytes;
    memset(bytes + count, 0, 3);
    count += 3;
    memcpy(bytes + count, action, action_bytes);
    count += action_bytes;
    memcpy(bytes + count, rest, sizeof rest - 1);
    count += sizeof rest - 1;
    for (unsigned i = 1; i < times; i++) {
        memcpy(bytes + count, "h\x01", 2);
        count += 2;
    }
    memcpy(bytes + count, "eau.", 4);
    snprintf(path, sizeof path, "%s/x.pickle", rig->folder);
    trace_rig_write(path, bytes, count + 4);
    return trace_open(path, source, error);
}

/* The text of an entry ends at a NUL, as in C; an entry is in a history once. */
TRACE_TEST(entries_of_a_snapshot)
{
    struct trace_source *source = NULL;
    assert_ok(one_entry(*state, "alloc", 5, 1, &source, &test_error));
    assert_int_equal(source->info.allocs, 1);
    trace_close(source);
    assert_ok(one_entry(*state, "alloc\0x", 7, 1, &source, &test_error)); /* a NUL cuts no text */
    assert_int_equal(source->info.allocs, 0);
    trace_close(source);
    assert_says(one_entry(*state, "alloc", 5, 2, &source, &test_error), AR_FORMAT,
                "is in the history twice");
}

/* What is no dictionary has no pairs. */
TEST(absent_values_are_empty)
{
    struct snapshot_tree tree = {0};
    size_t count = 7;
    assert_null(snapshot_pairs(&tree, SNAPSHOT_ABSENT, &count));
    assert_int_equal(count, 0);
    count = 7;
    assert_null(snapshot_items(&tree, SNAPSHOT_ABSENT, &count));
    assert_int_equal(count, 0);
}
