/* A policy over a device that costs nothing; see rig.h. */
#include "bench/micro/rig.h"

#include <stdio.h>

#include "allocators/registry.h"

const char *rig_spec(const struct policy_ops *ops, char *text, size_t text_bytes)
{
    bool limited = !(ops->capabilities & POLICY_OVERLAPS);
    snprintf(text, text_bytes, "%s%s", ops->name, limited ? ":limit=64GiB" : "");
    return text;
}

static enum status make_on(struct rig *rig, const char *device, struct error *error)
{
    enum status status = device_open_text(device, &rig->device, error);
    if (status != STATUS_OK)
        return status;
    struct policy_context context = {.backing = rig->device->backing, .host = &rig->host};
    return registry_create(&rig->spec, &context, &rig->policy, error);
}

enum status rig_open(struct rig *rig, const char *spec, struct error *error)
{
    *rig = (struct rig){0};
    enum status status = spec_parse(spec, &rig->spec, error);
    if (status != STATUS_OK)
        return status;
    status = make_on(rig, "sim:profile=bump", error);
    if (status == STATUS_UNSUPPORTED) {
        device_close(rig->device);
        rig->device = NULL;
        status = make_on(rig, "sim:profile=h100", error);
    }
    if (status != STATUS_OK)
        rig_close(rig);
    return status;
}

enum status rig_open_on(struct rig *rig, const char *spec, struct backing *backing,
                        struct error *error)
{
    *rig = (struct rig){0};
    struct policy_context context = {.backing = backing, .host = &rig->host};
    enum status status = spec_parse(spec, &rig->spec, error);
    if (status == STATUS_OK)
        status = registry_create(&rig->spec, &context, &rig->policy, error);
    if (status != STATUS_OK)
        rig_close(rig);
    return status;
}

void rig_close(struct rig *rig)
{
    policy_destroy(rig->policy);
    device_close(rig->device);
    spec_close(&rig->spec);
    *rig = (struct rig){0};
}
