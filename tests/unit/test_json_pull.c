/* The pull parser: tokens, passing over, places, bounds. */
#include "tests/support/test.h"
#include "tests/support/trace_rig.h"
#include "workloads/io/json_pull.h"

struct reading {
    struct trace_rig rig;
    struct trace_input *input;
    struct json_pull *pull;
    struct ar_error error;
};

static void begin(struct reading *reading, const char *text, size_t length)
{
    reading->error.text[0] = 0;
    reading->rig = trace_rig_open();
    trace_rig_write(reading->rig.path[0], text, length);
    assert_int_equal(trace_input_open(reading->rig.path[0], &reading->input, &reading->error), 0);
    assert_int_equal(json_pull_open(reading->input, &reading->pull, &reading->error), 0);
}

static void end(struct reading *reading)
{
    json_pull_close(reading->pull);
    trace_input_close(reading->input);
    trace_rig_close(&reading->rig);
}

/* All tokens as letters: { } [ ] k(text) s(text) n(text) t f z, $ at the end. */
static enum ar_status tokens(struct json_pull *pull, char *out, size_t room, struct ar_error *error)
{
    static const char letters[] = "${}[]ksntfz";
    struct json_token token;
    enum ar_status status;
    size_t used = 0;
    while (!(status = json_pull_next(pull, &token, error))) {
        assert_int_equal(strlen(token.text), token.length);
        bool has_text = token.kind >= JSON_KEY && token.kind <= JSON_NUMBER;
        used += (size_t)snprintf(out + used, room - used, has_text ? "%c(%s)" : "%c",
                                 letters[token.kind], token.text);
        if (token.kind == JSON_END)
            break;
    }
    return status;
}

static void expect(const char *json, const char *wanted)
{
    struct reading reading;
    char text[1024] = "";
    begin(&reading, json, strlen(json));
    if (tokens(reading.pull, text, sizeof text, &reading.error))
        fail_msg("%s", reading.error.text);
    assert_string_equal(text, wanted);
    end(&reading);
}

static void refused(const char *json, const char *words)
{
    struct reading reading;
    char text[1024] = "";
    begin(&reading, json, strlen(json));
    assert_int_equal(tokens(reading.pull, text, sizeof text, &reading.error), AR_FORMAT);
    if (!strstr(reading.error.text, words))
        fail_msg("%s\ndoes not say \"%s\"", reading.error.text, words);
    end(&reading);
}

TEST(test_tokens)
{
    EACH_ROW (row, 2)
        expect(row.field[0], row.field[1]);
}

TEST(test_escapes)
{
    EACH_ROW (row, 2)
        expect(row.field[0], row.field[1]);
    refused("[\"\\x\"]", "a backslash is followed by no escape");
    refused("[\"\\u12g4\"]", "not followed by four digits");
}

TEST(test_refused)
{
    EACH_ROW (row, 2)
        refused(row.field[0], row.field[1]);
}

TEST(test_bounds)
{
    enum { MANY = 1000000 };
    FREED char *text = malloc(MANY + 16);
    assert_non_null(text);
    struct reading reading;
    struct json_token token;
    memset(text, '[', MANY);
    begin(&reading, text, MANY);
    assert_int_equal(json_pull_skip(reading.pull, &reading.error), AR_FORMAT);
    assert_non_null(strstr(reading.error.text, "more than 256 brackets"));
    end(&reading);
    begin(&reading, text, MANY);
    enum ar_status status;
    while (!(status = json_pull_next(reading.pull, &token, &reading.error)))
        assert_int_equal(token.kind, JSON_ARRAY);
    assert_non_null(strstr(reading.error.text, "more than 256 brackets"));
    end(&reading);
    memset(text, 'x', MANY);
    text[0] = '"';
    text[MANY - 1] = '"';
    begin(&reading, text, MANY);
    assert_int_equal(json_pull_next(reading.pull, &token, &reading.error), 0);
    assert_int_equal(token.length, JSON_TEXT_LIMIT);
    assert_true(token.cut);
    assert_int_equal(json_pull_next(reading.pull, &token, &reading.error), 0);
    assert_int_equal(token.kind, JSON_END);
    end(&reading);
    memset(text, '7', MANY);
    begin(&reading, text, MANY);
    assert_int_equal(json_pull_next(reading.pull, &token, &reading.error), AR_FORMAT);
    assert_non_null(strstr(reading.error.text, "a number has more than 128 bytes"));
    end(&reading);
}

