/* Sharded training whose host runs ahead of the device: gathered weights are used on a
 * communication stream, and a policy that keeps such blocks until the stream has passed their use
 * holds one more for each layer that the host is ahead (pytorch/pytorch#147168). Stream 0 computes,
 * stream 1 communicates. fsdp_runahead.md draws the order.
 * 1. Gather: a block of a layer's whole weights, requested on stream 0; stream 1 waits for the work
 *    that stream 0 has so far, then fills it. Stream 0 waits for that and computes. The gather of
 *    the next layer is issued before the compute of this one.
 * 2. The free of the gathered block is requested as soon as the compute is issued.
 * 3. Backward: gather again, compute, and a gradient of the whole weights that stream 1 reduces
 *    into the shard's.
 * 4. hold=record: the uses on stream 1 are events (`u`), and frees are requested at once.
 *    hold=stash: uses are not in the trace; the program keeps a gradient until stream 0 has waited
 *    for its reduction, a layer later. For a gathered block stream 0 has waited already.
 * 5. The host waits for the device when it has issued `ahead` layers beyond its last wait. */
#include "workloads/gen/eager.h"

#define COMPUTE       0u
#define COMMUNICATION 1u

enum hold { HOLD_RECORD, HOLD_STASH };
enum fsdp_event { EVENT_ISSUED, EVENT_GATHERED, EVENT_GRADIENT, EVENT_REDUCED };

struct fsdp_values {
    struct gen_common common;
    uint64_t steps, layers, layer, ranks, ahead, rows, activation, link;
    int hold;
};

struct fsdp {
    struct emit emit;
    struct fsdp_values values;
    struct emit_block *gathered; /* by layer */
    struct emit_list shards;     /* weights, gradients and optimizer state: one block per layer */
    struct emit_list activations;
    struct emit_block reducing; /* HOLD_STASH: kept until stream 0 has waited for its reduction */
    uint64_t step, issued;
};

/* 16-bit weights and gradients; float32 master copy and two values of state: 16 bytes for each
 * weight of 2, over all ranks. */
static uint64_t shard_bytes(const struct fsdp_values *values)
{
    uint64_t bytes = values->layer * 8 / values->ranks;
    return bytes ? bytes : 1;
}

static void start(struct emit *emit)
{
    struct fsdp *self = (struct fsdp *)emit;
    for (uint64_t i = 0; i < self->values.layers; i++)
        self->gathered[i].held = false;
    for (uint64_t i = 0; i < self->values.layers; i++)
        emit_list_push(emit, &self->shards, emit_alloc(emit, shard_bytes(&self->values), "shard"));
}

static uint64_t link_ns(const struct fsdp *self, uint64_t bytes)
{
    uint64_t bytes_per_us = self->values.link / 1000000;
    return 10000 + bytes * 1000 / (bytes_per_us ? bytes_per_us : 1);
}

static void used_by_communication(struct fsdp *self, const struct emit_block *block)
{
    if (self->values.hold == HOLD_RECORD)
        emit_use(&self->emit, block, COMMUNICATION);
}

/* Rule 1, on stream 1. */
static void gather(struct fsdp *self, uint64_t layer)
{
    struct emit *emit = &self->emit;
    struct emit_block *block = &self->gathered[layer];
    *block = emit_alloc(emit, self->values.layer, "gathered");
    emit_record(emit, EVENT_ISSUED, COMPUTE);
    emit_wait(emit, COMMUNICATION, EVENT_ISSUED);
    used_by_communication(self, block);
    emit_kernel_on(emit, COMMUNICATION, link_ns(self, self->values.layer));
    emit_record(emit, EVENT_GATHERED + 3 * (layer % 2), COMMUNICATION);
}

/* A product with the layer's weights, seen as one square matrix, `times` of them. */
static void compute(struct fsdp *self, uint64_t layer, uint64_t times)
{
    uint64_t weights = self->values.layer / 2;
    emit_wait(&self->emit, COMPUTE, EVENT_GATHERED + 3 * (layer % 2));
    emit_kernel_on(
        &self->emit, COMPUTE,
        times * roofline_product_ns(NUMERIC_BFLOAT16, self->values.rows, weights / 4096 + 1, 4096));
}

/* Rule 5. */
static void layer_issued(struct fsdp *self)
{
    if (self->issued++ < self->values.ahead)
        return;
    emit_sync(&self->emit);
    self->issued = 0;
}

