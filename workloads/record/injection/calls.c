/* The driver's calls that are recorded, and what is read from their arguments. */
#include "workloads/record/injection/state.h"

static void decode_pitch(const void *arguments, struct spool_record *record)
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

static void decode_launch(const void *arguments, struct spool_record *record)
{
    const cuLaunchKernelEx_params *call = arguments;
    record->stream = call->config ? (uint64_t)(uintptr_t)call->config->hStream : 0;
}

#define ONE(name, ...) [CUPTI_DRIVER_TRACE_CBID_##name] = {.kind = __VA_ARGS__}
/* Two rows where the call has a form whose default stream is the thread's own; the arguments are
 * the same. */
#define BOTH(name, ...)                                                                            \
    ONE(name, __VA_ARGS__),                                                                        \
        [CUPTI_DRIVER_TRACE_CBID_##name##_ptsz] = {.per_thread = true, .kind = __VA_ARGS__}

static const struct call calls[] = {
    ONE(cuMemAlloc_v2, SPOOL_ALLOC, MADE(cuMemAlloc_v2, dptr, bytesize)),
    ONE(cuMemAllocPitch_v2, SPOOL_ALLOC, .decode = decode_pitch,
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
    BOTH(cuLaunchKernelEx, SPOOL_LAUNCH, .decode = decode_launch),
    BOTH(cuLaunchCooperativeKernel, SPOOL_LAUNCH, STREAM(cuLaunchCooperativeKernel, hStream)),
    BOTH(cuGraphLaunch, SPOOL_LAUNCH, STREAM(cuGraphLaunch, hStream)),
};

const struct call *driver_calls(size_t *count)
{
    *count = sizeof calls / sizeof calls[0];
    return calls;
}
