/* What the driver's stream-ordered pool does in small programs of allocations, call by call:
 * pool_recording PROGRAMS ANSWERS AT_ONCE. Each program runs in a process of its own, AT_ONCE of
 * which may get ready at the same time. The lines of both files are described in
 * pool_programs.py. */
#include <cuda.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST_IDS      65536
#define MOST_STREAMS  16
#define MOST_EVENTS   256
#define MOST_CHILDREN 16
#define TAG_STEP      ((CUdeviceptr)2 << 20)
#define MOST_TAGS     (4u << 20)

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#define CALLS(X)                                                                                   \
    X(cuInit, "cuInit")                                                                            \
    X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain")                                        \
    X(cuCtxSetCurrent, "cuCtxSetCurrent")                                                          \
    X(cuDeviceGetName, "cuDeviceGetName")                                                          \
    X(cuDriverGetVersion, "cuDriverGetVersion")                                                    \
    X(cuDeviceGetDefaultMemPool, "cuDeviceGetDefaultMemPool")                                      \
    X(cuMemPoolCreate, "cuMemPoolCreate")                                                          \
    X(cuMemPoolSetAttribute, "cuMemPoolSetAttribute")                                              \
    X(cuMemPoolGetAttribute, "cuMemPoolGetAttribute")                                              \
    X(cuMemPoolTrimTo, "cuMemPoolTrimTo")                                                          \
    X(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync")                                          \
    X(cuMemFreeAsync, "cuMemFreeAsync")                                                            \
    X(cuMemHostAlloc, "cuMemHostAlloc")                                                            \
    X(cuStreamCreate, "cuStreamCreate")                                                            \
    X(cuStreamSynchronize, "cuStreamSynchronize")                                                  \
    X(cuStreamQuery, "cuStreamQuery")                                                              \
    X(cuStreamWaitEvent, "cuStreamWaitEvent")                                                      \
    X(cuStreamWaitValue32, "cuStreamWaitValue32")                                                  \
    X(cuCtxSynchronize, "cuCtxSynchronize")                                                        \
    X(cuEventCreate, "cuEventCreate")                                                              \
    X(cuEventRecord, "cuEventRecord")                                                              \
    X(cuEventSynchronize, "cuEventSynchronize")                                                    \
    X(cuMemcpy2DAsync, "cuMemcpy2DAsync")                                                          \
    X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync")                                                      \
    X(cuMemsetD8Async, "cuMemsetD8Async")

#define DECLARE(id, name) static __typeof__(id) *call_##id;
CALLS(DECLARE)

static void need(CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS)
        return;
    fprintf(stderr, "pool_recording: %s fails with %d\n", what, (int)result);
    _exit(1);
}
#define NEED(id, ...) need(call_##id(__VA_ARGS__), #id)

