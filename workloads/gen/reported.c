/* Short programs that show problems that users reported: a_b_a, giant_then_crumbs, jitter_batch and
 * stash_restore. Each has a page with the reported figures. */
#include "workloads/gen/eager.h"

/* ---- a_b_a ----
 *
 * Two methods of a pipeline, the first run once more (DiamondLightSource/httomo#667). An output
 * that is taken from the cached work space makes it useless for the method that needs it whole.
 * a_b_a.md draws it. Method A: an output, kept; work space, freed. Method B: an output only. By
 * default the seven events of the report; `rounds` repeats B and A. */

struct aba {
    struct emit emit;
    struct aba_values {
        struct gen_common common;
        uint64_t output, work, rounds;
        bool trim, kernels;
    } values;
    uint64_t turn; /* even: method A, odd: method B */
};

static void aba_kernel(struct aba *self, uint64_t bytes)
{
    if (self->values.kernels)
        emit_kernel(&self->emit, roofline_bytes_ns(bytes));
}

static void aba_advance(struct emit *emit)
{
    struct aba *self = (struct aba *)emit;
    const struct aba_values *values = &self->values;
    if (self->turn == 1 + 2 * values->rounds)
        return;
    bool first = self->turn++ % 2 == 0;
    (void)emit_alloc(emit, values->output, "output");
    aba_kernel(self, values->output);
    if (first) {
        struct emit_block work = emit_alloc(emit, values->work, "work");
        aba_kernel(self, 2 * values->work);
        emit_free(emit, &work);
        if (values->trim)
            emit_trim(emit);
    }
    if (values->kernels)
        emit_step(emit);
}

#define AR_OPT_OF struct aba_values

static const struct ar_option aba_options[] = {
    GEN_COMMON_OPTIONS,
    AR_OPT_BYTES(output, "1GiB", 1, 1e15, "bytes of a method's output"),
    AR_OPT_BYTES(work, "4GiB", 1, 1e15, "bytes of method A's work space"),
    AR_OPT_COUNT(rounds, "1", 1, 1e6, "times that B and A follow the first A; outputs pile up"),
    AR_OPT_BOOL(trim, "no", "the program releases its cached memory after each A"),
    AR_OPT_BOOL(kernels, "no", "with a kernel for each block, and a step for each method"),
    {.name = NULL},
};

const struct gen_ops a_b_a_generator = {
    .name = "a_b_a",
    .summary = "two methods, the first once more: outputs carved from cached work space",
    .page = "workloads/gen/a_b_a.md",
    .capabilities = GEN_KNOWN_ANSWER | GEN_ADVERSARIAL,
    .options = aba_options,
    GEN_LAYOUT(aba, turn),
    .advance = aba_advance,
};

/* ---- giant_then_crumbs ----
 *
 * A short-lived large block (the giant), then long-lived small ones (the crumbs) in its memory,
 * then the giant again (pytorch/pytorch#35901): a policy that splits the giant's cached segment for
 * the crumbs can never use it as a whole again. giant_then_crumbs.md has the reported figures. Each
 * iteration frees the crumbs of the one before only after the giant was made and freed, so that
 * they are always in the way. */

struct crumbs {
    struct emit emit;
    struct crumbs_values {
        struct gen_common common;
        uint64_t giant, total, iterations;
        bool trim;
    } values;
    struct emit_list kept;
    uint64_t iteration;
};

static void crumbs_open(struct emit *emit)
{
    const struct crumbs_values *values = &((const struct crumbs *)emit)->values;
    if (values->total >= values->giant)
        emit_fail(emit, AR_INVALID,
                  "total must be below giant, because the crumbs must fit into the giant's memory");
}

/* The sizes that the report lists, again and again until the total is reached. */
static void make_crumbs(struct crumbs *self)
{
    static const uint64_t sizes[] = {16515072, 16515072, 11400192, 18191360, 18191360};
    uint64_t left = self->values.total;
    for (unsigned i = 0; left > 0; i++) {
        uint64_t bytes = sizes[i % AR_COUNT(sizes)];
        bytes = bytes < left ? bytes : left;
        emit_list_push(&self->emit, &self->kept, emit_alloc(&self->emit, bytes, "crumb"));
        emit_kernel(&self->emit, roofline_bytes_ns(bytes));
        left -= bytes;
    }
}

static void crumbs_advance(struct emit *emit)
{
    struct crumbs *self = (struct crumbs *)emit;
    if (self->iteration++ == self->values.iterations) {
        emit_list_free(emit, &self->kept, self->kept.count);
        emit_end(emit);
        return;
    }
    struct emit_block giant = emit_alloc(emit, self->values.giant, "giant");
    emit_kernel(emit, roofline_bytes_ns(2 * self->values.giant));
    emit_free(emit, &giant);
    emit_list_free(emit, &self->kept, self->kept.count);
    if (self->values.trim)
        emit_trim(emit);
    make_crumbs(self);
    emit_step(emit);
}

