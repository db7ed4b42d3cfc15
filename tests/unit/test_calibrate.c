/* Calibrating the simulated device returns the profile it was opened with: every kind of cost
 * at every size that both know, idle and busy, what waits, and how freed memory is cleaned. */
#include <unistd.h>

#include "bench/calibrate/calibrate.h"
#include "bench/calibrate/meter.h"
#include "tests/support/sim.h"
#include "tests/support/test.h"

#define CARD "tests/support/card.profile"

static void load(const char *path, struct sim_profile *out)
{
    assert_ok(sim_profile_load(path, out, &test_error));
}

static void measure(const char *spec, struct sim_profile *out)
{
    CLOSED(close_device) struct ar_device *device = sim_test_open(spec);
    assert_ok(calibrate(device, &(struct calibrate_options){0}, out, &test_error));
    assert_int_equal(device->counters.physical_bytes, 0);
}

/* The card's profile with more lines, in a file of its own. */
static void card_with(const char *lines, char path[32])
{
    char text[16384];
    FILE *card = fopen(CARD, "r");
    assert_non_null(card);
    size_t length = fread(text, 1, sizeof text, card);
    assert_true(length < sizeof text);
    fclose(card);
    snprintf(path, 32, "/tmp/allocrig-card-XXXXXX");
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, text, length), (int)length);
    assert_int_equal(write(descriptor, lines, strlen(lines)), (int)strlen(lines));
    close(descriptor);
}

/* That profile, and what measuring the device that has it gives. */
static void measure_with(const char *lines, struct sim_profile *card, struct sim_profile *measured)
{
    char path[32], spec[64];
    card_with(lines, path);
    load(path, card);
    snprintf(spec, sizeof spec, "sim:profile=%s", path);
    measure(spec, measured);
    unlink(path);
}

static bool near(uint64_t ns, uint64_t other_ns)
{
    return llabs((long long)(ns - other_ns)) <= 1;
}

/* The same of kernel ops. */
static void kernel_ops_agree(const struct sim_profile *points, struct sim_profile *asked)
{
    for (int op = 0; op < SIM_KERNEL_OP_COUNT; op++) {
        const struct sim_curve *curve = &points->kernel_ops[op];
        assert_int_equal(!curve->count, !asked->kernel_ops[op].count);
        for (uint32_t i = 0; i < curve->count; i++) {
            uint64_t ns = sim_profile_kernel_op(asked, (enum sim_kernel_op)op, curve->bytes[i]);
            if (!near(ns, curve->ns[i]))
                print_error("work %d: %lu: %lu, not %lu\n", op, (unsigned long)curve->bytes[i],
                            (unsigned long)ns, (unsigned long)curve->ns[i]);
            assert_true(near(ns, curve->ns[i]));
        }
    }
}

/* Every point of `points` that is measured at all says what `asked` costs there. Times that were
 * divided or subtracted may be a nanosecond off. */
static void agree(struct sim_profile *points, struct sim_profile *asked)
{
    for (int kind = 0; kind < SIM_COST_COUNT; kind++)
        for (int busy = 0; busy < 2; busy++) {
            const struct sim_curve *curve = busy ? &points->busy_costs[kind] : &points->costs[kind];
            for (uint32_t i = 0; i < curve->count; i++) {
                uint64_t ns = sim_profile_cost(asked, (enum sim_cost)kind, curve->bytes[i], busy);
                if (!near(ns, curve->ns[i]))
                    print_error("kind %d, %d: %lu bytes: %lu, not %lu\n", kind, busy,
                                (unsigned long)curve->bytes[i], (unsigned long)ns,
                                (unsigned long)curve->ns[i]);
                assert_true(near(ns, curve->ns[i]));
            }
        }
    kernel_ops_agree(points, asked);
}

