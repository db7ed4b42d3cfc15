/* The journal of an interrupted command: cut off at each of its bytes, and with each byte changed.
 * What is read is what was written, from the front, or the file is refused; and what is added then
 * is there the next time. */
#include <sys/stat.h>
#include <unistd.h>

#include "bench/suite/plan.h"
#include "bench/suite/progress.h"
#include "bench/suite/run.h"
#include "tests/support/temporary_file.h"
#include "tests/support/test.h"
#include "tests/support/writing.h"

#define KEY     UINT64_C(0x1234567890abcdef)
#define RECORDS 4
#define MOST    4096

static const struct {
    uint64_t run;
    const char *payload;
} written[RECORDS] = {{7, "seven"}, {0, ""}, {UINT64_MAX, "a longer payload of a run"}, {8, "x"}};

struct taken {
    size_t count;
    bool wrong; /* a record that was not written, or not at this place */
};

static bool take(void *argument, uint64_t run, const void *payload, size_t bytes)
{
    struct taken *taken = argument;
    size_t at = taken->count++;
    if (at >= RECORDS || run != written[at].run || bytes != strlen(written[at].payload) ||
        memcmp(payload, written[at].payload, bytes) != 0)
        taken->wrong = true;
    return true;
}

static enum ar_status open_journal(struct journal *journal, const char *path, struct taken *taken,
                                   struct ar_error *error)
{
    *taken = (struct taken){0};
    return journal_open(journal, path, KEY, take, taken, error);
}

static void add_from(struct journal *journal, size_t first)
{
    for (size_t i = first; i < RECORDS; i++)
        assert_ok(journal_add(journal, written[i].run, written[i].payload,
                              strlen(written[i].payload), &test_error));
}

static size_t read_file(const char *path, char *bytes)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t count = fread(bytes, 1, MOST, file);
    fclose(file);
    return count;
}

static void write_file(const char *path, const char *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    fclose(file);
}

/* A whole journal; returns its bytes. */
static size_t make(const char *path, char *bytes)
{
    struct journal journal;
    struct taken taken;
    assert_ok(open_journal(&journal, path, &taken, &test_error));
    add_from(&journal, 0);
    journal_close(&journal, false);
    return read_file(path, bytes);
}

/* A damaged journal goes on from its first records, to the bytes of the whole one; or it is refused
 * and stays as it is. Returns the records that were read, RECORDS + 1 if it is refused. */
static size_t go_on(const char *path, const char *damaged, size_t count, const char *whole,
                    size_t whole_count)
{
    char after[MOST];
    struct journal journal;
    struct taken taken;
    write_file(path, damaged, count);
    enum ar_status status = open_journal(&journal, path, &taken, &test_error);
    if (status) {
        assert_int_equal(status, AR_INVALID);
        assert_true(strstr(test_error.text, "is the journal of another sweep or suite") ||
                    strstr(test_error.text, "is no journal, and stays as it is"));
        assert_int_equal(read_file(path, after), count);
        assert_memory_equal(after, damaged, count);
        return RECORDS + 1;
    }
    assert_false(taken.wrong);
    add_from(&journal, taken.count);
    journal_close(&journal, false);
    assert_int_equal(read_file(path, after), whole_count);
    assert_memory_equal(after, whole, whole_count);
    return taken.count;
}

TEST(a_cut_off_journal_goes_on)
{
    char whole[MOST];
    struct temporary_file file = temporary_file("");
    size_t count = make(file.path, whole), before = 0;
    for (size_t cut = 0; cut <= count; cut++) {
        size_t records = go_on(file.path, whole, cut, whole, count);
        assert_true(records <= RECORDS && records >= before);
        before = records;
    }
    assert_int_equal(before, RECORDS);
    unlink(file.path);
}

TEST(a_changed_byte_is_never_a_result)
{
    char whole[MOST], damaged[MOST];
    struct temporary_file file = temporary_file("");
    size_t count = make(file.path, whole), refused = 0;
    for (size_t at = 0; at < count; at++) {
        for (int bit = 0; bit < 9; bit++) { /* each bit, and all of them */
            memcpy(damaged, whole, count);
            damaged[at] ^= (char)(bit < 8 ? 1 << bit : 0xff);
            size_t records = go_on(file.path, damaged, count, whole, count);
            assert_true(records != RECORDS);
            refused += records > RECORDS;
            assert_int_equal(records > RECORDS, at < 16); /* its head */
        }
    }
    assert_int_equal(refused, 16 * 9);
    unlink(file.path);
}

/* More bytes than there are, and none at all. */
TEST(what_follows_the_records_is_cut_off)
{
    char whole[MOST], damaged[MOST];
    struct temporary_file file = temporary_file("");
    size_t count = make(file.path, whole);
    memcpy(damaged, whole, count);
    memset(damaged + count, 0, 100);
    assert_int_equal(go_on(file.path, damaged, count + 100, whole, count), RECORDS);
    memset(damaged + count, 0xff, 100);
    assert_int_equal(go_on(file.path, damaged, count + 100, whole, count), RECORDS);
    unlink(file.path);
}

struct order {
    uint64_t runs[8];
    size_t count;
};

static bool keep_run(void *argument, uint64_t run, const void *payload, size_t bytes)
{
    struct order *order = argument;
    order->runs[order->count++ % 8] = run;
    return true;
}

/* A sweep begins with its longest workloads, and those of one length in their order: an interrupted
 * one has them in its journal. */
TEST(the_longest_runs_come_first)
{
    static const uint64_t wanted[] = {1, 3, 2, 0};
    static const char *const traces[] = {"a,0,8\n", "a,0,8\na,1,8\nf,1\n", "a,0,8\nf,0\n",
                                         "a,0,8\nf,0\na,1,8\n"};
    struct temporary_file files[4], ini, file = temporary_file("");
    struct writing text = {"[policies]\nnull\n[devices]\nsim\n[workloads]\n"};
    for (size_t i = 0; i < 4; i++) {
        struct writing trace = {"# allocrig-trace 1\n"};
        writing_add(&trace, "%s", traces[i]);
        files[i] = temporary_file(trace.text);
        writing_add(&text, "%s\n", files[i].path);
    }
    ini = temporary_file(text.text);
    char bytes[MOST];
    uint64_t key;
    struct suite suite = SUITE_DEFAULTS;
    struct plan plan;
    struct journal journal;
    struct order order = {.count = 0};
    bool opened;
    assert_ok(suite_read(&suite, ini.path, &test_error));
    assert_ok(plan_make(&plan, &suite, &test_error));
    struct run_record *records = calloc(plan.run_count, sizeof *records);
    assert_non_null(records);
    assert_ok(
        matrix_run_journal(&plan, 1, true, file.path, &journal, &opened, records, &test_error));
    journal_close(&journal, false);
    (void)read_file(file.path, bytes);
    memcpy(&key, bytes + 8, sizeof key);
    assert_ok(journal_open(&journal, file.path, key, keep_run, &order, &test_error));
    journal_close(&journal, false);
    assert_int_equal(order.count, 4);
    assert_memory_equal(order.runs, wanted, sizeof wanted);
    free(records);
    plan_close(&plan);
    suite_close(&suite);
    for (size_t i = 0; i < 4; i++)
        unlink(files[i].path);
    unlink(ini.path);
    unlink(file.path);
}
