/* The driver's calls for memory, timed one by one: what a recorder adds is the difference between
 * two runs. Prints medians in ns: `plain_alloc N plain_free N ordered_alloc N ordered_free N`. */
#include <cuda.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PLAIN   3000
#define ORDERED 20000
#define BYTES   ((size_t)1 << 20)

static uint64_t alloc_ns[ORDERED], free_ns[ORDERED];

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static unsigned long median(uint64_t *values, size_t count)
{
    qsort(values, count, sizeof *values, by_size);
    return (unsigned long)values[count / 2];
}

static void need(CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS)
        return;
    fprintf(stderr, "overhead: %s fails with %d\n", what, (int)result);
    exit(1);
}

static __typeof__(cuGetProcAddress) *look_up;

/* As the CUDA runtime finds them. */
static void *find(const char *name)
{
    void *address = NULL;
    CUdriverProcAddressQueryResult why;
    if (look_up(name, &address, CUDA_VERSION, 0, &why) != CUDA_SUCCESS || !address) {
        fprintf(stderr, "overhead: the driver has no %s\n", name);
        exit(1);
    }
    return address;
}

#define FUNCTION(field, name)                                                                      \
    __typeof__(field) *call_##field;                                                               \
    do {                                                                                           \
        void *address_ = find(name);                                                               \
        memcpy(&call_##field, &address_, sizeof address_);                                         \
    } while (0)

int main(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) {
        fprintf(stderr, "overhead: %s\n", dlerror());
        return 1;
    }
    void *address = dlsym(driver, "cuGetProcAddress_v2");
    memcpy(&look_up, &address, sizeof address);
    if (!look_up)
        need(CUDA_ERROR_NOT_FOUND, "cuGetProcAddress");
    FUNCTION(cuInit, "cuInit");
    FUNCTION(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
    FUNCTION(cuCtxSetCurrent, "cuCtxSetCurrent");
    FUNCTION(cuMemAlloc, "cuMemAlloc");
    FUNCTION(cuMemFree, "cuMemFree");
    FUNCTION(cuMemAllocAsync, "cuMemAllocAsync");
    FUNCTION(cuMemFreeAsync, "cuMemFreeAsync");
    CUcontext context;
    CUdeviceptr block, kept;
    need(call_cuInit(0), "cuInit");
    need(call_cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    need(call_cuCtxSetCurrent(context), "cuCtxSetCurrent");
    for (int i = 0; i < PLAIN; i++) {
        uint64_t begin = now_ns();
        need(call_cuMemAlloc(&block, BYTES), "cuMemAlloc");
        uint64_t middle = now_ns();
        need(call_cuMemFree(block), "cuMemFree");
        alloc_ns[i] = middle - begin;
        free_ns[i] = now_ns() - middle;
    }
    printf("plain_alloc %lu plain_free %lu ", median(alloc_ns, PLAIN), median(free_ns, PLAIN));
    need(call_cuMemAllocAsync(&kept, BYTES, NULL),
         "cuMemAllocAsync"); /* the pool keeps its memory */
    for (int i = 0; i < ORDERED; i++) {
        uint64_t begin = now_ns();
        need(call_cuMemAllocAsync(&block, BYTES, NULL), "cuMemAllocAsync");
        uint64_t middle = now_ns();
        need(call_cuMemFreeAsync(block, NULL), "cuMemFreeAsync");
        alloc_ns[i] = middle - begin;
        free_ns[i] = now_ns() - middle;
    }
    printf("ordered_alloc %lu ordered_free %lu\n", median(alloc_ns, ORDERED),
           median(free_ns, ORDERED));
    return 0;
}
