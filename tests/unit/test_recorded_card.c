/* The card of a recording: free bytes at a failure, the recorded total, the recorded name, none;
 * and the sentence of each. */
#include <unistd.h>

#include "bench/report/pages.h"
#include "sim/experiment/recorded_card.h"
#include "tests/support/temporary_file.h"
#include "tests/support/test.h"
#include "tests/support/writing.h"
#include "workloads/workload.h"

#define HEAD "# allocrig-trace 1\n"

static struct recorded_card find(const char *text, const char *device)
{
    struct temporary_file file = temporary_file(text);
    struct trace_source *source;
    struct recorded_card card;
    struct ar_spec spec;
    assert_ok(workload_open(file.path, &source, &test_error));
    assert_ok(ar_spec_parse(device, &spec, &test_error));
    assert_ok(recorded_card_find(source, &spec, &card, &test_error));
    ar_spec_close(&spec);
    trace_close(source);
    unlink(file.path);
    return card;
}

/* 40 MiB reserved, 8 outside, 6 free: the request for 16 failed on 54. */
#define FAILED                                                                                     \
    HEAD "!,segment_alloc,0,52428800\n!,segment_free,0,10485760\no,8388608\na,0,31457280\n"        \
         "p,1,16777216\n!,oom,6291456\nr,1\n"

TEST(the_driver_comes_first)
{
    struct recorded_card card = find(FAILED, "sim");
    assert_int_equal(card.source, RECORDED_CARD_DRIVER);
    assert_int_equal(card.capacity_bytes, 54 * AR_MIB);
    assert_int_equal(card.event, 4);
    assert_true(card.full);
    assert_null(card.profile);
}

/* Free bytes for the request and more: the card was not the reason. */
TEST(a_card_that_was_not_full)
{
    struct recorded_card card =
        find(HEAD "!,segment_alloc,0,52428800\na,0,31457280\np,1,16777216\n!,oom,629145600\nr,1\n",
             "sim");
    assert_int_equal(card.source, RECORDED_CARD_DRIVER);
    assert_int_equal(card.capacity_bytes, 650 * AR_MIB);
    assert_false(card.full);
}

TEST(the_last_failure_counts)
{
    struct recorded_card card =
        find(FAILED "!,segment_alloc,0,2097152\np,2,16777216\n!,oom,2097152\nr,2\n", "sim");
    assert_int_equal(card.capacity_bytes, (42 + 8 + 2) * AR_MIB);
    assert_int_equal(card.event, 8);
}

TEST(without_reserved_bytes_it_is_not_known)
{
    struct recorded_card card = find(HEAD "p,0,16777216\n!,oom,6291456\nr,0\n", "sim");
    assert_int_equal(card.source, RECORDED_CARD_UNKNOWN);
    card = find(HEAD "!,segment_alloc,0,52428800\np,0,16777216\n!,oom\nr,0\n", "sim");
    assert_int_equal(card.source, RECORDED_CARD_UNKNOWN);
}

TEST(total_and_name)
{
    struct recorded_card card = find(HEAD "# capacity: 25769803776\na,0,5\n", "sim:seed=2");
    assert_int_equal(card.source, RECORDED_CARD_TOTAL);
    assert_int_equal(card.capacity_bytes, 24 * AR_GIB - (85017493504 - 84460699648));
    assert_null(card.profile);
    card = find(HEAD "# capacity: 150109945856\n# card: NVIDIA H200\na,0,5\n", "sim");
    assert_int_equal(card.source, RECORDED_CARD_TOTAL);
    assert_int_equal(card.capacity_bytes, 150109945856 - (150109880320 - 149552103424));
    assert_string_equal(card.profile, "h200");
    card = find(HEAD "# capacity: 1MiB\na,0,5\n", "sim"); /* no card of today */
    assert_int_equal(card.capacity_bytes, AR_MIB);
    card = find(HEAD "# card: NVIDIA L40S\na,0,5\n", "sim");
    assert_int_equal(card.source, RECORDED_CARD_NAME);
    assert_int_equal(card.capacity_bytes, 0);
    assert_string_equal(card.profile, "l40s");
    card = find(HEAD "# card: Quadro 6000\na,0,5\n", "sim");
    assert_int_equal(card.source, RECORDED_CARD_UNKNOWN);
    card = find(HEAD "a,0,5\n", "sim");
    assert_int_equal(card.source, RECORDED_CARD_UNKNOWN);
}

