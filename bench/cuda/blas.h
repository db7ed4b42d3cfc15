/* Matrix products through cuBLAS, loaded at run time: nothing links it, and it is optional. cuBLAS
 * keeps its own workspace and loads its kernels at their first use, both outside of any policy:
 * `held_bytes` is the memory that these take. */
#ifndef BENCH_CUDA_BLAS_H
#define BENCH_CUDA_BLAS_H

#include <stdint.h>

#include "allocators/base/status.h"
#include "bench/cuda/api.h"
#include "sim/device.h"

struct blas;

struct blas_product {
    enum ar_device_type type;  /* F32, TF32, F16 or BF16; sums are 32-bit floats */
    uint64_t out, a, b;        /* addresses */
    uint64_t m, n, k, pitch_a; /* row major; elements from row to row of a; each < 2^31 */
};

/* For the current context. MISSING: no cuBLAS that works with the driver. REFUSED: no memory on the
 * card. */
enum ar_status blas_open(const struct cuda_api *api, struct blas **out,
                         struct ar_error *error) AR_STATUS_CHECKED;
void blas_close(struct blas *self); /* NULL does nothing */

/* Queues out (m x n) = a (m x k) * b (k x n). REFUSED: no memory; INVALID: any other error. */
enum ar_status blas_matmul(struct blas *self, const struct blas_product *product, CUstream stream,
                           struct ar_error *error) AR_STATUS_CHECKED;

/* "cuBLAS 13.0.2 (libcublas.so.13)" */
const char *blas_name(const struct blas *self);
/* The decrease of the card's free memory by opening cuBLAS and by its first product of each type.
 * Other processes on the card change it too. */
uint64_t blas_held_bytes(const struct blas *self);

#endif
