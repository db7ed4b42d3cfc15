#include "bench/cuda/cuda_device.h"

#include <stdio.h>

static bool cuda_available(char *text, size_t text_bytes)
{
    snprintf(text, text_bytes, "this build has no CUDA device; use the simulated one, sim");
    return false;
}

static enum status cuda_open(const struct spec_link *link, struct device **out, struct error *error)
{
    char why[160];
    (void)link;
    (void)out;
    (void)cuda_available(why, sizeof why);
    return error_set(error, STATUS_MISSING, "%s", why);
}

static const struct option no_options[] = {{NULL, OPTION_BOOL, 0, NULL, 0, 0, NULL, NULL}};

const struct device_kind cuda_device_kind = {
    .name = "cuda",
    .summary = "a real card through the CUDA driver",
    .options = no_options,
    .open = cuda_open,
    .available = cuda_available,
};
