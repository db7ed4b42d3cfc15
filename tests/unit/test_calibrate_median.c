/* One profile out of several calibrations: medians of odd and even numbers, what only some state,
 * rests by their place, the header, and what is refused. */
#include "bench/calibrate/calibrate.h"
#include "tests/support/test.h"
#include "tests/support/writing.h"

#define MOST 5
#define FORM "page_bytes: 64", "granule_bytes: 16"

/* Of one card, with these lines beside; a later line takes the place of an earlier one. */
static struct calibration given(const char *path, const char *const *lines)
{
    const char *all[64] = {"# allocrig-profile 1", "name: a",           "card: A card",
                           "total_bytes: 100000",  "usable_bytes: 100", FORM};
    size_t count = 7;
    struct calibration out = {.path = path};
    for (; *lines; lines++)
        all[count++] = *lines;
    enum ar_status status = sim_profile_read(all, path, &out.profile, &test_error);
    if (status)
        print_error("%s\n", test_error.text);
    assert_int_equal(status, AR_OK);
    return out;
}

#define GIVEN(path, ...) given(path, (const char *const[]){__VA_ARGS__, NULL})

static struct median made(const struct calibration *from, size_t count)
{
    struct median out;
    enum ar_status status = median_of(from, count, "new", "1.2.3", &out, &test_error);
    if (status)
        print_error("%s\n", test_error.text);
    assert_int_equal(status, AR_OK);
    return out;
}

static void refused(const struct calibration *from, size_t count, const char *words)
{
    struct median out;
    struct ar_error error = {""};
    assert_int_equal(median_of(from, count, "new", "1.2.3", &out, &error), AR_INVALID);
    if (!strstr(error.text, words))
        print_error("%s\n", error.text);
    assert_non_null(strstr(error.text, words));
}

static void assert_curve(const struct sim_curve *curve, uint32_t count, const uint64_t (*rows)[2])
{
    assert_int_equal(curve->count, count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(curve->bytes[i], rows[i][0]);
        assert_int_equal(curve->ns[i], rows[i][1]);
    }
}

TEST(the_middle_one_of_an_odd_number)
{
    const struct calibration from[] = {
        GIVEN("a", "cost: create 64 900", "busy_cost: create 64 3", "context_bytes: 7"),
        GIVEN("b", "cost: create 64 100", "busy_cost: create 64 1", "context_bytes: 9"),
        GIVEN("c", "cost: create 64 200", "busy_cost: create 64 2", "context_bytes: 8",
              "usable_bytes: 90"),
    };
    struct median out = made(from, 3);
    assert_curve(&out.profile.costs[SIM_COST_create], 1, (const uint64_t[][2]){{64, 200}});
    assert_curve(&out.profile.busy_costs[SIM_COST_create], 1, (const uint64_t[][2]){{64, 2}});
    assert_int_equal(out.profile.context_bytes, 8);
    assert_int_equal(out.profile.usable_bytes, 100);
    assert_int_equal(out.profile.page_bytes, 64);
    assert_int_equal(out.profile.granule_bytes, 16);
}

TEST(the_mean_of_the_middle_two_of_an_even_number)
{
    const struct calibration from[] = {
        GIVEN("a", "cost: create 64 1000", "cost: map 64 10"),
        GIVEN("b", "cost: create 64 1", "cost: map 64 13"),
        GIVEN("c", "cost: create 64 30", "cost: map 64 12"),
        GIVEN("d", "cost: create 64 20", "cost: map 64 11"),
    };
    struct median out = made(from, 4);
    assert_curve(&out.profile.costs[SIM_COST_create], 1, (const uint64_t[][2]){{64, 25}});
    /* 11.5: a half goes upward */
    assert_curve(&out.profile.costs[SIM_COST_map], 1, (const uint64_t[][2]){{64, 12}});
}

