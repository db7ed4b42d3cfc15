/* See embedding_table.h. The dense gradient follows PyTorch 2.11; it was compared with the
 * recording of a recommender:
 * 1. Sort the ids, each with its place in the batch.
 * 2. Find where each run of equal ids starts; there are at most min(n, rows) runs.
 * 3. Divide each run into parts of ten; there are at most n / 10 + runs of them.
 * 4. Sum the gradients of each part, in float32, then of each run, into the table's gradient.
 * The scratch memory of the libraries was inferred from that recording, see embedding.md. */
#include "workloads/gen/embedding_table.h"

#include "allocators/base/size.h"

#define INDEX_BYTES  8u /* ids are int64 */
#define IDS_PER_PART 10u
#define SCALE_BYTES  4u /* of a row of an int8 table */
/* Inferred from the recording, as the sizes of steps in the recorded scratch. */
#define SORT_PASSES   8u /* 64-bit keys, 8 bits a pass */
#define SORT_BINS     256u
#define SORT_TILE     4608u
#define SORT_ONE_TILE 2304u /* up to here no scratch: between the 2048 and 4096 recorded */
#define SELECT_TILE   4480u
#define SCAN_TILE     896u
#define TILE_PADDING  32u
#define TILE_STATE    16u
#define CUB_ALIGNMENT 256u

static uint64_t aligned(uint64_t bytes)
{
    return ar_size_round_up(bytes, CUB_ALIGNMENT);
}

uint64_t embedding_sort_scratch(uint64_t n)
{
    if (n <= SORT_ONE_TILE)
        return 1;
    uint64_t bins = SORT_PASSES * SORT_BINS * 8;
    uint64_t lookback = ar_divide_up(n, SORT_TILE) * SORT_BINS * 4;
    uint64_t counters = CUB_ALIGNMENT;
    return aligned(bins) + 2 * aligned(n * INDEX_BYTES) + aligned(lookback) + counters +
           CUB_ALIGNMENT - 1;
}

static uint64_t tile_states(uint64_t n, uint64_t tile)
{
    return aligned((ar_divide_up(n, tile) + TILE_PADDING) * TILE_STATE) + CUB_ALIGNMENT - 1;
}

uint64_t embedding_select_scratch(uint64_t n)
{
    return tile_states(n, SELECT_TILE) + CUB_ALIGNMENT;
}

uint64_t embedding_scan_scratch(uint64_t n)
{
    return tile_states(n, SCAN_TILE) + CUB_ALIGNMENT;
}

static uint64_t row_bytes(const struct eager *eager, const struct embedding_table *self)
{
    return self->width * numeric_weight_bytes(eager->type) +
           (eager->type == NUMERIC_INT8 ? SCALE_BYTES : 0);
}

static const char *table_type(const struct eager *eager)
{
    return eager->type == NUMERIC_INT8 ? "i8" : eager_type(eager);
}

void embedding_table_make(struct eager *eager, struct embedding_table *self, uint64_t capacity)
{
    uint64_t bytes = capacity * row_bytes(eager, self);
    self->capacity = capacity;
    self->weight = (struct parameter){.elements = capacity * self->width};
    self->weight.value = emit_alloc(eager->emit, bytes, "table");
    struct emit_kernel_op kernel_op = eager_set(table_type(eager));
    kernel_op.out = &self->weight.value;
    eager_kernel(eager, roofline_upload_ns(bytes), &kernel_op);
}

/* Copies a block into a larger one. */
static void enlarge(struct eager *eager, struct emit_block *block, uint64_t bytes, const char *tag)
{
    if (!block->held)
        return;
    struct emit_block larger = eager_make(eager, bytes, block->bytes, tag,
                                          (struct emit_kernel_op){.op = "copy", .in = {block}});
    emit_free(eager->emit, block);
    *block = larger;
}

void embedding_table_see(struct eager *eager, struct embedding_table *self, uint64_t lookups,
                         double factor)
{
    const double log2_e = 1.4426950408889634;
    self->looked_up += lookups;
    if (factor <= 0)
        return;
    /* Of R ids, L uniform draws leave R exp(-L / R) unseen. */
    double share = (double)self->looked_up / (double)self->rows;
    double unseen = share > 40 ? 0 : ar_rng_exp2(-share * log2_e);
    uint64_t seen = (uint64_t)((double)self->rows * (1 - unseen));
    if (seen <= self->capacity)
        return;
    uint64_t capacity = self->capacity;
    while (capacity < seen)
        capacity = (uint64_t)((double)capacity * factor) + 1;
    capacity = capacity < self->rows ? capacity : self->rows;
    self->capacity = capacity;
    self->weight.elements = capacity * self->width;
    enlarge(eager, &self->weight.value, capacity * row_bytes(eager, self), "table");
    enlarge(eager, &self->weight.master, 4 * self->weight.elements, "master");
    for (int i = 0; i < 2; i++)
        enlarge(eager, &self->weight.state[i], 4 * self->weight.elements, "optimizer");
}

