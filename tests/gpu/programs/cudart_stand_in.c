/* A stand-in for the CUDA runtime, and for the part of the driver that PyTorch's allocator calls:
 * with LD_PRELOAD the real allocator of a PyTorch for CUDA runs without a card (test_random.sh).
 * There is one card. Memory is numbers: the lowest free addresses, in pages of 2 MiB, up to the
 * size of the card. A virtual clock moves with each call. Work takes a time of its stream; nothing
 * is computed or copied. Built against the headers of CUDA 13. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE         (UINT64_C(2) << 20)
#define CARD_BYTES   UINT64_C(150110011392)
#define CALL_NS      500u
#define MEMORY_NS    50000u
#define KERNEL_NS    3000u
#define STREAMS_MOST 1024
#define EVENTS_MOST  65536

static uint64_t used_bytes = UINT64_C(600) << 20, now_ns;
static cudaError_t last_error;

static cudaError_t fail(cudaError_t error)
{
    return last_error = error;
}

/* ---- addresses ------------------------------------------------------------------------------- */

struct space {
    uint64_t base;
    struct taken {
        uint64_t start, bytes;
    } at[65536]; /* by address */
    size_t count;
};

static struct space plain = {.base = UINT64_C(0x7f) << 40}, ranges = {.base = UINT64_C(0x6f) << 40};

