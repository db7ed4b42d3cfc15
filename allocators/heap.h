/* A heap: segments from the backing that are cut into pieces, used or free, with an index of the
 * free pieces for each list. Policies that split and merge contiguous memory share it. The policy
 * decides to which list a free piece belongs, when the heap grows and when it releases a segment.
 *
 * 1. Every segment is a chain of pieces from its first byte to its last. When two pieces merge, the
 *    record of the left one stays, so the first piece of a segment stays the first.
 * 2. A free piece is in exactly one list. Two free neighbours of the same list are always merged;
 *    those of different lists may stay apart.
 * 3. The heap keeps the totals that follow from this: reserved and releasable bytes, and the watch
 *    of free blocks. Live and granted bytes belong to the policy. */
#pragma once

#include "allocators/base/span.h"
#include "allocators/policy.h"

struct heap_segment {
    uint64_t address, bytes;
    uint32_t first; /* its first piece */
};

struct heap_list {
    struct ar_span_index index;
    uint64_t free_bytes;
};

struct heap {
    struct ar_policy *policy;
    struct ar_backing *backing;
    struct ar_host *host;
    struct ar_spans spans;
    struct heap_segment *segments; /* by address */
    uint32_t segment_count, segment_room;
    struct heap_list **lists; /* an entry is NULL until the list is used */
    uint32_t list_room;
    bool keeps_apart; /* set by a policy with its own merge rule: free neighbours may stay apart */
    bool by_record;   /* set by a policy: pieces of one size by number of record, not by address */
    uint64_t splits, merges, segments_made, segments_freed;
};

void heap_open(struct heap *self, struct ar_policy *policy,
               const struct ar_policy_context *context);

/* Releases all segments and frees all host memory. */
void heap_close(struct heap *self);

/* Makes sure that `count` records are spare and that `list` exists. HOST_MEMORY. */
enum ar_status heap_reserve(struct heap *self, uint32_t count, uint32_t list);
static inline bool heap_is_ready(const struct heap *self, uint32_t count, uint32_t list)
{
    return __builtin_expect(
        self->spans.spare_count >= count && list < self->list_room && self->lists[list] != NULL, 1);
}
static inline enum ar_status heap_ready(struct heap *self, uint32_t count, uint32_t list)
{
    return heap_is_ready(self, count, list) ? AR_OK : heap_reserve(self, count, list);
}

/* Obtains a segment as one used piece without an owner. REFUSED, HOST_MEMORY, or another status of
 * the backing. */
enum ar_status heap_grow(struct heap *self, uint64_t bytes, uint32_t *piece);

/* Releases the segment that a free piece fills. */
enum ar_status heap_release(struct heap *self, uint32_t piece);

/* The segment of an address of a piece. */
const struct heap_segment *heap_segment_of(const struct heap *self, uint64_t address);

/* The largest free piece of a list, in bytes. */
static inline uint64_t heap_largest(const struct heap *self, uint32_t list)
{
    return list < self->list_room && self->lists[list]
               ? ar_span_index_largest(&self->lists[list]->index, self->spans.at)
               : 0;
}

/* Free bytes of a list. */
static inline uint64_t heap_free_bytes(const struct heap *self, uint32_t list)
{
    return list < self->list_room && self->lists[list] ? self->lists[list]->free_bytes : 0;
}

/* The first free piece of a list at or after (bytes, address), by size and then address; 0: none.
 * Not for a heap by record. */
uint32_t heap_next(struct heap *self, uint32_t list, uint64_t bytes, uint64_t address);

/* Steps through the free pieces of a list that fill their segments: see ar_span_index_next. */
uint32_t heap_next_whole(struct heap *self, uint32_t list, uint64_t *bytes, uint64_t *rank);

/* For the hooks of the policy. `stream_of_list`: the number of a list is a stream. */
void heap_walk(const struct heap *self, bool stream_of_list, ar_policy_visit *visit,
               void *argument);

/* Checks segments, pieces and lists, and adds up the releasable bytes. heap_validate also compares
 * the totals of the policy with its walk. */
enum ar_status heap_check(const struct heap *self, uint64_t *releasable_bytes,
                          struct ar_error *error);
enum ar_status heap_validate(const struct heap *self, struct ar_error *error);
void heap_stats(const struct heap *self, struct ar_policy_stats *out);

/* ---- The steps of alloc and free: inline, because they take most of the time of both --------- */

/* Whether the piece fills its segment. If it is free, the segment can be released. */
static inline bool heap_is_segment(const struct ar_span *span)
{
    return __builtin_expect((span->previous | span->next) == 0, 0);
}

static inline void heap_account_added(struct heap *self, const struct ar_span *span)
{
    if (heap_is_segment(span))
        self->policy->totals.releasable_bytes += span->bytes;
    ar_policy_free_added(self->policy, span->bytes);
}

static inline void heap_account_removed(struct heap *self, const struct ar_span *span)
{
    if (heap_is_segment(span))
        self->policy->totals.releasable_bytes -= span->bytes;
    ar_policy_free_removed(self->policy, span->bytes);
}

/* Frees a used piece into `list` without a merge. */
static inline void heap_put(struct heap *self, uint32_t piece, uint32_t list)
{
    struct ar_span *span = &self->spans.at[piece];
    struct heap_list *to = self->lists[list];
    span->used = 0;
    span->owner = list;
    ar_span_index_insert(&to->index, self->spans.at, piece);
    to->free_bytes += span->bytes;
    heap_account_added(self, span);
}

/* Removes a free piece from its list and marks it used. */
static inline void heap_remove(struct heap *self, uint32_t piece)
{
    struct ar_span *span = &self->spans.at[piece];
    struct heap_list *from = self->lists[span->owner];
    ar_span_index_remove(&from->index, self->spans.at, piece);
    from->free_bytes -= span->bytes;
    heap_account_removed(self, span);
    span->used = 1;
}

