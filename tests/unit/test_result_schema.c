/* results/schema.json against results as they are written. The validator knows the keywords that
 * the schema uses, and fails on one that it does not know: nothing in the schema goes unchecked. */
#include <jansson.h>
#include <regex.h>
#include <unistd.h>

#include "bench/report/result_writers.h"
#include "bench/suite/suite_run.h"
#include "tests/support/test.h"
#include "tests/support/writing.h"

#define SCHEMA "results/schema.json"

/* Where it was found and what is wrong; "" while all is well. */
struct verdict {
    char text[256];
};

static bool wrong(struct verdict *verdict, const char *where, const char *what)
{
    snprintf(verdict->text, sizeof verdict->text, "%s: %s", where, what);
    return false;
}

static bool has_type(const json_t *value, const char *type)
{
    return (strcmp(type, "object") == 0 && json_is_object(value)) ||
           (strcmp(type, "array") == 0 && json_is_array(value)) ||
           (strcmp(type, "string") == 0 && json_is_string(value)) ||
           (strcmp(type, "integer") == 0 && json_is_integer(value)) ||
           (strcmp(type, "number") == 0 && json_is_number(value)) ||
           (strcmp(type, "boolean") == 0 && json_is_boolean(value)) ||
           (strcmp(type, "null") == 0 && json_is_null(value));
}

static bool check_type(const json_t *value, json_t *types)
{
    size_t i;
    json_t *type;
    if (json_is_string(types))
        return has_type(value, json_string_value(types));
    json_array_foreach(types, i, type)
    {
        if (has_type(value, json_string_value(type)))
            return true;
    }
    return false;
}

static bool check_enum(json_t *value, json_t *choices)
{
    size_t i;
    json_t *choice;
    json_array_foreach(choices, i, choice)
    {
        if (json_equal(value, choice))
            return true;
    }
    return false;
}

static bool check_pattern(const json_t *value, json_t *pattern)
{
    regex_t regex;
    assert_int_equal(regcomp(&regex, json_string_value(pattern), REG_EXTENDED | REG_NOSUB), 0);
    bool matches = regexec(&regex, json_string_value(value), 0, NULL, 0) == 0;
    regfree(&regex);
    return matches;
}

static bool check(json_t *value, json_t *schema, const char *where, struct verdict *verdict);

static bool check_members(json_t *value, json_t *schema, const char *where, struct verdict *verdict)
{
    const char *key;
    json_t *member;
    json_t *properties = json_object_get(schema, "properties");
    bool closed = json_is_false(json_object_get(schema, "additionalProperties"));
    json_object_foreach(value, key, member)
    {
        char place[128];
        json_t *inner = json_object_get(properties, key);
        snprintf(place, sizeof place, "%.60s.%.60s", where, key);
        if (!inner && closed)
            return wrong(verdict, place, "is not in the schema");
        if (inner && !check(member, inner, place, verdict))
            return false;
    }
    return true;
}

/* The members that `properties` does not name, where a schema for them is given. */
static bool check_others(json_t *value, json_t *schema, json_t *rule, const char *where,
                         struct verdict *verdict)
{
    const char *key;
    json_t *member;
    json_t *properties = json_object_get(schema, "properties");
    if (!json_is_object(rule))
        return true; /* check_members has seen to it */
    json_object_foreach(value, key, member)
    {
        char place[128];
        snprintf(place, sizeof place, "%.60s.%.60s", where, key);
        if (!json_object_get(properties, key) && !check(member, rule, place, verdict))
            return false;
    }
    return true;
}

static bool check_required(const json_t *value, json_t *required, const char *where,
                           struct verdict *verdict)
{
    size_t i;
    json_t *name;
    json_array_foreach(required, i, name)
    {
        if (json_is_object(value) && !json_object_get(value, json_string_value(name)))
            return wrong(verdict, where, json_string_value(name));
    }
    return true;
}

static bool check_items(json_t *value, json_t *schema, const char *where, struct verdict *verdict)
{
    size_t i;
    json_t *item;
    json_array_foreach(value, i, item)
    {
        char place[128];
        snprintf(place, sizeof place, "%.100s[%zu]", where, i);
        if (!check(item, schema, place, verdict))
            return false;
    }
    return true;
}