TEST(a_card_gives_back_its_profile)
{
    for (struct cases block = {0};
         cases_block(&block, "calibrate", "a_card_gives_back_its_profile");) {
        struct sim_profile card, measured;
        measure_with(block.field[0], &card, &measured);
        agree(&measured, &card);
        agree(&card, &measured);
        assert_int_equal(measured.waits, card.waits);
        assert_in_range(measured.cleaning_bytes_per_us * 1000, card.cleaning_bytes_per_us * 999,
                        card.cleaning_bytes_per_us * 1001);
        if (card.cleaning_bytes_per_us)
            assert_memory_equal(measured.cleaning_wait_bytes, card.cleaning_wait_bytes,
                                sizeof card.cleaning_wait_bytes);
        assert_int_equal(measured.total_bytes, card.total_bytes);
        assert_int_equal(measured.usable_bytes, ar_size_round_down(card.usable_bytes, 2 * AR_MIB));
        assert_int_equal(measured.page_bytes, card.page_bytes);
        assert_int_equal(measured.granule_bytes, card.granule_bytes);
        assert_int_equal(measured.kernel_least_ns, card.kernel_least_ns);
    }
}

/* What rests add is found again, and taken out of the costs. Between the points that are measured
 * and those of the card the two curves differ a little. */
TEST(rests_are_measured_and_taken_out)
{
    static const enum sim_cost kinds[] = {SIM_COST_alloc,      SIM_COST_free, SIM_COST_alloc_shared,
                                          SIM_COST_reserve,    SIM_COST_map,  SIM_COST_access,
                                          SIM_COST_pool_alloc, SIM_COST_event};
    struct sim_profile card, measured;
    measure_with(
        "cost: event 1 900\ncost: event_known 1 35\ncost: pool_first 1 9000000\nrest_cost: "
        "alloc 10000 0\n"
        "rest_cost: alloc 30000000 90000\nrest_cost: free 10000 0\n"
        "rest_cost: free 700000000 50000\nrest_cost: alloc_shared 20000 0\n"
        "rest_cost: alloc_shared 900000 1500\nrest_cost: reserve 20000 0\n"
        "rest_cost: reserve 1000000000 20000\nrest_cost: map 20000 0\n"
        "rest_cost: map 80000000 8000\nrest_cost: access 20000 0\n"
        "rest_cost: access 80000000 70000\nrest_cost: pool_alloc 30000 0\n"
        "rest_cost: pool_alloc 3000000 900\nrest_cost: event 50000 0\n"
        "rest_cost: event 2000000 900\n",
        &card, &measured);
    for (size_t i = 0; i < COUNT(kinds); i++) {
        const struct sim_curve *curve = &measured.rest_costs[kinds[i]];
        assert_in_range(curve->count, 4, 6);
        for (uint32_t at = 1; at < curve->count; at++) {
            uint64_t ns = sim_profile_rest(&card, kinds[i], curve->bytes[at]);
            assert_true(llabs((long long)(ns - curve->ns[at])) <= (long long)ns / 100 + 2);
        }
    }
    assert_int_equal(measured.rest_costs[SIM_COST_create].count, 0);
    for (int kind = 0; kind < SIM_COST_COUNT; kind++) /* the second calls are as those after them */
        assert_int_equal(measured.rest_again_percent[kind], 0);
    assert_int_equal(measured.costs[SIM_COST_event_known].ns[0], 35);
    assert_in_range(measured.costs[SIM_COST_pool_first].ns[0], 9000000, 9001000);
    for (int kind = 0; kind < SIM_COST_COUNT; kind++)
        for (uint32_t i = 0; i < measured.costs[kind].count; i++) {
            const struct sim_curve *curve = &measured.costs[kind];
            uint64_t ns = sim_profile_cost(&card, (enum sim_cost)kind, curve->bytes[i], false);
            if (llabs((long long)(ns - curve->ns[i])) > (long long)ns / 5 + 2)
                print_error("kind %d: %lu bytes: %lu, not %lu\n", kind,
                            (unsigned long)curve->bytes[i], (unsigned long)curve->ns[i],
                            (unsigned long)ns);
            assert_true(llabs((long long)(ns - curve->ns[i])) <= (long long)ns / 5 + 2);
        }
}

