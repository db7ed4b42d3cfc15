/* The CUDA driver, loaded at run time: one table of functions, filled when a device is opened, so
 * that one program runs with and without a card. Nothing links libcuda or the CUDA runtime.
 *
 * Field names are the driver's own without `cu`. An optional function may be NULL. This header and
 * its users are compiled only if cuda.h is found (HAVE_CUDA). */
#pragma once

#include <cuda.h>

#include "allocators/base/status.h"

/* field, function, version of its interface (a driver below it lacks the function), kind */
#define CUDA_FUNCTIONS(X)                                                                          \
    X(init, cuInit, 2000, REQUIRED)                                                                \
    X(get_error_name, cuGetErrorName, 6000, REQUIRED)                                              \
    X(get_error_string, cuGetErrorString, 6000, REQUIRED)                                          \
    X(device_get_count, cuDeviceGetCount, 2000, REQUIRED)                                          \
    X(device_get, cuDeviceGet, 2000, REQUIRED)                                                     \
    X(device_get_name, cuDeviceGetName, 2000, REQUIRED)                                            \
    X(device_get_attribute, cuDeviceGetAttribute, 2000, REQUIRED)                                  \
    X(device_total_mem, cuDeviceTotalMem, 3020, REQUIRED)                                          \
    X(device_get_uuid, cuDeviceGetUuid, 11040, OPTIONAL)                                           \
    X(device_get_pci_bus_id, cuDeviceGetPCIBusId, 4010, OPTIONAL)                                  \
    X(device_primary_ctx_retain, cuDevicePrimaryCtxRetain, 7000, REQUIRED)                         \
    X(device_primary_ctx_release, cuDevicePrimaryCtxRelease, 11000, REQUIRED)                      \
    X(ctx_set_current, cuCtxSetCurrent, 4000, REQUIRED)                                            \
    X(ctx_get_current, cuCtxGetCurrent, 4000, REQUIRED)                                            \
    X(ctx_synchronize, cuCtxSynchronize, 2000, REQUIRED)                                           \
    X(mem_alloc, cuMemAlloc, 3020, REQUIRED)                                                       \
    X(mem_free, cuMemFree, 3020, REQUIRED)                                                         \
    X(mem_get_info, cuMemGetInfo, 3020, REQUIRED)                                                  \
    X(mem_host_alloc, cuMemHostAlloc, 2020, REQUIRED)                                              \
    X(mem_free_host, cuMemFreeHost, 2000, REQUIRED)                                                \
    X(mem_address_reserve, cuMemAddressReserve, 10020, OPTIONAL)                                   \
    X(mem_address_free, cuMemAddressFree, 10020, OPTIONAL)                                         \
    X(mem_create, cuMemCreate, 10020, OPTIONAL)                                                    \
    X(mem_release, cuMemRelease, 10020, OPTIONAL)                                                  \
    X(mem_map, cuMemMap, 10020, OPTIONAL)                                                          \
    X(mem_unmap, cuMemUnmap, 10020, OPTIONAL)                                                      \
    X(mem_set_access, cuMemSetAccess, 10020, OPTIONAL)                                             \
    X(mem_get_allocation_granularity, cuMemGetAllocationGranularity, 10020, OPTIONAL)              \
    X(mem_pool_create, cuMemPoolCreate, 11020, OPTIONAL)                                           \
    X(mem_pool_destroy, cuMemPoolDestroy, 11020, OPTIONAL)                                         \
    X(mem_pool_set_attribute, cuMemPoolSetAttribute, 11020, OPTIONAL)                              \
    X(mem_pool_get_attribute, cuMemPoolGetAttribute, 11020, OPTIONAL)                              \
    X(mem_pool_trim_to, cuMemPoolTrimTo, 11020, OPTIONAL)                                          \
    X(mem_alloc_from_pool_async, cuMemAllocFromPoolAsync, 11020, OPTIONAL)                         \
    X(mem_free_async, cuMemFreeAsync, 11020, OPTIONAL)                                             \
    X(stream_create, cuStreamCreate, 2000, REQUIRED)                                               \
    X(stream_destroy, cuStreamDestroy, 4000, REQUIRED)                                             \
    X(stream_query, cuStreamQuery, 2000, REQUIRED)                                                 \
    X(stream_synchronize, cuStreamSynchronize, 2000, REQUIRED)                                     \
    X(stream_wait_event, cuStreamWaitEvent, 3020, REQUIRED)                                        \
    X(stream_is_capturing, cuStreamIsCapturing, 10000, OPTIONAL)                                   \
    X(thread_exchange_capture_mode, cuThreadExchangeStreamCaptureMode, 10010, OPTIONAL)            \
    X(event_create, cuEventCreate, 2000, REQUIRED)                                                 \
    X(event_destroy, cuEventDestroy, 4000, REQUIRED)                                               \
    X(event_record, cuEventRecord, 2000, REQUIRED)                                                 \
    X(event_query, cuEventQuery, 2000, REQUIRED)                                                   \
    X(event_synchronize, cuEventSynchronize, 2000, REQUIRED)                                       \
    X(event_elapsed_time, cuEventElapsedTime, 2000, REQUIRED)                                      \
    X(module_load_data, cuModuleLoadData, 2000, REQUIRED)                                          \
    X(module_unload, cuModuleUnload, 2000, REQUIRED)                                               \
    X(module_get_function, cuModuleGetFunction, 2000, REQUIRED)                                    \
    X(module_get_global, cuModuleGetGlobal, 3020, REQUIRED)                                        \
    X(func_get_attribute, cuFuncGetAttribute, 2020, REQUIRED)                                      \
    X(launch_kernel, cuLaunchKernel, 4000, REQUIRED)                                               \
    X(memcpy_htod_async, cuMemcpyHtoDAsync, 3020, REQUIRED)                                        \
    X(memcpy_dtoh_async, cuMemcpyDtoHAsync, 3020, REQUIRED)                                        \
    X(memcpy_dtod_async, cuMemcpyDtoDAsync, 3020, REQUIRED)                                        \
    X(memset_d8_async, cuMemsetD8Async, 3020, REQUIRED)                                            \
    X(memset_d32_async, cuMemsetD32Async, 3020, REQUIRED)

/* The first driver whose cuGetProcAddress reports why a function is missing. */
#define CUDA_DRIVER_LEAST 12000

struct cuda_api {
    int driver_version; /* 1000 * major + 10 * minor, of the CUDA that the driver offers */
#define X(field, function, version, kind) __typeof__(function) *field;
    CUDA_FUNCTIONS(X)
#undef X
};

/* Loads the driver, fills the table and initialises the driver. MISSING with a sentence: there is
 * no driver, it is too old, or it lacks a required function. The library stays loaded until the
 * process ends, because the driver has its own threads. */
enum ar_status cuda_api_open(struct cuda_api *api, struct ar_error *error);

/* "CUDA_ERROR_OUT_OF_MEMORY"; a name for any number. */
const char *cuda_result_name(const struct cuda_api *api, CUresult result);

bool cuda_has_virtual_memory(const struct cuda_api *api);
bool cuda_has_pool(const struct cuda_api *api);
