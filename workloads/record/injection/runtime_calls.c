/* The runtime's calls, for those that do not come by the driver's own functions: a call of the
 * runtime is recorded only where none of the driver was seen within it. */
#include "workloads/record/injection/state.h"

static uint64_t number_of(const void *handle)
{
    return (uint64_t)(uintptr_t)handle;
}

static uint64_t made(void *const *place)
{
    return place ? number_of(*place) : 0;
}

#define DECODE(name)                                                                               \
    static void decode_##name(const void *arguments, struct spool_record *record);                 \
    static void fill_##name(const name##_params *call, struct spool_record *record);               \
    static void decode_##name(const void *arguments, struct spool_record *record)                  \
    {                                                                                              \
        fill_##name((const name##_params *)arguments, record);                                     \
    }                                                                                              \
    static void fill_##name(const name##_params *call, struct spool_record *record)

DECODE(cudaMalloc_v3020)
{
    record->address = made(call->devPtr);
    record->bytes = call->size;
}

DECODE(cudaMallocPitch_v3020)
{
    record->address = made(call->devPtr);
    record->bytes =
        (call->pitch && *call->pitch >= call->width ? *call->pitch : call->width) * call->height;
}

DECODE(cudaMalloc3D_v3020)
{
    if (!call->pitchedDevPtr)
        return;
    record->address = number_of(call->pitchedDevPtr->ptr);
    record->bytes = call->pitchedDevPtr->pitch * call->extent.height * call->extent.depth;
}

DECODE(cudaMallocManaged_v6000)
{
    record->address = made(call->devPtr);
    record->bytes = call->size;
}

DECODE(cudaMallocAsync_v11020)
{
    record->address = made(call->devPtr);
    record->bytes = call->size;
    record->stream = number_of(call->hStream);
}

DECODE(cudaMallocFromPoolAsync_v11020)
{
    record->address = made(call->ptr);
    record->bytes = call->size;
    record->stream = number_of(call->stream);
    record->other = number_of(call->memPool);
}

DECODE(cudaMallocHost_v3020)
{
    record->address = made(call->ptr);
    record->bytes = call->size;
}

DECODE(cudaHostAlloc_v3020)
{
    record->address = made(call->pHost);
    record->bytes = call->size;
}

DECODE(cudaFree_v3020)
{
    record->address = number_of(call->devPtr);
}

DECODE(cudaFreeHost_v3020)
{
    record->address = number_of(call->ptr);
}

DECODE(cudaFreeAsync_v11020)
{
    record->address = number_of(call->devPtr);
    record->stream = number_of(call->hStream);
}

DECODE(cudaEventRecord_v3020)
{
    record->other = number_of(call->event);
    record->stream = number_of(call->stream);
}

DECODE(cudaEventRecordWithFlags_v11010)
{
    record->other = number_of(call->event);
    record->stream = number_of(call->stream);
}

DECODE(cudaEventDestroy_v3020)
{
    record->other = number_of(call->event);
}

DECODE(cudaStreamWaitEvent_v3020)
{
    record->other = number_of(call->event);
    record->stream = number_of(call->stream);
}

DECODE(cudaStreamSynchronize_v3020)
{
    record->stream = number_of(call->stream);
}

DECODE(cudaEventSynchronize_v3020)
{
    record->other = number_of(call->event);
}

DECODE(cudaLaunchKernel_v7000)
{
    record->stream = number_of(call->stream);
}

DECODE(cudaLaunchKernelExC_v11060)
{
    record->stream = call->config ? number_of(call->config->stream) : 0;
}

DECODE(cudaLaunchCooperativeKernel_v9000)
{
    record->stream = number_of(call->stream);
}

DECODE(cudaGraphLaunch_v10000)
{
    record->stream = number_of(call->stream);
}

DECODE(cudaMemPoolTrimTo_v11020)
{
    record->other = number_of(call->memPool);
    record->bytes = call->minBytesToKeep;
}

static void decode_nothing(const void *arguments, struct spool_record *record)
{
    (void)arguments;
    (void)record;
}