/* Every kind of cost that is measured without gaps between the rests that are asked for. */
static bool is_exact(enum sim_cost kind)
{
    return kind == SIM_COST_alloc || kind == SIM_COST_alloc_held || kind == SIM_COST_alloc_shared ||
           kind == SIM_COST_reserve || kind == SIM_COST_pool_alloc || kind == SIM_COST_pool_free;
}

/* So is what the second call pays again, to the percent. It is taken out of loops that begin after
 * a rest, to the nanosecond where the rests in them are some that were measured. */
TEST(what_is_paid_again_is_measured_and_taken_out)
{
    struct sim_profile card, measured;
    measure_with("cost: event 1 900\ncost: event_known 1 35\n"
                 "rest_cost: alloc 10000 0\nrest_cost: alloc 30000 3000\n"
                 "rest_cost: alloc_shared 700000 0\nrest_cost: alloc_shared 2000000 400\n"
                 "rest_cost: free_shared 700000 0\nrest_cost: free_shared 2000000 600\n"
                 "rest_cost: create 700000 0\nrest_cost: create 2000000 4000\n"
                 "rest_cost: map 700000 0\nrest_cost: map 2000000 300\n"
                 "rest_cost: unmap 700000 0\nrest_cost: unmap 2000000 7000\n"
                 "rest_cost: reserve 700000 0\nrest_cost: reserve 2000000 200\n"
                 "rest_cost: pool_alloc 700000 0\nrest_cost: pool_alloc 2000000 250\n"
                 "rest_cost: pool_free 700000 0\nrest_cost: pool_free 2000000 300\n"
                 "rest_cost: event 700000 0\nrest_cost: event 2000000 400\n"
                 "rest_again_percent: alloc 10\nrest_again_percent: alloc_shared 30\n"
                 "rest_again_percent: free_shared 3\nrest_again_percent: create 20\n"
                 "rest_again_percent: map 10\nrest_again_percent: unmap 40\n"
                 "rest_again_percent: pool_alloc 28\nrest_again_percent: pool_free 1\n"
                 "rest_again_percent: event 7\n",
                 &card, &measured);
    for (int kind = 0; kind < SIM_COST_COUNT; kind++) {
        assert_in_range(measured.rest_again_percent[kind] + 1, card.rest_again_percent[kind],
                        card.rest_again_percent[kind] + 2);
        assert_true(!measured.rest_again_percent[kind] == !card.rest_again_percent[kind]);
        if (is_exact((enum sim_cost)kind))
            continue;
        card.costs[kind].count = card.busy_costs[kind].count = 0;
        measured.costs[kind].count = measured.busy_costs[kind].count = 0;
    }
    agree(&measured, &card);
    agree(&card, &measured);
}

/* A few looks that take long say nothing of how fast the host is. */
TEST(the_hosts_clock_is_that_of_most_looks)
{
    static const uint64_t looks_ns[] = {30, 300, 31, 28, 1000, 30, 29, 31};
    struct meter meter = {.busy = false};
    assert_int_equal(meter_host_clock_ps(&meter), 0);
    for (size_t i = 0; i < COUNT(looks_ns); i++)
        meter_samples_add(&meter.looks, looks_ns[i]);
    assert_int_equal(meter_host_clock_ps(&meter), 30500); /* of 30, 30, 31, 31 */
    meter.looks.count = 1;
    meter.looks.ns[0] = 40;
    assert_int_equal(meter_host_clock_ps(&meter), 40000);
}

