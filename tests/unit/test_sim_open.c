/* Opening the simulated device: options, profiles, the three forms of addresses, and the errors of
 * wrong ones. */
#include <unistd.h>

#include "tests/support/sim.h"
#include "tests/support/temporary_file.h"
#include "tests/support/test.h"

/* Opens `sim:KEY=FILE` with this text in the file. */
static enum ar_status open_with(const char *key, const char *text, struct ar_device **out,
                                struct ar_error *error)
{
    struct temporary_file file = temporary_file(text);
    char spec[128];
    snprintf(spec, sizeof spec, "sim:%s=%s", key, file.path);
    enum ar_status status = ar_device_open_text(spec, out, error);
    unlink(file.path);
    return status;
}

static enum ar_status open_spec(const char *text, struct ar_error *error)
{
    struct ar_device *device = NULL;
    enum ar_status status = ar_device_open_text(text, &device, error);
    assert_null(device);
    return status;
}

TEST(bad_options_have_a_sentence)
{
    cases_refused("sim_open", "bad_options_have_a_sentence", open_spec);
}

TEST(good_options)
{
    struct ar_device *device = sim_test_open("sim:profile=h100,capacity=85017493504,seed=3");
    assert_int_equal(device->props.capacity_bytes, UINT64_C(85017493504));
    assert_string_equal(device->props.kind, "sim");
    assert_string_equal(device->props.profile, "h100");
    assert_true(device->props.has_virtual_memory);
    assert_false(device->backing->adjacent);
    ar_device_close(device);
    device = sim_test_open("sim:profile=bump,capacity=100TiB");
    assert_string_equal(device->props.profile, "bump");
    ar_device_close(device);
    assert_string_equal(ar_device_call_name(AR_DEVICE_CALL_unmap), "unmap");
}

#define PROFILE_HEAD                                                                               \
    "# allocrig-profile 1\nname: mine\n\n# a comment\ntotal_bytes: 1000\nusable_bytes: 900\n"      \
    "page_bytes: 64\ngranule_bytes: 16\nfirst_address: 640\n"

TEST(a_profile_from_a_file)
{
    CLOSED(close_device) struct ar_device *device;
    assert_ok(open_with("profile",
                        PROFILE_HEAD "cost: alloc_held 16 1000\ncost: alloc_held 64 4000\n"
                                     "cost: alloc_shared 16 7\nbusy_percent: alloc_held 300",
                        &device, &test_error));
    assert_string_equal(device->props.profile, "mine");
    assert_int_equal(device->props.capacity_bytes, 900);
    assert_int_equal(sim_test_alloc(device, 32), 640);
    assert_int_equal(device->ops->now(device), 2000); /* half-way in log-log */
    assert_int_equal(sim_test_alloc(device, 1), 672);
    assert_int_equal(device->ops->now(device), 2007);
    assert_int_equal(sim_test_alloc(device, 65), 704);
    assert_int_equal(device->ops->now(device), 2007 + 8000); /* the line goes on */
    assert_int_equal(device->counters.physical_bytes, 192);
    device->ops->kernel(device, 0, 1000000);
    (void)sim_test_alloc(device, 65);
    assert_int_equal(device->ops->now(device), 10007 + 8000 + 2 * 4000);
}

static enum ar_status open_profile(const char *text, struct ar_error *error)
{
    struct ar_device *device = NULL;
    enum ar_status status = open_with("profile", text, &device, error);
    assert_int_equal(status, AR_FORMAT);
    return status;
}

TEST(a_bad_profile_names_the_line)
{
    cases_refused("sim_open", "a_bad_profile_names_the_line", open_profile);
}

#define LIST_HEAD "ordinal,bytes,address\n"

TEST(recorded_addresses)
{
    CLOSED(close_device) struct ar_device *device;
    uint64_t address, range;
    assert_ok(open_with("addresses",
                        LIST_HEAD "0,3000000,139865515622400\n1,512,2097664\n"
                                  "2,2097152,139865515622400\n3,100,2099200\n",
                        &device, &test_error));
    assert_int_equal(sim_test_alloc(device, 3000000), UINT64_C(139865515622400));
    sim_test_misuse(device, ar_backing_segment_alloc(device->backing, 513, &address),
                    "segment 1 of 513 bytes was asked for, but /tmp/allocrig-test-");
    sim_test_misuse(device, ar_backing_segment_alloc(device->backing, 513, &address),
                    "lists 512 bytes for it");
    assert_true(device->bad_input);
    assert_int_equal(sim_test_alloc(device, 512), 2097664);
    assert_int_equal(ar_backing_reserve(device->backing, 2 * AR_MIB, &range), AR_OK);
    assert_int_equal(range, UINT64_C(139865515622400) + 4 * AR_MIB);
    sim_test_misuse(device, ar_backing_segment_alloc(device->backing, 2 * AR_MIB, &address),
                    "where another segment still is");
    sim_test_free(device, UINT64_C(139865515622400));
    assert_int_equal(sim_test_alloc(device, 2 * AR_MIB), UINT64_C(139865515622400));
    assert_int_equal(device->counters.physical_bytes, 4 * AR_MIB);
    assert_int_equal(sim_test_alloc(device, 100), 2099200); /* in the page of segment 1 */
    assert_int_equal(device->counters.physical_bytes, 4 * AR_MIB);
    sim_test_misuse(device, ar_backing_segment_alloc(device->backing, 77, &address),
                    "lists only 4 segments");
    sim_test_free(device, 2099200);
    sim_test_free(device, 2097664);
    assert_int_equal(device->counters.physical_bytes, 2 * AR_MIB);
}

