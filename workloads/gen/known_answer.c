/* Small programs whose need of memory is known, and `random`, which has no known number.
 * known_answer.md derives the numbers. */
#include "allocators/base/size.h"
#include "workloads/gen/emit.h"

#define PAGE "workloads/gen/known_answer.md"

/* ---- checkerboard ----
 *
 * COUNT blocks of BYTES, every second one freed (the first, the third, ...), then one request of
 * twice the size: half of the memory is free and no free block is large enough. At a capacity of
 * COUNT x BYTES only a policy that remaps pages can serve it. */

struct checkerboard {
    struct emit emit;
    struct checkerboard_values {
        struct gen_common common;
        uint64_t count, bytes;
    } values;
    struct emit_block *blocks;
};

static void checkerboard_open(struct emit *emit)
{
    struct checkerboard *self = (struct checkerboard *)emit;
    self->blocks = emit_array(emit, self->values.count, sizeof *self->blocks);
}

static void checkerboard_advance(struct emit *emit)
{
    struct checkerboard *self = (struct checkerboard *)emit;
    for (uint64_t i = 0; i < self->values.count; i++)
        self->blocks[i] = emit_alloc(emit, self->values.bytes, NULL);
    for (uint64_t i = 0; i < self->values.count; i += 2)
        emit_free(emit, &self->blocks[i]);
    struct emit_block large = emit_alloc(emit, 2 * self->values.bytes, NULL);
    emit_free(emit, &large);
    for (uint64_t i = 1; i < self->values.count; i += 2)
        emit_free(emit, &self->blocks[i]);
    emit_end(emit);
}

static const struct ar_option checkerboard_options[] = {
    GEN_COMMON_OPTIONS,
    {"count", AR_OPTION_COUNT, offsetof(struct checkerboard_values, count), "64", 2, 1e7, NULL,
     "blocks; every second one is freed"},
    {"bytes", AR_OPTION_BYTES, offsetof(struct checkerboard_values, bytes), "8MiB", 1, 1e15, NULL,
     "bytes of one block; the request at the end has twice that"},
    {.name = NULL},
};

const struct gen_ops checkerboard_generator = {
    .name = "checkerboard",
    .summary = "every second block freed, then a request that no free block fits",
    .page = PAGE,
    .capabilities = GEN_KNOWN_ANSWER | GEN_ADVERSARIAL,
    .options = checkerboard_options,
    .source_bytes = sizeof(struct checkerboard),
    .values_at = offsetof(struct checkerboard, values),
    .state_at = sizeof(struct checkerboard),
    .open = checkerboard_open,
    .advance = checkerboard_advance,
};

/* ---- linear_ramp ----
 *
 * Blocks of UNIT, 2 UNIT, ... STEPS x UNIT, like a batch or a sequence that grows. No freed block
 * fits a later request by itself.
 * 1. live=1: each block is freed before the next, larger one is requested.
 * 2. live=2: each block is freed once the next one is made, as in `x = grow(x)`. */

struct linear_ramp {
    struct emit emit;
    struct linear_ramp_values {
        struct gen_common common;
        uint64_t live, steps, unit;
    } values;
    struct emit_block last;
    uint64_t step;
};

static void linear_ramp_advance(struct emit *emit)
{
    struct linear_ramp *self = (struct linear_ramp *)emit;
    if (self->step == self->values.steps) {
        emit_free(emit, &self->last);
        return;
    }
    self->step++;
    if (self->values.live == 1)
        emit_free(emit, &self->last);
    struct emit_block block = emit_alloc(emit, self->step * self->values.unit, NULL);
    emit_free(emit, &self->last);
    self->last = block;
}

static const struct ar_option linear_ramp_options[] = {
    GEN_COMMON_OPTIONS,
    {"live", AR_OPTION_COUNT, offsetof(struct linear_ramp_values, live), "1", 1, 2, NULL,
     "blocks live while one follows another: 1 or 2"},
    {"steps", AR_OPTION_COUNT, offsetof(struct linear_ramp_values, steps), "40", 1, 1e6, NULL,
     "blocks in all; block k has k units"},
    {"unit", AR_OPTION_BYTES, offsetof(struct linear_ramp_values, unit), "16MiB", 1, 1e11, NULL,
     "bytes of the first block, and that each has more than the one before"},
    {.name = NULL},
};

const struct gen_ops linear_ramp_generator = {
    .name = "linear_ramp",
    .summary = "one block after another, each a little larger than the last",
    .page = PAGE,
    .capabilities = GEN_KNOWN_ANSWER | GEN_ADVERSARIAL,
    .options = linear_ramp_options,
    GEN_LAYOUT(linear_ramp, last),
    .advance = linear_ramp_advance,
};

