/* CuPy's default memory pool (cupy/cuda/memory.pyx, 14.2):
 *
 * 1. Sizes round up to 512 bytes. Each stream has an arena of its own.
 * 2. The smallest free chunk of the arena that fits is taken, and cut exactly: there is no
 *    least remainder.
 * 3. On a miss the device is asked for exactly the rounded size.
 * 4. A free merges the chunk with its neighbours inside the same device allocation.
 * 5. Device allocations go back only when memory is short: all that are wholly free, of every
 *    stream, and then the request is tried again.
 *
 * Which of several equal chunks CuPy takes depends on host addresses and is undefined; here
 * it is the lowest device address. */
#include <stdio.h>

#include "allocators/base/size.h"
#include "allocators/heap.h"

#define UNIT_BYTES UINT64_C(512)

struct cupy_values {
    struct policy_common common;
    double fraction;
};

struct cupy {
    struct policy base;
    struct heap heap;
    uint64_t limit_bytes; /* UINT64_MAX: none */
    uint64_t flushes, retries, failures;
    uint32_t last_stream;
};

static const struct option cupy_options[] = {
    POLICY_COMMON_OPTIONS,
    {"fraction", OPTION_FRACTION, offsetof(struct cupy_values, fraction), "0", 0, 1, NULL,
     "limit as a fraction of the card's memory, as in CUPY_GPU_MEMORY_LIMIT=40%; 0: none"},
    {NULL, OPTION_BYTES, 0, NULL, 0, 0, NULL, NULL},
};

static struct cupy *cupy_of(struct policy *base)
{
    return (struct cupy *)base;
}

/* free_all_blocks: every chunk that fills its device allocation. */
static enum status free_all(struct cupy *self)
{
    self->flushes++;
    for (uint32_t list = 0; list < self->heap.list_room; list++) {
        uint64_t bytes = 0;
        uint64_t address = 0;
        for (uint32_t piece; (piece = heap_next(&self->heap, list, bytes, address)) != 0;) {
            const struct span *span = &self->heap.spans.at[piece];
            bytes = span->bytes;
            address = span->address + 1;
            if (span->previous || span->next)
                continue;
            enum status status = heap_release(&self->heap, piece);
            if (status != STATUS_OK)
                return status;
        }
    }
    return STATUS_OK;
}

/* A device allocation of exactly that size, giving cached memory back where it is short. */
static enum status obtain(struct cupy *self, uint64_t bytes, uint32_t *piece)
{
    if (bytes > self->limit_bytes)
        return STATUS_NO_MEMORY;
    if (self->base.totals.reserved_bytes + bytes > self->limit_bytes) {
        enum status status = free_all(self);
        if (status != STATUS_OK)
            return status;
        if (self->base.totals.reserved_bytes + bytes > self->limit_bytes)
            return STATUS_NO_MEMORY;
    }
    enum status status = heap_grow(&self->heap, bytes, piece);
    if (status != STATUS_REFUSED)
        return status;
    self->retries++;
    status = free_all(self);
    if (status == STATUS_OK)
        status = heap_grow(&self->heap, bytes, piece);
    return status == STATUS_REFUSED ? STATUS_NO_MEMORY : status;
}

static enum status cupy_alloc(struct policy *base, const struct policy_request *request,
                              struct policy_block *out)
{
    struct cupy *self = cupy_of(base);
    uint64_t bytes = size_round_up(request->bytes, UNIT_BYTES);
    uint32_t stream = request->stream;
    enum status status = heap_ready(&self->heap, 1, stream);
    if (status != STATUS_OK)
        return status;
    self->last_stream = stream;
    uint32_t piece = heap_take_exactly(&self->heap, stream, bytes);
    if (!piece) {
        status = obtain(self, bytes, &piece);
        if (status != STATUS_OK) {
            self->failures += status == STATUS_NO_MEMORY;
            return status;
        }
    }
    struct span *span = &self->heap.spans.at[piece];
    span->requested_bytes = request->bytes;
    span->owner = stream;
    self->base.totals.live_bytes += request->bytes;
    self->base.totals.granted_bytes += bytes;
    self->base.totals.live_blocks++;
    out->address = span->address;
    out->granted_bytes = bytes;
    out->cookie = piece;
    return STATUS_OK;
}