static uint64_t whole_pages(uint64_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static uint64_t take(struct space *space, uint64_t bytes)
{
    uint64_t start = space->base;
    size_t i = 0;
    for (; i < space->count && space->at[i].start - start < bytes; i++)
        start = space->at[i].start + space->at[i].bytes;
    memmove(&space->at[i + 1], &space->at[i], (space->count++ - i) * sizeof space->at[0]);
    space->at[i] = (struct taken){start, bytes};
    return start;
}

static uint64_t give(struct space *space, uint64_t start)
{
    size_t i = 0;
    while (i < space->count && space->at[i].start != start)
        i++;
    if (i == space->count)
        return 0;
    uint64_t bytes = space->at[i].bytes;
    memmove(&space->at[i], &space->at[i + 1], (--space->count - i) * sizeof space->at[0]);
    return bytes;
}

/* ---- streams and events ---------------------------------------------------------------------- */

static struct stream {
    uint64_t done_ns;
    unsigned long long capture; /* 0: none */
} streams[STREAMS_MOST];        /* the first one is the default stream */

static struct event {
    uint64_t at_ns;
} events[EVENTS_MOST];

static int stream_count = 1, event_count;
static unsigned long long capture_count;
static int graph; /* the address of all graphs and nodes */

static struct stream *of(cudaStream_t stream)
{
    return (uintptr_t)stream <= 2 ? streams : (struct stream *)stream;
}

static void until(uint64_t ns)
{
    now_ns += CALL_NS;
    now_ns = ns > now_ns ? ns : now_ns;
}

static cudaError_t work(cudaStream_t handle, uint64_t ns)
{
    struct stream *stream = of(handle);
    until(0);
    if (stream->capture)
        return cudaSuccess;
    stream->done_ns = (stream->done_ns > now_ns ? stream->done_ns : now_ns) + ns;
    return cudaSuccess;
}

static void wait_for_all(void)
{
    for (int i = 0; i < stream_count; i++)
        until(streams[i].done_ns);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
    if (stream_count == STREAMS_MOST)
        return fail(cudaErrorMemoryAllocation);
    *stream = (cudaStream_t)&streams[stream_count++];
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    until(0);
    return of(stream)->done_ns <= now_ns ? cudaSuccess : fail(cudaErrorNotReady);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    until(of(stream)->done_ns);
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    wait_for_all();
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    *event = (cudaEvent_t)&events[event_count++ % EVENTS_MOST];
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    until(0);
    uint64_t done_ns = of(stream)->done_ns;
    ((struct event *)event)->at_ns = done_ns > now_ns ? done_ns : now_ns;
    return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags)
{
    return cudaEventRecord(event, stream);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    until(0);
    return ((struct event *)event)->at_ns <= now_ns ? cudaSuccess : fail(cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    until(((struct event *)event)->at_ns);
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned flags)
{
    struct stream *stream = of(handle);
    uint64_t at_ns = ((struct event *)event)->at_ns;
    until(0);
    stream->done_ns = stream->done_ns > at_ns ? stream->done_ns : at_ns;
    return cudaSuccess;
}

/* ---- graphs ---------------------------------------------------------------------------------- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    of(stream)->capture = ++capture_count;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out)
{
    of(stream)->capture = 0;
    *out = (cudaGraph_t)&graph;
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    *status = of(stream)->capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                     unsigned long long *id, cudaGraph_t *out,
                                     const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges,
                                     size_t *count)
{
    if (id)
        *id = of(stream)->capture;
    if (out)
        *out = (cudaGraph_t)&graph;
    if (nodes)
        *nodes = NULL;
    if (count)
        *count = 0;
    return cudaStreamIsCapturing(stream, status);
}

cudaError_t cudaGraphGetNodes(cudaGraph_t of_graph, cudaGraphNode_t *nodes, size_t *count)
{
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t of_graph,
                                          unsigned long long flags)
{
    *out = (cudaGraphExec_t)&graph;
    return cudaSuccess;
}

/* ---- memory ---------------------------------------------------------------------------------- */

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    uint64_t whole_bytes = whole_pages(bytes);
    until(now_ns + MEMORY_NS);
    if (used_bytes + whole_bytes > CARD_BYTES)
        return fail(cudaErrorMemoryAllocation);
    used_bytes += whole_bytes;
    *out = (void *)take(&plain, whole_bytes);
    return cudaSuccess;
}

cudaError_t cudaFree(void *address)
{
    if (!address)
        return cudaSuccess;
    wait_for_all();
    until(now_ns + MEMORY_NS);
    used_bytes -= give(&plain, (uint64_t)address);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    *free_bytes = CARD_BYTES - used_bytes;
    *total_bytes = CARD_BYTES;
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    return work(stream, bytes / 1000);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    return work(stream, bytes / 2000);
}

static CUresult vm_granularity(size_t *bytes, const CUmemAllocationProp *properties,
                               CUmemAllocationGranularity_flags flags)
{
    *bytes = PAGE;
    return CUDA_SUCCESS;
}

static CUresult vm_reserve(CUdeviceptr *out, size_t bytes, size_t alignment, CUdeviceptr wanted,
                           unsigned long long flags)
{
    *out = take(&ranges, whole_pages(bytes));
    return CUDA_SUCCESS;
}

static CUresult vm_free(CUdeviceptr address, size_t bytes)
{
    (void)give(&ranges, address);
    return CUDA_SUCCESS;
}

/* A handle is the bytes that it has. */
static CUresult vm_create(CUmemGenericAllocationHandle *handle, size_t bytes,
                          const CUmemAllocationProp *properties, unsigned long long flags)
{
    until(now_ns + MEMORY_NS);
    if (used_bytes + bytes > CARD_BYTES)
        return CUDA_ERROR_OUT_OF_MEMORY;
    used_bytes += bytes;
    *handle = bytes;
    return CUDA_SUCCESS;
}

static CUresult vm_release(CUmemGenericAllocationHandle handle)
{
    used_bytes -= handle;
    return CUDA_SUCCESS;
}

static CUresult vm_map(CUdeviceptr address, size_t bytes, size_t offset,
                       CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    return CUDA_SUCCESS;
}

static CUresult vm_access(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access,
                          size_t count)
{
    return CUDA_SUCCESS;
}

static CUresult vm_unmap(CUdeviceptr address, size_t bytes)
{
    return CUDA_SUCCESS;
}

static CUresult error_text(CUresult error, const char **text)
{
    *text = "an error of the stand-in";
    return CUDA_SUCCESS;
}

static CUresult is_supported(int *value, CUdevice_attribute attribute, CUdevice device)
{
    *value = attribute == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    *flags = 0;
    *active = 1;
    return CUDA_SUCCESS;
}

static CUresult not_supported(void)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **out, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *result)
{
    typedef void function(void);
    static const struct {
        const char *name;
        function *at;
    } functions[] = {
        {"cuMemGetAllocationGranularity", (function *)vm_granularity},
        {"cuMemAddressReserve", (function *)vm_reserve},
        {"cuMemAddressFree", (function *)vm_free},
        {"cuMemCreate", (function *)vm_create},
        {"cuMemRelease", (function *)vm_release},
        {"cuMemMap", (function *)vm_map},
        {"cuMemSetAccess", (function *)vm_access},
        {"cuMemUnmap", (function *)vm_unmap},
        {"cuGetErrorString", (function *)error_text},
        {"cuDeviceGetAttribute", (function *)is_supported},
        {"cuDevicePrimaryCtxGetState", (function *)cuDevicePrimaryCtxGetState},
    };
    function *found = (function *)not_supported;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (strcmp(functions[i].name, name) == 0)
            found = functions[i].at;
    memcpy(out, &found, sizeof found);
    if (result)
        *result = cudaDriverEntryPointSuccess;
    return cudaSuccess;
}

