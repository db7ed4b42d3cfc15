/* A program that uses the driver, for the tests of the recorder: `record_program SCENE`. What it
 * asks, it prints as the events of a trace, with notes and times left out, so that the recording
 * can be compared with it line by line. */
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS     8
#define THREAD_ASKS 3000
#define AR_MIB      (UINT64_C(1) << 20)

struct driver {
    __typeof__(cuInit) *init;
    __typeof__(cuDevicePrimaryCtxRetain) *retain;
    __typeof__(cuCtxSetCurrent) *set_current;
    __typeof__(cuMemAlloc) *alloc;
    __typeof__(cuMemAllocPitch) *alloc_pitch;
    __typeof__(cuMemAllocManaged) *alloc_managed;
    __typeof__(cuMemFree) *release;
    __typeof__(cuMemHostAlloc) *host_alloc;
    __typeof__(cuMemAllocHost) *alloc_host;
    __typeof__(cuMemFreeHost) *host_free;
    __typeof__(cuMemAllocAsync) *alloc_async;
    __typeof__(cuMemAllocAsync) *alloc_async_own;
    __typeof__(cuMemFreeAsync) *free_async;
    __typeof__(cuMemPoolCreate) *pool_create;
    __typeof__(cuMemAllocFromPoolAsync) *alloc_from_pool;
    __typeof__(cuMemPoolTrimTo) *trim;
    __typeof__(cuMemAddressReserve) *reserve;
    __typeof__(cuMemAddressFree) *unreserve;
    __typeof__(cuMemCreate) *create;
    __typeof__(cuMemRelease) *handle_release;
    __typeof__(cuMemMap) *map;
    __typeof__(cuMemUnmap) *unmap;
    __typeof__(cuMemSetAccess) *set_access;
    __typeof__(cuStreamCreate) *stream_create;
    __typeof__(cuEventCreate) *event_create;
    __typeof__(cuEventRecord) *event_record;
    __typeof__(cuEventDestroy) *event_destroy;
    __typeof__(cuEventSynchronize) *event_synchronize;
    __typeof__(cuStreamWaitEvent) *wait_event;
    __typeof__(cuStreamSynchronize) *stream_synchronize;
    __typeof__(cuCtxSynchronize) *ctx_synchronize;
    __typeof__(cuModuleLoadData) *module_load;
    __typeof__(cuModuleGetFunction) *get_function;
    __typeof__(cuLaunchKernel) *launch;
    CUresult (*runtime_malloc)(void **pointer, size_t bytes, bool inner);
    CUresult (*runtime_free)(void *pointer, bool inner);
};

static void need(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "record_program: %s\n", what);
    exit(99);
}

static void set_pointer(void *pointer, void *address, const char *name)
{
    need(address != NULL, name);
    memcpy(pointer, &address, sizeof address);
}

static void open_driver(struct driver *driver)
{
    static const struct {
        size_t offset;
        const char *name;
    } rows[] = {
#define X(field, name) {offsetof(struct driver, field), name}
        X(init, "cuInit"),
        X(retain, "cuDevicePrimaryCtxRetain"),
        X(set_current, "cuCtxSetCurrent"),
        X(alloc, "cuMemAlloc"),
        X(alloc_pitch, "cuMemAllocPitch"),
        X(alloc_managed, "cuMemAllocManaged"),
        X(release, "cuMemFree"),
        X(host_alloc, "cuMemHostAlloc"),
        X(alloc_host, "cuMemAllocHost"),
        X(host_free, "cuMemFreeHost"),
        X(alloc_async, "cuMemAllocAsync"),
        X(alloc_async_own, "cuMemAllocAsync_ptsz"),
        X(free_async, "cuMemFreeAsync"),
        X(pool_create, "cuMemPoolCreate"),
        X(alloc_from_pool, "cuMemAllocFromPoolAsync"),
        X(trim, "cuMemPoolTrimTo"),
        X(reserve, "cuMemAddressReserve"),
        X(unreserve, "cuMemAddressFree"),
        X(create, "cuMemCreate"),
        X(handle_release, "cuMemRelease"),
        X(map, "cuMemMap"),
        X(unmap, "cuMemUnmap"),
        X(set_access, "cuMemSetAccess"),
        X(stream_create, "cuStreamCreate"),
        X(event_create, "cuEventCreate"),
        X(event_record, "cuEventRecord"),
        X(event_destroy, "cuEventDestroy"),
        X(event_synchronize, "cuEventSynchronize"),
        X(wait_event, "cuStreamWaitEvent"),
        X(stream_synchronize, "cuStreamSynchronize"),
        X(ctx_synchronize, "cuCtxSynchronize"),
        X(module_load, "cuModuleLoadData"),
        X(get_function, "cuModuleGetFunction"),
        X(launch, "cuLaunchKernel"),
#undef X
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    __typeof__(cuGetProcAddress) *look_up;
    need(library != NULL, "no driver");
    set_pointer(&look_up, dlsym(library, "cuGetProcAddress_v2"), "cuGetProcAddress_v2");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        void *address = NULL;
        CUdriverProcAddressQueryResult why;
        (void)look_up(rows[i].name, &address, 13000, 0, &why);
        set_pointer((char *)driver + rows[i].offset, address, rows[i].name);
    }
    set_pointer(&driver->runtime_malloc, dlsym(library, "stand_in_runtime_malloc"), "malloc");
    set_pointer(&driver->runtime_free, dlsym(library, "stand_in_runtime_free"), "free");
}