static void find_calls(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    __typeof__(cuGetProcAddress) *look_up;
    void *address = driver ? dlsym(driver, "cuGetProcAddress_v2") : NULL;
    if (!address) {
        fprintf(stderr, "pool_recording: no driver (%s)\n", dlerror());
        _exit(1);
    }
    memcpy(&look_up, &address, sizeof address);
    CUdriverProcAddressQueryResult why;
#define FIND(id, name)                                                                             \
    address = NULL;                                                                                \
    need(look_up(name, &address, 12080, 0, &why), name);                                           \
    need(address ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND, name);                                     \
    memcpy(&call_##id, &address, sizeof address);
    CALLS(FIND)
}

/* ---- one program ---------------------------------------------------------------------------- */

struct block {
    CUdeviceptr address;
    uint64_t bytes;
};

struct session {
    FILE *out;
    CUmemoryPool pool;
    CUstream streams[MOST_STREAMS];
    CUevent events[MOST_EVENTS];
    volatile uint32_t *gates; /* by stream; pinned */
    uint32_t gate_values[MOST_STREAMS];
    int tagged, quiet, stamped;
    uint32_t *old, *fresh; /* pinned: what allocations contained, what is written into them */
    uint32_t tags;
    uint32_t calls;
};

static struct block blocks[MOST_IDS];
static struct {
    uint32_t call, first, count;
} reads[MOST_IDS * 4];
static uint32_t read_count;

static void state(struct session *s)
{
    cuuint64_t used = 0, reserved = 0;
    if (!s->quiet) {
        NEED(cuMemPoolGetAttribute, s->pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used);
        NEED(cuMemPoolGetAttribute, s->pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved);
    }
    fprintf(s->out, ",%" PRIu64 ",%" PRIu64 "\n", (uint64_t)used, (uint64_t)reserved);
}

static void copy_column(CUdeviceptr device, uint32_t *host, uint32_t rows, int to_device,
                        CUstream stream)
{
    CUDA_MEMCPY2D copy = {.WidthInBytes = 4, .Height = rows};
    if (to_device) {
        copy.srcMemoryType = CU_MEMORYTYPE_HOST;
        copy.srcHost = host;
        copy.srcPitch = 4;
        copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
        copy.dstDevice = device;
        copy.dstPitch = TAG_STEP;
    } else {
        copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
        copy.srcDevice = device;
        copy.srcPitch = TAG_STEP;
        copy.dstMemoryType = CU_MEMORYTYPE_HOST;
        copy.dstHost = host;
        copy.dstPitch = 4;
    }
    NEED(cuMemcpy2DAsync, &copy, stream);
}

/* Reads one word in each 2 MiB of a new block, then writes new ones. */
static void tag(struct session *s, const struct block *block, CUstream stream)
{
    CUdeviceptr first = (block->address + TAG_STEP - 1) / TAG_STEP * TAG_STEP;
    CUdeviceptr end = block->address + block->bytes;
    uint32_t count = end < first + 4 ? 0 : (uint32_t)((end - 4 - first) / TAG_STEP + 1);
    if (!count || s->tags + count > MOST_TAGS)
        return;
    reads[read_count].call = s->calls;
    reads[read_count].first = s->tags;
    reads[read_count++].count = count;
    for (uint32_t i = 0; i < count; i++)
        s->fresh[s->tags + i] = s->tags + i + 1;
    copy_column(first, &s->old[s->tags], count, 0, stream);
    copy_column(first, &s->fresh[s->tags], count, 1, stream);
    s->tags += count;
}

static void do_alloc(struct session *s, unsigned id, uint64_t bytes, unsigned stream)
{
    struct block *block = &blocks[id % MOST_IDS];
    uint64_t begin = now_ns();
    CUresult result =
        call_cuMemAllocFromPoolAsync(&block->address, bytes, s->pool, s->streams[stream]);
    uint64_t ns = now_ns() - begin;
    block->bytes = bytes;
    if (result != CUDA_SUCCESS)
        block->address = 0;
    fprintf(s->out, "a,%u,%" PRIu64 ",%u,%d,%llx,%" PRIu64, id, bytes, stream, (int)result,
            (unsigned long long)block->address, ns);
    state(s);
    if (s->tagged && block->address)
        tag(s, block, s->streams[stream]);
}

static void do_free(struct session *s, unsigned id, unsigned stream)
{
    struct block *block = &blocks[id % MOST_IDS];
    if (!block->address)
        return;
    uint64_t begin = now_ns();
    NEED(cuMemFreeAsync, block->address, s->streams[stream]);
    fprintf(s->out, "f,%u,%u,%" PRIu64, id, stream, now_ns() - begin);
    block->address = 0;
    state(s);
}

static void open_gates(struct session *s)
{
    for (int i = 0; i < MOST_STREAMS; i++)
        s->gates[i] = UINT32_MAX / 2;
    need(call_cuCtxSynchronize(), "cuCtxSynchronize");
}

static void do_line(struct session *s, const char *line)
{
    char kind = line[0];
    unsigned long long a = 0, b = 0;
    unsigned c = 0;
    (void)sscanf(line + 1, " %llu %llu %u", &a, &b, &c);
    s->calls++;
    uint64_t begin = now_ns();
    if (s->stamped)
        fprintf(s->out, "T at %" PRIu64 "\n", begin);
    if (kind == 'a') {
        do_alloc(s, (unsigned)a, b, c % MOST_STREAMS);
        return;
    }
    if (kind == 'f') {
        do_free(s, (unsigned)a, (unsigned)b % MOST_STREAMS);
        return;
    }
    if (kind == 's')
        need(call_cuCtxSynchronize(), "cuCtxSynchronize");
    else if (kind == 'y')
        NEED(cuStreamSynchronize, s->streams[a % MOST_STREAMS]);
    else if (kind == 'q')
        (void)call_cuStreamQuery(s->streams[a % MOST_STREAMS]);
    else if (kind == 'h')
        NEED(cuStreamWaitValue32, s->streams[a % MOST_STREAMS],
             (CUdeviceptr)(uintptr_t)&s->gates[a % MOST_STREAMS],
             ++s->gate_values[a % MOST_STREAMS], CU_STREAM_WAIT_VALUE_GEQ);
    else if (kind == 'r') {
        s->gates[a % MOST_STREAMS] = s->gate_values[a % MOST_STREAMS];
        usleep(300);
    } else if (kind == 'w')
        usleep((unsigned)a);
    else if (kind == 'b')
        while (now_ns() < begin + a * 1000)
            continue;
    else if (kind == 'm' || kind == 'M')
        NEED(cuMemsetD8Async, blocks[a % MOST_IDS].address, 1,
             kind == 'm' ? 512 : (size_t)blocks[a % MOST_IDS].bytes, s->streams[b % MOST_STREAMS]);
    else if (kind == 'e')
        NEED(cuEventRecord, s->events[a % MOST_EVENTS], s->streams[b % MOST_STREAMS]);
    else if (kind == 'v')
        NEED(cuStreamWaitEvent, s->streams[b % MOST_STREAMS], s->events[a % MOST_EVENTS], 0);
    else if (kind == 'z')
        NEED(cuEventSynchronize, s->events[a % MOST_EVENTS]);
    else if (kind == 't')
        NEED(cuMemPoolTrimTo, s->pool, a);
    else
        need(CUDA_ERROR_INVALID_VALUE, line);
    fprintf(s->out, "%c,%llu,%llu,%" PRIu64, kind, a, b, now_ns() - begin);
    state(s);
}

static void print_tags(struct session *s)
{
    for (uint32_t i = 0; i < read_count; i++) {
        fprintf(s->out, "T,%u,%u,", reads[i].call, reads[i].first + 1);
        uint32_t run = 0;
        for (uint32_t at = 0; at < reads[i].count; at++) { /* runs: FIRST+LENGTH */
            uint32_t value = s->old[reads[i].first + at];
            uint32_t next = at + 1 < reads[i].count ? s->old[reads[i].first + at + 1] : UINT32_MAX;
            run++;
            if (next == value + 1 || (!value && !next))
                continue;
            fprintf(s->out, " %u+%u", value ? value + 1 - run : 0, run);
            run = 0;
        }
        fprintf(s->out, "\n");
    }
}

/* p NAME default|new THRESHOLD FOLLOW OPPORTUNISTIC INTERNAL MOST FLAGS */
static void open_pool(struct session *s, const char *line)
{
    char name[64], kind[16], threshold[32], flags[16];
    int follow, opportunistic, internal;
    unsigned long long most;
    if (sscanf(line, "p %63s %15s %31s %d %d %d %llu %15s", name, kind, threshold, &follow,
               &opportunistic, &internal, &most, flags) != 8)
        need(CUDA_ERROR_INVALID_VALUE, line);
    CUcontext context;
    NEED(cuInit, 0);
    NEED(cuDevicePrimaryCtxRetain, &context, 0);
    NEED(cuCtxSetCurrent, context);
    if (strcmp(kind, "new") == 0) {
        CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                     .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                                     .maxSize = (size_t)most};
        NEED(cuMemPoolCreate, &s->pool, &properties);
    } else {
        NEED(cuDeviceGetDefaultMemPool, &s->pool, 0);
    }
    cuuint64_t keep = strcmp(threshold, "max") ? strtoull(threshold, NULL, 10) : UINT64_MAX;
    NEED(cuMemPoolSetAttribute, s->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep);
    NEED(cuMemPoolSetAttribute, s->pool, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, &follow);
    NEED(cuMemPoolSetAttribute, s->pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &opportunistic);
    NEED(cuMemPoolSetAttribute, s->pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES,
         &internal);
    s->tagged = strchr(flags, 't') != NULL;
    s->quiet = strchr(flags, 'q') != NULL;
    s->stamped = strchr(flags, 'a') != NULL;
    void *gates;
    NEED(cuMemHostAlloc, &gates, 4096, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE);
    memset(gates, 0, 4096);
    s->gates = gates;
    if (s->tagged) {
        NEED(cuMemHostAlloc, (void **)&s->old, (size_t)MOST_TAGS * 4, 0);
        NEED(cuMemHostAlloc, (void **)&s->fresh, (size_t)MOST_TAGS * 4, 0);
    }
    for (int i = 0; i < MOST_STREAMS; i++)
        NEED(cuStreamCreate, &s->streams[i], CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < MOST_EVENTS; i++)
        NEED(cuEventCreate, &s->events[i], CU_EVENT_DISABLE_TIMING);
}