/* ---- the card -------------------------------------------------------------------------------- */

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    *value = attribute == cudaDevAttrComputeCapabilityMajor   ? 9
             : attribute == cudaDevAttrComputeCapabilityMinor ? 0
                                                              : 132;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = 13000;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    *properties = (struct cudaDeviceProp){
        .name = "a stand-in",
        .totalGlobalMem = CARD_BYTES,
        .major = 9,
        .multiProcessorCount = 132,
        .warpSize = 32,
        .maxThreadsPerMultiProcessor = 2048,
        .maxThreadsPerBlock = 1024,
        .sharedMemPerBlock = 49152,
        .regsPerMultiprocessor = 65536,
        .maxGridSize = {2147483647, 65535, 65535},
        .maxBlocksPerMultiProcessor = 32,
    };
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void)
{
    return last_error;
}

const char *cudaGetErrorName(cudaError_t error)
{
    return "cudaErrorOfTheStandIn";
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation ? "out of memory" : "an error of the stand-in";
}

/* ---- kernels --------------------------------------------------------------------------------- */

static const void *spin_kernel; /* torch.cuda._sleep */
static struct {
    dim3 grid, block;
    size_t shared;
    void *stream;
} pushed;

void **__cudaRegisterFatBinary(void *binary)
{
    static void *handle;
    return &handle;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
}
void __cudaUnregisterFatBinary(void **handle)
{
}
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
                       size_t bytes, int constant, int global)
{
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int threads, void *a, void *b, void *c, void *d, int *warp)
{
    if (strstr(name, "spin_kernel"))
        spin_kernel = host;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream)
{
    pushed.grid = grid;
    pushed.block = block;
    pushed.shared = shared;
    pushed.stream = stream;
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    *grid = pushed.grid;
    *block = pushed.block;
    *shared = pushed.shared;
    memcpy(stream, &pushed.stream, sizeof pushed.stream);
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
    *kernel = (cudaKernel_t)host;
    return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared, cudaStream_t stream)
{
    int spins = (const void *)kernel == spin_kernel; /* for so many cycles at 1.8 GHz */
    return work(stream, spins ? *(uint64_t *)arguments[0] * 5 / 9 : KERNEL_NS);
}

/* ---- pinned memory: address space alone ------------------------------------------------------ */

static struct pinned {
    char *at;
    size_t bytes;
} pinned[65536];
static size_t pinned_count;

cudaError_t cudaHostAlloc(void **at, size_t bytes, unsigned flags)
{
    size_t i = 0;
    until(0);
    while (i < pinned_count && pinned[i].at)
        i++;
    if (i == sizeof pinned / sizeof *pinned)
        return fail(cudaErrorMemoryAllocation);
    *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
               0);
    if (*at == MAP_FAILED)
        return fail(cudaErrorMemoryAllocation);
    pinned[i] = (struct pinned){*at, bytes};
    pinned_count += i == pinned_count;
    return cudaSuccess;
}

static struct pinned *pinned_with(const void *at)
{
    for (size_t i = 0; i < pinned_count; i++)
        if (pinned[i].at && (uintptr_t)at - (uintptr_t)pinned[i].at < pinned[i].bytes)
            return &pinned[i];
    return NULL;
}

cudaError_t cudaFreeHost(void *at)
{
    struct pinned *found = pinned_with(at);
    wait_for_all();
    if (!found)
        return fail(cudaErrorInvalidValue);
    munmap(found->at, found->bytes);
    found->at = NULL;
    return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void **at, void *host, unsigned flags)
{
    *at = host;
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *out, const void *at)
{
    *out = (struct cudaPointerAttributes){.type = pinned_with(at) ? cudaMemoryTypeHost
                                                                  : cudaMemoryTypeUnregistered};
    return cudaSuccess;
}

/* ---- calls without an effect ----------------------------------------------------------------- */

/* Under another name here, because the headers declare it with its arguments. */
#define DOES_NOTHING(name)                                                                         \
    int nothing_##name(void) __asm__(#name);                                                       \
    int nothing_##name(void)                                                                       \
    {                                                                                              \
        return 0;                                                                                  \
    }

DOES_NOTHING(cudaSetDevice)
DOES_NOTHING(cudaStreamDestroy)
DOES_NOTHING(cudaEventDestroy)
DOES_NOTHING(cudaGraphDestroy)
DOES_NOTHING(cudaGraphExecDestroy)
DOES_NOTHING(cudaGraphLaunch)
DOES_NOTHING(cudaThreadExchangeStreamCaptureMode)
DOES_NOTHING(cudaMemcpy)
DOES_NOTHING(cudaMemcpyToSymbol)
DOES_NOTHING(cudaFuncSetAttribute)
