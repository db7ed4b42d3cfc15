/* See kv_load.h. */
#include "workloads/gen/kv_load.h"

#include <stdlib.h>

enum ar_status kv_load_open(struct kv_load *self, const struct kv_values *values, const char *owner,
                            struct ar_error *error)
{
    self->values = *values;
    self->token_bytes =
        values->kv_heads * values->head * numeric_weight_bytes((enum numeric)values->type);
    enum ar_status status = draws_parse(&self->prompts, values->prompts, DRAWS_RANDOM, 1, 1u << 24,
                                        owner, "prompts", error);
    if (status == AR_OK)
        status = draws_parse(&self->answers, values->answers, DRAWS_RANDOM, 1, 1u << 24, owner,
                             "answers", error);
    if (status != AR_OK)
        return status;
    self->prompt = calloc(values->batch, sizeof *self->prompt);
    self->answer = calloc(values->batch, sizeof *self->answer);
    if (!self->prompt || !self->answer)
        return ar_error_set(error, AR_HOST_MEMORY, "%s: no host memory", owner);
    return AR_OK;
}

void kv_load_close(struct kv_load *self)
{
    draws_close(&self->prompts);
    draws_close(&self->answers);
    free(self->prompt);
    free(self->answer);
}

void kv_load_start(struct kv_load *self)
{
    ar_rng_seed(&self->rng, self->values.common.seed);
    draws_start(&self->prompts);
    draws_start(&self->answers);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void kv_load_draw(struct kv_load *self)
{
    self->longest_prompt = self->longest_answer = 0;
    for (uint64_t i = 0; i < self->values.batch; i++) {
        self->prompt[i] = draws_next(&self->prompts, &self->rng);
        self->answer[i] = draws_next(&self->answers, &self->rng);
        self->longest_prompt = larger(self->longest_prompt, self->prompt[i]);
        self->longest_answer = larger(self->longest_answer, self->answer[i]);
    }
}
