/* Host side of the kernels: the module, launches, fill, verify and touch.
 *
 * The module is an image that nvcc made of kernels.cu for one architecture of each family, with
 * PTX for those to come; the assembler puts it into the program (kernels_image.S). The driver
 * loads kernels lazily, some of them waiting for the device: open launches each once, with
 * nothing to do, so that no run meets that. */
#include "bench/cuda/kernels_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 256, BLOCKS_PER_PROCESSOR = 8, TOUCH_BYTES = 4096 };

/* kernels_image.S. Empty without nvcc, and in the plug-in. */
extern const unsigned char kernels_image[];
extern const uint64_t kernels_image_bytes;

bool kernels_built(void)
{
    return kernels_image_bytes > 0;
}

static const char *const kernel_names[KERNEL_COUNT] = {
#define X(name) #name,
    KERNELS(X)
#undef X
};

/* ---- launching ---------------------------------------------------------------------------------- */

enum ar_status kernels_result(struct kernels *self, CUresult result, const char *call,
                              uint64_t bytes)
{
    if (result == CUDA_SUCCESS)
        return AR_OK;
    snprintf(self->problem, sizeof self->problem, "%s of %llu bytes failed: %s", call,
             (unsigned long long)bytes, cuda_result_name(self->api, result));
    return result == CUDA_ERROR_OUT_OF_MEMORY ? AR_REFUSED : AR_INVALID;
}

struct kernel_grid kernels_grid(const struct kernels *self, uint64_t items)
{
    uint64_t blocks = (items + THREADS - 1) / THREADS, most = self->processors;
    most *= BLOCKS_PER_PROCESSOR;
    blocks = blocks < 1 ? 1 : blocks < most ? blocks : most;
    return (struct kernel_grid){(unsigned)blocks, THREADS, 1};
}

enum ar_status kernels_launch(struct kernels *self, enum kernel kernel, struct kernel_grid grid,
                              CUstream stream, void **arguments, uint64_t bytes)
{
    CUresult result = self->api->launch_kernel(self->function[kernel], grid.blocks, 1, 1, grid.x,
                                               grid.y, 1, 0, stream, arguments, NULL);
    if (result == CUDA_SUCCESS)
        return AR_OK;
    char call[96];
    snprintf(call, sizeof call, "a launch (cuLaunchKernel) of the kernel %s on a range",
             kernel_names[kernel]);
    return kernels_result(self, result, call, bytes);
}

/* ---- opening ------------------------------------------------------------------------------------ */

static enum ar_status find_record(struct kernels *self, const char *name, size_t bytes,
                                  CUdeviceptr *out)
{
    size_t found = 0;
    enum ar_status status =
        kernels_result(self, self->api->module_get_global(out, &found, self->module, name),
                       "cuModuleGetGlobal", bytes);
    if (status == AR_OK && found != bytes) {
        snprintf(self->problem, sizeof self->problem,
                 "the kernels' record %s has %zu bytes where the program expects %zu: build again "
                 "after make clean",
                 name, found, bytes);
        return AR_CORRUPT;
    }
    return status;
}

static enum ar_status load(struct kernels *self, CUdevice card)
{
    const struct cuda_api *api = self->api;
    int processors = 0;
    enum ar_status status = kernels_result(
        self,
        api->device_get_attribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, card),
        "cuDeviceGetAttribute", 0);
    self->processors = processors > 0 ? (unsigned)processors : 1;
    if (status == AR_OK)
        status = kernels_result(self, api->module_load_data(&self->module, kernels_image),
                                "loading the kernels (cuModuleLoadData)", 0);
    for (int i = 0; i < KERNEL_COUNT && status == AR_OK; i++)
        status = kernels_result(
            self, api->module_get_function(&self->function[i], self->module, kernel_names[i]),
            kernel_names[i], 0);
    if (status == AR_OK)
        status = find_record(self, "kernels_wrong", sizeof(struct kernels_wrong), &self->wrong);
    if (status == AR_OK)
        status = find_record(self, "kernels_timer", sizeof(struct kernels_timer), &self->timer);
    if (status == AR_OK)
        status = kernels_result(self, api->stream_create(&self->stream, CU_STREAM_NON_BLOCKING),
                                "cuStreamCreate", 0);
    return status;
}

/* Every kernel's arguments are no larger than this; all zero, each finds nothing to do. */
static enum ar_status launch_all(struct kernels *self)
{
    uint64_t zero[8] = {0};
    void *arguments[] = {zero, zero, zero, zero};
    enum ar_status status = AR_OK;
    for (int i = 0; i < KERNEL_COUNT && status == AR_OK; i++)
        status = kernels_launch(self, (enum kernel)i, (struct kernel_grid){1, 32, 1}, self->stream,
                                arguments, 0);
    return status == AR_OK
               ? kernels_result(self, self->api->stream_synchronize(self->stream),
                                "the first launch of all kernels (cuStreamSynchronize)", 0)
               : status;
}

