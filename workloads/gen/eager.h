/* What an eager framework asks of its allocator for one operation on tensors: the output, the
 * library's workspace where the library is used for the first time, and the scratch memory
 * that the operation's kernels need. eager.md derives the sizes. */
#ifndef WORKLOADS_GEN_EAGER_H
#define WORKLOADS_GEN_EAGER_H

#include "workloads/gen/emit.h"
#include "workloads/gen/roofline.h"

#define EAGER_WORKSPACE_BYTES       (UINT64_C(32) << 20) /* of a handle of the product library */
#define EAGER_FUSED_WORKSPACE_BYTES (UINT64_C(1) << 20)  /* of products with a bias */

/* A framework runs forward and backward in threads of their own, each with its own handle. */
enum eager_thread { EAGER_FORWARD, EAGER_BACKWARD };

struct eager {
    struct emit *emit;
    enum numeric type;
    struct emit_block workspace[2]; /* by thread; held from the first product on */
    struct emit_block fused_workspace;
};

/* To the start of a program: nothing is held. */
void eager_start(struct eager *self, struct emit *emit, enum numeric type);

/* An operation on each element: an output of so many bytes, and a kernel that also reads. */
struct emit_block eager_map(struct eager *self, uint64_t output_bytes, uint64_t read_bytes,
                            const char *tag);

/* The product of rows x inner with inner x columns; `bias`: added in the same kernel. */
struct emit_block eager_product(struct eager *self, enum eager_thread thread, uint64_t rows,
                                uint64_t columns, uint64_t inner, bool bias, const char *tag);

/* The gradient of a bias: the sum over rows. Long sums go through scratch memory. */
struct emit_block eager_bias_gradient(struct eager *self, uint64_t rows, uint64_t columns);

/* Scratch bytes of such a sum: partial sums, and one counter per block of the grid; both 0
 * where one pass does it. */
void eager_sum_scratch(uint64_t rows, uint64_t columns, uint64_t *partial_bytes,
                       uint64_t *counter_bytes);

#endif
