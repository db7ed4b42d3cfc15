/* The offline problem. Blocks are sorted by birth; each distinct moment of birth is a slot. A block
 * covers the slots of the moments at which it is live. Of two blocks that meet, the later one is born
 * in the life of the other, so they share that slot. */
#include "allocators/planning/packing.h"

#include "allocators/planning/keyed.h"

static enum ar_status check_blocks(const struct packing_block *blocks, size_t count,
                                   struct ar_error *error)
{
    if (count >= UINT32_MAX / 4)
        return ar_error_set(error, AR_INVALID, "%zu blocks are too many to plan", count);
    for (size_t i = 0; i < count; i++) {
        const struct packing_block *block = &blocks[i];
        if (block->bytes == 0 || block->bytes >= PACKING_LIMIT || block->born >= block->dies ||
            (block->alignment & (block->alignment - 1)) != 0 || block->alignment > PACKING_LIMIT)
            return ar_error_set(
                error, AR_INVALID,
                "block %zu cannot be planned: it needs bytes, a life and an alignment "
                "that is a power of two",
                i);
    }
    return AR_OK;
}

/* The first slot that begins at `moment` or later. */
static uint32_t slot_at(const struct packing *self, uint64_t moment)
{
    uint32_t low = 0, high = self->slots;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (self->slot_born[middle] < moment)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static enum ar_status make_slots(struct packing *self)
{
    struct ar_host *host = self->host;
    size_t bytes = (size_t)self->count * sizeof(struct keyed);
    struct keyed *keys = ar_host_alloc(host, bytes + 1), *spare = ar_host_alloc(host, bytes + 1);
    if (keys && spare) {
        for (uint32_t i = 0; i < self->count; i++)
            keys[i] = (struct keyed){self->blocks[i].born, i};
        const struct keyed *sorted = keyed_sort(keys, spare, self->count);
        for (uint32_t i = 0; i < self->count; i++) {
            if (i == 0 || sorted[i].key != sorted[i - 1].key) {
                self->slot_begin[self->slots] = i;
                self->slot_born[self->slots++] = sorted[i].key;
            }
            self->by_birth[i] = (uint32_t)sorted[i].value;
        }
        self->slot_begin[self->slots] = self->count;
    }
    enum ar_status status = keys && spare ? AR_OK : AR_HOST_MEMORY;
    ar_host_free(host, keys, bytes + 1);
    ar_host_free(host, spare, bytes + 1);
    return status;
}

/* Live bytes of each slot: what is born there, less what died since the one before. */
static enum ar_status sum_slots(struct packing *self, struct ar_error *error)
{
    uint64_t *dead_bytes =
        ar_host_alloc(self->host, ((size_t)self->slots + 1) * sizeof *dead_bytes);
    uint64_t live_bytes = 0;
    if (!dead_bytes)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory to plan");
    bool fits = true;
    for (uint32_t i = 0; i < self->count; i++) {
        self->first[i] = slot_at(self, self->blocks[i].born);
        self->end[i] = slot_at(self, self->blocks[i].dies);
    }
    for (uint32_t slot = 0; slot < self->slots && fits; slot++) {
        live_bytes -= dead_bytes[slot];
        for (uint32_t at = self->slot_begin[slot]; at < self->slot_begin[slot + 1] && fits; at++) {
            uint32_t block = self->by_birth[at];
            live_bytes += self->blocks[block].bytes;
            dead_bytes[self->end[block]] += self->blocks[block].bytes;
            fits = live_bytes < PACKING_LIMIT;
        }
        self->slot_bytes[slot] = live_bytes;
        if (live_bytes > self->peak_bytes) {
            self->peak_bytes = live_bytes;
            self->peak_slot = slot;
        }
    }
    ar_host_free(self->host, dead_bytes, ((size_t)self->slots + 1) * sizeof *dead_bytes);
    return fits ? AR_OK : ar_error_set(error, AR_INVALID, "more than 2^62 bytes are live at once");
}

enum ar_status packing_open(struct packing *self, struct ar_host *host,
                            const struct packing_block *blocks, size_t count,
                            struct ar_error *error)
{
    *self = (struct packing){.host = host, .blocks = blocks};
    enum ar_status status = check_blocks(blocks, count, error);
    if (status)
        return status;
    self->count = (uint32_t)count;
    size_t rooms = count + 1;
    self->first = ar_host_alloc(host, rooms * sizeof *self->first);
    self->end = ar_host_alloc(host, rooms * sizeof *self->end);
    self->by_birth = ar_host_alloc(host, rooms * sizeof *self->by_birth);
    self->slot_begin = ar_host_alloc(host, rooms * sizeof *self->slot_begin);
    self->slot_born = ar_host_alloc(host, rooms * sizeof *self->slot_born);
    self->slot_bytes = ar_host_alloc(host, rooms * sizeof *self->slot_bytes);
    if (!self->first || !self->end || !self->by_birth || !self->slot_begin || !self->slot_born ||
        !self->slot_bytes || make_slots(self))
        status = ar_error_set(error, AR_HOST_MEMORY, "no host memory to plan %zu blocks", count);
    if (!status)
        status = sum_slots(self, error);
    if (status)
        packing_close(self);
    return status;
}

void packing_close(struct packing *self)
{
    size_t rooms = (size_t)self->count + 1;
    ar_host_free(self->host, self->first, rooms * sizeof *self->first);
    ar_host_free(self->host, self->end, rooms * sizeof *self->end);
    ar_host_free(self->host, self->by_birth, rooms * sizeof *self->by_birth);
    ar_host_free(self->host, self->slot_begin, rooms * sizeof *self->slot_begin);
    ar_host_free(self->host, self->slot_born, rooms * sizeof *self->slot_born);
    ar_host_free(self->host, self->slot_bytes, rooms * sizeof *self->slot_bytes);
    *self = (struct packing){.host = self->host};
}