TEST(what_only_some_state_is_the_median_of_those)
{
    const struct calibration from[] = {
        GIVEN("a", "cost: create 64 10", "cost: create 256 50", "cleaning_bytes_per_us: 30"),
        GIVEN("b", "cost: create 64 20", "cost: create 128 7", "busy_percent: create 300",
              "rest_again_percent: create 20", "rest_again_percent: map 9", "rest_cost: create 9 1",
              "rest_cost: map 9 1"),
        GIVEN("c", "cost: create 64 0", "cost: create 256 60", "cost: event 1 5",
              "cleaning_bytes_per_us: 0", "cleaning_wait_bytes: alloc 640",
              "rest_again_percent: create 31", "rest_again_percent: map 0",
              "rest_cost: create 9 1"),
    };
    struct median out = made(from, 3);
    /* Sizes rise, also where no single one has them all; in a table 0 is a figure. */
    assert_curve(&out.profile.costs[SIM_COST_create], 3,
                 (const uint64_t[][2]){{64, 10}, {128, 7}, {256, 55}});
    assert_curve(&out.profile.costs[SIM_COST_event], 1, (const uint64_t[][2]){{1, 5}});
    assert_int_equal(out.profile.costs[SIM_COST_map].count, 0);
    assert_int_equal(out.profile.cleaning_bytes_per_us, 30);
    assert_int_equal(out.profile.busy_percent[SIM_COST_create], 300);
    assert_int_equal(out.profile.cleaning_wait_bytes[SIM_COST_alloc], 640);
    assert_int_equal(out.profile.rest_again_percent[SIM_COST_create], 26); /* a half goes upward */
    assert_int_equal(out.profile.rest_again_percent[SIM_COST_map], 9);
    assert_int_equal(out.profile.rest_again_percent[SIM_COST_access], 0);
}

TEST(rests_are_matched_by_their_place)
{
    const struct calibration from[] = {
        GIVEN("a", "rest_cost: map 10 0", "rest_cost: map 100 5", "rest_cost: map 1000 50"),
        GIVEN("b", "rest_cost: map 10 0", "rest_cost: map 120 9", "rest_cost: map 990 20"),
        GIVEN("c", "rest_cost: map 10 0", "rest_cost: map 101 8", "rest_cost: map 1100 30"),
        GIVEN("d", "cost: map 64 1"),
    };
    struct median out = made(from, 4);
    assert_curve(&out.profile.rest_costs[SIM_COST_map], 3,
                 (const uint64_t[][2]){{10, 0}, {101, 8}, {1000, 30}});
    assert_int_equal(out.rests_stated[SIM_COST_map], 3);
    assert_int_equal(out.rests_taken[SIM_COST_map], 3);
}

TEST(a_ladder_that_lost_a_step_is_left_out)
{
    const struct calibration from[] = {
        GIVEN("a", "rest_cost: map 10 0", "rest_cost: map 100 5", "rest_cost: map 1000 50"),
        GIVEN("b", "rest_cost: map 10 0", "rest_cost: map 990 20"),
        GIVEN("c", "rest_cost: map 10 0", "rest_cost: map 103 8", "rest_cost: map 1100 30"),
    };
    struct median out = made(from, 3);
    assert_curve(&out.profile.rest_costs[SIM_COST_map], 3,
                 (const uint64_t[][2]){{10, 0}, {102, 7}, {1050, 40}});
    assert_int_equal(out.rests_stated[SIM_COST_map], 3);
    assert_int_equal(out.rests_taken[SIM_COST_map], 2);
}

TEST(one_twice_is_itself)
{
    FREED struct calibration *from;
    const char *const paths[] = {"sim/profiles/h100-rested.profile",
                                 "sim/profiles/h100-rested.profile"};
    assert_ok(median_load(paths, 2, &from, &test_error));
    struct median out = made(from, 2);
    struct sim_profile expected = from[0].profile;
    memcpy(expected.name, out.profile.name, sizeof expected.name);
    memcpy(expected.source, out.profile.source, sizeof expected.source);
    assert_memory_equal(&out.profile, &expected, sizeof expected);
}

