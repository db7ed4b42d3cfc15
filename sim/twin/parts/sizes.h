/* The sizes of a training that is known by its model, or given: its options and the plan of
 * them. */
#pragma once

#include "allocators/options.h"
#include "workloads/trace/source.h"

/* A training that is known by its sizes only, as a workload of two steps: weights are loaded; a
 * step allocates activations layer by layer, then frees them in reverse order and allocates
 * gradients; the first step allocates the states of the optimizer at its end. The gradients are
 * freed at the end of each step. */

struct plan {
    uint64_t layers;
    uint64_t weights_bytes, gradients_bytes, optimizer_bytes, activations_bytes; /* of all layers */
    uint64_t workspace_bytes; /* live in each layer of the forward and the backward pass */
    uint64_t logits_bytes;    /* live between the passes */
    uint64_t layer_ns;        /* of a kernel */
};

/* The caller closes the source. */
enum ar_status plan_open(const struct plan *plan, struct trace_source **out,
                         struct ar_error *error);

struct sizes {
    struct plan plan; /* given sizes; 0: by rule of the model, or nothing */
    const char *model, *bytes_per_parameter;
    uint64_t tokens, sequence, data_parallel, tensor_parallel, zero;
    int recompute;
};

#define SIZES_OPTION(NAME, TYPE, FIELD, DEFAULT, LEAST, MOST, CHOICES, HELP)                       \
    {                                                                                              \
        NAME, AR_OPTION_##TYPE, offsetof(struct values, sizes.FIELD), DEFAULT, LEAST, MOST,        \
            CHOICES, HELP                                                                          \
    }
#define SIZES_BYTES(NAME, FIELD, HELP) SIZES_OPTION(NAME, BYTES, FIELD, "0", 0, 0, NULL, HELP)

/* For a struct values with a member `sizes`. */
#define SIZES_OPTIONS                                                                              \
    SIZES_OPTION("model", TEXT, model, NULL, 0, 0, NULL,                                           \
                 "a model as of [engine]: sizes below that are 0 follow from it"),                 \
        SIZES_OPTION("zero", COUNT, zero, "3", 0, 3, NULL,                                         \
                     "stage of ZeRO: 1 divides states of the optimizer among the data-parallel "   \
                     "ranks (Megatron), 2 gradients too, 3 weights too (FSDP)"),                   \
        SIZES_OPTION("data_parallel", COUNT, data_parallel, "0", 0, 65536, NULL,                   \
                     "data-parallel ranks; 0: all ranks of the process by tensor_parallel"),       \
        SIZES_OPTION("tensor_parallel", COUNT, tensor_parallel, "1", 1, 1024, NULL,                \
                     "ranks that divide each layer, with sequence parallelism"),                   \
        SIZES_OPTION("bytes_per_parameter", TEXT, bytes_per_parameter, "2 2 12", 0, 0, NULL,       \
                     "of weights, gradients and states of the optimizer"),                         \
        SIZES_OPTION("tokens", COUNT, tokens, "0", 0, 1e9, NULL,                                   \
                     "of a micro-batch on this card, for the activations"),                        \
        SIZES_OPTION("sequence", COUNT, sequence, "0", 0, 1e9, NULL,                               \
                     "tokens of a sequence; 0: those of the micro-batch"),                         \
        SIZES_OPTION("recompute", CHOICE, recompute, "attention", 0, 0, "none|attention|layer",    \
                     "what the backward pass computes again (fused attention: attention)"),        \
        SIZES_OPTION("layers", COUNT, plan.layers, "0", 0, 1e5, NULL,                              \
                     "number of layers, which divide all sizes; 0: of the model, or 32"),          \
        SIZES_BYTES("weights", plan.weights_bytes, "bytes of the weights on this card"),           \
        SIZES_BYTES("gradients", plan.gradients_bytes, "bytes of the gradients on this card"),     \
        SIZES_BYTES("optimizer", plan.optimizer_bytes,                                             \
                    "bytes of the states of the optimizer on this card"),                          \
        SIZES_BYTES("activations", plan.activations_bytes,                                         \
                    "bytes of the activations that the backward pass needs"),                      \
        SIZES_BYTES("workspace", plan.workspace_bytes,                                             \
                    "bytes that each layer needs while it runs"),                                  \
        SIZES_BYTES("logits", plan.logits_bytes, "bytes of logits, their copies and gradients"),   \
        SIZES_OPTION("layer_ns", COUNT, plan.layer_ns, "1000000", 0, 1e12, NULL,                   \
                     "nanoseconds of a layer's kernel")

/* The plan for one of `ranks` ranks. `*shards`: the shards of the weights. INVALID: a sentence. */
enum ar_status sizes_plan(const struct sizes *sizes, uint32_t ranks, struct plan *out,
                          uint64_t *shards, struct ar_error *error);
