/* What the frameworks derive from their settings: the limit of the pool, the split threshold,
 * whether free regions are collected, and the text that a user sets.
 *
 * The limit is the first of these that applies:
 * 1. `limit` (the memory_limit of a logical device in TensorFlow, there in MiB).
 * 2. `system_memory`: free memory less this value, unless it exceeds free memory.
 * 3. `fraction` of total memory (per_process_gpu_memory_fraction; XLA_CLIENT_MEM_FRACTION).
 * 4. framework=jax: 0.75 of total memory. framework=tf: free memory less what TensorFlow leaves to
 *    the system: 225 MiB if less than 2 GiB are free, else 500, 1050, 1536 or 1800 MiB for compute
 *    capability up to 6, 7, 8 and above; all of it if no more is free.
 * Source: tensorflow, gpu_device.cc (SingleVirtualDeviceMemoryLimit, MinSystemMemory); openxla/xla,
 * gpu_helpers.cc; jax-ml/jax, xla_client.py. */

#include "allocators/policies/bfc/bfc.h"

#define UNLIMITED_BYTES     (UINT64_C(1) << 60)
#define DEFAULT_SPLIT_BYTES (128 * AR_MIB)
#define JAX_FRACTION        0.75

uint64_t bfc_system_bytes(uint64_t available_bytes, uint64_t compute_capability)
{
    if (available_bytes < 2 * AR_GIB)
        return 225 * AR_MIB;
    if (compute_capability <= 6)
        return 500 * AR_MIB;
    if (compute_capability == 7)
        return 1050 * AR_MIB;
    return compute_capability == 8 ? 1536 * AR_MIB : 1800 * AR_MIB;
}

static uint64_t default_limit(uint64_t available_bytes, uint64_t compute_capability)
{
    uint64_t system_bytes = bfc_system_bytes(available_bytes, compute_capability);
    return system_bytes < available_bytes ? available_bytes - system_bytes : available_bytes;
}

static uint64_t fraction_of(uint64_t bytes, double fraction)
{
    return (uint64_t)((double)bytes * fraction);
}

uint64_t bfc_limit(const struct bfc_values *values, uint64_t free_bytes, uint64_t total_bytes)
{
    if (values->common.limit_bytes)
        return values->common.limit_bytes;
    if (free_bytes > UNLIMITED_BYTES)
        free_bytes = UNLIMITED_BYTES;
    if (total_bytes > UNLIMITED_BYTES)
        total_bytes = UNLIMITED_BYTES;
    if (values->system_bytes && values->system_bytes <= free_bytes)
        return free_bytes - values->system_bytes;
    if (values->fraction > 0)
        return fraction_of(total_bytes, values->fraction);
    if (values->framework == BFC_JAX)
        return fraction_of(total_bytes, JAX_FRACTION);
    return default_limit(free_bytes, values->compute_capability);
}

uint64_t bfc_split_bytes(const struct bfc_values *values, uint64_t limit_bytes)
{
    return values->fragmentation_fraction > 0
               ? fraction_of(limit_bytes, values->fragmentation_fraction)
               : DEFAULT_SPLIT_BYTES;
}

bool bfc_collects(const struct bfc_values *values)
{
    return values->collection == BFC_COLLECTION_DEFAULT ? values->framework == BFC_TENSORFLOW
                                                        : values->collection == BFC_COLLECTION_ON;
}

enum ar_status bfc_values_check(const struct bfc_values *values, const struct ar_backing *backing,
                                struct ar_error *error)
{
    if (values->two_ended && values->growth)
        return ar_invalid(error, "two_ended=true needs one region of fixed size, but growth=true "
                                 "makes several: set growth=false");
    if (values->coalesce && !backing->adjacent)
        return ar_invalid(error, "coalesce=true needs a device whose allocations can touch, and "
                                 "those of this device never do; leave it out");
    return AR_OK;
}

/* A text that grows by appending, up to its room. */
struct text {
    char *at;
    size_t bytes, used;
};

static __attribute__((format(printf, 2, 3))) void put(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int written = vsnprintf(text->at + text->used, text->bytes - text->used, format, arguments);
    va_end(arguments);
    if (written > 0) {
        text->used += (size_t)written;
        if (text->used >= text->bytes)
            text->used = text->bytes - 1;
    }
}

static void put_tensorflow(const struct bfc *self, const struct bfc_values *given,
                           struct text *text)
{
    put(text, "TF_FORCE_GPU_ALLOW_GROWTH=%s", given->growth ? "true" : "false");
    if (given->collection == BFC_COLLECTION_OFF)
        put(text, " TF_ENABLE_GPU_GARBAGE_COLLECTION=false");
    if (self->limit_given)
        put(text,
            "; tf.config.set_logical_device_configuration(gpu, "
            "[tf.config.LogicalDeviceConfiguration(memory_limit=%" PRIu64 ")])",
            given->common.limit_bytes / AR_MIB);
    else if (given->system_bytes)
        put(text, " TF_DEVICE_MIN_SYS_MEMORY_IN_MB=%" PRIu64, given->system_bytes / AR_MIB);
    else if (given->fraction > 0)
        put(text, "; tf.compat.v1.GPUOptions(per_process_gpu_memory_fraction=%g)", given->fraction);
    if (given->fragmentation_fraction > 0)
        put(text, "; GPUOptions.experimental.internal_fragmentation_fraction=%g",
            given->fragmentation_fraction);
}

bool bfc_setting(const struct ar_policy *base, char *text_at, size_t text_bytes)
{
    const struct bfc *self = (const struct bfc *)base;
    const struct bfc_values *given = &self->values;
    bool first_region = given->first_region_bytes && given->first_region_bytes != 2 * AR_MIB;
    if (text_bytes == 0 || given->coalesce || given->two_ended || first_region)
        return false;
    struct text text = {.at = text_at, .bytes = text_bytes};
    if (given->framework == BFC_TENSORFLOW) {
        put_tensorflow(self, given, &text);
        return true;
    }
    if (given->collection == BFC_COLLECTION_ON || given->fragmentation_fraction > 0 ||
        given->system_bytes)
        return false;
    put(&text, "XLA_PYTHON_CLIENT_PREALLOCATE=%s", given->growth ? "false" : "true");
    if (self->limit_given && self->total_bytes)
        put(&text, " XLA_CLIENT_MEM_FRACTION=%.6g",
            (double)given->common.limit_bytes / (double)self->total_bytes);
    else if (given->fraction > 0)
        put(&text, " XLA_CLIENT_MEM_FRACTION=%g", given->fraction);
    return true;
}
