/* The treaps of the classes that hold several chunks; see index.h. A node's priority is at
 * least that of its children; all walks go down once and need no parent links. */
#include "allocators/policies/bfc/index.h"

#include <stddef.h>

/* The first chunk of `class` at or after the key, or NULL. */
static uint32_t *seek_in_class(struct bfc_index *self, struct bfc_chunk *chunks, unsigned class,
                               uint64_t bytes, uint64_t flipped)
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
    return found;
}

bool bfc_index_seek(struct bfc_index *self, struct bfc_chunk *chunks, uint64_t bytes,
                    uint64_t flipped, struct bfc_place *place)
{
    unsigned class = bfc_index_class(bytes);
    place->link = seek_in_class(self, chunks, class, bytes, flipped);
    place->class = class;
    if (place->link)
        return true;
    return class < 63u && bfc_index_best(self, chunks, UINT64_C(2) << class, place);
}

uint32_t *bfc_index_locate(struct bfc_index *self, struct bfc_chunk *chunks, unsigned class,
                           uint32_t chunk)
{
    const struct bfc_chunk *wanted = &chunks[chunk];
    uint64_t flip = self->address_flip;
    uint32_t *link = &self->roots[class];
    while (*link != chunk) {
        struct bfc_chunk *node = &chunks[*link];
        link = bfc_index_reaches(node, flip, wanted->bytes, wanted->address ^ flip) ? &node->left
                                                                                    : &node->right;
    }
    return link;
}

void bfc_index_unlink_inner(struct bfc_chunk *chunks, uint32_t *link)
{
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
}

void bfc_index_insert_inner(struct bfc_index *self, struct bfc_chunk *chunks, unsigned class,
                            uint32_t chunk)
{
    struct bfc_chunk *added = &chunks[chunk];
    uint64_t flip = self->address_flip;
    uint64_t flipped = added->address ^ flip;
    uint32_t *link = &self->roots[class];
    while (chunks[*link].priority >= added->priority) { /* record 0 has the least */
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
