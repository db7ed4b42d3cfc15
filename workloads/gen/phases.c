/* A long-lived process with phases: it trains, evaluates, moves its optimizer's state off the card,
 * sleeps with no memory on the card, and wakes (NVIDIA-NeMo/RL#2619). It shows how much memory the
 * pool still holds at the end of each phase, and whether that grows from cycle to cycle.
 * 1. Weights and the optimizer's state are made first.
 * 2. train: in each step the forward pass keeps an activation of drawn size for each layer, and the
 *    backward pass makes a gradient for each weight and frees both, the last layer first.
 * 3. evaluate: the same forward pass in larger batches, two activations live at a time.
 * 4. offload: the optimizer's state is freed. sleep: the weights, too. wake: all are made again.
 * 5. Some small blocks made among the activations live until the next cycle's sleep; `leak` of them
 *    in each cycle are never freed before the end.
 * 6. Each phase ends with a mark that has its name, and before it, if `trim` is set, with a release
 *    of cached memory. */
#include "workloads/gen/eager.h"

#define KEPT_BYTES (1u << 20)

struct phases_values {
    struct gen_common common;
    uint64_t cycles, steps, evaluations, layers, weight, least, most, kept, leak;
    bool trim;
};

enum phase { PHASE_TRAIN, PHASE_EVALUATE, PHASE_OFFLOAD, PHASE_SLEEP, PHASE_WAKE, PHASES };

struct phases {
    struct emit emit;
    struct phases_values values;
    struct emit_list weights, state, activations, kept, leaked;
    uint64_t cycle, done; /* done: steps of the current phase */
    enum phase phase;
};

static void make(struct phases *self, struct emit_list *list, uint64_t count, const char *tag)
{
    for (uint64_t i = 0; i < count; i++) {
        emit_list_push(&self->emit, list, emit_alloc(&self->emit, self->values.weight, tag));
        emit_kernel(&self->emit, roofline_bytes_ns(self->values.weight));
    }
}

static void start(struct emit *emit)
{
    struct phases *self = (struct phases *)emit;
    make(self, &self->weights, self->values.layers, "weight");
    make(self, &self->state, 2 * self->values.layers, "optimizer");
}

static struct emit_block activation(struct phases *self, uint64_t times)
{
    uint64_t bytes = times * ar_rng_between(&self->emit.rng, self->values.least, self->values.most);
    struct emit_block block = emit_alloc(&self->emit, bytes, "activation");
    emit_kernel(&self->emit, roofline_bytes_ns(2 * bytes));
    return block;
}

/* A small block after each layer in the first step of a cycle, until there are enough. */
static void keep(struct phases *self, uint64_t layer)
{
    if (self->done || layer >= self->values.kept + self->values.leak)
        return;
    struct emit_list *list = layer < self->values.leak ? &self->leaked : &self->kept;
    emit_list_push(&self->emit, list, emit_alloc(&self->emit, KEPT_BYTES, "kept"));
}

static void train(struct phases *self)
{
    for (uint64_t i = 0; i < self->values.layers; i++) {
        emit_list_push(&self->emit, &self->activations, activation(self, 1));
        keep(self, i);
    }
    for (uint64_t i = self->values.layers; i > 0; i--) {
        struct emit_block gradient = emit_alloc(&self->emit, self->values.weight, "gradient");
        emit_kernel(&self->emit, roofline_bytes_ns(3 * self->values.weight));
        emit_list_free(&self->emit, &self->activations, 1);
        emit_free(&self->emit, &gradient);
    }
    emit_step(&self->emit);
}

static void evaluate(struct phases *self)
{
    struct emit_block last = activation(self, 2);
    for (uint64_t i = 1; i < self->values.layers; i++) {
        struct emit_block next = activation(self, 2);
        emit_free(&self->emit, &last);
        last = next;
    }
    emit_free(&self->emit, &last);
}

static void end_phase(struct phases *self)
{
    static const char *const names[] = {"train", "evaluate", "offload", "sleep", "wake"};
    if (self->values.trim && (self->phase == PHASE_OFFLOAD || self->phase == PHASE_SLEEP))
        emit_trim(&self->emit);
    emit_mark(&self->emit, names[self->phase]);
    self->done = 0;
    self->phase = (self->phase + 1) % PHASES;
    self->cycle += self->phase == PHASE_TRAIN;
}

static void end(struct phases *self)
{
    struct emit_list *lists[] = {&self->leaked, &self->kept, &self->state, &self->weights};
    for (size_t i = 0; i < AR_COUNT(lists); i++)
        emit_list_free(&self->emit, lists[i], lists[i]->count);
    emit_end(&self->emit);
}

static void advance(struct emit *emit)
{
    struct phases *self = (struct phases *)emit;
    uint64_t steps = self->phase == PHASE_TRAIN ? self->values.steps : self->values.evaluations;
    if (self->cycle == self->values.cycles) {
        end(self);
        return;
    }
    switch (self->phase) {
    case PHASE_TRAIN:
    case PHASE_EVALUATE:
        if (self->done < steps) {
            (self->phase == PHASE_TRAIN ? train : evaluate)(self);
            self->done++;
            return;
        }
        break;
    case PHASE_OFFLOAD:
        emit_list_free(emit, &self->state, self->state.count);
        break;
    case PHASE_SLEEP:
        emit_list_free(emit, &self->kept, self->kept.count);
        emit_list_free(emit, &self->weights, self->weights.count);
        break;
    default:
        make(self, &self->weights, self->values.layers, "weight");
        make(self, &self->state, 2 * self->values.layers, "optimizer");
        break;
    }
    end_phase(self);
}

static void open(struct emit *emit)
{
    const struct phases_values *values = &((const struct phases *)emit)->values;
    if (values->least > values->most || values->kept + values->leak > values->layers)
        emit_fail(emit, AR_INVALID,
                  "least must be at most most, and kept and leak together at most layers");
}

#define AR_OPT_OF struct phases_values

static const struct ar_option options[] = {
    GEN_COMMON_OPTIONS,
    AR_OPT_COUNT(cycles, "20", 1, 1e9, "train, evaluate, .., wake"),
    AR_OPT_COUNT(steps, "8", 1, 1e9, "training steps in a cycle"),
    AR_OPT_COUNT(evaluations, "4", 0, 1e9, "batches evaluated in a cycle"),
    AR_OPT_COUNT(layers, "12", 1, 1e6, "layers"),
    AR_OPT_BYTES(weight, "24MiB", 1, 1e12, "bytes of a layer's weights"),
    AR_OPT_BYTES(least, "8MiB", 1, 1e12, "bytes of the smallest activation"),
    AR_OPT_BYTES(most, "64MiB", 1, 1e12, "bytes of the largest"),
    AR_OPT_COUNT(kept, "4", 0, 1e6,
                 "blocks of 1 MiB a cycle that live from its first step until it sleeps"),
    AR_OPT_COUNT(leak, "0", 0, 1e6, "blocks of 1 MiB a cycle that are never freed"),
    AR_OPT_BOOL(trim, "yes", "cached memory is released before offload and sleep end"),
    {.name = NULL},
};

const struct gen_ops phases_generator = {
    .name = "phases",
    .summary = "a process that trains, evaluates, offloads, sleeps and wakes, again and again",
    .page = "workloads/gen/phases.md",
    .options = options,
    GEN_LAYOUT(phases, weights),
    .open = open,
    .start = start,
    .advance = advance,
};
