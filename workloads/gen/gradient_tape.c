/* A stack of dense layers under a gradient tape, trained eagerly. Each step, once for every
 * micro-batch that is accumulated:
 * 1. Forward: each layer's product, bias and activation. The tape keeps the tensors that the
 *    backward pass of each operation needs: the layer's input, and the activation's input (gelu) or
 *    output (relu).
 * 2. The loss is the sum of squared differences between the last layer's output and the input.
 * 3. Backward, last layer first: gradients are made; a tensor of the tape is freed as soon as its
 *    operation is done, or when the next tape begins if the tape is persistent.
 * 4. With recomputation the forward pass keeps only the input of each segment of layers; the
 *    backward pass runs a segment's forward pass again before it differentiates it.
 * Then the optimizer runs, whose state is made in the first step, and the gradients are freed.
 * Names live as in a Python loop: input, output and loss until they are bound again. Sizes are
 * derived in gradient_tape.md. */
#include "workloads/gen/jax.h"

enum bias { BIAS_SEPARATE, BIAS_FUSED, BIAS_NONE };
enum activation { ACTIVATION_NONE, ACTIVATION_RELU, ACTIVATION_GELU };

#define SCALE_BYTES 4u /* of a row or column of int8 values */

struct tape_values {
    struct gen_common common;
    uint64_t steps, layers, width, accumulate, recompute;
    const char *batches, *lengths;
    int draw, dtype, bias, activation, optimizer, program;
    bool persistent, master;
};

struct layer {
    struct parameter weight, bias;
    struct emit_block before; /* the activation's input, if it is kept */
    struct emit_block output; /* of all layers but the last */
};

struct tape {
    struct emit emit;
    struct tape_values values; /* the texts are valid in open() */
    struct samples batches, lengths;
    struct layer *layers;
    struct parameter **updated; /* room for all parameters */
    struct emit_block *scratch; /* as many */
    struct emit_block *kept;    /* by a persistent tape, to be freed with it */
    struct eager eager;
    size_t kept_count;
    struct emit_block input, result, loss, difference;
    struct jax_tape jax; /* with program=jax, instead of the blocks above */
    uint64_t rows;       /* of the micro-batch: samples x length */
    uint64_t step;
};

static uint64_t row_bytes(const struct tape *self)
{
    return self->values.width * numeric_value_bytes(self->eager.type);
}

static uint64_t sheet_bytes(const struct tape *self)
{
    return self->rows * row_bytes(self);
}

static void start(struct emit *emit)
{
    struct tape *self = (struct tape *)emit;
    eager_start(&self->eager, emit, (enum numeric)self->values.dtype);
    self->eager.kernel_ops = true;
    uint64_t width = self->values.width;
    if (self->values.program == PROGRAM_JAX) {
        jax_tape_start(&self->jax, &self->eager, width);
        return;
    }
    uint64_t bytes = width * width * numeric_weight_bytes(self->eager.type);
    if (self->eager.type == NUMERIC_INT8)
        bytes += width * SCALE_BYTES;
    for (uint64_t i = 0; i < self->values.layers; i++) {
        self->layers[i] = (struct layer){.before = {.held = false}};
        parameter_make(&self->eager, &self->layers[i].weight, width * width, bytes);
        if (self->values.bias != BIAS_NONE)
            parameter_make(&self->eager, &self->layers[i].bias, width, row_bytes(self));
    }
}

/* ---- what the tape keeps ---- */

static void tape_release(struct tape *self, struct emit_block *block)
{
    if (block->held && self->values.persistent) {
        self->kept[self->kept_count++] = *block;
        block->held = false;
        return;
    }
    emit_free(&self->emit, block);
}

static void tape_drop(struct tape *self)
{
    for (size_t i = 0; i < self->kept_count; i++)
        emit_free(&self->emit, &self->kept[i]);
    self->kept_count = 0;
}

/* ---- forward ---- */

/* The input of a layer: the model's input, or the output of the layer before. */
static const struct emit_block *input_of(const struct tape *self, uint64_t index)
{
    return index ? &self->layers[index - 1].output : &self->input;
}

static struct emit_kernel_op combine(const struct tape *self, const struct emit_block *a,
                                     const struct emit_block *b)
{
    return eager_combine(eager_type(&self->eager), a, b);
}

/* input x weight. An int8 layer quantises its input, one scale a row, and the product's kernel
 * scales its sums back. */