#undef AR_OPT_OF
#define AR_OPT_OF struct crumbs_values

static const struct ar_option crumbs_options[] = {
    GEN_COMMON_OPTIONS,
    AR_OPT_BYTES(giant, "11643387904", 1, 1e15, "bytes of the giant"),
    AR_OPT_BYTES(total, "499214336", 1, 1e15, "bytes of all crumbs together"),
    AR_OPT_COUNT(iterations, "2", 1, 1e6, "times that the giant is made and freed"),
    AR_OPT_BOOL(trim, "no", "the program releases its cached memory after the giant is freed"),
    {.name = NULL},
};

const struct gen_ops giant_then_crumbs_generator = {
    .name = "giant_then_crumbs",
    .summary = "a short-lived giant, long-lived crumbs in its memory, and the giant again",
    .page = "workloads/gen/giant_then_crumbs.md",
    .capabilities = GEN_ADVERSARIAL,
    .options = crumbs_options,
    GEN_LAYOUT(crumbs, kept),
    .open = crumbs_open,
    .advance = crumbs_advance,
};

/* ---- jitter_batch ----
 *
 * Batches of nearly the same size: PyTorch's rounding of sizes to a few steps between powers of two
 * was made for them (pytorch/pytorch#74213). jitter_batch.md has the numbers. Each step draws a
 * number of rows and makes `tensors` blocks of rows x row bytes. The blocks of the step before are
 * freed at its end, so two steps' blocks overlap. */

struct jitter {
    struct emit emit;
    struct jitter_values {
        struct gen_common common;
        const char *rows; /* valid in open() */
        uint64_t steps, row, tensors, overlap;
        int draw;
    } values;
    struct samples rows;
    struct emit_list batches[2]; /* of even and of odd steps */
    uint64_t step;
};

static void jitter_open(struct emit *emit)
{
    struct jitter *self = (struct jitter *)emit;
    samples_open(emit, &self->rows, self->values.rows, (enum samples_order)self->values.draw, 1,
                 1u << 30, "rows");
}

/* Frees blocks in the order in which they were made. */
static void drop_batch(struct jitter *self, struct emit_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        emit_free(&self->emit, &list->items[i]);
    list->count = 0;
}

static void jitter_advance(struct emit *emit)
{
    struct jitter *self = (struct jitter *)emit;
    struct emit_list *now = &self->batches[self->step % 2];
    struct emit_list *before = &self->batches[(self->step + 1) % 2];
    if (self->step++ == self->values.steps) {
        drop_batch(self, before);
        emit_end(emit);
        return;
    }
    uint64_t bytes = samples_next(&self->rows, &emit->rng) * self->values.row;
    for (uint64_t i = 0; i < self->values.tensors; i++) {
        emit_list_push(emit, now, emit_alloc(emit, bytes, "batch"));
        emit_kernel(emit, roofline_bytes_ns(2 * bytes));
    }
    drop_batch(self, before);
    if (self->values.overlap == 1)
        drop_batch(self, now);
    emit_step(emit);
}

#undef AR_OPT_OF
#define AR_OPT_OF struct jitter_values

static const struct ar_option jitter_options[] = {
    GEN_COMMON_OPTIONS,
    AR_OPT_COUNT(steps, "1000", 1, 1e9, "batches"),
    AR_OPT_TEXT(rows, "900-1100", "list of the rows of a batch, or of ranges to draw from"),
    AR_OPT_CHOICE(draw, "random", SAMPLES_CHOICES, "whether the rows are drawn or taken in turn"),
    AR_OPT_BYTES(row, "256KiB", 1, 1e12, "bytes of a row"),
    AR_OPT_COUNT(tensors, "4", 1, 1e6, "blocks of each batch"),
    AR_OPT_COUNT(overlap, "2", 1, 2, "batches live at once"),
    {.name = NULL},
};

const struct gen_ops jitter_batch_generator = {
    .name = "jitter_batch",
    .summary = "batches of nearly the same size, two of them live at once",
    .page = "workloads/gen/jitter_batch.md",
    .options = jitter_options,
    GEN_LAYOUT(jitter, batches),
    .open = jitter_open,
    .advance = jitter_advance,
};

/* ---- stash_restore ----
 *
 * A step that uses the memory of its embedding tables for its activations: the tables are freed at
 * its begin and made again before its end, while a few activations are live
 * (meta-pytorch/torchrec#4584). stash_restore.md describes how each variant fragments memory.
 * 1. Tables and dense weights are made first.
 * 2. A step frees the tables, makes activations of falling size in their memory, and frees them
 *    until `alive` are left. Then the tables are made again, then the rest is freed.
 * 3. variant=reverse: the latest activation is freed first, so the oldest are left, side by side.
 *    variant=interleaved: those left lie evenly between those freed.
 *    variant=side: as reverse, with the activations on a stream of their own. */

