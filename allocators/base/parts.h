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

/* A number in a register, for the usual path of requests and frees below. Without the empty
 * statement compilers keep it twice, with 32 and with 64 bits, which costs a move for each. */
AR_INLINE size_t ar_part_number(size_t number)
{
    __asm__("" : "+r"(number));
    return number;
}

/* Cuts a part after `bytes` and returns the rest of `rest_bytes`, which follows it in the chain,
 * after a header if there is one, and is in no list. A record must be spare. */
AR_INLINE size_t ar_parts_cut(struct ar_parts *self, size_t part, uint64_t bytes,
                              uint64_t rest_bytes, uint64_t header_bytes)
{
    struct ar_part *at = self->at;
    size_t rest = ar_part_number(self->spare), next = ar_part_number(AR_PART(at, part).next);
    self->spare = AR_PART(at, rest).next;
    self->splits++;
    AR_PART(at, rest).address = AR_PART(at, part).address + bytes + header_bytes;
    AR_PART(at, rest).bytes = rest_bytes;
    AR_PART(at, rest).previous = (uint32_t)part;
    AR_PART(at, rest).next = (uint32_t)next;
    AR_PART(at, next).previous = (uint32_t)rest;
    AR_PART(at, part).next = (uint32_t)rest;
    AR_PART(at, part).bytes = bytes;
    return rest;
}

/* Takes `right`, which is in no list, out of the chain. `left`, its neighbour, gets its place; the
 * bytes of both are for the caller to add. */
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

AR_INLINE void ar_parts_flip(struct ar_parts *self, size_t class_index)
{
    self->bits[class_index / 64] ^= UINT64_C(1) << class_index % 64;
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
    ar_parts_flip(self, class_index);
    if (rises && __builtin_expect(class_index / 64 >= self->words, 0))
        self->words = (uint32_t)(class_index / 64 + 1);
}

AR_INLINE void ar_parts_push(struct ar_parts *self, size_t part, size_t class_index)
{
    ar_parts_put(self, part, class_index, false);
}

/* The first part of a class leaves it. */
AR_INLINE void ar_parts_pop(struct ar_parts *self, size_t part, size_t class_index)
{
    uint32_t right = AR_PART(self->at, part).right;
    self->heads[class_index] = right;
    if (!right)
        ar_parts_flip(self, class_index);
}

/* Takes a part out of the list of its class. */
AR_INLINE void ar_parts_remove(struct ar_parts *self, size_t part, size_t class_index)
{
    struct ar_part *at = self->at;
    if (self->heads[class_index] == (uint32_t)part) {
        ar_parts_pop(self, part, class_index);
        return;
    }
    size_t left = ar_part_number(AR_PART(at, part).left);
    size_t right = ar_part_number(AR_PART(at, part).right);
    AR_PART(at, left).right = (uint32_t)right;
    AR_PART(at, right).left = (uint32_t)left; /* also in record 0 */
}

/* No class from `class_index` on has a part: searches need not look there any more. */
static inline void ar_parts_none_from(struct ar_parts *self, size_t class_index)
{
    AR_LOWER(self->words, (uint32_t)(class_index / 64 + 1));
}

/* The first class from `class_index` on that has a part. False: none. The class must be below
 * AR_CLASSES. */
AR_INLINE bool ar_parts_search(const struct ar_parts *self, size_t class_index, unsigned *found)
{
    size_t word = class_index / 64;
    uint64_t bits = self->bits[word] >> class_index % 64;
    if (bits) {
        *found = (unsigned)class_index + (unsigned)__builtin_ctzll(bits);
        return true;
    }
    do {
        if (++word >= self->words)
            return false;
    } while (!self->bits[word]);
    *found = (unsigned)word * 64 + (unsigned)__builtin_ctzll(self->bits[word]);
    return true;
}

/* The same for any class. */
AR_INLINE bool ar_parts_find(const struct ar_parts *self, size_t class_index, unsigned *found)
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
