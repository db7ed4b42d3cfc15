/* See embedding_table.h. The dense gradient does what PyTorch 2.11 is known to do, checked
 * against the recording of a recommender:
 * 1. Sort the ids, each with its place in the batch.
 * 2. Find where each run of equal ids starts; there are at most min(n, rows) runs.
 * 3. Divide each run into parts of ten; there are at most n / 10 + runs of them.
 * 4. Sum the gradients of each part, in float32, then of each run, into the table's gradient.
 * The scratch of the libraries was inferred from that recording, see embedding.md. */
#include "workloads/gen/embedding_table.h"

#include "allocators/base/rng.h"
#include "allocators/base/size.h"

#define INDEX_BYTES  8u /* ids are int64 */
#define IDS_PER_PART 10u
#define SCALE_BYTES  4u /* of a row of an int8 table */
/* Inferred from the recording, as the sizes of steps in the recorded scratch. */
#define SORT_PASSES   8u /* 64-bit keys, 8 bits a pass */
#define SORT_BINS     256u
#define SORT_TILE     4608u
#define SORT_ONE_TILE 2304u /* so few need no scratch: between the 2048 and 4096 recorded */
#define SELECT_TILE   4480u
#define SCAN_TILE     896u
#define TILE_PADDING  32u
#define TILE_STATE    16u
#define CUB_ALIGNMENT 256u

static uint64_t tiles(uint64_t n, uint64_t tile)
{
    return (n + tile - 1) / tile;
}

static uint64_t aligned(uint64_t bytes)
{
    return size_round_up(bytes, CUB_ALIGNMENT);
}

uint64_t embedding_sort_scratch(uint64_t n)
{
    if (n <= SORT_ONE_TILE)
        return 1;
    uint64_t bins = SORT_PASSES * SORT_BINS * 8;
    uint64_t lookback = tiles(n, SORT_TILE) * SORT_BINS * 4;
    uint64_t counters = CUB_ALIGNMENT;
    return aligned(bins) + 2 * aligned(n * INDEX_BYTES) + aligned(lookback) + counters +
           CUB_ALIGNMENT - 1;
}

