/* Spans: the ranges that memory is cut into, used or free, and an index that finds the best fit
 * among the free ones. Policies that keep contiguous blocks build on them.
 *
 * All records of a policy lie in one array and refer to each other by index, so the array may move
 * when it grows, and a record has only 40 bytes. Record 0 is not a span. It stands for "no
 * neighbour" and "no child". It counts as used, and its link `previous` may be written: both spare
 * tests in hot paths. */
#ifndef ALLOCATORS_BASE_SPAN_H
#define ALLOCATORS_BASE_SPAN_H

#include "allocators/base/host.h"

AR_BEGIN_DECLS

struct ar_span {
    uint64_t address;
    uint64_t bytes;
    union {
        uint64_t requested_bytes; /* while used */
        __extension__ struct {
            uint32_t left, right; /* while free: children in the index */
        };
        uint64_t children; /* both of them; 0: no child */
    };
    uint32_t previous, next; /* neighbours; 0 at the ends of the chain. `next` also links the spare
                                records */
    uint32_t owner;          /* for the policy: which region, which arena */
    uint16_t priority;       /* in the index, from the record's number; 0 in record 0 only */
    uint8_t used;
    uint8_t mark; /* for the policy */
};

struct ar_spans {
    struct ar_span *at;
    uint32_t count; /* records in the array, with record 0 */
    uint32_t spare; /* the first spare record */
    uint32_t spare_count;
};

/* Makes sure that `wanted` records are spare. The array may move. False: no host memory, nothing
 * has changed. */
AR_API bool ar_spans_reserve(struct ar_spans *self, struct ar_host *host, uint32_t wanted);
AR_API void ar_spans_close(struct ar_spans *self, struct ar_host *host);

static inline uint64_t ar_span_end(const struct ar_span *span)
{
    return span->address + span->bytes;
}

/* Takes a spare record. One must be there. */
static inline uint32_t ar_spans_take(struct ar_spans *self)
{
    uint32_t taken = self->spare;
    self->spare = self->at[taken].next;
    self->spare_count--;
    return taken;
}

static inline void ar_spans_drop(struct ar_spans *self, uint32_t span)
{
    self->at[span].next = self->spare;
    self->spare = span;
    self->spare_count++;
}

/* Takes a spare record as an unused span without neighbours. */
static inline uint32_t ar_spans_new(struct ar_spans *self, uint64_t address, uint64_t bytes)
{
    uint32_t made = ar_spans_take(self);
    struct ar_span *span = &self->at[made];
    span->address = address;
    span->bytes = bytes;
    span->previous = 0;
    span->next = 0;
    span->used = 0;
    return made;
}

/* Cuts a span after `bytes` and returns the rest, which follows it in the chain. `skipped` bytes
 * between the two, a header, belong to neither. The rest is unused; its owner and mark are for the
 * caller to set. A record must be spare. */
static inline uint32_t ar_spans_cut(struct ar_spans *self, uint32_t span, uint64_t bytes,
                                    uint64_t skipped)
{
    uint32_t rest = ar_spans_take(self);
    struct ar_span *at = self->at;
    struct ar_span *head = &at[span];
    struct ar_span *tail = &at[rest];
    uint32_t next = head->next;
    tail->address = head->address + bytes + skipped;
    tail->bytes = head->bytes - bytes - skipped;
    tail->previous = span;
    tail->next = next;
    tail->used = 0;
    at[next].previous = rest;
    head->next = rest;
    head->bytes = bytes;
    return rest;
}

/* Takes `right` out of the chain. `left`, its neighbour, gets its place; the bytes of both are for
 * the caller to add. Returns the neighbour on the right; 0: none. */
static inline uint32_t ar_spans_join(struct ar_spans *self, uint32_t left, uint32_t right)
{
    uint32_t next = self->at[right].next;
    self->at[left].next = next;
    self->at[next].previous = left;
    ar_spans_drop(self, right);
    return next;
}

/* ---- The index of free spans --------------------------------------------------------------------
 *
 * Free spans in the order of size and then rank: the address, its complement, or the number of the
 * record. It finds a best fit in O(log n).
 *
 * 1. Each size has a class, one for each power of two. A bitmap finds the next class that holds a
 *    span. (With finer classes there are fewer steps in a class but more instructions in total: 16
 *    classes for each power of two cost 18 more instructions per alloc or free of recorded
 *    training, and fewer spans keep their place when they shrink or grow.)
 * 2. In a class the spans form a treap in the order of size and then rank (Seidel and Aragon,
 *    "Randomized search trees", 1996). Most classes hold one or two spans, and then the treap costs
 *    nothing. With many spans its depth is logarithmic for any addresses.
 *
 * The code for a class of one span is inline here, because nearly all classes are like that. The
 * rest is in span.c. */

