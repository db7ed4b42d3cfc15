/* Free spans ordered by size and then address, so that a best fit is found in O(log n).
 *
 * 1. Sizes fall into classes, one to a doubling, as far as sizes go. A bitmap finds the next
 *    class that holds a span. (Finer classes need fewer steps within a class, but more
 *    instructions all in all: 16 to a doubling cost 18 more per alloc or free of recorded
 *    training, and let fewer spans keep their place when they shrink or grow.)
 * 2. Within a class the spans form a treap ordered by size and then address (Seidel and
 *    Aragon, "Randomized search trees", 1996). Most classes hold one or two spans, and then
 *    it costs nothing; with many its depth stays logarithmic, whatever the addresses are.
 *
 * What happens in a class of one span is inline here, since that is nearly always so; the
 * rest is in span_index.c. */
#ifndef ALLOCATORS_BASE_SPAN_INDEX_H
#define ALLOCATORS_BASE_SPAN_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "allocators/base/api.h"
#include "allocators/base/span.h"

AR_BEGIN_DECLS

#define AR_SPAN_INDEX_CLASSES 64u /* class c: sizes from 2^c bytes */

struct ar_span_index {
    uint64_t classes;      /* bit c: class c holds a span */
    uint64_t address_flip; /* 0: lowest address first; ~0: highest first */
    uint32_t roots[AR_SPAN_INDEX_CLASSES];
};

/* Where a span hangs in the index: valid until the index or the array changes. */
struct ar_span_place {
    uint32_t *link; /* names the span */
    unsigned size_class;
};

static inline unsigned ar_span_index_class(uint64_t bytes)
{
    return 63u ^ (unsigned)__builtin_clzll(bytes);
}

/* The first span at or after the key, by size and then by address exclusive-or address_flip. */
AR_API bool ar_span_index_find(struct ar_span_index *self, struct ar_span *spans, uint64_t bytes,
                               uint64_t flipped, struct ar_span_place *place);

/* The last span before the key; 0: none. For indices whose lowest address comes first. */
AR_API uint32_t ar_span_index_before(const struct ar_span_index *self, const struct ar_span *spans,
                                     uint64_t bytes, uint64_t address);

/* The parts of what is below for classes that hold several spans. */
AR_API void ar_span_index_unlink_inner(struct ar_span *spans, uint32_t *link);
AR_API void ar_span_index_insert_inner(struct ar_span_index *self, struct ar_span *spans,
                                       unsigned size_class, uint32_t span);
AR_API uint32_t *ar_span_index_locate(struct ar_span_index *self, struct ar_span *spans,
                                      unsigned size_class, uint32_t span);

/* The first span, in the order of the index, of at least `bytes`. */
static inline bool ar_span_index_best(struct ar_span_index *self, struct ar_span *spans,
                                      uint64_t bytes, struct ar_span_place *place)
{
    unsigned size_class = ar_span_index_class(bytes);
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
        size_class = (unsigned)__builtin_ctzll(above);
        found = &self->roots[size_class];
        while (spans[*found].left)
            found = &spans[*found].left;
    }
    place->link = found;
    place->size_class = size_class;
    return true;
}

static inline void ar_span_index_clear(struct ar_span_index *self, unsigned size_class)
{
    self->classes &= ~(UINT64_C(1) << size_class);
}

/* Takes the span at `place` out. */
static inline void ar_span_index_unlink(struct ar_span_index *self, struct ar_span *spans,
                                        const struct ar_span_place *place)
{
    if (__builtin_expect(spans[*place->link].children != 0, 0)) {
        ar_span_index_unlink_inner(spans, place->link);
        return;
    }
    *place->link = 0;
    if (!self->roots[place->size_class])
        ar_span_index_clear(self, place->size_class);
}

/* Takes out `span`, which is in the index. */
static inline void ar_span_index_remove(struct ar_span_index *self, struct ar_span *spans,
                                        uint32_t span)
{
    struct ar_span_place place;
    place.size_class = ar_span_index_class(spans[span].bytes);
    place.link = &self->roots[place.size_class];
    if (__builtin_expect(*place.link != span, 0))
        place.link = ar_span_index_locate(self, spans, place.size_class, span);
    ar_span_index_unlink(self, spans, &place);
}

static inline void ar_span_index_insert(struct ar_span_index *self, struct ar_span *spans,
                                        uint32_t span)
{
    unsigned size_class = ar_span_index_class(spans[span].bytes);
    if (__builtin_expect(self->roots[size_class] != 0, 0)) {
        ar_span_index_insert_inner(self, spans, size_class, span);
        return;
    }
    self->roots[size_class] = span;
    spans[span].children = 0;
    self->classes |= UINT64_C(1) << size_class;
}

/* Puts `span` where the one at `place` was, which is to be taken out. */
static inline void ar_span_index_replace(struct ar_span_index *self, struct ar_span *spans,
                                         const struct ar_span_place *place, uint32_t span)
{
    uint32_t *root = &self->roots[place->size_class];
    if (ar_span_index_class(spans[span].bytes) == place->size_class && place->link == root &&
        spans[*root].children == 0) {
        *root = span;
        spans[span].children = 0;
        return;
    }
    ar_span_index_unlink(self, spans, place);
    ar_span_index_insert(self, spans, span);
}

/* Takes `from` out and puts `to` in with a new size. They may be the same span. */
static inline void ar_span_index_move(struct ar_span_index *self, struct ar_span *spans,
                                      uint32_t from, uint32_t to, uint64_t bytes)
{
    unsigned size_class = ar_span_index_class(spans[from].bytes);
    uint32_t *root = &self->roots[size_class];
    if (ar_span_index_class(bytes) == size_class && *root == from && spans[from].children == 0) {
        spans[to].bytes = bytes;
        spans[to].children = 0;
        *root = to;
        return;
    }
    ar_span_index_remove(self, spans, from);
    spans[to].bytes = bytes;
    ar_span_index_insert(self, spans, to);
}

/* Bytes of the largest span; 0 where there is none. */
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

/* Is the span at or after the key? */
static inline bool ar_span_index_reaches(const struct ar_span *span, uint64_t flip, uint64_t bytes,
                                         uint64_t flipped)
{
    return span->bytes != bytes ? span->bytes > bytes : (span->address ^ flip) >= flipped;
}

AR_END_DECLS

#endif
