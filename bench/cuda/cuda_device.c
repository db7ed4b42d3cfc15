/* The real card: which there are, and opening one. */
#include "bench/cuda/cuda_device.h"

#include <stdio.h>

#include "bench/cuda/api.h"

bool cuda_device_available(char *text, size_t text_bytes)
{
    struct cuda_api api;
    struct error error;
    if (cuda_api_open(&api, &error) != STATUS_OK) {
        snprintf(text, text_bytes, "%s", error.text);
        return false;
    }
    int count = 0;
    CUdevice card;
    char name[128] = "";
    CUresult result = api.device_get_count(&count);
    if (result != CUDA_SUCCESS || !count) {
        snprintf(text, text_bytes,
                 "the NVIDIA driver sees no card (%s); see what CUDA_VISIBLE_DEVICES hides, or use "
                 "the simulated device, sim",
                 cuda_result_name(&api, result));
        return false;
    }
    if (api.device_get(&card, 0) == CUDA_SUCCESS)
        (void)api.device_get_name(name, (int)sizeof name, card);
    snprintf(text, text_bytes, "%d card%s, the first: %s; driver for CUDA %d.%d", count,
             count == 1 ? "" : "s", name, api.driver_version / 1000,
             api.driver_version % 1000 / 10);
    return true;
}

enum status cuda_device_open(const struct cuda_options *options, struct device **out,
                             struct error *error)
{
    struct cuda_api api;
    enum status status = cuda_api_open(&api, error);
    if (status != STATUS_OK)
        return status;
    (void)options;
    *out = NULL;
    return error_set(error, STATUS_MISSING, "the CUDA device of this build cannot be opened");
}
