/* Device memory that can sleep: a pluggable allocator for torch.cuda.MemPool.
 *
 * A segment is a reserved range of addresses with one physical allocation mapped to it. To sleep,
 * its physical memory is unmapped and released and the range stays reserved; to wake, new physical
 * memory is mapped to the same range. The caller copies the contents before and after. This is what
 * vLLM's CuMemAllocator does (0.11, csrc/cumem_allocator.cpp and vllm/device_allocator/cumem.py),
 * with its properties of the physical memory and its rounding.
 *
 *     gcc -O2 -shared -fPIC -I$CUDA_HOME/include sleeping_memory.c -o sleeping_memory.so -lcuda
 *
 * Numbers of segments are in the order in which they were made. All functions may be called with
 * Python's lock only. */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

enum { SEGMENTS = 4096 };

struct segment {
    CUdeviceptr address; /* 0: freed */
    size_t bytes;
    CUmemGenericAllocationHandle physical;
    int device, tag, awake;
};

static struct segment segments[SEGMENTS];
static int count, current_tag;

static int failed(CUresult result, const char *call, size_t bytes)
{
    if (result == CUDA_SUCCESS)
        return 0;
    const char *text = "unknown";
    cuGetErrorString(result, &text);
    fprintf(stderr, "sleeping_memory: %s of %zu bytes: %s (%d)\n", call, bytes, text, (int)result);
    return 1;
}

static CUmemAllocationProp properties(int device)
{
    return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
}

static int map(struct segment *s)
{
    CUmemAllocationProp prop = properties(s->device);
    CUmemAccessDesc access = {.location = prop.location,
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    if (failed(cuMemCreate(&s->physical, s->bytes, &prop, 0), "cuMemCreate", s->bytes))
        return 0;
    if (failed(cuMemMap(s->address, s->bytes, 0, s->physical, 0), "cuMemMap", s->bytes) ||
        failed(cuMemSetAccess(s->address, s->bytes, &access, 1), "cuMemSetAccess", s->bytes)) {
        cuMemRelease(s->physical);
        return 0;
    }
    s->awake = 1;
    return 1;
}

static void unmap(struct segment *s)
{
    if (!s->awake)
        return;
    failed(cuMemUnmap(s->address, s->bytes), "cuMemUnmap", s->bytes);
    failed(cuMemRelease(s->physical), "cuMemRelease", s->bytes);
    s->awake = 0;
}

void sleeping_tag(int tag)
{
    current_tag = tag;
}

void *sleeping_malloc(ssize_t bytes, int device, CUstream stream)
{
    CUmemAllocationProp prop = properties(device);
    size_t page = 0;
    if (count == SEGMENTS ||
        failed(cuMemGetAllocationGranularity(&page, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
               "granularity", 0))
        return NULL;
    struct segment *s = &segments[count];
    *s = (struct segment){
        .bytes = ((size_t)bytes + page - 1) / page * page, .device = device, .tag = current_tag};
    if (failed(cuMemAddressReserve(&s->address, s->bytes, 0, 0, 0), "cuMemAddressReserve",
               s->bytes))
        return NULL;
    if (!map(s)) {
        cuMemAddressFree(s->address, s->bytes);
        return NULL;
    }
    count++;
    return (void *)(uintptr_t)s->address;
}

void sleeping_free(void *pointer, ssize_t bytes, int device, CUstream stream)
{
    (void)bytes, (void)device, (void)stream;
    for (int i = 0; i < count; i++) {
        struct segment *s = &segments[i];
        if (s->address != (CUdeviceptr)(uintptr_t)pointer)
            continue;
        cuCtxSynchronize();
        unmap(s);
        failed(cuMemAddressFree(s->address, s->bytes), "cuMemAddressFree", s->bytes);
        s->address = 0;
        return;
    }
    fprintf(stderr, "sleeping_memory: a free of %p, which is not in use\n", pointer);
}

int sleeping_count(void)
{
    return count;
}

/* address, bytes, tag, awake; an address of 0: freed */
void sleeping_segment(int i, uint64_t out[4])
{
    out[0] = segments[i].address, out[1] = segments[i].bytes;
    out[2] = (uint64_t)segments[i].tag, out[3] = (uint64_t)segments[i].awake;
}

void sleeping_unmap(int i)
{
    unmap(&segments[i]);
}
int sleeping_map(int i)
{
    return segments[i].awake || map(&segments[i]);
}
int sleeping_save(int i, void *host)
{
    return !failed(cuMemcpyDtoH(host, segments[i].address, segments[i].bytes), "copy", 0);
}
int sleeping_restore(int i, const void *host)
{
    return !failed(cuMemcpyHtoD(segments[i].address, host, segments[i].bytes), "copy", 0);
}
