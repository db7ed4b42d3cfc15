/* Free spans ordered by size and then address, so that a best fit is found in O(log n).
 *
 * 1. Sizes fall into classes, 16 to a doubling. A bitmap of two levels finds the next class
 *    that holds a span (as in TLSF, Masmano et al. 2004).
 * 2. Within a class the spans form a treap ordered by size and then address (Seidel and
 *    Aragon, "Randomized search trees", 1996). Most classes hold one or two spans, and then
 *    it costs nothing; with many its depth stays logarithmic, whatever the addresses are.
 *
 * The functions are inline because they are most of what an alloc or a free does. */
#ifndef ALLOCATORS_BASE_SPAN_INDEX_H
#define ALLOCATORS_BASE_SPAN_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "allocators/base/span.h"

#define SPAN_INDEX_UNIT_BYTES UINT64_C(256) /* classes start above 16 of these */
#define SPAN_INDEX_GROUPS     53u           /* of 16 classes; the last one ends at 2^64 bytes */

struct span_index {
    uint64_t groups;                     /* bit g: a class of group g holds a span */
    uint64_t address_flip;               /* 0: lowest address first; ~0: highest first */
    uint16_t classes[SPAN_INDEX_GROUPS]; /* bit s: class 16 g + s holds a span */
    uint32_t roots[SPAN_INDEX_GROUPS * 16u];
};

/* Where a span hangs in the index: valid until the index or the array changes. */
struct span_place {
    uint32_t *link; /* names the span */
    unsigned class;
};

static inline unsigned span_index_class(uint64_t bytes)
{
    uint64_t units = bytes / SPAN_INDEX_UNIT_BYTES;
    unsigned shift = 59u - (unsigned)__builtin_clzll(units | 16u);
    return shift * 16u + (unsigned)(units >> shift);
}

/* Is span `a` at or after the key (bytes, flipped address)? */
static inline bool span_index_reaches(const struct span *a, uint64_t flip, uint64_t bytes,
                                      uint64_t flipped)
{
    return a->bytes != bytes ? a->bytes > bytes : (a->address ^ flip) >= flipped;
}

/* The first span of `class` at or after the key. */
static inline bool span_index_search(struct span_index *self, struct span *spans, unsigned class,
                                     uint64_t bytes, uint64_t flipped, struct span_place *place)
{
    uint32_t *found = NULL;
    for (uint32_t *link = &self->roots[class]; *link;) {
        struct span *node = &spans[*link];
        if (span_index_reaches(node, self->address_flip, bytes, flipped)) {
            found = link;
            link = &node->left;
        } else {
            link = &node->right;
        }
    }
    place->link = found;
    place->class = class;
    return found != NULL;
}

/* The first span of all classes above `class`. */
static inline bool span_index_above(struct span_index *self, struct span *spans, unsigned class,
                                    struct span_place *place)
{
    unsigned group = class / 16u;
    uint32_t here = self->classes[group] & (~UINT32_C(1) << class % 16u);
    if (!here) {
        uint64_t above = self->groups & (~UINT64_C(1) << group);
        if (!above)
            return false;
        group = (unsigned)__builtin_ctzll(above);
        here = self->classes[group];
    }
    place->class = group * 16u + (unsigned)__builtin_ctz(here);
    uint32_t *link = &self->roots[place->class];
    while (spans[*link].left)
        link = &spans[*link].left;
    place->link = link;
    return true;
}

/* The first span, by size and then address, at or after the key. An address of 0 in flipped
 * form comes before all: then it is the best fit for `bytes`. */
static inline bool span_index_find(struct span_index *self, struct span *spans, uint64_t bytes,
                                   uint64_t flipped, struct span_place *place)
{
    unsigned class = span_index_class(bytes);
    if (self->roots[class] && span_index_search(self, spans, class, bytes, flipped, place))
        return true;
    return span_index_above(self, spans, class, place);
}