/* Two machines, one of which takes twice as long for everything: the same card. */
TEST(all_are_brought_to_one_host)
{
    struct calibration from[] = {
        GIVEN("a", "host_clock_ps: 30000", "cost: create 64 100", "busy_cost: create 64 110",
              "rest_cost: create 10 0", "rest_cost: create 20 50", "kernel_least_ns: 1800",
              "cost: request 1 100", "cost: pool_first 1 1000", "cost: product_first 1 7000"),
        GIVEN("b", "host_clock_ps: 60000", "cost: create 64 200", "busy_cost: create 64 220",
              "rest_cost: create 10 0", "rest_cost: create 20 100", "kernel_least_ns: 1900",
              "cost: request 1 200", "cost: pool_first 1 1000", "cost: product_first 1 7000"),
    };
    assert_ok(median_one_host(from, 2, 0, &test_error));
    struct median out = made(from, 2);
    assert_int_equal(out.profile.host_clock_ps, 45000);
    assert_curve(&out.profile.costs[SIM_COST_create], 1, (const uint64_t[][2]){{64, 150}});
    assert_curve(&out.profile.busy_costs[SIM_COST_create], 1, (const uint64_t[][2]){{64, 165}});
    assert_curve(&out.profile.rest_costs[SIM_COST_create], 2,
                 (const uint64_t[][2]){{10, 0}, {20, 75}});
    assert_curve(&out.profile.costs[SIM_COST_request], 1, (const uint64_t[][2]){{1, 150}});
    assert_int_equal(out.profile.kernel_least_ns, 1850); /* the card's */
    assert_curve(&out.profile.costs[SIM_COST_pool_first], 1, (const uint64_t[][2]){{1, 1000}});
    assert_curve(&out.profile.costs[SIM_COST_product_first], 1, (const uint64_t[][2]){{1, 7000}});
    assert_ok(median_one_host(from, 2, 90000, &test_error));
    out = made(from, 2);
    assert_int_equal(out.profile.host_clock_ps, 90000);
    assert_curve(&out.profile.costs[SIM_COST_create], 1, (const uint64_t[][2]){{64, 300}});
}

/* One that says nothing of its host leaves all as they are. */
/* Rows of kernel ops are medians as others are, and are not brought to a host: they are the
 * card's. */
TEST(kernel_ops_are_the_cards)
{
    struct calibration from[] = {
        GIVEN("a", "host_clock_ps: 30000", "work: set 64 100", "work: set 4096 900"),
        GIVEN("b", "host_clock_ps: 60000", "work: set 64 200", "work: matmul_f32 1000 7"),
        GIVEN("c", "host_clock_ps: 90000", "work: set 64 130", "work: set 4096 800"),
    };
    assert_ok(median_one_host(from, 3, 0, &test_error));
    struct median out = made(from, 3);
    assert_curve(&out.profile.kernel_ops[SIM_KERNEL_OP_set], 2,
                 (const uint64_t[][2]){{64, 130}, {4096, 850}});
    assert_curve(&out.profile.kernel_ops[SIM_KERNEL_OP_matmul_f32], 1,
                 (const uint64_t[][2]){{1000, 7}});
    assert_int_equal(out.profile.kernel_ops[SIM_KERNEL_OP_copy].count, 0);
}

TEST(a_host_that_is_not_known_moves_nothing)
{
    struct calibration from[] = {
        GIVEN("a", "host_clock_ps: 30000", "cost: create 64 100"),
        GIVEN("b", "cost: create 64 200"),
    };
    assert_ok(median_one_host(from, 2, 0, &test_error));
    struct median out = made(from, 2);
    assert_int_equal(out.profile.host_clock_ps, 0);
    assert_curve(&out.profile.costs[SIM_COST_create], 1, (const uint64_t[][2]){{64, 150}});
    assert_says(median_one_host(from, 2, 40000, &test_error), AR_INVALID,
                "b has no line host_clock_ps");
}

