/* Profiles as data: busy curves, substitute kinds, additions for rests, calls that wait, launches;
 * and that the written text of a profile reads as the same profile. */
#include <unistd.h>

#include "sim/sim_device/profile.h"
#include "tests/support/sim.h"
#include "tests/support/temporary_file.h"
#include "tests/support/test.h"

#define PAGE UINT64_C(64)
#define HEAD                                                                                       \
    "# allocrig-profile 1\nname: mine\ntotal_bytes: 100000\nusable_bytes: 100000\n"                \
    "page_bytes: 64\ngranule_bytes: 16\n"

static struct ar_device *open_card(const char *text)
{
    struct temporary_file file = temporary_file(text);
    char spec[64];
    snprintf(spec, sizeof spec, "sim:profile=%s", file.path);
    struct ar_device *device = sim_test_open(spec);
    unlink(file.path);
    return device;
}

/* Host time that the device's clock has moved since the last time. */
static uint64_t passed(struct ar_device *device, uint64_t *before_ns)
{
    uint64_t ns = device->ops->now(device) - *before_ns;
    *before_ns += ns;
    return ns;
}

TEST(a_busy_card_has_its_own_curve)
{
    CLOSED(close_device)
    struct ar_device *device =
        open_card(HEAD "cost: create 64 100\ncost: create 1024 100\nbusy_percent: create 900\n"
                       "busy_cost: create 64 300\nbusy_cost: create 1024 1200\n"
                       "cost: destroy 64 10\nbusy_percent: destroy 300\n");
    uint64_t before_ns = 0, handle;
    assert_int_equal(ar_backing_create(device->backing, 64, &handle), AR_OK);
    assert_int_equal(passed(device, &before_ns), 100);
    device->ops->kernel(device, 0, 1000000);
    assert_int_equal(ar_backing_create(device->backing, 64, &handle), AR_OK);
    assert_int_equal(passed(device, &before_ns), 300);
    assert_int_equal(ar_backing_create(device->backing, 256, &handle), AR_OK);
    assert_int_equal(passed(device, &before_ns), 600); /* half-way in log-log */
    assert_int_equal(ar_backing_destroy(device->backing, handle), AR_OK);
    assert_int_equal(passed(device, &before_ns), 30);
}

/* Maps `count` pages in a row; access and unmap at once. */
static void run_of_pages(struct ar_device *device, uint64_t count, uint64_t *access_ns,
                         uint64_t *unmap_ns)
{
    struct ar_backing *backing = device->backing;
    uint64_t address, handle, before_ns = 0;
    assert_int_equal(ar_backing_reserve(backing, count * PAGE, &address), AR_OK);
    for (uint64_t i = 0; i < count; i++) {
        assert_int_equal(ar_backing_create(backing, PAGE, &handle), AR_OK);
        assert_int_equal(ar_backing_map(backing, address + i * PAGE, handle), AR_OK);
    }
    (void)passed(device, &before_ns);
    assert_int_equal(ar_backing_access(backing, address, count * PAGE), AR_OK);
    *access_ns = passed(device, &before_ns);
    assert_int_equal(ar_backing_unmap(backing, address, count * PAGE), AR_OK);
    *unmap_ns = passed(device, &before_ns);
}

TEST(what_is_not_given_is_stood_in_for)
{
    uint64_t access_ns, unmap_ns, before_ns = 0;
    CLOSED(close_device)
    struct ar_device *device = open_card(HEAD "cost: access 64 20\ncost: unmap 64 7\n"
                                              "cost: access_more 64 3\ncost: event 1 5\n");
    run_of_pages(device, 1, &access_ns, &unmap_ns);
    assert_int_equal(access_ns, 20);
    run_of_pages(device, 4, &access_ns, &unmap_ns);
    assert_int_equal(access_ns, 20 + 3 * 3);
    assert_int_equal(unmap_ns, 4 * 7);
    device->ops->kernel(device, 0, 1);
    (void)passed(device, &before_ns);
    struct ar_backing_ticket ticket = ar_backing_fence(device->backing, 0);
    assert_true(ar_backing_done(device->backing, ticket));
    assert_int_equal(passed(device, &before_ns), 10);
}

