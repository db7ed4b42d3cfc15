#include "bench/calibrate/machine.h"

#include <stdio.h>
#include <string.h>

void machine_describe(const struct ar_device *device, const struct environment *environment,
                      bool cold, struct sim_profile *out)
{
    const char *hypervisor = environment->hypervisor, *machine = environment->machine;
    bool real = strcmp(device->props.kind, "sim") != 0;
    if (real) {
        snprintf(out->card, sizeof out->card, "%s", device->props.profile);
        snprintf(out->driver, sizeof out->driver, "%s", environment->card.driver);
        if (!out->driver[0]) /* the management library does not tell: the kernel's module does */
            environment_line("/sys/module/nvidia/version", out->driver, sizeof out->driver);
        snprintf(out->hypervisor, sizeof out->hypervisor, "%s%s%s",
                 hypervisor[0] ? hypervisor : "none", machine[0] ? ", " : "", machine);
    }
    snprintf(out->source, sizeof out->source,
             "allocrig %.32s calibrate%s of device %s%s%.63s; means, bench/calibrate/README.md",
             environment->build->version, cold ? " --cold" : "", device->props.kind,
             real ? ", " : ", profile ", real ? environment->time : device->props.profile);
}