static void begin(const struct driver *driver)
{
    CUcontext context;
    need(driver->init(0) == CUDA_SUCCESS, "cuInit");
    need(driver->retain(&context, 0) == CUDA_SUCCESS, "cuDevicePrimaryCtxRetain");
    need(driver->set_current(context) == CUDA_SUCCESS, "cuCtxSetCurrent");
}

static CUdeviceptr alloc(const struct driver *driver, size_t bytes)
{
    CUdeviceptr address;
    need(driver->alloc(&address, bytes) == CUDA_SUCCESS, "cuMemAlloc");
    return address;
}

/* ---- scenes --------------------------------------------------------------------------------- */

static void scene_plain(const struct driver *driver)
{
    CUdeviceptr pitched, managed;
    void *host, *other_host;
    size_t pitch;
    CUdeviceptr first = alloc(driver, 1000);
    CUdeviceptr second = alloc(driver, 4 * AR_MIB);
    driver->release(first);
    driver->release(0);
    CUdeviceptr third = alloc(driver, 2000);
    driver->alloc_pitch(&pitched, &pitch, 1000, 7, 4);
    driver->alloc_managed(&managed, 3 * AR_MIB, 1);
    driver->host_alloc(&host, 5000, 0);
    driver->alloc_host(&other_host, 6000);
    driver->host_free(host);
    driver->release(third);
    driver->release(pitched);
    driver->release(managed);
    driver->host_free(other_host);
    driver->release(second);
    driver->release(second); /* refused: it is gone */
    driver->release(12345);
    puts("a,0,1000\na,1,4194304\nf,0\na,2,2000\na,3,7168\na,4,3145728,tag=managed\n"
         "a,5,5000,space=pinned\na,6,6000,space=pinned\nf,5\nf,2\nf,3\nf,4\nf,6\nf,1");
}

static void scene_ordered(const struct driver *driver)
{
    CUstream one, two;
    CUevent event, other;
    CUdeviceptr first, second, third, fourth;
    CUmemoryPool pool;
    const CUmemPoolProps properties = {.maxSize = 0};
    driver->stream_create(&one, CU_STREAM_NON_BLOCKING);
    driver->stream_create(&two, CU_STREAM_NON_BLOCKING);
    driver->event_create(&event, 0);
    driver->event_create(&other, 0);
    driver->pool_create(&pool, &properties);
    driver->alloc_async(&first, 1 * AR_MIB, two);
    driver->alloc_async(&second, 2 * AR_MIB, CU_STREAM_LEGACY);
    driver->alloc_async_own(&third, 3 * AR_MIB, NULL);
    driver->alloc_from_pool(&fourth, 4 * AR_MIB, pool, one);
    driver->event_record(event, two);
    driver->wait_event(one, event, 0);
    driver->wait_event(one, other, 0); /* never recorded: no wait */
    driver->free_async(first, one);
    driver->free_async(second, NULL);
    driver->stream_synchronize(one);
    driver->event_synchronize(event);
    driver->event_destroy(event);
    driver->event_record(other, CU_STREAM_PER_THREAD);
    driver->free_async(third, CU_STREAM_PER_THREAD);
    driver->free_async(fourth, one);
    driver->ctx_synchronize();
    driver->trim(pool, 0);
    puts("a,0,1048576,1\na,1,2097152\na,2,3145728,2\na,3,4194304,3,pool=1\ne,0,1\nw,3,0\nr,0,3\n"
         "r,1\ns,3\ne,0,2\nr,2\nr,3\ns\nc");
}

