/* What the driver answers, as statuses and sentences.
 *
 * 1. Where memory is what it lacks, that is an outcome: REFUSED, without a sentence.
 * 2. Every other error is the device's end: such errors come late, for work of long before, and
 *    most stay until the process ends. Its sentence is kept, and nothing is asked any more: what
 *    a clean-up does wrong after it is a consequence, and must not stand where the cause stood. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "bench/cuda/state.h"

enum ar_status cuda_misuse(struct cuda_device *self, const char *format, ...)
{
    if (self->base.failed)
        return AR_INVALID;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(self->problem, sizeof self->problem, format, arguments);
    va_end(arguments);
    return AR_INVALID;
}

static enum ar_status driver_failed(struct cuda_device *self, CUresult result, const char *call,
                                    uint64_t bytes)
{
    if (self->base.failed) /* the first error is the cause of the others */
        return AR_INVALID;
    const char *meaning = NULL;
    char size[48] = "";
    if (self->api.get_error_string(result, &meaning) != CUDA_SUCCESS || !meaning)
        meaning = "no description";
    if (bytes)
        snprintf(size, sizeof size, " of %" PRIu64 " bytes", bytes);
    (void)cuda_misuse(self,
                      "the driver failed: %s%s returned %s (%s), which may come from work queued "
                      "before it; run it again under compute-sanitizer, and see dmesg",
                      call, size, cuda_result_name(&self->api, result), meaning);
    self->base.failed = true; /* from here on the sentence stays */
    return AR_INVALID;
}

enum ar_status cuda_answer(struct cuda_device *self, CUresult result, const char *call,
                           uint64_t bytes)
{
    if (result == CUDA_SUCCESS)
        return AR_OK;
    if (result == CUDA_ERROR_OUT_OF_MEMORY && !self->base.failed)
        return AR_REFUSED;
    return driver_failed(self, result, call, bytes);
}

bool cuda_worked(struct cuda_device *self, CUresult result, const char *call)
{
    return result == CUDA_SUCCESS || driver_failed(self, result, call, 0) == AR_OK;
}

enum ar_status cuda_ready(struct cuda_device *self)
{
    if (self->base.failed)
        return AR_INVALID;
    return self->out_of_host_memory || self->memory.lost ? AR_HOST_MEMORY : AR_OK;
}

void cuda_show_memory(struct cuda_device *self)
{
    struct ar_device_counters *counters = &self->base.counters;
    counters->physical_bytes = self->ledger.physical_bytes;
    counters->peak_physical_bytes = self->ledger.peak_physical_bytes;
    counters->outside_bytes = self->ledger.outside_bytes;
    counters->others_bytes =
        self->capacity_given ? self->ledger.others_bytes : self->card_others_bytes;
}