/* ---- order_flip ----
 *
 * COUNT blocks of BYTES, all freed, then half as many of twice the size; or the large ones first. A
 * policy that cannot join its segments holds both generations. Source: the PyTorch developer notes
 * on expandable segments. */

struct order_flip {
    struct emit emit;
    struct order_flip_values {
        struct gen_common common;
        uint64_t count, bytes;
        bool reverse;
    } values;
    struct emit_block *blocks;
    uint64_t generation;
};

static void order_flip_open(struct emit *emit)
{
    struct order_flip *self = (struct order_flip *)emit;
    self->blocks = emit_array(emit, self->values.count, sizeof *self->blocks);
}

static void order_flip_advance(struct emit *emit)
{
    struct order_flip *self = (struct order_flip *)emit;
    if (self->generation == 2)
        return;
    bool large = (self->generation++ == 1) != self->values.reverse;
    uint64_t count = large ? self->values.count / 2 : self->values.count;
    uint64_t bytes = large ? self->values.bytes * 2 : self->values.bytes;
    for (uint64_t i = 0; i < count; i++)
        self->blocks[i] = emit_alloc(emit, bytes, NULL);
    for (uint64_t i = 0; i < count; i++)
        emit_free(emit, &self->blocks[i]);
}

static const struct ar_option order_flip_options[] = {
    GEN_COMMON_OPTIONS,
    {"count", AR_OPTION_COUNT, offsetof(struct order_flip_values, count), "8", 2, 1e7, NULL,
     "small blocks; half as many large ones"},
    {"bytes", AR_OPTION_BYTES, offsetof(struct order_flip_values, bytes), "16MiB", 1, 1e15, NULL,
     "bytes of a small block; a large one has twice that"},
    {"reverse", AR_OPTION_BOOL, offsetof(struct order_flip_values, reverse), "no", 0, 0, NULL,
     "the large blocks first"},
    {.name = NULL},
};

const struct gen_ops order_flip_generator = {
    .name = "order_flip",
    .summary = "blocks of one size, all freed, then half as many of twice the size",
    .page = PAGE,
    .capabilities = GEN_KNOWN_ANSWER | GEN_ADVERSARIAL,
    .options = order_flip_options,
    GEN_LAYOUT(order_flip, generation),
    .open = order_flip_open,
    .advance = order_flip_advance,
};

/* ---- pool_boundary ----
 *
 * One block of FIRST bytes, freed, then one of SECOND bytes. If a policy keeps requests of
 * different sizes in different pools, the freed memory of one cannot serve the other. Source:
 * PyTorch's small and large pools. */

struct pool_boundary {
    struct emit emit;
    struct pool_boundary_values {
        struct gen_common common;
        uint64_t first, second;
    } values;
};

static void pool_boundary_advance(struct emit *emit)
{
    const struct pool_boundary *self = (const struct pool_boundary *)emit;
    struct emit_block block = emit_alloc(emit, self->values.first, NULL);
    emit_free(emit, &block);
    block = emit_alloc(emit, self->values.second, NULL);
    emit_free(emit, &block);
    emit_end(emit);
}

static const struct ar_option pool_boundary_options[] = {
    GEN_COMMON_OPTIONS,
    {"first", AR_OPTION_BYTES, offsetof(struct pool_boundary_values, first), "2MiB", 1, 1e17, NULL,
     "bytes of the block that is freed before the second"},
    {"second", AR_OPTION_BYTES, offsetof(struct pool_boundary_values, second), "512KiB", 1, 1e17,
     NULL, "bytes of the block after it"},
    {.name = NULL},
};

const struct gen_ops pool_boundary_generator = {
    .name = "pool_boundary",
    .summary = "a large block, freed, then a small one: is the memory shared between pools?",
    .page = PAGE,
    .capabilities = GEN_KNOWN_ANSWER | GEN_ADVERSARIAL,
    .options = pool_boundary_options,
    .source_bytes = sizeof(struct pool_boundary),
    .values_at = offsetof(struct pool_boundary, values),
    .state_at = sizeof(struct pool_boundary),
    .advance = pool_boundary_advance,
};

/* ---- sawtooth ----
 *
 * A buffer that grows by a factor, FROM to TO; the old one is freed once the new one is made. In
 * one arena a buffer can move into its own earlier addresses only if the factor g has g² <= g + 1,
 * that is g <= 1.618. */

struct sawtooth {
    struct emit emit;
    struct sawtooth_values {
        struct gen_common common;
        uint64_t from, to;
        double factor;
    } values;
    struct emit_block last;
    uint64_t bytes; /* of the next buffer; above `to`: none follows */
};

static void sawtooth_open(struct emit *emit)
{
    const struct sawtooth *self = (const struct sawtooth *)emit;
    if (self->values.to < self->values.from)
        emit_fail(emit, AR_INVALID,
                  "to is below from; the buffer grows, so give a to of at least from");
}

