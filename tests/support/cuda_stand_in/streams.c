/* Streams, events and kernels of the stand-in. A timed kernel moves its stream's tail, in host
 * time; nothing else takes any. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/cuda/kernels_shared.h"
#include "tests/support/cuda_stand_in/stand_in.h"

#define WRONG_ADDRESS (UINT64_C(0x7c) << 40)
#define TIMER_ADDRESS (WRONG_ADDRESS + 4096)

static struct stand_in_stream *stream_of(CUstream stream)
{
    static struct stand_in_stream null_stream;
    bool by_default = !stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
    return by_default ? &null_stream : (struct stand_in_stream *)(void *)stream;
}

static struct stand_in_event *event_of(CUevent event)
{
    return (struct stand_in_event *)(void *)event;
}

static void wait_until(uint64_t time_ns)
{
    while (stand_in_now_ns() < time_ns) {
        const struct timespec rest = {.tv_nsec = 20000};
        nanosleep(&rest, NULL);
    }
}

CUresult CUDAAPI cuCtxSynchronize(void)
{
    STAND_IN_CALL(ctx_synchronize);
    wait_until(stand_in()->latest_ns);
    stand_in_pools_settle();
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamCreate(CUstream *stream, unsigned flags)
{
    STAND_IN_CALL(stream_create);
    struct stand_in_stream *made = stand_in_keep(sizeof *made);
    *stream = (CUstream)(void *)made;
    stand_in()->held[STAND_IN_HELD_stream]++;
    return flags == CU_STREAM_NON_BLOCKING ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuStreamDestroy(CUstream stream)
{
    STAND_IN_CALL(stream_destroy);
    stand_in_drop(stream_of(stream));
    stand_in()->held[STAND_IN_HELD_stream]--;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamQuery(CUstream stream)
{
    STAND_IN_CALL(stream_query);
    return stream_of(stream)->tail_ns > stand_in_now_ns() ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamSynchronize(CUstream stream)
{
    STAND_IN_CALL(stream_synchronize);
    if (stream_of(stream)->captured)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    wait_until(stream_of(stream)->tail_ns);
    stand_in_pools_settle();
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    STAND_IN_CALL(stream_is_capturing);
    *status = stream_of(stream)->captured ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                          : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    static _Thread_local CUstreamCaptureMode mode_now = CU_STREAM_CAPTURE_MODE_GLOBAL;
    STAND_IN_CALL(thread_exchange_capture_mode);
    CUstreamCaptureMode before = mode_now;
    mode_now = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    (void)flags;
    STAND_IN_CALL(stream_wait_event);
    if (stream_of(stream)->captured)
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    struct stand_in_stream *waiting = stream_of(stream);
    if (event_of(event)->recorded && event_of(event)->time_ns > waiting->tail_ns)
        waiting->tail_ns = event_of(event)->time_ns;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventCreate(CUevent *event, unsigned flags)
{
    STAND_IN_CALL(event_create);
    struct stand_in_event *made = stand_in_keep(sizeof *made);
    made->timed = !(flags & CU_EVENT_DISABLE_TIMING);
    *event = (CUevent)(void *)made;
    stand_in()->held[STAND_IN_HELD_event]++;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventDestroy(CUevent event)
{
    STAND_IN_CALL(event_destroy);
    stand_in_drop(event_of(event));
    stand_in()->held[STAND_IN_HELD_event]--;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventRecord(CUevent event, CUstream stream)
{
    STAND_IN_CALL(event_record);
    if (stream_of(stream)->captured)
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    uint64_t now_ns = stand_in_now_ns(), tail_ns = stream_of(stream)->tail_ns;
    event_of(event)->recorded = true;
    event_of(event)->time_ns = tail_ns > now_ns ? tail_ns : now_ns;
    return CUDA_SUCCESS;
}

static bool is_ready(CUevent event)
{
    return !event_of(event)->recorded || event_of(event)->time_ns <= stand_in_now_ns();
}

CUresult CUDAAPI cuEventQuery(CUevent event)
{
    STAND_IN_CALL(event_query);
    return is_ready(event) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult CUDAAPI cuEventSynchronize(CUevent event)
{
    STAND_IN_CALL(event_synchronize);
    wait_until(event_of(event)->time_ns);
    stand_in_pools_settle();
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
    STAND_IN_CALL(event_elapsed_time);
    const struct stand_in_event *first = event_of(from), *last = event_of(to);
    if (!first->timed || !last->timed || !first->recorded || !last->recorded)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!is_ready(from) || !is_ready(to))
        return CUDA_ERROR_NOT_READY;
    *ms = (float)(((double)last->time_ns - (double)first->time_ns) / 1e6);
    return CUDA_SUCCESS;
}

/* ---- modules and kernels -------------------------------------------------------------------- */

