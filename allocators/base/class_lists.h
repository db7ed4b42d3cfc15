/* Free spans in lists by size class, the span that was freed last first, and two levels of bitmaps
 * that find the next class with a span in a few instructions. Policies of the kind "segregated fit"
 * build on them; what a class is, they say themselves. Higher classes hold larger spans.
 *
 * While a span is in a list, `left` and `right` are its neighbours there (0: none), and `owner` is
 * the class. */
#ifndef ALLOCATORS_BASE_CLASS_LISTS_H
#define ALLOCATORS_BASE_CLASS_LISTS_H

#include "allocators/base/span.h"

AR_BEGIN_DECLS

#define AR_CLASS_FIRSTS  41u
#define AR_CLASS_SECONDS 32u
#define AR_CLASSES       (AR_CLASS_FIRSTS * AR_CLASS_SECONDS)

struct ar_class_lists {
    uint64_t first_map;                   /* bit f: one of the 32 classes of f has a span */
    uint32_t second_map[AR_CLASS_FIRSTS]; /* bit s of entry f: class 32 f + s has a span */
    uint32_t heads[AR_CLASSES];
};

static inline void ar_class_lists_push(struct ar_class_lists *self, struct ar_span *at,
                                       unsigned class_index, uint32_t added)
{
    struct ar_span *span = &at[added];
    uint32_t head = self->heads[class_index];
    self->heads[class_index] = added;
    span->left = 0;
    span->right = head;
    span->owner = class_index;
    span->used = 0;
    if (head) {
        at[head].left = added;
    } else {
        self->first_map |= UINT64_C(1) << class_index / AR_CLASS_SECONDS;
        self->second_map[class_index / AR_CLASS_SECONDS] |= UINT32_C(1)
                                                            << class_index % AR_CLASS_SECONDS;
    }
}

/* Removes the head of a list, which `right` follows. */
static inline void ar_class_lists_pop(struct ar_class_lists *self, struct ar_span *at,
                                      unsigned class_index, uint32_t right)
{
    self->heads[class_index] = right;
    if (right) {
        at[right].left = 0;
    } else {
        uint32_t *map = &self->second_map[class_index / AR_CLASS_SECONDS];
        *map &= ~(UINT32_C(1) << class_index % AR_CLASS_SECONDS);
        if (!*map)
            self->first_map &= ~(UINT64_C(1) << class_index / AR_CLASS_SECONDS);
    }
}

static inline void ar_class_lists_remove(struct ar_class_lists *self, struct ar_span *at,
                                         const struct ar_span *span)
{
    if (span->left) {
        at[span->left].right = span->right;
        at[span->right].left = span->left; /* also in record 0 */
    } else {
        ar_class_lists_pop(self, at, span->owner, span->right);
    }
}

/* The first class from `class_index` on that has a span. False: none. */
static inline bool ar_class_lists_find(const struct ar_class_lists *self, unsigned class_index,
                                       unsigned *found)
{
    if (class_index >= AR_CLASSES)
        return false;
    unsigned first = class_index / AR_CLASS_SECONDS;
    uint32_t second = self->second_map[first] & (~UINT32_C(0) << class_index % AR_CLASS_SECONDS);
    if (!second) {
        uint64_t above = self->first_map & (~UINT64_C(1) << first);
        if (!above)
            return false;
        first = (unsigned)__builtin_ctzll(above);
        second = self->second_map[first];
    }
    *found = first * AR_CLASS_SECONDS + (unsigned)__builtin_ctz(second);
    return true;
}

/* The highest class that has a span. False: none. */
static inline bool ar_class_lists_highest(const struct ar_class_lists *self, unsigned *found)
{
    if (!self->first_map)
        return false;
    unsigned first = 63u - (unsigned)__builtin_clzll(self->first_map);
    *found = first * AR_CLASS_SECONDS + 31u - (unsigned)__builtin_clz(self->second_map[first]);
    return true;
}

/* For validate: whether the span is in the list of `class_index`; and a check of all maps and
 * lists, which counts the spans and returns what is wrong, or NULL. */
AR_API bool ar_class_lists_has(const struct ar_class_lists *self, const struct ar_span *at,
                               unsigned class_index, uint32_t span);
AR_API const char *ar_class_lists_fault(const struct ar_class_lists *self, const struct ar_span *at,
                                        uint64_t *count);

AR_END_DECLS

#endif
