/* The language of rules: values, and sentences that refuse a text. */
#include "allocators/base/rule.h"
#include "tests/support/test.h"

static const char *const names[] = {"a", "b", NULL};

TEST(rules_compute)
{
    static const struct {
        const char *text;
        int64_t value; /* with a = 7 and b = -3 */
    } cases[] = {
        {"a + b * 2", 1},
        {"(a + b) * 2", 8},
        {"a - b - 1", 9},
        {"-a / 2", -3},
        {"a / 0", 0},
        {"min(a, b) + max(a, 2MiB)", (INT64_C(2) << 20) - 3},
        {"a < b ? 1 : b <= -3 ? 2 : 3", 2},
        {"(a >= 7) + (a > 7) + (a < 8)", 2},
        {"8388607TiB * 8388607TiB", INT64_MAX},
        {"0 - 8388607TiB * 8388607TiB * 2 - a", INT64_MIN},
        {"a?b:1", -3},
    };
    const int64_t values[] = {7, -3};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct ar_rule rule;
        assert_ok(ar_rule_parse(cases[i].text, names, "rule x", &rule, &test_error));
        if (ar_rule_value(&rule, values) != cases[i].value)
            fail_msg("%s is %lld", cases[i].text, (long long)ar_rule_value(&rule, values));
    }
}

TEST(bad_rules_are_refused)
{
    EACH_ROW (row, 2) {
        struct ar_rule rule;
        struct ar_error error;
        assert_int_equal(ar_rule_parse(row.field[0], names, "rule x", &rule, &error), AR_INVALID);
        if (!strstr(error.text, row.field[1]) || strncmp(error.text, "rule x, ", 8))
            fail_msg("%s: %s", row.field[0], error.text);
    }
}
