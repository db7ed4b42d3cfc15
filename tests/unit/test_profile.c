/* Profiles as data: the written text of a profile reads as the same profile, wrong ones are
 * refused, and the built-in ones are whole. What they make the device do: tests/steps/profile. */
#include <unistd.h>

#include "sim/sim_device/profile.h"
#include "tests/support/temporary_file.h"
#include "tests/support/test.h"

#define HEAD                                                                                       \
    "# allocrig-profile 1\nname: mine\ntotal_bytes: 100000\nusable_bytes: 100000\n"                \
    "page_bytes: 64\ngranule_bytes: 16\n"

/* The rule by itself, at the ends of its range. */
TEST(what_is_added_is_the_greater)
{
    static struct sim_profile profile;
    const uint64_t most_ns = (UINT64_C(1) << 60) - 1;
    assert_null(sim_curve_add(&profile.rest_costs[SIM_COST_map], 10, 1000));
    assert_null(sim_curve_add(&profile.rest_costs[SIM_COST_map], 20, 1000));
    assert_int_equal(sim_profile_added(&profile, SIM_COST_map, 10, 5000), 0);
    profile.rest_again_percent[SIM_COST_map] = 33;
    assert_int_equal(sim_profile_added(&profile, SIM_COST_map, 10, 5000), 1650);
    assert_int_equal(sim_profile_added(&profile, SIM_COST_map, 15, 5000), 1650);
    assert_int_equal(sim_profile_added(&profile, SIM_COST_map, 15, 2000), 1000);
    assert_int_equal(sim_profile_added(&profile, SIM_COST_map, UINT64_MAX, 0), 1000);
    assert_int_equal(sim_profile_added(&profile, SIM_COST_map, 10, 3), 0);
    assert_int_equal(sim_profile_added(&profile, SIM_COST_create, 10, 5000), 0);
    profile.rest_again_percent[SIM_COST_map] = 100;
    assert_int_equal(sim_profile_added(&profile, SIM_COST_map, 10, most_ns), most_ns);
}

static void load(const char *path, struct sim_profile *out)
{
    assert_ok(sim_profile_load(path, out, &test_error));
}

TEST(a_written_profile_is_the_same)
{
    static const char *const texts[] = {
        HEAD "context_bytes: 500\nwaits: none\ncard: a: b\nhypervisor: one\ndriver: 1.2\n"
             "source: x\ncost: map 64 5\nbusy_cost: map 64 9\nbusy_cost: map 128 0\n"
             "rest_cost: map 10000 0\nrest_cost: map 300000 7000\n"
             "rest_again_percent: map 100\nrest_again_percent: alloc_shared 1\n"
             "rest_cost: alloc_shared 10 1\n"
             "rest_again_percent: free 0\n"
             "work: set 64 5\nwork: set 128 9\nwork: scatter_rows 1 1\n",
        HEAD "host_clock_ps: 37000\nkernel_least_ns: 1807\ncost: request 1 250\ncost: mark 1 2000\n"
             "waits: create free\ncost: free 1 9\nbusy_percent: free 150\ncleaning_wait_bytes: "
             "create 7\n",
        NULL,
    };
    for (int i = 0; i < 3; i++) {
        struct sim_profile first, second;
        struct temporary_file in = {"tests/support/card.profile"}, out = temporary_file("");
        if (texts[i])
            in = temporary_file(texts[i]);
        load(in.path, &first);
        FILE *file = fopen(out.path, "w");
        assert_non_null(file);
        sim_profile_write(&first, file);
        assert_int_equal(fclose(file), 0);
        load(out.path, &second);
        assert_memory_equal(&first, &second, sizeof first);
        unlink(out.path);
        if (texts[i])
            unlink(in.path);
    }
}

static enum ar_status load_text(const char *text, struct ar_error *error)
{
    struct temporary_file file = temporary_file(text);
    struct sim_profile profile;
    enum ar_status status = sim_profile_load(file.path, &profile, error);
    unlink(file.path);
    assert_int_equal(status, AR_FORMAT);
    return status;
}

TEST(wrong_lines_are_refused)
{
    cases_refused("profile", "wrong_lines_are_refused", load_text);
}

/* A profile that was computed may have numbers that no text of a profile can have. */
TEST(what_could_not_be_read_is_not_written)
{
    static struct sim_profile profile;
    struct ar_error error = {""};
    assert_int_equal(sim_profile_read(sim_profile_builtin("h100"), "h100", &profile, &error),
                     AR_OK);
    assert_int_equal(sim_profile_check(&profile, "it", &error), AR_OK);
    profile.busy_costs[SIM_COST_map].ns[2] = SIM_PROFILE_NUMBERS;
    assert_int_equal(sim_profile_check(&profile, "it", &error), AR_FORMAT);
    assert_string_equal(error.text, "it is not a usable profile: map: a size or cost is 2^60 or "
                                    "more");
    profile.busy_costs[SIM_COST_map].ns[2]--;
    assert_int_equal(sim_profile_check(&profile, "it", &error), AR_OK);
    profile.kernel_least_ns = SIM_PROFILE_NUMBERS;
    assert_int_equal(sim_profile_check(&profile, "it", &error), AR_FORMAT);
}

/* Every built-in profile is whole; the ones with the costs of another card have exactly these, and
 * say where their memory's size is from. */
TEST(built_in_profiles_are_whole)
{
    static struct sim_profile profile, base;
    const char *names[SIM_PROFILES_MOST];
    size_t count = sim_profile_names(names, SIM_PROFILES_MOST), others = 0;
    assert_true(count >= 14 && count < SIM_PROFILES_MOST);
    assert_ok(sim_profile_read(sim_profile_builtin("h100"), "h100", &base, &test_error));
    for (size_t i = 0; i < count; i++) {
        assert_ok(sim_profile_read(sim_profile_builtin(names[i]), names[i], &profile, &test_error));
        assert_string_equal(profile.name, names[i]);
        if (!profile.costs_of[0])
            continue;
        others++;
        assert_string_equal(profile.costs_of, "h100");
        assert_true(profile.memory[0]);
        assert_true(profile.usable_bytes < profile.total_bytes);
        assert_int_equal(profile.page_bytes, base.page_bytes);
        assert_memory_equal(profile.costs, base.costs, sizeof base.costs);
        assert_memory_equal(profile.busy_costs, base.busy_costs, sizeof base.busy_costs);
        assert_string_equal(sim_profile_of_card(profile.card), names[i]);
    }
    assert_true(others >= 10);
}

/* Names as drivers write them. */
TEST(cards_are_known_by_name)
{
    EACH_ROW (row, 1) {
        const char *found = sim_profile_of_card(row.field[0]);
        if ((found == NULL) != (row.field[1] == NULL))
            print_error("%s: %s\n", row.field[0], found ? found : "none");
        assert_int_equal(found == NULL, row.field[1] == NULL);
        if (found)
            assert_string_equal(found, row.field[1]);
    }
}
