/* The runtime's calls, for those that do not come by the driver's own functions: a call of the
 * runtime is recorded only where none of the driver was seen within it. */
#include "workloads/record/injection/state.h"

static void decode_pitch(const void *arguments, struct spool_record *record)
{
    const cudaMallocPitch_v3020_params *call = arguments;
    size_t width = call->width;
    if (call->pitch && *call->pitch > width)
        width = *call->pitch;
    record->bytes = width * call->height;
}

static void decode_3d(const void *arguments, struct spool_record *record)
{
    const cudaMalloc3D_v3020_params *call = arguments;
    if (!call->pitchedDevPtr)
        return;
    record->address = (uint64_t)(uintptr_t)call->pitchedDevPtr->ptr;
    record->bytes = call->pitchedDevPtr->pitch * call->extent.height * call->extent.depth;
}

static void decode_launch(const void *arguments, struct spool_record *record)
{
    const cudaLaunchKernelExC_v11060_params *call = arguments;
    record->stream = call->config ? (uint64_t)(uintptr_t)call->config->stream : 0;
}

#define ONE(name, ...) [CUPTI_RUNTIME_TRACE_CBID_##name] = {.kind = __VA_ARGS__}
/* Two rows: `own` is the form whose default stream is the thread's own. */
#define BOTH(name, own, ...)                                                                       \
    ONE(name, __VA_ARGS__),                                                                        \
        [CUPTI_RUNTIME_TRACE_CBID_##own] = {.per_thread = true, .kind = __VA_ARGS__}

static const struct call calls[] = {
    ONE(cudaMalloc_v3020, SPOOL_ALLOC, MADE(cudaMalloc_v3020, devPtr, size)),
    ONE(cudaMallocPitch_v3020, SPOOL_ALLOC, .decode = decode_pitch,
        .reads = {.made = ARGUMENT(cudaMallocPitch_v3020, devPtr)}),
    ONE(cudaMalloc3D_v3020, SPOOL_ALLOC, .decode = decode_3d),
    ONE(cudaMallocManaged_v6000, SPOOL_ALLOC, .flags = SPOOL_MANAGED,
        MADE(cudaMallocManaged_v6000, devPtr, size)),
    BOTH(cudaMallocAsync_v11020, cudaMallocAsync_ptsz_v11020, SPOOL_ALLOC,
         MADE_ON(cudaMallocAsync_v11020, devPtr, size, hStream)),
    BOTH(cudaMallocFromPoolAsync_v11020, cudaMallocFromPoolAsync_ptsz_v11020, SPOOL_ALLOC,
         MADE_FROM(cudaMallocFromPoolAsync_v11020, ptr, size, stream, memPool)),
    ONE(cudaMallocHost_v3020, SPOOL_ALLOC, .flags = SPOOL_PINNED,
        MADE(cudaMallocHost_v3020, ptr, size)),
    ONE(cudaHostAlloc_v3020, SPOOL_ALLOC, .flags = SPOOL_PINNED,
        MADE(cudaHostAlloc_v3020, pHost, size)),
    ONE(cudaFree_v3020, SPOOL_FREE, ADDRESS(cudaFree_v3020, devPtr)),
    ONE(cudaFreeHost_v3020, SPOOL_FREE, ADDRESS(cudaFreeHost_v3020, ptr)),
    BOTH(cudaFreeAsync_v11020, cudaFreeAsync_ptsz_v11020, SPOOL_FREE_ASYNC,
         ADDRESS_ON(cudaFreeAsync_v11020, devPtr, hStream)),
    BOTH(cudaEventRecord_v3020, cudaEventRecord_ptsz_v7000, SPOOL_EVENT,
         OTHER_ON(cudaEventRecord_v3020, event, stream)),
    BOTH(cudaEventRecordWithFlags_v11010, cudaEventRecordWithFlags_ptsz_v11010, SPOOL_EVENT,
         OTHER_ON(cudaEventRecordWithFlags_v11010, event, stream)),
    ONE(cudaEventDestroy_v3020, SPOOL_EVENT_GONE, OTHER(cudaEventDestroy_v3020, event)),
    BOTH(cudaStreamWaitEvent_v3020, cudaStreamWaitEvent_ptsz_v7000, SPOOL_WAIT,
         OTHER_ON(cudaStreamWaitEvent_v3020, event, stream)),
    BOTH(cudaStreamSynchronize_v3020, cudaStreamSynchronize_ptsz_v7000, SPOOL_SYNC,
         STREAM(cudaStreamSynchronize_v3020, stream)),
    ONE(cudaEventSynchronize_v3020, SPOOL_SYNC_EVENT, OTHER(cudaEventSynchronize_v3020, event)),
    ONE(cudaDeviceSynchronize_v3020, SPOOL_SYNC_DEVICE),
    ONE(cudaMemPoolTrimTo_v11020, SPOOL_TRIM,
        .reads = {.other = ARGUMENT(cudaMemPoolTrimTo_v11020, memPool),
                  .bytes = ARGUMENT(cudaMemPoolTrimTo_v11020, minBytesToKeep)}),
    BOTH(cudaLaunchKernel_v7000, cudaLaunchKernel_ptsz_v7000, SPOOL_LAUNCH,
         STREAM(cudaLaunchKernel_v7000, stream)),
#if CUDA_VERSION >= 13000 /* what <<<>>> becomes; its arguments are those of cudaLaunchKernel */
    BOTH(__cudaLaunchKernel_v13000, __cudaLaunchKernel_ptsz_v13000, SPOOL_LAUNCH,
         STREAM(cudaLaunchKernel_v7000, stream)),
#endif
    BOTH(cudaLaunchKernelExC_v11060, cudaLaunchKernelExC_ptsz_v11060, SPOOL_LAUNCH,
         .decode = decode_launch),
    BOTH(cudaLaunchCooperativeKernel_v9000, cudaLaunchCooperativeKernel_ptsz_v9000, SPOOL_LAUNCH,
         STREAM(cudaLaunchCooperativeKernel_v9000, stream)),
    BOTH(cudaGraphLaunch_v10000, cudaGraphLaunch_ptsz_v10000, SPOOL_LAUNCH,
         STREAM(cudaGraphLaunch_v10000, stream)),
};

const struct call *runtime_calls(size_t *count)
{
    *count = sizeof calls / sizeof calls[0];
    return calls;
}
