/* CuPy's default memory pool (cupy/cuda/memory.pyx, v14.2.0):
 *
 * 1. Sizes round up to 512 bytes. Each stream has its own arena.
 * 2. A request takes the smallest free chunk of the arena that is large enough and cuts it to size.
 *    There is no least remainder. Of equal chunks it takes the one whose Python object has the
 *    lowest host address (_Arena.index, a std::set of pairs of size and address of the _Chunk).
 * 3. If there is none, the pool asks the device for exactly the rounded size.
 * 4. A freed chunk merges with its free neighbours in the same device allocation.
 * 5. Only when memory is short, all device allocations without a used chunk are released, of every
 *    stream, and the request is tried again.
 *
 * Host addresses: a _Chunk has 72 bytes and a PooledMemory, which each block has, 80 (memory.pyx,
 * memory.pxd; both are no_gc), so both are blocks of 80 bytes of CPython's allocator. That one
 * hands out the block of a size that was freed last, and else a new one above all others
 * (Objects/obmalloc.c). Records of spans are numbered in the same way, so a record stands for an
 * object, and each block takes one more for its PooledMemory. The order in which objects are made
 * and freed is CuPy's: a request makes the rest of a cut, then the PooledMemory; a free drops the
 * chunk on the right, then the chunk itself if it joins the left one, then the PooledMemory. What
 * cannot be known are the free blocks of that size that the program left before the first request,
 * and its objects of 65 to 80 bytes in between: here there are none. CPython's blocks also lie in
 * pools of 204, which the order in which they become free arranges; here there is one pool.
 * ties=address does without all that: of equal chunks it takes the lowest. */

#include "allocators/base/size.h"
#include "allocators/heap.h"

#define UNIT_BYTES UINT64_C(512)

struct cupy_values {
    struct ar_policy_common common;
    double fraction;
    int ties;
};

struct cupy {
    struct ar_policy base;
    struct heap heap;
    uint64_t limit_bytes; /* UINT64_MAX: none */
    uint64_t flushes, retries, failures;
    uint32_t last_stream;
};

static const struct ar_option cupy_options[] = {
    AR_POLICY_COMMON_OPTIONS,
    {"fraction", AR_OPTION_FRACTION, offsetof(struct cupy_values, fraction), "0", 0, 1, NULL,
     "limit as a fraction of the card's memory, as in CUPY_GPU_MEMORY_LIMIT=40%; 0: none"},
    {"ties", AR_OPTION_CHOICE, offsetof(struct cupy_values, ties), "object", 0, 0, "object|address",
     "of equal free chunks the one whose Python object, or whose memory, has the lowest address"},
    {0},
};

/* free_all_blocks: releases every free chunk that fills its device allocation. */
static enum ar_status free_all(struct cupy *self)
{
    self->flushes++;
    for (uint32_t list = 0; list < self->heap.list_room; list++) {
        uint64_t bytes = 0;
        uint64_t rank = 0;
        for (uint32_t piece; (piece = heap_next_whole(&self->heap, list, &bytes, &rank)) != 0;)
            AR_TRY(heap_release(&self->heap, piece));
    }
    return AR_OK;
}

/* A device allocation of exactly that size. Releases cached memory if memory is short. */
static enum ar_status obtain(struct cupy *self, uint64_t bytes, uint32_t *piece)
{
    if (bytes > self->limit_bytes)
        return AR_NO_MEMORY;
    if (self->base.totals.reserved_bytes + bytes > self->limit_bytes) {
        AR_TRY(free_all(self));
        if (self->base.totals.reserved_bytes + bytes > self->limit_bytes)
            return AR_NO_MEMORY;
    }
    enum ar_status status = heap_grow(&self->heap, bytes, piece);
    if (status != AR_REFUSED)
        return status;
    self->retries++;
    status = free_all(self);
    AR_THEN(status, heap_grow(&self->heap, bytes, piece));
    return status == AR_REFUSED ? AR_NO_MEMORY : status;
}

/* Two spare records, for the rest of a cut and for the PooledMemory. One that is still spare comes
 * before the new ones. */
static enum ar_status more_records(struct cupy *self, uint32_t stream)
{
    struct ar_spans *spans = &self->heap.spans;
    uint32_t spare = spans->spare_count == 1 ? ar_spans_take(spans) : 0;
    enum ar_status status = heap_reserve(&self->heap, 2, stream);
    if (spare)
        ar_spans_drop(spans, spare);
    return status;
}

