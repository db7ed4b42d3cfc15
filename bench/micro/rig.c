/* A policy over a device that costs nothing; see rig.h. */
#include "bench/micro/rig.h"

#include <stdio.h>

#include "allocators/options.h"
#include "allocators/registry.h"

const char *rig_spec(const struct ar_policy_ops *ops, char *text, size_t text_bytes)
{
    bool limited = !(ops->capabilities & AR_POLICY_OVERLAPS);
    bool counted = ar_options_find(ops->options, "max_allocs") != NULL; /* it must not be reached */
    snprintf(text, text_bytes, "%s%s%s", ops->name, limited ? ":limit=64GiB" : "",
             counted ? ",max_allocs=1048576" : "");
    return text;
}

static enum ar_status make_on(struct rig *rig, const char *device, struct ar_error *error)
{
    enum ar_status status = ar_device_open_text(device, &rig->device, error);
    if (status != AR_OK)
        return status;
    struct ar_policy_context context = {
        .backing = rig->device->backing, .host = &rig->host, .unguarded = true};
    return registry_create(&rig->spec, &context, &rig->policy, error);
}

enum ar_status rig_open(struct rig *rig, const char *spec, struct ar_error *error)
{
    return rig_open_or(rig, spec, "sim:profile=h100", error);
}

enum ar_status rig_open_or(struct rig *rig, const char *spec, const char *other,
                           struct ar_error *error)
{
    *rig = (struct rig){0};
    enum ar_status status = ar_spec_parse(spec, &rig->spec, error);
    if (status != AR_OK)
        return status;
    status = make_on(rig, "sim:profile=bump", error);
    if (status == AR_UNSUPPORTED) {
        ar_device_close(rig->device);
        rig->device = NULL;
        status = make_on(rig, other, error);
    }
    if (status != AR_OK)
        rig_close(rig);
    return status;
}

enum ar_status rig_open_on(struct rig *rig, const char *spec, struct ar_backing *backing,
                           struct ar_error *error)
{
    *rig = (struct rig){0};
    struct ar_policy_context context = {.backing = backing, .host = &rig->host, .unguarded = true};
    enum ar_status status = ar_spec_parse(spec, &rig->spec, error);
    if (status == AR_OK)
        status = registry_create(&rig->spec, &context, &rig->policy, error);
    if (status != AR_OK)
        rig_close(rig);
    return status;
}

void rig_close(struct rig *rig)
{
    ar_policy_destroy(rig->policy);
    ar_device_close(rig->device);
    ar_spec_close(&rig->spec);
    *rig = (struct rig){0};
}
