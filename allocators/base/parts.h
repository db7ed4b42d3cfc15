/* Parts: the ranges that regions are cut into, used or free, with the free ones in lists by size
 * class. Policies of the kind "segregated fit" build on them; what a class is, they say themselves.
 * Higher classes hold larger parts.
 *
 * 1. All records lie in one array and refer to each other by number. A number is the place of the
 *    record in steps of 8 bytes, so that the processor finds it in one addition.
 * 2. A part is in a chain with its neighbours by address. Record 0 is not a part: it stands for "no
 *    neighbour" and "end of the list". It counts as used and its links may be written, which spares
 *    tests.
 * 3. In a list the part that was freed last is first. A bitmap finds the next class that has a part
 *    in a few instructions. (A second level of bits cost more to keep than it saved: the next part
 *    is mostly in the same word. So did bits that are cleared only when a search finds the list
 *    empty: most searches do.) */
#ifndef ALLOCATORS_BASE_PARTS_H
#define ALLOCATORS_BASE_PARTS_H

#include "allocators/base/host.h"

AR_BEGIN_DECLS

struct ar_part {
    uint64_t address;
    uint64_t bytes;
    union {
        uint64_t requested_bytes; /* while used */
        __extension__ struct {
            uint32_t left, right; /* neighbours in a list; `left` of the first one is undefined */
        };
    };
    uint32_t previous, next; /* by address. `next` also links the spare records */
    uint32_t class_index;    /* of its list, or AR_PART_USED */
    uint32_t mark;           /* for the policy */
};

#define AR_CLASSES     1312u
#define AR_PART_USED   AR_CLASSES
#define AR_CLASS_WORDS 21u /* of 64 classes */

struct ar_parts {
    uint32_t heads[AR_CLASSES]; /* first: the address of one takes no addition */
    struct ar_part *at;
    uint32_t records; /* in the array, with record 0 */
    uint32_t spare;   /* the first spare record; 0: none */
    uint64_t splits, merges;
    uint64_t bits[AR_CLASS_WORDS]; /* bit b of word w: class 64 w + b has a part */
    uint32_t words;                /* no class above these has a part, except the last class:
                                      a policy may keep there what no search is to find */
    uint32_t made;                 /* parts that were not cut from another */
};

#define AR_PART_STEPS ((uint32_t)(sizeof(struct ar_part) / 8))

/* The record of a number, in the array `at`. */
#define AR_PART(at, number) (*(__typeof__(&*(at)))((uintptr_t)(at) + (uintptr_t)(number)*8))

/* Makes sure that `wanted` records are spare, without more than `most` parts in all. The array may
 * move. False: no host memory, and nothing has changed. */
AR_API bool ar_parts_reserve(struct ar_parts *self, struct ar_host *host, uint32_t wanted,
                             uint32_t most);
AR_API void ar_parts_close(struct ar_parts *self, struct ar_host *host);

/* Parts in the chains. */
static inline uint32_t ar_parts_count(const struct ar_parts *self)
{
    return self->made + (uint32_t)(self->splits - self->merges);
}

static inline bool ar_part_is_used(const struct ar_part *part)
{
    return part->class_index == AR_PART_USED;
}

static inline uint64_t ar_part_end(const struct ar_part *part)
{
    return part->address + part->bytes;
}

/* The first part of a region, in no list, without neighbours. A record must be spare. Classes up to
 * `highest` are used from now on. */
AR_API uint32_t ar_parts_new(struct ar_parts *self, uint64_t address, uint64_t bytes,
                             size_t highest);

/* The usual path of requests and frees is to fit in the registers that a function need not save. So
 * a value is computed here, not where it is used; and a place is read again after this, because a
 * value that is kept takes a register. */
#define AR_COMPUTED(value)   __asm__("" : "+r"(value))
#define AR_READ_AGAIN(place) __asm__("" : "+m"(place))

/* A number in a register. Without this compilers keep it twice, with 32 and with 64 bits, which
 * costs a move for each. */
AR_INLINE size_t ar_part_number(size_t number)
{
    AR_COMPUTED(number);
    return number;
}

/* Cuts a part, whose record is `cut`, after `bytes` and returns the rest of `rest_bytes`, which
 * follows it in the chain, after a header if there is one, and is in no list. A record must be
 * spare. */
