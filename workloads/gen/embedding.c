/* A recommender whose embedding tables appear and grow on first use, trained eagerly: memory grows
 * slowly while only the dense layers are used, and fast once tables are used. Each step:
 * 1. If a table is due, make it, and make the top layers again, because their input widens.
 * 2. A bottom network turns the dense features into a vector; each table sums a bag of rows.
 * 3. A top network works on all vectors together; the loss is the mean of its sigmoid.
 * 4. Backward, latest first: top, tables, bottom. Gradients of tables are dense or sparse.
 * 5. The optimizer, whose state is made when it first sees a parameter; gradients are freed.
 * Names live as in a Python loop: the outputs and the loss of a step until the next step binds them
 * again, and with the loss the graph, which holds the old top layers.
 * Sizes are derived in embedding.md. */
#include "workloads/gen/embedding_table.h"
#include "workloads/gen/jax.h"

enum { WEIGHT_1, BIAS_1, WEIGHT_2, BIAS_2, LAYER_PARAMETERS };

struct embedding_values {
    struct gen_common common;
    uint64_t steps, tables, first, every, width, start, dense, hidden;
    double growth;
    const char *rows, *sparse, *batches, *bags;
    int draw, dtype, optimizer, program;
    bool master;
};

struct embedding {
    struct emit emit;
    struct embedding_values values; /* the texts are valid in open() */
    struct samples rows, sparse, batches, bags;
    struct embedding_table *tables;
    struct parameter **updated; /* room for all parameters */
    struct emit_block *scratch; /* as many */
    struct jax_embedding jax;   /* with program=jax, instead of all blocks */
    uint64_t *jax_bags;         /* one per table that there will be */
    struct eager eager;
    struct parameter bottom[LAYER_PARAMETERS], top[LAYER_PARAMETERS];
    struct parameter retired[LAYER_PARAMETERS]; /* the top before; the graph holds it */
    uint64_t table_count;
    struct emit_block bottom_output, loss;
    uint64_t step, batch;
};

/* The tensors that a step's forward pass saves for its backward pass. */
struct saved {
    struct emit_block input, bottom_hidden, joined, top_hidden, probability;
};

static uint64_t value_bytes(const struct embedding *self)
{
    return numeric_value_bytes(self->eager.type);
}

static void make_weight(struct embedding *self, struct parameter *parameter, uint64_t rows,
                        uint64_t columns)
{
    uint64_t elements = rows * columns;
    parameter_make(&self->eager, parameter, elements, elements * value_bytes(self));
}

/* Two layers: `inputs` to hidden, hidden to `outputs`. */
static void make_network(struct embedding *self, struct parameter *network, uint64_t inputs,
                         uint64_t outputs)
{
    uint64_t hidden = self->values.hidden;
    make_weight(self, &network[WEIGHT_1], hidden, inputs);
    make_weight(self, &network[BIAS_1], hidden, 1);
    make_weight(self, &network[WEIGHT_2], outputs, hidden);
    make_weight(self, &network[BIAS_2], outputs, 1);
}

static uint64_t joined_width(const struct embedding *self)
{
    return self->values.width * (self->table_count + 1);
}

static void start(struct emit *emit)
{
    struct embedding *self = (struct embedding *)emit;
    eager_start(&self->eager, emit, (enum numeric)self->values.dtype);
    self->eager.kernel_ops = true;
    if (self->values.program == PROGRAM_JAX)
        jax_embedding_start(&self->jax, &self->eager);
    else
        make_network(self, self->bottom, self->values.dense, self->values.width);
}

/* Rule 1. */
static void add_table(struct embedding *self)
{
    struct embedding_table *table = &self->tables[self->table_count++];
    *table = (struct embedding_table){.width = self->values.width};
    table->rows = samples_next_log(&self->rows, &self->emit.rng);
    table->sparse = samples_next(&self->sparse, &self->emit.rng) != 0;
    uint64_t capacity = table->rows;
    if (self->values.growth > 0 && self->values.start < capacity)
        capacity = self->values.start;
    embedding_table_make(&self->eager, table, capacity);
}

