/* The binary buddy system (Knowlton 1965; Knuth, The Art of Computer Programming 2.5):
 *
 * 1. Sizes round up to a power of two, at least `min`.
 * 2. A request takes the smallest free block that is large enough, the lowest address among equals.
 *    The block is halved until it has the right size; the low half is used, the high half is free.
 * 3. A freed block joins its buddy, the other half of the block that it was cut from, as long as
 *    the buddy is free and whole.
 * 4. Memory comes in chunks of a power of two: `chunk` bytes, or more if the request needs more.
 *    Blocks of different chunks are not buddies. Chunks are released by `trim` only.
 *
 * Bound (Robson 1971, Knuth 2.5): blocks of 1 to n units with M live units can need M (1 + log2(n)
 * / 2) units; rounding wastes less than half of every block. */
#include "allocators/base/size.h"
#include "allocators/heap.h"

struct buddy_values {
    struct ar_policy_common common;
    uint64_t least_bytes, chunk_bytes;
};

struct buddy {
    struct ar_policy base;
    struct heap heap;
    uint64_t limit_bytes, least_bytes, chunk_bytes;
    uint64_t failures;
    struct heap_segment last_chunk; /* of the last freed block that was looked up */
};

static const struct ar_option buddy_options[] = {
    AR_POLICY_COMMON_OPTIONS,
    {"min", AR_OPTION_BYTES, offsetof(struct buddy_values, least_bytes), "256", 1, 1073741824, NULL,
     "bytes of the smallest block, a power of two"},
    {"chunk", AR_OPTION_BYTES, offsetof(struct buddy_values, chunk_bytes), "64MiB", 1, 0x1p40, NULL,
     "least bytes of a chunk from the device, a power of two"},
    {0},
};

static uint64_t round_to_power(uint64_t bytes, uint64_t least)
{
    return bytes <= least ? least : UINT64_C(1) << (64 - __builtin_clzll(bytes - 1));
}

static enum ar_status grow(struct buddy *self, uint64_t bytes, uint32_t *piece)
{
    uint64_t chunk = bytes > self->chunk_bytes ? bytes : self->chunk_bytes;
    uint64_t room = self->limit_bytes - self->base.totals.reserved_bytes;
    /* If the limit or the device has no room for a usual chunk, try smaller ones. */
    while (chunk > bytes && chunk > room)
        chunk /= 2;
    if (chunk > room)
        return AR_NO_MEMORY;
    for (;; chunk /= 2) {
        enum ar_status status = heap_grow(&self->heap, chunk, piece);
        if (status != AR_REFUSED)
            return status;
        if (chunk == bytes)
            return AR_NO_MEMORY;
    }
}

static enum ar_status buddy_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                                  struct ar_policy_block *out)
{
    struct buddy *self = (struct buddy *)base;
    uint64_t bytes = round_to_power(request->bytes, self->least_bytes);
    /* A block of at most 2^60 bytes is halved at most 60 times. */
    AR_TRY(heap_ready(&self->heap, 62, 0));
    uint32_t piece = heap_take(&self->heap, 0, bytes);
    if (!piece) {
        enum ar_status status = grow(self, bytes, &piece);
        if (status != AR_OK) {
            self->failures += status == AR_NO_MEMORY;
            return status;
        }
    }
    while (self->heap.spans.at[piece].bytes > bytes)
        heap_split(&self->heap, piece, self->heap.spans.at[piece].bytes / 2, 0);
    self->heap.spans.at[piece].requested_bytes = request->bytes;
    ar_policy_grant(base, out, self->heap.spans.at[piece].address, bytes, piece);
    return AR_OK;
}

/* The start of the chunk of an address, which is most often the chunk of the last look-up. */
static uint64_t chunk_start(struct buddy *self, uint64_t address)
{
    if (address - self->last_chunk.address >= self->last_chunk.bytes)
        self->last_chunk = *heap_segment_of(&self->heap, address);
    return self->last_chunk.address;
}

/* Whether a neighbour is free and whole. */
static bool could_join(const struct ar_span *at, uint32_t neighbour, uint64_t bytes)
{
    return !at[neighbour].used && at[neighbour].bytes == bytes;
}

