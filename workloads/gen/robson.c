/* Robson's program: the one against which no allocator that cannot move blocks does better than
 * M (1 + log2(n) / 2) - n + 1 units, where at most M are live and n is the largest request.
 * It is adaptive: it looks at the addresses that it was given.
 * 1. Ask for M blocks of one unit; f = 0.
 * 2. For i = 1 .. log2 n: of f and f + 2^(i-1), take for f the one with the larger sum, over
 *    the live blocks that hold an address equal to f modulo 2^i, of 2^i - size.
 * 3. Free every block that holds no such address.
 * 4. Ask for floor((M - live) / 2^i) blocks of 2^i, then the next i.
 * Source: J. M. Robson, "Bounds for some functions concerning dynamic storage allocation",
 * Journal of the ACM 21 (1974). Numbers in known_answer.md. */
#include "allocators/base/size.h"
#include "workloads/gen/emit.h"
#include "workloads/gen/gen.h"

#include <stdlib.h>

struct robson_values {
    struct gen_common common;
    uint64_t m, n, unit;
};

struct robson_block {
    struct emit_block block;
    uint64_t address;
};

struct robson {
    struct emit emit;
    struct robson_values values;
    struct robson_block *blocks; /* those live, in the order of their ids; room for m */
    uint64_t count;
    uint64_t served_next; /* the first block that has no answer yet */
    uint64_t size;        /* 2^i of the next round, in units */
    uint64_t offset;      /* f, in bytes */
};

static enum ar_status start(struct emit *emit, struct ar_error *error)
{
    struct robson *self = (struct robson *)emit;
    (void)error;
    self->count = 0;
    self->served_next = 0;
    self->size = 1;
    self->offset = 0;
    return AR_OK;
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

static enum ar_status advance(struct emit *emit, struct ar_error *error)
{
    struct robson *self = (struct robson *)emit;
    (void)error;
    if (self->size > self->values.n) {
        free_others(self, 0);
        return AR_OK;
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
    return AR_OK;
}

/* Answers come in the order of the requests. A block that was not given lies nowhere; the
 * program frees it as if it lay at address 0, where it does no harm. */
static void served(struct emit *emit, uint64_t id, const struct trace_served *what)
{
    struct robson *self = (struct robson *)emit;
    if (self->served_next < self->count && self->blocks[self->served_next].block.id == id)
        self->blocks[self->served_next++].address = what->served ? what->address : 0;
}

static void release(struct emit *emit)
{
    free(((struct robson *)emit)->blocks);
}

static const struct emit_program program = {
    .name = "robson",
    .source_bytes = sizeof(struct robson),
    .adaptive = true,
    .start = start,
    .advance = advance,
    .served = served,
    .release = release,
};

static enum ar_status create(const void *values, struct trace_source **out, struct ar_error *error)
{
    const struct robson_values *wanted = values;
    if (!ar_size_is_power_of_two(wanted->n) || !ar_size_is_power_of_two(wanted->unit) ||
        wanted->n > wanted->m)
        return ar_error_set(error, AR_INVALID,
                            "generator robson: n and unit must be powers of two, and n at most m");
    struct emit *emit;
    enum ar_status status = emit_create(&program, &emit, error);
    if (status != AR_OK)
        return status;
    struct robson *self = (struct robson *)emit;
    self->values = *wanted;
    self->blocks = calloc(wanted->m, sizeof *self->blocks);
    if (!self->blocks) {
        trace_close(&emit->source);
        return ar_error_set(error, AR_HOST_MEMORY, "generator robson: no host memory");
    }
    *out = &emit->source;
    return AR_OK;
}

static const struct ar_option options[] = {
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
    .page = "workloads/gen/known_answer.md",
    .capabilities = GEN_ADAPTIVE | GEN_KNOWN_ANSWER | GEN_ADVERSARIAL,
    .options = options,
    .values_bytes = sizeof(struct robson_values),
    .create = create,
};