AR_INLINE size_t ar_parts_cut(struct ar_parts *self, size_t part, struct ar_part *cut,
                              uint64_t bytes, uint64_t rest_bytes, uint64_t header_bytes)
{
    struct ar_part *at = self->at;
    size_t rest = ar_part_number(self->spare);
    self->spare = AR_PART(at, rest).next;
    self->splits++;
    AR_PART(at, rest).address = cut->address + bytes + header_bytes;
    AR_PART(at, rest).bytes = rest_bytes;
    AR_PART(at, rest).previous = (uint32_t)part;
    size_t next = ar_part_number(cut->next);
    AR_PART(at, rest).next = (uint32_t)next;
    AR_PART(at, next).previous = (uint32_t)rest;
    cut->next = (uint32_t)rest;
    cut->bytes = bytes;
    return rest;
}

/* Takes `right` out of the chain. `left`, its neighbour, gets its place; the list of the one that
 * was free, and the bytes of both, are for the caller. */
AR_INLINE void ar_parts_join(struct ar_parts *self, size_t left, size_t right)
{
    struct ar_part *at = self->at;
    size_t next = ar_part_number(AR_PART(at, right).next);
    AR_PART(at, left).next = (uint32_t)next;
    AR_PART(at, next).previous = (uint32_t)left;
    AR_PART(at, right).next = self->spare;
    self->spare = (uint32_t)right;
    self->merges++;
}

/* `word` is that of the class, which a search knows. */
AR_INLINE void ar_parts_flip(struct ar_parts *self, size_t class_index, size_t word)
{
    self->bits[word] ^= UINT64_C(1) << class_index % 64;
}

/* A part that is in no list becomes the first of one. `rises`: its class may be above `words`. */
AR_INLINE void ar_parts_put(struct ar_parts *self, size_t part, size_t class_index,
                            const bool rises)
{
    struct ar_part *at = self->at;
    class_index = ar_part_number(class_index);
    size_t head = ar_part_number(self->heads[class_index]);
    self->heads[class_index] = (uint32_t)part;
    AR_PART(at, part).class_index = (uint32_t)class_index;
    AR_PART(at, part).right = (uint32_t)head;
    if (head) {
        AR_PART(at, head).left = (uint32_t)part;
        return;
    }
    ar_parts_flip(self, class_index, class_index / 64);
    if (rises && __builtin_expect(class_index / 64 >= self->words, 0))
        self->words = (uint32_t)(class_index / 64 + 1);
}

AR_INLINE void ar_parts_push(struct ar_parts *self, size_t part, size_t class_index)
{
    ar_parts_put(self, part, class_index, false);
}

/* `right` becomes the first part of a class, in place of the one on its left. */
AR_INLINE void ar_parts_set_head(struct ar_parts *self, size_t class_index, size_t word,
                                 uint32_t right)
{
    self->heads[class_index] = right;
    if (!right)
        ar_parts_flip(self, class_index, word);
}

/* The first part of a class leaves it and is used. */
AR_INLINE void ar_parts_use(struct ar_parts *self, struct ar_part *part, size_t class_index,
                            size_t word, uint64_t requested_bytes)
{
    uint32_t right = part->right; /* where the requested bytes are written */
    part->requested_bytes = requested_bytes;
    part->class_index = AR_PART_USED;
    ar_parts_set_head(self, class_index, word, right);
}

/* Takes a part out of the list of its class. */
AR_INLINE void ar_parts_remove(struct ar_parts *self, size_t part, size_t class_index)
{
    struct ar_part *at = self->at;
    size_t right = ar_part_number(AR_PART(at, part).right);
    if (self->heads[class_index] == (uint32_t)part) {
        ar_parts_set_head(self, class_index, class_index / 64, (uint32_t)right);
        return;
    }
    size_t left = ar_part_number(AR_PART(at, part).left);
    AR_PART(at, left).right = (uint32_t)right;
    AR_PART(at, right).left = (uint32_t)left; /* also in record 0 */
}

/* What the merge of a freed part with its free neighbours gave. */
struct ar_merge {
    uint64_t bytes;                      /* of the part that is left */
    uint64_t next_bytes, previous_bytes; /* of the neighbours that were free; 0: used */
};