static struct emit_block forward_product(struct tape *self, uint64_t index, bool bias)
{
    uint64_t width = self->values.width;
    const struct emit_block *input = input_of(self, index);
    struct emit_block codes = {.held = false};
    if (self->eager.type == NUMERIC_INT8)
        codes = eager_make(&self->eager, self->rows * (width + SCALE_BYTES), sheet_bytes(self),
                           "scratch", eager_combine("i8", input, NULL));
    struct emit_block output = eager_multiply(
        &self->eager, EAGER_FORWARD, (struct eager_shape){self->rows, width, width}, bias,
        "activation", codes.held ? &codes : input, &self->layers[index].weight.value);
    emit_free(&self->emit, &codes);
    return output;
}

/* The layer's output before its activation. */
static struct emit_block forward_linear(struct tape *self, uint64_t index)
{
    struct emit_block product = forward_product(self, index, self->values.bias == BIAS_FUSED);
    if (self->values.bias != BIAS_SEPARATE)
        return product;
    struct emit_block sum = eager_make(&self->eager, product.bytes, product.bytes, "activation",
                                       combine(self, &product, NULL));
    emit_free(&self->emit, &product);
    return sum;
}

static bool is_last(const struct tape *self, uint64_t layer)
{
    return layer + 1 == self->values.layers;
}

static void forward_layer(struct tape *self, uint64_t index)
{
    struct layer *layer = &self->layers[index];
    struct emit_block linear = forward_linear(self, index);
    if (is_last(self, index) || self->values.activation == ACTIVATION_NONE) {
        layer->output = linear;
        return;
    }
    layer->output = eager_make(&self->eager, linear.bytes, linear.bytes, "activation",
                               combine(self, &linear, NULL));
    if (self->values.activation == ACTIVATION_GELU)
        layer->before = linear;
    else
        emit_free(&self->emit, &linear);
}

static uint64_t segment_layers(const struct tape *self)
{
    return self->values.recompute ? self->values.recompute : self->values.layers;
}

/* Rule 4: only the last output of the segment is kept. */
static void forget_segment(struct tape *self, uint64_t first, uint64_t end)
{
    for (uint64_t i = first; i < end; i++) {
        emit_free(&self->emit, &self->layers[i].before);
        if (i + 1 < end)
            emit_free(&self->emit, &self->layers[i].output);
    }
}

static uint64_t segment_end(const struct tape *self, uint64_t first)
{
    uint64_t end = first + segment_layers(self);
    return end < self->values.layers ? end : self->values.layers;
}

static void forward(struct tape *self)
{
    struct emit_block input = eager_make(&self->eager, sheet_bytes(self), 0, "input",
                                         eager_set(eager_type(&self->eager)));
    emit_free(&self->emit, &self->input);
    self->input = input;
    for (uint64_t first = 0; first < self->values.layers; first = segment_end(self, first)) {
        uint64_t end = segment_end(self, first);
        for (uint64_t i = first; i < end; i++)
            forward_layer(self, i);
        if (self->values.recompute)
            forget_segment(self, first, end);
    }
    struct emit_block *last = &self->layers[self->values.layers - 1].output;
    emit_free(&self->emit, &self->result);
    self->result = *last;
    last->held = false;
}

/* Rule 2. */
static void forward_loss(struct tape *self)
{
    uint64_t bytes = sheet_bytes(self);
    self->difference = eager_make(&self->eager, bytes, 2 * bytes, "activation",
                                  combine(self, &self->result, &self->input));
    struct emit_block squares = eager_make(&self->eager, bytes, bytes, "activation",
                                           combine(self, &self->difference, NULL));
    struct emit_block loss =
        eager_make(&self->eager, numeric_value_bytes(self->eager.type), bytes, "loss",
                   (struct emit_kernel_op){.op = "reduce",
                                           .type = eager_type(&self->eager),
                                           .in = {&squares},
                                           .shape = {self->rows, 1}});
    emit_free(&self->emit, &squares);
    emit_free(&self->emit, &self->loss);
    self->loss = loss;
}

/* ---- backward ---- */

/* The gradient of the squares: the difference, times two, times the gradient of the sum. */
static struct emit_block backward_loss(struct tape *self)
{
    uint64_t bytes = sheet_bytes(self);
    struct emit_block power =
        eager_make(&self->eager, bytes, bytes, "gradient", combine(self, &self->difference, NULL));
    struct emit_block twice =
        eager_make(&self->eager, bytes, bytes, "gradient", combine(self, &power, NULL));
    struct emit_block gradient =
        eager_make(&self->eager, bytes, bytes, "gradient", combine(self, &twice, NULL));
    emit_free(&self->emit, &twice);
    emit_free(&self->emit, &power);
    tape_release(self, &self->difference);
    return gradient;
}

static void backward_bias(struct tape *self, struct layer *layer, const struct emit_block *gradient)
{
    if (self->values.bias != BIAS_NONE)
        parameter_accumulate(
            &self->eager, &layer->bias,
            eager_sum_rows(&self->eager, self->rows, self->values.width, gradient));
}