static void sawtooth_start(struct emit *emit)
{
    struct sawtooth *self = (struct sawtooth *)emit;
    self->bytes = self->values.from;
}

static void sawtooth_advance(struct emit *emit)
{
    struct sawtooth *self = (struct sawtooth *)emit;
    if (self->bytes > self->values.to) {
        emit_free(emit, &self->last);
        return;
    }
    struct emit_block block = emit_alloc(emit, self->bytes, NULL);
    emit_free(emit, &self->last);
    self->last = block;
    uint64_t grown = (uint64_t)((double)self->bytes * self->values.factor);
    self->bytes = grown > self->bytes ? grown : self->bytes + 1;
}

static const struct ar_option sawtooth_options[] = {
    GEN_COMMON_OPTIONS,
    {"from", AR_OPTION_BYTES, offsetof(struct sawtooth_values, from), "16MiB", 1, 1e17, NULL,
     "bytes of the first buffer"},
    {"to", AR_OPTION_BYTES, offsetof(struct sawtooth_values, to), "4GiB", 1, 1e17, NULL,
     "no buffer is larger than this"},
    {"factor", AR_OPTION_FRACTION, offsetof(struct sawtooth_values, factor), "2", 1.001, 1024, NULL,
     "a buffer's size / that of the one before"},
    {.name = NULL},
};

const struct gen_ops sawtooth_generator = {
    .name = "sawtooth",
    .summary = "a buffer that grows by a factor, old and new live together",
    .page = PAGE,
    .capabilities = GEN_KNOWN_ANSWER | GEN_ADVERSARIAL,
    .options = sawtooth_options,
    GEN_LAYOUT(sawtooth, last),
    .open = sawtooth_open,
    .start = sawtooth_start,
    .advance = sawtooth_advance,
};

/* ---- random ----
 *
 * Sizes log-uniform in [min, max], so that every doubling is equally likely. Live bytes are kept
 * near a target by freeing blocks that are drawn uniformly from those live.
 * 1. Draw the size of the next request.
 * 2. While it would raise the live bytes above the target, free a block drawn at random.
 * 3. Make the request. The stream ends after exactly `events` events, with blocks still live.
 * Memory is bounded by the blocks live at once, not by the number of events. */

#define RANDOM_CHUNK 1024 /* events in a span */

struct random_source {
    struct emit emit;
    struct random_values {
        struct gen_common common;
        uint64_t events, min, max, target;
    } values;
    struct emit_list blocks; /* live ones, in no order */
    uint64_t drawn;          /* bytes of the next request; 0: not drawn yet */
};

static void random_open(struct emit *emit)
{
    const struct random_values *values = &((const struct random_source *)emit)->values;
    if (values->min > values->max || values->max > values->target)
        emit_fail(emit, AR_INVALID, "min must be at most max, and max at most target");
}

static void random_advance(struct emit *emit)
{
    struct random_source *self = (struct random_source *)emit;
    struct emit_list *blocks = &self->blocks;
    for (int i = 0; i < RANDOM_CHUNK && emit_events(emit) < self->values.events; i++) {
        if (!self->drawn)
            self->drawn = ar_rng_log_uniform(&emit->rng, self->values.min, self->values.max);
        if (blocks->count && emit_live_bytes(emit) + self->drawn > self->values.target) {
            size_t victim = (size_t)ar_rng_below(&emit->rng, blocks->count);
            emit_free(emit, &blocks->items[victim]);
            blocks->items[victim] = emit_list_pop(blocks);
            continue;
        }
        emit_list_push(emit, blocks, emit_alloc(emit, self->drawn, NULL));
        self->drawn = 0;
    }
}

static const struct ar_option random_options[] = {
    GEN_COMMON_OPTIONS,
    {"events", AR_OPTION_COUNT, offsetof(struct random_values, events), "100000", 1, 1e12, NULL,
     "requests and frees together"},
    {"min", AR_OPTION_BYTES, offsetof(struct random_values, min), "256", 1, 1e17, NULL,
     "bytes of the smallest request"},
    {"max", AR_OPTION_BYTES, offsetof(struct random_values, max), "64MiB", 1, 1e17, NULL,
     "bytes of the largest request"},
    {"target", AR_OPTION_BYTES, offsetof(struct random_values, target), "4GiB", 1, 1e17, NULL,
     "live bytes are kept just under this"},
    {.name = NULL},
};

const struct gen_ops random_generator = {
    .name = "random",
    .summary = "log-uniform sizes, random lifetimes, live bytes near a target",
    .page = PAGE,
    .options = random_options,
    GEN_LAYOUT(random_source, blocks),
    .open = random_open,
    .advance = random_advance,
};

