/* A transformer trained on sequences whose length differs from step to step. The tensors that it
 * saves for the backward pass are proportional to the length, so hardly two steps request the same
 * sizes, and there is no steady state. varlen_transformer.md derives the sizes.
 * 1. Weights are made first; the optimizer's state with the first update.
 * 2. Forward: each layer saves the tensors that its backward pass needs. With `recompute` it saves
 *    its input only.
 * 3. Backward, last layer first: with `recompute` the layer's forward pass again, then gradients,
 *    then its saved tensors are freed, the last one first.
 * 4. The optimizer updates all weights; gradients are freed. */
#include "workloads/gen/eager.h"

#define WEIGHTS_PER_LAYER 6

enum attention { ATTENTION_FLASH, ATTENTION_FULL };

struct varlen_values {
    struct gen_common common;
    const char *lengths;
    uint64_t steps, layers, hidden, heads, ffn, batch, vocabulary;
    int dtype, attention, optimizer, draw;
    bool recompute, master;
};

struct varlen {
    struct emit emit;
    struct varlen_values values; /* the texts are valid in open() */
    struct samples lengths;
    struct parameter *weights;  /* WEIGHTS_PER_LAYER per layer */
    struct parameter **updated; /* all parameters, for the optimizer */
    struct emit_block *scratch; /* one per parameter */
    struct eager eager;
    struct parameter embedding;
    struct emit_list inputs; /* of the layers */
    struct emit_list saved;  /* by the layers, the latest last */
    uint64_t step, length, value;
};

static size_t parameter_count(const struct varlen *self)
{
    return self->values.layers * WEIGHTS_PER_LAYER + 1;
}

/* Elements of a layer's weights: queries, keys and values; output; two of the feed-forward
 * network; two norms. */
static uint64_t weight_elements(const struct varlen_values *values, unsigned which)
{
    uint64_t h = values->hidden;
    const uint64_t elements[WEIGHTS_PER_LAYER] = {2 * h, 3 * h * h,       h * h,
                                                  2 * h, h * values->ffn, values->ffn * h};
    return elements[which];
}

static void start(struct emit *emit)
{
    struct varlen *self = (struct varlen *)emit;
    const struct varlen_values *values = &self->values;
    eager_start(&self->eager, emit, (enum numeric)values->dtype);
    self->value = numeric_value_bytes(self->eager.type);
    uint64_t table = values->vocabulary * values->hidden;
    parameter_make(&self->eager, &self->embedding, table, table * self->value);
    self->updated[0] = &self->embedding;
    for (size_t i = 0; i + 1 < parameter_count(self); i++) {
        uint64_t elements = weight_elements(values, (unsigned)(i % WEIGHTS_PER_LAYER));
        parameter_make(&self->eager, &self->weights[i], elements, elements * self->value);
        self->updated[i + 1] = &self->weights[i];
    }
}

static uint64_t rows_of(const struct varlen *self)
{
    return self->values.batch * self->length;
}

/* Bytes of one tensor of rows x hidden. */
static uint64_t sheet_of(const struct varlen *self)
{
    return rows_of(self) * self->values.hidden * self->value;
}

static struct emit_block save(struct varlen *self, struct emit_block block)
{
    emit_list_push(&self->emit, &self->saved, block);
    return block;
}

/* Scores, their dropout, and the weighted sum of values; `attention` determines what is saved. */
static void attend(struct varlen *self)
{
    const struct varlen_values *values = &self->values;
    uint64_t sheet = sheet_of(self);
    uint64_t scores = values->heads * self->length * self->length * values->batch;
    struct eager *eager = &self->eager;
    if (values->attention == ATTENTION_FULL) {
        save(self, eager_map(eager, scores * self->value, 2 * sheet, "scores"));
        save(self, eager_map(eager, scores, 0, "mask"));
        save(self, eager_map(eager, scores * self->value, scores * (self->value + 1), "scores"));
    } else {
        save(self, emit_alloc(&self->emit, 4 * values->heads * rows_of(self), "scores"));
    }
    save(self, emit_alloc(&self->emit, sheet, "attention"));
    emit_kernel(&self->emit,
                roofline_product_ns(eager->type, rows_of(self), 2 * self->length, values->hidden));
}

