/* RAPIDS RMM's pool_memory_resource (coalescing best fit, as of 2026):
 *
 * 1. Sizes round up to 256 bytes. Each stream has a free list. A freed block goes to the list of
 *    the stream that frees it.
 * 2. A request takes the smallest block of its list that is large enough, the lowest address among
 *    equals, and cuts it to size.
 * 3. If there is none, it takes such a block from the list of another stream and waits for the last
 *    free of that list. The rest of the block stays in the other list. RMM goes through the lists
 *    in the order of the addresses of the streams' events, which is chance. Here the order is by
 *    number, or as `list_order` says, so that a recording can be reproduced.
 * 4. Then it merges the other lists into its own, one after another, until a block is large enough.
 * 5. Then the pool grows: without a maximum by its own size, with one by half of what is left, but
 *    at least by the request. If the device refuses, it tries half of that, down to the request.
 * 6. If the maximum leaves less than the request, device allocations that are wholly free and in
 *    the list of this stream are released in the order of addresses, until enough is left (or all
 *    of them; none if the request is above the maximum). RMM up to 26.06 did not do this; the
 *    option `reclaim=false` imitates it. The pool does not shrink otherwise.
 * 7. Blocks of different device allocations never merge. */

#include "allocators/base/most_tree.h"
#include "allocators/base/size.h"
#include "allocators/heap.h"

#define ALIGNMENT_BYTES UINT64_C(256)
#define FEW_LISTS       64u /* up to this number the lists are searched one by one */

struct rmm_values {
    struct ar_policy_common common;
    uint64_t initial_bytes;
    bool reclaim;
    const char *list_order;
};

struct rmm {
    struct ar_policy base;
    struct heap heap;
    uint64_t maximum_bytes; /* 0: none */
    uint64_t failures, flushes;
    struct ar_most_tree
        largest; /* by list; without room if lists are few or the host has no memory */
    struct ar_backing_ticket *last_free; /* by stream; value 0: none */
    uint32_t last_free_room;
    uint8_t list_order[10]; /* the lists that are searched first */
    uint32_t list_order_count;
    bool reclaim;
};

static const struct ar_option rmm_options[] = {
    AR_POLICY_COMMON_OPTIONS,
    {"initial_pool_size", AR_OPTION_BYTES, offsetof(struct rmm_values, initial_bytes), "0", 0, 0,
     NULL, "bytes that the pool obtains at the start, a multiple of 256"},
    {"reclaim", AR_OPTION_BOOL, offsetof(struct rmm_values, reclaim), "true", 0, 0, NULL,
     "at the limit, release wholly free device allocations to grow; RMM up to 26.06 did not"},
    {"list_order", AR_OPTION_TEXT, offsetof(struct rmm_values, list_order), "", 0, 0, NULL,
     "order in which the lists of streams are searched, a digit for each stream, such as 2013"},
    {0},
};

static void wait_for_list(struct rmm *self, uint32_t stream, uint32_t list)
{
    if (list < self->last_free_room && self->last_free[list].value)
        ar_backing_order(self->heap.backing, stream, self->last_free[list]);
}

/* ---- the largest block of each list ---------------------------------------------------------- */

/* Called after every change of a list. */
static inline void list_changed(struct rmm *self, uint32_t list)
{
    if (__builtin_expect(self->largest.room != 0, 0))
        ar_most_tree_set(&self->largest, list, heap_largest(&self->heap, list));
}

/* With many lists the largest blocks are kept in a tree, if the host has memory for it. */
static void lists_cover(struct rmm *self)
{
    uint32_t count = self->heap.list_room;
    if (count <= FEW_LISTS || count <= self->largest.room)
        return;
    bool is_new = !self->largest.room;
    if (!ar_most_tree_reserve(&self->largest, self->heap.host, count))
        ar_most_tree_close(&self->largest, self->heap.host);
    else
        for (uint32_t list = 0; is_new && list < count; list++)
            list_changed(self, list);
}

static __attribute__((noinline)) enum ar_status reserve(struct rmm *self, uint32_t count,
                                                        uint32_t stream)
{
    enum ar_status status = heap_reserve(&self->heap, count, stream);
    lists_cover(self);
    return status;
}

/* As heap_ready. */
static inline enum ar_status ready(struct rmm *self, uint32_t count, uint32_t stream)
{
    return heap_is_ready(&self->heap, count, stream) ? AR_OK : reserve(self, count, stream);
}

/* The next place, from `place` on, of a list with a block of `bytes`; NONE. The first places are
 * those of `list_order`; any other place is the number of its list. */