static enum status cupy_free(struct policy *base, const struct policy_block *block, uint32_t stream)
{
    struct cupy *self = cupy_of(base);
    uint32_t piece = (uint32_t)block->cookie;
    const struct span *span = &self->heap.spans.at[piece];
    (void)stream; /* a chunk returns to the arena that it came from */
    self->base.totals.live_bytes -= span->requested_bytes;
    self->base.totals.granted_bytes -= span->bytes;
    self->base.totals.live_blocks--;
    heap_give(&self->heap, piece, span->owner);
    return STATUS_OK;
}

static void cupy_stats(const struct policy *base, struct policy_stats *out)
{
    const struct cupy *self = (const struct cupy *)base;
    heap_stats(&self->heap, out);
    out->largest_free_block_bytes = heap_largest(&self->heap, self->last_stream);
    uint64_t mine = self->last_stream < self->heap.list_room && self->heap.lists[self->last_stream]
                        ? self->heap.lists[self->last_stream]->free_bytes
                        : 0;
    out->stranded_by_stream_bytes = policy_free_bytes(&self->base.totals) - mine;
    out->count.flushes = self->flushes;
    out->count.retries = self->retries;
    out->count.failures = self->failures;
}

static uint64_t cupy_servable(const struct policy *base, enum policy_effort effort)
{
    const struct cupy *self = (const struct cupy *)base;
    uint64_t largest = heap_largest(&self->heap, self->last_stream);
    uint64_t releasable = self->base.totals.releasable_bytes;
    return effort >= POLICY_EFFORT_TRIM && releasable > largest ? releasable : largest;
}

static void cupy_walk(const struct policy *base, policy_visit *visit, void *argument)
{
    heap_walk(&((const struct cupy *)base)->heap, true, visit, argument);
}

static enum status cupy_validate(const struct policy *base, struct error *error)
{
    return heap_validate(&((const struct cupy *)base)->heap, "cupy", error);
}

/* free_all_blocks() gives back all it can, whatever should be kept. */
static enum status cupy_trim(struct policy *base, uint64_t keep_bytes)
{
    (void)keep_bytes;
    struct cupy *self = cupy_of(base);
    self->flushes--; /* asked for by the program, not to serve a request */
    return free_all(self);
}

static bool cupy_setting(const struct policy *base, char *text, size_t text_bytes)
{
    const struct cupy *self = (const struct cupy *)base;
    if (self->limit_bytes == UINT64_MAX)
        return false;
    snprintf(text, text_bytes, "CUPY_GPU_MEMORY_LIMIT=%llu", (unsigned long long)self->limit_bytes);
    return true;
}

static void cupy_destroy(struct policy *base)
{
    struct cupy *self = cupy_of(base);
    struct host *host = self->heap.host;
    heap_close(&self->heap);
    host_free(host, self, sizeof *self);
}

static enum status cupy_create(const struct policy_context *context, const void *given,
                               struct policy **out, struct error *error)
{
    extern const struct policy_ops cupy_policy;
    const struct cupy_values *values = given;
    struct cupy *self = host_alloc(context->host, sizeof *self);
    if (!self)
        return error_set(error, STATUS_HOST_MEMORY, "policy cupy: the host has no memory left");
    uint64_t free_bytes;
    uint64_t total_bytes;
    backing_memory(context->backing, &free_bytes, &total_bytes);
    self->base.ops = &cupy_policy;
    heap_open(&self->heap, &self->base, context);
    self->limit_bytes = values->common.limit_bytes ? values->common.limit_bytes
                        : values->fraction > 0 ? (uint64_t)(values->fraction * (double)total_bytes)
                                               : UINT64_MAX;
    *out = &self->base;
    return STATUS_OK;
}

static const char *const cupy_recorders[] = {"cupy", NULL};

const struct policy_ops cupy_policy = {
    .abi = POLICY_ABI,
    .ops_bytes = sizeof(struct policy_ops),
    .name = "cupy",
    .summary = "CuPy's default pool: exact device allocations, best fit, cut exactly, per stream",
    .reference = "CuPy 14.2, cupy/cuda/memory.pyx",
    .recorders = cupy_recorders,
    .capabilities = POLICY_WATCHES_FREE,
    .options = cupy_options,
    .values_bytes = sizeof(struct cupy_values),
    .create = cupy_create,
    .destroy = cupy_destroy,
    .alloc = cupy_alloc,
    .free = cupy_free,
    .stats = cupy_stats,
    .walk = cupy_walk,
    .validate = cupy_validate,
    .servable = cupy_servable,
    .trim = cupy_trim,
    .setting = cupy_setting,
};
