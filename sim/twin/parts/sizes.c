#include "sim/twin/parts/sizes.h"

#include <stdlib.h>

#include "sim/twin/parts/llm_option.h"
#include "sim/twin/rules/training.h"

/* Of a logit: 16 bits, its copy in float32 and the gradient of that (LlamaForCausalLM of
 * transformers up to 4.44 and its loss: logits.float(), cross_entropy). */
#define LOGIT_BYTES UINT64_C(10)

/* Three numbers with blanks between. */
static enum ar_status read_bytes(const char *text, struct training_division *out,
                                 struct ar_error *error)
{
    double *const numbers[] = {&out->weight_bytes, &out->gradient_bytes, &out->state_bytes};
    const char *at = text;
    bool good = true;
    for (size_t i = 0; i < 3 && good; i++) {
        char *end;
        *numbers[i] = strtod(at, &end);
        good = end != at && *numbers[i] >= 0 && *numbers[i] <= 64;
        at = end;
    }
    while (*at == ' ')
        at++;
    if (good && !*at)
        return AR_OK;
    return ar_error_set(error, AR_INVALID,
                        "option bytes_per_parameter: \"%.60s\" is not three numbers up to 64, such "
                        "as \"2 2 12\"",
                        text);
}

static void set_default(uint64_t *bytes, uint64_t value)
{
    if (!*bytes)
        *bytes = value;
}

static enum ar_status by_model(const struct sizes *sizes, uint32_t ranks, struct plan *plan,
                               uint64_t *shards, struct ar_error *error)
{
    struct llm model;
    struct training_division division = {.tensor_parallel = sizes->tensor_parallel,
                                         .zero = (unsigned)sizes->zero};
    enum ar_status status = llm_option_read(sizes->model, &model, error);
    if (status == AR_OK)
        status = read_bytes(sizes->bytes_per_parameter, &division, error);
    if (status != AR_OK)
        return status;
    uint64_t others = ranks / sizes->tensor_parallel;
    division.parameters = llm_parameters(&model);
    division.data_parallel = sizes->data_parallel ? sizes->data_parallel : others ? others : 1;
    *shards = sizes->zero == 3 ? division.data_parallel : 1;
    const struct training_bytes bytes = training_bytes_of(&division);
    const struct training_layer layer = {.tokens = sizes->tokens,
                                         .sequence =
                                             sizes->sequence ? sizes->sequence : sizes->tokens,
                                         .hidden = model.hidden,
                                         .heads = model.heads,
                                         .tensor_parallel = sizes->tensor_parallel};
    uint64_t kept = training_activations(&layer, (enum training_recompute)sizes->recompute);
    uint64_t within =
        sizes->recompute == TRAINING_LAYER ? training_activations(&layer, TRAINING_ATTENTION) : 0;
    set_default(&plan->layers, model.layers);
    set_default(&plan->weights_bytes, bytes.weights);
    set_default(&plan->gradients_bytes, bytes.gradients);
    set_default(&plan->optimizer_bytes, bytes.states);
    set_default(&plan->activations_bytes, kept * model.layers);
    /* With stage 3 the weights of a layer are gathered while it runs, and from stage 2 on its
     * gradients are whole until they are reduced. */
    uint64_t gathered = *shards > 1 ? bytes.weights * *shards / model.layers : 0;
    if (sizes->zero >= 2 && division.data_parallel > 1)
        gathered += bytes.gradients * division.data_parallel / model.layers;
    set_default(&plan->workspace_bytes, within + gathered);
    set_default(&plan->logits_bytes,
                sizes->tokens * model.vocabulary * LOGIT_BYTES / sizes->tensor_parallel);
    return AR_OK;
}

enum ar_status sizes_plan(const struct sizes *sizes, uint32_t ranks, struct plan *out,
                          uint64_t *shards, struct ar_error *error)
{
    *out = sizes->plan;
    *shards = 1;
    if (sizes->model) {
        enum ar_status status = by_model(sizes, ranks, out, shards, error);
        if (status != AR_OK)
            return status;
    }
    set_default(&out->layers, 32);
    return AR_OK;
}
