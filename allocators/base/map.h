/* A hash map from a 64-bit number to a value of one or more 64-bit words. The keys are ids of
 * blocks, addresses or handles.
 *
 * 1. Open addressing with linear probing. The number of cells is a power of two, and at most half
 *    of them are used. The home cell of a key is the upper bits of its product with 2^64 / the
 *    golden ratio (Knuth, "The Art of Computer Programming" 3, 6.4), because addresses and ids
 *    often differ in a few bits only.
 * 2. Removal moves later cells of the run back (Knuth's algorithm R). There are no tombstones: the
 *    size of the map follows from the most keys that it held at the same time.
 * 3. The key AR_MAP_NO_KEY marks an empty cell. It cannot be added and is never found. */
#ifndef ALLOCATORS_BASE_MAP_H
#define ALLOCATORS_BASE_MAP_H

#include "allocators/base/host.h"
#include "allocators/base/status.h"

AR_BEGIN_DECLS

#define AR_MAP_NO_KEY UINT64_MAX

/* A zeroed struct is an empty map of one-word values in memory of the C library. Set `host` or
 * `more_words` before the first use for another kind. */
struct ar_map {
    struct ar_host *host; /* the map takes its memory here, unless NULL */
    unsigned more_words;  /* of a value, after its first: a value is 1 + more_words words */
    unsigned shift;       /* 64 - log2(room) */
    uint64_t *cells;      /* room cells: the key, then the words of its value */
    size_t room, count;   /* room: a power of two, or 0 */
};

/* Frees the cells. The map is empty and can be used again. */
AR_API void ar_map_close(struct ar_map *map);

/* Removes all keys and keeps the cells. */
AR_API void ar_map_clear(struct ar_map *map);

/* Makes sure that the next ar_map_add or ar_map_put succeeds. HOST_MEMORY: the map is unchanged. */
AR_API enum ar_status ar_map_reserve(struct ar_map *map);

/* The value of the key, or NULL. The pointer is valid until a key is added or removed. */
AR_API uint64_t *ar_map_find(const struct ar_map *map, uint64_t key);

/* The value of the key, which is added with a value of zeros if it is not there. NULL if there is
 * no host memory or the key is AR_MAP_NO_KEY: the map is unchanged. */
AR_API uint64_t *ar_map_add(struct ar_map *map, uint64_t key);

/* Returns false if the key is not there. */
AR_API bool ar_map_remove(struct ar_map *map, uint64_t key);

/* The value of each key in turn, in no order; NULL after the last. At first `*at` is 0. The map
 * must not change in between. */
AR_API uint64_t *ar_map_next(const struct ar_map *map, size_t *at);

/* For values of one word: adds the key or changes its value. HOST_MEMORY, or INVALID for
 * AR_MAP_NO_KEY: the map is unchanged. */
AR_API enum ar_status ar_map_put(struct ar_map *map, uint64_t key, uint64_t value);

/* For values of one word. Returns false, and leaves `value` alone, if the key is not there. */
AR_API bool ar_map_get(const struct ar_map *map, uint64_t key, uint64_t *value);

AR_END_DECLS

#endif
