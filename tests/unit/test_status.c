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

TEST(test_long_ones_are_cut)
{
    char input[2 * sizeof test_error.text];
    memset(input, '\n', sizeof input - 1);
    input[sizeof input - 1] = '\0';
    (void)ar_error_set(&test_error, AR_INVALID, "%s", input);
    assert_int_equal(strlen(test_error.text), (sizeof test_error.text - 1) / 4 * 4);
    (void)ar_error_prefix(&test_error, AR_INVALID, "%s", input);
    assert_true(strlen(test_error.text) < sizeof test_error.text);
    assert_null(strchr(test_error.text, '\n'));
}

TEST(test_characters)
{
    EACH_ROW (row, 2)
        assert_int_equal(ar_utf8_bytes(row.field[0]), cases_number(&row, 1));
}