/* Joins two neighbours; the free one of class `class_index` leaves its list. Returns its bytes.
 * (The list comes last, when few registers are in use.) */
AR_INLINE uint64_t ar_parts_merge_two(struct ar_parts *self, size_t left, size_t right,
                                      size_t free_part, size_t class_index, uint64_t *bytes)
{
    uint64_t free_bytes = AR_PART(self->at, free_part).bytes, sum = *bytes + free_bytes;
    AR_COMPUTED(sum);
    *bytes = sum;
    ar_parts_join(self, left, right);
    ar_parts_remove(self, free_part, class_index);
    return free_bytes;
}

/* Merges a used part with its free neighbours, which leave their lists, and with the headers of
 * `header_bytes` between them, which are taken from `*headers`. Returns the part that is left,
 * which is in no list. */
AR_INLINE size_t ar_parts_merge(struct ar_parts *self, size_t part, const uint64_t header_bytes,
                                uint64_t *headers, struct ar_merge *out)
{
    struct ar_part *at = self->at;
    out->bytes = AR_PART(at, part).bytes;
    out->next_bytes = out->previous_bytes = 0;
    size_t next = ar_part_number(AR_PART(at, part).next);
    size_t class_index = ar_part_number(AR_PART(at, next).class_index);
    if (class_index != AR_PART_USED) {
        out->bytes += header_bytes;
        *headers -= header_bytes;
        out->next_bytes = ar_parts_merge_two(self, part, next, next, class_index, &out->bytes);
    }
    size_t previous = ar_part_number(AR_PART(at, part).previous);
    class_index = ar_part_number(AR_PART(at, previous).class_index);
    if (class_index != AR_PART_USED) {
        out->bytes += header_bytes;
        *headers -= header_bytes;
        out->previous_bytes =
            ar_parts_merge_two(self, previous, part, previous, class_index, &out->bytes);
        part = previous;
    }
    part = ar_part_number(part);
    AR_PART(at, part).bytes = out->bytes;
    return part;
}

/* No class from `class_index` on has a part: searches need not look there any more. */
static inline void ar_parts_none_from(struct ar_parts *self, size_t class_index)
{
    AR_LOWER(self->words, (uint32_t)(class_index / 64 + 1));
}

struct ar_class {
    unsigned index;
    size_t word; /* of the bitmap */
};

/* The first class from `class_index` on that has a part. False: none. The class must be below
 * AR_CLASSES. */
AR_INLINE bool ar_parts_search(const struct ar_parts *self, size_t class_index,
                               struct ar_class *found)
{
    size_t word = class_index / 64;
    uint64_t bits = self->bits[word] >> class_index % 64;
    if (bits) {
        found->index = (unsigned)class_index + (unsigned)__builtin_ctzll(bits);
        found->word = word;
        return true;
    }
    do {
        if (++word >= self->words)
            return false;
    } while (!self->bits[word]);
    found->index = (unsigned)word * 64 + (unsigned)__builtin_ctzll(self->bits[word]);
    found->word = word;
    return true;
}

/* The same for any class. */
AR_INLINE bool ar_parts_find(const struct ar_parts *self, size_t class_index,
                             struct ar_class *found)
{
    return class_index / 64 < self->words && ar_parts_search(self, class_index, found);
}

/* The highest class that has a part. False: there is none, or it is in a word below that of
 * `least`. */
static inline bool ar_parts_highest(const struct ar_parts *self, size_t least, unsigned *found)
{
    size_t word = self->words, end = least / 64;
    while (word > end && !self->bits[word - 1])
        word--;
    if (word <= end)
        return false;
    *found = (unsigned)word * 64 - 1 - (unsigned)__builtin_clzll(self->bits[word - 1]);
    return true;
}

/* For validate: whether the part is in the list of `class_index`; and a check of the bitmap and all
 * lists, which counts the parts there and returns what is wrong, or NULL. */
AR_API bool ar_parts_has(const struct ar_parts *self, size_t class_index, uint32_t part);
AR_API const char *ar_parts_fault(const struct ar_parts *self, uint64_t *count);

AR_END_DECLS

#endif
