/* The kernels of the CUDA device, from C: fill and verify, touch, timed kernels, kernel ops.
 *
 * A `struct kernels` belongs to one context, which must be current at every call. Callers with
 * several threads lock. All work is queued on the given stream; the host waits only in open, wrong
 * and close. REFUSED: a launch failed because there is no memory. INVALID: any other error of the
 * driver, with a sentence in kernels_problem. */
#pragma once

#include "allocators/base/status.h"
#include "bench/cuda/api.h"
#include "bench/cuda/kernels_shared.h"
#include "sim/device.h"

struct kernels;

/* Facts of an open one, for the environment of a record. */
struct kernels_facts {
    double timer_step_ns; /* of the card's timer, %globaltimer */
    double timer_from_ns; /* shorter timed kernels go by the cycle counter; INFINITY: all */
    double cycles_per_ns;
    double spin_overhead_ns; /* launch and end of a timed kernel, which its length includes */
    double spin_least_ns;    /* shorter kernels are merged */
    const char *matmul;      /* how matrix products are done: a sentence; "" before the first */
    uint64_t matmul_bytes;   /* that cuBLAS takes on the card: workspace and loaded kernels */
};

/* False: this build was made without nvcc and has no kernels. kernels_open returns MISSING. */
bool kernels_built(void);

/* Loads the module and every kernel, so that the driver loads none during a run, and measures the
 * overhead of timed kernels. Takes about 0.1 s on an idle card. */
enum ar_status kernels_open(const struct cuda_api *api, CUdevice card, struct kernels **out,
                            struct ar_error *error);
/* Queued work must be done. NULL does nothing. */
void kernels_close(struct kernels *self);

void kernels_facts(const struct kernels *self, struct kernels_facts *out);
const char *kernels_problem(const struct kernels *self);

/* The pattern of kernels_shared.h; any address, any size. */
enum ar_status kernels_fill(struct kernels *self, uint64_t address, uint64_t bytes, uint64_t block,
                            CUstream stream);
enum ar_status kernels_verify(struct kernels *self, uint64_t address, uint64_t bytes,
                              uint64_t block, CUstream stream);
/* Waits for all work of the context. What all verifications so far found: the count of wrong
 * bytes and the first, of the earliest verification (in the order queued) that found any. */
enum ar_status kernels_wrong(struct kernels *self, struct ar_device_wrong *out);
/* Waits too, and resets the findings for another run on the same card. */
enum ar_status kernels_forget_wrong(struct kernels *self);

/* Reads one word of each 4 KiB and writes it back. This proves that pages are usable and keeps
 * their contents. */
enum ar_status kernels_touch(struct kernels *self, uint64_t address, uint64_t bytes,
                             CUstream stream);

/* Keeps the stream busy for so many nanoseconds, launch included, where it is busy already: n such
 * kernels in a row take the sum of their lengths. A length below the least, and the remainder of
 * the clock's steps, is carried in *owed_ns (0 at first, one for each stream) to the next
 * kernel. */
enum ar_status kernels_spin(struct kernels *self, double *owed_ns, uint64_t nanoseconds,
                            CUstream stream);

/* Kernel ops, cut to the size of their operands (sim/device.h). An op with a missing or misaligned
 * operand does nothing.
 *  matmul       row major; f32, tf32, f16, bf16 by cuBLAS where it is found, products added up in
 *               32-bit floats; else, and for integers, by a plain kernel
 *  elementwise  out = sum of the inputs; of a single one: max(in, 0)
 *  reduce       out (n) = for each column the sum over the m rows
 *  gather       names of rows are 8 bytes wide, or 4 where in[1] is too small for that; taken
 *  scatter_add  modulo the rows of the table, so that any contents will do
 *  copy, set    the constant is 1 */
enum ar_status kernels_op(struct kernels *self, const struct ar_kernel_op *op, CUstream stream);

/* Who does the products of floats. cuBLAS is opened at the first of them, as programs do; early:
 * now, so that its memory is there before a pool takes the card's. No cuBLAS is no error: then, and
 * if asked for, the plain kernel does them. */
enum kernels_matmul { KERNELS_CUBLAS, KERNELS_CUBLAS_EARLY, KERNELS_PLAIN };

/* CUBLAS at first. REFUSED: cuBLAS is there but finds no memory on the card. */
enum ar_status kernels_choose_matmul(struct kernels *self, enum kernels_matmul choice);

/* The internals of kernels.c. */
enum kernel {
#define X(name) KERNEL_##name,
    KERNELS(X)
#undef X
        KERNEL_COUNT
};

enum kernel_format { FORMAT_F32, FORMAT_F16, FORMAT_BF16, FORMAT_I8, FORMAT_I64 };

/* How long timed kernels wait: their length less the overhead, by the cycle counter, or by the
 * timer from timer_from_ns on. */
struct spin {
    double cycles_per_ns, overhead_ns;
    double timer_step_ns, timer_overhead_ns, timer_from_ns;
    double least_ns; /* that a kernel can take */
};

struct kernels {
    const struct cuda_api *api;
    CUmodule module;
    CUfunction function[KERNEL_COUNT];
    CUdeviceptr wrong, timer; /* the module's records */
    CUstream stream;          /* for the work of open and wrong */
    unsigned processors;      /* of the card */
    uint64_t verifications;
    struct spin spin;
    struct blas *blas; /* NULL: not tried, or not found */
    bool blas_tried;
    char matmul[256]; /* how matrix products are done */
    char problem[512];
};

struct kernel_grid {
    unsigned blocks, x, y; /* x * y threads a block */
};

enum ar_status spin_calibrate(struct kernels *self);

/* ---- matrix products of cuBLAS ------------------------------------------------------------- */

/* Matrix products through cuBLAS, loaded at run time: nothing links it, and it is optional. cuBLAS
 * keeps its own workspace and loads its kernels at their first use, both outside of any policy:
 * `held_bytes` is the memory that these take. */

struct blas;

struct blas_product {
    enum ar_device_type type;  /* F32, TF32, F16 or BF16; sums are 32-bit floats */
    uint64_t out, a, b;        /* addresses */
    uint64_t m, n, k, pitch_a; /* row major; elements from row to row of a; each < 2^31 */
};

/* For the current context. MISSING: no cuBLAS that works with the driver. REFUSED: no memory on the
 * card. */
enum ar_status blas_open(const struct cuda_api *api, struct blas **out, struct ar_error *error);
void blas_close(struct blas *self); /* NULL does nothing */

/* Queues out (m x n) = a (m x k) * b (k x n). REFUSED: no memory; INVALID: any other error. */
enum ar_status blas_matmul(struct blas *self, const struct blas_product *product, CUstream stream,
                           struct ar_error *error);

/* "cuBLAS 13.0.2 (libcublas.so.13)" */
const char *blas_name(const struct blas *self);
/* The decrease of the card's free memory by opening cuBLAS and by its first product of each type.
 * Other processes on the card change it too. */
uint64_t blas_held_bytes(const struct blas *self);