/* The answer appears as a whole; a program that fails leaves none. */
static void write_all(int to, const char *text, size_t size)
{
    while (size) {
        ssize_t written = write(to, text, size);
        need(written > 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM, "write");
        text += written;
        size -= (size_t)written;
    }
}

/* Programs get ready side by side, and run one at a time. */
static void run_program(char **lines, size_t count, int answers)
{
    char *text;
    size_t size;
    struct session s = {.out = open_memstream(&text, &size)};
    need(s.out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY, "open_memstream");
    alarm(120);
    find_calls();
    open_pool(&s, lines[0]);
    char card[128];
    int version;
    NEED(cuDeviceGetName, card, sizeof card, 0);
    NEED(cuDriverGetVersion, &version);
    fprintf(s.out, "# %s, CUDA %d\n%s", card, version, lines[0]);
    need(lockf(answers, F_LOCK, 0) ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS, "lockf");
    alarm(10);
    for (size_t i = 1; i < count; i++)
        do_line(&s, lines[i]);
    open_gates(&s);
    print_tags(&s);
    need(fflush(s.out) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS, "fflush");
    write_all(answers, text, size);
    _exit(0);
}

static struct child {
    pid_t id;
    char name[256];
} children[MOST_CHILDREN];
static unsigned child_count;
static int bad;