/* Dropout and the sum with the layer's stream; saves the mask and the sum, frees `branch`. */
static void add_branch(struct varlen *self, struct emit_block *branch)
{
    uint64_t sheet = sheet_of(self);
    save(self, eager_map(&self->eager, sheet / self->value, sheet, "mask"));
    struct emit_block dropped = eager_map(&self->eager, sheet, sheet, "dropped");
    emit_free(&self->emit, branch);
    save(self, eager_map(&self->eager, sheet, 2 * sheet, "stream"));
    emit_free(&self->emit, &dropped);
}

/* Saves the layer's tensors; the last of them is the layer's output. */
static void layer_forward(struct varlen *self)
{
    const struct varlen_values *values = &self->values;
    struct eager *eager = &self->eager;
    uint64_t rows = rows_of(self);
    uint64_t sheet = sheet_of(self);
    uint64_t wide = rows * values->ffn * self->value;
    save(self, eager_map(eager, sheet, sheet, "norm"));
    save(self, eager_layer(eager, rows, 3 * values->hidden, values->hidden, "qkv"));
    attend(self);
    struct emit_block branch =
        eager_layer(eager, rows, values->hidden, values->hidden, "projection");
    add_branch(self, &branch);
    save(self, eager_map(eager, sheet, sheet, "norm"));
    save(self, eager_layer(eager, rows, values->ffn, values->hidden, "feed-forward"));
    save(self, eager_map(eager, wide, wide, "feed-forward"));
    branch = eager_layer(eager, rows, values->hidden, values->ffn, "projection");
    add_branch(self, &branch);
}

/* Replaces `flow` with the gradient of the layer's input. */
static void layer_backward(struct varlen *self, struct parameter *weights, struct emit_block *flow)
{
    static const unsigned products[] = {5, 4, 2, 1}; /* of the weights, last one first */
    const struct varlen_values *values = &self->values;
    const uint64_t inputs[] = {values->ffn, values->hidden, values->hidden, values->hidden};
    struct eager *eager = &self->eager;
    uint64_t rows = rows_of(self);
    for (unsigned i = 0; i < 4; i++) {
        struct parameter *weight = &weights[products[i]];
        uint64_t output = weight->elements / inputs[i];
        struct emit_block input_gradient = eager_gradient(eager, rows, inputs[i], output);
        parameter_accumulate(eager, weight, eager_gradient(eager, output, inputs[i], rows));
        emit_free(&self->emit, flow);
        *flow = input_gradient;
    }
    for (unsigned i = 0; i < WEIGHTS_PER_LAYER; i += 3)
        parameter_accumulate(
            eager, &weights[i],
            eager_map(eager, weights[i].value.bytes, 2 * sheet_of(self), "gradient"));
}

/* Scores over the vocabulary and their loss; returns the gradient of the last layer's output. */
static struct emit_block head(struct varlen *self)
{
    const struct varlen_values *values = &self->values;
    struct emit *emit = &self->emit;
    struct eager *eager = &self->eager;
    uint64_t rows = rows_of(self);
    uint64_t score_bytes = rows * values->vocabulary * 4;
    struct emit_block scores = eager_multiply(
        eager, EAGER_FORWARD, (struct eager_shape){rows, values->vocabulary, values->hidden}, false,
        "vocabulary", NULL, NULL);
    struct emit_block wide = eager_map(eager, score_bytes, scores.bytes, "vocabulary");
    struct emit_block chances = eager_map(eager, score_bytes, score_bytes, "vocabulary");
    emit_free(emit, &wide);
    struct emit_block gradient = eager_map(eager, scores.bytes, score_bytes, "gradient");
    emit_free(emit, &chances);
    emit_free(emit, &scores);
    struct emit_block flow = eager_gradient(eager, rows, values->hidden, values->vocabulary);
    parameter_accumulate(eager, &self->embedding,
                         eager_gradient(eager, values->vocabulary, values->hidden, rows));
    emit_free(emit, &gradient);
    return flow;
}

static void forward(struct varlen *self)
{
    uint64_t sheet = sheet_of(self);
    emit_list_push(&self->emit, &self->inputs, eager_map(&self->eager, sheet, sheet, "stream"));
    for (uint64_t layer = 0; layer < self->values.layers; layer++) {
        size_t before = self->saved.count;
        layer_forward(self);
        if (!self->values.recompute)
            continue;
        emit_list_push(&self->emit, &self->inputs, emit_list_pop(&self->saved));
        emit_list_free(&self->emit, &self->saved, self->saved.count - before);
    }
}