static void make_top(struct embedding *self)
{
    for (int i = 0; i < LAYER_PARAMETERS; i++)
        self->retired[i] = self->top[i];
    make_network(self, self->top, joined_width(self), 1);
}

static bool table_is_due(const struct embedding *self)
{
    const struct embedding_values *values = &self->values;
    return self->table_count < values->tables && self->step >= values->first &&
           (self->step - values->first) % values->every == 0;
}

static struct emit_kernel_op combine(const struct embedding *self, const struct emit_block *a,
                                     const struct emit_block *b)
{
    return eager_combine(eager_type(&self->eager), a, b);
}

/* batch x inputs times the weight, with a bias. */
static struct emit_block product(struct embedding *self, uint64_t outputs, uint64_t inputs,
                                 const struct emit_block *input, const struct parameter *weight)
{
    return eager_multiply(&self->eager, EAGER_FORWARD,
                          (struct eager_shape){self->batch, outputs, inputs}, true, "activation",
                          input, &weight->value);
}

/* A layer with a bias and a rectifier; the layer's own output is not kept. */
static struct emit_block hidden_layer(struct embedding *self, uint64_t inputs,
                                      const struct emit_block *input,
                                      const struct parameter *weight)
{
    struct emit_block linear = product(self, self->values.hidden, inputs, input, weight);
    struct emit_block output = eager_make(&self->eager, linear.bytes, linear.bytes, "activation",
                                          combine(self, &linear, NULL));
    emit_free(&self->emit, &linear);
    return output;
}

/* Rule 2. The vectors of the step before are freed when the first new one is made. */
static void forward_vectors(struct embedding *self, struct saved *saved)
{
    const struct embedding_values *values = &self->values;
    uint64_t input_bytes = self->batch * values->dense * value_bytes(self);
    saved->input =
        eager_make(&self->eager, input_bytes, 0, "input", eager_set(eager_type(&self->eager)));
    saved->bottom_hidden =
        hidden_layer(self, values->dense, &saved->input, &self->bottom[WEIGHT_1]);
    struct emit_block output = product(self, values->width, values->hidden, &saved->bottom_hidden,
                                       &self->bottom[WEIGHT_2]);
    for (uint64_t i = self->table_count; i > 0; i--)
        emit_free(&self->emit, &self->tables[i - 1].output);
    emit_free(&self->emit, &self->bottom_output);
    self->bottom_output = output;
    for (uint64_t i = 0; i < self->table_count; i++) {
        uint64_t bag = samples_next(&self->bags, &self->emit.rng);
        embedding_table_see(&self->eager, &self->tables[i], self->batch * bag, values->growth);
        embedding_table_lookup(&self->eager, &self->tables[i], self->batch, bag);
    }
}

/* Rule 3. */
static void forward_loss(struct embedding *self, struct saved *saved)
{
    uint64_t value = value_bytes(self);
    uint64_t joined = self->batch * joined_width(self) * value;
    saved->joined = eager_make(&self->eager, joined, joined, "activation",
                               (struct emit_kernel_op){.op = "copy", .in = {&self->bottom_output}});
    saved->top_hidden =
        hidden_layer(self, joined_width(self), &saved->joined, &self->top[WEIGHT_1]);
    struct emit_block logit =
        product(self, 1, self->values.hidden, &saved->top_hidden, &self->top[WEIGHT_2]);
    saved->probability = eager_make(&self->eager, logit.bytes, logit.bytes, "activation",
                                    combine(self, &logit, NULL));
    emit_free(&self->emit, &logit);
    struct emit_block loss = eager_make(&self->eager, value, logit.bytes, "loss",
                                        (struct emit_kernel_op){.op = "reduce",
                                                                .type = eager_type(&self->eager),
                                                                .in = {&saved->probability},
                                                                .shape = {self->batch, 1}});
    parameter_drop(&self->eager, &self->retired[WEIGHT_2]);
    parameter_drop(&self->eager, &self->retired[WEIGHT_1]);
    parameter_drop(&self->eager, &self->retired[BIAS_1]);
    emit_free(&self->emit, &self->loss);
    self->loss = loss;
}