#define AR_SPAN_INDEX_CLASSES   64u         /* class c: sizes from 2^c bytes */
#define AR_SPAN_INDEX_BY_RECORD UINT64_C(1) /* as address_flip: lowest number of a record first */

struct ar_span_index {
    uint32_t roots[AR_SPAN_INDEX_CLASSES]; /* first: the address of one takes no addition */
    uint64_t classes;                      /* bit c: class c holds a span */
    uint64_t address_flip; /* 0: lowest address first; ~0: highest first; or BY_RECORD */
};

/* The place of a span in the index, valid until the index or the array changes. The span may
 * already be in use when it is removed from its place. */
struct ar_span_place {
    uint32_t *link; /* holds the index of the span */
    size_t size_class;
    uint64_t children; /* of the span */
};

static inline size_t ar_span_index_class(uint64_t bytes)
{
    return 63u - (size_t)__builtin_clzll(bytes);
}

/* The first span at or after the key, by size and then by rank. */
AR_API bool ar_span_index_find(struct ar_span_index *self, struct ar_span *spans, uint64_t bytes,
                               uint64_t rank, struct ar_span_place *place);

/* The last span before the key; 0: none. For an index by address. */
AR_API uint32_t ar_span_index_before(const struct ar_span_index *self, const struct ar_span *spans,
                                     uint64_t bytes, uint64_t address);

/* For validate: whether the span is in the index; and a check of the whole index, which counts its
 * spans and returns what is wrong, or NULL. The check stops after `most` spans. */
AR_API bool ar_span_index_has(const struct ar_span_index *self, const struct ar_span *spans,
                              uint32_t span);
AR_API const char *ar_span_index_fault(const struct ar_span_index *self,
                                       const struct ar_span *spans, uint64_t most, uint64_t *count);

/* For classes that hold several spans: the functions below without the suffix `_inner`. */
AR_API void ar_span_index_unlink_inner(struct ar_span *spans, uint32_t *link, uint64_t children);
AR_API void ar_span_index_remove_inner(struct ar_span_index *self, struct ar_span *spans,
                                       uint32_t span);
AR_API void ar_span_index_insert_inner(struct ar_span_index *self, struct ar_span *spans,
                                       size_t size_class, uint32_t span);
AR_API void ar_span_index_replace_inner(struct ar_span_index *self, struct ar_span *spans,
                                        uint32_t *link, size_t size_class, uint64_t children,
                                        uint32_t span);
AR_API void ar_span_index_move_inner(struct ar_span_index *self, struct ar_span *spans,
                                     uint32_t from, uint32_t to, uint64_t bytes);

/* The first span, in the order of the index, of at least `bytes`. */
static inline bool ar_span_index_best(struct ar_span_index *self, struct ar_span *spans,
                                      uint64_t bytes, struct ar_span_place *place)
{
    size_t size_class = ar_span_index_class(bytes);
    uint32_t *found = NULL;
    for (uint32_t *link = &self->roots[size_class]; *link;) {
        struct ar_span *node = &spans[*link];
        if (node->bytes >= bytes) {
            found = link;
            link = &node->left;
        } else {
            link = &node->right;
        }
    }
    if (!found) {
        uint64_t above = self->classes & (~UINT64_C(1) << size_class);
        if (!above)
            return false;
        size_class = (size_t)__builtin_ctzll(above);
        found = &self->roots[size_class];
        while (spans[*found].left)
            found = &spans[*found].left;
    }
    place->link = found;
    place->size_class = size_class;
    place->children = spans[*found].children;
    return true;
}

static inline void ar_span_index_clear(struct ar_span_index *self, size_t size_class)
{
    self->classes &= ~(UINT64_C(1) << size_class);
}

/* Removes the span at `place`. */
static inline void ar_span_index_unlink(struct ar_span_index *self, struct ar_span *spans,
                                        const struct ar_span_place *place)
{
    if (__builtin_expect(place->children != 0, 0)) {
        ar_span_index_unlink_inner(spans, place->link, place->children);
        return;
    }
    *place->link = 0;
    if (!self->roots[place->size_class])
        ar_span_index_clear(self, place->size_class);
}

