/* Inside of the kernels' host side: kernels.c, kernels_spin.c and kernels_op.c share it. */
#ifndef BENCH_CUDA_KERNELS_STATE_H
#define BENCH_CUDA_KERNELS_STATE_H

#include "bench/cuda/blas.h"
#include "bench/cuda/kernels.h"
#include "bench/cuda/kernels_shared.h"

enum kernel {
#define X(name) KERNEL_##name,
    KERNELS(X)
#undef X
        KERNEL_COUNT
};

enum kernel_format { FORMAT_F32, FORMAT_F16, FORMAT_BF16, FORMAT_I8, FORMAT_I64 };

/* How long timed kernels wait: `units` of the clock for (ns - overhead) * units_per_ns. */
struct spin {
    bool by_cycles;
    double timer_step_ns;
    double step_units; /* waits are whole steps of the clock */
    double units_per_ns;
    double overhead_ns;
    double least_ns; /* that a kernel can take */
};

struct kernels {
    const struct cuda_api *api;
    CUmodule module;
    CUfunction function[KERNEL_COUNT];
    CUdeviceptr wrong, timer; /* the module's records */
    CUstream stream;          /* for what open and wrong do themselves */
    unsigned processors;      /* of the card */
    uint64_t verifications;
    struct spin spin;
    struct blas *blas; /* NULL: not tried, or not there */
    bool blas_tried;
    char matmul[256]; /* who does matrix products */
    char problem[512];
};

struct kernel_grid {
    unsigned blocks, x, y; /* x * y threads a block */
};

/* As many blocks of 256 threads as `items` fill, up to what the card runs at once. */
struct kernel_grid kernels_grid(const struct kernels *self, uint64_t items);

enum ar_status kernels_launch(struct kernels *self, enum kernel kernel, struct kernel_grid grid,
                              CUstream stream, void **arguments, uint64_t bytes);

/* Translates what a driver call said; `bytes` is the size that the call was about. */
enum ar_status kernels_result(struct kernels *self, CUresult result, const char *call,
                              uint64_t bytes);

/* kernels_spin.c */
enum ar_status spin_calibrate(struct kernels *self);

#endif