static void scene_virtual(const struct driver *driver)
{
    const CUmemAllocationProp kind = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
    };
    const CUmemAccessDesc access = {.location = kind.location,
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle pages[2], none;
    CUdeviceptr range;
    need(driver->reserve(&range, 16 * AR_MIB, 0, 0, 0) == CUDA_SUCCESS, "reserve");
    need(driver->create(&pages[0], 2 * AR_MIB, &kind, 0) == CUDA_SUCCESS, "create");
    need(driver->create(&pages[1], 4 * AR_MIB, &kind, 0) == CUDA_SUCCESS, "create");
    need(driver->map(range, 2 * AR_MIB, 0, pages[0], 0) == CUDA_SUCCESS, "map");
    need(driver->map(range + 2 * AR_MIB, 4 * AR_MIB, 0, pages[1], 0) == CUDA_SUCCESS, "map");
    need(driver->map(range + 8 * AR_MIB, 2 * AR_MIB, 0, pages[0], 0) == CUDA_SUCCESS, "map twice");
    need(driver->set_access(range, 6 * AR_MIB, &access, 1) == CUDA_SUCCESS, "access");
    need(driver->create(&none, UINT64_C(1) << 40, &kind, 0) != CUDA_SUCCESS, "create too much");
    need(driver->unmap(range, 6 * AR_MIB) == CUDA_SUCCESS, "unmap both");
    need(driver->unmap(range + 8 * AR_MIB, 2 * AR_MIB) == CUDA_SUCCESS, "unmap");
    driver->handle_release(pages[0]);
    driver->handle_release(pages[1]);
    need(driver->unreserve(range, 16 * AR_MIB) == CUDA_SUCCESS, "unreserve");
    puts("a,0,2097152,tag=mapped,physical=0\na,1,4194304,tag=mapped,physical=1\n"
         "a,2,2097152,tag=mapped,physical=0\np,3,1099511627776,tag=physical\nr,3\n"
         "f,0\nf,1\nf,2");
}

static void scene_failing(const struct driver *driver)
{
    CUdeviceptr address;
    CUdeviceptr first = alloc(driver, 8 * AR_MIB);
    need(driver->alloc(&address, UINT64_C(1) << 38) == CUDA_ERROR_OUT_OF_MEMORY, "served");
    driver->release(first);
    CUdeviceptr second = alloc(driver, 9 * AR_MIB);
    need(driver->alloc(&address, UINT64_C(1) << 39) == CUDA_ERROR_OUT_OF_MEMORY, "served");
    (void)second;
    puts("a,0,8388608\np,1,274877906944\nr,1\nf,0\na,2,9437184\na,3,549755813888\nr,3");
    exit(7);
}

static void scene_runtime(const struct driver *driver)
{
    void *first, *second, *third;
    driver->runtime_malloc(&first, 1000, true);
    driver->runtime_malloc(&second, 2000, false);
    driver->runtime_free(first, true);
    driver->runtime_free(second, false);
    driver->runtime_malloc(&third, 3000, true);
    puts("a,0,1000\na,1,2000\nf,0\nf,1\na,2,3000");
}

static void scene_kernels(const struct driver *driver)
{
    CUstream stream;
    CUmodule module;
    CUfunction function;
    driver->stream_create(&stream, CU_STREAM_NON_BLOCKING);
    driver->module_load(&module, "");
    driver->get_function(&function, module, "spin_timer");
    CUdeviceptr block = alloc(driver, 1000);
    for (uint64_t i = 0; i < 10; i++) {
        uint64_t duration_ns = 1000 + i;
        void *arguments[] = {&duration_ns};
        driver->launch(function, 1, 1, 1, 1, 1, 1, 0, i % 2 ? stream : NULL, arguments, NULL);
    }
    driver->release(block);
    puts("a,0,1000\nk,0,1000\nk,1,1001\nk,0,1002\nk,1,1003\nk,0,1004\nk,1,1005\nk,0,1006\n"
         "k,1,1007\nk,0,1008\nk,1,1009\nf,0");
}

