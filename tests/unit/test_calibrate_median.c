/* One profile out of several calibrations: medians of odd and even numbers, what only some state,
 * rests by their place, the header, one host, and what is refused. The rows are in
 * tests/unit/cases/calibrate_median. */
#include "bench/calibrate/calibrate.h"
#include "tests/support/test.h"
#include "tests/support/writing.h"

enum { MOST_FILES = 8, MOST_LINES = 64 };

struct given {
    struct calibration from[MOST_FILES];
    const char *lines[MOST_LINES]; /* of the last one */
    size_t count, line_count;
    uint64_t host_ps; /* to bring all to; UINT64_MAX: not asked for */
};

static void end_file(struct given *given)
{
    if (!given->count)
        return;
    struct calibration *last = &given->from[given->count - 1];
    given->lines[given->line_count] = NULL;
    assert_ok(sim_profile_read(given->lines, last->path, &last->profile, &test_error));
}

/* Of one card, with lines beside, a later one of which takes the place of an earlier one. */
static void begin_file(struct given *given, const char *path)
{
    static const char *const form[] = {
        "# allocrig-profile 1", "name: a",        "card: A card",     "total_bytes: 100000",
        "usable_bytes: 100",    "page_bytes: 64", "granule_bytes: 16"};
    end_file(given);
    assert_true(given->count < MOST_FILES);
    given->from[given->count++] = (struct calibration){.path = path};
    memcpy(given->lines, form, sizeof form);
    given->line_count = COUNT(form);
}

static struct given read_given(char *text)
{
    struct given given = {.host_ps = UINT64_MAX};
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        if (strncmp(line, "file: ", 6) == 0)
            begin_file(&given, line + 6);
        else if (strncmp(line, "host: ", 6) == 0)
            given.host_ps = strtoull(line + 6, NULL, 10);
        else
            given.lines[given.line_count++] = line;
    }
    end_file(&given);
    return given;
}

/* The profile as it is written, which reads as the same; or why there is none. */
static char *made(struct given *given)
{
    struct median out;
    struct capture capture;
    FILE *stream = capture_begin(&capture);
    enum ar_status status = AR_OK;
    if (given->host_ps != UINT64_MAX)
        status = median_one_host(given->from, given->count, given->host_ps, &test_error);
    if (!status)
        status = median_of(given->from, given->count, "new", "1.2.3", &out, &test_error);
    if (status)
        fprintf(stream, "%s: %s\n", ar_status_name(status), test_error.text);
    else
        assert_ok(median_write(&out, given->from, given->count, stream, &test_error));
    char *text = capture_end(&capture);
    if (status)
        return text;
    FREED char *copy = strdup(text);
    const char *lines[MOST_LINES] = {NULL};
    size_t count = 0;
    for (char *line = strtok(copy, "\n"); line; line = strtok(NULL, "\n"))
        lines[count++] = line;
    struct sim_profile again;
    assert_ok(sim_profile_read(lines, "again", &again, &test_error));
    assert_memory_equal(&again, &out.profile, sizeof again);
    return text;
}

TEST(medians)
{
    for (struct cases block = {0}; cases_block(&block, __FILE__, __func__);) {
        struct given given = read_given(block.field[0]);
        FREED char *text = made(&given);
        assert_string_equal(text, block.field[1]);
    }
}

TEST(one_twice_is_itself)
{
    FREED struct calibration *from;
    const char *const paths[] = {"sim/profiles/h100-rested.profile",
                                 "sim/profiles/h100-rested.profile"};
    struct median out;
    assert_ok(median_load(paths, 2, &from, &test_error));
    assert_ok(median_of(from, 2, "new", "1.2.3", &out, &test_error));
    struct sim_profile expected = from[0].profile;
    memcpy(expected.name, out.profile.name, sizeof expected.name);
    memcpy(expected.source, out.profile.source, sizeof expected.source);
    assert_memory_equal(&out.profile, &expected, sizeof expected);
}

TEST(more_sizes_than_a_profile_holds_are_refused)
{
    char text[] = "file: a\ncost: map 64 1\nfile: b\ncost: map 65 1\n";
    struct given given = read_given(text);
    struct median out;
    for (uint64_t i = 0; i < SIM_COST_POINTS - 1; i++)
        assert_null(sim_curve_add(&given.from[0].profile.costs[SIM_COST_map], 100 + i, 1));
    assert_says(median_of(given.from, 2, "new", "1.2.3", &out, &test_error), AR_INVALID,
                "too many different sizes");
}