static bool check_keyword(json_t *value, json_t *schema, const char *keyword, json_t *rule,
                          const char *where, struct verdict *verdict)
{
    static const char *const silent[] = {"$schema", "$id", "title", "description"};
    for (size_t i = 0; i < COUNT(silent); i++)
        if (strcmp(keyword, silent[i]) == 0)
            return true;
    if (strcmp(keyword, "type") == 0)
        return check_type(value, rule) || wrong(verdict, where, "has the wrong type");
    if (strcmp(keyword, "enum") == 0)
        return check_enum(value, rule) || wrong(verdict, where, "is none of those allowed");
    if (strcmp(keyword, "const") == 0)
        return json_equal(value, rule) || wrong(verdict, where, "is not what it must be");
    if (strcmp(keyword, "minimum") == 0)
        return !json_is_number(value) || json_number_value(value) >= json_number_value(rule) ||
               wrong(verdict, where, "is too small");
    if (strcmp(keyword, "pattern") == 0)
        return check_pattern(value, rule) || wrong(verdict, where, "has the wrong form");
    if (strcmp(keyword, "required") == 0)
        return check_required(value, rule, where, verdict);
    if (strcmp(keyword, "additionalProperties") == 0)
        return check_others(value, schema, rule, where, verdict);
    if (strcmp(keyword, "properties") == 0)
        return check_members(value, schema, where, verdict);
    if (strcmp(keyword, "items") == 0)
        return check_items(value, rule, where, verdict);
    return wrong(verdict, keyword, "is a keyword that this test does not know");
}

static bool check(json_t *value, json_t *schema, const char *where, struct verdict *verdict)
{
    const char *keyword;
    json_t *rule;
    json_object_foreach(schema, keyword, rule)
    {
        if (!check_keyword(value, schema, keyword, rule, where, verdict))
            return false;
    }
    return true;
}

static json_t *load(const char *path)
{
    json_error_t problem;
    json_t *value = json_load_file(path, JSON_REJECT_DUPLICATES, &problem);
    if (!value)
        fail_msg("%s:%d: %s", path, problem.line, problem.text);
    return value;
}

/* Runs the suite, which is closed by it; its result as JSON. */
static json_t *run_suite(struct suite *suite)
{
    char path[] = "/tmp/allocrig-schema-XXXXXX";
    struct environment environment;
    FILE *table = tmpfile();
    int file = mkstemp(path);
    assert_non_null(table);
    assert_true(file >= 0);
    environment_capture(&environment, 0, NULL, suite->seed);
    const struct suite_files files = {.path[SUITE_FILE_json] = path};
    assert_ok(suite_run(suite, &files, &environment, table, &test_error));
    suite_close(suite);
    fclose(table);
    close(file);
    json_t *result = load(path);
    remove(path);
    return result;
}

/* A result with every part: two policies, one that fails at this capacity, and a curve. */
static json_t *make_result(void)
{
    static const char *const settings[][2] = {
        {"name", "schema test"}, {"time", "yes"}, {"reps", "2"}};
    struct suite suite;
    suite_init(&suite);
    for (size_t i = 0; i < COUNT(settings); i++)
        assert_ok(suite_set(&suite, settings[i][0], settings[i][1], &test_error));
    assert_ok(suite_add_policy(&suite, "best-fit", &test_error));
    assert_ok(suite_add_policy(&suite, "growth", &test_error));
    assert_ok(text_list_add(&suite.workloads, "order_flip", &test_error));
    assert_ok(
        text_list_add(&suite.workloads, "workloads/data/side_streams.default.csv.gz", &test_error));
    assert_ok(text_list_add(&suite.devices, "sim:capacity=300MiB", &test_error));
    assert_ok(text_list_add(&suite.devices, "sim", &test_error));
    suite.ratios[suite.ratio_count++] = 2;
    return run_suite(&suite);
}

TEST(a_result_is_valid)
{
    struct verdict verdict = {""};
    json_t *schema = load(SCHEMA);
    json_t *result = make_result();
    bool valid = check(result, schema, "result", &verdict);
    assert_string_equal(verdict.text, "");
    assert_true(valid);
    /* Both outcomes must have been there to be checked. */
    size_t i;
    json_t *run;
    size_t passed = 0;
    json_t *runs = json_object_get(result, "runs");
    json_array_foreach(runs, i, run)
    {
        passed += json_is_true(json_object_get(json_object_get(run, "outcome"), "passed"));
    }
    assert_in_range(passed, 1, json_array_size(runs) - 1);
    /* Two of each: so many runs have statistics. */
    json_t *statistics = json_object_get(result, "statistics");
    assert_int_equal(2 * json_array_size(statistics), json_array_size(runs));
    assert_non_null(
        json_object_get(json_object_get(json_array_get(statistics, 0), "metrics"), "alloc_ns_p50"));
    json_decref(result);
    json_decref(schema);
}

/* A result of six replicates of two policies. */
static json_t *make_drawn_result(void)
{
    struct suite suite;
    suite_init(&suite);
    assert_ok(suite_set(&suite, "name", "draws", &test_error));
    suite.replicates = 6;
    assert_ok(suite_add_policy(&suite, "best-fit", &test_error));
    assert_ok(suite_add_policy(&suite, "growth", &test_error));
    assert_ok(text_list_add(&suite.workloads, "random:events=500,seed=7", &test_error));
    assert_ok(text_list_add(&suite.devices, "sim", &test_error));
    return run_suite(&suite);
}