#define ONE(name, how, ...)                                                                        \
    [CUPTI_RUNTIME_TRACE_CBID_##name] = {.decode = decode_##how, .kind = __VA_ARGS__}
#define PTSZ(name, how, ...)                                                                       \
    [CUPTI_RUNTIME_TRACE_CBID_##                                                                   \
        name] = {.decode = decode_##how, .per_thread = true, .kind = __VA_ARGS__}
/* begun: the record bears the time at which the call began. */
#define BEGUN .at_begin = true

static const struct call calls[] = {
    ONE(cudaMalloc_v3020, cudaMalloc_v3020, SPOOL_ALLOC),
    ONE(cudaMallocPitch_v3020, cudaMallocPitch_v3020, SPOOL_ALLOC),
    ONE(cudaMalloc3D_v3020, cudaMalloc3D_v3020, SPOOL_ALLOC),
    ONE(cudaMallocManaged_v6000, cudaMallocManaged_v6000, SPOOL_ALLOC, .flags = SPOOL_MANAGED),
    ONE(cudaMallocAsync_v11020, cudaMallocAsync_v11020, SPOOL_ALLOC),
    PTSZ(cudaMallocAsync_ptsz_v11020, cudaMallocAsync_v11020, SPOOL_ALLOC),
    ONE(cudaMallocFromPoolAsync_v11020, cudaMallocFromPoolAsync_v11020, SPOOL_ALLOC),
    PTSZ(cudaMallocFromPoolAsync_ptsz_v11020, cudaMallocFromPoolAsync_v11020, SPOOL_ALLOC),
    ONE(cudaMallocHost_v3020, cudaMallocHost_v3020, SPOOL_ALLOC, .flags = SPOOL_PINNED),
    ONE(cudaHostAlloc_v3020, cudaHostAlloc_v3020, SPOOL_ALLOC, .flags = SPOOL_PINNED),
    ONE(cudaFree_v3020, cudaFree_v3020, SPOOL_FREE, BEGUN),
    ONE(cudaFreeHost_v3020, cudaFreeHost_v3020, SPOOL_FREE, BEGUN),
    ONE(cudaFreeAsync_v11020, cudaFreeAsync_v11020, SPOOL_FREE_ASYNC, BEGUN),
    PTSZ(cudaFreeAsync_ptsz_v11020, cudaFreeAsync_v11020, SPOOL_FREE_ASYNC, BEGUN),
    ONE(cudaEventRecord_v3020, cudaEventRecord_v3020, SPOOL_EVENT, BEGUN),
    PTSZ(cudaEventRecord_ptsz_v7000, cudaEventRecord_v3020, SPOOL_EVENT, BEGUN),
    ONE(cudaEventRecordWithFlags_v11010, cudaEventRecordWithFlags_v11010, SPOOL_EVENT, BEGUN),
    PTSZ(cudaEventRecordWithFlags_ptsz_v11010, cudaEventRecordWithFlags_v11010, SPOOL_EVENT, BEGUN),
    ONE(cudaEventDestroy_v3020, cudaEventDestroy_v3020, SPOOL_EVENT_GONE, BEGUN),
    ONE(cudaStreamWaitEvent_v3020, cudaStreamWaitEvent_v3020, SPOOL_WAIT, BEGUN),
    PTSZ(cudaStreamWaitEvent_ptsz_v7000, cudaStreamWaitEvent_v3020, SPOOL_WAIT, BEGUN),
    ONE(cudaStreamSynchronize_v3020, cudaStreamSynchronize_v3020, SPOOL_SYNC),
    PTSZ(cudaStreamSynchronize_ptsz_v7000, cudaStreamSynchronize_v3020, SPOOL_SYNC),
    ONE(cudaEventSynchronize_v3020, cudaEventSynchronize_v3020, SPOOL_SYNC_EVENT),
    ONE(cudaDeviceSynchronize_v3020, nothing, SPOOL_SYNC_DEVICE),
    ONE(cudaMemPoolTrimTo_v11020, cudaMemPoolTrimTo_v11020, SPOOL_TRIM, BEGUN),
    ONE(cudaLaunchKernel_v7000, cudaLaunchKernel_v7000, SPOOL_LAUNCH, BEGUN),
    PTSZ(cudaLaunchKernel_ptsz_v7000, cudaLaunchKernel_v7000, SPOOL_LAUNCH, BEGUN),
#if CUDA_VERSION >= 13000 /* what <<<>>> becomes; its arguments are those of cudaLaunchKernel */
    ONE(__cudaLaunchKernel_v13000, cudaLaunchKernel_v7000, SPOOL_LAUNCH, BEGUN),
    PTSZ(__cudaLaunchKernel_ptsz_v13000, cudaLaunchKernel_v7000, SPOOL_LAUNCH, BEGUN),
#endif
    ONE(cudaLaunchKernelExC_v11060, cudaLaunchKernelExC_v11060, SPOOL_LAUNCH, BEGUN),
    PTSZ(cudaLaunchKernelExC_ptsz_v11060, cudaLaunchKernelExC_v11060, SPOOL_LAUNCH, BEGUN),
    ONE(cudaLaunchCooperativeKernel_v9000, cudaLaunchCooperativeKernel_v9000, SPOOL_LAUNCH, BEGUN),
    PTSZ(cudaLaunchCooperativeKernel_ptsz_v9000, cudaLaunchCooperativeKernel_v9000, SPOOL_LAUNCH,
         BEGUN),
    ONE(cudaGraphLaunch_v10000, cudaGraphLaunch_v10000, SPOOL_LAUNCH, BEGUN),
    PTSZ(cudaGraphLaunch_ptsz_v10000, cudaGraphLaunch_v10000, SPOOL_LAUNCH, BEGUN),
};

const struct call *runtime_calls(size_t *count)
{
    *count = sizeof calls / sizeof calls[0];
    return calls;
}
