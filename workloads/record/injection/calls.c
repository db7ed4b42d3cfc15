/* The driver's calls that are recorded, and what is read from their arguments. */
#include "workloads/record/injection/state.h"

/* Where the argument is a pointer to what the call made. */
static uint64_t made(const CUdeviceptr *place)
{
    return place ? *place : 0;
}

static uint64_t made_host(void *const *place)
{
    return place ? (uint64_t)(uintptr_t)*place : 0;
}

static uint64_t number_of(const void *handle)
{
    return (uint64_t)(uintptr_t)handle;
}

#define DECODE(name)                                                                               \
    static void decode_##name(const void *arguments, struct spool_record *record);                 \
    static void fill_##name(const name##_params *call, struct spool_record *record);               \
    static void decode_##name(const void *arguments, struct spool_record *record)                  \
    {                                                                                              \
        fill_##name((const name##_params *)arguments, record);                                     \
    }                                                                                              \
    static void fill_##name(const name##_params *call, struct spool_record *record)

DECODE(cuMemAlloc_v2)
{
    record->address = made(call->dptr);
    record->bytes = call->bytesize;
}

DECODE(cuMemAllocPitch_v2)
{
    record->address = made(call->dptr);
    record->bytes =
        (call->pPitch && *call->pPitch >= call->WidthInBytes ? *call->pPitch : call->WidthInBytes) *
        call->Height;
}

DECODE(cuMemAllocManaged)
{
    record->address = made(call->dptr);
    record->bytes = call->bytesize;
}

DECODE(cuMemAllocAsync)
{
    record->address = made(call->dptr);
    record->bytes = call->bytesize;
    record->stream = number_of(call->hStream);
}

DECODE(cuMemAllocFromPoolAsync)
{
    record->address = made(call->dptr);
    record->bytes = call->bytesize;
    record->stream = number_of(call->hStream);
    record->other = number_of(call->pool);
}

DECODE(cuMemAllocHost_v2)
{
    record->address = made_host(call->pp);
    record->bytes = call->bytesize;
}

DECODE(cuMemHostAlloc)
{
    record->address = made_host(call->pp);
    record->bytes = call->bytesize;
}

DECODE(cuMemFree_v2)
{
    record->address = call->dptr;
}

DECODE(cuMemFreeAsync)
{
    record->address = call->dptr;
    record->stream = number_of(call->hStream);
}

DECODE(cuMemFreeHost)
{
    record->address = number_of(call->p);
}