static uint64_t tile_states(uint64_t n, uint64_t tile)
{
    return aligned((tiles(n, tile) + TILE_PADDING) * TILE_STATE) + CUB_ALIGNMENT - 1;
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

void embedding_table_make(struct eager *eager, struct embedding_table *self, uint64_t capacity)
{
    uint64_t bytes = capacity * row_bytes(eager, self);
    self->capacity = capacity;
    self->weight = (struct parameter){.elements = capacity * self->width};
    self->weight.value = emit_alloc(eager->emit, bytes, "table");
    emit_kernel(eager->emit, roofline_upload_ns(bytes));
}

/* Copies a block into a larger one. */
static void enlarge(struct eager *eager, struct emit_block *block, uint64_t bytes, const char *tag)
{
    if (!block->held)
        return;
    struct emit_block larger = eager_map(eager, bytes, block->bytes, tag);
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
    double unseen = share > 40 ? 0 : rng_exp2(-share * log2_e);
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

void embedding_table_lookup(struct eager *eager, struct embedding_table *self, uint64_t batch,
                            uint64_t bag)
{
    uint64_t values = batch * self->width * numeric_value_bytes(eager->type);
    self->lookups = batch * bag;
    self->indices = eager_map(eager, self->lookups * INDEX_BYTES, 0, "index");
    self->offsets = eager_map(eager, batch * INDEX_BYTES, 0, "index");
    self->bag_sizes = emit_alloc(eager->emit, batch * INDEX_BYTES, "index");
    self->bag_of_index = emit_alloc(eager->emit, self->lookups * INDEX_BYTES, "index");
    self->output = eager_map(eager, values, self->lookups * row_bytes(eager, self), "activation");
}

/* Rule 1. Gives the sorted ids and, with each, its place. */
static void sort_ids(struct eager *eager, uint64_t n, struct emit_block *sorted,
                     struct emit_block *places)
{
    uint64_t bytes = n * INDEX_BYTES;
    *sorted = emit_alloc(eager->emit, bytes, "scratch");
    *places = emit_alloc(eager->emit, bytes, "scratch");
    struct emit_block range = eager_map(eager, bytes, 0, "scratch");
    struct emit_block scratch = emit_alloc(eager->emit, embedding_sort_scratch(n), "scratch");
    for (unsigned pass = 0; pass < SORT_PASSES; pass++)
        emit_kernel(eager->emit, roofline_bytes_ns(4 * bytes));
    emit_free(eager->emit, &scratch);
    emit_free(eager->emit, &range);
}

/* Rule 4: partial sums, then the table's gradient. */
static void sum_parts(struct eager *eager, const struct embedding_table *self, uint64_t parts)
{
    uint64_t value = numeric_value_bytes(eager->type);
    struct emit_block starts = eager_map(eager, parts * INDEX_BYTES, 0, "scratch");
    struct emit_block sums =
        eager_map(eager, parts * self->width * 4, self->lookups * self->width * value, "scratch");
    emit_kernel(eager->emit, roofline_bytes_ns(sums.bytes));
    emit_free(eager->emit, &sums);
    emit_free(eager->emit, &starts);
}

/* Rules 2 to 4, from sorted ids. */
static void sum_runs(struct eager *eager, struct embedding_table *self)
{
    struct emit *emit = eager->emit;
    uint64_t n = self->lookups;
    uint64_t runs = n < self->capacity ? n : self->capacity;
    uint64_t gradient = self->weight.elements * numeric_value_bytes(eager->type);
    self->weight.gradient = eager_map(eager, gradient, 0, "gradient");
    struct emit_block run_starts = emit_alloc(emit, n * INDEX_BYTES, "scratch");
    struct emit_block run_count = emit_alloc(emit, INDEX_BYTES, "scratch");
    struct emit_block selected = emit_alloc(emit, n * INDEX_BYTES, "scratch");
    struct emit_block scratch = eager_map(eager, embedding_select_scratch(n), 0, "scratch");
    emit_kernel(emit, roofline_bytes_ns(2 * n * INDEX_BYTES));
    emit_free(emit, &scratch);
    emit_free(emit, &selected);
    struct emit_block run_parts = eager_map(eager, runs * INDEX_BYTES, 0, "scratch");
    struct emit_block part_sums = emit_alloc(emit, runs * INDEX_BYTES, "scratch");
    scratch = eager_map(eager, embedding_scan_scratch(runs), 0, "scratch");
    emit_kernel(emit, roofline_bytes_ns(2 * runs * INDEX_BYTES));
    emit_free(emit, &scratch);
    struct emit_block part_count = eager_map(eager, INDEX_BYTES, INDEX_BYTES, "scratch");
    sum_parts(eager, self, n / IDS_PER_PART + runs);
    emit_free(emit, &part_count);
    emit_free(emit, &part_sums);
    emit_free(emit, &run_parts);
    emit_free(emit, &run_count);
    emit_free(emit, &run_starts);
}

void embedding_table_backward(struct eager *eager, struct embedding_table *self, uint64_t batch)
{
    uint64_t value = numeric_value_bytes(eager->type);
    uint64_t outgoing = batch * self->width * value;
    if (self->sparse) {
        self->sparse_values =
            eager_map(eager, self->lookups * self->width * value, outgoing, "gradient");
    } else {
        struct emit_block contiguous = eager_map(eager, outgoing, outgoing, "gradient");
        struct emit_block sorted;
        struct emit_block places;
        sort_ids(eager, self->lookups, &sorted, &places);
        sum_runs(eager, self);
        emit_free(eager->emit, &places);
        emit_free(eager->emit, &sorted);
        emit_free(eager->emit, &contiguous);
        emit_free(eager->emit, &self->indices);
    }
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
    parameter_prepare(eager, &self->weight, optimizer, master);
    struct emit_block sorted;
    struct emit_block places;
    sort_ids(eager, self->lookups, &sorted, &places);
    struct emit_block unique = eager_map(eager, bytes, bytes, "optimizer scratch");
    struct emit_block squares = {.held = false};
    if (optimizer == OPTIMIZER_ADAM || optimizer == OPTIMIZER_ADAGRAD)
        squares = eager_map(eager, bytes, bytes, "optimizer scratch");
    emit_kernel(emit, roofline_bytes_ns((2 + 2 * optimizer_states(optimizer)) * bytes));
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
