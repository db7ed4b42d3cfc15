/* The kind `cuda` for the table of devices. Every build has it; one without CUDA headers reports
 * that. */

#include "bench/cuda/cuda_device.h"

static const struct ar_option cuda_options[] = {
    {"ordinal", AR_OPTION_COUNT, offsetof(struct cuda_options, ordinal), "0", 0, 1023, NULL,
     "which of the visible cards, from 0"},
    {"capacity", AR_OPTION_BYTES, offsetof(struct cuda_options, capacity_bytes), "0", 0, 0, NULL,
     "bytes that the process may have; 0: all that the card has free"},
    {"record_addresses", AR_OPTION_TEXT, offsetof(struct cuda_options, record_addresses), NULL, 0,
     0, NULL, "a file for the segments' addresses (CSV ordinal,bytes,address), as sim's addresses"},
    {"record_ranges", AR_OPTION_TEXT, offsetof(struct cuda_options, record_ranges), NULL, 0, 0,
     NULL, "a file for those of reserved ranges, as sim's ranges"},
    {"matmul", AR_OPTION_CHOICE, offsetof(struct cuda_options, matmul), "cublas", 0, 0,
     "cublas|early|plain",
     "how matrix products are done: cuBLAS, opened at the first one; early: opened with the "
     "device, so that it takes its memory before the policy; plain: a slow kernel of this program"},
    {"shared", AR_OPTION_BOOL, offsetof(struct cuda_options, shared), "no", 0, 0, NULL,
     "other processes come and go: it may have whatever the driver gives, now or later, not what "
     "was free when it was opened"},
    {NULL, AR_OPTION_BOOL, 0, NULL, 0, 0, NULL, NULL},
};

#if HAVE_CUDA

static bool kind_available(char *text, size_t text_bytes)
{
    return cuda_device_available(text, text_bytes);
}

static enum ar_status kind_open(const struct ar_spec_link *link, struct ar_device **out,
                                struct ar_error *error)
{
    struct cuda_options options = {0};
    AR_TRY(ar_options_read(cuda_options, link, "device cuda", &options, error));
    return cuda_device_open(&options, out, error);
}

void cuda_kind_enter(struct ar_device *device)
{
    cuda_device_enter(device);
}

#else

void cuda_kind_enter(struct ar_device *device)
{
    (void)device; /* there is none */
}

static bool kind_available(char *text, size_t text_bytes)
{
    snprintf(text, text_bytes,
             "this build was made without CUDA's headers (cuda.h); install a CUDA toolkit and "
             "build again, or use the simulated device, sim");
    return false;
}

static enum ar_status kind_open(const struct ar_spec_link *link, struct ar_device **out,
                                struct ar_error *error)
{
    struct cuda_options options = {0};
    AR_TRY(ar_options_read(cuda_options, link, "device cuda", &options, error));
    char why[256];
    *out = NULL;
    (void)kind_available(why, sizeof why);
    return ar_error_set(error, AR_MISSING, "%s", why);
}

#endif

const struct ar_device_kind cuda_device_kind = {
    .name = "cuda",
    .summary = "a real card through the CUDA driver",
    .options = cuda_options,
    .open = kind_open,
    .available = kind_available,
};