TEST(the_header_says_where_it_is_from)
{
    const struct calibration from[] = {
        GIVEN("x/a.profile", "driver: 580.1", "source: calibrate of 2026-11-28 12:58, and more"),
        GIVEN("b.profile", "driver: 570.2", "source: calibrate, 2026-11-29T01:02:03Z"),
        GIVEN("c\n.profile", "driver: 580.1", "source: 2026-11-30", "hypervisor: KVM"),
        GIVEN("d.profile", "usable_bytes: 100"),
    };
    struct median out = made(from, 4);
    assert_string_equal(out.profile.name, "new");
    assert_string_equal(out.profile.card, "A card");
    assert_string_equal(out.profile.driver, "580.1, 570.2");
    assert_string_equal(out.profile.hypervisor, "KVM");
    assert_string_equal(out.profile.source,
                        "allocrig 1.2.3 calibrate: median of 4 calibrations: a.profile "
                        "(2026-11-28 12:58), b.profile (2026-11-29 01:02), c?.profile "
                        "(2026-11-30), d.profile (no date)");
}

TEST(a_long_row_ends_in_dots)
{
    struct calibration from[MOST];
    char lines[MOST][128];
    for (int i = 0; i < MOST; i++) {
        snprintf(lines[i], sizeof lines[i], "driver: %d%0100d", i, 0);
        from[i] = GIVEN("a-long-name-of-a-calibration-that-takes-room.profile", lines[i]);
    }
    struct median out = made(from, MOST);
    assert_int_equal(strlen(out.profile.driver), 101 + 2 + 101 + 5);
    assert_string_equal(out.profile.driver + 204, ", ...");
    assert_string_equal(out.profile.source + strlen(out.profile.source) - 5, ", ...");
}

TEST(what_is_written_reads_as_the_same)
{
    const struct calibration from[] = {
        GIVEN("a", "rest_cost: map 10 0", "rest_cost: map 100 5", "cost: map 64 3"),
        GIVEN("b", "rest_cost: map 10 0", "cost: map 128 2", "source: of b"),
    };
    struct median out = made(from, 2);
    struct capture capture;
    assert_ok(median_write(&out, from, 2, capture_begin(&capture), &test_error));
    FREED char *text = capture_end(&capture);
    assert_non_null(strstr(text,
                           "#   a: says no source\n#   b: of b\n"
                           "# Not brought to one host: not all of them state theirs "
                           "(host_clock_ps)\n# rest_cost of map is of 1 of the 2 that state it"));
    const char *lines[64];
    size_t count = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        lines[count++] = line;
    lines[count] = NULL;
    struct sim_profile again;
    assert_ok(sim_profile_read(lines, "again", &again, &test_error));
    assert_memory_equal(&again, &out.profile, sizeof again);
}

TEST(what_is_not_of_one_kind_is_refused)
{
    struct calibration from[] = {GIVEN("a.p", "cost: map 64 1"), GIVEN("b.p", "cost: map 64 1"),
                                 GIVEN("c.p", "cost: map 64 1")};
    refused(from, 1, "two or more");
    from[2] = GIVEN("c.p", "card: Another card");
    refused(from, 3, "a.p is of A card and c.p of Another card");
    from[2] = GIVEN("c.p", "page_bytes: 128");
    refused(from, 3, "page_bytes is 64 in a.p and 128 in c.p");
    from[2] = GIVEN("c.p", "granule_bytes: 32");
    refused(from, 3, "granule_bytes is 16 in a.p and 32 in c.p");
    from[2] = GIVEN("c.p", "first_address: 128");
    refused(from, 3, "first_address is 0 in a.p and 128 in c.p");
    from[2] = GIVEN("c.p", "waits: alloc free");
    refused(from, 3, "a.p and c.p do not say that the same calls wait");
    /* Near to the first one, but not to the other. */
    from[1] = GIVEN("b.p", "total_bytes: 100900");
    from[2] = GIVEN("c.p", "total_bytes: 99500");
    refused(from, 3, "total_bytes is 100900 in b.p and 99500 in c.p");
    from[2] = GIVEN("c.p", "total_bytes: 100200");
    assert_int_equal(made(from, 3).profile.total_bytes, 100200);
}

TEST(more_sizes_than_a_profile_holds_are_refused)
{
    struct calibration from[] = {GIVEN("a", "cost: map 64 1"), GIVEN("b", "cost: map 65 1")};
    for (uint64_t i = 0; i < SIM_COST_POINTS - 1; i++)
        assert_null(sim_curve_add(&from[0].profile.costs[SIM_COST_map], 100 + i, 1));
    refused(from, 2, "too many different sizes");
}