static int module; /* its address is the one there is */

CUresult CUDAAPI cuModuleLoadData(CUmodule *out, const void *image)
{
    STAND_IN_CALL(module_load_data);
    *out = (CUmodule)(void *)&module;
    stand_in()->held[STAND_IN_HELD_module]++;
    return image ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuModuleUnload(CUmodule which)
{
    (void)which;
    STAND_IN_CALL(module_unload);
    stand_in()->held[STAND_IN_HELD_module]--;
    return CUDA_SUCCESS;
}

/* Functions are told apart by what the stand-in does with them. */
static int kernel_other, kernel_range, kernel_timer, kernel_clock;

CUresult CUDAAPI cuModuleGetFunction(CUfunction *function, CUmodule which, const char *name)
{
    (void)which;
    STAND_IN_CALL(module_get_function);
    bool range = !strcmp(name, "fill") || !strcmp(name, "verify") || !strcmp(name, "touch");
    bool timer = !strcmp(name, "spin_timer"),
         clock = !strcmp(name, "spin_clock"); /* 1 cycle a ns */
    int *kernel = range   ? &kernel_range
                  : timer ? &kernel_timer
                  : clock ? &kernel_clock
                          : &kernel_other;
    *function = (CUfunction)(void *)kernel;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleGetGlobal(CUdeviceptr *address, size_t *bytes, CUmodule which,
                                   const char *name)
{
    (void)which;
    STAND_IN_CALL(module_get_global);
    bool timer = !strcmp(name, "kernels_timer");
    *address = timer ? TIMER_ADDRESS : WRONG_ADDRESS;
    *bytes = timer ? sizeof(struct kernels_timer) : sizeof(struct kernels_wrong);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    (void)attribute;
    (void)function;
    STAND_IN_CALL(func_get_attribute);
    *value = 1;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                unsigned grid_z, unsigned block_x, unsigned block_y,
                                unsigned block_z, unsigned shared_bytes, CUstream stream,
                                void **arguments, void **extra)
{
    struct stand_in *self = stand_in();
    (void)shared_bytes;
    (void)extra;
    STAND_IN_CALL(launch_kernel);
    if (!grid_x || !grid_y || !grid_z || !block_x || !block_y || !block_z)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t first = *(const uint64_t *)arguments[0];
    if ((void *)function == (void *)&kernel_range &&
        !stand_in_accessible(first, *(const uint64_t *)arguments[1]))
        self->sticky = CUDA_ERROR_ILLEGAL_ADDRESS; /* the next call tells, as with a card */
    bool timer = (void *)function == (void *)&kernel_timer;
    if ((timer || (void *)function == (void *)&kernel_clock) && self->real_time) {
        struct stand_in_stream *queue = stream_of(stream);
        uint64_t now_ns = stand_in_now_ns();
        if (first > self->longest_wait_ns)
            self->longest_wait_ns = first;
        queue->tail_ns = (queue->tail_ns > now_ns ? queue->tail_ns : now_ns) + first +
                         (timer ? self->timer_extra_ns : 0);
        if (queue->tail_ns > self->latest_ns)
            self->latest_ns = queue->tail_ns;
    }
    return CUDA_SUCCESS;
}

/* ---- copies --------------------------------------------------------------------------------- */

CUresult CUDAAPI cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)stream;
    STAND_IN_CALL(memcpy_dtoh_async);
    memset(to, 0, bytes);
    if (from == TIMER_ADDRESS && bytes == sizeof(struct kernels_timer)) {
        const struct kernels_timer timer = {.changes = 256, .total_ns = 256 * 32, .least_ns = 32};
        memcpy(to, &timer, sizeof timer);
    }
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    (void)from;
    (void)stream;
    STAND_IN_CALL(memcpy_htod_async);
    return stand_in_accessible(to, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)stream;
    STAND_IN_CALL(memcpy_dtod_async);
    return stand_in_accessible(to, bytes) && stand_in_accessible(from, bytes)
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
{
    (void)value;
    (void)stream;
    STAND_IN_CALL(memset_d8_async);
    return stand_in_accessible(to, count) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream)
{
    (void)value;
    (void)stream;
    STAND_IN_CALL(memset_d32_async);
    return stand_in_accessible(to, 4 * count) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
