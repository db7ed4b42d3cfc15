#include "allocators/policies/slab/slab.h"

#define FIRST_SLAB_BYTES (16 * AR_KIB)
#define FIRST_BLOCKS     2u

static void link_slab(struct slab_policy *self, struct slab *slab, unsigned eighth)
{
    struct slab_class *class = self->classes[slab->class];
    struct slab *head = class->slabs[eighth];
    slab->eighth = (uint8_t)eighth;
    slab->previous = NULL;
    slab->next = head;
    class->slabs[eighth] = slab;
    if (head) {
        head->previous = slab;
        return;
    }
    if (!class->partial)
        self->available[slab->class / 64] |= UINT64_C(1) << slab->class % 64;
    class->partial |= UINT32_C(1) << eighth;
}

static void unlink_slab(struct slab_policy *self, const struct slab *slab)
{
    struct slab_class *class = self->classes[slab->class];
    if (slab->next)
        slab->next->previous = slab->previous;
    if (slab->previous) {
        slab->previous->next = slab->next;
        return;
    }
    class->slabs[slab->eighth] = slab->next;
    if (slab->next)
        return;
    class->partial &= ~(UINT32_C(1) << slab->eighth);
    if (!class->partial)
        self->available[slab->class / 64] &= ~(UINT64_C(1) << slab->class % 64);
}

/* Where a slab with a free block belongs: 0 only where it is empty. */
static unsigned eighth_of(const struct slab *slab)
{
    return (slab->live * (unsigned)slab->scale + 255) / 256;
}

static size_t record_bytes(const struct slab *slab)
{
    return sizeof *slab + slab->blocks * sizeof slab->wasted[0];
}

/* Rule 2: a quarter of what the class has live, and at least FIRST_SLAB_BYTES where blocks are
 * tiny. */
static uint32_t blocks_wanted(const struct slab_class *class)
{
    uint64_t blocks = class->live_blocks / 4;
    if (blocks < FIRST_SLAB_BYTES / class->bytes)
        blocks = FIRST_SLAB_BYTES / class->bytes;
    if (blocks < FIRST_BLOCKS)
        blocks = FIRST_BLOCKS;
    return blocks < SLAB_MOST_BLOCKS ? (uint32_t)blocks : SLAB_MOST_BLOCKS;
}

static enum ar_status new_slab(struct slab_policy *self, unsigned index, struct slab **out)
{
    struct slab_class *class = self->classes[index];
    uint32_t blocks = blocks_wanted(class);
    uint32_t piece;
    enum ar_status status =
        slab_supply(self, SLAB_SMALL, class->bytes, blocks * class->bytes, &piece);
    if (status != AR_OK)
        return status;
    struct ar_span *span = &self->heap.spans.at[piece];
    blocks = (uint32_t)(span->bytes / class->bytes);
    struct slab *slab =
        ar_host_alloc(self->heap.host, sizeof *slab + blocks * sizeof slab->wasted[0]);
    if (!slab) {
        span->requested_bytes = 0;
        slab_restore(self, piece);
        return AR_HOST_MEMORY;
    }
    slab->address = span->address;
    slab->piece = piece;
    slab->blocks = (uint8_t)blocks;
    slab->class = (uint8_t)index;
    slab->free_mask = blocks == 32 ? ~UINT32_C(0) : (UINT32_C(1) << blocks) - 1;
    span->mark = 1;
    span->requested_bytes = (uint64_t)(uintptr_t)slab;
    for (uint32_t i = 0; i < blocks; i++)
        ar_policy_free_added(&self->base, class->bytes);
    slab->scale = (uint16_t)(2048 / blocks);
    link_slab(self, slab, 0);
    class->empty_slabs++;
    self->emptied[index / 64] |= UINT64_C(1) << index % 64;
    *out = slab;
    return AR_OK;
}

/* An empty slab in no list goes back to the supply. */
static void drop_slab(struct slab_policy *self, struct slab *slab)
{
    for (uint32_t i = 0; i < slab->blocks; i++)
        ar_policy_free_removed(&self->base, self->classes[slab->class]->bytes);
    uint32_t piece = slab->piece;
    self->heap.spans.at[piece].mark = 0;
    ar_host_free(self->heap.host, slab, record_bytes(slab));
    slab_restore(self, piece);
}

