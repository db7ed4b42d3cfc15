/* A heap: driver allocations cut into used and free pieces, with best-fit lists of the free
 * ones. The common half of policies that split and merge contiguous memory; which list a free
 * piece belongs to, when to ask the device and when to give back is the policy's decision.
 *
 * 1. Every segment is a chain of pieces from its first byte to its last; the left one of two
 *    that merge keeps its record, so the first piece of a segment stays the first.
 * 2. A free piece is in exactly one list. Two free neighbours of one list never stay apart;
 *    those of different lists may.
 * 3. The totals of the policy are kept here as far as they follow from that: reserved and
 *    releasable bytes, and the hole watch. Live and granted bytes are the policy's. */
#ifndef ALLOCATORS_HEAP_H
#define ALLOCATORS_HEAP_H

#include "allocators/base/span.h"
#include "allocators/base/span_index.h"
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
    struct heap_list **lists; /* NULL: never used */
    uint32_t list_room;
    bool
        keeps_apart; /* free neighbours of one list may stay apart: set by policies that merge by a rule of their own */
    uint64_t splits, merges, segments_made, segments_freed;
};

void heap_open(struct heap *self, struct ar_policy *policy,
               const struct ar_policy_context *context);

/* Gives all segments and all host memory back. */
void heap_close(struct heap *self);

/* Makes sure of `count` spare records and that `list` exists. HOST_MEMORY otherwise. */
enum ar_status heap_reserve(struct heap *self, uint32_t count, uint32_t list) AR_STATUS_CHECKED;
static inline enum ar_status heap_ready(struct heap *self, uint32_t count, uint32_t list)
{
    if (__builtin_expect(self->spans.spare_count >= count && list < self->list_room &&
                             self->lists[list] != NULL,
                         1))
        return AR_OK;
    return heap_reserve(self, count, list);
}

/* A new segment as one used piece, owned by no list. REFUSED, HOST_MEMORY, or what else the
 * backing said. */
enum ar_status heap_grow(struct heap *self, uint64_t bytes, uint32_t *piece) AR_STATUS_CHECKED;

/* Gives the segment of a free piece that fills it back. */
enum ar_status heap_release(struct heap *self, uint32_t piece) AR_STATUS_CHECKED;

/* The segment that an address of a piece lies in. */
const struct heap_segment *heap_segment_of(const struct heap *self, uint64_t address);

/* The largest free piece of a list, in bytes. */
static inline uint64_t heap_largest(const struct heap *self, uint32_t list)
{
    return list < self->list_room && self->lists[list]
               ? ar_span_index_largest(&self->lists[list]->index, self->spans.at)
               : 0;
}

/* The free piece that follows (bytes, address) in the order of a list; 0: none. From (0, 0)
 * on it gives all of them. */
uint32_t heap_next(struct heap *self, uint32_t list, uint64_t bytes, uint64_t address);

/* For the hooks of the policy: `stream_of_list` false says that lists are no streams. */
void heap_walk(const struct heap *self, bool stream_of_list, ar_policy_visit *visit,
               void *argument);
enum ar_status heap_validate(const struct heap *self, const char *name, struct ar_error *error);
void heap_stats(const struct heap *self, struct ar_policy_stats *out);

/* ---- The steps that alloc and free are made of: inline, for most of both is spent here ---- */

/* Does the piece fill its segment? Then its free bytes can go back to the device. */
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

/* Frees a used piece into `list` without merging. */
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

/* Takes a particular free piece out of its list and marks it used. */
static inline void heap_remove(struct heap *self, uint32_t piece)
{
    struct ar_span *span = &self->spans.at[piece];
    struct heap_list *from = self->lists[span->owner];
    ar_span_index_remove(&from->index, self->spans.at, piece);
    from->free_bytes -= span->bytes;
    heap_account_removed(self, span);
    span->used = 1;
}

/* Cuts a piece after `bytes`. The rest is neither used nor in a list yet; a spare record is
 * there. */