static uint32_t next_place(const struct rmm *self, uint32_t place, uint64_t bytes)
{
    for (; place < self->list_order_count; place++)
        if (heap_largest(&self->heap, self->list_order[place]) >= bytes)
            return place;
    if (self->largest.room)
        return ar_most_tree_next(&self->largest, place, bytes);
    for (; place < self->heap.list_room; place++)
        if (heap_largest(&self->heap, place) >= bytes)
            return place;
    return AR_MOST_TREE_NONE;
}

static uint32_t list_at(const struct rmm *self, uint32_t place)
{
    return place < self->list_order_count ? self->list_order[place] : place;
}

static __attribute__((noinline)) uint64_t largest_of_many(const struct rmm *self)
{
    uint64_t largest = ar_most_tree_top(&self->largest);
    for (uint32_t list = 0; !self->largest.room && list < self->heap.list_room; list++) {
        uint64_t bytes = heap_largest(&self->heap, list);
        largest = bytes > largest ? bytes : largest;
    }
    return largest;
}

/* Called at every new peak. */
static inline uint64_t largest_of_all(const struct rmm *self)
{
    if (__builtin_expect(self->heap.list_room == 1, 1))
        return heap_largest(&self->heap, 0);
    return largest_of_many(self);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Rule 3. The rest of the block stays in the list that it came from. */
static uint32_t take_from_others(struct rmm *self, uint32_t stream, uint64_t bytes)
{
    for (uint32_t place = 0; (place = next_place(self, place, bytes)) != AR_MOST_TREE_NONE;
         place++) {
        uint32_t list = list_at(self, place);
        if (list == stream)
            continue;
        uint32_t piece = heap_take_exactly(&self->heap, list, bytes);
        list_changed(self, list);
        wait_for_list(self, stream, list);
        return piece;
    }
    return 0;
}

/* Rule 4. */
static uint32_t merge_others(struct rmm *self, uint32_t stream, uint64_t bytes)
{
    for (uint32_t place = 0; (place = next_place(self, place, 1)) != AR_MOST_TREE_NONE; place++) {
        uint32_t list = list_at(self, place);
        if (list == stream)
            continue;
        wait_for_list(self, stream, list);
        for (uint32_t moved; (moved = heap_next(&self->heap, list, 0, 0)) != 0;) {
            heap_remove(&self->heap, moved);
            heap_give(&self->heap, moved, stream);
        }
        list_changed(self, list);
        uint32_t piece = heap_take_exactly(&self->heap, stream, bytes);
        if (piece)
            return piece;
    }
    return 0;
}

/* The bytes by which the pool tries to grow; 0: the maximum does not allow the request. */
static uint64_t size_to_grow(const struct rmm *self, uint64_t bytes)
{
    uint64_t reserved = self->base.totals.reserved_bytes;
    if (!self->maximum_bytes)
        return bytes > reserved ? bytes : reserved;
    uint64_t remaining = reserved < self->maximum_bytes
                             ? ar_size_round_up(self->maximum_bytes - reserved, ALIGNMENT_BYTES)
                             : 0;
    if (bytes > remaining)
        return 0;
    return bytes > remaining / 2 ? bytes : remaining / 2;
}

/* Rule 6. */
static enum ar_status release_free(struct rmm *self, uint32_t stream, uint64_t bytes)
{
    const struct heap *heap = &self->heap;
    self->flushes++;
    for (uint32_t i = 0; i < heap->segment_count;) {
        uint32_t first = heap->segments[i].first;
        const struct ar_span *span = &heap->spans.at[first];
        if (self->base.totals.reserved_bytes + bytes <= self->maximum_bytes) /* it may be passed */
            break;
        if (span->used || span->next || span->owner != stream) {
            i++;
            continue;
        }
        enum ar_status status = heap_release(&self->heap, first); /* the next segment is now at i */
        if (status != AR_OK)
            return status;
    }
    return AR_OK;
}

/* Rules 5 and 6. */
static enum ar_status expand(struct rmm *self, uint32_t stream, uint64_t bytes, uint32_t *piece)
{
    uint64_t attempt = size_to_grow(self, bytes);
    if (!attempt && self->reclaim && bytes <= self->maximum_bytes) {
        AR_TRY(release_free(self, stream, bytes));
        attempt = size_to_grow(self, bytes);
    }
    while (attempt >= bytes) {
        enum ar_status status = heap_grow(&self->heap, attempt, piece);
        if (status != AR_REFUSED)
            return status;
        if (attempt == bytes)
            break;
        attempt = attempt / 2 > bytes ? attempt / 2 : bytes;
    }
    return AR_NO_MEMORY;
}

/* Rules 3 to 6. */
static __attribute__((noinline)) enum ar_status find_elsewhere(struct rmm *self, uint32_t stream,
                                                               uint64_t bytes, uint32_t *piece)
{
    *piece = take_from_others(self, stream, bytes);
    if (!*piece)
        *piece = merge_others(self, stream, bytes);
    if (*piece)
        return AR_OK;
    enum ar_status status = expand(self, stream, bytes, piece);
    if (status != AR_OK) {
        self->failures += status == AR_NO_MEMORY;
        return status;
    }
    if (self->heap.spans.at[*piece].bytes > bytes)
        heap_split(&self->heap, *piece, bytes, stream);
    return AR_OK;
}

/* Hands out `piece`, whose owner is the stream of the request. */
static inline void grant(struct rmm *self, const struct ar_policy_request *request,
                         struct ar_policy_block *out, uint64_t bytes, uint32_t piece)
{
    struct ar_span *span = &self->heap.spans.at[piece];
    span->requested_bytes = request->bytes;
    ar_policy_grant(&self->base, out, span->address, bytes, piece);
}

/* As rmm_alloc, if no block of the stream's list is large enough. */
static __attribute__((noinline)) enum ar_status
alloc_elsewhere(struct rmm *self, const struct ar_policy_request *request,
                struct ar_policy_block *out, uint64_t bytes)
{
    uint32_t piece;
    enum ar_status status = find_elsewhere(self, request->stream, bytes, &piece);
    list_changed(self, request->stream);
    if (status != AR_OK)
        return status;
    self->heap.spans.at[piece].owner = request->stream;
    grant(self, request, out, bytes, piece);
    return AR_OK;
}

/* As rmm_alloc, if records or the stream's list are missing, or with many lists. */
static __attribute__((noinline)) enum ar_status
alloc_unready(struct rmm *self, const struct ar_policy_request *request,
              struct ar_policy_block *out, uint64_t bytes)
{
    AR_TRY(ready(self, 2, request->stream));
    uint32_t piece = heap_take_exactly(&self->heap, request->stream, bytes);
    if (!piece)
        return alloc_elsewhere(self, request, out, bytes);
    list_changed(self, request->stream);
    grant(self, request, out, bytes, piece);
    return AR_OK;
}

/* The list changes last here and in rmm_free: no value is kept across a call, so that few registers
 * are saved. */
static enum ar_status rmm_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                                struct ar_policy_block *out)
{
    struct rmm *self = (struct rmm *)base;
    struct ar_span_place place;
    uint32_t stream = request->stream;
    uint64_t bytes = ar_size_round_up(request->bytes, ALIGNMENT_BYTES);
    if (!heap_is_ready(&self->heap, 2, stream) || self->largest.room)
        return alloc_unready(self, request, out, bytes);
    if (!heap_best(&self->heap, stream, bytes, &place))
        return alloc_elsewhere(self, request, out, bytes);
    uint32_t piece = *place.link;
    grant(self, request, out, bytes, piece);
    heap_take_best(&self->heap, stream, bytes, piece, &place);
    return AR_OK;
}

