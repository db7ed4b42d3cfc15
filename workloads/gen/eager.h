/* What model generators are made of: the time of a kernel, the requests of an eager framework for
 * one operation on tensors, and parameters with their optimizer. eager.md derives the sizes. */
#pragma once

#include "workloads/gen/emit.h"

/* ---- kernel times ---- */

/* The time of a kernel on an H100 SXM by the roofline model: the longer of its arithmetic at the
 * peak rate of its type and its bytes at the peak rate of the memory, each at 70 % of the
 * datasheet's peak, which is what good kernels reach, plus 1.5 us to start and drain. Whole numbers
 * throughout, so that times are the same on every machine. */

/* The types in which a model holds its weights. */
enum numeric { NUMERIC_FLOAT32, NUMERIC_FLOAT16, NUMERIC_BFLOAT16, NUMERIC_INT8 };
#define NUMERIC_CHOICES "float32|float16|bfloat16|int8"

/* Bytes of a weight, and of an activation or gradient (16 bits in int8 models). */
uint64_t numeric_weight_bytes(enum numeric type);
uint64_t numeric_value_bytes(enum numeric type);

/* Nanoseconds of a kernel that reads and writes `bytes` in all. */
uint64_t roofline_bytes_ns(uint64_t bytes);
/* Nanoseconds of the product of rows x inner with inner x columns in this type. */
uint64_t roofline_product_ns(enum numeric type, uint64_t rows, uint64_t columns, uint64_t inner);
/* Nanoseconds of a copy from the host, over PCIe 5 x16. */
uint64_t roofline_upload_ns(uint64_t bytes);

/* ---- operations ---- */

#define EAGER_WORKSPACE_BYTES       (UINT64_C(32) << 20) /* of a handle of the product library */
#define EAGER_FUSED_WORKSPACE_BYTES (UINT64_C(1) << 20)  /* of products with a bias */

/* A framework runs forward and backward passes in two threads, each with its own library handle. */
enum eager_thread { EAGER_FORWARD, EAGER_BACKWARD };

struct eager {
    struct emit *emit;
    enum numeric type;
    bool kernel_ops; /* kernels have the keys of their kernel op; set it after eager_start */
    struct emit_block workspace[2]; /* by thread; held from the first product on */
    struct emit_block fused_workspace;
};

/* The state at the start of a program: no block is held. */
void eager_start(struct eager *self, struct emit *emit, enum numeric type);

/* An operation on each element: an output, and a kernel that writes it and reads `read_bytes`. */
struct emit_block eager_map(struct eager *self, uint64_t output_bytes, uint64_t read_bytes,
                            const char *tag);

/* The product of rows x inner with inner x columns: of a layer, whose bias is added in the same
 * kernel, and of a gradient, in the backward pass and without a bias. */
struct emit_block eager_layer(struct eager *self, uint64_t rows, uint64_t columns, uint64_t inner,
                              const char *tag);
struct emit_block eager_gradient(struct eager *self, uint64_t rows, uint64_t columns,
                                 uint64_t inner);

/* A kernel, with its kernel op if `kernel_ops` is set. Without inputs, all elements are set; with
 * inputs, they are combined one by one. */
#define EAGER_F32   "f32" /* of master copies and optimizers' state */
#define EAGER_INDEX "i64"
void eager_kernel(struct eager *self, uint64_t time_ns, const struct emit_kernel_op *op);
const char *eager_type(const struct eager *self); /* of activations and gradients */
struct emit_kernel_op eager_set(const char *type);
struct emit_kernel_op eager_combine(const char *type, const struct emit_block *a,
                                    const struct emit_block *b);

/* eager_map with a kernel op, whose output is the block that is made. */
struct emit_block eager_make(struct eager *self, uint64_t output_bytes, uint64_t read_bytes,
                             const char *tag, struct emit_kernel_op op);

/* A product of two blocks, or of blocks that no kernel op names (NULL). */
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

/* Scratch bytes of such a sum: partial sums, and one counter per block of the grid; both 0 if one
 * pass is enough. */
void eager_sum_scratch(uint64_t rows, uint64_t columns, uint64_t *partial_bytes,
                       uint64_t *counter_bytes);

/* ---- parameters ---- */

/* A parameter of a model with its gradient, the optimizer's state, which is made when the optimizer
 * first sees the parameter, and the float32 master copy of parameters in fewer bits. float32 values
 * of state per element: none for sgd, one for momentum and adagrad, two for adam. */

enum optimizer {
    OPTIMIZER_NONE,
    OPTIMIZER_SGD,
    OPTIMIZER_MOMENTUM,
    OPTIMIZER_ADAGRAD,
    OPTIMIZER_ADAM
};
#define OPTIMIZER_CHOICES "none|sgd|momentum|adagrad|adam"

struct parameter {
    uint64_t elements;
    struct emit_block value;
    struct emit_block gradient;
    struct emit_block master;   /* float32 */
    struct emit_block state[2]; /* float32 */
};

/* float32 values per element that the optimizer keeps. */
unsigned optimizer_states(enum optimizer optimizer);

/* Makes the value, of `bytes`. */
void parameter_make(struct eager *eager, struct parameter *self, uint64_t elements, uint64_t bytes);

/* Takes a gradient that was just computed: keeps it, or adds it to the one that is held. */
void parameter_accumulate(struct eager *eager, struct parameter *self, struct emit_block gradient);

/* Makes the state and the master copy if they are needed and not made yet. */
void parameter_prepare(struct eager *eager, struct parameter *self, enum optimizer optimizer,
                       bool master);

/* One step of the optimizer on `count` parameters at once, as frameworks do it: the denominators of
 * adam, one per element, are all live together. Gradients stay. */
void parameter_update(struct eager *eager, struct parameter *const *parameters, size_t count,
                      enum optimizer optimizer, bool master, struct emit_block *scratch);

/* Frees all blocks of the parameter. */
void parameter_drop(struct eager *eager, struct parameter *self);
