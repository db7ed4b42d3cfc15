#include "tests/support/sim.h"

#include "tests/support/test.h"

struct ar_device *sim_test_open(const char *spec)
{
    struct ar_device *device = NULL;
    char text[512];
    const char *options = strchr(spec, ':');
    snprintf(text, sizeof text, "sim:profile=tests/support/card.profile%s%s", options ? "," : "",
             options ? options + 1 : "");
    if (strstr(spec, "profile="))
        snprintf(text, sizeof text, "%s", spec);
    enum ar_status status = ar_device_open_text(text, &device, &test_error);
    if (status != AR_OK)
        print_error("%s: %s\n", spec, test_error.text);
    assert_int_equal(status, AR_OK);
    return device;
}

uint64_t sim_test_alloc(struct ar_device *device, uint64_t bytes)
{
    uint64_t address;
    enum ar_status status = ar_backing_segment_alloc(device->backing, bytes, &address);
    if (status != AR_OK)
        print_error("%s: %s\n", ar_status_name(status), ar_backing_problem(device->backing));
    assert_int_equal(status, AR_OK);
    return address;
}

void sim_test_free(struct ar_device *device, uint64_t address)
{
    assert_int_equal(ar_backing_segment_free(device->backing, address), AR_OK);
}
