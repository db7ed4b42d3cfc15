/* The array of span records: it grows by a quarter, so that at any time at most a fifth of
 * it was never used, and hands records out in the order of their indices. */
#include "allocators/base/span.h"

#define FIRST_COUNT 48u

/* Mixes an index into 16 bits that look random, never 0 (the finaliser of MurmurHash3, by
 * Austin Appleby, public domain). */
static uint16_t priority_of(uint32_t index)
{
    uint32_t x = index;
    x ^= x >> 16;
    x *= 0x85ebca6bu;
    x ^= x >> 13;
    x *= 0xc2b2ae35u;
    x ^= x >> 16;
    uint16_t priority = (uint16_t)(x & 0xffffu);
    return priority ? priority : 1;
}

bool ar_spans_reserve(struct ar_spans *self, struct ar_host *host, uint32_t wanted)
{
    if (self->spare_count >= wanted)
        return true;
    uint32_t old = self->count;
    uint32_t more = old ? old / 4 : FIRST_COUNT;
    if (more < wanted)
        more = wanted;
    if (more > UINT32_MAX - old)
        return false;
    struct ar_span *grown = ar_host_grow(host, self->at, old, old + more, sizeof *grown);
    if (!grown)
        return false;
    self->at = grown;
    self->count = old + more;
    grown[0].used = 1;
    for (uint32_t i = self->count - 1; i >= old && i > 0; i--) {
        grown[i].priority = priority_of(i);
        ar_spans_drop(self, i);
    }
    return true;
}

void ar_spans_close(struct ar_spans *self, struct ar_host *host)
{
    ar_host_free(host, self->at, self->count * sizeof *self->at);
    *self = (struct ar_spans){0};
}
