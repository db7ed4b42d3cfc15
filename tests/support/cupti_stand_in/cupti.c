/* A stand-in for libcupti.so.13 above the stand-in of the driver: one subscriber, its callbacks,
 * and records of kernels, which take as many nanoseconds as their first argument says.
 *
 * Environment: STAND_IN_CUPTI=refuse: the subscription is refused, as when another holds it. */
#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cuda_stand_in/stand_in.h"

#define CALLS_MOST   1024
#define KERNELS_MOST 4096

static CUpti_CallbackFunc callback;
static void *user;
static bool enabled[2][CALLS_MOST];
static CUpti_BuffersCallbackRequestFunc give_buffer;
static CUpti_BuffersCallbackCompleteFunc take_buffer;
static bool kernels_enabled;
static CUpti_ActivityKernel9 kernels[KERNELS_MOST];
static unsigned kernel_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void add_kernel(const struct stand_in_call *call)
{
    const cuLaunchKernel_params *launch = call->arguments;
    pthread_mutex_lock(&lock);
    if (kernel_count < KERNELS_MOST)
        kernels[kernel_count++] =
            (CUpti_ActivityKernel9){.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                    .start = 1000,
                                    .end = 1000 + *(const uint64_t *)launch->kernelParams[0],
                                    .correlationId = call->correlation};
    pthread_mutex_unlock(&lock);
}

static void watch(struct stand_in_call *call)
{
    if (call->number >= CALLS_MOST)
        return;
    if (kernels_enabled && call->ended && !call->runtime && call->result == CUDA_SUCCESS &&
        call->number == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel)
        add_kernel(call);
    if (!enabled[call->runtime][call->number])
        return;
    const CUpti_CallbackData data = {
        .callbackSite = call->ended ? CUPTI_API_EXIT : CUPTI_API_ENTER,
        .functionName = call->name,
        .functionParams = call->arguments,
        .functionReturnValue = &call->result,
        .context = (CUcontext)(void *)&lock,
        .correlationData = &call->kept,
        .correlationId = call->correlation,
    };
    callback(user, call->runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API,
             call->number, &data);
}

CUptiResult CUPTIAPI cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc function,
                                    void *userdata)
{
    const char *told = getenv("STAND_IN_CUPTI");
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *address = driver ? dlsym(driver, "stand_in_watch") : NULL;
    void (*begin)(stand_in_watcher * watcher);
    if (told && strcmp(told, "refuse") == 0)
        return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    if (!address)
        return CUPTI_ERROR_NOT_INITIALIZED;
    memcpy(&begin, &address, sizeof begin);
    callback = function;
    user = userdata;
    *subscriber = (CUpti_SubscriberHandle)(void *)&lock;
    begin(watch);
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle subscriber)
{
    (void)subscriber;
    memset(enabled, 0, sizeof enabled);
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                         CUpti_CallbackDomain domain, CUpti_CallbackId number)
{
    (void)subscriber;
    if (number >= CALLS_MOST)
        return CUPTI_ERROR_INVALID_PARAMETER;
    enabled[domain == CUPTI_CB_DOMAIN_RUNTIME_API][number] = enable != 0;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetResultString(CUptiResult result, const char **text)
{
    *text = result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
                ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
                : "as the stand-in found";
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetVersion(uint32_t *version)
{
    *version = CUPTI_API_VERSION;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetDeviceId(CUcontext context, uint32_t *device)
{
    (void)context;
    *device = 0;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc give,
                                                    CUpti_BuffersCallbackCompleteFunc take)
{
    give_buffer = give;
    take_buffer = take;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind)
{
    kernels_enabled = kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid_bytes,
                                                CUpti_Activity **record)
{
    uint8_t *at = *record ? (uint8_t *)*record + sizeof kernels[0] : buffer;
    if (at + sizeof kernels[0] > buffer + valid_bytes)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = (CUpti_Activity *)(void *)at;
    return CUPTI_SUCCESS;
}

/* Buffers of a few records each, so that several come. */
CUptiResult CUPTIAPI cuptiActivityFlushAll(uint32_t flags)
{
    (void)flags;
    pthread_mutex_lock(&lock);
    for (unsigned done = 0; done < kernel_count;) {
        uint8_t *buffer = NULL;
        size_t bytes = 0, most = 0;
        unsigned count = kernel_count - done > 3 ? 3 : kernel_count - done;
        give_buffer(&buffer, &bytes, &most);
        if (bytes < count * sizeof kernels[0])
            break;
        memcpy(buffer, kernels + done, count * sizeof kernels[0]);
        take_buffer(NULL, 0, buffer, bytes, count * sizeof kernels[0]);
        done += count;
    }
    kernel_count = 0;
    pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}