static void forward(struct fsdp *self)
{
    struct emit *emit = &self->emit;
    uint64_t layers = self->values.layers;
    gather(self, 0);
    for (uint64_t i = 0; i < layers; i++) {
        if (i + 1 < layers)
            gather(self, i + 1);
        emit_list_push(emit, &self->activations,
                       emit_alloc(emit, self->values.activation, "activation"));
        compute(self, i, 1);
        emit_free(emit, &self->gathered[i]);
        layer_issued(self);
    }
}

/* Rules 3 and 4: the gradient on its way through stream 1. */
static void reduce(struct fsdp *self, struct emit_block *gradient)
{
    struct emit *emit = &self->emit;
    if (self->reducing.held) { /* from the layer before */
        emit_wait(emit, COMPUTE, EVENT_REDUCED);
        emit_free(emit, &self->reducing);
    }
    emit_record(emit, EVENT_GRADIENT, COMPUTE);
    emit_wait(emit, COMMUNICATION, EVENT_GRADIENT);
    used_by_communication(self, gradient);
    emit_kernel_on(emit, COMMUNICATION, link_ns(self, self->values.layer));
    emit_record(emit, EVENT_REDUCED, COMMUNICATION);
    if (self->values.hold == HOLD_STASH)
        self->reducing = *gradient;
    else
        emit_free(emit, gradient);
}

static void backward(struct fsdp *self)
{
    struct emit *emit = &self->emit;
    gather(self, self->values.layers - 1);
    for (uint64_t i = self->values.layers; i > 0; i--) {
        if (i > 1)
            gather(self, i - 2);
        struct emit_block gradient = emit_alloc(emit, self->values.layer, "gradient");
        compute(self, i - 1, 2);
        emit_free(emit, &self->gathered[i - 1]);
        emit_list_free(emit, &self->activations, 1);
        reduce(self, &gradient);
        layer_issued(self);
    }
}

/* The shards' update, after all gradients. */
static void update(struct fsdp *self)
{
    struct emit *emit = &self->emit;
    emit_wait(emit, COMPUTE, EVENT_REDUCED);
    emit_free(emit, &self->reducing);
    emit_kernel_on(emit, COMPUTE,
                   roofline_bytes_ns(2 * self->values.layers * shard_bytes(&self->values)));
    emit_step(emit);
}

static void advance(struct emit *emit)
{
    struct fsdp *self = (struct fsdp *)emit;
    if (self->step++ < self->values.steps) {
        forward(self);
        backward(self);
        update(self);
        return;
    }
    emit_list_free(emit, &self->shards, self->shards.count);
    emit_end(emit);
}

static void open(struct emit *emit)
{
    struct fsdp *self = (struct fsdp *)emit;
    emit->source.info.streams = 2;
    self->gathered = emit_array(emit, self->values.layers, sizeof *self->gathered);
}

#define AR_OPT_OF struct fsdp_values

static const struct ar_option options[] = {
    GEN_COMMON_OPTIONS,
    AR_OPT_COUNT(steps, "20", 1, 1e9, "training steps"),
    AR_OPT_COUNT(layers, "32", 1, 10000, "layers gathered one by one"),
    AR_OPT_BYTES(layer, "128MiB", 2, 1e12, "bytes of a layer's whole weights in 16 bits"),
    AR_OPT_COUNT(ranks, "32", 1, 1e6, "cards that share the layers"),
    AR_OPT_COUNT(ahead, "8", 0, 1e9, "layers that the host issues beyond one before it waits"),
    AR_OPT_CHOICE(hold, "record", "record|stash",
                  "how the program keeps blocks from the other stream"),
    AR_OPT_COUNT(rows, "8192", 1, 1e9, "tokens of a step"),
    AR_OPT_BYTES(activation, "32MiB", 1, 1e12, "bytes that a layer saves"),
    AR_OPT_BYTES(link, "50000000000", 1e6, 1e13,
                 "bytes per second that a gather or a reduction moves"),
    {.name = NULL},
};

const struct gen_ops fsdp_runahead_generator = {
    .name = "fsdp_runahead",
    .summary = "sharded training, two streams, the host some layers ahead of the device",
    .page = "workloads/gen/fsdp_runahead.md",
    .free_requested = true,
    .options = options,
    GEN_LAYOUT(fsdp, shards),
    .open = open,
    .start = start,
    .advance = advance,
};
