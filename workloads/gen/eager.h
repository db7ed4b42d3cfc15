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
    bool kernel_ops; /* kernels say what they do to which blocks; set it after eager_start */
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

/* A kernel, and what it does with its blocks on a device that has memory, where `works` is set.
 * Without inputs all elements are set, with inputs they are combined one by one. */
#define EAGER_F32   "f32" /* of master copies and optimizers' state */
#define EAGER_INDEX "i64"
void eager_kernel(struct eager *self, uint64_t time_ns, const struct emit_kernel_op *op);
const char *eager_type(const struct eager *self); /* of activations and gradients */
struct emit_kernel_op eager_set(const char *type);
struct emit_kernel_op eager_combine(const char *type, const struct emit_block *a,
                                    const struct emit_block *b);

/* eager_map with its work, whose output is the block that is made. */
struct emit_block eager_make(struct eager *self, uint64_t output_bytes, uint64_t read_bytes,
                             const char *tag, struct emit_kernel_op op);

/* eager_product of two blocks. */
struct eager_shape {
    uint64_t rows, columns, inner;
};
struct emit_block eager_multiply(struct eager *self, enum eager_thread thread,
                                 struct eager_shape shape, bool bias, const char *tag,
                                 const struct emit_block *left, const struct emit_block *right);

/* The gradient of a bias: the sum of the outgoing gradient over rows. Long sums go through
 * scratch memory. */
struct emit_block eager_sum_rows(struct eager *self, uint64_t rows, uint64_t columns,
                                 const struct emit_block *outgoing);

/* Scratch bytes of such a sum: partial sums, and one counter per block of the grid; both 0
 * where one pass does it. */
void eager_sum_scratch(uint64_t rows, uint64_t columns, uint64_t *partial_bytes,
                       uint64_t *counter_bytes);

#endif
