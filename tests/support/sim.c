#include "tests/support/sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct device *sim_test_open(const char *spec)
{
    struct device *device = NULL;
    struct error error = {""};
    char text[512];
    const char *options = strchr(spec, ':');
    snprintf(text, sizeof text, "sim:profile=tests/support/card.profile%s%s", options ? "," : "",
             options ? options + 1 : "");
    if (strstr(spec, "profile="))
        snprintf(text, sizeof text, "%s", spec);
    enum status status = device_open_text(text, &device, &error);
    if (status != STATUS_OK)
        print_error("%s: %s\n", spec, error.text);
    assert_int_equal(status, STATUS_OK);
    return device;
}

uint64_t sim_test_alloc(struct device *device, uint64_t bytes)
{
    uint64_t address;
    enum status status = backing_segment_alloc(device->backing, bytes, &address);
    if (status != STATUS_OK)
        print_error("%s: %s\n", status_name(status), backing_problem(device->backing));
    assert_int_equal(status, STATUS_OK);
    return address;
}

void sim_test_free(struct device *device, uint64_t address)
{
    assert_int_equal(backing_segment_free(device->backing, address), STATUS_OK);
}

void sim_test_misuse(struct device *device, enum status status, const char *words)
{
    const char *sentence = backing_problem(device->backing);
    if (status != STATUS_INVALID || !strstr(sentence, words))
        print_error("%s \"%s\" instead of INVALID with \"%s\"\n", status_name(status), sentence,
                    words);
    assert_int_equal(status, STATUS_INVALID);
    assert_non_null(strstr(sentence, words));
}
