#include "sim/twin/parts/plan.h"

#include <stdlib.h>

#include "workloads/trace/trace.h"

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
        self.status = ar_error_set(error, AR_HOST_MEMORY, "no host memory for a plan");
    for (uint64_t i = 0; i < plan->layers && self.status == AR_OK; i++)
        request(&self, share(&self, plan->weights_bytes, i), "weight");
    if (self.status == AR_OK) {
        write_step(&self, true);
        write_step(&self, false);
    }
    free(self.activations);
    free(self.gradients);
    if (self.status == AR_OK)
        return trace_memory_open(self.memory, out, error);
    trace_memory_discard(self.memory);
    return self.status;
}