TEST(refused_segments_take_no_row)
{
    struct temporary_file file = temporary_file(LIST_HEAD "0,4194304,4194304\n1,2097152,0\n");
    char spec[128];
    uint64_t address;
    snprintf(spec, sizeof spec, "sim:capacity=2MiB,addresses=%s", file.path);
    CLOSED(close_device) struct ar_device *device = sim_test_open(spec);
    unlink(file.path);
    assert_int_equal(ar_backing_segment_alloc(device->backing, 4 * AR_MIB, &address), AR_REFUSED);
    sim_test_misuse(device, ar_backing_segment_alloc(device->backing, 2 * AR_MIB, &address),
                    "lists 4194304 bytes for it");
}

TEST(refused_small_segments_take_no_row)
{
    struct temporary_file file =
        temporary_file(LIST_HEAD "0,2097152,2097152\n1,512,4194304\n2,512,4194816\n");
    char spec[128];
    uint64_t address;
    snprintf(spec, sizeof spec, "sim:capacity=4MiB,addresses=%s", file.path);
    CLOSED(close_device) struct ar_device *device = sim_test_open(spec);
    unlink(file.path);
    (void)sim_test_alloc(device, 2 * AR_MIB);
    assert_int_equal(sim_test_alloc(device, 512), 4 * AR_MIB);
    /* No page is left: a size other than that of the next row, and one that shares a page. */
    assert_int_equal(ar_backing_segment_alloc(device->backing, 1024, &address), AR_REFUSED);
    assert_int_equal(sim_test_alloc(device, 512), 4 * AR_MIB + 512);
    assert_int_equal(ar_backing_segment_alloc(device->backing, 512, &address), AR_REFUSED);
    assert_int_equal(device->counters.refused, 2);
}

TEST(recorded_ranges)
{
    CLOSED(close_device) struct ar_device *device;
    uint64_t address;
    assert_ok(open_with("ranges",
                        LIST_HEAD "0,4194304,6291456\n1,2097152,2097152\n2,2097152,6291456\n",
                        &device, &test_error));
    assert_int_equal(ar_backing_reserve(device->backing, 4 * AR_MIB, &address), AR_OK);
    assert_int_equal(address, 6 * AR_MIB);
    assert_true(sim_test_alloc(device, 2 * AR_MIB) > 16 * AR_MIB); /* not of the list */
    sim_test_misuse(device, ar_backing_reserve(device->backing, 4 * AR_MIB, &address),
                    "segment 1 of 4194304 bytes was asked for, but /tmp/allocrig-test-");
    assert_true(device->bad_input);
    assert_int_equal(ar_backing_reserve(device->backing, 2 * AR_MIB, &address), AR_OK);
    assert_int_equal(address, 2 * AR_MIB);
    sim_test_misuse(device, ar_backing_reserve(device->backing, 2 * AR_MIB, &address),
                    "where a segment still is");
    assert_int_equal(ar_backing_release(device->backing, 6 * AR_MIB), AR_OK);
    assert_int_equal(ar_backing_reserve(device->backing, 2 * AR_MIB, &address), AR_OK);
    assert_int_equal(address, 6 * AR_MIB);
}

TEST(empty_lists_mean_the_default)
{
    static const char *const texts[] = {"", LIST_HEAD};
    for (size_t i = 0; i < 2; i++) {
        CLOSED(close_device) struct ar_device *plain = sim_test_open("sim");
        CLOSED(close_device) struct ar_device *device;
        assert_ok(open_with("addresses", texts[i], &device, &test_error));
        assert_int_equal(sim_test_alloc(device, 5 * AR_MIB), sim_test_alloc(plain, 5 * AR_MIB));
        assert_int_equal(sim_test_alloc(device, 5), sim_test_alloc(plain, 5));
    }
}

static enum ar_status open_list(const char *text, struct ar_error *error)
{
    struct ar_device *device = NULL;
    enum ar_status status = open_with("addresses", text, &device, error);
    assert_int_equal(ar_status_exit(status), 2);
    return status;
}

TEST(a_bad_list_names_the_line)
{
    cases_refused("sim_open", "a_bad_list_names_the_line", open_list);
}

TEST(random_addresses)
{
    CLOSED(close_device) struct ar_device *first = sim_test_open("sim:addresses=random,seed=5");
    CLOSED(close_device) struct ar_device *same = sim_test_open("sim:addresses=random,seed=5");
    CLOSED(close_device) struct ar_device *other = sim_test_open("sim:addresses=random,seed=6");
    uint64_t addresses[200], rising = 0, differs = 0;
    for (int i = 0; i < 200; i++) {
        uint64_t bytes = (uint64_t)(i % 7 + 1) * AR_MIB;
        addresses[i] = sim_test_alloc(first, bytes);
        assert_int_equal(sim_test_alloc(same, bytes), addresses[i]);
        differs += sim_test_alloc(other, bytes) != addresses[i];
        assert_true(bytes < 2 * AR_MIB || addresses[i] % (2 * AR_MIB) == 0);
        assert_true(addresses[i] > 0);
        for (int before = 0; before < i; before++) {
            uint64_t length = (uint64_t)(before % 7 + 1) * AR_MIB;
            assert_true(addresses[before] + length <= addresses[i] ||
                        addresses[i] + bytes <= addresses[before]);
        }
        rising += i && addresses[i] > addresses[i - 1];
    }
    assert_in_range(rising, 60, 140);
    assert_true(differs > 190);
}
