/* Calls that a watcher is told of, as CUPTI is by the driver, and behind a lock, so that many
 * threads may make them. Those that only programs make, not the device under test, are here,
 * too. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cuda_stand_in/stand_in.h"

void stand_in_inject(void)
{
    static bool done;
    const char *path = getenv("CUDA_INJECTION64_PATH");
    void *library = !done && path && *path ? dlopen(path, RTLD_NOW) : NULL;
    void *address = library ? dlsym(library, "InitializeInjection") : NULL;
    int (*begin)(void);
    done = true;
    memcpy(&begin, &address, sizeof begin);
    if (begin)
        (void)begin();
}

#if HAVE_CUPTI
#include <cupti.h>

static stand_in_watcher *the_watcher;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint correlations;

/* Found by name by the stand-in of CUPTI. */
void stand_in_watch(stand_in_watcher *watcher);

void stand_in_watch(stand_in_watcher *watcher)
{
    the_watcher = watcher;
}

static void begin(struct stand_in_call *call)
{
    call->correlation = atomic_fetch_add(&correlations, 1) + 1;
    if (the_watcher)
        the_watcher(call);
}

static CUresult end(struct stand_in_call *call, CUresult result)
{
    call->ended = true;
    call->result = result;
    if (the_watcher)
        the_watcher(call);
    return result;
}

