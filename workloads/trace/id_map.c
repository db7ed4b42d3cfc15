#include "workloads/trace/id_map.h"

#include <stdlib.h>

#define NONE        UINT64_MAX
#define FIRST_ROOM  64u
#define FIRST_SHIFT 58u
#define MULTIPLIER  UINT64_C(0x9e3779b97f4a7c15) /* 2^64 / the golden ratio */

void id_map_close(struct id_map *map)
{
    free(map->cells);
    *map = (struct id_map){0};
}

void id_map_clear(struct id_map *map)
{
    for (size_t i = 0; i < map->room; i++)
        map->cells[i].id = NONE;
    map->count = 0;
}

static size_t home(const struct id_map *map, uint64_t id)
{
    return (size_t)(id * MULTIPLIER >> map->shift);
}

/* The cell of the id, or the one that it would take. */
static size_t find(const struct id_map *map, uint64_t id)
{
    size_t at = home(map, id);
    while (map->cells[at].id != NONE && map->cells[at].id != id)
        at = (at + 1) & (map->room - 1);
    return at;
}

static enum ar_status grow(struct id_map *map)
{
    struct id_map larger = {.room = map->room ? map->room * 2 : FIRST_ROOM,
                            .shift = map->room ? map->shift - 1 : FIRST_SHIFT,
                            .count = map->count};
    larger.cells = malloc(larger.room * sizeof *larger.cells);
    if (!larger.cells)
        return AR_HOST_MEMORY;
    for (size_t i = 0; i < larger.room; i++)
        larger.cells[i].id = NONE;
    for (size_t i = 0; i < map->room; i++)
        if (map->cells[i].id != NONE)
            larger.cells[find(&larger, map->cells[i].id)] = map->cells[i];
    free(map->cells);
    *map = larger;
    return AR_OK;
}

enum ar_status id_map_put(struct id_map *map, uint64_t id, uint64_t value)
{
    if (2 * (map->count + 1) > map->room) {
        enum ar_status status = grow(map);
        if (status != AR_OK)
            return status;
    }
    size_t at = find(map, id);
    map->count += map->cells[at].id == NONE;
    map->cells[at] = (struct id_map_cell){.id = id, .value = value};
    return AR_OK;
}

bool id_map_get(const struct id_map *map, uint64_t id, uint64_t *value)
{
    if (!map->count)
        return false;
    const struct id_map_cell *cell = &map->cells[find(map, id)];
    *value = cell->value;
    return cell->id == id;
}

void id_map_remove(struct id_map *map, uint64_t id)
{
    if (!map->count)
        return;
    size_t free_block = find(map, id), mask = map->room - 1;
    if (map->cells[free_block].id == NONE)
        return;
    map->count--;
    for (size_t at = (free_block + 1) & mask; map->cells[at].id != NONE; at = (at + 1) & mask) {
        /* It may move where its home does not lie behind the hole. */
        size_t from_home = (at - home(map, map->cells[at].id)) & mask;
        if (from_home >= ((at - free_block) & mask)) {
            map->cells[free_block] = map->cells[at];
            free_block = at;
        }
    }
    map->cells[free_block].id = NONE;
}
