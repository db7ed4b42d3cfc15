/* The requests of a program under JAX: the keys of random numbers are arrays, each product requests
 * and frees the library's workspace, and a value is never changed in place. The order of the
 * requests was read from recordings at the driver (workloads/data/driver); jax.md lists what is
 * known and what is assumed. */
#pragma once

#include "workloads/gen/eager.h"

enum program_kind { PROGRAM_EAGER, PROGRAM_JAX };
#define PROGRAM_CHOICES "eager|jax"

/* The key of a random draw: two numbers on the way to it. */
struct emit_block jax_key(struct eager *self);

/* An array of normally distributed numbers; frees the key. Large ones need scratch memory. */
struct emit_block jax_normal(struct eager *self, struct emit_block *key, uint64_t elements,
                             const char *tag);

/* A product, with its workspace while it runs. */
struct emit_block jax_multiply(struct eager *self, struct eager_shape shape, const char *tag,
                               const struct emit_block *left, const struct emit_block *right);

/* y = x W + b, the sum of (y - x)^2, the gradients of W and b, and a gradient step: the blocks that
 * the program holds between two steps. */
#define JAX_TAPE_BLOCKS 30u

struct jax_tape {
    struct emit_block blocks[JAX_TAPE_BLOCKS];
};

void jax_tape_start(struct jax_tape *tape, struct eager *eager, uint64_t width);
void jax_tape_step(struct jax_tape *tape, struct eager *eager, uint64_t rows, uint64_t width);
void jax_tape_finish(struct jax_tape *tape, struct eager *eager);

/* Tables in one compiled step, which replaces them with new ones. */
struct jax_table {
    uint64_t elements;
    struct emit_block rows, ids;
    struct emit_block made; /* the next `rows` or `ids` */
};

struct jax_embedding {
    struct jax_table *tables; /* the caller's, with room for all */
    size_t *order;            /* scratch of the caller, as many */
    size_t count;
    struct emit_block key, value;
};

void jax_embedding_start(struct jax_embedding *self, struct eager *eager);
void jax_embedding_add(struct jax_embedding *self, struct eager *eager, uint64_t elements);
/* `bags[i]`: ids per sample of table i. */
void jax_embedding_step(struct jax_embedding *self, struct eager *eager, uint64_t batch,
                        uint64_t width, const uint64_t *bags);
void jax_embedding_finish(struct jax_embedding *self, struct eager *eager);
