/* Devices by name: what a spec names is opened here. */
#include "sim/device.h"

#include <string.h>

#include "sim/sim_device/sim_device.h"

const char *device_call_name(enum device_call call)
{
    static const char *const names[] = {
#define X(name, text) #name,
        DEVICE_CALLS(X)
#undef X
    };
    return (unsigned)call < DEVICE_CALL_COUNT ? names[call] : "unknown";
}

enum status device_open(const struct spec *spec, struct device **out, struct error *error)
{
    static const char *const kinds[] = {"sim", "cuda"};
    if (spec->link_count != 1)
        return error_set(error, STATUS_INVALID,
                         "device \"%s\": a device takes no decorators; write one name, as in sim",
                         spec->text);
    const struct spec_link *link = &spec->links[0];
    if (strcmp(link->name, "sim") == 0)
        return sim_device_open(link, out, error);
    if (strcmp(link->name, "cuda") == 0)
        return error_set(error, STATUS_MISSING,
                         "this build has no CUDA device; use the simulated one, sim");
    const char *near = nearest_name(link->name, kinds, sizeof kinds / sizeof kinds[0]);
    return error_set(error, STATUS_INVALID,
                     "there is no device \"%s\"%s%s%s. There are sim and cuda", link->name,
                     near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
}

enum status device_open_text(const char *text, struct device **out, struct error *error)
{
    struct spec spec;
    enum status status = spec_parse(text, &spec, error);
    if (status != STATUS_OK)
        return status;
    status = device_open(&spec, out, error);
    spec_close(&spec);
    return status;
}
