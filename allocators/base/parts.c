/* The array of records grows by a quarter, so at most a fifth of it was never used. Records are
 * taken in the order of their numbers. */
#include "allocators/base/parts.h"

#define FIRST_RECORDS 48u
#define MOST_RECORDS  (UINT32_MAX / AR_PART_STEPS)

bool ar_parts_reserve(struct ar_parts *self, struct ar_host *host, uint32_t wanted, uint32_t most)
{
    uint32_t old = self->records, parts = ar_parts_count(self);
    uint32_t more = old ? old / 4 : FIRST_RECORDS;
    if (old && old - 1 - parts >= wanted)
        return true;
    if (more < wanted)
        more = wanted;
    if (most - parts < wanted || more > MOST_RECORDS - old)
        return false;
    if (old + more - 1 > most)
        more = most + 1 - old;
    struct ar_part *grown = ar_host_grow(host, self->at, old, old + more, sizeof *grown);
    if (!grown)
        return false;
    self->at = grown;
    self->records = old + more;
    grown[0].class_index = AR_PART_USED;
    for (uint32_t i = self->records - 1; i >= old && i > 0; i--) {
        grown[i].next = self->spare;
        self->spare = i * AR_PART_STEPS;
    }
    return true;
}

void ar_parts_close(struct ar_parts *self, struct ar_host *host)
{
    ar_host_free(host, self->at, self->records * sizeof *self->at);
}

uint32_t ar_parts_new(struct ar_parts *self, uint64_t address, uint64_t bytes, size_t highest)
{
    uint32_t made = self->spare;
    struct ar_part *part = &AR_PART(self->at, made);
    self->spare = part->next;
    self->made++;
    if (self->words <= highest / 64u)
        self->words = (uint32_t)(highest / 64u + 1);
    part->address = address;
    part->bytes = bytes;
    part->previous = 0;
    part->next = 0;
    return made;
}

bool ar_parts_has(const struct ar_parts *self, size_t class_index, uint32_t part)
{
    if (AR_PART(self->at, part).class_index != class_index)
        return false;
    for (uint32_t p = self->heads[class_index]; p; p = AR_PART(self->at, p).right)
        if (p == part)
            return true;
    return false;
}

const char *ar_parts_fault(const struct ar_parts *self, uint64_t *count)
{
    *count = 0;
    for (unsigned class_index = 0; class_index < AR_CLASSES; class_index++) {
        uint32_t head = self->heads[class_index];
        if ((self->bits[class_index / 64u] >> class_index % 64u & 1u) != (head != 0))
            return "a bit and its list differ";
        if (head && class_index / 64u >= self->words && class_index != AR_CLASSES - 1)
            return "a class is above the highest one";
        for (uint32_t p = head; p; p = AR_PART(self->at, p).right)
            ++*count;
    }
    return NULL;
}