/* ---- robson ----
 *
 * Robson's program: against it no allocator that cannot move blocks needs less than
 * M (1 + log2(n) / 2) - n + 1 units, if at most M are live and n is the largest request. It is
 * adaptive: it looks at the addresses of its blocks.
 * 1. Request M blocks of one unit; f = 0.
 * 2. For i = 1 .. log2 n: of f and f + 2^(i-1), take for f the one with the larger sum, over
 *    the live blocks that hold an address equal to f modulo 2^i, of 2^i - size.
 * 3. Free every block that holds no such address.
 * 4. Request floor((M - live) / 2^i) blocks of 2^i, then the next i.
 * Source: J. M. Robson, "Bounds for some functions concerning dynamic storage allocation",
 * Journal of the ACM 21 (1974). */

struct robson_block {
    struct emit_block block;
    uint64_t address;
};

struct robson {
    struct emit emit;
    struct robson_values {
        struct gen_common common;
        uint64_t m, n, unit;
    } values;
    struct robson_block *blocks; /* live ones, in the order of their ids; room for m */
    uint64_t count;
    uint64_t served_next; /* the first block whose result is not known yet */
    uint64_t size;        /* 2^i of the next round, in units */
    uint64_t offset;      /* f, in bytes */
};

static void robson_open(struct emit *emit)
{
    struct robson *self = (struct robson *)emit;
    const struct robson_values *values = &self->values;
    if (!ar_size_is_power_of_two(values->n) || !ar_size_is_power_of_two(values->unit) ||
        values->n > values->m)
        emit_fail(emit, AR_INVALID, "n and unit must be powers of two, and n at most m");
    self->blocks = emit_array(emit, values->m, sizeof *self->blocks);
}

static void robson_start(struct emit *emit)
{
    ((struct robson *)emit)->size = 1;
}

/* Whether a block holds an address equal to `offset` modulo `period`. */
static bool holds(const struct robson_block *block, uint64_t offset, uint64_t period)
{
    return (offset - block->address) % period < block->block.bytes;
}

/* The sum of rule 2; `period` divides 2^64, so the difference above may wrap. */
static uint64_t gain(const struct robson *self, uint64_t offset, uint64_t period)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < self->count; i++)
        if (holds(&self->blocks[i], offset, period))
            sum += period - self->blocks[i].block.bytes;
    return sum;
}

static void free_others(struct robson *self, uint64_t period)
{
    uint64_t kept = 0;
    for (uint64_t i = 0; i < self->count; i++) {
        if (period && holds(&self->blocks[i], self->offset, period))
            self->blocks[kept++] = self->blocks[i];
        else
            emit_free(&self->emit, &self->blocks[i].block);
    }
    self->count = kept;
}

static void robson_advance(struct emit *emit)
{
    struct robson *self = (struct robson *)emit;
    if (self->size > self->values.n) {
        free_others(self, 0);
        return;
    }
    uint64_t bytes = self->size * self->values.unit;
    if (self->size > 1) {
        uint64_t other = self->offset + bytes / 2;
        if (gain(self, other, bytes) > gain(self, self->offset, bytes))
            self->offset = other;
        free_others(self, bytes);
    }
    uint64_t room = (self->values.m * self->values.unit - emit_live_bytes(emit)) / bytes;
    self->served_next = self->count;
    for (uint64_t i = 0; i < room; i++)
        self->blocks[self->count++].block = emit_alloc(emit, bytes, NULL);
    self->size *= 2;
}

/* Results come in the order of the requests. A block that was not served has no address; the
 * program frees it as if it were at address 0, which does no harm. */
static void robson_served(struct emit *emit, uint64_t id, const struct trace_served *result)
{
    struct robson *self = (struct robson *)emit;
    if (self->served_next < self->count && self->blocks[self->served_next].block.id == id)
        self->blocks[self->served_next++].address = result->served ? result->address : 0;
}

static const struct ar_option robson_options[] = {
    GEN_COMMON_OPTIONS,
    {"m", AR_OPTION_COUNT, offsetof(struct robson_values, m), "1024", 1, 1e7, NULL,
     "units live at most"},
    {"n", AR_OPTION_COUNT, offsetof(struct robson_values, n), "16", 1, 1e7, NULL,
     "units of the largest request, a power of two"},
    {"unit", AR_OPTION_BYTES, offsetof(struct robson_values, unit), "1", 1, 1e9, NULL,
     "bytes of a unit, a power of two; at least the granule of the policy"},
    {.name = NULL},
};

const struct gen_ops robson_generator = {
    .name = "robson",
    .summary = "the program that fragments every allocator that cannot move blocks",
    .page = PAGE,
    .capabilities = GEN_ADAPTIVE | GEN_KNOWN_ANSWER | GEN_ADVERSARIAL,
    .options = robson_options,
    GEN_LAYOUT(robson, count),
    .open = robson_open,
    .start = robson_start,
    .advance = robson_advance,
    .served = robson_served,
};