/* The gradients of the input (except the model's own) and of the weight. The first needs an int8
 * weight in 16 bits. */
static struct emit_block backward_product(struct tape *self, uint64_t index,
                                          const struct emit_block *gradient)
{
    struct parameter *weight = &self->layers[index].weight;
    uint64_t width = self->values.width;
    struct emit_block input = {.held = false};
    if (index > 0) {
        struct emit_block plain = {.held = false};
        if (self->eager.type == NUMERIC_INT8)
            plain = eager_make(&self->eager, width * row_bytes(self), weight->value.bytes,
                               "scratch", combine(self, &weight->value, NULL));
        input = eager_multiply(&self->eager, EAGER_BACKWARD,
                               (struct eager_shape){self->rows, width, width}, false, "gradient",
                               gradient, plain.held ? &plain : &weight->value);
        emit_free(&self->emit, &plain);
    }
    parameter_accumulate(&self->eager, weight,
                         eager_multiply(&self->eager, EAGER_BACKWARD,
                                        (struct eager_shape){width, width, self->rows}, false,
                                        "gradient", gradient, input_of(self, index)));
    return input;
}

/* Backward through the activation; frees the tensor that the tape kept for it. */
static void backward_activation(struct tape *self, struct layer *layer, struct emit_block *gradient)
{
    bool relu = self->values.activation == ACTIVATION_RELU;
    struct emit_block inner =
        eager_make(&self->eager, gradient->bytes, 2 * gradient->bytes, "gradient",
                   combine(self, gradient, relu ? &layer->output : &layer->before));
    emit_free(&self->emit, gradient);
    *gradient = inner;
    tape_release(self, relu ? &layer->output : &layer->before);
}

static void backward_layer(struct tape *self, uint64_t index, struct emit_block *gradient)
{
    struct layer *layer = &self->layers[index];
    bool separate = self->values.bias == BIAS_SEPARATE;
    if (!is_last(self, index) && self->values.activation != ACTIVATION_NONE)
        backward_activation(self, layer, gradient);
    if (separate)
        backward_bias(self, layer, gradient);
    struct emit_block input = backward_product(self, index, gradient);
    if (!separate)
        backward_bias(self, layer, gradient);
    emit_free(&self->emit, gradient);
    *gradient = input;
    if (index == 0)
        return;
    /* The layer's own input. The output of a rectifier is needed once more, by the rectifier,
     * unless it will be run again. */
    bool first_of_segment = self->values.recompute && index % segment_layers(self) == 0;
    if (self->values.activation != ACTIVATION_RELU || first_of_segment)
        tape_release(self, &self->layers[index - 1].output);
}

/* Runs a segment's forward pass again; only a rectifier needs its last output. */
static void recompute_segment(struct tape *self, uint64_t first, uint64_t end)
{
    for (uint64_t i = first; i < end; i++)
        forward_layer(self, i);
    if (self->values.activation != ACTIVATION_RELU || is_last(self, end - 1))
        emit_free(&self->emit, &self->layers[end - 1].output);
}

static void backward(struct tape *self)
{
    uint64_t value = numeric_value_bytes(self->eager.type);
    struct emit_block seed =
        eager_make(&self->eager, value, 0, "gradient", eager_set(eager_type(&self->eager)));
    struct emit_block gradient = backward_loss(self);
    for (uint64_t end = self->values.layers; end > 0;) {
        uint64_t first = (end - 1) / segment_layers(self) * segment_layers(self);
        if (self->values.recompute)
            recompute_segment(self, first, end);
        for (uint64_t i = end; i > first; i--)
            backward_layer(self, i - 1, &gradient);
        end = first;
    }
    emit_free(&self->emit, &seed);
}

/* ---- steps ---- */

static void take_gradients(struct tape *self)
{
    tape_drop(self);
    forward(self);
    forward_loss(self);
    backward(self);
}

static void update(struct tape *self)
{
    size_t count = 0;
    bool master = self->values.master && self->eager.type != NUMERIC_FLOAT32;
    for (uint64_t i = 0; i < self->values.layers; i++) {
        self->updated[count++] = &self->layers[i].weight;
        if (self->values.bias != BIAS_NONE)
            self->updated[count++] = &self->layers[i].bias;
    }
    parameter_update(&self->eager, self->updated, count, (enum optimizer)self->values.optimizer,
                     master, self->scratch);
    for (size_t i = 0; i < count; i++)
        emit_free(&self->emit, &self->updated[i]->gradient);
}

