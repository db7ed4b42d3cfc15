/* A recurrent network whose sequences are sorted into buckets by length, each bucket longer than
 * the one before. TensorFlow's users reported that it fits with preallocation and runs out of
 * memory with growth (tensorflow/tensorflow#6111). rnn_buckets.md has the sizes.
 * 1. Variables are made first, of many sizes.
 * 2. A step runs the cells of all layers for each time; each cell saves four tensors for the
 *    backward pass. The outputs of all times are joined and projected to the vocabulary.
 * 3. The backward pass goes back through time and frees the tensors that it has used.
 * 4. At a step's end only the variables are left. */
#include "workloads/gen/eager.h"

#define TENSORS_PER_CELL 4

struct rnn_values {
    struct gen_common common;
    const char *buckets;
    uint64_t repeat, batch, hidden, layers, vocabulary;
    int dtype;
};

struct rnn {
    struct emit emit;
    struct rnn_values values; /* the texts are valid in open() */
    struct samples buckets;
    struct parameter *cells, *biases; /* one of each per layer */
    struct eager eager;
    struct parameter embedding, projection;
    struct emit_list saved; /* by the cells, the latest last */
    uint64_t turn;          /* of buckets x repeat */
    uint64_t length;        /* of the bucket, in times */
    uint64_t value;         /* bytes */
};

static void start(struct emit *emit)
{
    struct rnn *self = (struct rnn *)emit;
    const struct rnn_values *values = &self->values;
    eager_start(&self->eager, emit, (enum numeric)values->dtype);
    self->value = numeric_value_bytes(self->eager.type);
    uint64_t table = values->vocabulary * values->hidden;
    uint64_t cell = 8 * values->hidden * values->hidden;
    parameter_make(&self->eager, &self->embedding, table, table * self->value);
    for (uint64_t i = 0; i < values->layers; i++) {
        parameter_make(&self->eager, &self->cells[i], cell, cell * self->value);
        parameter_make(&self->eager, &self->biases[i], 4 * values->hidden,
                       4 * values->hidden * self->value);
    }
    parameter_make(&self->eager, &self->projection, table, table * self->value);
}

/* Gates, cell state, its hyperbolic tangent, and the hidden state. */
static void cell_forward(struct rnn *self)
{
    uint64_t hidden = self->values.hidden;
    uint64_t state = self->values.batch * hidden * self->value;
    struct eager *eager = &self->eager;
    emit_list_push(&self->emit, &self->saved,
                   eager_layer(eager, self->values.batch, 4 * hidden, 2 * hidden, "gates"));
    emit_list_push(&self->emit, &self->saved, eager_map(eager, state, 4 * state, "cell"));
    emit_list_push(&self->emit, &self->saved, eager_map(eager, state, state, "cell"));
    emit_list_push(&self->emit, &self->saved, eager_map(eager, state, 2 * state, "hidden"));
}

/* Gradients of the gates and the weights. Replaces `flow` with the gradient for the time before. */
static void cell_backward(struct rnn *self, struct parameter *cell, struct parameter *bias,
                          struct emit_block *flow)
{
    const struct rnn_values *values = &self->values;
    uint64_t state = values->batch * values->hidden * self->value;
    struct eager *eager = &self->eager;
    struct emit_block gates = eager_map(eager, 4 * state, 7 * state, "gradient");
    emit_list_free(&self->emit, &self->saved, TENSORS_PER_CELL);
    parameter_accumulate(
        eager, cell, eager_gradient(eager, 2 * values->hidden, 4 * values->hidden, values->batch));
    parameter_accumulate(eager, bias,
                         eager_sum_rows(eager, values->batch, 4 * values->hidden, NULL));
    struct emit_block next =
        eager_gradient(eager, values->batch, 2 * values->hidden, 4 * values->hidden);
    emit_free(&self->emit, &gates);
    emit_free(&self->emit, flow);
    *flow = next;
}

/* Joined outputs, their scores over the vocabulary, and backward to the gradient of the outputs. */
static struct emit_block project(struct rnn *self)
{
    const struct rnn_values *values = &self->values;
    struct emit *emit = &self->emit;
    struct eager *eager = &self->eager;
    uint64_t rows = values->batch * self->length;
    uint64_t joined_bytes = rows * values->hidden * self->value;
    uint64_t score_bytes = rows * values->vocabulary * self->value;
    struct emit_block joined = eager_map(eager, joined_bytes, joined_bytes, "outputs");
    struct emit_block scores =
        eager_layer(eager, rows, values->vocabulary, values->hidden, "scores");
    struct emit_block chances = eager_map(eager, score_bytes, score_bytes, "scores");
    struct emit_block loss = eager_map(eager, self->value, rows * self->value, "loss");
    struct emit_block gradient = eager_map(eager, score_bytes, score_bytes, "gradient");
    emit_free(emit, &chances);
    emit_free(emit, &scores);
    parameter_accumulate(eager, &self->projection,
                         eager_gradient(eager, values->hidden, values->vocabulary, rows));
    struct emit_block flow = eager_gradient(eager, rows, values->hidden, values->vocabulary);
    emit_free(emit, &gradient);
    emit_free(emit, &joined);
    emit_free(emit, &loss);
    return flow;
}