/* The body of a watched function: ARGUMENTS are those of CUPTI's struct, in its order. */
#define WATCHED(id, call_made, ...)                                                                \
    const id##_params arguments_ = {__VA_ARGS__};                                                  \
    struct stand_in_call call_ = {                                                                 \
        .number = CUPTI_DRIVER_TRACE_CBID_##id, .name = #id, .arguments = &arguments_};            \
    begin(&call_);                                                                                 \
    pthread_mutex_lock(&lock);                                                                     \
    CUresult result_ = (call_made);                                                                \
    pthread_mutex_unlock(&lock);                                                                   \
    return end(&call_, result_)

/* ---- memory --------------------------------------------------------------------------------- */

static CUresult watched_alloc(CUdeviceptr *address, size_t bytes)
{
    WATCHED(cuMemAlloc_v2, cuMemAlloc(address, bytes), address, bytes);
}

static CUresult alloc_pitch(CUdeviceptr *address, size_t *pitch, size_t width, size_t height)
{
    *pitch = (width + 511) / 512 * 512;
    return cuMemAlloc(address, *pitch * height);
}

static CUresult watched_alloc_pitch(CUdeviceptr *address, size_t *pitch, size_t width,
                                    size_t height, unsigned element_bytes)
{
    WATCHED(cuMemAllocPitch_v2, alloc_pitch(address, pitch, width, height), address, pitch, width,
            height, element_bytes);
}

static CUresult watched_alloc_managed(CUdeviceptr *address, size_t bytes, unsigned flags)
{
    WATCHED(cuMemAllocManaged, cuMemAlloc(address, bytes), address, bytes, flags);
}

static CUresult watched_free(CUdeviceptr address)
{
    WATCHED(cuMemFree_v2, address ? cuMemFree(address) : CUDA_SUCCESS, address);
}

static CUresult watched_host_alloc(void **pointer, size_t bytes, unsigned flags)
{
    WATCHED(cuMemHostAlloc, cuMemHostAlloc(pointer, bytes, flags), pointer, bytes, flags);
}

static CUresult watched_alloc_host(void **pointer, size_t bytes)
{
    WATCHED(cuMemAllocHost_v2, cuMemHostAlloc(pointer, bytes, 0), pointer, bytes);
}

static CUresult watched_free_host(void *pointer)
{
    WATCHED(cuMemFreeHost, cuMemFreeHost(pointer), pointer);
}

static CUresult alloc_async(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    static CUmemoryPool pool;
    const CUmemPoolProps properties = {.maxSize = 0};
    CUresult result = pool ? CUDA_SUCCESS : cuMemPoolCreate(&pool, &properties);
    return result == CUDA_SUCCESS ? cuMemAllocFromPoolAsync(address, bytes, pool, stream) : result;
}

static CUresult watched_alloc_async(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    WATCHED(cuMemAllocAsync, alloc_async(address, bytes, stream), address, bytes, stream);
}

static CUresult watched_alloc_async_ptsz(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    WATCHED(cuMemAllocAsync_ptsz, alloc_async(address, bytes, stream), address, bytes, stream);
}

static CUresult watched_alloc_from_pool(CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
                                        CUstream stream)
{
    WATCHED(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync(address, bytes, pool, stream), address,
            bytes, pool, stream);
}

static CUresult watched_trim(CUmemoryPool pool, size_t keep_bytes)
{
    WATCHED(cuMemPoolTrimTo, cuMemPoolTrimTo(pool, keep_bytes), pool, keep_bytes);
}

static CUresult watched_free_async(CUdeviceptr address, CUstream stream)
{
    WATCHED(cuMemFreeAsync, cuMemFreeAsync(address, stream), address, stream);
}

/* ---- virtual memory ------------------------------------------------------------------------- */

static CUresult watched_reserve(CUdeviceptr *address, size_t bytes, size_t alignment,
                                CUdeviceptr wanted, unsigned long long flags)
{
    WATCHED(cuMemAddressReserve, cuMemAddressReserve(address, bytes, alignment, wanted, flags),
            address, bytes, alignment, wanted, flags);
}

static CUresult watched_unreserve(CUdeviceptr address, size_t bytes)
{
    WATCHED(cuMemAddressFree, cuMemAddressFree(address, bytes), address, bytes);
}

static CUresult watched_create(CUmemGenericAllocationHandle *handle, size_t bytes,
                               const CUmemAllocationProp *kind, unsigned long long flags)
{
    WATCHED(cuMemCreate, cuMemCreate(handle, bytes, kind, flags), handle, bytes, kind, flags);
}

static CUresult watched_release(CUmemGenericAllocationHandle handle)
{
    WATCHED(cuMemRelease, cuMemRelease(handle), handle);
}

static CUresult watched_map(CUdeviceptr address, size_t bytes, size_t offset,
                            CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    WATCHED(cuMemMap, cuMemMap(address, bytes, offset, handle, flags), address, bytes, offset,
            handle, flags);
}

static CUresult watched_unmap(CUdeviceptr address, size_t bytes)
{
    WATCHED(cuMemUnmap, cuMemUnmap(address, bytes), address, bytes);
}

static CUresult watched_set_access(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access,
                                   size_t count)
{
    WATCHED(cuMemSetAccess, cuMemSetAccess(address, bytes, access, count), address, bytes, access,
            count);
}

/* ---- streams, events, kernels --------------------------------------------------------------- */

static CUresult watched_event_record(CUevent event, CUstream stream)
{
    WATCHED(cuEventRecord, cuEventRecord(event, stream), event, stream);
}

static CUresult watched_event_destroy(CUevent event)
{
    WATCHED(cuEventDestroy_v2, cuEventDestroy(event), event);
}

static CUresult watched_event_synchronize(CUevent event)
{
    WATCHED(cuEventSynchronize, cuEventSynchronize(event), event);
}

static CUresult watched_wait_event(CUstream stream, CUevent event, unsigned flags)
{
    WATCHED(cuStreamWaitEvent, cuStreamWaitEvent(stream, event, flags), stream, event, flags);
}

static CUresult watched_stream_synchronize(CUstream stream)
{
    WATCHED(cuStreamSynchronize, cuStreamSynchronize(stream), stream);
}

static CUresult watched_ctx_synchronize(void)
{
    struct stand_in_call call = {.number = CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize,
                                 .name = "cuCtxSynchronize"};
    begin(&call);
    pthread_mutex_lock(&lock);
    CUresult result = cuCtxSynchronize();
    pthread_mutex_unlock(&lock);
    return end(&call, result);
}

static CUresult watched_launch(CUfunction function, unsigned grid_x, unsigned grid_y,
                               unsigned grid_z, unsigned block_x, unsigned block_y,
                               unsigned block_z, unsigned shared_bytes, CUstream stream,
                               void **arguments, void **extra)
{
    WATCHED(cuLaunchKernel,
            cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                           shared_bytes, stream, arguments, extra),
            function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream,
            arguments, extra);
}

