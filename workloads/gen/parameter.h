/* A parameter of a model with all that hangs on it: its gradient, the optimizer's state, which
 * is made when the optimizer first sees it, and the float32 copy that models in fewer bits
 * update. The optimizers: sgd has no state, momentum and adagrad one float32 value per
 * element, adam two. */
#ifndef WORKLOADS_GEN_PARAMETER_H
#define WORKLOADS_GEN_PARAMETER_H

#include "workloads/gen/eager.h"

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

/* Takes a gradient that was just computed: keeps it, or adds it to the one there is. */
void parameter_accumulate(struct eager *eager, struct parameter *self, struct emit_block gradient);

/* State and master copy, where they are wanted and not there yet. */
void parameter_prepare(struct eager *eager, struct parameter *self, enum optimizer optimizer,
                       bool master);

/* One step of the optimizer on `count` parameters at once, as frameworks do it: adam's
 * denominators, one per element, are all live together. Gradients stay. */
void parameter_update(struct eager *eager, struct parameter *const *parameters, size_t count,
                      enum optimizer optimizer, bool master, struct emit_block *scratch);

/* Frees everything that the parameter holds. */
void parameter_drop(struct eager *eager, struct parameter *self);

#endif
