/* The treaps of the classes that hold several spans; see span_index.h. A node's priority is at
 * least that of its children; all walks go down once and need no parent links. */
#include "allocators/base/span_index.h"

#include <stddef.h>

/* The first span of `size_class` at or after the key, or NULL. */
static uint32_t *seek_in_class(struct ar_span_index *self, struct ar_span *spans,
                               unsigned size_class, uint64_t bytes, uint64_t flipped)
{
    uint32_t *found = NULL;
    for (uint32_t *link = &self->roots[size_class]; *link;) {
        struct ar_span *node = &spans[*link];
        if (ar_span_index_reaches(node, self->address_flip, bytes, flipped)) {
            found = link;
            link = &node->left;
        } else {
            link = &node->right;
        }
    }
    return found;
}

bool ar_span_index_find(struct ar_span_index *self, struct ar_span *spans, uint64_t bytes,
                        uint64_t flipped, struct ar_span_place *place)
{
    unsigned size_class =
        ar_span_index_class(bytes | 1u); /* a key may be of 0 bytes, a span is not */
    place->link = seek_in_class(self, spans, size_class, bytes, flipped);
    place->size_class = size_class;
    if (place->link)
        return true;
    return size_class < 63u && ar_span_index_best(self, spans, UINT64_C(2) << size_class, place);
}

/* The last span of `size_class` before the key, or 0. */
static uint32_t last_before(const struct ar_span_index *self, const struct ar_span *spans,
                            unsigned size_class, uint64_t bytes, uint64_t address)
{
    uint32_t found = 0;
    for (uint32_t node = self->roots[size_class]; node;) {
        if (ar_span_index_reaches(&spans[node], self->address_flip, bytes, address)) {
            node = spans[node].left;
        } else {
            found = node;
            node = spans[node].right;
        }
    }
    return found;
}

uint32_t ar_span_index_before(const struct ar_span_index *self, const struct ar_span *spans,
                              uint64_t bytes, uint64_t address)
{
    unsigned size_class = ar_span_index_class(bytes | 1u);
    uint32_t found = last_before(self, spans, size_class, bytes, address);
    uint64_t below = self->classes & ((UINT64_C(1) << size_class) - 1u);
    if (found || !below)
        return found;
    size_class = 63u ^ (unsigned)__builtin_clzll(below);
    found = self->roots[size_class];
    while (spans[found].right)
        found = spans[found].right;
    return found;
}

uint32_t *ar_span_index_locate(struct ar_span_index *self, struct ar_span *spans,
                               unsigned size_class, uint32_t span)
{
    const struct ar_span *wanted = &spans[span];
    uint64_t flip = self->address_flip;
    uint32_t *link = &self->roots[size_class];
    while (*link != span) {
        struct ar_span *node = &spans[*link];
        link = ar_span_index_reaches(node, flip, wanted->bytes, wanted->address ^ flip)
                   ? &node->left
                   : &node->right;
    }
    return link;
}

void ar_span_index_unlink_inner(struct ar_span *spans, uint32_t *link)
{
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
}

void ar_span_index_insert_inner(struct ar_span_index *self, struct ar_span *spans,
                                unsigned size_class, uint32_t span)
{
    struct ar_span *added = &spans[span];
    uint64_t flip = self->address_flip;
    uint64_t flipped = added->address ^ flip;
    uint32_t *link = &self->roots[size_class];
    while (spans[*link].priority >= added->priority) { /* record 0 has the least */
        struct ar_span *node = &spans[*link];
        link =
            ar_span_index_reaches(node, flip, added->bytes, flipped) ? &node->left : &node->right;
    }
    uint32_t rest = *link; /* what hung here is divided below the new span */
    *link = span;
    uint32_t *before = &added->left;
    uint32_t *after = &added->right;
    while (rest) {
        struct ar_span *node = &spans[rest];
        if (ar_span_index_reaches(node, flip, added->bytes, flipped)) {
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
