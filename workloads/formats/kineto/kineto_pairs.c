/* Pairing of frees with blocks.
 *
 * What: each free names the row of its block. How:
 * 1. By address, where the event has one: the block made last there.
 * 2. Else by size, the block made last first: those of older profilers, which name no address.
 *    Most blocks of a framework are freed in the reverse order in which they were made.
 * 3. A free at an address at which no block was ever made: the block was there before. One at an
 *    address whose block is free already: left out. Without an address the two look the same, and
 *    count as the first.
 * 4. A block at an address whose block was never freed: the old one is freed there. */
#include "workloads/formats/kineto/kineto_pairs.h"

#define FREED (UINT64_C(1) << 63) /* in the map of addresses: row of a block that is free again */

struct pairing {
    struct kineto_row *rows;
    struct kineto_pairs *out;
    struct ar_map by_address; /* address and device -> row, FREED */
    struct ar_map by_size;    /* size and device -> the row made last; older ones by its `pair` */
};

static uint64_t key_of(uint64_t value, uint32_t device)
{
    uint64_t key = value ^ (uint64_t)device << 56;
    return key == UINT64_MAX ? 0 : key; /* the map's own */
}

static enum ar_status make_at(struct pairing *pairing, uint32_t at)
{
    struct kineto_row *row = &pairing->rows[at];
    uint64_t key = key_of(row->address, row->device), found;
    if (ar_map_get(&pairing->by_address, key, &found) && !(found & FREED)) {
        row->mark = KINETO_AGAIN;
        row->pair = (uint32_t)found;
        pairing->out->again++;
    }
    return ar_map_put(&pairing->by_address, key, at);
}

static enum ar_status free_at(struct pairing *pairing, uint32_t at)
{
    struct kineto_row *row = &pairing->rows[at];
    uint64_t key = key_of(row->address, row->device), found;
    if (!ar_map_get(&pairing->by_address, key, &found)) {
        row->mark = KINETO_INITIAL;
        pairing->out->initial++;
        return ar_map_put(&pairing->by_address, key, at | FREED);
    }
    if (found & FREED) {
        row->mark = KINETO_TWICE;
        pairing->out->twice++;
        return AR_OK;
    }
    row->pair = (uint32_t)found;
    pairing->out->other_sizes += pairing->rows[found].bytes != -row->bytes;
    return ar_map_put(&pairing->by_address, key, found | FREED);
}

static enum ar_status make_of_size(struct pairing *pairing, uint32_t at)
{
    struct kineto_row *row = &pairing->rows[at];
    uint64_t key = key_of((uint64_t)row->bytes, row->device), found;
    row->pair = ar_map_get(&pairing->by_size, key, &found) ? (uint32_t)found : KINETO_NONE;
    return ar_map_put(&pairing->by_size, key, at);
}

static enum ar_status free_of_size(struct pairing *pairing, uint32_t at)
{
    struct kineto_row *row = &pairing->rows[at];
    uint64_t key = key_of((uint64_t)-row->bytes, row->device), found;
    if (!ar_map_get(&pairing->by_size, key, &found) || pairing->rows[found].bytes != -row->bytes) {
        row->mark = KINETO_INITIAL;
        pairing->out->initial++;
        return AR_OK;
    }
    row->pair = (uint32_t)found;
    pairing->out->by_size++;
    if (pairing->rows[found].pair != KINETO_NONE)
        return ar_map_put(&pairing->by_size, key, pairing->rows[found].pair);
    ar_map_remove(&pairing->by_size, key);
    return AR_OK;
}

enum ar_status kineto_pair(struct kineto_rows *rows, struct kineto_pairs *out,
                           struct ar_error *error)
{
    struct pairing pairing = {.rows = rows->items, .out = out};
    enum ar_status status = AR_OK;
    for (uint32_t at = 0; at < rows->count && !status; at++) {
        const struct kineto_row *row = &rows->items[at];
        if (row->kind != KINETO_MEMORY)
            continue;
        if (row->bytes > 0)
            status = row->address ? make_at(&pairing, at) : make_of_size(&pairing, at);
        else
            status = row->address ? free_at(&pairing, at) : free_of_size(&pairing, at);
    }
    ar_map_close(&pairing.by_address);
    ar_map_close(&pairing.by_size);
    return status ? ar_error_set(error, status, "no host memory to pair frees with blocks")
                  : status;
}