static void await_child(void)
{
    int status = 0;
    pid_t id = wait(&status);
    for (unsigned i = 0; i < child_count; i++) {
        if (children[i].id != id)
            continue;
        if (status) {
            bad = 1;
            fprintf(stderr, "pool_recording: ended with %x: %s", (unsigned)status,
                    children[i].name);
        }
        children[i] = children[--child_count];
        return;
    }
}

static void start(char **lines, size_t count, int answers, unsigned at_once)
{
    while (child_count >= at_once)
        await_child();
    pid_t id = fork();
    if (id == 0)
        run_program(lines, count, answers);
    if (id < 0) {
        bad = 1;
        perror("pool_recording: fork");
        return;
    }
    children[child_count].id = id;
    snprintf(children[child_count++].name, sizeof children[0].name, "%s", lines[0]);
}

int main(int argc, char **argv)
{
    FILE *in = argc == 4 ? fopen(argv[1], "r") : NULL;
    int answers = in ? open(argv[2], O_RDWR | O_CREAT | O_APPEND, 0666) : -1;
    unsigned at_once = argc == 4 ? (unsigned)atoi(argv[3]) : 0;
    if (answers < 0 || !at_once || at_once > MOST_CHILDREN) {
        fprintf(stderr, "pool_recording PROGRAMS ANSWERS AT_ONCE (up to %d)\n", MOST_CHILDREN);
        return 1;
    }
    static char *lines[MOST_IDS * 4];
    size_t count = 0;
    char line[256];
    for (char *got = line; got;) {
        got = fgets(line, sizeof line, in);
        if (count && (!got || line[0] == 'p')) {
            start(lines, count, answers, at_once);
            while (count)
                free(lines[--count]);
        }
        if (got && line[0] != '#')
            lines[count++] = strdup(line);
    }
    while (child_count)
        await_child();
    return bad;
}