static enum ar_status class_exists(struct slab_policy *self, unsigned index)
{
    struct slab_class *class = ar_host_alloc(self->heap.host, sizeof *class);
    if (!class)
        return AR_HOST_MEMORY;
    class->bytes = slab_class_bytes(index);
    self->classes[index] = class;
    return AR_OK;
}

/* A class that has no slab with a free block, or is not there yet, gets a slab. */
static __attribute__((noinline)) enum ar_status renew(struct slab_policy *self, unsigned index,
                                                      struct slab **slab)
{
    enum ar_status status = self->classes[index] ? AR_OK : class_exists(self, index);
    return status == AR_OK ? new_slab(self, index, slab) : status;
}

enum ar_status slab_take(struct slab_policy *self, uint64_t requested_bytes,
                         struct ar_policy_block *out)
{
    unsigned index = slab_class_of(requested_bytes);
    struct slab_class *class = self->classes[index];
    struct slab *slab;
    if (__builtin_expect(class && class->partial, 1)) {
        slab = class->slabs[31u - (unsigned)__builtin_clz(class->partial)];
    } else {
        enum ar_status status = renew(self, index, &slab);
        if (status != AR_OK)
            return status;
        class = self->classes[index];
    }
    if (slab->eighth == 0 && --class->empty_slabs == 0)
        self->emptied[index / 64] &= ~(UINT64_C(1) << index % 64);
    unsigned block = (unsigned)__builtin_ctz(slab->free_mask);
    slab->free_mask &= slab->free_mask - 1;
    slab->live++;
    slab->wasted[block] = (uint32_t)(class->bytes - requested_bytes);
    unsigned eighth = eighth_of(slab);
    if (!slab->free_mask) {
        unlink_slab(self, slab);
    } else if (eighth != slab->eighth) {
        unlink_slab(self, slab);
        link_slab(self, slab, eighth);
    }
    class->live_blocks++;
    ar_policy_free_removed(&self->base, class->bytes);
    slab_handed_out(self, slab->address + block * class->bytes, class->bytes,
                    (uint64_t)(uintptr_t)slab, out);
    return AR_OK;
}

void slab_give(struct slab_policy *self, const struct ar_policy_block *block)
{
    struct slab *slab = (struct slab *)(uintptr_t)block->cookie;
    struct slab_class *class = self->classes[slab->class];
    uint64_t offset = block->address - slab->address;
    bool was_full = !slab->free_mask;
    slab->free_mask |= UINT32_C(1) << offset / class->bytes;
    slab->live--;
    class->live_blocks--;
    ar_policy_free_added(&self->base, class->bytes);
    unsigned eighth = eighth_of(slab);
    if (!was_full) {
        if (eighth == slab->eighth)
            return;
        unlink_slab(self, slab);
    }
    if (eighth == 0) {
        if (class->empty_slabs >= self->keep) {
            drop_slab(self, slab);
            return;
        }
        class->empty_slabs++;
        self->emptied[slab->class / 64] |= UINT64_C(1) << slab->class % 64;
    }
    link_slab(self, slab, eighth);
}

/* Returns all empty slabs. */
void slab_return_empty(struct slab_policy *self)
{
    for (unsigned word = 0; word < 2; word++) {
        while (self->emptied[word]) {
            unsigned index = word * 64 + (unsigned)__builtin_ctzll(self->emptied[word]);
            struct slab_class *class = self->classes[index];
            while (class->slabs[0]) {
                struct slab *slab = class->slabs[0];
                unlink_slab(self, slab);
                drop_slab(self, slab);
            }
            class->empty_slabs = 0;
            self->emptied[word] &= self->emptied[word] - 1;
        }
    }
}

void slab_close_classes(struct slab_policy *self)
{
    for (uint32_t i = 0; i < self->heap.segment_count; i++) {
        for (uint32_t p = self->heap.segments[i].first; p; p = self->heap.spans.at[p].next) {
            const struct ar_span *span = &self->heap.spans.at[p];
            if (span->used && span->mark)
                ar_host_free(self->heap.host, slab_record(span), record_bytes(slab_record(span)));
        }
    }
    for (unsigned c = 0; c < SLAB_CLASSES; c++)
        ar_host_free(self->heap.host, self->classes[c], sizeof *self->classes[c]);
}
