/* Policy specs as people write them: read or refused with a sentence; what is read makes a
 * policy or is refused with a sentence, and leaves nothing behind. Shared objects are left out:
 * an input is not to load whatever file it names. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/registry.h"
#include "sim/device.h"
#include "tests/fuzz/target.h"

static void make(const struct ar_spec *spec)
{
    struct ar_host host = {0};
    struct ar_device *device = NULL;
    struct ar_policy *policy = NULL;
    struct ar_error error = {""};
    if (ar_device_open_text("sim:profile=bump,capacity=1GiB", &device, &error))
        abort();
    const struct ar_policy_context context = {.backing = device->backing, .host = &host};
    enum ar_status status = registry_create(spec, &context, &policy, &error);
    if (status == AR_OK)
        ar_policy_destroy(policy);
    if ((status == AR_OK) == (error.text[0] != '\0') || host.now_bytes ||
        device->counters.physical_bytes)
        abort();
    ar_device_close(device);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char text[256];
    struct ar_spec spec;
    struct ar_error error = {""};
    if (bytes >= sizeof text)
        return 0;
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    enum ar_status status = ar_spec_parse(text, &spec, &error);
    if (status != AR_OK) {
        if (!error.text[0] || spec.storage)
            abort();
        return 0;
    }
    if (!strchr(text, '/') && !strstr(text, ".so"))
        make(&spec);
    ar_spec_close(&spec);
    return 0;
}
