/* Device memory of a process beside its pool that is neither NCCL's nor a graph's: the CUDA
 * context, and what the driver loads or makes for libraries at their first use. All of it stays.
 *
 * A context has local memory for all threads that the card can hold at a time, so it grows with
 * their number. Measured with driver 580: 553,189,376 bytes on an H100 80GB HBM3 and an H200 (132
 * multiprocessors of 2048 threads); 114 MiB on an RTX 3060 (28 of 1536, sgl-project/sglang#35538).
 * The line through these two gives 334 MiB for a Titan V (80 of 2048), where pytorch#28394 measured
 * 319 with CUDA 10. The libraries' are from an H200 with PyTorch 2.11 (CUDA 13.0); in a program
 * without PyTorch the first kernel takes nothing and cuBLAS the same 66 MiB
 * (results/published/h100/claims.md, row "outside, all blocks free"). Kernels are loaded when they
 * are first used (CUDA_MODULE_LOADING=LAZY, the default from CUDA 11.7 on, and what SGLang's AUTO
 * means); with EAGER all kernels of PyTorch come with the context, 732 MiB more on that H200, and
 * cuBLAS takes 494. Kernels of the sampler and nine that torch.compile made take nothing
 * further. */
#pragma once

#include <stdint.h>

#define CONTEXT_BASE_BYTES   UINT64_C(37480000)
#define CONTEXT_THREAD_BYTES UINT64_C(1908)

enum context_use {
    CONTEXT_KERNELS = 1,   /* the first kernel of PyTorch: 92 MiB */
    CONTEXT_PRODUCTS = 2,  /* cuBLAS and cuBLASLt: 66 MiB */
    CONTEXT_ATTENTION = 4, /* the fused attention of PyTorch: 8 MiB */
    CONTEXT_BACKWARD = 8,  /* and its backward pass: 8 MiB */
    CONTEXT_STREAMS = 16,  /* the first torch.cuda.Stream makes a pool of them: 70 MiB */
};

/* What the profile of a card says of it. One that says nothing, such as a file, counts as an H100
 * whose threads are not known. */
struct card {
    uint32_t compute;             /* capability times ten */
    uint64_t processors, threads; /* that a multiprocessor holds; 0: not known */
    const char *link;             /* in the usual server: nvlink, pcie, shm (no peer access) */
};
struct card card_of(const char *profile);

/* The context of a process on the card of a profile; 0: its threads are not known. */
uint64_t context_of_card(const char *profile);

/* What comes to the context of a process of PyTorch with these uses (enum context_use). */
uint64_t context_torch_bytes(unsigned uses);

/* PyTorch's workspace of cuBLAS for each pair of handle and stream. It is a block of the pool, not
 * outside: 32 MiB from compute capability 9.0 on, else 8.125 MiB (aten/src/ATen/cuda/CUDABlas.cpp,
 * default of CUBLAS_WORKSPACE_CONFIG). `compute`: capability times ten. */
uint64_t context_cublas_workspace_bytes(uint32_t compute);