/* The program returns; the libraries keep their workspaces. */
static void finish(struct tape *self)
{
    emit_end(&self->emit);
    if (self->values.program == PROGRAM_JAX) {
        jax_tape_finish(&self->jax, &self->eager);
        return;
    }
    tape_drop(self);
    emit_free(&self->emit, &self->input);
    emit_free(&self->emit, &self->result);
    for (uint64_t i = self->values.layers; i > 0; i--) {
        parameter_drop(&self->eager, &self->layers[i - 1].bias);
        parameter_drop(&self->eager, &self->layers[i - 1].weight);
    }
    emit_free(&self->emit, &self->loss);
}

static void advance(struct emit *emit)
{
    struct tape *self = (struct tape *)emit;
    if (self->step == self->values.steps) {
        finish(self);
        return;
    }
    for (uint64_t i = 0; i < self->values.accumulate; i++) {
        self->rows = samples_next(&self->batches, &self->emit.rng) *
                     samples_next(&self->lengths, &self->emit.rng);
        if (self->values.program == PROGRAM_JAX)
            jax_tape_step(&self->jax, &self->eager, self->rows, self->values.width);
        else
            take_gradients(self);
    }
    if (self->values.program == PROGRAM_EAGER)
        update(self);
    emit_step(emit);
    self->step++;
}

static void open(struct emit *emit)
{
    struct tape *self = (struct tape *)emit;
    const struct tape_values *values = &self->values;
    enum samples_order order = (enum samples_order)values->draw;
    size_t layers = (size_t)values->layers;
    samples_open(emit, &self->batches, values->batches, order, 1, 1u << 20, "batches");
    samples_open(emit, &self->lengths, values->lengths, order, 1, 1u << 20, "lengths");
    uint64_t widest = samples_most(&self->batches) * samples_most(&self->lengths);
    if (values->program == PROGRAM_JAX &&
        (layers != 1 || values->optimizer != OPTIMIZER_NONE || values->accumulate != 1 ||
         values->recompute || values->persistent || values->bias != BIAS_SEPARATE))
        emit_fail(
            emit, AR_INVALID,
            "program=jax is one layer with a separate bias and no optimizer: "
            "layers=1,bias=separate,optimizer=none, without persistent, accumulate and recompute");
    if (widest > (UINT64_C(1) << 60) / values->width / values->width)
        emit_fail(emit, AR_INVALID,
                  "batches x lengths x width x width is more than 2^60; make one of them smaller");
    self->layers = emit_array(emit, layers, sizeof *self->layers);
    self->updated = emit_array(emit, 2 * layers, sizeof(struct parameter *));
    self->scratch = emit_array(emit, 2 * layers, sizeof *self->scratch);
    self->kept = emit_array(emit, 2 * layers + 1, sizeof *self->kept);
}

#define AR_OPT_OF struct tape_values

static const struct ar_option options[] = {
    GEN_COMMON_OPTIONS,
    AR_OPT_COUNT(steps, "40", 1, 1e9, "training steps"),
    AR_OPT_COUNT(layers, "16", 1, 10000, "dense layers, width to width"),
    AR_OPT_COUNT(width, "2048", 1, 1e6, "elements of a row"),
    AR_OPT_TEXT(batches, "16", "list of samples in a micro-batch, one for each"),
    AR_OPT_TEXT(lengths, "128-1024", "list of rows in a sample, one for each micro-batch"),
    AR_OPT_CHOICE(draw, "random", SAMPLES_CHOICES,
                  "how batches and lengths are taken from their lists"),
    AR_OPT_CHOICE(dtype, "bfloat16", NUMERIC_CHOICES,
                  "of weights and activations; int8 models have 16-bit activations"),
    AR_OPT_CHOICE(bias, "fused", "separate|fused|none",
                  "an addition of its own, part of the product, or none"),
    AR_OPT_CHOICE(activation, "gelu", "none|relu|gelu", "after all layers but the last"),
    AR_OPT_CHOICE(optimizer, "adam", OPTIMIZER_CHOICES, "its state is made in the first step"),
    AR_OPT_BOOL(master, "yes", "a float32 copy of weights in fewer bits, for the optimizer"),
    AR_OPT_CHOICE(program, "eager", PROGRAM_CHOICES,
                  "the framework: jax makes a new array in each operation"),
    AR_OPT_BOOL(persistent, "no", "the tensors of the tape live until the next tape begins"),
    AR_OPT_COUNT(accumulate, "1", 1, 4096, "micro-batches in a step"),
    AR_OPT_COUNT(recompute, "0", 0, 10000,
                 "layers of a segment whose forward pass is run again; 0: all tensors are kept"),
    {.name = NULL},
};

const struct gen_ops gradient_tape_generator = {
    .name = "gradient_tape",
    .summary = "dense layers trained under a gradient tape",
    .page = "workloads/gen/gradient_tape.md",
    .options = options,
    GEN_LAYOUT(tape, eager),
    .open = open,
    .start = start,
    .advance = advance,
};
