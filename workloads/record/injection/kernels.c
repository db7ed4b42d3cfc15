/* How long kernels ran: CUPTI's records of them, which bear the number of the call that launched
 * them. */
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "workloads/record/injection/state.h"

#define BUFFER_BYTES    (UINT64_C(1) << 20)
#define BUFFER_ALIGN    8u
#define FLUSH_PERIOD_MS 1000u

/* The oldest layout that the supported libraries fill; later ones only add behind it. */
typedef CUpti_ActivityKernel9 kernel_record;
_Static_assert(offsetof(kernel_record, correlationId) ==
                       offsetof(CUpti_ActivityKernel8, correlationId) &&
                   offsetof(kernel_record, end) == offsetof(CUpti_ActivityKernel8, end),
               "the fields that are read stay where they are");

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *bytes, size_t *records_most)
{
    *buffer = aligned_alloc(BUFFER_ALIGN, BUFFER_BYTES);
    *bytes = *buffer ? BUFFER_BYTES : 0;
    *records_most = 0;
}

static void keep(struct spool_writer *writer, const kernel_record *kernel)
{
    struct spool_record *record = spool_writer_begin(writer);
    if (!record)
        return;
    record->time_ns = recorder_now_ns();
    record->bytes = kernel->end > kernel->start ? kernel->end - kernel->start : 0;
    record->other = kernel->start;
    record->correlation = kernel->correlationId;
    record->device = (uint16_t)kernel->deviceId;
    spool_writer_end(writer, record, SPOOL_KERNEL);
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t bytes,
                                 size_t valid_bytes)
{
    struct recorder *recorder = recorder_get();
    struct spool_writer *writer = spool_writer_of_thread(recorder);
    CUpti_Activity *activity = NULL;
    (void)context;
    (void)stream;
    (void)bytes;
    while (writer && valid_bytes &&
           recorder->cupti.cuptiActivityGetNextRecord(buffer, valid_bytes, &activity) ==
               CUPTI_SUCCESS)
        if (activity->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ||
            activity->kind == CUPTI_ACTIVITY_KIND_KERNEL)
            keep(writer, (const kernel_record *)(const void *)activity);
    free(buffer);
}

/* Before the driver ends with the process. A forked child has none of CUPTI's threads. */
static void flush(void)
{
    if (recorder_get()->process == getpid())
        (void)recorder_get()->cupti.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
}

CUptiResult kernels_start(struct recorder *recorder)
{
    CUptiResult result = recorder->cupti.cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
    if (result == CUPTI_SUCCESS)
        result = recorder->cupti.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    if (result != CUPTI_SUCCESS)
        return result;
    if (recorder->cupti.cuptiActivityFlushPeriod)
        (void)recorder->cupti.cuptiActivityFlushPeriod(FLUSH_PERIOD_MS);
    (void)atexit(flush);
    return CUPTI_SUCCESS;
}
