#include "sim/twin/rules/training.h"

static uint64_t share(double bytes, uint64_t ranks)
{
    return (uint64_t)(bytes / (double)ranks + 0.5);
}

struct training_bytes training_bytes_of(const struct training_division *division)
{
    double parameters = (double)division->parameters / (double)division->tensor_parallel;
    uint64_t ranks = division->data_parallel;
    unsigned zero = division->zero;
    return (struct training_bytes){
        .weights = share(parameters * division->weight_bytes, zero >= 3 ? ranks : 1),
        .gradients = share(parameters * division->gradient_bytes, zero >= 2 ? ranks : 1),
        .states = share(parameters * division->state_bytes, zero >= 1 ? ranks : 1),
    };
}

uint64_t training_activations(const struct training_layer *layer, enum training_recompute recompute)
{
    double token_bytes = 34 * (double)layer->hidden;
    if (recompute == TRAINING_KEEP)
        token_bytes += 5 * (double)layer->heads * (double)layer->sequence;
    else if (recompute == TRAINING_LAYER)
        token_bytes = 2 * (double)layer->hidden;
    return share(token_bytes * (double)layer->tokens, layer->tensor_parallel);
}