DECODE(cuMemCreate)
{
    record->other = call->handle ? *call->handle : 0;
    record->bytes = call->size;
    if (call->prop && call->prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        record->device = (uint16_t)call->prop->location.id;
    else
        record->flags |= SPOOL_PINNED;
}

DECODE(cuMemRelease)
{
    record->other = call->handle;
}

DECODE(cuMemAddressReserve)
{
    record->address = made(call->ptr);
    record->bytes = call->size;
}

DECODE(cuMemAddressFree)
{
    record->address = call->ptr;
    record->bytes = call->size;
}

DECODE(cuMemMap)
{
    record->address = call->ptr;
    record->bytes = call->size;
    record->other = call->handle;
}

DECODE(cuMemUnmap)
{
    record->address = call->ptr;
    record->bytes = call->size;
}

DECODE(cuMemSetAccess)
{
    record->address = call->ptr;
    record->bytes = call->size;
}

DECODE(cuEventRecord)
{
    record->other = number_of(call->hEvent);
    record->stream = number_of(call->hStream);
}

DECODE(cuEventRecordWithFlags)
{
    record->other = number_of(call->hEvent);
    record->stream = number_of(call->hStream);
}

DECODE(cuEventDestroy_v2)
{
    record->other = number_of(call->hEvent);
}

DECODE(cuStreamWaitEvent)
{
    record->other = number_of(call->hEvent);
    record->stream = number_of(call->hStream);
}

DECODE(cuStreamSynchronize)
{
    record->stream = number_of(call->hStream);
}

DECODE(cuEventSynchronize)
{
    record->other = number_of(call->hEvent);
}

DECODE(cuLaunchKernel)
{
    record->stream = number_of(call->hStream);
}

DECODE(cuLaunchKernelEx)
{
    record->stream = call->config ? number_of(call->config->hStream) : 0;
}

DECODE(cuLaunchCooperativeKernel)
{
    record->stream = number_of(call->hStream);
}

DECODE(cuGraphLaunch)
{
    record->stream = number_of(call->hStream);
}

DECODE(cuMemPoolTrimTo)
{
    record->other = number_of(call->pool);
    record->bytes = call->minBytesToKeep;
}

static void decode_nothing(const void *arguments, struct spool_record *record)
{
    (void)arguments;
    (void)record;
}

/* Two rows where the call has a form whose default stream is the thread's own; the arguments are
 * the same. */
#define ONE(name, how, ...)                                                                        \
    [CUPTI_DRIVER_TRACE_CBID_##name] = {.decode = decode_##how, .kind = __VA_ARGS__}
#define BOTH(name, how, ...)                                                                       \
    ONE(name, how, __VA_ARGS__),                                                                   \
        [CUPTI_DRIVER_TRACE_CBID_##name##                                                          \
            _ptsz] = {.decode = decode_##how, .per_thread = true, .kind = __VA_ARGS__}

static const struct call calls[] = {
    ONE(cuMemAlloc_v2, cuMemAlloc_v2, SPOOL_ALLOC),
    ONE(cuMemAllocPitch_v2, cuMemAllocPitch_v2, SPOOL_ALLOC),
    ONE(cuMemAllocManaged, cuMemAllocManaged, SPOOL_ALLOC, .flags = SPOOL_MANAGED),
    BOTH(cuMemAllocAsync, cuMemAllocAsync, SPOOL_ALLOC),
    BOTH(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync, SPOOL_ALLOC),
    ONE(cuMemAllocHost_v2, cuMemAllocHost_v2, SPOOL_ALLOC, .flags = SPOOL_PINNED),
    ONE(cuMemHostAlloc, cuMemHostAlloc, SPOOL_ALLOC, .flags = SPOOL_PINNED),
    ONE(cuMemHostAlloc_v2, cuMemHostAlloc, SPOOL_ALLOC, .flags = SPOOL_PINNED),
    ONE(cuMemFree_v2, cuMemFree_v2, SPOOL_FREE, .at_begin = true),
    BOTH(cuMemFreeAsync, cuMemFreeAsync, SPOOL_FREE_ASYNC, .at_begin = true),
    ONE(cuMemFreeHost, cuMemFreeHost, SPOOL_FREE, .at_begin = true),
    ONE(cuMemCreate, cuMemCreate, SPOOL_CREATE),
    ONE(cuMemRelease, cuMemRelease, SPOOL_RELEASE, .at_begin = true),
    ONE(cuMemAddressReserve, cuMemAddressReserve, SPOOL_RESERVE),
    ONE(cuMemAddressFree, cuMemAddressFree, SPOOL_UNRESERVE, .at_begin = true),
    ONE(cuMemMap, cuMemMap, SPOOL_MAP),
    ONE(cuMemUnmap, cuMemUnmap, SPOOL_UNMAP, .at_begin = true),
    ONE(cuMemSetAccess, cuMemSetAccess, SPOOL_ACCESS),
    BOTH(cuEventRecord, cuEventRecord, SPOOL_EVENT, .at_begin = true),
    BOTH(cuEventRecordWithFlags, cuEventRecordWithFlags, SPOOL_EVENT, .at_begin = true),
    ONE(cuEventDestroy, cuEventDestroy_v2, SPOOL_EVENT_GONE, .at_begin = true),
    ONE(cuEventDestroy_v2, cuEventDestroy_v2, SPOOL_EVENT_GONE, .at_begin = true),
    BOTH(cuStreamWaitEvent, cuStreamWaitEvent, SPOOL_WAIT, .at_begin = true),
    BOTH(cuStreamSynchronize, cuStreamSynchronize, SPOOL_SYNC),
    ONE(cuEventSynchronize, cuEventSynchronize, SPOOL_SYNC_EVENT),
    ONE(cuCtxSynchronize, nothing, SPOOL_SYNC_DEVICE),
#if CUDA_VERSION >= 13000
    ONE(cuCtxSynchronize_v2, nothing, SPOOL_SYNC_DEVICE),
#endif
    ONE(cuMemPoolTrimTo, cuMemPoolTrimTo, SPOOL_TRIM, .at_begin = true),
    BOTH(cuLaunchKernel, cuLaunchKernel, SPOOL_LAUNCH, .at_begin = true),
    BOTH(cuLaunchKernelEx, cuLaunchKernelEx, SPOOL_LAUNCH, .at_begin = true),
    BOTH(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel, SPOOL_LAUNCH, .at_begin = true),
    BOTH(cuGraphLaunch, cuGraphLaunch, SPOOL_LAUNCH, .at_begin = true),
};

const struct call *driver_calls(size_t *count)
{
    *count = sizeof calls / sizeof calls[0];
    return calls;
}