TEST(what_is_known_is_not_asked)
{
    CLOSED(close_device)
    struct ar_device *device = open_card(HEAD "cost: event 1 5\ncost: event_poll 1 2\n");
    const uint64_t *ns = device->counters.call_ns;
    struct ar_backing_ticket ticket = ar_backing_fence(device->backing, 0); /* of nothing */
    assert_int_equal(ns[AR_DEVICE_CALL_event], 0);
    device->ops->kernel(device, 0, 1000);
    ticket = ar_backing_fence(device->backing, 0);
    (void)ar_backing_fence(device->backing, 0); /* the same work */
    assert_int_equal(ns[AR_DEVICE_CALL_event], 5);
    assert_false(ar_backing_done(device->backing, ticket));
    assert_int_equal(ns[AR_DEVICE_CALL_event], 5 + 2);
    uint64_t before_ns = device->ops->now(device);
    ar_backing_wait(device->backing, ticket); /* asking is part of the wait */
    assert_int_equal(ns[AR_DEVICE_CALL_event], 5 + 2);
    assert_int_equal(device->counters.stall_ns, device->ops->now(device) - before_ns);
    assert_int_equal(device->ops->now(device), 1000);
    assert_true(ar_backing_done(device->backing, ticket));
    assert_int_equal(ns[AR_DEVICE_CALL_event], 5 + 2);
    assert_int_equal(device->counters.calls[AR_DEVICE_CALL_event], 6);
}

/* A block allocated after a rest, and freed; the time of the allocation. */
static uint64_t alloc_ns_after(struct ar_device *device, uint64_t rest_ns, uint64_t bytes)
{
    uint64_t before_ns = 0, address;
    device->ops->advance(device, rest_ns);
    (void)passed(device, &before_ns);
    address = sim_test_alloc(device, bytes);
    uint64_t ns = passed(device, &before_ns);
    sim_test_free(device, address);
    return ns;
}

TEST(a_rest_adds_to_the_next_call)
{
    CLOSED(close_device)
    struct ar_device *device = open_card(
        HEAD "cost: alloc 64 100\ncost: alloc_held 64 100\ncost: alloc_shared 16 10\n"
             "rest_cost: alloc 1000 0\nrest_cost: alloc 4000 60\nrest_cost: alloc 64000 100\n"
             "cost: event 1 5\nrest_cost: event 100 7\nrest_cost: event 200 7\n"
             "cost: event_known 1 3\n");
    assert_int_equal(alloc_ns_after(device, 0, PAGE), 200); /* the first of all */
    assert_int_equal(alloc_ns_after(device, 0, PAGE), 100);
    assert_int_equal(alloc_ns_after(device, 1000, PAGE), 100);
    assert_int_equal(alloc_ns_after(device, 2000, PAGE), 130); /* half way in log(rest) */
    assert_int_equal(alloc_ns_after(device, 4000, 4 * PAGE), 160);
    assert_int_equal(alloc_ns_after(device, 16000, PAGE), 180);
    assert_int_equal(alloc_ns_after(device, 1000000, PAGE), 200);
    /* Small allocations in an existing page are a kind of their own. */
    uint64_t small = sim_test_alloc(device, 16);
    assert_int_equal(alloc_ns_after(device, 1000000, 16), 10);
    assert_int_equal(alloc_ns_after(device, 1000000, PAGE), 200);
    sim_test_free(device, small);
    /* Without a driver call a rest neither begins nor ends. */
    const uint64_t *ns = device->counters.call_ns;
    (void)ar_backing_fence(device->backing, 0);
    assert_int_equal(ns[AR_DEVICE_CALL_event], 3);
    device->ops->kernel(device, 0, 1000);
    (void)ar_backing_fence(device->backing, 0);
    assert_int_equal(ns[AR_DEVICE_CALL_event], 3 + 5 + 7);
    device->ops->kernel(device, 0, 1000);
    (void)ar_backing_fence(device->backing, 0);
    assert_int_equal(ns[AR_DEVICE_CALL_event], 3 + 5 + 7 + 5);
}