/* Measuring what was measured changes nothing any more, and two measurements are the same. */
TEST(a_second_time_is_the_same)
{
    struct sim_profile first, again, second;
    char path[] = "/tmp/allocrig-profile-XXXXXX", spec[64];
    measure("sim", &first);
    measure("sim", &again);
    assert_memory_equal(&first, &again, offsetof(struct sim_profile, costs));
    snprintf(first.name, sizeof first.name, "first");
    int descriptor = mkstemp(path);
    FILE *file = fdopen(descriptor, "w");
    assert_non_null(file);
    sim_profile_write(&first, file);
    assert_int_equal(fclose(file), 0);
    snprintf(spec, sizeof spec, "sim:profile=%s", path);
    measure(spec, &second);
    unlink(path);
    agree(&first, &second);
    agree(&second, &first);
    for (int kind = 0; kind < SIM_COST_COUNT; kind++) {
        assert_int_equal(first.costs[kind].count, second.costs[kind].count);
        assert_int_equal(first.costs[kind].count, again.costs[kind].count);
    }
}

/* Few kinds of kernel ops, a small card, and a host that is slow to launch: what fits is
 * measured. */
TEST(kernel_ops_on_a_small_card)
{
    struct sim_profile card, measured;
    char path[32], spec[96];
    card_with("cost: launch 1 90000\nbusy_cost: launch 1 90000\nwork: set 4096 1700\n"
              "work: set 268435456 95000\nwork: gather 131072 2600\n",
              path);
    load(path, &card);
    snprintf(spec, sizeof spec, "sim:profile=%s,capacity=300MiB", path);
    measure(spec, &measured);
    unlink(path);
    const struct sim_curve *curve = &measured.kernel_ops[SIM_KERNEL_OP_set];
    assert_int_equal(curve->count, 8);
    assert_int_equal(curve->bytes[0], 4096);
    assert_int_equal(curve->bytes[7], 64 * AR_MIB);
    assert_int_equal(measured.kernel_ops[SIM_KERNEL_OP_gather].count,
                     0); /* its rows are not known */
    for (uint32_t i = 0; i < curve->count; i++)
        assert_true(
            near(curve->ns[i], sim_profile_kernel_op(&card, SIM_KERNEL_OP_set, curve->bytes[i])));
}

TEST(a_small_card_leaves_large_sizes_out)
{
    struct sim_profile card, measured;
    load(CARD, &card);
    measure("sim:capacity=1GiB", &measured);
    assert_int_equal(measured.usable_bytes, AR_GIB);
    assert_true(measured.costs[SIM_COST_alloc].count > 10);
    const struct sim_curve *curve = &measured.costs[SIM_COST_create];
    assert_int_equal(curve->bytes[curve->count - 1], 512 * AR_MIB);
    agree(&measured, &card);
    /* Cards on which only some blocks are large enough to wait for all of the cleaning. */
    static const char *const specs[] = {"sim:capacity=256MiB", "sim:capacity=1GiB",
                                        "sim:capacity=24GiB", "sim:capacity=28GiB"};
    for (size_t i = 0; i < COUNT(specs); i++) {
        measure(specs[i], &measured);
        assert_in_range(measured.cleaning_bytes_per_us, 370000, 378000);
        uint64_t from_bytes = measured.cleaning_wait_bytes[SIM_COST_alloc];
        assert_true(!from_bytes || from_bytes >= 16 * AR_GIB);
    }
}

TEST(what_has_no_pages_is_refused)
{
    struct sim_profile out;
    struct ar_device *device = sim_test_open("sim:profile=bump,capacity=1GiB");
    assert_says(calibrate(device, &(struct calibrate_options){.cold = true}, &out, &test_error),
                AR_INVALID, "nothing to measure");
    ar_device_close(device);
    device = sim_test_open("sim:capacity=255MiB");
    assert_says(calibrate(device, &(struct calibrate_options){.cold = true}, &out, &test_error),
                AR_INVALID, "calibrating needs 256 MiB");
    assert_null(device->observer.call);
    ar_device_close(device);
}