static enum ar_status buddy_free(struct ar_policy *base, const struct ar_policy_block *block,
                                 uint32_t stream AR_UNUSED)
{
    struct buddy *self = (struct buddy *)base;
    uint32_t piece = (uint32_t)block->cookie;
    struct ar_span *at = self->heap.spans.at;
    ar_policy_ungrant(base, at[piece].requested_bytes, at[piece].bytes);
    while (could_join(at, at[piece].next, at[piece].bytes) ||
           could_join(at, at[piece].previous, at[piece].bytes)) {
        bool left =
            ((at[piece].address - chunk_start(self, at[piece].address)) & at[piece].bytes) == 0;
        uint32_t other = left ? at[piece].next : at[piece].previous;
        if (!could_join(at, other, at[piece].bytes))
            break;
        heap_remove(&self->heap, other);
        heap_join(&self->heap, left ? piece : other, left ? other : piece);
        piece = left ? piece : other;
    }
    heap_put(&self->heap, piece, 0);
    return AR_OK;
}

static void buddy_stats(const struct ar_policy *base, struct ar_policy_stats *out)
{
    const struct buddy *self = (const struct buddy *)base;
    heap_stats(&self->heap, out);
    out->count.failures = self->failures;
}

static void buddy_room(const struct ar_policy *base, struct ar_policy_room *out)
{
    ar_policy_room_fill(out, heap_largest(&((const struct buddy *)base)->heap, 0), 0, 0);
}

static void buddy_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument)
{
    heap_walk(&((const struct buddy *)base)->heap, false, visit, argument);
}

static enum ar_status buddy_validate(const struct ar_policy *base, struct ar_error *error)
{
    const struct buddy *self = (const struct buddy *)base;
    for (uint32_t i = 0; i < self->heap.segment_count; i++) {
        const struct heap_segment *segment = &self->heap.segments[i];
        for (uint32_t p = segment->first; p; p = self->heap.spans.at[p].next) {
            const struct ar_span *span = &self->heap.spans.at[p];
            uint64_t offset = span->address - segment->address;
            const struct ar_span *next = span->next ? &self->heap.spans.at[span->next] : NULL;
            if (!ar_size_is_power_of_two(span->bytes) || offset % span->bytes)
                return ar_policy_broken(base, "a block has no size or place of a buddy",
                                        span->address, error);
            if (next && !span->used && !next->used && span->bytes == next->bytes &&
                (offset & span->bytes) == 0)
                return ar_policy_broken(base, "two free buddies are not joined", span->address,
                                        error);
        }
    }
    return heap_validate(&self->heap, error);
}

/* Releases free chunks, the largest last, until at most `keep_bytes` are free. */
static enum ar_status buddy_trim(struct ar_policy *base, uint64_t keep_bytes)
{
    struct buddy *self = (struct buddy *)base;
    uint64_t bytes = 0;
    uint64_t address = 0;
    uint32_t piece;
    while (ar_policy_free_bytes(&self->base.totals) > keep_bytes &&
           (piece = heap_next_whole(&self->heap, 0, &bytes, &address)) != 0) {
        enum ar_status status = heap_release(&self->heap, piece);
        self->last_chunk = (struct heap_segment){0};
        if (status != AR_OK)
            return status;
    }
    return AR_OK;
}

static void buddy_destroy(struct ar_policy *base)
{
    struct buddy *self = (struct buddy *)base;
    struct ar_host *host = self->heap.host;
    heap_close(&self->heap);
    ar_host_free(host, self, sizeof *self);
}

static enum ar_status buddy_create(const struct ar_policy_context *context, const void *given,
                                   struct ar_policy **out, struct ar_error *error)
{
    extern const struct ar_policy_ops buddy_policy;
    const struct buddy_values *values = given;
    if (!ar_size_is_power_of_two(values->least_bytes) ||
        !ar_size_is_power_of_two(values->chunk_bytes) || values->chunk_bytes < values->least_bytes)
        return ar_invalid(error,
                          "policy buddy: min and chunk are powers of two, chunk not below min");
    struct buddy *self = ar_policy_new(context, &buddy_policy, sizeof *self, error);
    AR_TRY_HOST(self);
    self->least_bytes = values->least_bytes;
    self->chunk_bytes = values->chunk_bytes;
    self->limit_bytes = ar_policy_limit(&values->common);
    heap_open(&self->heap, &self->base, context);
    self->heap.keeps_apart = true;
    *out = &self->base;
    return AR_OK;
}

const struct ar_policy_ops buddy_policy = {
    .name = "buddy",
    .summary = "the binary buddy system: powers of two, halved and joined again",
    .reference = "Knowlton 1965; Knuth, The Art of Computer Programming, 2.5",
    .capabilities = AR_POLICY_WATCHES_FREE,
    .options = buddy_options,
    .values_bytes = sizeof(struct buddy_values),
    .create = buddy_create,
    AR_POLICY_HOOKS(buddy),
    .room = buddy_room,
    .trim = buddy_trim,
};