static void backward(struct varlen *self)
{
    struct emit *emit = &self->emit;
    struct emit_block flow = head(self);
    size_t per_layer = self->saved.count / self->values.layers;
    for (uint64_t layer = self->values.layers; layer > 0; layer--) {
        if (self->values.recompute) {
            emit_list_free(emit, &self->inputs, 1);
            layer_forward(self);
            per_layer = self->saved.count;
        }
        layer_backward(self, &self->weights[(layer - 1) * WEIGHTS_PER_LAYER], &flow);
        emit_list_free(emit, &self->saved, per_layer);
    }
    emit_list_free(emit, &self->inputs, 1);
    struct emit_block gradient =
        eager_map(&self->eager, self->embedding.value.bytes, sheet_of(self), "gradient");
    parameter_accumulate(&self->eager, &self->embedding, gradient);
    emit_free(emit, &flow);
}

static void finish(struct varlen *self)
{
    for (size_t i = parameter_count(self); i > 0; i--)
        parameter_drop(&self->eager, self->updated[i - 1]);
    emit_end(&self->emit);
}

static void advance(struct emit *emit)
{
    struct varlen *self = (struct varlen *)emit;
    if (self->step == self->values.steps) {
        finish(self);
        return;
    }
    self->length = samples_next(&self->lengths, &self->emit.rng);
    struct emit_block ids = eager_map(&self->eager, 8 * rows_of(self), 0, "ids");
    forward(self);
    backward(self);
    emit_free(emit, &ids);
    parameter_update(&self->eager, self->updated, parameter_count(self),
                     (enum optimizer)self->values.optimizer, self->values.master, self->scratch);
    for (size_t i = 0; i < parameter_count(self); i++)
        emit_free(emit, &self->updated[i]->gradient);
    emit_step(emit);
    self->step++;
}

static void open(struct emit *emit)
{
    struct varlen *self = (struct varlen *)emit;
    struct varlen_values *values = &self->values;
    values->master = values->master && values->dtype != NUMERIC_FLOAT32;
    samples_open(emit, &self->lengths, values->lengths, (enum samples_order)values->draw, 1,
                 1u << 20, "lengths");
    self->weights = emit_array(emit, parameter_count(self), sizeof *self->weights);
    self->updated = emit_array(emit, parameter_count(self), sizeof *self->updated);
    self->scratch = emit_array(emit, parameter_count(self), sizeof *self->scratch);
}

#define AR_OPT_OF struct varlen_values

static const struct ar_option options[] = {
    GEN_COMMON_OPTIONS,
    AR_OPT_COUNT(steps, "40", 1, 1e7, "training steps"),
    AR_OPT_TEXT(lengths, "128-2048", "list of lengths, or of ranges to draw from, in tokens"),
    AR_OPT_CHOICE(draw, "random", SAMPLES_CHOICES,
                  "whether the lengths are drawn or taken in turn"),
    AR_OPT_COUNT(batch, "4", 1, 1e6, "sequences"),
    AR_OPT_COUNT(layers, "12", 1, 1000, "layers"),
    AR_OPT_COUNT(hidden, "1024", 1, 1e6, "width of the stream"),
    AR_OPT_COUNT(heads, "16", 1, 1e4, "of attention"),
    AR_OPT_COUNT(ffn, "4096", 1, 1e7, "width of the feed-forward network"),
    AR_OPT_COUNT(vocabulary, "32000", 1, 1e8, "words"),
    AR_OPT_CHOICE(dtype, "bfloat16", NUMERIC_CHOICES,
                  "of weights and activations; int8 counts as 16 bits here"),
    AR_OPT_CHOICE(attention, "flash", "flash|full",
                  "full saves the scores, quadratic in the length"),
    AR_OPT_BOOL(recompute, "no", "layers save only their input and run again in the backward pass"),
    AR_OPT_CHOICE(optimizer, "adam", OPTIMIZER_CHOICES, "of all weights"),
    AR_OPT_BOOL(master, "yes", "a float32 copy of weights that have fewer bits"),
    {.name = NULL},
};

const struct gen_ops varlen_transformer_generator = {
    .name = "varlen_transformer",
    .summary = "a transformer trained on sequences of varying lengths",
    .page = "workloads/gen/varlen_transformer.md",
    .options = options,
    GEN_LAYOUT(varlen, eager),
    .open = open,
    .start = start,
    .advance = advance,
};
