/* Sizes and counts as text: valid and invalid texts, and printed sizes that parse to the same
 * number. */
#include "allocators/base/rng.h"
#include "tests/support/test.h"

TEST(reads)
{
    EACH_ROW (row, 2) {
        uint64_t bytes = 1;
        assert_ok(ar_size_parse(row.field[0], &bytes, &test_error));
        assert_true(bytes == cases_number(&row, 1));
    }
}

TEST(refuses)
{
    static const char *const cases[] = {
        "",     "-1",    "+1",   " 1",  "1 ",   "1 K",
        "K",    "1X",    "1Ki",  "1.5", "1.5B", "9223372036854775808",
        "8EiB", "1e400", "0x10", "nan", "1KiBs"};
    for (size_t i = 0; i < COUNT(cases); i++) {
        uint64_t bytes = 77;
        struct ar_error error = {""};
        if (ar_size_parse(cases[i], &bytes, &error) != AR_INVALID)
            fail_msg("\"%s\" was read", cases[i]);
        assert_int_equal(bytes, 77);
        assert_non_null(strstr(error.text, "is not a size"));
    }
}

TEST(counts)
{
    uint64_t count;
    assert_ok(ar_count_parse("18446744073709551615", &count, &test_error));
    assert_true(count == UINT64_MAX);
    static const char *const bad[] = {"", "-1", "1.0", "1K", " 1", "18446744073709551616", "a"};
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(ar_count_parse(bad[i], &count, &test_error), AR_INVALID);
}

TEST(prints)
{
    char text[32];
    assert_string_equal(ar_size_print(0, text, sizeof text), "0 B");
    assert_string_equal(ar_size_print(1023, text, sizeof text), "1023 B");
    assert_string_equal(ar_size_print(1536, text, sizeof text), "1.500 KiB");
    assert_string_equal(ar_size_print(3 * AR_GIB / 2, text, sizeof text), "1.500 GiB");
    assert_string_equal(ar_size_print(24 * AR_GIB, text, sizeof text), "24.00 GiB");
    assert_string_equal(ar_size_print(100 * AR_MIB, text, sizeof text), "100.0 MiB");
    assert_string_equal(ar_size_print_exact(1536 * AR_MIB, text, sizeof text), "1536MiB");
    assert_string_equal(ar_size_print_exact(1025, text, sizeof text), "1025");
}

/* A printed need is enough when it is copied. */
TEST(rounds_up)
{
    struct ar_rng rng = ar_rng_of(6);
    char text[32];
    assert_string_equal(ar_size_print(6176 * AR_MIB, text, sizeof text), "6.031 GiB");
    assert_string_equal(ar_size_print_up(6176 * AR_MIB, text, sizeof text), "6.032 GiB");
    assert_string_equal(ar_size_print_up(6 * AR_GIB, text, sizeof text), "6.000 GiB");
    assert_string_equal(ar_size_print_up(0, text, sizeof text), "0 B");
    for (int i = 0; i < 10000; i++) {
        uint64_t bytes = ar_rng_next(&rng), up = 0;
        bytes >>= 4 + ar_rng_below(&rng, 60);
        char *blank = strchr(ar_size_print_up(bytes, text, sizeof text), ' ');
        memmove(blank, blank + 1, strlen(blank));
        assert_ok(ar_size_parse(text, &up, &test_error));
        assert_true(up >= bytes && (double)up <= (double)bytes * 1.002 + 1);
    }
}

TEST(reads_back_what_it_writes)
{
    struct ar_rng rng = ar_rng_of(5);
    for (int i = 0; i < 100000; i++) {
        uint64_t bytes = ar_rng_next(&rng);
        bytes >>= 1 + ar_rng_below(&rng, 63);
        if (i % 2)
            bytes &= ~UINT64_C(0) << ar_rng_below(&rng, 40);
        uint64_t again = 0;
        char text[32];
        assert_int_equal(
            ar_size_parse(ar_size_print_exact(bytes, text, sizeof text), &again, &test_error),
            AR_OK);
        assert_true(again == bytes);
    }
}

TEST(rounds)
{
    assert_int_equal(ar_size_round_up(0, 256), 0);
    assert_int_equal(ar_size_round_up(1, 256), 256);
    assert_int_equal(ar_size_round_up(256, 256), 256);
    assert_int_equal(ar_size_round_up(5, 1), 5);
    assert_int_equal(ar_size_round_down(255, 256), 0);
    assert_int_equal(ar_size_round_down(513, 256), 512);
}
