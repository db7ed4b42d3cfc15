/* Device memory of a process beside its pool that is neither NCCL's nor a graph's: the CUDA
 * context, and the kernels that the driver loads for libraries.
 *
 * Measured on an H100 80GB HBM3 and an H200 with driver 580: a context takes 553,189,376 bytes, the
 * first kernel of a program nothing more, cuBLAS 66 MiB at its first product
 * (results/published/h100/claims.md, row "outside, all blocks free"). Kernels are loaded when they
 * are first used (CUDA_MODULE_LOADING=LAZY, the default from CUDA 11.7 on); before, all kernels of
 * PyTorch and its libraries were loaded at once, more than 1 GB (pytorch/pytorch#107667). */
#ifndef SIM_TWIN_RULES_CONTEXT_H
#define SIM_TWIN_RULES_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#define CONTEXT_MEASURED_BYTES UINT64_C(553189376)
#define CONTEXT_CUBLAS_BYTES   (UINT64_C(66) << 20)

/* The context of a process on a card whose profile has `profile_bytes` (0: not measured there; then
 * it is that of the H100, and `*measured` is false). `measured` may be NULL. */
uint64_t context_bytes(uint64_t profile_bytes, bool *measured);

/* PyTorch's workspace of cuBLAS for each pair of handle and stream. It is a block of the pool, not
 * outside: 32 MiB from compute capability 9.0 on, else 8.125 MiB (aten/src/ATen/cuda/CUDABlas.cpp,
 * default of CUBLAS_WORKSPACE_CONFIG). `compute`: capability times ten. */
uint64_t context_cublas_workspace_bytes(uint32_t compute);

#endif
