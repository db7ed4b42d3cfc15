/* The calls of the driver and of the runtime that are recorded, and the decoding of their
 * arguments. A call of the runtime is recorded only if no call of the driver of that kind was made
 * within it. */
#include "allocators/base/api.h"
#include "workloads/record/injection/state.h"

static void decode_driver_pitch(const void *arguments, struct spool_record *record)
{
    const cuMemAllocPitch_v2_params *call = arguments;
    size_t width = call->WidthInBytes;
    if (call->pPitch && *call->pPitch > width)
        width = *call->pPitch;
    record->bytes = width * call->Height;
}

static void decode_create(const void *arguments, struct spool_record *record)
{
    const cuMemCreate_params *call = arguments;
    record->other = call->handle ? *call->handle : 0;
    record->bytes = call->size;
    if (call->prop && call->prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        record->device = (uint16_t)call->prop->location.id;
    else
        record->flags |= SPOOL_PINNED;
}

static void decode_driver_launch(const void *arguments, struct spool_record *record)
{
    const cuLaunchKernelEx_params *call = arguments;
    record->stream = call->config ? (uint64_t)(uintptr_t)call->config->hStream : 0;
}

/* ---- the driver ---- */

#define ONE(name, ...) [CUPTI_DRIVER_TRACE_CBID_##name] = {.kind = __VA_ARGS__}
/* Two rows for a call with a second form (_ptsz), whose default stream is the thread's own; the
 * arguments are the same. */
#define BOTH(name, ...)                                                                            \
    ONE(name, __VA_ARGS__),                                                                        \
        [CUPTI_DRIVER_TRACE_CBID_##name##_ptsz] = {.per_thread = true, .kind = __VA_ARGS__}

static const struct call driver_table[] = {
    ONE(cuMemAlloc_v2, SPOOL_ALLOC, MADE(cuMemAlloc_v2, dptr, bytesize)),
    ONE(cuMemAllocPitch_v2, SPOOL_ALLOC, .decode = decode_driver_pitch,
        .reads = {.made = ARGUMENT(cuMemAllocPitch_v2, dptr)}),
    ONE(cuMemAllocManaged, SPOOL_ALLOC, .flags = SPOOL_MANAGED,
        MADE(cuMemAllocManaged, dptr, bytesize)),
    BOTH(cuMemAllocAsync, SPOOL_ALLOC, MADE_ON(cuMemAllocAsync, dptr, bytesize, hStream)),
    BOTH(cuMemAllocFromPoolAsync, SPOOL_ALLOC,
         MADE_FROM(cuMemAllocFromPoolAsync, dptr, bytesize, hStream, pool)),
    ONE(cuMemAllocHost_v2, SPOOL_ALLOC, .flags = SPOOL_PINNED,
        MADE(cuMemAllocHost_v2, pp, bytesize)),
    ONE(cuMemHostAlloc, SPOOL_ALLOC, .flags = SPOOL_PINNED, MADE(cuMemHostAlloc, pp, bytesize)),
    ONE(cuMemHostAlloc_v2, SPOOL_ALLOC, .flags = SPOOL_PINNED, MADE(cuMemHostAlloc, pp, bytesize)),
    ONE(cuMemFree_v2, SPOOL_FREE, ADDRESS(cuMemFree_v2, dptr)),
    BOTH(cuMemFreeAsync, SPOOL_FREE_ASYNC, ADDRESS_ON(cuMemFreeAsync, dptr, hStream)),
    ONE(cuMemFreeHost, SPOOL_FREE, ADDRESS(cuMemFreeHost, p)),
    ONE(cuMemCreate, SPOOL_CREATE, .decode = decode_create),
    ONE(cuMemRelease, SPOOL_RELEASE, OTHER(cuMemRelease, handle)),
    ONE(cuMemAddressReserve, SPOOL_RESERVE, MADE(cuMemAddressReserve, ptr, size)),
    ONE(cuMemAddressFree, SPOOL_UNRESERVE, RANGE(cuMemAddressFree, ptr, size)),
    ONE(cuMemMap, SPOOL_MAP,
        .reads = {.address = ARGUMENT(cuMemMap, ptr),
                  .bytes = ARGUMENT(cuMemMap, size),
                  .other = ARGUMENT(cuMemMap, handle)}),
    ONE(cuMemUnmap, SPOOL_UNMAP, RANGE(cuMemUnmap, ptr, size)),
    ONE(cuMemSetAccess, SPOOL_ACCESS, RANGE(cuMemSetAccess, ptr, size)),
    BOTH(cuEventRecord, SPOOL_EVENT, OTHER_ON(cuEventRecord, hEvent, hStream)),
    BOTH(cuEventRecordWithFlags, SPOOL_EVENT, OTHER_ON(cuEventRecordWithFlags, hEvent, hStream)),
    ONE(cuEventDestroy, SPOOL_EVENT_GONE, OTHER(cuEventDestroy_v2, hEvent)),
    ONE(cuEventDestroy_v2, SPOOL_EVENT_GONE, OTHER(cuEventDestroy_v2, hEvent)),
    BOTH(cuStreamWaitEvent, SPOOL_WAIT, OTHER_ON(cuStreamWaitEvent, hEvent, hStream)),
    BOTH(cuStreamSynchronize, SPOOL_SYNC, STREAM(cuStreamSynchronize, hStream)),
    ONE(cuEventSynchronize, SPOOL_SYNC_EVENT, OTHER(cuEventSynchronize, hEvent)),
    ONE(cuCtxSynchronize, SPOOL_SYNC_DEVICE),
#if CUDA_VERSION >= 13000
    ONE(cuCtxSynchronize_v2, SPOOL_SYNC_DEVICE),
#endif
    ONE(cuMemPoolTrimTo, SPOOL_TRIM,
        .reads = {.other = ARGUMENT(cuMemPoolTrimTo, pool),
                  .bytes = ARGUMENT(cuMemPoolTrimTo, minBytesToKeep)}),
    BOTH(cuLaunchKernel, SPOOL_LAUNCH, STREAM(cuLaunchKernel, hStream)),
    BOTH(cuLaunchKernelEx, SPOOL_LAUNCH, .decode = decode_driver_launch),
    BOTH(cuLaunchCooperativeKernel, SPOOL_LAUNCH, STREAM(cuLaunchCooperativeKernel, hStream)),
    BOTH(cuGraphLaunch, SPOOL_LAUNCH, STREAM(cuGraphLaunch, hStream)),
};

const struct call *driver_calls(size_t *count)
{
    *count = AR_COUNT(driver_table);
    return driver_table;
}

#undef ONE
#undef BOTH

/* ---- the runtime ---- */

static void decode_runtime_pitch(const void *arguments, struct spool_record *record)
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

static void decode_runtime_launch(const void *arguments, struct spool_record *record)
{
    const cudaLaunchKernelExC_v11060_params *call = arguments;
    record->stream = call->config ? (uint64_t)(uintptr_t)call->config->stream : 0;
}

#define ONE(name, ...) [CUPTI_RUNTIME_TRACE_CBID_##name] = {.kind = __VA_ARGS__}
/* Two rows: `own` is the form whose default stream is the thread's own. */
#define BOTH(name, own, ...)                                                                       \
    ONE(name, __VA_ARGS__),                                                                        \
        [CUPTI_RUNTIME_TRACE_CBID_##own] = {.per_thread = true, .kind = __VA_ARGS__}

static const struct call runtime_table[] = {
    ONE(cudaMalloc_v3020, SPOOL_ALLOC, MADE(cudaMalloc_v3020, devPtr, size)),
    ONE(cudaMallocPitch_v3020, SPOOL_ALLOC, .decode = decode_runtime_pitch,
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
         .decode = decode_runtime_launch),
    BOTH(cudaLaunchCooperativeKernel_v9000, cudaLaunchCooperativeKernel_ptsz_v9000, SPOOL_LAUNCH,
         STREAM(cudaLaunchCooperativeKernel_v9000, stream)),
    BOTH(cudaGraphLaunch_v10000, cudaGraphLaunch_ptsz_v10000, SPOOL_LAUNCH,
         STREAM(cudaGraphLaunch_v10000, stream)),
};

const struct call *runtime_calls(size_t *count)
{
    *count = AR_COUNT(runtime_table);
    return runtime_table;
}
