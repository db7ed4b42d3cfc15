/* A graph network trained on sampled neighbourhoods: the numbers of nodes and edges of a sample are
 * drawn at each step, log-normal, because degrees are skewed. Hardly two requests of the run have
 * the same size. gnn_minibatch.md derives the sizes.
 * 1. Weights are small and made first; each step loads the features of the sampled nodes.
 * 2. Each layer has its own sample: the outermost is the largest, each further in is smaller by
 *    `shrink`. Messages along the edges, their sums at the nodes, and a product with the weights.
 * 3. The backward pass makes the gradients of messages and nodes, and frees in reverse order. */
#include "workloads/gen/eager.h"

#define GNN_LAYERS 8
#define LN_2       0.69314718055994531

struct gnn_values {
    struct gen_common common;
    uint64_t steps, nodes, degree, features, hidden, layers;
    double node_sigma, degree_sigma, shrink;
    int dtype, optimizer;
};

struct gnn {
    struct emit emit;
    struct gnn_values values;
    struct eager eager;
    struct parameter weights[GNN_LAYERS];
    struct parameter *updated[GNN_LAYERS];
    struct emit_block scratch[GNN_LAYERS];
    uint64_t nodes[GNN_LAYERS + 1], edges[GNN_LAYERS]; /* [0]: the outermost */
    struct emit_list saved, graph;                     /* for the backward pass; edge lists */
    uint64_t step, value;
};

static uint64_t width(const struct gnn *self, uint64_t layer)
{
    return layer == 0 ? self->values.features : self->values.hidden;
}

static void start(struct emit *emit)
{
    struct gnn *self = (struct gnn *)emit;
    eager_start(&self->eager, emit, (enum numeric)self->values.dtype);
    self->value = numeric_value_bytes(self->eager.type);
    for (uint64_t i = 0; i < self->values.layers; i++) {
        uint64_t elements = 2 * width(self, i) * self->values.hidden;
        parameter_make(&self->eager, &self->weights[i], elements, elements * self->value);
        self->updated[i] = &self->weights[i];
    }
}

/* A log-normal number of at least 1 with that median. */
static uint64_t draw(struct gnn *self, double median, double sigma)
{
    double drawn = ar_rng_log_normal(&self->emit.rng, ar_rng_log2(median) * LN_2, sigma);
    return drawn < 1 ? 1 : (uint64_t)drawn;
}

static void draw_sample(struct gnn *self)
{
    const struct gnn_values *values = &self->values;
    double nodes = (double)draw(self, (double)values->nodes, values->node_sigma);
    for (uint64_t i = 0; i <= values->layers; i++) {
        self->nodes[i] = nodes < 1 ? 1 : (uint64_t)nodes;
        nodes *= values->shrink;
    }
    for (uint64_t i = 0; i < values->layers; i++) {
        double degree =
            (double)draw(self, 1024.0 * (double)values->degree, values->degree_sigma) / 1024.0;
        double edges = (double)self->nodes[i + 1] * degree;
        self->edges[i] = edges < 1 ? 1 : (uint64_t)edges;
    }
}

/* Features come from the host; the edges of a layer are two lists of ids. */
static void load_sample(struct gnn *self)
{
    uint64_t bytes = self->nodes[0] * self->values.features * self->value;
    emit_list_push(&self->emit, &self->graph, emit_alloc(&self->emit, bytes, "features"));
    emit_kernel(&self->emit, roofline_upload_ns(bytes));
    for (uint64_t i = 0; i < self->values.layers; i++) {
        bytes = 16 * self->edges[i];
        emit_list_push(&self->emit, &self->graph, emit_alloc(&self->emit, bytes, "edges"));
        emit_kernel(&self->emit, roofline_upload_ns(bytes));
    }
}

/* Saves the joined input of the product, its output, and the rectified output. */
static void layer_forward(struct gnn *self, uint64_t layer)
{
    struct emit *emit = &self->emit;
    struct eager *eager = &self->eager;
    uint64_t row = width(self, layer) * self->value;
    uint64_t inner = self->nodes[layer + 1];
    uint64_t message_bytes = self->edges[layer] * row;
    struct emit_block messages = eager_map(eager, message_bytes, message_bytes, "messages");
    struct emit_block sums = eager_map(eager, inner * row, message_bytes, "sums");
    emit_free(emit, &messages);
    emit_list_push(emit, &self->saved,
                   eager_map(eager, 2 * inner * row, 2 * inner * row, "joined"));
    emit_free(emit, &sums);
    emit_list_push(emit, &self->saved,
                   eager_layer(eager, inner, self->values.hidden, 2 * width(self, layer), "nodes"));
    uint64_t output = inner * self->values.hidden * self->value;
    emit_list_push(emit, &self->saved, eager_map(eager, output, output, "nodes"));
}