static enum ar_status cupy_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                                 struct ar_policy_block *out)
{
    struct cupy *self = (struct cupy *)base;
    uint64_t bytes = ar_size_round_up(request->bytes, UNIT_BYTES);
    uint32_t stream = request->stream;
    AR_TRY(heap_is_ready(&self->heap, 2, stream) ? AR_OK : more_records(self, stream));
    self->last_stream = stream;
    uint32_t piece = heap_take_exactly(&self->heap, stream, bytes);
    if (!piece) {
        enum ar_status status = obtain(self, bytes, &piece);
        if (status != AR_OK) {
            self->failures += status == AR_NO_MEMORY;
            return status;
        }
    }
    struct ar_span *span = &self->heap.spans.at[piece];
    span->requested_bytes = request->bytes;
    span->owner = stream;
    uint32_t pooled = ar_spans_take(&self->heap.spans); /* the PooledMemory */
    self->heap.spans.at[pooled].owner = piece;
    ar_policy_grant(base, out, span->address, bytes, pooled);
    return AR_OK;
}

static enum ar_status cupy_free(struct ar_policy *base, const struct ar_policy_block *block,
                                uint32_t stream)
{
    struct cupy *self = (struct cupy *)base;
    uint32_t pooled = (uint32_t)block->cookie;
    uint32_t piece = self->heap.spans.at[pooled].owner;
    const struct ar_span *span = &self->heap.spans.at[piece];
    (void)stream; /* a chunk returns to the arena that it came from */
    ar_policy_ungrant(base, span->requested_bytes, span->bytes);
    heap_give(&self->heap, piece, span->owner);
    ar_spans_drop(&self->heap.spans, pooled);
    return AR_OK;
}

static void cupy_stats(const struct ar_policy *base, struct ar_policy_stats *out)
{
    const struct cupy *self = (const struct cupy *)base;
    heap_stats(&self->heap, out);
    out->count.flushes = self->flushes;
    out->count.retries = self->retries;
    out->count.failures = self->failures;
}

static void cupy_room(const struct ar_policy *base, struct ar_policy_room *out)
{
    const struct cupy *self = (const struct cupy *)base;
    uint64_t stranded =
        ar_policy_free_bytes(&base->totals) - heap_free_bytes(&self->heap, self->last_stream);
    ar_policy_room_fill(out, heap_largest(&self->heap, self->last_stream), stranded,
                        base->totals.releasable_bytes);
}

static void cupy_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument)
{
    heap_walk(&((const struct cupy *)base)->heap, true, visit, argument);
}

static enum ar_status cupy_validate(const struct ar_policy *base, struct ar_error *error)
{
    return heap_validate(&((const struct cupy *)base)->heap, error);
}

/* free_all_blocks() releases all it can and keeps nothing. */
static enum ar_status cupy_trim(struct ar_policy *base, uint64_t keep_bytes AR_UNUSED)
{
    struct cupy *self = (struct cupy *)base;
    self->flushes--; /* not to serve a request */
    return free_all(self);
}

static bool cupy_setting(const struct ar_policy *base, char *text, size_t text_bytes)
{
    const struct cupy *self = (const struct cupy *)base;
    if (self->limit_bytes == UINT64_MAX)
        return false;
    snprintf(text, text_bytes, "CUPY_GPU_MEMORY_LIMIT=%llu", (unsigned long long)self->limit_bytes);
    return true;
}

static void cupy_destroy(struct ar_policy *base)
{
    struct cupy *self = (struct cupy *)base;
    struct ar_host *host = self->heap.host;
    heap_close(&self->heap);
    ar_host_free(host, self, sizeof *self);
}

static enum ar_status cupy_create(const struct ar_policy_context *context, const void *given,
                                  struct ar_policy **out, struct ar_error *error)
{
    extern const struct ar_policy_ops cupy_policy;
    const struct cupy_values *values = given;
    struct cupy *self = ar_policy_new(context, &cupy_policy, sizeof *self, error);
    AR_TRY_HOST(self);
    uint64_t free_bytes;
    uint64_t total_bytes;
    ar_backing_memory(context->backing, &free_bytes, &total_bytes);
    heap_open(&self->heap, &self->base, context);
    self->heap.by_record = values->ties == 0;
    self->limit_bytes = values->common.limit_bytes || values->fraction <= 0
                            ? ar_policy_limit(&values->common)
                            : (uint64_t)(values->fraction * (double)total_bytes);
    *out = &self->base;
    return AR_OK;
}

const struct ar_policy_ops cupy_policy = {
    .name = "cupy",
    .summary = "CuPy's default pool: exact device allocations, best fit, cut exactly, per stream",
    .reference = "CuPy 14.2, cupy/cuda/memory.pyx",
    .recorders = (const char *const[]){"cupy", NULL},
    .capabilities = AR_POLICY_WATCHES_FREE,
    .options = cupy_options,
    .values_bytes = sizeof(struct cupy_values),
    .create = cupy_create,
    AR_POLICY_HOOKS(cupy),
    .room = cupy_room,
    .trim = cupy_trim,
    .setting = cupy_setting,
};
