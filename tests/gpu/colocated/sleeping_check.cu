/* sleeping_memory.c without PyTorch, on a card; for compute-sanitizer.
 *
 *     nvcc -arch=sm_90 -o sleeping_check sleeping_check.cu sleeping_memory.c -lcuda
 *     compute-sanitizer --leak-check full ./sleeping_check
 *     ./sleeping_check touch     # a kernel writes to memory that sleeps: this must fail
 *
 * Segments of two tags are filled, one tag is copied to the host, all sleep and wake, twice.
 * Checked are the contents, the addresses, and the free memory of the card. */
#include <cuda.h>
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

extern "C" {
void sleeping_tag(int tag);
void *sleeping_malloc(ssize_t bytes, int device, CUstream stream);
void sleeping_free(void *pointer, ssize_t bytes, int device, CUstream stream);
int sleeping_count(void);
void sleeping_segment(int i, uint64_t out[4]);
void sleeping_unmap(int i);
int sleeping_map(int i);
int sleeping_save(int i, void *host);
int sleeping_restore(int i, const void *host);
}

__global__ static void fill(uint32_t *p, size_t n, uint32_t seed)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x)
        p[i] = (uint32_t)i * 2654435761u + seed;
}

__global__ static void count_wrong(const uint32_t *p, size_t n, uint32_t seed,
                                   unsigned long long *wrong)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x)
        if (p[i] != (uint32_t)i * 2654435761u + seed)
            atomicAdd(wrong, 1ull);
}

static int failures, checks;

static void check(bool right, const char *what)
{
    checks++;
    if (!right)
        failures++, printf("not ok %s\n", what);
}

static size_t free_bytes(void)
{
    size_t now = 0, total = 0;
    check(cudaDeviceSynchronize() == cudaSuccess, "kernels end without an error");
    cudaMemGetInfo(&now, &total);
    return now;
}

static bool filled(const void *p, size_t bytes, uint32_t seed, unsigned long long *wrong)
{
    unsigned long long result = 0;
    cudaMemset(wrong, 0, sizeof *wrong);
    count_wrong<<<64, 256>>>((const uint32_t *)p, bytes / 4, seed, wrong);
    return cudaMemcpy(&result, wrong, sizeof result, cudaMemcpyDeviceToHost) == cudaSuccess &&
           !result;
}

int main(int argc, char **argv)
{
    static const size_t asked[] = {3 << 20, 2 << 20, 20 << 20, 512 << 20};
    enum { SEGMENTS = sizeof asked / sizeof asked[0] };
    unsigned long long *wrong;
    void *p[SEGMENTS], *copies[SEGMENTS] = {};
    uint64_t row[4];
    if (cudaMalloc((void **)&wrong, sizeof *wrong) != cudaSuccess)
        return printf("skip: no card\n"), 0;
    fill<<<1, 1>>>((uint32_t *)wrong, 2, 0);
    filled(wrong, 0, 0, wrong);
    size_t before = free_bytes(), bytes = 0;
    for (int i = 0; i < SEGMENTS; i++) {
        sleeping_tag(i % 2);
        p[i] = sleeping_malloc((ssize_t)asked[i], 0, NULL);
        check(p[i] != NULL, "a segment is made");
        sleeping_segment(i, row);
        bytes += row[1];
        fill<<<64, 256>>>((uint32_t *)p[i], asked[i] / 4, (uint32_t)i);
    }
    size_t awake = free_bytes();
    check(before - awake == bytes, "segments take their pages");
    if (argc > 1 && !strcmp(argv[1], "touch")) {
        sleeping_unmap(0);
        fill<<<1, 32>>>((uint32_t *)p[0], 32, 0);
        cudaError_t error = cudaDeviceSynchronize();
        printf("a write to sleeping memory: %s\n", cudaGetErrorString(error));
        return error == cudaSuccess;
    }
    for (int cycle = 0; cycle < 2; cycle++) {
        for (int i = 0; i < SEGMENTS; i++) {
            sleeping_segment(i, row);
            if (row[2] == 0 && (copies[i] = malloc(row[1])))
                check(sleeping_save(i, copies[i]), "a segment is copied to the host");
            sleeping_unmap(i);
        }
        check(free_bytes() - awake == bytes, "sleep returns all pages");
        for (int i = 0; i < SEGMENTS; i++) {
            check(sleeping_map(i), "a segment wakes");
            sleeping_segment(i, row);
            check(row[0] == (uint64_t)(uintptr_t)p[i], "an address stays");
            if (!copies[i]) {
                fill<<<64, 256>>>((uint32_t *)p[i], asked[i] / 4, (uint32_t)i);
                continue;
            }
            check(sleeping_restore(i, copies[i]), "a copy comes back");
            free(copies[i]);
            copies[i] = NULL;
        }
        for (int i = 0; i < SEGMENTS; i++)
            check(filled(p[i], asked[i], (uint32_t)i, wrong), "contents are those before sleep");
        check(free_bytes() == awake, "awake as before");
    }
    check(sleeping_count() == SEGMENTS, "number of segments");
    for (int i = 0; i < SEGMENTS; i++)
        sleeping_free(p[i], (ssize_t)asked[i], 0, NULL);
    check(free_bytes() == before, "all is returned");
    cudaFree(wrong);
    printf("%d passed, %d failed, 0 skipped\n", checks - failures, failures);
    return failures > 0;
}
