/* A training that is known by its sizes only, as a workload of two steps: weights are loaded; a
 * step allocates activations layer by layer, then frees them in reverse order and allocates
 * gradients; the first step allocates the states of the optimizer at its end. The gradients are
 * freed at the end of each step. */
#ifndef SIM_TWIN_PARTS_PLAN_H
#define SIM_TWIN_PARTS_PLAN_H

#include "workloads/trace/source.h"

struct plan {
    uint64_t layers;
    uint64_t weights_bytes, gradients_bytes, optimizer_bytes, activations_bytes; /* of all layers */
    uint64_t workspace_bytes; /* live in each layer of the forward and the backward pass */
    uint64_t logits_bytes;    /* live between the passes */
    uint64_t layer_ns;        /* of a kernel */
};

/* The caller closes the source. */
enum ar_status plan_open(const struct plan *plan, struct trace_source **out,
                         struct ar_error *error) AR_STATUS_CHECKED;

#endif
