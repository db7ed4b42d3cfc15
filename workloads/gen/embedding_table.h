/* One embedding table with summed bags: made or grown on first use, looked up, differentiated
 * either into a gradient of the table's full size or into a sparse one, and updated. The requests
 * of each operation follow PyTorch's EmbeddingBag on CUDA; embedding.md derives the sizes. */
#pragma once

#include "workloads/gen/eager.h"

struct embedding_table {
    struct parameter weight;
    uint64_t width;
    uint64_t rows;      /* number of ids */
    uint64_t capacity;  /* rows that the table has memory for */
    uint64_t looked_up; /* ids looked up so far, with repetitions */
    bool sparse;
    /* Of the latest lookup. */
    uint64_t lookups;
    struct emit_block indices, offsets, bag_sizes, bag_of_index, output;
    struct emit_block sparse_values; /* with `indices`, the sparse gradient */
};

/* Makes the table with `capacity` rows, copied from the host. */
void embedding_table_make(struct eager *eager, struct embedding_table *self, uint64_t capacity);

/* Counts `lookups` uniform draws of ids and grows the table, and the optimizer's state with it,
 * by `factor` until it has a row for every id seen; factor 0: it never grows. */
void embedding_table_see(struct eager *eager, struct embedding_table *self, uint64_t lookups,
                         double factor);

/* `batch` bags of `bag` ids each; the sums are in `output`. */
void embedding_table_lookup(struct eager *eager, struct embedding_table *self, uint64_t batch,
                            uint64_t bag);

/* The gradient of the table; `joined` is the gradient of all outputs together. */
void embedding_table_backward(struct eager *eager, struct embedding_table *self, uint64_t batch,
                              const struct emit_block *joined);

/* The optimizer's step on a sparse gradient. Dense ones go through parameter_update. */
void embedding_table_update_sparse(struct eager *eager, struct embedding_table *self,
                                   enum optimizer optimizer, bool master);

void embedding_table_drop_gradient(struct eager *eager, struct embedding_table *self);
void embedding_table_drop(struct eager *eager, struct embedding_table *self);

/* Scratch bytes of the device libraries (CUB) for n ids, inferred from a recording: sorting pairs
 * of 64-bit keys and values, selecting the first of each run, and a running sum over n 64-bit
 * values. */
uint64_t embedding_sort_scratch(uint64_t n);
uint64_t embedding_select_scratch(uint64_t n);
uint64_t embedding_scan_scratch(uint64_t n);
