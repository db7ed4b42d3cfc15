/* The free chunks of a BFC pool, ordered so that a best fit is found in O(log n).
 *
 * The real allocator looks through 21 bins by powers of two, from the one of the request
 * upwards, each ordered by size and then address, for the first chunk that is large enough.
 * Bins are ordered by size among each other, so that is the smallest chunk that fits, the
 * lowest address among equals. Any structure that finds the same chunk makes the same
 * decisions; this one finds it in fewer steps:
 *
 * 1. Sizes fall into classes, 16 to a doubling. A bitmap of two levels finds the next class
 *    that holds a chunk (as in TLSF, Masmano et al. 2004).
 * 2. Within a class the chunks form a treap ordered by size and then address (Seidel and
 *    Aragon, "Randomized search trees", 1996). Most classes hold one or two chunks, and then
 *    it costs nothing; with many its depth stays logarithmic, whatever the addresses are.
 *
 * The functions are inline because they are most of what an alloc or a free does. */
#ifndef ALLOCATORS_POLICIES_BFC_INDEX_H
#define ALLOCATORS_POLICIES_BFC_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "allocators/policies/bfc/chunk.h"

#define BFC_INDEX_GROUPS 53u /* of 16 classes; the last one ends at 2^64 bytes */

struct bfc_index {
    uint64_t groups;                    /* bit g: a class of group g holds a chunk */
    uint64_t address_flip;              /* 0: lowest address first; ~0: highest first */
    uint16_t classes[BFC_INDEX_GROUPS]; /* bit s: class 16 g + s holds a chunk */
    uint32_t roots[BFC_INDEX_GROUPS * 16u];
};

/* Where a chunk hangs in the index: valid until the index or the array changes. */
struct bfc_place {
    uint32_t *link; /* names the chunk */
    unsigned class;
};

static inline unsigned bfc_index_class(uint64_t bytes)
{
    uint64_t units = bytes / BFC_ROUNDING_BYTES;
    unsigned shift = 59u - (unsigned)__builtin_clzll(units | 16u);
    return shift * 16u + (unsigned)(units >> shift);
}

/* Is chunk `a` at or after the key (bytes, flipped address)? */
static inline bool bfc_index_reaches(const struct bfc_chunk *a, uint64_t flip, uint64_t bytes,
                                     uint64_t flipped)
{
    return a->bytes != bytes ? a->bytes > bytes : (a->address ^ flip) >= flipped;
}

/* The first chunk of `class` at or after the key. */
static inline bool bfc_index_search(struct bfc_index *self, struct bfc_chunk *chunks,
                                    unsigned class, uint64_t bytes, uint64_t flipped,
                                    struct bfc_place *place)
{
    uint32_t *found = NULL;
    for (uint32_t *link = &self->roots[class]; *link;) {
        struct bfc_chunk *node = &chunks[*link];
        if (bfc_index_reaches(node, self->address_flip, bytes, flipped)) {
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

/* The first chunk of all classes above `class`. */
static inline bool bfc_index_above(struct bfc_index *self, struct bfc_chunk *chunks, unsigned class,
                                   struct bfc_place *place)
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
    while (chunks[*link].left)
        link = &chunks[*link].left;
    place->link = link;
    return true;
}

/* The first chunk, by size and then address, at or after the key. An address of 0 in flipped
 * form comes before all: then it is the best fit for `bytes`. */
static inline bool bfc_index_find(struct bfc_index *self, struct bfc_chunk *chunks, uint64_t bytes,
                                  uint64_t flipped, struct bfc_place *place)
{
    unsigned class = bfc_index_class(bytes);
    if (self->roots[class] && bfc_index_search(self, chunks, class, bytes, flipped, place))
        return true;
    return bfc_index_above(self, chunks, class, place);
}

/* Takes the chunk at `place` out. */
static inline void bfc_index_unlink(struct bfc_index *self, struct bfc_chunk *chunks,
                                    const struct bfc_place *place)
{
    uint32_t *link = place->link;
    uint32_t left = chunks[*link].left;
    uint32_t right = chunks[*link].right;
    while (left && right) {
        if (chunks[left].priority >= chunks[right].priority) {
            *link = left;
            link = &chunks[left].right;
            left = *link;
        } else {
            *link = right;
            link = &chunks[right].left;
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

/* Takes out `chunk`, which is in the index. */
static inline void bfc_index_remove(struct bfc_index *self, struct bfc_chunk *chunks,
                                    uint32_t chunk)
{
    const struct bfc_chunk *wanted = &chunks[chunk];
    struct bfc_place place = {.class = bfc_index_class(wanted->bytes)};
    uint32_t *link = &self->roots[place.class];
    while (*link != chunk) {
        struct bfc_chunk *node = &chunks[*link];
        link = bfc_index_reaches(node, self->address_flip, wanted->bytes,
                                 wanted->address ^ self->address_flip)
                   ? &node->left
                   : &node->right;
    }
    place.link = link;
    bfc_index_unlink(self, chunks, &place);
}

static inline void bfc_index_insert(struct bfc_index *self, struct bfc_chunk *chunks,
                                    uint32_t chunk)
{
    struct bfc_chunk *added = &chunks[chunk];
    uint64_t flip = self->address_flip;
    uint64_t flipped = added->address ^ flip;
    unsigned class = bfc_index_class(added->bytes);
    self->classes[class / 16u] |= (uint16_t)(1u << class % 16u);
    self->groups |= UINT64_C(1) << class / 16u;
    uint32_t *link = &self->roots[class];
    while (chunks[*link].priority >= added->priority) {
        struct bfc_chunk *node = &chunks[*link];
        link = bfc_index_reaches(node, flip, added->bytes, flipped) ? &node->left : &node->right;
    }
    uint32_t rest = *link; /* what hung here is divided below the new chunk */
    *link = chunk;
    uint32_t *before = &added->left;
    uint32_t *after = &added->right;
    while (rest) {
        struct bfc_chunk *node = &chunks[rest];
        if (bfc_index_reaches(node, flip, added->bytes, flipped)) {
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

/* Bytes of the largest chunk; 0 where there is none. */
static inline uint64_t bfc_index_largest(const struct bfc_index *self,
                                         const struct bfc_chunk *chunks)
{
    if (!self->groups)
        return 0;
    unsigned group = 63u - (unsigned)__builtin_clzll(self->groups);
    unsigned class = 31u - (unsigned)__builtin_clz(self->classes[group]);
    uint32_t node = self->roots[group * 16u + class];
    while (chunks[node].right)
        node = chunks[node].right;
    return chunks[node].bytes;
}

#endif
