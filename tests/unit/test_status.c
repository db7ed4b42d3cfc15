/* Sentences of errors, and the escapes of quoted input. */
#include "allocators/base/utf8.h"
#include "tests/support/test.h"

TEST(test_escaped_once)
{
    struct ar_error error;
    assert_int_equal(ar_error_set(&error, AR_INVALID, "\"%s\" is wrong", "a\033[2J\nb\x7f\xff\xc3"),
                     AR_INVALID);
    assert_string_equal(error.text, "\"a\\x1b[2J\\x0ab\\x7f\\xff\\xc3\" is wrong");
    (void)ar_error_prefix(&error, AR_INVALID, "%s:%d",
                          "gr\xc3\xbc\xc3\x9f"
                          "e\t",
                          7);
    assert_string_equal(error.text, "gr\xc3\xbc\xc3\x9f"
                                    "e\\x09:7: \"a\\x1b[2J\\x0ab\\x7f\\xff\\xc3\" is wrong");
}

/* In the middle: the end of a sentence says what to do. */
TEST(test_long_ones_are_cut)
{
    static const char end[] = "\xc3\xbc: cannot be written; choose another place";
    char input[2 * sizeof test_error.text];
    memset(input, '\n', sizeof input - 1);
    input[sizeof input - 1] = '\0';
    for (int prefixes = 0; prefixes < 3; prefixes++) {
        if (prefixes == 0)
            (void)ar_error_set(&test_error, AR_INVALID, "%s%s", input, end);
        else
            (void)ar_error_prefix(&test_error, AR_INVALID, "%s", input);
        size_t length = strlen(test_error.text);
        assert_int_equal(length, sizeof test_error.text - 1);
        assert_string_equal(test_error.text + length - strlen(end), end);
        assert_int_equal(strncmp(test_error.text, "\\x0a\\x0a", 8), 0);
        assert_non_null(strstr(test_error.text, "..."));
    }
    for (size_t shift = 0; shift < 4; shift++) { /* never inside a character */
        for (size_t i = 0; i + 1 < sizeof input; i++)
            input[i] = "\xe2\x82\xac"[(i + shift) % 3];
        (void)ar_error_set(&test_error, AR_INVALID, "%.*s%s", (int)shift, "xxx",
                           input + (3 - shift % 3) % 3);
        for (const char *at = test_error.text; *at; at += ar_utf8_bytes(at))
            assert_true(ar_utf8_bytes(at) > 0);
    }
}

TEST(test_characters)
{
    EACH_ROW (row, 2)
        assert_int_equal(ar_utf8_bytes(row.field[0]), cases_number(&row, 1));
}