enum ar_status kernels_open(const struct cuda_api *api, CUdevice card, struct kernels **out,
                            struct ar_error *error)
{
    *out = NULL;
    if (!kernels_built())
        return ar_error_set(
            error, AR_MISSING,
            "this build holds no kernels, since nvcc was not found when it was made; "
            "install a CUDA toolkit and build again, or use the simulated device, "
            "sim");
    struct kernels *self = calloc(1, sizeof *self);
    if (!self)
        return ar_error_set(error, AR_HOST_MEMORY, "the host has no memory left for kernels");
    self->api = api;
    enum ar_status status = load(self, card);
    if (status == AR_OK)
        status = launch_all(self);
    if (status == AR_OK)
        status = spin_calibrate(self);
    if (status == AR_OK) {
        *out = self;
        return AR_OK;
    }
    status = ar_error_set(error, status, "the kernels of device cuda cannot be made ready: %s",
                          self->problem);
    kernels_close(self);
    return status;
}

void kernels_close(struct kernels *self)
{
    if (!self)
        return;
    blas_close(self->blas);
    if (self->stream)
        self->api->stream_destroy(self->stream);
    if (self->module)
        self->api->module_unload(self->module);
    free(self);
}

void kernels_facts(const struct kernels *self, struct kernels_facts *out)
{
    *out = (struct kernels_facts){
        .clock = self->spin.by_cycles ? "cycles" : "timer",
        .timer_step_ns = self->spin.timer_step_ns,
        .units_per_ns = self->spin.units_per_ns,
        .spin_overhead_ns = self->spin.overhead_ns,
        .spin_least_ns = self->spin.least_ns,
        .matmul = self->matmul,
        .matmul_bytes = self->blas ? blas_held_bytes(self->blas) : 0,
    };
}

const char *kernels_problem(const struct kernels *self)
{
    return self->problem;
}

/* ---- fill, verify, touch ------------------------------------------------------------------------ */

enum ar_status kernels_fill(struct kernels *self, uint64_t address, uint64_t bytes, uint64_t block,
                            CUstream stream)
{
    void *arguments[] = {&address, &bytes, &block};
    if (!bytes)
        return AR_OK;
    return kernels_launch(self, KERNEL_fill, kernels_grid(self, bytes / 16), stream, arguments,
                          bytes);
}

enum ar_status kernels_verify(struct kernels *self, uint64_t address, uint64_t bytes,
                              uint64_t block, CUstream stream)
{
    uint64_t number = ++self->verifications;
    void *arguments[] = {&address, &bytes, &block, &number};
    if (!bytes)
        return AR_OK;
    return kernels_launch(self, KERNEL_verify, kernels_grid(self, bytes / 16), stream, arguments,
                          bytes);
}

enum ar_status kernels_wrong(struct kernels *self, struct ar_device_wrong *out)
{
    struct kernels_wrong record = {0};
    const struct cuda_api *api = self->api;
    memset(out, 0, sizeof *out);
    enum ar_status status = kernels_result(self, api->ctx_synchronize(),
                                           "waiting for verifications "
                                           "(cuCtxSynchronize)",
                                           0);
    if (status == AR_OK)
        status = kernels_result(
            self, api->memcpy_dtoh_async(&record, self->wrong, sizeof record, self->stream),
            "cuMemcpyDtoHAsync", sizeof record);
    if (status == AR_OK)
        status = kernels_result(self, api->stream_synchronize(self->stream), "cuStreamSynchronize",
                                sizeof record);
    if (status != AR_OK || !record.count)
        return status;
    *out = (struct ar_device_wrong){
        .count = record.count,
        .address = record.address,
        .block = record.block,
        .offset = record.offset,
        .expected = (uint8_t)record.expected,
        .found = (uint8_t)record.found,
    };
    return AR_OK;
}

enum ar_status kernels_forget_wrong(struct kernels *self)
{
    const struct cuda_api *api = self->api;
    enum ar_status status = kernels_result(self, api->ctx_synchronize(),
                                           "waiting for verifications (cuCtxSynchronize)", 0);
    if (status == AR_OK)
        status = kernels_result(
            self, api->memset_d8_async(self->wrong, 0, sizeof(struct kernels_wrong), self->stream),
            "cuMemsetD8Async", sizeof(struct kernels_wrong));
    return status == AR_OK ? kernels_result(self, api->stream_synchronize(self->stream),
                                            "cuStreamSynchronize", sizeof(struct kernels_wrong))
                           : status;
}

enum ar_status kernels_touch(struct kernels *self, uint64_t address, uint64_t bytes,
                             CUstream stream)
{
    void *arguments[] = {&address, &bytes};
    if (!bytes)
        return AR_OK;
    return kernels_launch(self, KERNEL_touch, kernels_grid(self, bytes / TOUCH_BYTES), stream,
                          arguments, bytes);
}