/* Removes `span`, which is in the index. */
static inline void ar_span_index_remove(struct ar_span_index *self, struct ar_span *spans,
                                        uint32_t span)
{
    size_t size_class = ar_span_index_class(spans[span].bytes);
    if (__builtin_expect(self->roots[size_class] != span || spans[span].children != 0, 0)) {
        ar_span_index_remove_inner(self, spans, span);
        return;
    }
    self->roots[size_class] = 0;
    ar_span_index_clear(self, size_class);
}

static inline void ar_span_index_insert(struct ar_span_index *self, struct ar_span *spans,
                                        uint32_t span)
{
    size_t size_class = ar_span_index_class(spans[span].bytes);
    if (__builtin_expect(self->roots[size_class] != 0, 0)) {
        ar_span_index_insert_inner(self, spans, size_class, span);
        return;
    }
    self->roots[size_class] = span;
    spans[span].children = 0;
    self->classes |= UINT64_C(1) << size_class;
}

/* Class `from`, which has one span, becomes empty, and the empty class `to` is to have one. */
static inline void ar_span_index_reclass(struct ar_span_index *self, size_t from, size_t to)
{
    self->roots[from] = 0;
    self->classes = (self->classes & ~(UINT64_C(1) << from)) | UINT64_C(1) << to;
}

/* Inserts `span` and removes the span at `place`. */
AR_INLINE void ar_span_index_replace(struct ar_span_index *self, struct ar_span *spans,
                                     const struct ar_span_place *place, uint32_t span)
{
    size_t old_class = place->size_class;
    size_t new_class = ar_span_index_class(spans[span].bytes);
    uint32_t *root = &self->roots[old_class];
    if (place->link != root || place->children ||
        (new_class != old_class && self->roots[new_class])) {
        ar_span_index_replace_inner(self, spans, place->link, old_class, place->children, span);
        return;
    }
    if (new_class != old_class)
        ar_span_index_reclass(self, old_class, new_class);
    self->roots[new_class] = span;
    spans[span].children = 0;
}

/* Removes `from` and inserts `to` with a new size. They may be the same span. */
AR_INLINE void ar_span_index_move(struct ar_span_index *self, struct ar_span *spans, uint32_t from,
                                  uint32_t to, uint64_t bytes)
{
    size_t old_class = ar_span_index_class(spans[from].bytes);
    size_t new_class = ar_span_index_class(bytes);
    if (self->roots[old_class] != from || spans[from].children ||
        (new_class != old_class && self->roots[new_class])) {
        ar_span_index_move_inner(self, spans, from, to, bytes);
        return;
    }
    if (new_class != old_class)
        ar_span_index_reclass(self, old_class, new_class);
    self->roots[new_class] = to;
    spans[to].bytes = bytes;
    spans[to].children = 0;
}

/* Bytes of the largest span; 0: the index is empty. */
static inline uint64_t ar_span_index_largest(const struct ar_span_index *self,
                                             const struct ar_span *spans)
{
    if (!self->classes)
        return 0;
    uint32_t node = self->roots[63u ^ (unsigned)__builtin_clzll(self->classes)];
    while (spans[node].right)
        node = spans[node].right;
    return spans[node].bytes;
}

/* The place of a span among those of its size. */
static inline uint64_t ar_span_index_rank(const struct ar_span_index *self,
                                          const struct ar_span *spans, uint32_t span)
{
    return self->address_flip == AR_SPAN_INDEX_BY_RECORD ? span
                                                         : spans[span].address ^ self->address_flip;
}

/* Steps through an index in its order: the first span after (*bytes, *rank), which become those
 * after the span; 0: no more. Start from (0, 0). The caller may remove the span or insert others.
 * Not for an index with the highest address first. */
static inline uint32_t ar_span_index_next(struct ar_span_index *self, struct ar_span *spans,
                                          uint64_t *bytes, uint64_t *rank)
{
    struct ar_span_place place;
    if (!ar_span_index_find(self, spans, *bytes, *rank, &place))
        return 0;
    *bytes = spans[*place.link].bytes;
    *rank = ar_span_index_rank(self, spans, *place.link) + 1;
    return *place.link;
}

AR_END_DECLS

#endif