/* A layer of the model: its input, and the widths of input and output. */
struct layer {
    struct parameter *weight, *bias;
    const struct emit_block *input;
    uint64_t inputs, outputs;
};

/* Backward through output = input x weight + bias: the gradients of input (except in the first
 * layer of the model), weight and bias; `outgoing` stays. */
static struct emit_block backward_layer(struct embedding *self, struct layer layer,
                                        const struct emit_block *outgoing, bool input_needed)
{
    struct eager *eager = &self->eager;
    struct emit_block input = {.held = false};
    if (input_needed)
        input = eager_multiply(eager, EAGER_BACKWARD,
                               (struct eager_shape){self->batch, layer.inputs, layer.outputs},
                               false, "gradient", outgoing, &layer.weight->value);
    parameter_accumulate(
        eager, layer.weight,
        eager_multiply(eager, EAGER_BACKWARD,
                       (struct eager_shape){layer.outputs, layer.inputs, self->batch}, false,
                       "gradient", outgoing, layer.input));
    parameter_accumulate(eager, layer.bias,
                         eager_sum_rows(eager, self->batch, layer.outputs, outgoing));
    return input;
}

/* Backward through the rectifier: frees the outgoing gradient and the saved output. */
static struct emit_block backward_hidden(struct embedding *self, struct emit_block *outgoing,
                                         struct emit_block *saved)
{
    struct emit_block gradient =
        eager_make(&self->eager, outgoing->bytes, outgoing->bytes + saved->bytes, "gradient",
                   combine(self, outgoing, saved));
    emit_free(&self->emit, outgoing);
    emit_free(&self->emit, saved);
    return gradient;
}

/* Layer 1 or 2 of a network. */
static struct layer layer_of(struct parameter *network, int weight, const struct emit_block *input,
                             uint64_t inputs, uint64_t outputs)
{
    return (struct layer){&network[weight], &network[weight + 1], input, inputs, outputs};
}

/* The top network; returns the gradient of the joined vectors. */
static struct emit_block backward_top(struct embedding *self, struct saved *saved)
{
    struct eager *eager = &self->eager;
    uint64_t hidden = self->values.hidden;
    uint64_t bytes = saved->probability.bytes;
    struct emit_block mean = eager_make(eager, bytes, 0, "gradient", eager_set(eager_type(eager)));
    struct emit_block logit =
        eager_make(eager, bytes, 2 * bytes, "gradient", combine(self, &mean, &saved->probability));
    emit_free(&self->emit, &mean);
    emit_free(&self->emit, &saved->probability);
    struct emit_block output = backward_layer(
        self, layer_of(self->top, WEIGHT_2, &saved->top_hidden, hidden, 1), &logit, true);
    emit_free(&self->emit, &logit);
    struct emit_block linear = backward_hidden(self, &output, &saved->top_hidden);
    struct emit_block joined = backward_layer(
        self, layer_of(self->top, WEIGHT_1, &saved->joined, joined_width(self), hidden), &linear,
        true);
    emit_free(&self->emit, &linear);
    emit_free(&self->emit, &saved->joined);
    return joined;
}

/* Rule 4. */
static void backward(struct embedding *self, struct saved *saved)
{
    const struct embedding_values *values = &self->values;
    struct emit_block seed = eager_make(&self->eager, value_bytes(self), 0, "gradient",
                                        eager_set(eager_type(&self->eager)));
    struct emit_block joined = backward_top(self, saved);
    for (uint64_t i = self->table_count; i > 0; i--)
        embedding_table_backward(&self->eager, &self->tables[i - 1], self->batch, &joined);
    struct emit_block output = backward_layer(
        self,
        layer_of(self->bottom, WEIGHT_2, &saved->bottom_hidden, values->hidden, values->width),
        &joined, true);
    emit_free(&self->emit, &joined);
    struct emit_block linear = backward_hidden(self, &output, &saved->bottom_hidden);
    (void)backward_layer(
        self, layer_of(self->bottom, WEIGHT_1, &saved->input, values->dense, values->hidden),
        &linear, false);
    emit_free(&self->emit, &linear);
    emit_free(&self->emit, &saved->input);
    emit_free(&self->emit, &seed);
}

