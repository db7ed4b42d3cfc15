/* Opening the simulated device: options, random addresses, and the errors of wrong options,
 * profiles and lists. Right ones: tests/steps/sim_open. */
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