static enum ar_status note_free(struct rmm *self, uint32_t stream)
{
    if (stream >= self->last_free_room &&
        !ar_host_extend(self->heap.host, &self->last_free, &self->last_free_room, stream + 1,
                        sizeof *self->last_free))
        return AR_HOST_MEMORY;
    self->last_free[stream] = ar_backing_fence(self->heap.backing, stream);
    return AR_OK;
}

AR_INLINE void give(struct rmm *self, uint32_t piece, uint32_t stream)
{
    const struct ar_span *span = &self->heap.spans.at[piece];
    ar_policy_ungrant(&self->base, span->requested_bytes, span->bytes);
    heap_give(&self->heap, piece, stream);
}

/* As rmm_free, with several streams. */
static __attribute__((noinline)) enum ar_status free_of_several(struct rmm *self, uint32_t piece,
                                                                uint32_t stream)
{
    AR_TRY(ready(self, 0, stream));
    AR_TRY(note_free(self, stream));
    give(self, piece, stream);
    list_changed(self, stream);
    return AR_OK;
}

/* A stream does not wait for itself: events are recorded only if there are several streams. */
static enum ar_status rmm_free(struct ar_policy *base, const struct ar_policy_block *block,
                               uint32_t stream)
{
    struct rmm *self = (struct rmm *)base;
    uint32_t piece = (uint32_t)block->cookie;
    if (stream || self->heap.list_room > 1)
        return free_of_several(self, piece, stream);
    give(self, piece, 0);
    return AR_OK;
}

static void rmm_stats(const struct ar_policy *base, struct ar_policy_stats *out)
{
    const struct rmm *self = (const struct rmm *)base;
    heap_stats(&self->heap, out);
    out->count.flushes = self->flushes;
    out->count.failures = self->failures;
}

/* Any list can serve any stream: a stream then waits for another, but the host does not. Blocks
 * that a merge of lists would make are not counted. At the limit, wholly free device allocations
 * can be released and obtained again as one. Half of what the limit allows may be no multiple of
 * 256 bytes, and a request is one. */