/* Rule 5. */
static void update(struct embedding *self)
{
    enum optimizer optimizer = (enum optimizer)self->values.optimizer;
    bool master = self->values.master && self->eager.type != NUMERIC_FLOAT32;
    size_t count = 0;
    for (uint64_t i = 0; i < self->table_count; i++) {
        if (self->tables[i].sparse)
            embedding_table_update_sparse(&self->eager, &self->tables[i], optimizer, master);
        else
            self->updated[count++] = &self->tables[i].weight;
    }
    for (int i = 0; i < LAYER_PARAMETERS; i++) {
        self->updated[count++] = &self->bottom[i];
        self->updated[count++] = &self->top[i];
    }
    parameter_update(&self->eager, self->updated, count, optimizer, master, self->scratch);
}

/* When the loop over the parameters begins, it still names the last one of the step before. */
static void drop_gradients(struct embedding *self)
{
    parameter_drop(&self->eager, &self->retired[BIAS_2]);
    for (uint64_t i = 0; i < self->table_count; i++)
        embedding_table_drop_gradient(&self->eager, &self->tables[i]);
    for (int i = 0; i < LAYER_PARAMETERS; i++)
        emit_free(&self->emit, &self->bottom[i].gradient);
    for (int i = 0; i < LAYER_PARAMETERS; i++)
        emit_free(&self->emit, &self->top[i].gradient);
}

/* The program returns; the libraries keep their workspaces. */
static void finish(struct embedding *self)
{
    emit_end(&self->emit);
    if (self->values.program == PROGRAM_JAX) {
        jax_embedding_finish(&self->jax, &self->eager);
        return;
    }
    for (uint64_t i = 0; i < self->table_count; i++)
        embedding_table_drop(&self->eager, &self->tables[i]);
    for (int i = 0; i < LAYER_PARAMETERS; i++) {
        parameter_drop(&self->eager, &self->bottom[i]);
        parameter_drop(&self->eager, &self->top[i]);
    }
    emit_free(&self->emit, &self->bottom_output);
    emit_free(&self->emit, &self->loss);
}

/* A step with program=jax: tables only, of full size from the start. */
static void run_jax(struct embedding *self)
{
    if (table_is_due(self)) {
        self->table_count++;
        jax_embedding_add(&self->jax, &self->eager,
                          samples_next_log(&self->rows, &self->emit.rng) * self->values.width);
    }
    self->batch = samples_next(&self->batches, &self->emit.rng);
    for (uint64_t i = 0; i < self->table_count; i++)
        self->jax_bags[i] = samples_next(&self->bags, &self->emit.rng);
    jax_embedding_step(&self->jax, &self->eager, self->batch, self->values.width, self->jax_bags);
}

static void advance(struct emit *emit)
{
    struct embedding *self = (struct embedding *)emit;
    if (self->step == self->values.steps) {
        finish(self);
        return;
    }
    if (self->values.program == PROGRAM_JAX) {
        run_jax(self);
        emit_step(emit);
        self->step++;
        return;
    }
    bool due = table_is_due(self);
    if (due)
        add_table(self);
    if (due || self->step == 0)
        make_top(self);
    self->batch = samples_next(&self->batches, &self->emit.rng);
    struct saved saved = {.input = {.held = false}};
    forward_vectors(self, &saved);
    forward_loss(self, &saved);
    backward(self, &saved);
    update(self);
    drop_gradients(self);
    emit_step(emit);
    self->step++;
}