struct thread {
    const struct driver *driver;
    CUcontext context;
    unsigned number;
};

/* Sizes say which thread asked and as how many'th. Half of the blocks are freed by another thread,
 * through a place that all share. */
static void *ask(void *argument)
{
    static CUdeviceptr shared[64];
    const struct thread *self = argument;
    self->driver->set_current(self->context);
    for (unsigned i = 0; i < THREAD_ASKS; i++) {
        CUdeviceptr block = alloc(self->driver, self->number * UINT64_C(1000000) + i + 1);
        CUdeviceptr other = __atomic_exchange_n(&shared[i % 64], block, __ATOMIC_ACQ_REL);
        if (other)
            self->driver->release(other);
    }
    return NULL;
}

static void scene_threads(const struct driver *driver)
{
    pthread_t threads[THREADS];
    struct thread arguments[THREADS];
    CUcontext context;
    driver->retain(&context, 0);
    for (unsigned i = 0; i < THREADS; i++) {
        arguments[i] = (struct thread){driver, context, i + 1};
        need(pthread_create(&threads[i], NULL, ask, &arguments[i]) == 0, "pthread_create");
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* The child was forked where the driver is in use, and goes on by itself. */
static void scene_fork(const struct driver *driver)
{
    CUdeviceptr first = alloc(driver, 1000);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        CUdeviceptr own = alloc(driver, 2000);
        driver->release(own);
        alloc(driver, 3000);
        _exit(0);
    }
    int state;
    waitpid(child, &state, 0);
    driver->release(first);
    alloc(driver, 4000);
    puts("a,0,1000\na,1,2000,1,tenant=1\nf,1,tenant=1\na,2,3000,1,tenant=1\nf,0\na,3,4000");
}

/* The child was forked before the driver was used: each process begins by itself. */
static void scene_fork_first(const struct driver *driver)
{
    int turn[2], done;
    need(pipe(turn) == 0, "pipe");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        char go;
        close(turn[1]);
        need(read(turn[0], &go, 1) == 1, "read");
        begin(driver);
        CUdeviceptr own = alloc(driver, 2000);
        driver->release(own);
        exit(0);
    }
    begin(driver);
    CUdeviceptr first = alloc(driver, 1000);
    need(write(turn[1], "", 1) == 1, "write");
    waitpid(child, &done, 0);
    need(WIFEXITED(done) && WEXITSTATUS(done) == 0, "the child failed");
    driver->release(first);
    puts("a,0,1000\na,1,2000,1,tenant=1\nf,1,tenant=1\nf,0");
}

static void scene_crash(const struct driver *driver)
{
    CUdeviceptr block = 0;
    for (unsigned i = 0; i < 5000; i++) {
        block = alloc(driver, 1000 + i);
        if (i % 2)
            driver->release(block);
    }
    kill(getpid(), SIGKILL);
}

/* Long enough to be killed in the middle of it. */
static void scene_long(const struct driver *driver)
{
    for (unsigned i = 0; i < 20000; i++) {
        CUdeviceptr block = alloc(driver, 1000 + i);
        if (i % 4)
            driver->release(block);
    }
}

static void scene_silent(const struct driver *driver)
{
    (void)driver;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*play)(const struct driver *driver);
    } scenes[] = {
        {"plain", scene_plain},     {"ordered", scene_ordered}, {"virtual", scene_virtual},
        {"failing", scene_failing}, {"runtime", scene_runtime}, {"kernels", scene_kernels},
        {"threads", scene_threads}, {"fork", scene_fork},       {"crash", scene_crash},
        {"silent", scene_silent},   {"long", scene_long},
    };
    struct driver driver;
    need(argc == 2, "give the name of a scene");
    open_driver(&driver);
    if (strcmp(argv[1], "fork_first") == 0) {
        scene_fork_first(&driver);
        return 0;
    }
    begin(&driver);
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++)
        if (strcmp(scenes[i].name, argv[1]) == 0) {
            scenes[i].play(&driver);
            return 0;
        }
    need(false, "no such scene");
}
