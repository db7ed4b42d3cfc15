/* Policy specs as people write them: taken apart, looked up, made into an instance over the bump
 * device, used once and given back. Whatever the text, the answer is a status and, where it is not
 * OK, a sentence. Names with a slash or ending in .so are left out: they would load files. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/registry.h"
#include "allocators/spec.h"
#include "sim/device.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void expect_sentence(enum status status, const struct error *error)
{
    if (status != STATUS_OK && !error->text[0])
        abort();
}

static void use_policy(const struct spec *spec)
{
    struct error error = {{0}};
    struct host host = {0};
    struct device *device = NULL;
    struct policy *policy = NULL;
    struct policy_block block;
    struct policy_request request = {.bytes = 4096};
    if (device_open_text("sim:profile=bump,capacity=1GiB", &device, &error) != STATUS_OK)
        abort();
    struct policy_context context = {.backing = device->backing, .host = &host, .seed = 1};
    enum status status = registry_create(spec, &context, &policy, &error);
    expect_sentence(status, &error);
    if (status == STATUS_OK) {
        if (policy_alloc(policy, &request, &block) == STATUS_OK &&
            (block.granted_bytes < request.bytes || policy_free(policy, &block, 0) != STATUS_OK))
            abort();
        policy_destroy(policy);
    }
    if (host.now_bytes != 0) /* everything given back, also after a failure */
        abort();
    device_close(device);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char text[512];
    struct spec spec;
    struct error error = {{0}};
    if (bytes >= sizeof text || memchr(data, '/', bytes) || memchr(data, '\0', bytes))
        return 0;
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    if (strstr(text, ".so"))
        return 0;
    enum status status = spec_parse(text, &spec, &error);
    expect_sentence(status, &error);
    if (status != STATUS_OK)
        return 0;
    use_policy(&spec);
    spec_close(&spec);
    return 0;
}