static void open(struct emit *emit)
{
    struct embedding *self = (struct embedding *)emit;
    const struct embedding_values *values = &self->values;
    enum samples_order order = (enum samples_order)values->draw;
    size_t parameters = (size_t)values->tables + 2 * LAYER_PARAMETERS;
    if (values->growth > 0 && values->growth < 1.01)
        emit_fail(emit, AR_INVALID,
                  "growth is the factor by which a full table grows: at least 1.01, or 0 for "
                  "tables of full size from the start");
    samples_open(emit, &self->rows, values->rows, SAMPLES_CYCLE, 1, 1u << 30, "rows");
    samples_open(emit, &self->sparse, values->sparse, SAMPLES_CYCLE, 0, 1, "sparse");
    samples_open(emit, &self->batches, values->batches, order, 1, 1u << 20, "batches");
    samples_open(emit, &self->bags, values->bags, order, 1, 4096, "bags");
    uint64_t joined = values->width * (values->tables + 1);
    if (samples_most(&self->batches) * values->hidden > (UINT64_C(1) << 60) / joined)
        emit_fail(
            emit, AR_INVALID,
            "batches x hidden x width x (tables + 1) is more than 2^60; make one of them smaller");
    self->tables = emit_array(emit, (size_t)values->tables, sizeof *self->tables);
    self->updated = emit_array(emit, parameters, sizeof *self->updated);
    self->scratch = emit_array(emit, parameters, sizeof *self->scratch);
    self->jax.tables = emit_array(emit, (size_t)values->tables, sizeof *self->jax.tables);
    self->jax.order = emit_array(emit, (size_t)values->tables, sizeof *self->jax.order);
    self->jax_bags = emit_array(emit, (size_t)values->tables, sizeof *self->jax_bags);
}

#define AR_OPT_OF struct embedding_values

static const struct ar_option options[] = {
    GEN_COMMON_OPTIONS,
    AR_OPT_COUNT(steps, "60", 1, 1e7, "training steps"),
    AR_OPT_COUNT(tables, "16", 0, 4096, "embedding tables in the end"),
    AR_OPT_COUNT(first, "10", 0, 1e7, "step, from 0, at which the first table is used"),
    AR_OPT_COUNT(every, "2", 1, 1e7, "steps from one new table to the next"),
    AR_OPT_TEXT(
        rows, "10000-4000000",
        "list of the tables' vocabularies, taken in turn; a range is drawn from log-uniformly"),
    AR_OPT_COUNT(width, "64", 1, 65536, "elements of a row"),
    AR_OPT_COUNT(start, "4096", 1, 1e9, "rows of a new table, if tables grow"),
    AR_OPT_FRACTION(
        growth, "2", 0, 16,
        "factor by which a full table grows, 2 or 1.5; 0: tables have their full size at once"),
    AR_OPT_TEXT(
        sparse, "0;1",
        "list, taken in turn: 1 for a table with sparse gradients, 0 for dense, 0-1 at random"),
    AR_OPT_TEXT(batches, "2048;4096;8192", "list of batch sizes, one for each step"),
    AR_OPT_TEXT(bags, "1-19", "list of ids per sample, one for each lookup of a table"),
    AR_OPT_CHOICE(draw, "random", SAMPLES_CHOICES,
                  "how batches and bags are taken from their lists"),
    AR_OPT_COUNT(dense, "13", 1, 65536, "dense features"),
    AR_OPT_COUNT(hidden, "512", 1, 65536, "width of the hidden layers"),
    AR_OPT_CHOICE(
        dtype, "float32", NUMERIC_CHOICES,
        "of weights and activations; int8 tables have a scale per row and 16-bit activations"),
    AR_OPT_CHOICE(
        program, "eager", PROGRAM_CHOICES,
        "the framework: jax replaces all tables in one compiled step; tables only, of full size"),
    AR_OPT_CHOICE(optimizer, "adagrad", OPTIMIZER_CHOICES,
                  "its state is made when it first sees a parameter"),
    AR_OPT_BOOL(master, "yes", "a float32 copy of weights in fewer bits, for the optimizer"),
    {.name = NULL},
};

const struct gen_ops embedding_generator = {
    .name = "embedding",
    .summary = "a recommender whose tables appear and grow on first use",
    .page = "workloads/gen/embedding.md",
    .options = options,
    GEN_LAYOUT(embedding, eager),
    .open = open,
    .start = start,
    .advance = advance,
};
