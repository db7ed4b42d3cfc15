/* A CUDA driver that runs the kernels of bench/cuda/kernels.cu on the host, so that their
 * arithmetic and their bounds are tested where no card is. The source is the card's own: what nvcc
 * knows is defined here.
 *
 * 1. A launch runs at once, block after block. The threads of a block are contexts of their own,
 *    one after the other up to the next barrier, so that shared memory and barriers are real.
 * 2. There is one processor, so that grids stay small. Memory is the host's, streams and events
 *    are none: what needs real time or streams side by side is left to a card.
 * 3. Functions that have nothing to do here answer success. */
#undef _FORTIFY_SOURCE /* its longjmp does not go to another stack */
#include <csetjmp>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <cuda.h>
#include <functional>
#include <map>
#include <string>
#include <ucontext.h>
#include <utility>
#include <vector>

/* ---- what nvcc knows
 * ---------------------------------------------------------------------------- */

#define __device__
#define __global__
#define __shared__ static

struct place {
    unsigned x, y;
};
static place blockIdx, threadIdx, blockDim, gridDim;

struct alignas(16) ulonglong2 {
    uint64_t x, y;
};
struct alignas(16) uint4 {
    uint32_t x, y, z, w;
};

static ulonglong2 make_ulonglong2(uint64_t x, uint64_t y)
{
    return {x, y};
}

template <typename T, typename U> static T exchange(T *at, U value)
{
    T old = *at;
    *at = static_cast<T>(value);
    return old;
}

template <typename T, typename U> static T atomicAdd(T *at, U value)
{
    return exchange(at, *at + value);
}

template <typename T> static T atomicMin(T *at, T value)
{
    return exchange(at, value < *at ? value : *at);
}

template <typename T> static T atomicOr(T *at, T value)
{
    return exchange(at, *at | value);
}

template <typename T> static T atomicExch(T *at, T value)
{
    return exchange(at, value);
}

template <typename T, typename U, typename V> static T atomicCAS(T *at, U expected, V value)
{
    return *at == static_cast<T>(expected) ? exchange(at, value) : *at;
}

template <typename To, typename From> static To same_bits(From from)
{
    To to;
    static_assert(sizeof to == sizeof from, "");
    memcpy(&to, &from, sizeof to);
    return to;
}

static float __uint_as_float(unsigned bits)
{
    return same_bits<float>(bits);
}

static unsigned __float_as_uint(float value)
{
    return same_bits<unsigned>(value);
}

static void __threadfence()
{
}

static void __nanosleep(unsigned)
{
}

static uint64_t host_ns()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec);
}

static long long clock64()
{
    return static_cast<long long>(host_ns());
}

static int __syncthreads_or(int value);

static void __syncthreads()
{
    __syncthreads_or(0);
}

/* Instead of bench/cuda/kernels.cuh. */
#define BENCH_CUDA_KERNELS_CUH
#include "tests/gpu/numbers.h"

static uint64_t card_timer()
{
    return host_ns() / 32 * 32;
}

static float card_float_of_half(uint16_t x)
{
    return number_of_f16(x);
}

static uint16_t card_half_of_float(float x)
{
    return number_to_f16(x);
}

#include "bench/cuda/kernels.cu"

/* ---- launches
 * ----------------------------------------------------------------------------------- */

typedef std::function<void(void **)> kernel;

template <typename... Parameters, size_t... Indexes>
static kernel kernel_of(void (*function)(Parameters...), std::index_sequence<Indexes...>)
{
    return [function](void **arguments) {
        function(*static_cast<Parameters *>(arguments[Indexes])...);
    };
}

template <typename... Parameters> static kernel kernel_of(void (*function)(Parameters...))
{
    return kernel_of(function, std::index_sequence_for<Parameters...>());
}

static const std::map<std::string, kernel> &kernels()
{
    static const std::map<std::string, kernel> all = {
#define X(name) {#name, kernel_of(name)},
        KERNELS(X)
#undef X
    };
    return all;
}

enum { STACK_BYTES = 1 << 16 };

/* The block that runs now. A thread begins as a context; after that _setjmp and _longjmp, which
 * make no system call, switch between it and the runner. */
static struct {
    struct place_in_code {
        jmp_buf at;
        bool begun, ended;
    } runner;
    std::vector<place_in_code> threads;
    std::vector<std::vector<char>> stacks;
    size_t current;
    bool any, any_before; /* of __syncthreads_or: being collected, and of the last barrier */
    const kernel *work;
    void **arguments;
} block;

static int __syncthreads_or(int value)
{
    block.any = block.any || value;
    if (_setjmp(block.threads[block.current].at) == 0)
        _longjmp(block.runner.at, 1);
    return block.any_before;
}

static void run_thread()
{
    (*block.work)(block.arguments);
    block.threads[block.current].ended = true;
    _longjmp(block.runner.at, 1);
}

/* Runs the current thread from where it is; the runner goes on at its _setjmp. */
[[noreturn]] static void go_on()
{
    auto &thread = block.threads[block.current];
    if (thread.begun)
        _longjmp(thread.at, 1);
    thread.begun = true;
    static ucontext_t start;
    getcontext(&start);
    start.uc_stack.ss_sp = block.stacks[block.current].data();
    start.uc_stack.ss_size = STACK_BYTES;
    makecontext(&start, run_thread, 0);
    setcontext(&start);
    abort();
}