/* ---- the runtime above the driver ----------------------------------------------------------- */

/* Found by name by programs of the tests. `inner`: the driver's call within is told of, too. */
CUresult stand_in_runtime_malloc(void **pointer, size_t bytes, bool inner);
CUresult stand_in_runtime_free(void *pointer, bool inner);

CUresult stand_in_runtime_malloc(void **pointer, size_t bytes, bool inner)
{
    const cudaMalloc_v3020_params arguments = {pointer, bytes};
    struct stand_in_call call = {.runtime = true,
                                 .number = CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020,
                                 .name = "cudaMalloc",
                                 .arguments = &arguments};
    CUdeviceptr address = 0;
    begin(&call);
    CUresult result = inner ? watched_alloc(&address, bytes) : cuMemAlloc(&address, bytes);
    *pointer = (void *)(uintptr_t)address;
    return end(&call, result);
}

CUresult stand_in_runtime_free(void *pointer, bool inner)
{
    const cudaFree_v3020_params arguments = {pointer};
    struct stand_in_call call = {.runtime = true,
                                 .number = CUPTI_RUNTIME_TRACE_CBID_cudaFree_v3020,
                                 .name = "cudaFree",
                                 .arguments = &arguments};
    CUdeviceptr address = (CUdeviceptr)(uintptr_t)pointer;
    begin(&call);
    return end(&call, inner ? watched_free(address) : cuMemFree(address));
}

void (*stand_in_watched(const char *name))(void)
{
    static const struct {
        const char *name;
        void (*function)(void);
    } functions[] = {
#define X(name, function) {#name, (void (*)(void))(function)}
        X(cuMemAlloc, watched_alloc),
        X(cuMemAllocPitch, watched_alloc_pitch),
        X(cuMemAllocManaged, watched_alloc_managed),
        X(cuMemFree, watched_free),
        X(cuMemHostAlloc, watched_host_alloc),
        X(cuMemAllocHost, watched_alloc_host),
        X(cuMemFreeHost, watched_free_host),
        X(cuMemAllocAsync, watched_alloc_async),
        X(cuMemAllocAsync_ptsz, watched_alloc_async_ptsz),
        X(cuMemAllocFromPoolAsync, watched_alloc_from_pool),
        X(cuMemFreeAsync, watched_free_async),
        X(cuMemPoolTrimTo, watched_trim),
        X(cuMemAddressReserve, watched_reserve),
        X(cuMemAddressFree, watched_unreserve),
        X(cuMemCreate, watched_create),
        X(cuMemRelease, watched_release),
        X(cuMemMap, watched_map),
        X(cuMemUnmap, watched_unmap),
        X(cuMemSetAccess, watched_set_access),
        X(cuEventRecord, watched_event_record),
        X(cuEventDestroy, watched_event_destroy),
        X(cuEventSynchronize, watched_event_synchronize),
        X(cuStreamWaitEvent, watched_wait_event),
        X(cuStreamSynchronize, watched_stream_synchronize),
        X(cuCtxSynchronize, watched_ctx_synchronize),
        X(cuLaunchKernel, watched_launch),
#undef X
    };
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (strcmp(functions[i].name, name) == 0)
            return functions[i].function;
    return NULL;
}

#else

void (*stand_in_watched(const char *name))(void)
{
    (void)name;
    return NULL;
}

#endif