/* `rows` rows of `source`, or of the output, selected by `names`. */
static struct emit_kernel_op rows_named(const char *op, const char *type,
                                        const struct emit_block *source,
                                        const struct emit_block *names, uint64_t rows,
                                        uint64_t width)
{
    return (struct emit_kernel_op){
        .op = op, .type = type, .in = {source, names}, .shape = {rows, width}};
}

void embedding_table_lookup(struct eager *eager, struct embedding_table *self, uint64_t batch,
                            uint64_t bag)
{
    uint64_t values = batch * self->width * numeric_value_bytes(eager->type);
    self->lookups = batch * bag;
    self->indices =
        eager_make(eager, self->lookups * INDEX_BYTES, 0, "index", eager_set(EAGER_INDEX));
    self->offsets = eager_make(eager, batch * INDEX_BYTES, 0, "index", eager_set(EAGER_INDEX));
    self->bag_sizes = emit_alloc(eager->emit, batch * INDEX_BYTES, "index");
    self->bag_of_index = emit_alloc(eager->emit, self->lookups * INDEX_BYTES, "index");
    self->output = eager_make(eager, values, self->lookups * row_bytes(eager, self), "activation",
                              rows_named("gather", table_type(eager), &self->weight.value,
                                         &self->indices, batch, self->width));
}

/* Rule 1. Makes the sorted ids and, for each, its place. */
static void sort_ids(struct eager *eager, const struct embedding_table *self,
                     struct emit_block *sorted, struct emit_block *places)
{
    uint64_t n = self->lookups, bytes = n * INDEX_BYTES;
    *sorted = emit_alloc(eager->emit, bytes, "scratch");
    *places = emit_alloc(eager->emit, bytes, "scratch");
    struct emit_block range = eager_make(eager, bytes, 0, "scratch", eager_set(EAGER_INDEX));
    struct emit_block scratch = emit_alloc(eager->emit, embedding_sort_scratch(n), "scratch");
    /* Each pass reads and writes both; its kernel op names one of them, in turn. */
    for (unsigned pass = 0; pass < SORT_PASSES; pass++) {
        bool even = pass % 2 == 0;
        struct emit_kernel_op kernel_op = eager_combine(EAGER_INDEX, &self->indices, &range);
        kernel_op.in[2] = even ? NULL : places;
        kernel_op.out = even ? places : sorted;
        eager_kernel(eager, roofline_bytes_ns(4 * bytes), &kernel_op);
    }
    emit_free(eager->emit, &scratch);
    emit_free(eager->emit, &range);
}

/* The inputs of the sum of the parts. */
struct sorted {
    struct emit_block ids, places;
    const struct emit_block *outgoing;
};

/* Rule 4: partial sums, then the table's gradient. */
static void sum_parts(struct eager *eager, const struct embedding_table *self, uint64_t parts,
                      const struct sorted *from)
{
    uint64_t value = numeric_value_bytes(eager->type);
    uint64_t rows = parts < self->lookups ? parts : self->lookups;
    struct emit_block starts =
        eager_make(eager, parts * INDEX_BYTES, 0, "scratch", eager_set(EAGER_INDEX));
    struct emit_block sums = eager_make(
        eager, parts * self->width * 4, self->lookups * self->width * value, "scratch",
        rows_named("gather", eager_type(eager), from->outgoing, &from->places, rows, self->width));
    struct emit_kernel_op kernel_op =
        rows_named("scatter_add", eager_type(eager), &sums, &from->ids, rows, self->width);
    kernel_op.out = &self->weight.gradient;
    eager_kernel(eager, roofline_bytes_ns(sums.bytes), &kernel_op);
    emit_free(eager->emit, &sums);
    emit_free(eager->emit, &starts);
}

/* A kernel over indices that reads one block and writes another. */
static void index_kernel(struct eager *eager, uint64_t bytes, const struct emit_block *out,
                         const struct emit_block *in)
{
    struct emit_kernel_op kernel_op = eager_combine(EAGER_INDEX, in, NULL);
    kernel_op.out = out;
    eager_kernel(eager, roofline_bytes_ns(bytes), &kernel_op);
}

static struct emit_block library_scratch(struct eager *eager, uint64_t bytes)
{
    return eager_make(eager, bytes, 0, "scratch", eager_set("i8"));
}