/* A model that is wrong where the card is busy shows there, and only there. */
TEST(a_wrong_profile_shows)
{
    struct check check;
    char path[32], spec[64];
    card_with("busy_percent: create 1000\nbusy_percent: map 250\n", path);
    snprintf(spec, sizeof spec, "sim:profile=%s", path);
    struct ar_device *card = sim_test_open("sim"), *model = sim_test_open(spec);
    unlink(path);
    assert_ok(check_devices(card, model, &check, &test_error));
    for (int mode = 0; mode < CHECK_MODES; mode++)
        for (int line = 0; line < CHECK_LINES; line++) {
            const struct check_row *row = &check.rows[mode][line];
            assert_true(row->calls > 0 || line == AR_DEVICE_CALL_event ||
                        line == AR_DEVICE_CALL_pinned_alloc || line == AR_DEVICE_CALL_pinned_free);
            if (mode != CHECK_IDLE)
                continue;
            assert_int_equal(row->measured_ns, row->modelled_ns);
            assert_int_equal(row->within, row->calls);
        }
    const struct check_row *create = &check.rows[CHECK_BUSY][AR_DEVICE_CALL_create];
    assert_true(2 * create->modelled_ns > 3 * create->measured_ns);
    assert_true(create->within < create->calls);
    assert_int_equal(card->counters.physical_bytes, 0);
    assert_int_equal(model->counters.physical_bytes, 0);
    ar_device_close(card);
    ar_device_close(model);
}

/* The card's pool was used while it was measured, the model's is new. */
TEST(the_first_use_of_the_pool_is_not_compared)
{
    struct check check;
    char path[32], spec[64];
    uint64_t address;
    card_with("cost: pool_first 1 9000000\n", path);
    snprintf(spec, sizeof spec, "sim:profile=%s", path);
    struct ar_device *card = sim_test_open(spec), *model = sim_test_open(spec);
    unlink(path);
    assert_int_equal(card->backing->ops->pool_alloc(card->backing, 512, 0, &address), AR_OK);
    assert_int_equal(card->backing->ops->pool_free(card->backing, address, 0), AR_OK);
    assert_ok(check_devices(card, model, &check, &test_error));
    const struct check_row *row = &check.rows[CHECK_IDLE][AR_DEVICE_CALL_pool_alloc];
    assert_true(row->calls > 100);
    assert_int_equal(row->measured_ns, row->modelled_ns);
    assert_int_equal(row->within, row->calls);
    ar_device_close(card);
    ar_device_close(model);
}

static void count_step(void *argument, const char *label)
{
    assert_true(label[0] != '\0');
    ++*(size_t *)argument;
}

TEST(as_many_steps_as_it_says)
{
    struct sim_profile out;
    size_t steps = 0;
    const struct calibrate_options counting = {.step = count_step, .argument = &steps};
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim");
    assert_ok(calibrate(device, &counting, &out, &test_error));
    assert_int_equal(steps, calibrate_steps());
    /* On the virtual clock too: it has to be done in two minutes. */
    assert_true(device->ops->now(device) < UINT64_C(100000000000));
}

TEST(medians)
{
    struct meter_samples samples = {0};
    assert_int_equal(meter_samples_median(&samples), 0);
    for (uint64_t ns = 300; ns > 0; ns--)
        meter_samples_add(&samples, ns);
    assert_int_equal(samples.count, METER_SAMPLES_MOST); /* 300 down to 45 */
    assert_int_equal(meter_samples_median(&samples), 172);
    samples = (struct meter_samples){3, {5, 1, 9}};
    assert_int_equal(meter_samples_median(&samples), 5);
    assert_int_equal(meter_samples_usual(&samples), 5);
    samples = (struct meter_samples){4, {1, 1000, 2, 3}};
    assert_int_equal(meter_samples_usual(&samples),
                     (1 + 2 + 3 + 8 + 2) / 4); /* 1000 counts as 4 x 2 */
}