#define MAIN 0u
#define SIDE 1u

enum variant { VARIANT_REVERSE, VARIANT_INTERLEAVED, VARIANT_SIDE };
enum trim { TRIM_NONE, TRIM_FORWARD, TRIM_RESTORE };
enum stash_event { EVENT_MAIN, EVENT_SIDE };

struct stash {
    struct emit emit;
    struct stash_values {
        struct gen_common common;
        uint64_t steps, tables, table, weights, weight, activations, largest, smallest, alive;
        int variant, trim;
    } values;
    struct emit_list tables, weights, activations;
    uint64_t step;
};

static void stash_open(struct emit *emit)
{
    const struct stash_values *values = &((const struct stash *)emit)->values;
    if (values->alive > values->activations || values->smallest > values->largest)
        emit_fail(emit, AR_INVALID,
                  "alive must be at most activations, and smallest at most largest");
    if (values->variant == VARIANT_SIDE)
        emit->source.info.streams = 2;
}

/* Table i is smaller than the first by i equal parts, so that all differ. */
static void make_tables(struct stash *self)
{
    for (uint64_t i = 0; i < self->values.tables; i++) {
        uint64_t bytes = self->values.table - self->values.table / (4 * self->values.tables) * i;
        emit_list_push(&self->emit, &self->tables, emit_alloc(&self->emit, bytes, "table"));
        emit_kernel(&self->emit, roofline_bytes_ns(bytes));
    }
}

static void stash_start(struct emit *emit)
{
    struct stash *self = (struct stash *)emit;
    make_tables(self);
    for (uint64_t i = 0; i < self->values.weights; i++)
        emit_list_push(emit, &self->weights, emit_alloc(emit, self->values.weight, "weight"));
}

/* Work of one stream after all work of the other one. */
static void order(struct stash *self, uint32_t stream)
{
    if (self->values.variant != VARIANT_SIDE)
        return;
    uint32_t other = stream == MAIN ? SIDE : MAIN;
    uint64_t event = stream == MAIN ? EVENT_SIDE : EVENT_MAIN;
    emit_record(&self->emit, event, other);
    emit_wait(&self->emit, stream, event);
}

static void stash_forward(struct stash *self)
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

/* The latest first; the variant determines which of them stay. */
static void stash_backward(struct stash *self)
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
            emit_free(&self->emit, block);
    }
    order(self, MAIN);
}

static void stash_advance(struct emit *emit)
{
    struct stash *self = (struct stash *)emit;
    if (self->step++ == self->values.steps) {
        emit_list_free(emit, &self->weights, self->weights.count);
        emit_list_free(emit, &self->tables, self->tables.count);
        emit_end(emit);
        return;
    }
    emit_list_free(emit, &self->tables, self->tables.count);
    if (self->values.trim == TRIM_FORWARD)
        emit_trim(emit);
    stash_forward(self);
    stash_backward(self);
    if (self->values.trim == TRIM_RESTORE)
        emit_trim(emit);
    make_tables(self);
    emit_list_free(emit, &self->activations, self->activations.count);
    emit_step(emit);
}

#undef AR_OPT_OF
#define AR_OPT_OF struct stash_values

static const struct ar_option stash_options[] = {
    GEN_COMMON_OPTIONS,
    AR_OPT_COUNT(steps, "60", 1, 1e9, "training steps"),
    AR_OPT_CHOICE(variant, "reverse", "reverse|interleaved|side",
                  "the order in which activations are freed, or their stream"),
    AR_OPT_COUNT(tables, "4", 1, 1e6, "embedding tables"),
    AR_OPT_BYTES(table, "768MiB", 1, 1e12, "bytes of the largest table"),
    AR_OPT_COUNT(weights, "20", 0, 1e6, "dense weights"),
    AR_OPT_BYTES(weight, "16MiB", 1, 1e12, "bytes of a dense weight"),
    AR_OPT_COUNT(activations, "60", 1, 1e6, "of a step"),
    AR_OPT_BYTES(largest, "72MiB", 1, 1e12, "bytes of the first activation"),
    AR_OPT_BYTES(smallest, "4MiB", 1, 1e12, "bytes that every activation has at least"),
    AR_OPT_COUNT(alive, "3", 0, 1e6, "activations still live when the tables are made again"),
    AR_OPT_CHOICE(trim, "none", "none|forward|restore",
                  "when the program releases its cached memory: before the activations, or before "
                  "the tables"),
    {.name = NULL},
};

const struct gen_ops stash_restore_generator = {
    .name = "stash_restore",
    .summary = "tables freed for a step's activations, and made again before it ends",
    .page = "workloads/gen/stash_restore.md",
    .free_requested = true,
    .options = stash_options,
    GEN_LAYOUT(stash, tables),
    .open = stash_open,
    .start = stash_start,
    .advance = stash_advance,
};