/* Rules 2 to 4, from sorted ids. */
static void sum_runs(struct eager *eager, struct embedding_table *self, const struct sorted *from)
{
    struct emit *emit = eager->emit;
    uint64_t n = self->lookups;
    uint64_t runs = n < self->capacity ? n : self->capacity;
    uint64_t gradient = self->weight.elements * numeric_value_bytes(eager->type);
    self->weight.gradient =
        eager_make(eager, gradient, 0, "gradient", eager_set(eager_type(eager)));
    struct emit_block run_starts = emit_alloc(emit, n * INDEX_BYTES, "scratch");
    struct emit_block run_count = emit_alloc(emit, INDEX_BYTES, "scratch");
    struct emit_block selected = emit_alloc(emit, n * INDEX_BYTES, "scratch");
    struct emit_block scratch = library_scratch(eager, embedding_select_scratch(n));
    index_kernel(eager, 2 * n * INDEX_BYTES, &run_starts, &from->ids);
    emit_free(emit, &scratch);
    emit_free(emit, &selected);
    struct emit_block run_parts =
        eager_make(eager, runs * INDEX_BYTES, 0, "scratch", eager_set(EAGER_INDEX));
    struct emit_block part_sums = emit_alloc(emit, runs * INDEX_BYTES, "scratch");
    scratch = library_scratch(eager, embedding_scan_scratch(runs));
    index_kernel(eager, 2 * runs * INDEX_BYTES, &part_sums, &run_parts);
    emit_free(emit, &scratch);
    struct emit_block part_count = eager_make(eager, INDEX_BYTES, INDEX_BYTES, "scratch",
                                              eager_combine(EAGER_INDEX, &part_sums, NULL));
    sum_parts(eager, self, n / IDS_PER_PART + runs, from);
    emit_free(emit, &part_count);
    emit_free(emit, &part_sums);
    emit_free(emit, &run_parts);
    emit_free(emit, &run_count);
    emit_free(emit, &run_starts);
}

static void backward_dense(struct eager *eager, struct embedding_table *self, uint64_t outgoing,
                           const struct emit_block *joined)
{
    struct emit_block contiguous =
        eager_make(eager, outgoing, outgoing, "gradient",
                   (struct emit_kernel_op){.op = "copy", .in = {joined}});
    struct sorted from = {.outgoing = &contiguous};
    sort_ids(eager, self, &from.ids, &from.places);
    sum_runs(eager, self, &from);
    emit_free(eager->emit, &from.places);
    emit_free(eager->emit, &from.ids);
    emit_free(eager->emit, &contiguous);
    emit_free(eager->emit, &self->indices);
}

void embedding_table_backward(struct eager *eager, struct embedding_table *self, uint64_t batch,
                              const struct emit_block *joined)
{
    uint64_t value = numeric_value_bytes(eager->type);
    uint64_t outgoing = batch * self->width * value;
    if (self->sparse)
        self->sparse_values =
            eager_make(eager, self->lookups * self->width * value, outgoing, "gradient",
                       rows_named("gather", eager_type(eager), joined, &self->indices,
                                  self->lookups, self->width));
    else
        backward_dense(eager, self, outgoing, joined);
    emit_free(eager->emit, &self->offsets);
    emit_free(eager->emit, &self->bag_of_index);
    emit_free(eager->emit, &self->bag_sizes);
}

void embedding_table_update_sparse(struct eager *eager, struct embedding_table *self,
                                   enum optimizer optimizer, bool master)
{
    if (optimizer == OPTIMIZER_NONE)
        return;
    struct emit *emit = eager->emit;
    uint64_t bytes = self->sparse_values.bytes;
    const char *type = eager_type(eager);
    parameter_prepare(eager, &self->weight, optimizer, master);
    struct emit_block sorted;
    struct emit_block places;
    sort_ids(eager, self, &sorted, &places);
    struct emit_block unique = eager_make(eager, bytes, bytes, "optimizer scratch",
                                          eager_combine(type, &self->sparse_values, NULL));
    struct emit_block squares = {.held = false};
    if (optimizer == OPTIMIZER_ADAM || optimizer == OPTIMIZER_ADAGRAD)
        squares = eager_make(eager, bytes, bytes, "optimizer scratch",
                             eager_combine(type, &unique, NULL));
    struct emit_kernel_op kernel_op =
        rows_named("scatter_add", table_type(eager), &unique, &sorted, self->lookups, self->width);
    kernel_op.out = &self->weight.value;
    eager_kernel(eager, roofline_bytes_ns((2 + 2 * optimizer_states(optimizer)) * bytes),
                 &kernel_op);
    emit_free(emit, &squares);
    emit_free(emit, &unique);
    emit_free(emit, &places);
    emit_free(emit, &sorted);
}

void embedding_table_drop_gradient(struct eager *eager, struct embedding_table *self)
{
    emit_free(eager->emit, &self->weight.gradient);
    emit_free(eager->emit, &self->sparse_values);
    emit_free(eager->emit, &self->indices);
}

void embedding_table_drop(struct eager *eager, struct embedding_table *self)
{
    embedding_table_drop_gradient(eager, self);
    emit_free(eager->emit, &self->output);
    parameter_drop(eager, &self->weight);
}
