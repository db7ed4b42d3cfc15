#include "allocators/base/class_lists.h"

bool ar_class_lists_has(const struct ar_class_lists *self, const struct ar_span *at,
                        unsigned class_index, uint32_t span)
{
    if (at[span].owner != class_index)
        return false;
    for (uint32_t s = self->heads[class_index]; s; s = at[s].right)
        if (s == span)
            return true;
    return false;
}

const char *ar_class_lists_fault(const struct ar_class_lists *self, const struct ar_span *at,
                                 uint64_t *count)
{
    *count = 0;
    for (unsigned first = 0; first < AR_CLASS_FIRSTS; first++) {
        for (unsigned second = 0; second < AR_CLASS_SECONDS; second++) {
            uint32_t head = self->heads[first * AR_CLASS_SECONDS + second];
            if ((self->second_map[first] >> second & 1u) != (head != 0))
                return "a bit and its list differ";
            for (uint32_t s = head; s; s = at[s].right)
                ++*count;
        }
        if ((self->second_map[first] != 0) != (self->first_map >> first & 1u))
            return "the two bitmaps differ";
    }
    return NULL;
}