/* Cuts a piece after `bytes`. The rest is not used and in no list. A record must be spare. */
static inline uint32_t heap_cut(struct heap *self, uint32_t piece, uint64_t bytes)
{
    self->splits++;
    return ar_spans_cut(&self->spans, piece, bytes, 0);
}

/* Cuts a used piece down to `bytes`. The rest becomes a free piece of `list`. A record must be
 * spare. */
static inline void heap_split(struct heap *self, uint32_t piece, uint64_t bytes, uint32_t list)
{
    heap_put(self, heap_cut(self, piece, bytes), list);
}

/* Takes the smallest free piece of `list` with at least `bytes`, the first in the order of the
 * list, out of the list and marks it used. 0: none. */
static inline uint32_t heap_take(struct heap *self, uint32_t list, uint64_t bytes)
{
    struct heap_list *from = self->lists[list];
    struct ar_span *at = self->spans.at;
    struct ar_span_place place;
    if (!ar_span_index_best(&from->index, at, bytes, &place))
        return 0;
    uint32_t piece = *place.link;
    ar_span_index_unlink(&from->index, at, &place);
    from->free_bytes -= at[piece].bytes;
    heap_account_removed(self, &at[piece]);
    at[piece].used = 1;
    return piece;
}

/* Two steps that take such a piece and cut it down to `bytes`. The first finds it: *place->link.
 * Between the two, the caller may write its field requested_bytes. False: none. */
AR_INLINE bool heap_best(struct heap *self, uint32_t list, uint64_t bytes,
                         struct ar_span_place *place)
{
    return ar_span_index_best(&self->lists[list]->index, self->spans.at, bytes, place);
}

/* The second step. The rest stays in the list, if possible in the same place. A record must be
 * spare. */
AR_INLINE void heap_take_best(struct heap *self, uint32_t list, uint64_t bytes, uint32_t piece,
                              const struct ar_span_place *place)
{
    struct heap_list *from = self->lists[list];
    struct ar_span *at = self->spans.at;
    uint64_t rest_bytes = at[piece].bytes - bytes;
    if (heap_is_segment(&at[piece]))
        self->policy->totals.releasable_bytes -= at[piece].bytes;
    ar_policy_free_replaced(self->policy, at[piece].bytes, rest_bytes);
    from->free_bytes -= bytes;
    at[piece].used = 1;
    if (rest_bytes) {
        uint32_t rest = heap_cut(self, piece, bytes);
        at[rest].owner = list;
        ar_span_index_replace(&from->index, at, place, rest);
    } else {
        ar_span_index_unlink(&from->index, at, place);
    }
}

/* Both steps. 0: none. */
AR_INLINE uint32_t heap_take_exactly(struct heap *self, uint32_t list, uint64_t bytes)
{
    struct ar_span_place place;
    if (!heap_best(self, list, bytes, &place))
        return 0;
    uint32_t piece = *place.link;
    heap_take_best(self, list, bytes, piece, &place);
    return piece;
}

/* Takes `right`, which is in no list, out of the chain. `left` before it has the bytes of both. */
static inline void heap_link_past(struct heap *self, uint32_t left, uint32_t right)
{
    (void)ar_spans_join(&self->spans, left, right);
    self->merges++;
}

/* Joins two used neighbours. The left record stays. */
static inline void heap_join(struct heap *self, uint32_t left, uint32_t right)
{
    self->spans.at[left].bytes += self->spans.at[right].bytes;
    heap_link_past(self, left, right);
}

static inline bool heap_joins(const struct ar_span *neighbour, uint32_t list)
{
    return !neighbour->used && neighbour->owner == list; /* record 0 counts as used */
}

/* After a merge: `into`, with `bytes`, takes the place of `from` in the list, if possible. They may
 * be the same piece, which then has its old size. */
AR_INLINE void heap_moved(struct heap *self, struct heap_list *list, uint32_t from, uint32_t into,
                          uint64_t bytes)
{
    struct ar_span *at = self->spans.at;
    if (heap_is_segment(&at[into]))
        self->policy->totals.releasable_bytes += bytes;
    ar_policy_free_replaced(self->policy, at[from].bytes, bytes);
    ar_span_index_move(&list->index, at, from, into, bytes);
}

/* The last step of heap_give for a piece between two free pieces of `list`. */
uint32_t heap_give_between(struct heap *self, struct heap_list *list, uint32_t piece);

/* Frees a used piece into `list` and merges it with free neighbours of the same list. One of them
 * keeps its place in the list if possible. Returns the merged piece. The list changes last: no
 * value is kept across a call. */
AR_INLINE uint32_t heap_give(struct heap *self, uint32_t piece, uint32_t list)
{
    struct heap_list *to = self->lists[list];
    struct ar_span *at = self->spans.at;
    struct ar_span *given = &at[piece];
    uint32_t next = given->next;
    uint32_t previous = given->previous;
    uint64_t bytes = given->bytes;
    bool joins_next = heap_joins(&at[next], list);
    given->used = 0;
    given->owner = list;
    to->free_bytes += bytes;
    if (heap_joins(&at[previous], list)) {
        if (joins_next)
            return heap_give_between(self, to, piece);
        heap_link_past(self, previous, piece);
        heap_moved(self, to, previous, previous, at[previous].bytes + bytes);
        return previous;
    }
    if (joins_next) {
        heap_link_past(self, piece, next);
        heap_moved(self, to, next, piece, at[next].bytes + bytes);
        return piece;
    }
    heap_account_added(self, given);
    ar_span_index_insert(&to->index, at, piece);
    return piece;
}