TEST(test_passing_over)
{
    static const char json[] =
        "{\"a\": {\"x\": [\"}\\\"]\", {\"y\": nan}]}, \"b\":\n\"s\\\\\", \"c\": -inf, "
        "\"d\": [1, 2, [3]], \"e\": 5}";
    struct reading reading;
    struct json_token token;
    begin(&reading, json, sizeof json - 1);
    assert_int_equal(json_pull_next(reading.pull, &token, &reading.error), 0);
    for (const char *key = "abcd"; *key; key++) {
        assert_int_equal(json_pull_next(reading.pull, &token, &reading.error), 0);
        assert_int_equal(token.text[0], *key);
        assert_int_equal(json_pull_skip(reading.pull, &reading.error), 0);
    }
    assert_int_equal(json_pull_line(reading.pull), 2);
    assert_int_equal(json_pull_next(reading.pull, &token, &reading.error), 0);
    assert_int_equal(json_pull_leave(reading.pull, &reading.error), 0);
    assert_int_equal(json_pull_next(reading.pull, &token, &reading.error), 0);
    assert_int_equal(token.kind, JSON_END);
    end(&reading);
    begin(&reading, "[[1,2", 5);
    assert_int_equal(json_pull_skip(reading.pull, &reading.error), AR_FORMAT);
    end(&reading);
    begin(&reading, "[[1,2}]", 7);
    assert_int_equal(json_pull_skip(reading.pull, &reading.error), AR_FORMAT);
    assert_non_null(strstr(reading.error.text, "closes what is not open"));
    end(&reading);
}

/* The tokens do not depend on the byte at which the window ends. */
TEST(test_windows)
{
    static const char tail[] = "{\"k\\u00e9y\":[12.5,\"a\\\\b\\ud83d\\ude00\",true]}]";
    static const char wanted[] = "{k(k\xc3\xa9y)[n(12.5)s(a\\b\xf0\x9f\x98\x80)t]}]$";
    enum { WINDOW = 1 << 16, ROOM = WINDOW + 64 };
    FREED char *text = malloc(ROOM);
    assert_non_null(text);
    for (size_t shift = 0; shift <= sizeof tail; shift++) {
        struct reading reading;
        char out[256] = "";
        size_t front = WINDOW - shift;
        memset(text, ' ', front);
        text[0] = '[';
        memcpy(text + front, tail, sizeof tail - 1);
        begin(&reading, text, front + sizeof tail - 1);
        assert_int_equal(tokens(reading.pull, out, sizeof out, &reading.error), 0);
        assert_string_equal(out + 1, wanted);
        end(&reading);
        begin(&reading, text, front + sizeof tail - 1);
        assert_int_equal(json_pull_skip(reading.pull, &reading.error), 0);
        end(&reading);
    }
}

TEST(test_numbers)
{
    static const struct {
        const char *text;
        int digits;
        int64_t wanted;
    } good[] = {
        {"0", 0, 0},
        {"-17", 0, -17},
        {"4955438359188.555", 3, 4955438359188555},
        {"4955438359188.5554", 3, 4955438359188555},
        {"4955438359188.5555", 3, 4955438359188556},
        {"1790857026000000.123", 3, 1790857026000000123},
        {"1.5e3", 0, 1500},
        {"1e-400", 3, 0},
        {"2.5", 0, 3},
        {"-2.5", 0, -3},
        {"0.0004", 3, 0},
        {"0x7f00", 0, 0x7f00},
        {"00000000000000000000000000000007", 0, 7},
        {"0.00000000000000000000000000001e30", 0, 10},
    };
    static const char *const bad[] = {"",
                                      "-",
                                      "x",
                                      "1x",
                                      "0x",
                                      "0x1g",
                                      "1e",
                                      "5.",
                                      "1e30",
                                      "9223372036854775808",
                                      "99999999999999999999999"};
    int64_t value;
    for (size_t i = 0; i < COUNT(good); i++) {
        const struct json_token token = {JSON_STRING, good[i].text, 0, false};
        if (!json_integer_of(&token, good[i].digits, &value) || value != good[i].wanted)
            fail_msg("%s is read as %lld", good[i].text, (long long)value);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        const struct json_token token = {JSON_STRING, bad[i], 0, false};
        if (json_integer_of(&token, 0, &value))
            fail_msg("%s is read as %lld", bad[i], (long long)value);
    }
}
