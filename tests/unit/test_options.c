/* Tables of options: every type, defaults, limits, and the message for each mistake. */
#include "allocators/options.h"
#include "tests/support/test.h"

struct values {
    uint64_t bytes, count, small;
    double fraction;
    bool flag;
    int choice;
    const char *text;
};

static const struct ar_option table[] = {
    {"limit", AR_OPTION_BYTES, offsetof(struct values, bytes), "1KiB", 0, 0, NULL, ""},
    {"steps", AR_OPTION_COUNT, offsetof(struct values, count), NULL, 0, 0, NULL, ""},
    {"layers", AR_OPTION_COUNT, offsetof(struct values, small), "2", 1, 64, NULL, ""},
    {"fraction", AR_OPTION_FRACTION, offsetof(struct values, fraction), "0.5", 0, 1, NULL, ""},
    {"lazy", AR_OPTION_BOOL, offsetof(struct values, flag), "no", 0, 0, NULL, ""},
    {"framework", AR_OPTION_CHOICE, offsetof(struct values, choice), "tf", 0, 0, "tf|jax", ""},
    {"conf", AR_OPTION_TEXT, offsetof(struct values, text), "x", 0, 0, NULL, ""},
    {0},
};

static enum ar_status read(const char *text, struct values *values, struct ar_error *error)
{
    struct ar_spec spec;
    memset(values, 0, sizeof *values);
    error->text[0] = '\0';
    enum ar_status status = ar_spec_parse(text, &spec, error);
    if (!status) {
        status = ar_options_read(table, &spec.links[0], "policy x", values, error);
        values->text = NULL; /* it dies with the spec */
        ar_spec_close(&spec);
    }
    return status;
}

TEST(defaults)
{
    struct values v;
    assert_ok(read("x", &v, &test_error));
    assert_int_equal(v.bytes, 1024);
    assert_int_equal(v.count, 0);
    assert_int_equal(v.small, 2);
    assert_true(v.fraction == 0.5);
    assert_false(v.flag);
    assert_int_equal(v.choice, 0);
}

TEST(given)
{
    struct values v;
    assert_ok(read("x:limit=1.5GiB,steps=18446744073709551615,layers=64,fraction=1e-1,"
                   "lazy=On,framework=jax",
                   &v, &test_error));
    assert_int_equal(v.bytes, UINT64_C(1610612736));
    assert_true(v.count == UINT64_MAX);
    assert_int_equal(v.small, 64);
    assert_true(v.fraction == 0.1);
    assert_true(v.flag);
    assert_int_equal(v.choice, 1);
    assert_ok(read("x:lazy", &v, &test_error));
    assert_true(v.flag);
    assert_ok(read("x:conf=", &v, &test_error));
}

TEST(mistakes)
{
    EACH_ROW (row, 2) {
        struct values v;
        struct ar_error error;
        assert_int_equal(read(row.field[0], &v, &error), AR_INVALID);
        if (!strstr(error.text, row.field[1]))
            fail_msg("\"%s\" gave: %s", row.field[0], error.text);
    }
}

TEST(no_options)
{
    static const struct ar_option none[] = {{0}};
    const struct ar_spec_pair pair = {.key = "a", .value = "1"};
    const struct ar_spec_link link = {.name = "x", .pairs = &pair, .pair_count = 1};
    int value;
    assert_says(ar_options_read(none, &link, "policy x", &value, &test_error), AR_INVALID,
                "it has none");
    assert_int_equal(ar_options_read(NULL, &link, "policy x", &value, &test_error), AR_INVALID);
}

TEST(nearest)
{
    static const char *const plural[] = {"entries"};
    static const char *const names[] = {"growth", "greedy", "first-fit", "best-fit", "bfc"};
    assert_string_equal(ar_nearest_name("grwoth", names, 5), "growth"); /* two letters swapped */
    assert_string_equal(ar_nearest_name("growht", names, 5), "growth");
    assert_string_equal(ar_nearest_name("fist-fit", names, 5), "first-fit");
    assert_string_equal(ar_nearest_name("best_fit", names, 5), "best-fit");
    assert_string_equal(ar_nearest_name("bcf", names, 5), "bfc");
    assert_string_equal(ar_nearest_name("gree", names, 5), "greedy");
    assert_string_equal(ar_nearest_name("entry", plural, 1), "entries");
    assert_null(ar_nearest_name("torch", names, 5));
    assert_null(ar_nearest_name("gr", names, 5)); /* too short to mean one of two */
    assert_null(ar_nearest_name("", names, 5));
    assert_null(
        ar_nearest_name("a-name-far-longer-than-any-that-a-policy-or-option-has", names, 5));
    assert_ptr_equal(ar_options_find(table, "lazy"), &table[4]);
    assert_null(ar_options_find(table, "laz"));
}
