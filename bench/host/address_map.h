/* From the address of a block to the block: what an allocator needs whose callers hand back
 * nothing but a pointer.
 *
 * 1. Open addressing with linear probing over a power of two of entries, at most half of them
 *    taken, so that a probe is short.
 * 2. Addresses are multiples of large powers of two: the place is the upper bits of a product with
 *    an odd constant (Knuth, "The Art of Computer Programming" 3, 6.4), which all bits reach.
 * 3. Removal moves later entries of the run back to where they are found (Knuth's algorithm R),
 *    so that nothing is left behind and the map does not slow down with age. */
#ifndef BENCH_HOST_ADDRESS_MAP_H
#define BENCH_HOST_ADDRESS_MAP_H

#include <stddef.h>

#include "allocators/policy.h"

/* No block starts here. */
#define ADDRESS_MAP_NONE UINT64_MAX

struct address_map {
    struct ar_host *host;
    struct ar_policy_block *entries; /* address ADDRESS_MAP_NONE: not taken */
    size_t room, count;              /* room: a power of two, or 0 */
    unsigned shift;                  /* 64 - log2(room) */
};

/* An empty map whose memory comes from `host`, which stays the caller's. */
void address_map_open(struct address_map *map, struct ar_host *host);
void address_map_close(struct address_map *map);

/* Makes room for one more, so that the next insertion cannot fail. HOST_MEMORY: the map is as it
 * was. */
enum ar_status address_map_reserve(struct address_map *map) AR_STATUS_CHECKED;

/* Adds a block, after address_map_reserve. CORRUPT where a block with that address is there
 * already. */
enum ar_status address_map_insert(struct address_map *map,
                                  const struct ar_policy_block *block) AR_STATUS_CHECKED;

/* The block that starts at `address`, or NULL. It stays the map's, valid until the next change. */
const struct ar_policy_block *address_map_find(const struct address_map *map, uint64_t address);

/* Takes it out into `out`. False: there is none. */
bool address_map_remove(struct address_map *map, uint64_t address, struct ar_policy_block *out);

#endif