/* Replaces `flow` with the gradient of the layer's nodes. */
static void layer_backward(struct gnn *self, uint64_t layer, struct emit_block *flow)
{
    struct emit *emit = &self->emit;
    struct eager *eager = &self->eager;
    uint64_t row = width(self, layer) * self->value;
    uint64_t inner = self->nodes[layer + 1];
    struct emit_block product = eager_map(eager, flow->bytes, 2 * flow->bytes, "gradient");
    emit_free(emit, flow);
    emit_list_free(emit, &self->saved, 2);
    parameter_accumulate(eager, &self->weights[layer],
                         eager_gradient(eager, 2 * width(self, layer), self->values.hidden, inner));
    emit_list_free(emit, &self->saved, 1);
    if (layer != 0) { /* features need no gradient */
        struct emit_block joined =
            eager_gradient(eager, inner, 2 * width(self, layer), self->values.hidden);
        struct emit_block messages =
            eager_map(eager, self->edges[layer] * row, inner * row, "gradient");
        *flow = eager_map(eager, self->nodes[layer] * row, messages.bytes, "gradient");
        emit_free(emit, &messages);
        emit_free(emit, &joined);
    }
    emit_free(emit, &product);
}

static void step(struct gnn *self)
{
    uint64_t layers = self->values.layers;
    draw_sample(self);
    load_sample(self);
    for (uint64_t i = 0; i < layers; i++)
        layer_forward(self, i);
    uint64_t output = self->nodes[layers] * self->values.hidden * self->value;
    struct emit_block loss = eager_map(&self->eager, self->value, output, "loss");
    struct emit_block flow = eager_map(&self->eager, output, output, "gradient");
    emit_free(&self->emit, &loss);
    for (uint64_t i = layers; i > 0; i--)
        layer_backward(self, i - 1, &flow);
    emit_list_free(&self->emit, &self->graph, self->graph.count);
    parameter_update(&self->eager, self->updated, layers, (enum optimizer)self->values.optimizer,
                     self->eager.type != NUMERIC_FLOAT32, self->scratch);
    for (uint64_t i = 0; i < layers; i++)
        emit_free(&self->emit, &self->weights[i].gradient);
    emit_step(&self->emit);
}

static void advance(struct emit *emit)
{
    struct gnn *self = (struct gnn *)emit;
    if (self->step++ < self->values.steps) {
        step(self);
        return;
    }
    for (uint64_t i = self->values.layers; i > 0; i--)
        parameter_drop(&self->eager, &self->weights[i - 1]);
    emit_end(emit);
}

#define AR_OPT_OF struct gnn_values

static const struct ar_option options[] = {
    GEN_COMMON_OPTIONS,
    AR_OPT_COUNT(steps, "400", 1, 1e9, "training steps"),
    AR_OPT_COUNT(nodes, "200000", 1, 1e9, "median of the nodes of the outermost layer's sample"),
    AR_OPT_FRACTION(node_sigma, "0.4", 0, 2, "of the logarithm of the nodes"),
    AR_OPT_COUNT(degree, "10", 1, 1e6, "median of the edges per node"),
    AR_OPT_FRACTION(degree_sigma, "0.4", 0, 2, "of the logarithm of the degree"),
    AR_OPT_FRACTION(shrink, "0.25", 0.001, 1, "nodes of a layer / nodes of the one outside of it"),
    AR_OPT_COUNT(features, "128", 1, 1e6, "values of an input node"),
    AR_OPT_COUNT(hidden, "256", 1, 1e6, "values of an inner node"),
    AR_OPT_COUNT(layers, "3", 1, GNN_LAYERS, "layers of the network"),
    AR_OPT_CHOICE(dtype, "float32", NUMERIC_CHOICES,
                  "of weights and activations; int8 counts as 16 bits here"),
    AR_OPT_CHOICE(optimizer, "adam", OPTIMIZER_CHOICES, "of all weights"),
    {.name = NULL},
};

const struct gen_ops gnn_minibatch_generator = {
    .name = "gnn_minibatch",
    .summary = "a graph network on samples whose nodes and edges are drawn at each step",
    .page = "workloads/gen/gnn_minibatch.md",
    .options = options,
    GEN_LAYOUT(gnn, eager),
    .start = start,
    .advance = advance,
};