static void update_one(struct rnn *self, struct parameter *parameter)
{
    emit_kernel(&self->emit, roofline_bytes_ns(3 * parameter->value.bytes));
    emit_free(&self->emit, &parameter->gradient);
}

static void step(struct rnn *self)
{
    const struct rnn_values *values = &self->values;
    struct emit *emit = &self->emit;
    uint64_t rows = values->batch * self->length;
    uint64_t input_bytes = rows * values->hidden * self->value;
    struct emit_block ids = eager_map(&self->eager, 8 * rows, 0, "ids");
    struct emit_block inputs = eager_map(&self->eager, input_bytes, input_bytes, "inputs");
    for (uint64_t i = 0; i < self->length * values->layers; i++)
        cell_forward(self);
    struct emit_block outputs = project(self);
    struct emit_block flow = {.held = false};
    for (uint64_t time = self->length; time > 0; time--)
        for (uint64_t layer = values->layers; layer > 0; layer--)
            cell_backward(self, &self->cells[layer - 1], &self->biases[layer - 1], &flow);
    emit_free(emit, &outputs);
    struct emit_block gradient =
        eager_map(&self->eager, self->embedding.value.bytes, input_bytes, "gradient");
    parameter_accumulate(&self->eager, &self->embedding, gradient);
    emit_free(emit, &flow);
    emit_free(emit, &inputs);
    emit_free(emit, &ids);
    update_one(self, &self->embedding);
    for (uint64_t layer = 0; layer < values->layers; layer++) {
        update_one(self, &self->cells[layer]);
        update_one(self, &self->biases[layer]);
    }
    update_one(self, &self->projection);
    emit_step(emit);
}

/* The program returns; the libraries keep their workspaces. */
static void finish(struct rnn *self)
{
    parameter_drop(&self->eager, &self->projection);
    for (uint64_t i = self->values.layers; i > 0; i--) {
        parameter_drop(&self->eager, &self->biases[i - 1]);
        parameter_drop(&self->eager, &self->cells[i - 1]);
    }
    parameter_drop(&self->eager, &self->embedding);
    emit_end(&self->emit);
}

static void advance(struct emit *emit)
{
    struct rnn *self = (struct rnn *)emit;
    if (self->turn == self->buckets.count * self->values.repeat) {
        finish(self);
        return;
    }
    if (self->turn++ % self->values.repeat == 0)
        self->length = samples_next(&self->buckets, &self->emit.rng);
    step(self);
}

static void open(struct emit *emit)
{
    struct rnn *self = (struct rnn *)emit;
    samples_open(emit, &self->buckets, self->values.buckets, SAMPLES_CYCLE, 1, 1u << 20, "buckets");
    self->cells = emit_array(emit, self->values.layers, sizeof *self->cells);
    self->biases = emit_array(emit, self->values.layers, sizeof *self->biases);
}

#define AR_OPT_OF struct rnn_values

static const struct ar_option options[] = {
    GEN_COMMON_OPTIONS,
    AR_OPT_TEXT(buckets, "5;10;20;40",
                "list of the times that a bucket's sequences have, in order"),
    AR_OPT_COUNT(repeat, "12", 1, 1e6, "steps with each bucket"),
    AR_OPT_COUNT(batch, "256", 1, 1e6, "sequences"),
    AR_OPT_COUNT(hidden, "1536", 1, 1e6, "width of the hidden state"),
    AR_OPT_COUNT(layers, "2", 1, 1000, "cells, each above the one before"),
    AR_OPT_COUNT(vocabulary, "20000", 1, 1e8, "words"),
    AR_OPT_CHOICE(dtype, "float32", NUMERIC_CHOICES,
                  "of weights and activations; int8 counts as 16 bits here"),
    {.name = NULL},
};

const struct gen_ops rnn_buckets_generator = {
    .name = "rnn_buckets",
    .summary = "a recurrent network over buckets of longer and longer sequences",
    .page = "workloads/gen/rnn_buckets.md",
    .options = options,
    GEN_LAYOUT(rnn, eager),
    .open = open,
    .start = start,
    .advance = advance,
};