static void run_block(size_t threads)
{
    block.threads.assign(threads, {});
    while (block.stacks.size() < threads)
        block.stacks.emplace_back(STACK_BYTES);
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < threads; i++) {
            if (block.threads[i].ended)
                continue;
            block.current = i;
            threadIdx = {static_cast<unsigned>(i % blockDim.x),
                         static_cast<unsigned>(i / blockDim.x)};
            if (_setjmp(block.runner.at) == 0)
                go_on();
            more = true;
        }
        block.any_before = block.any;
        block.any = false;
    }
}

/* ---- the driver
 * --------------------------------------------------------------------------------- */

static CUresult accept()
{
    return CUDA_SUCCESS;
}

static CUresult get_error_name(CUresult, const char **name)
{
    *name = "an error of the driver on the host";
    return CUDA_SUCCESS;
}

static CUresult device_get_name(char *name, int length, CUdevice)
{
    strncpy(name, "kernels on the host", static_cast<size_t>(length));
    return CUDA_SUCCESS;
}

static CUresult device_get_attribute(int *value, CUdevice_attribute, CUdevice)
{
    *value = 1;
    return CUDA_SUCCESS;
}

static CUresult mem_get_info(size_t *free_bytes, size_t *total_bytes)
{
    *free_bytes = *total_bytes = size_t(1) << 30;
    return CUDA_SUCCESS;
}

static CUresult mem_alloc(CUdeviceptr *address, size_t bytes)
{
    void *memory = nullptr;
    if (posix_memalign(&memory, 4096, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *address = reinterpret_cast<CUdeviceptr>(memory);
    return CUDA_SUCCESS;
}

static CUresult mem_free(CUdeviceptr address)
{
    free(reinterpret_cast<void *>(address));
    return CUDA_SUCCESS;
}

static CUresult copy_in(CUdeviceptr to, const void *from, size_t bytes, CUstream)
{
    memcpy(reinterpret_cast<void *>(to), from, bytes);
    return CUDA_SUCCESS;
}

static CUresult copy_out(void *to, CUdeviceptr from, size_t bytes, CUstream)
{
    memcpy(to, reinterpret_cast<void *>(from), bytes);
    return CUDA_SUCCESS;
}

static CUresult memset_bytes(CUdeviceptr to, unsigned char value, size_t bytes, CUstream)
{
    memset(reinterpret_cast<void *>(to), value, bytes);
    return CUDA_SUCCESS;
}

static CUresult event_elapsed_time(float *milliseconds, CUevent, CUevent)
{
    *milliseconds = 1;
    return CUDA_SUCCESS;
}

static CUresult module_get_function(CUfunction *function, CUmodule, const char *name)
{
    auto found = kernels().find(name);
    if (found == kernels().end())
        return CUDA_ERROR_NOT_FOUND;
    *function = reinterpret_cast<CUfunction>(const_cast<kernel *>(&found->second));
    return CUDA_SUCCESS;
}

static CUresult module_get_global(CUdeviceptr *address, size_t *bytes, CUmodule, const char *name)
{
    bool wrong = strcmp(name, "kernels_wrong") == 0;
    if (!wrong && strcmp(name, "kernels_timer") != 0)
        return CUDA_ERROR_NOT_FOUND;
    *address = wrong ? reinterpret_cast<CUdeviceptr>(&kernels_wrong)
                     : reinterpret_cast<CUdeviceptr>(&kernels_timer);
    *bytes = wrong ? sizeof kernels_wrong : sizeof kernels_timer;
    return CUDA_SUCCESS;
}

static CUresult launch_kernel(CUfunction function, unsigned blocks, unsigned, unsigned, unsigned x,
                              unsigned y, unsigned, unsigned, CUstream, void **arguments, void **)
{
    block.work = reinterpret_cast<const kernel *>(function);
    block.arguments = arguments;
    gridDim = {blocks, 1};
    blockDim = {x, y};
    for (unsigned i = 0; i < blocks; i++) {
        blockIdx = {i, 0};
        run_block(size_t(x) * y);
    }
    return CUDA_SUCCESS;
}

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED CUresult cuDriverGetVersion(int *version)
{
    *version = 13000;
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuGetProcAddress_v2(const char *name, void **address, int, cuuint64_t,
                                      CUdriverProcAddressQueryResult *result)
{
#define ROW(name, function)                                                                        \
    {                                                                                              \
#name, reinterpret_cast < void *>(function)                                                \
    }
    static const std::map<std::string, void *> functions = {
        ROW(cuGetErrorName, get_error_name),
        ROW(cuDeviceGetName, device_get_name),
        ROW(cuDeviceGetAttribute, device_get_attribute),
        ROW(cuMemGetInfo, mem_get_info),
        ROW(cuMemAlloc, mem_alloc),
        ROW(cuMemFree, mem_free),
        ROW(cuMemcpyHtoDAsync, copy_in),
        ROW(cuMemcpyDtoHAsync, copy_out),
        ROW(cuMemsetD8Async, memset_bytes),
        ROW(cuEventElapsedTime, event_elapsed_time),
        ROW(cuModuleGetFunction, module_get_function),
        ROW(cuModuleGetGlobal, module_get_global),
        ROW(cuLaunchKernel, launch_kernel),
    };
    auto found = functions.find(name);
    *address = found == functions.end() ? reinterpret_cast<void *>(accept) : found->second;
    *result = CU_GET_PROC_ADDRESS_SUCCESS;
    return CUDA_SUCCESS;
}