/* As on an H100, whose first allocations take 228, 92, 66, 57, .. us. */
TEST(the_calls_after_it_pay_a_part_again)
{
    CLOSED(close_device)
    struct ar_device *device =
        open_card(HEAD "cost: alloc 64 52000\ncost: alloc_held 64 52000\ncost: alloc_shared 16 10\n"
                       "cost: free 64 7\n"
                       "rest_cost: alloc 1000000 0\nrest_cost: alloc 4000000 60\n"
                       "rest_cost: alloc 64000000 176000\nrest_again_percent: alloc 25\n"
                       "rest_cost: free 1000000 0\nrest_cost: free 64000000 100\n"
                       "rest_cost: alloc_shared 1000000 0\nrest_cost: alloc_shared 4000000 8\n"
                       "rest_again_percent: alloc_shared 100\n");
    static const uint64_t after_ns[] = {228000, 96000, 63000, 54750, 52687, 52171, 52042, 52010};
    for (int i = 0; i < 8; i++) /* the first of all, and those after it */
        assert_int_equal(alloc_ns_after(device, 0, PAGE), after_ns[i]);
    for (int i = 0; i < 3; i++)
        assert_int_equal(alloc_ns_after(device, i ? 0 : 64000000, PAGE), after_ns[i]);
    /* Its own short rest adds 60, the call before leaves 2750: the greater counts, not the sum. */
    assert_int_equal(alloc_ns_after(device, 4000000, PAGE), 54750);
    for (int i = 4; i < 7; i++)
        assert_int_equal(alloc_ns_after(device, 0, PAGE), after_ns[i]);
    assert_int_equal(alloc_ns_after(device, 4000000, PAGE), 52060);
    assert_int_equal(alloc_ns_after(device, 0, PAGE), 52015);
    /* Other kinds do not affect it, and it does not affect them. */
    uint64_t held = sim_test_alloc(device, 16);
    for (int i = 0; i < 5; i++) /* all of it again and again */
        assert_int_equal(alloc_ns_after(device, 0, 16), 10 + 8);
    sim_test_free(device, held);
    const uint64_t *ns = device->counters.call_ns;
    uint64_t block = sim_test_alloc(device, PAGE), before_ns = ns[AR_DEVICE_CALL_free];
    device->ops->advance(device, 64000000);
    sim_test_free(device, block);
    assert_int_equal(ns[AR_DEVICE_CALL_free], before_ns + 107);
    block = sim_test_alloc(device, PAGE);
    sim_test_free(device, block); /* no line of it: the next call pays nothing again */
    assert_int_equal(ns[AR_DEVICE_CALL_free], before_ns + 107 + 7);
}

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

/* The waits of some calls under a kernel of 1 ms. */
static void calls_under_work(struct ar_device *device, uint64_t waited_ns[3])
{
    struct ar_backing *backing = device->backing;
    uint64_t before_ns = 0, address = sim_test_alloc(device, PAGE), handle;
    device->ops->kernel(device, 0, 1000000);
    (void)passed(device, &before_ns);
    sim_test_free(device, address);
    waited_ns[0] = passed(device, &before_ns);
    device->ops->sync(device, UINT32_MAX);
    device->ops->kernel(device, 0, 1000000);
    (void)passed(device, &before_ns);
    assert_int_equal(ar_backing_create(backing, PAGE, &handle), AR_OK);
    waited_ns[1] = passed(device, &before_ns);
    device->ops->sync(device, UINT32_MAX);
    device->ops->kernel(device, 0, 1000000);
    (void)passed(device, &before_ns);
    assert_int_equal(ar_backing_reserve(backing, PAGE, &address), AR_OK);
    waited_ns[2] = passed(device, &before_ns);
}

TEST(the_profile_says_what_waits)
{
    static const struct {
        const char *lines;
        uint64_t waited_ns[3];
    } rows[] = {
        {HEAD, {1000000, 0, 0}},
        {HEAD "waits: none\n", {0, 0, 0}},
        {HEAD "waits: create reserve\n", {0, 1000000, 1000000}},
        /* A call that waits has the cost of the card as it was before the wait. */
        {HEAD "waits: free create\ncost: create 64 5\nbusy_cost: create 64 9\n",
         {1000000, 1000009, 0}},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLOSED(close_device) struct ar_device *device = open_card(rows[i].lines);
        uint64_t waited_ns[3], stall_ns = 0;
        calls_under_work(device, waited_ns);
        for (int call = 0; call < 3; call++) {
            assert_int_equal(waited_ns[call], rows[i].waited_ns[call]);
            stall_ns += waited_ns[call] >= 1000000 ? 1000000 : 0;
        }
        assert_int_equal(device->counters.stall_ns, stall_ns);
    }
}

TEST(launches_take_the_hosts_time)
{
    CLOSED(close_device)
    struct ar_device *device = open_card(HEAD "cost: launch 1 30\nbusy_cost: launch 1 20\n");
    const struct ar_device_ops *ops = device->ops;
    ops->kernel(device, 0, 35); /* from 30 to 65 */
    ops->kernel(device, 0, 35); /* launched on a busy card: at 50, and from 65 to 100 */
    assert_int_equal(ops->now(device), 50);
    assert_int_equal(ops->idle_at(device), 100);
    assert_int_equal(device->counters.driver_ns, 0);
    ops->advance(device, 20); /* recorded gaps: the launches were made in them */
    assert_int_equal(ops->now(device), 50);
    ops->advance(device, 100);
    assert_int_equal(ops->now(device), 120);
    ops->advance(device, 120);
    assert_int_equal(ops->now(device), 240);
    ops->kernel(device, 0, 35);
    ops->advance(device, 10);
    assert_int_equal(ops->now(device), 270);
    ops->sync(device, 0);
    assert_int_equal(ops->now(device), 305);
    for (int i = 0; i < 40; i++) /* short ones share launches: 40 x 10 in 16 of 30 and less */
        ops->kernel(device, 0, 10);
    assert_in_range(ops->now(device), 305 + 13 * 20, 305 + 20 * 20);
    assert_in_range(ops->idle_at(device), 305 + 400, 305 + 430);
}

