/* The free chunks of a BFC pool, ordered so that a best fit is found in O(log n).
 *
 * The real allocator looks through 21 bins by powers of two, from the one of the request
 * upwards, each ordered by size and then address, for the first chunk that is large enough.
 * Bins are ordered by size among each other, so that is the smallest chunk that fits, the
 * lowest address among equals. Any structure that finds the same chunk makes the same
 * decisions; this one finds it in fewer steps:
 *
 * 1. Sizes fall into classes, one to a doubling, as far as sizes go. A bitmap finds the next
 *    class that holds a chunk. (Finer classes need fewer steps within a class, but more
 *    instructions all in all: 16 to a doubling cost 18 more per alloc or free of recorded
 *    training, and let fewer chunks keep their place when they shrink or grow.)
 * 2. Within a class the chunks form a treap ordered by size and then address (Seidel and
 *    Aragon, "Randomized search trees", 1996). Most classes hold one or two chunks, and then
 *    it costs nothing; with many its depth stays logarithmic, whatever the addresses are.
 *
 * What happens in a class of one chunk is inline here, since that is nearly always so; the
 * rest is in index.c. */
#ifndef ALLOCATORS_POLICIES_BFC_INDEX_H
#define ALLOCATORS_POLICIES_BFC_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "allocators/policies/bfc/chunk.h"

#define BFC_INDEX_CLASSES 64u /* class c: sizes from 2^c bytes */

struct bfc_index {
    uint64_t classes;      /* bit c: class c holds a chunk */
    uint64_t address_flip; /* 0: lowest address first; ~0: highest first */
    uint32_t roots[BFC_INDEX_CLASSES];
};

/* Where a chunk hangs in the index: valid until the index or the array changes. */
struct bfc_place {
    uint32_t *link; /* names the chunk */
    unsigned class;
};

static inline unsigned bfc_index_class(uint64_t bytes)
{
    return 63u ^ (unsigned)__builtin_clzll(bytes);
}

/* The first chunk at or after the key, by size and then by address exclusive-or address_flip. */
bool bfc_index_seek(struct bfc_index *self, struct bfc_chunk *chunks, uint64_t bytes,
                    uint64_t flipped, struct bfc_place *place);

/* The parts of what is below for classes that hold several chunks. */
void bfc_index_unlink_inner(struct bfc_chunk *chunks, uint32_t *link);
void bfc_index_insert_inner(struct bfc_index *self, struct bfc_chunk *chunks, unsigned class,
                            uint32_t chunk);
uint32_t *bfc_index_locate(struct bfc_index *self, struct bfc_chunk *chunks, unsigned class,
                           uint32_t chunk);

/* The first chunk, in the order of the index, of at least `bytes`. */
static inline bool bfc_index_best(struct bfc_index *self, struct bfc_chunk *chunks, uint64_t bytes,
                                  struct bfc_place *place)
{
    unsigned class = bfc_index_class(bytes);
    uint32_t *found = NULL;
    for (uint32_t *link = &self->roots[class]; *link;) {
        struct bfc_chunk *node = &chunks[*link];
        if (node->bytes >= bytes) {
            found = link;
            link = &node->left;
        } else {
            link = &node->right;
        }
    }
    if (!found) {
        uint64_t above = self->classes & (~UINT64_C(1) << class);
        if (!above)
            return false;
        class = (unsigned)__builtin_ctzll(above);
        found = &self->roots[class];
        while (chunks[*found].left)
            found = &chunks[*found].left;
    }
    place->link = found;
    place->class = class;
    return true;
}

static inline void bfc_index_clear(struct bfc_index *self, unsigned class)
{
    self->classes &= ~(UINT64_C(1) << class);
}

/* Takes the chunk at `place` out. */
static inline void bfc_index_unlink(struct bfc_index *self, struct bfc_chunk *chunks,
                                    const struct bfc_place *place)
{
    if (__builtin_expect(chunks[*place->link].children != 0, 0)) {
        bfc_index_unlink_inner(chunks, place->link);
        return;
    }
    *place->link = 0;
    if (!self->roots[place->class])
        bfc_index_clear(self, place->class);
}

/* Takes out `chunk`, which is in the index. */
static inline void bfc_index_remove(struct bfc_index *self, struct bfc_chunk *chunks,
                                    uint32_t chunk)
{
    struct bfc_place place = {.class = bfc_index_class(chunks[chunk].bytes)};
    place.link = &self->roots[place.class];
    if (__builtin_expect(*place.link != chunk, 0))
        place.link = bfc_index_locate(self, chunks, place.class, chunk);
    bfc_index_unlink(self, chunks, &place);
}

static inline void bfc_index_insert(struct bfc_index *self, struct bfc_chunk *chunks,
                                    uint32_t chunk)
{
    unsigned class = bfc_index_class(chunks[chunk].bytes);
    if (__builtin_expect(self->roots[class] != 0, 0)) {
        bfc_index_insert_inner(self, chunks, class, chunk);
        return;
    }
    self->roots[class] = chunk;
    chunks[chunk].children = 0;
    self->classes |= UINT64_C(1) << class;
}

/* Puts `chunk` where the one at `place` was, which is to be taken out. */
static inline void bfc_index_replace(struct bfc_index *self, struct bfc_chunk *chunks,
                                     const struct bfc_place *place, uint32_t chunk)
{
    uint32_t *root = &self->roots[place->class];
    if (bfc_index_class(chunks[chunk].bytes) == place->class && place->link == root &&
        chunks[*root].children == 0) {
        *root = chunk;
        chunks[chunk].children = 0;
        return;
    }
    bfc_index_unlink(self, chunks, place);
    bfc_index_insert(self, chunks, chunk);
}

/* Takes `from` out and puts `to` in with a new size. They may be the same chunk. */
static inline void bfc_index_move(struct bfc_index *self, struct bfc_chunk *chunks, uint32_t from,
                                  uint32_t to, uint64_t bytes)
{
    unsigned class = bfc_index_class(chunks[from].bytes);
    uint32_t *root = &self->roots[class];
    if (bfc_index_class(bytes) == class && *root == from && chunks[from].children == 0) {
        chunks[to].bytes = bytes;
        chunks[to].children = 0;
        *root = to;
        return;
    }
    bfc_index_remove(self, chunks, from);
    chunks[to].bytes = bytes;
    bfc_index_insert(self, chunks, to);
}

/* Bytes of the largest chunk; 0 where there is none. */
static inline uint64_t bfc_index_largest(const struct bfc_index *self,
                                         const struct bfc_chunk *chunks)
{
    if (!self->classes)
        return 0;
    uint32_t node = self->roots[63u ^ (unsigned)__builtin_clzll(self->classes)];
    while (chunks[node].right)
        node = chunks[node].right;
    return chunks[node].bytes;
}

/* Is the chunk at or after the key? */
static inline bool bfc_index_reaches(const struct bfc_chunk *chunk, uint64_t flip, uint64_t bytes,
                                     uint64_t flipped)
{
    return chunk->bytes != bytes ? chunk->bytes > bytes : (chunk->address ^ flip) >= flipped;
}

#endif
