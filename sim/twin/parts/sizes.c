#include "sim/twin/parts/sizes.h"

#include "allocators/base/size.h"
#include "sim/twin/rules/llm.h"
#include "workloads/trace/trace.h"

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
        at = ar_decimal_parse(at + strspn(at, " "), numbers[i]);
        good = at && *numbers[i] >= 0 && *numbers[i] <= 64;
    }
    if (good && !at[strspn(at, " ")])
        return AR_OK;
    return ar_invalid(
        error,
        "option bytes_per_parameter: \"%.60s\" is not three numbers up to 64, such as \"2 2 12\"",
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
    AR_TRY(llm_read(sizes->model, &model, error));
    AR_TRY(read_bytes(sizes->bytes_per_parameter, &division, error));
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
    if (sizes->model)
        AR_TRY(by_model(sizes, ranks, out, shards, error));
    set_default(&out->layers, 32);
    return AR_OK;
}

/* ---- the workload of a plan ------------------------------------------------------------------ */

struct writing {
    const struct plan *plan;
    struct trace_memory *memory;
    uint64_t next_id;
    uint64_t *activations, *gradients; /* ids by layer */
    enum ar_status status;
    struct ar_error *error;
};

static void put(struct writing *self, const struct trace_event *event, const char *tag,
                const char *text)
{
    const struct trace_attributes keys = {.tag = tag, .given = TRACE_GIVEN_TAG};
    if (self->status == AR_OK)
        self->status =
            trace_memory_append(self->memory, event, tag ? &keys : NULL, text, self->error);
}

/* Layer `layer` of so many bytes in all layers: sizes differ by a byte at most. */
static uint64_t share(const struct writing *self, uint64_t bytes, uint64_t layer)
{
    uint64_t layers = self->plan->layers;
    return bytes / layers + (layer < bytes % layers);
}

static uint64_t request(struct writing *self, uint64_t bytes, const char *tag)
{
    const struct trace_event event = {.kind = TRACE_ALLOC, .value = bytes, .id = self->next_id};
    put(self, &event, tag, NULL);
    return self->next_id++;
}

static void release(struct writing *self, uint64_t id)
{
    const struct trace_event event = {.kind = TRACE_FREE_COMPLETED, .flags = TRACE_WHOLE, .id = id};
    put(self, &event, NULL, NULL);
}

static void kernel(struct writing *self)
{
    const struct trace_event event = {.kind = TRACE_KERNEL, .value = self->plan->layer_ns};
    put(self, &event, NULL, NULL);
}

static void workspace(struct writing *self)
{
    uint64_t id = request(self, self->plan->workspace_bytes, "scratch");
    kernel(self);
    release(self, id);
}

static void write_step(struct writing *self, bool first)
{
    const struct plan *plan = self->plan;
    const struct trace_event step = {.kind = TRACE_MARK, .flags = TRACE_STEP};
    for (uint64_t i = 0; i < plan->layers; i++) {
        self->activations[i] = request(self, share(self, plan->activations_bytes, i), "activation");
        workspace(self);
    }
    uint64_t logits = request(self, plan->logits_bytes, "activation");
    kernel(self);
    release(self, logits);
    for (uint64_t i = plan->layers; i-- > 0;) {
        workspace(self);
        self->gradients[i] = request(self, share(self, plan->gradients_bytes, i), "gradient");
        release(self, self->activations[i]);
    }
    for (uint64_t i = 0; i < plan->layers && first && plan->optimizer_bytes; i++)
        request(self, share(self, plan->optimizer_bytes, i), "optimizer");
    kernel(self);
    for (uint64_t i = 0; i < plan->layers; i++)
        release(self, self->gradients[i]);
    put(self, &step, NULL, "step");
}

enum ar_status plan_open(const struct plan *plan, struct trace_source **out, struct ar_error *error)
{
    const struct trace_info info = {.name = "plan", .format = "generator", .complete = true};
    struct writing self = {.plan = plan, .error = error};
    self.memory = trace_memory_create(&info);
    self.activations = calloc(plan->layers, sizeof *self.activations);
    self.gradients = calloc(plan->layers, sizeof *self.gradients);
    if (!self.memory || !self.activations || !self.gradients)
        self.status = ar_no_memory(error, "a plan");
    for (uint64_t i = 0; i < plan->layers && self.status == AR_OK; i++)
        request(&self, share(&self, plan->weights_bytes, i), "weight");
    if (self.status == AR_OK) {
        write_step(&self, true);
        write_step(&self, false);
    }
    free(self.activations);
    free(self.gradients);
    return trace_memory_finish(self.memory, self.status, out, error);
}
