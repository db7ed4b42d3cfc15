/* A map from the address of a block to the block, for callers that pass only a pointer to free.
 * It stores whole blocks in the table, without a second array (unlike base/map.h).
 *
 * 1. Open addressing with linear probing over a power of two of entries, at most half of them used,
 *    so probes are short.
 * 2. Addresses are multiples of large powers of two. The index is the upper bits of a product with
 *    an odd constant (Knuth, "The Art of Computer Programming" 3, 6.4), which depend on all bits.
 * 3. Removal moves later entries of the run back (Knuth's algorithm R), so there are no tombstones
 *    and the map does not slow down with age. */
#ifndef BENCH_HOST_ADDRESS_MAP_H
#define BENCH_HOST_ADDRESS_MAP_H

#include <stddef.h>

#include "allocators/policy.h"

/* No block starts here. */
#define ADDRESS_MAP_NONE UINT64_MAX

struct address_map {
    struct ar_host *host;
    struct ar_policy_block *entries; /* address ADDRESS_MAP_NONE: empty */
    size_t room, count;              /* room: a power of two, or 0 */
    unsigned shift;                  /* 64 - log2(room) */
};

/* An empty map whose memory comes from `host`, which stays the caller's. */
void address_map_open(struct address_map *map, struct ar_host *host);
void address_map_close(struct address_map *map);

/* Grows the map if needed, so that the next insertion cannot fail. HOST_MEMORY: nothing changed. */
enum ar_status address_map_reserve(struct address_map *map) AR_STATUS_CHECKED;

/* Adds a block after address_map_reserve. CORRUPT if the map has a block with that address. */
enum ar_status address_map_insert(struct address_map *map,
                                  const struct ar_policy_block *block) AR_STATUS_CHECKED;

/* The block that starts at `address`, or NULL. Valid until the next change of the map. */
const struct ar_policy_block *address_map_find(const struct address_map *map, uint64_t address);

/* Removes the block and copies it to `out`. False: no block starts there. */
bool address_map_remove(struct address_map *map, uint64_t address, struct ar_policy_block *out);

#endif
