/* Bytes that a training with Adam has on one card, by rule.
 *
 * Weights, gradients and states of the optimizer: S. Rajbhandari et al., "ZeRO: Memory
 * Optimizations Toward Training Trillion Parameter Models", 2020 (arXiv:1910.02054), sections 3 and
 * 5: with mixed precision 2, 2 and 12 bytes of a parameter; stage 1 divides the states among the
 * data-parallel ranks, stage 2 the gradients too, stage 3 the weights too. FSDP is stage 3,
 * Megatron's distributed optimizer stage 1.
 *
 * Activations: V. A. Korthikanti et al., "Reducing Activation Recomputation in Large Transformer
 * Models", 2022 (arXiv:2205.05198), equations 1 to 4 and table 2: a layer keeps s b h (34 + 5 a s /
 * h) bytes of 16-bit activations for s b tokens; 34 s b h if attention is computed again or fused,
 * 2 s b h if the whole layer is; tensor parallelism with sequence parallelism divides all of it. */
#ifndef SIM_TWIN_RULES_TRAINING_H
#define SIM_TWIN_RULES_TRAINING_H

#include <stdint.h>

struct training_division {
    uint64_t parameters; /* of the model */
    uint64_t data_parallel, tensor_parallel;
    unsigned zero; /* the stage, 0 to 3 */
    /* Bytes of a parameter. */
    double weight_bytes, gradient_bytes, state_bytes;
};

struct training_bytes {
    uint64_t weights, gradients, states;
};
struct training_bytes training_bytes_of(const struct training_division *division);

enum training_recompute {
    TRAINING_KEEP,      /* nothing is computed again, attention is not fused */
    TRAINING_ATTENTION, /* fused attention, or attention is computed again */
    TRAINING_LAYER      /* each layer is computed again */
};

struct training_layer {
    uint64_t tokens; /* of a micro-batch */
    uint64_t sequence, hidden, heads, tensor_parallel;
};
/* Bytes of activations that a layer keeps for the backward pass. */
uint64_t training_activations(const struct training_layer *layer,
                              enum training_recompute recompute);

#endif