static void rmm_room(const struct ar_policy *base, struct ar_policy_room *out)
{
    const struct rmm *self = (const struct rmm *)base;
    uint64_t largest = largest_of_all(self);
    uint64_t whole = self->maximum_bytes && self->reclaim ? base->totals.releasable_bytes : 0;
    ar_policy_room_fill(out, ar_size_round_down(largest, ALIGNMENT_BYTES), 0,
                        ar_size_round_down(whole, ALIGNMENT_BYTES));
    out->largest_free_block_bytes = largest;
}

static void rmm_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument)
{
    heap_walk(&((const struct rmm *)base)->heap, true, visit, argument);
}

static enum ar_status rmm_validate(const struct ar_policy *base, struct ar_error *error)
{
    const struct rmm *self = (const struct rmm *)base;
    for (uint32_t list = 0; list < self->largest.room; list++)
        if (self->largest.nodes[self->largest.room + list] != heap_largest(&self->heap, list))
            return ar_policy_broken(base, "the tree has another largest block of a stream's list",
                                    list, error);
    return heap_validate(&self->heap, error);
}

static void rmm_destroy(struct ar_policy *base)
{
    struct rmm *self = (struct rmm *)base;
    struct ar_host *host = self->heap.host;
    ar_most_tree_close(&self->largest, host);
    ar_host_free(host, self->last_free, self->last_free_room * sizeof *self->last_free);
    heap_close(&self->heap);
    ar_host_free(host, self, sizeof *self);
}

/* The first block of the pool lies in the list of the default stream. */
static enum ar_status take_initial(struct rmm *self, uint64_t bytes, struct ar_error *error)
{
    uint32_t piece;
    enum ar_status status = heap_reserve(&self->heap, 1, 0);
    AR_THEN(status, heap_grow(&self->heap, bytes, &piece));
    if (status == AR_REFUSED)
        return ar_error_set(
            error, status, /* not INVALID: the option is right, the device is full */
            "policy rmm-pool: the device has no %llu bytes for initial_pool_size; make it smaller",
            (unsigned long long)bytes);
    if (status == AR_OK)
        heap_give(&self->heap, piece, 0);
    return status;
}

/* The text has every digit from 0 up to the greatest once. */
static bool read_list_order(struct rmm *self, const char *text)
{
    uint32_t seen = 0;
    size_t count = strlen(text);
    if (count > sizeof self->list_order)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (text[i] < '0' || (size_t)(text[i] - '0') >= count)
            return false;
        self->list_order[i] = (uint8_t)(text[i] - '0');
        seen |= 1u << self->list_order[i];
    }
    self->list_order_count = (uint32_t)count;
    return seen == (1u << count) - 1;
}

static enum ar_status rmm_create(const struct ar_policy_context *context, const void *given,
                                 struct ar_policy **out, struct ar_error *error)
{
    extern const struct ar_policy_ops rmm_pool_policy;
    const struct rmm_values *values = given;
    uint64_t initial = values->initial_bytes;
    uint64_t maximum = values->common.limit_bytes;
    if (initial % ALIGNMENT_BYTES || maximum % ALIGNMENT_BYTES)
        return ar_invalid(
            error, "policy rmm-pool: initial_pool_size and limit are multiples of 256 bytes");
    if (maximum && initial > maximum)
        return ar_invalid(error, "policy rmm-pool: initial_pool_size is above the limit");
    struct rmm *self = ar_policy_new(context, &rmm_pool_policy, sizeof *self, error);
    AR_TRY_HOST(self);
    self->maximum_bytes = maximum;
    self->reclaim = values->reclaim;
    heap_open(&self->heap, &self->base, context);
    enum ar_status status = AR_OK;
    if (!read_list_order(self, values->list_order))
        status = ar_invalid(error,
                            "policy rmm-pool: list_order=%s does not name each stream from 0 on "
                            "once; write it as 2013",
                            values->list_order);
    else if (initial)
        status = take_initial(self, initial, error);
    if (status != AR_OK) {
        rmm_destroy(&self->base);
        return status;
    }
    *out = &self->base;
    return AR_OK;
}

const struct ar_policy_ops rmm_pool_policy = {
    .name = "rmm-pool",
    .summary = "RAPIDS RMM's pool: coalescing best fit, doubling, streams take from each other",
    .reference = "RMM 26.10, pool_memory_resource",
    .recorders = (const char *const[]){"rmm-pool", NULL},
    .capabilities = AR_POLICY_WATCHES_FREE,
    .options = rmm_options,
    .values_bytes = sizeof(struct rmm_values),
    .create = rmm_create,
    AR_POLICY_HOOKS(rmm),
    .room = rmm_room,
};
