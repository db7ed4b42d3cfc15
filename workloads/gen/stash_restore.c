/* A step that lends the room of its embedding tables to its activations: the tables are let go
 * when it begins and taken back before it ends, while a few activations are alive
 * (meta-pytorch/torchrec#4584). stash_restore.md says what each variant fragments.
 * 1. Tables and dense weights are made first.
 * 2. A step lets the tables go, makes a pyramid of activations in the room they leave, and lets
 *    them go again until `alive` are left. Then the tables come back, then the rest goes.
 * 3. variant=reverse: the latest activation goes first, so the oldest are left, side by side.
 *    variant=interleaved: those left lie evenly between those gone.
 *    variant=side: as reverse, with the activations on a stream of their own. */
#include "workloads/gen/emit.h"
#include "workloads/gen/gen.h"

#include "workloads/gen/roofline.h"

#define MAIN 0u
#define SIDE 1u

enum variant { VARIANT_REVERSE, VARIANT_INTERLEAVED, VARIANT_SIDE };
enum trim { TRIM_NONE, TRIM_FORWARD, TRIM_RESTORE };
enum stash_event { EVENT_MAIN, EVENT_SIDE };

struct stash_values {
    struct gen_common common;
    uint64_t steps, tables, table, weights, weight, activations, largest, smallest, alive;
    int variant, trim;
};

struct stash {
    struct emit emit;
    struct stash_values values;
    struct emit_list tables, weights, activations;
    uint64_t step;
    bool ended;
};

static struct stash *stash_of(struct emit *emit)
{
    return (struct stash *)emit;
}

/* Table i is smaller than the first by an i-th part, so that they differ. */
static void make_tables(struct stash *self)
{
    for (uint64_t i = 0; i < self->values.tables; i++) {
        uint64_t bytes = self->values.table - self->values.table / (4 * self->values.tables) * i;
        emit_list_push(&self->emit, &self->tables, emit_alloc(&self->emit, bytes, "table"));
        emit_kernel(&self->emit, roofline_bytes_ns(bytes));
    }
}

static enum ar_status start(struct emit *emit, struct ar_error *error)
{
    struct stash *self = stash_of(emit);
    (void)error;
    emit_list_clear(&self->tables);
    emit_list_clear(&self->weights);
    emit_list_clear(&self->activations);
    self->step = 0;
    self->ended = false;
    make_tables(self);
    for (uint64_t i = 0; i < self->values.weights; i++)
        emit_list_push(emit, &self->weights, emit_alloc(emit, self->values.weight, "weight"));
    return AR_OK;
}

/* Work of one stream after all of the other's. */
static void order(struct stash *self, uint32_t stream)
{
    if (self->values.variant != VARIANT_SIDE)
        return;
    uint32_t other = stream == MAIN ? SIDE : MAIN;
    uint64_t event = stream == MAIN ? EVENT_SIDE : EVENT_MAIN;
    emit_record(&self->emit, event, other);
    emit_wait(&self->emit, stream, event);
}

static void forward(struct stash *self)
{
    const struct stash_values *values = &self->values;
    uint32_t stream = values->variant == VARIANT_SIDE ? SIDE : MAIN;
    uint64_t range = values->largest - values->smallest;
    order(self, stream);
    for (uint64_t i = 0; i < values->activations; i++) {
        uint64_t bytes = values->largest - range / values->activations * i;
        emit_list_push(&self->emit, &self->activations,
                       emit_alloc_on(&self->emit, bytes, stream, "activation"));
        emit_kernel_on(&self->emit, stream, roofline_bytes_ns(2 * bytes));
    }
}

/* The latest first; which of them stay depends on the variant. */
static void backward(struct stash *self)
{
    const struct stash_values *values = &self->values;
    uint32_t stream = values->variant == VARIANT_SIDE ? SIDE : MAIN;
    uint64_t apart = values->alive ? values->activations / values->alive : values->activations + 1;
    for (uint64_t i = values->activations; i > 0; i--) {
        struct emit_block *block = &self->activations.items[i - 1];
        bool stays = values->variant == VARIANT_INTERLEAVED
                         ? values->alive > 0 && (i - 1) % apart == 0
                         : i <= values->alive;
        emit_kernel_on(&self->emit, stream, roofline_bytes_ns(3 * block->bytes));
        if (!stays)
            emit_free_requested(&self->emit, block);
    }
    order(self, MAIN);
}