/* The driver takes 352 bytes for each of 58 x 1536 threads of an L4 and 64 MiB: 94 MiB in pages. */
#define DRIVER "!,driver,local,1024\n!,driver,took,67108864\n!,driver,local,1376\na,0,5\n"
#define USABLE (23026728960 - 94 * AR_MIB) /* of an L4 */

TEST(what_the_driver_takes_is_not_the_programs)
{
    static const struct {
        const char *text, *device;
        enum recorded_card_source source;
        uint64_t capacity_bytes, driver_bytes;
    } cases[] = {
        {HEAD "# card: NVIDIA L4\n" DRIVER, "sim", RECORDED_CARD_NAME, USABLE, 94 * AR_MIB},
        {HEAD "# card: NVIDIA H200\n" DRIVER, "sim:profile=l4", RECORDED_CARD_ASKED, USABLE,
         94 * AR_MIB},
        {HEAD "# card: NVIDIA L4\n# capacity: 23583784960\n" DRIVER, "sim", RECORDED_CARD_TOTAL,
         USABLE, 94 * AR_MIB},
        {HEAD "# card: NVIDIA L4\n" DRIVER, "sim:profile=l4,capacity=1GiB", RECORDED_CARD_ASKED, 0,
         0},
        {HEAD "# card: NVIDIA L4\n# limit: 1073741824\n" DRIVER, "sim", RECORDED_CARD_LIMIT, AR_GIB,
         0},
        {HEAD "# capacity: 1MiB\n" DRIVER, "sim", RECORDED_CARD_TOTAL, AR_MIB, 0},
    };
    for (size_t i = 0; i < AR_COUNT(cases); i++) {
        struct recorded_card card = find(cases[i].text, cases[i].device);
        assert_int_equal(card.source, cases[i].source);
        assert_int_equal(card.capacity_bytes, cases[i].capacity_bytes);
        assert_int_equal(card.driver_bytes, cases[i].driver_bytes);
    }
}

TEST(a_limit_is_what_the_program_had)
{
    struct recorded_card card =
        find(HEAD "# limit: 5368709120\n# card: NVIDIA H100 80GB HBM3\n!,segment,0,52428800,0\n"
                  "a,0,31457280\np,1,16777216\n!,oom,6291456\nr,1\n",
             "sim");
    assert_int_equal(card.source, RECORDED_CARD_LIMIT);
    assert_int_equal(card.capacity_bytes, 5 * AR_GIB);
    assert_string_equal(card.profile, "h100");
}

TEST(what_is_asked_is_the_card)
{
    static const char *const specs[] = {"sim:capacity=1GiB", "sim:profile=h200"};
    for (size_t i = 0; i < 2; i++) {
        struct recorded_card card = find(FAILED, specs[i]);
        assert_int_equal(card.source, RECORDED_CARD_ASKED);
        assert_null(card.profile);
    }
}

TEST(each_card_has_its_sentence)
{
    EACH_ROW (row, 3) {
        struct recorded_card card = {.event = 7, .full = strcmp(row.field[0], "driver, full") == 0};
        struct capture capture;
        while (strncmp(row.field[0], card_source_name(card.source),
                       strlen(card_source_name(card.source))) != 0)
            card.source++;
        snprintf(card.name, sizeof card.name, "%s", row.field[1]);
        card_sentence_print(capture_begin(&capture), &card, "h100");
        FREED char *text = capture_end(&capture);
        for (char *at = text; (at = strchr(at, '\n')) != NULL; at++)
            *at = ' '; /* where it was broken to fit */
        for (char *at; (at = strstr(text, "  ")) != NULL;)
            memmove(at, at + 1, strlen(at));
        if (text[0])
            text[strlen(text) - 1] = '\0';
        assert_string_equal(text, row.field[2]);
    }
}