TEST(a_result_of_draws_is_valid)
{
    struct verdict verdict = {""};
    json_t *schema = load(SCHEMA);
    json_t *result = make_drawn_result();
    (void)check(result, schema, "result", &verdict);
    assert_string_equal(verdict.text, "");
    json_t *draws = json_object_get(result, "draws");
    assert_int_equal(json_array_size(draws), 2);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(draws, 1), "passed")), 6);
    json_t *pairs = json_object_get(result, "draw_pairs");
    assert_int_equal(json_array_size(pairs), 1);
    json_t *pair = json_object_get(json_object_get(json_array_get(pairs, 0), "metrics"),
                                   "peak_physical_bytes");
    assert_int_equal(json_integer_value(json_object_get(pair, "pairs")), 6);
    json_t *ratio = json_object_get(pair, "ratio");
    assert_true(json_is_number(json_object_get(ratio, "low")));
    /* what the schema does not allow in them is refused */
    json_object_set_new(ratio, "low", json_string("1"));
    assert_false(check(result, schema, "result", &verdict));
    json_object_set_new(ratio, "low", json_null());
    assert_true(check(result, schema, "result", &verdict));
    json_object_del(pair, "difference");
    assert_false(check(result, schema, "result", &verdict));
    json_decref(result);
    json_decref(schema);
}

static json_t *first_run(json_t *result)
{
    return json_array_get(json_object_get(result, "runs"), 0);
}

static void spoil(json_t *result, int how)
{
    json_t *run = first_run(result);
    switch (how) {
    case 0:
        json_object_del(result, "context");
        break;
    case 1:
        json_object_set_new(result, "schema", json_string("allocrig.result/2"));
        break;
    case 2:
        json_object_set_new(run, "frees", json_string("sometimes"));
        break;
    case 3:
        json_object_set_new(run, "colour", json_string("red"));
        break;
    case 4:
        json_object_set_new(json_object_get(run, "metrics"), "overhead", json_string("1.5"));
        break;
    case 5:
        json_object_set_new(json_object_get(run, "workload"), "sha256", json_string("abc"));
        break;
    case 6:
        json_object_set_new(run, "repetition", json_integer(-1));
        break;
    case 8: {
        json_t *first = json_array_get(json_object_get(result, "statistics"), 0);
        json_t *one = json_object_get(json_object_get(first, "metrics"), "alloc_ns_p50");
        json_object_set_new(one, "median", json_string("1"));
        break;
    }
    case 7:
        json_object_del(json_object_get(run, "metrics"), "slowdown");
        break;
    default:
        fail();
    }
}

TEST(broken_results_are_refused)
{
    json_t *schema = load(SCHEMA);
    json_t *result = make_result();
    for (int how = 0; how < 9; how++) {
        struct verdict verdict = {""};
        json_t *copy = json_deep_copy(result);
        spoil(copy, how);
        if (check(copy, schema, "result", &verdict))
            fail_msg("a result spoiled in way %d was accepted", how);
        json_decref(copy);
    }
    json_decref(result);
    json_decref(schema);
}

TEST(the_schema_has_every_metric)
{
    json_t *schema = load(SCHEMA);
    json_t *run = json_object_get(
        json_object_get(json_object_get(json_object_get(schema, "properties"), "runs"), "items"),
        "properties");
    json_t *metrics = json_object_get(run, "metrics");
    json_t *required = json_object_get(metrics, "required");
    json_t *known = json_object_get(metrics, "properties");
    assert_int_equal(json_array_size(required), METRIC_FIRST_OPTIONAL);
    assert_int_equal(json_object_size(known), METRIC_COUNT);
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        const char *name = metric_info((enum metric)i)->name;
        if (i < METRIC_FIRST_OPTIONAL)
            assert_string_equal(json_string_value(json_array_get(required, i)), name);
        assert_non_null(json_object_get(known, name));
    }
    json_decref(schema);
}

/* What the driver does not say is null; a clock or a temperature of 0 is none of that. */
TEST(a_card_has_zeros_and_unknown_figures)
{
    const struct environment environment = {
        .build = build_info(),
        .card = {.present = true, .numa_node = -1, .before = {.temperature_c = 0, .power_mw = -1}}};
    struct capture capture;
    struct json_writer writer = {.stream = capture_begin(&capture)};
    json_begin_object(&writer, NULL);
    context_json_write(&writer, &environment);
    json_end_object(&writer);
    FREED char *text = capture_end(&capture);
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    const json_t *card = json_object_get(json_object_get(root, "context"), "card");
    const json_t *before = json_object_get(card, "before");
    assert_true(json_is_null(json_object_get(card, "numa_node")));
    assert_true(json_is_null(json_object_get(before, "power_mw")));
    assert_true(json_is_integer(json_object_get(before, "temperature_c")));
    json_decref(root);
}