static enum ar_status advance(struct emit *emit, struct ar_error *error)
{
    struct stash *self = stash_of(emit);
    (void)error;
    if (self->ended)
        return AR_OK;
    if (self->step++ == self->values.steps) {
        emit_list_free(emit, &self->weights, self->weights.count);
        emit_list_free(emit, &self->tables, self->tables.count);
        self->ended = true;
        return AR_OK;
    }
    emit_list_free(emit, &self->tables, self->tables.count);
    if (self->values.trim == TRIM_FORWARD)
        emit_trim(emit);
    forward(self);
    backward(self);
    if (self->values.trim == TRIM_RESTORE)
        emit_trim(emit);
    make_tables(self);
    emit_list_free(emit, &self->activations, self->activations.count);
    emit_step(emit);
    return AR_OK;
}

static void release(struct emit *emit)
{
    struct stash *self = stash_of(emit);
    emit_list_close(&self->tables);
    emit_list_close(&self->weights);
    emit_list_close(&self->activations);
}

static const struct emit_program program = {
    .name = "stash_restore",
    .source_bytes = sizeof(struct stash),
    .free_requested = true,
    .start = start,
    .advance = advance,
    .release = release,
};

static enum ar_status create(const void *values, struct trace_source **out, struct ar_error *error)
{
    const struct stash_values *wanted = values;
    struct emit *emit;
    if (wanted->alive > wanted->activations || wanted->smallest > wanted->largest)
        return ar_error_set(
            error, AR_INVALID,
            "generator stash_restore: alive must be at most activations, and smallest "
            "at most largest");
    enum ar_status status = emit_create(&program, &emit, error);
    if (status != AR_OK)
        return status;
    stash_of(emit)->values = *wanted;
    if (wanted->variant == VARIANT_SIDE)
        emit->source.info.streams = 2;
    *out = &emit->source;
    return AR_OK;
}

#define AT(field) offsetof(struct stash_values, field)

static const struct ar_option options[] = {
    GEN_COMMON_OPTIONS,
    {"steps", AR_OPTION_COUNT, AT(steps), "60", 1, 1e9, NULL, "training steps"},
    {"variant", AR_OPTION_CHOICE, AT(variant), "reverse", 0, 0, "reverse|interleaved|side",
     "the order in which activations go, or their stream"},
    {"tables", AR_OPTION_COUNT, AT(tables), "4", 1, 1e6, NULL, "embedding tables"},
    {"table", AR_OPTION_BYTES, AT(table), "768MiB", 1, 1e12, NULL, "bytes of the largest table"},
    {"weights", AR_OPTION_COUNT, AT(weights), "20", 0, 1e6, NULL, "dense weights"},
    {"weight", AR_OPTION_BYTES, AT(weight), "16MiB", 1, 1e12, NULL, "bytes of a dense weight"},
    {"activations", AR_OPTION_COUNT, AT(activations), "60", 1, 1e6, NULL, "of a step"},
    {"largest", AR_OPTION_BYTES, AT(largest), "72MiB", 1, 1e12, NULL,
     "bytes of the first activation"},
    {"smallest", AR_OPTION_BYTES, AT(smallest), "4MiB", 1, 1e12, NULL,
     "bytes under which no activation is"},
    {"alive", AR_OPTION_COUNT, AT(alive), "3", 0, 1e6, NULL,
     "activations still there when the tables come back"},
    {"trim", AR_OPTION_CHOICE, AT(trim), "none", 0, 0, "none|forward|restore",
     "when the program gives its cache back: before the activations, or before the tables"},
    {.name = NULL},
};

const struct gen_ops stash_restore_generator = {
    .name = "stash_restore",
    .summary = "tables let go for a step's activations, and taken back before it ends",
    .page = "workloads/gen/stash_restore.md",
    .options = options,
    .values_bytes = sizeof(struct stash_values),
    .create = create,
};