/* Takes the span at `place` out. */
static inline void span_index_unlink(struct span_index *self, struct span *spans,
                                     const struct span_place *place)
{
    uint32_t *link = place->link;
    uint32_t left = spans[*link].left;
    uint32_t right = spans[*link].right;
    while (left && right) {
        if (spans[left].priority >= spans[right].priority) {
            *link = left;
            link = &spans[left].right;
            left = *link;
        } else {
            *link = right;
            link = &spans[right].left;
            right = *link;
        }
    }
    *link = left | right;
    if (!self->roots[place->class]) {
        unsigned group = place->class / 16u;
        self->classes[group] &= (uint16_t) ~(1u << place->class % 16u);
        if (!self->classes[group])
            self->groups &= ~(UINT64_C(1) << group);
    }
}

/* Takes out `span`, which is in the index. */
static inline void span_index_remove(struct span_index *self, struct span *spans, uint32_t span)
{
    const struct span *wanted = &spans[span];
    struct span_place place = {.class = span_index_class(wanted->bytes)};
    uint32_t *link = &self->roots[place.class];
    while (*link != span) {
        struct span *node = &spans[*link];
        link = span_index_reaches(node, self->address_flip, wanted->bytes,
                                  wanted->address ^ self->address_flip)
                   ? &node->left
                   : &node->right;
    }
    place.link = link;
    span_index_unlink(self, spans, &place);
}

static inline void span_index_insert(struct span_index *self, struct span *spans, uint32_t span)
{
    struct span *added = &spans[span];
    uint64_t flip = self->address_flip;
    uint64_t flipped = added->address ^ flip;
    unsigned class = span_index_class(added->bytes);
    self->classes[class / 16u] |= (uint16_t)(1u << class % 16u);
    self->groups |= UINT64_C(1) << class / 16u;
    uint32_t *link = &self->roots[class];
    while (spans[*link].priority >= added->priority) {
        struct span *node = &spans[*link];
        link = span_index_reaches(node, flip, added->bytes, flipped) ? &node->left : &node->right;
    }
    uint32_t rest = *link; /* what hung here is divided below the new span */
    *link = span;
    uint32_t *before = &added->left;
    uint32_t *after = &added->right;
    while (rest) {
        struct span *node = &spans[rest];
        if (span_index_reaches(node, flip, added->bytes, flipped)) {
            *after = rest;
            after = &node->left;
            rest = *after;
        } else {
            *before = rest;
            before = &node->right;
            rest = *before;
        }
    }
    *before = 0;
    *after = 0;
}

/* Bytes of the largest span; 0 where there is none. */
static inline uint64_t span_index_largest(const struct span_index *self, const struct span *spans)
{
    if (!self->groups)
        return 0;
    unsigned group = 63u - (unsigned)__builtin_clzll(self->groups);
    unsigned class = 31u - (unsigned)__builtin_clz(self->classes[group]);
    uint32_t node = self->roots[group * 16u + class];
    while (spans[node].right)
        node = spans[node].right;
    return spans[node].bytes;
}

/* The last span before the key (bytes, address); 0: none. For lowest-address-first order. */
static inline uint32_t span_index_before(const struct span_index *self, const struct span *spans,
                                         uint64_t bytes, uint64_t address)
{
    unsigned class = span_index_class(bytes);
    for (;;) {
        uint32_t found = 0;
        for (uint32_t node = self->roots[class]; node;) {
            if (span_index_reaches(&spans[node], self->address_flip, bytes, address)) {
                node = spans[node].left;
            } else {
                found = node;
                node = spans[node].right;
            }
        }
        if (found)
            return found;
        unsigned group = class / 16u;
        uint32_t here = self->classes[group] & ((UINT32_C(1) << class % 16u) - 1u);
        if (!here) {
            uint64_t below = self->groups & ((UINT64_C(1) << group) - 1u);
            if (!below)
                return 0;
            group = 63u - (unsigned)__builtin_clzll(below);
            here = self->classes[group];
        }
        class = group * 16u + 31u - (unsigned)__builtin_clz(here);
    }
}

#endif
