#include "allocators/base/map.h"

#define FIRST_ROOM  64u
#define FIRST_SHIFT 58u
#define MULTIPLIER  UINT64_C(0x9e3779b97f4a7c15) /* 2^64 / the golden ratio */

static size_t cell_words(const struct ar_map *map)
{
    return 2 + map->more_words;
}

static size_t cell_bytes(const struct ar_map *map)
{
    return cell_words(map) * sizeof(uint64_t);
}

static uint64_t *cell_at(const struct ar_map *map, size_t index)
{
    return map->cells + index * cell_words(map);
}

void ar_map_close(struct ar_map *map)
{
    if (map->host)
        ar_host_free(map->host, map->cells, map->room * cell_bytes(map));
    else
        free(map->cells);
    *map = (struct ar_map){.host = map->host, .more_words = map->more_words};
}

void ar_map_clear(struct ar_map *map)
{
    for (size_t i = 0; i < map->room; i++)
        *cell_at(map, i) = AR_MAP_NO_KEY;
    map->count = 0;
}

static size_t home(const struct ar_map *map, uint64_t key)
{
    return (size_t)(key * MULTIPLIER >> map->shift);
}

/* The index of the key's cell, or of the empty cell where a new key goes. */
static size_t find(const struct ar_map *map, uint64_t key)
{
    size_t at = home(map, key);
    for (uint64_t found; (found = *cell_at(map, at)) != key && found != AR_MAP_NO_KEY;)
        at = (at + 1) & (map->room - 1);
    return at;
}

enum ar_status ar_map_reserve(struct ar_map *map)
{
    if (2 * (map->count + 1) <= map->room)
        return AR_OK;
    struct ar_map larger = *map;
    larger.room = map->room ? map->room * 2 : FIRST_ROOM;
    larger.shift = map->room ? map->shift - 1 : FIRST_SHIFT;
    size_t bytes = larger.room * cell_bytes(&larger);
    larger.cells = map->host ? ar_host_alloc(map->host, bytes) : malloc(bytes);
    AR_TRY_HOST(larger.cells);
    ar_map_clear(&larger);
    for (size_t i = 0; i < map->room; i++) {
        const uint64_t *cell = cell_at(map, i);
        if (*cell != AR_MAP_NO_KEY)
            memcpy(cell_at(&larger, find(&larger, *cell)), cell, cell_bytes(map));
    }
    larger.count = map->count;
    ar_map_close(map);
    *map = larger;
    return AR_OK;
}

uint64_t *ar_map_find(const struct ar_map *map, uint64_t key)
{
    if (!map->count || key == AR_MAP_NO_KEY)
        return NULL;
    uint64_t *cell = cell_at(map, find(map, key));
    return *cell == key ? cell + 1 : NULL;
}

uint64_t *ar_map_add(struct ar_map *map, uint64_t key)
{
    if (key == AR_MAP_NO_KEY || ar_map_reserve(map) != AR_OK)
        return NULL;
    uint64_t *cell = cell_at(map, find(map, key));
    if (*cell != key) {
        memset(cell, 0, cell_bytes(map));
        *cell = key;
        map->count++;
    }
    return cell + 1;
}

bool ar_map_remove(struct ar_map *map, uint64_t key)
{
    if (!map->count || key == AR_MAP_NO_KEY)
        return false;
    size_t empty = find(map, key), mask = map->room - 1;
    if (*cell_at(map, empty) != key)
        return false;
    for (size_t at = (empty + 1) & mask; *cell_at(map, at) != AR_MAP_NO_KEY; at = (at + 1) & mask) {
        /* This cell may move back unless its home lies after the empty cell. */
        size_t from_home = (at - home(map, *cell_at(map, at))) & mask;
        if (from_home >= ((at - empty) & mask)) {
            memcpy(cell_at(map, empty), cell_at(map, at), cell_bytes(map));
            empty = at;
        }
    }
    *cell_at(map, empty) = AR_MAP_NO_KEY;
    map->count--;
    return true;
}

uint64_t *ar_map_next(const struct ar_map *map, size_t *at)
{
    while (*at < map->room) {
        uint64_t *cell = cell_at(map, (*at)++);
        if (*cell != AR_MAP_NO_KEY)
            return cell + 1;
    }
    return NULL;
}

enum ar_status ar_map_put(struct ar_map *map, uint64_t key, uint64_t value)
{
    uint64_t *found = ar_map_add(map, key);
    if (!found)
        return key == AR_MAP_NO_KEY ? AR_INVALID : AR_HOST_MEMORY;
    *found = value;
    return AR_OK;
}

bool ar_map_get(const struct ar_map *map, uint64_t key, uint64_t *value)
{
    const uint64_t *found = ar_map_find(map, key);
    if (found)
        *value = *found;
    return found != NULL;
}