static inline uint32_t heap_cut(struct heap *self, uint32_t piece, uint64_t bytes)
{
    struct ar_span *at = self->spans.at;
    uint32_t rest = ar_spans_take(&self->spans);
    struct ar_span *head = &at[piece];
    struct ar_span *tail = &at[rest];
    uint32_t next = head->next;
    tail->address = head->address + bytes;
    tail->bytes = head->bytes - bytes;
    tail->previous = piece;
    tail->next = next;
    tail->used = 0;
    if (next)
        at[next].previous = rest;
    head->next = rest;
    head->bytes = bytes;
    self->splits++;
    return rest;
}

/* Cuts a used piece down to `bytes`; the rest becomes a free piece of `list`. A spare record
 * is there. */
static inline void heap_split(struct heap *self, uint32_t piece, uint64_t bytes, uint32_t list)
{
    heap_put(self, heap_cut(self, piece, bytes), list);
}

/* The smallest free piece of `list` that holds `bytes`, lowest address first, taken out and
 * marked used. 0: none. */
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

/* The same, cut down to `bytes`. The rest stays in the list, in the same place if it can. A
 * spare record is there. */
static inline uint32_t heap_take_exactly(struct heap *self, uint32_t list, uint64_t bytes)
{
    struct heap_list *from = self->lists[list];
    struct ar_span *at = self->spans.at;
    struct ar_span_place place;
    if (!ar_span_index_best(&from->index, at, bytes, &place))
        return 0;
    uint32_t piece = *place.link;
    uint64_t rest_bytes = at[piece].bytes - bytes;
    heap_account_removed(self, &at[piece]);
    from->free_bytes -= bytes;
    if (rest_bytes) {
        uint32_t rest = heap_cut(self, piece, bytes);
        at[rest].owner = list;
        ar_policy_free_added(self->policy, rest_bytes);
        ar_span_index_replace(&from->index, at, &place, rest);
    } else {
        ar_span_index_unlink(&from->index, at, &place);
    }
    at[piece].used = 1;
    return piece;
}

/* Takes `right`, in no list, out of the chain: `left` before it has the bytes of both. */
static inline void heap_link_past(struct heap *self, uint32_t left, uint32_t right)
{
    struct ar_span *at = self->spans.at;
    uint32_t next = at[right].next;
    at[left].next = next;
    if (next)
        at[next].previous = left;
    ar_spans_drop(&self->spans, right);
    self->merges++;
}

/* Joins two used neighbours, of which the left one stays. */
static inline void heap_join(struct heap *self, uint32_t left, uint32_t right)
{
    self->spans.at[left].bytes += self->spans.at[right].bytes;
    heap_link_past(self, left, right);
}

static inline bool heap_joins(const struct ar_span *neighbour, uint32_t list)
{
    return !neighbour->used && neighbour->owner == list; /* record 0, which is none, is used */
}

/* Frees a used piece into `list`, merged with free neighbours of the same list, of which one
 * keeps its place there if it can. Returns the piece that it became. */
static inline uint32_t heap_give(struct heap *self, uint32_t piece, uint32_t list)
{
    struct heap_list *to = self->lists[list];
    struct ar_span *at = self->spans.at;
    uint32_t next = at[piece].next;
    uint32_t previous = at[piece].previous;
    uint64_t bytes = at[piece].bytes;
    bool joins_next = heap_joins(&at[next], list);
    uint32_t into = piece;
    uint32_t from = next;
    at[piece].used = 0;
    at[piece].owner = list;
    to->free_bytes += bytes;
    if (heap_joins(&at[previous], list)) {
        into = previous;
        from = previous;
        ar_policy_free_removed(self->policy, at[previous].bytes);
        bytes += at[previous].bytes;
        if (joins_next)
            ar_span_index_remove(&to->index, at, next);
    } else if (!joins_next) {
        ar_span_index_insert(&to->index, at, piece);
        heap_account_added(self, &at[piece]);
        return piece;
    }
    if (joins_next) {
        ar_policy_free_removed(self->policy, at[next].bytes);
        bytes += at[next].bytes;
    }
    ar_span_index_move(&to->index, at, from, into, bytes);
    if (joins_next)
        heap_link_past(self, piece, next);
    if (into != piece)
        heap_link_past(self, into, piece);
    heap_account_added(self, &at[into]);
    return into;
}

#endif