/* Requests, marks, events and waits of the program too; recorded gaps contain all of them. */
TEST(the_program_takes_the_hosts_time)
{
    struct ar_device *device =
        open_card(HEAD "cost: launch 1 30\ncost: request 1 7\ncost: mark 1 11\n"
                       "cost: record 1 13\ncost: wait 1 17\n"
                       "kernel_least_ns: 12\n");
    const struct ar_device_ops *ops = device->ops;
    uint64_t before_ns = 0;
    assert_int_equal(device->props.kernel_least_ns, 12);
    ops->requested(device);
    assert_int_equal(passed(device, &before_ns), 7);
    assert_int_equal(ops->mark(device), 7); /* the moment when the host reaches it */
    assert_int_equal(passed(device, &before_ns), 11);
    ops->event_record(device, 1, 0);
    assert_int_equal(passed(device, &before_ns), 13);
    ops->stream_wait(device, 1, 1);
    assert_int_equal(passed(device, &before_ns), 17);
    ops->kernel(device, 0, 11); /* goes with the next */
    assert_int_equal(passed(device, &before_ns), 0);
    ops->kernel(device, 0, 1);
    assert_int_equal(passed(device, &before_ns), 30);
    ops->kernel(device, 0, 12);
    assert_int_equal(passed(device, &before_ns), 30);
    assert_int_equal(device->counters.driver_ns + device->counters.stall_ns, 0);
    ops->advance(device, 100); /* of 108 that it took since the last gap */
    assert_int_equal(passed(device, &before_ns), 0);
    ops->advance(device, 100);
    assert_int_equal(passed(device, &before_ns), 92);
    ar_device_close(device);
    device = open_card(HEAD "cost: mark 1 11\n");
    assert_null(device->ops->requested); /* the profile does not have it */
    assert_int_equal(device->props.kernel_least_ns, 0);
    ar_device_close(device);
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

/* Near the end of time no sum wraps, and the device says why the run ends. */
TEST(time_ends_and_does_not_wrap)
{
    static const uint64_t end_ns = UINT64_C(1) << 62, most_ns = SIM_PROFILE_NUMBERS - 1;
    CLOSED(close_device)
    struct ar_device *device =
        open_card(HEAD "cost: create 64 1152921504606846975\nbusy_percent: create 1000000\n"
                       "cost: destroy 1 1\ncost: destroy 2 1152921504606846975\n");
    uint64_t handle, before_ns = 0;
    assert_int_equal(ar_backing_create(device->backing, 64, &handle), AR_OK);
    assert_int_equal(passed(device, &before_ns), most_ns);
    /* The line through the points goes on to 2^60 at most. */
    assert_int_equal(ar_backing_destroy(device->backing, handle), AR_OK);
    assert_int_equal(passed(device, &before_ns), most_ns + 1);
    device->ops->kernel(device, 0, 5);
    assert_int_equal(ar_backing_create(device->backing, 64, &handle), AR_OK);
    assert_int_equal(passed(device, &before_ns), most_ns + 1);
    assert_false(device->failed);
    device->ops->kernel(device, 0, end_ns - 1);
    assert_true(device->failed);
    assert_non_null(strstr(device->ops->problem(device), "the simulated time reaches its end"));
    device->ops->sync(device, 0);
    assert_int_equal(device->ops->now(device), end_ns);
    device->ops->advance(device, end_ns - 1);
    device->ops->kernel(device, 1, end_ns - 1);
    assert_int_equal(ar_backing_create(device->backing, 64, &handle), AR_OK);
    assert_int_equal(device->ops->now(device), end_ns);
    assert_int_equal(device->ops->idle_at(device), end_ns);
    assert_true(device->counters.driver_ns <= end_ns && device->counters.stall_ns <= end_ns);
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

/* A capacity is asked of any profile; the device says whose costs it has then. */
TEST(capacity_and_costs_are_two_things)
{
    EACH_ROW (row, 3) {
        struct ar_device *device = sim_test_open(row.field[0]);
        assert_int_equal(device->props.capacity_bytes, cases_number(&row, 2));
        assert_string_equal(device->props.costs_of, row.field[1]);
        ar_device_close(device);
    }
    struct ar_device *device = sim_test_open("sim:capacity=288GiB");
    for (int i = 0; i < 28; i++)
        (void)sim_test_alloc(device, 10 * AR_GIB);
    assert_int_equal(device->counters.physical_bytes, 280 * AR_GIB);
    ar_device_close(device);
}
