#include "bench/host/address_map.h"

#define FIRST_BITS 6u

void address_map_open(struct address_map *map, struct ar_host *host)
{
    *map = (struct address_map){.host = host};
}

void address_map_close(struct address_map *map)
{
    ar_host_free(map->host, map->entries, map->room * sizeof *map->entries);
    *map = (struct address_map){.host = map->host};
}

static size_t home(const struct address_map *map, uint64_t address)
{
    return (size_t)((address * UINT64_C(0x9e3779b97f4a7c15)) >> map->shift);
}

static size_t next(const struct address_map *map, size_t place)
{
    return (place + 1) & (map->room - 1);
}

/* Where the address is, or the free place where its run ends. */
static size_t probe(const struct address_map *map, uint64_t address)
{
    size_t place = home(map, address);
    while (map->entries[place].address != address &&
           map->entries[place].address != ADDRESS_MAP_NONE)
        place = next(map, place);
    return place;
}

enum ar_status address_map_reserve(struct address_map *map)
{
    if (map->room && 2 * (map->count + 1) <= map->room)
        return AR_OK;
    struct address_map grown = {
        .host = map->host,
        .room = map->room ? 2 * map->room : (size_t)1 << FIRST_BITS,
        .count = map->count,
        .shift = map->room ? map->shift - 1 : 64 - FIRST_BITS,
    };
    grown.entries = ar_host_alloc(map->host, grown.room * sizeof *grown.entries);
    if (!grown.entries)
        return AR_HOST_MEMORY;
    for (size_t i = 0; i < grown.room; i++)
        grown.entries[i].address = ADDRESS_MAP_NONE;
    for (size_t i = 0; i < map->room; i++)
        if (map->entries[i].address != ADDRESS_MAP_NONE)
            grown.entries[probe(&grown, map->entries[i].address)] = map->entries[i];
    ar_host_free(map->host, map->entries, map->room * sizeof *map->entries);
    *map = grown;
    return AR_OK;
}

enum ar_status address_map_insert(struct address_map *map, const struct ar_policy_block *block)
{
    if (block->address == ADDRESS_MAP_NONE)
        return AR_CORRUPT;
    size_t place = probe(map, block->address);
    if (map->entries[place].address != ADDRESS_MAP_NONE)
        return AR_CORRUPT;
    map->entries[place] = *block;
    map->count++;
    return AR_OK;
}

const struct ar_policy_block *address_map_find(const struct address_map *map, uint64_t address)
{
    if (!map->count || address == ADDRESS_MAP_NONE)
        return NULL;
    size_t place = probe(map, address);
    return map->entries[place].address == address ? &map->entries[place] : NULL;
}

/* Rule 3. An entry may move back to `empty` unless its home lies after it. */
static void close_gap(struct address_map *map, size_t empty)
{
    for (size_t i = next(map, empty); map->entries[i].address != ADDRESS_MAP_NONE;
         i = next(map, i)) {
        size_t from_home = (i - home(map, map->entries[i].address)) & (map->room - 1);
        size_t from_empty = (i - empty) & (map->room - 1);
        if (from_home < from_empty)
            continue;
        map->entries[empty] = map->entries[i];
        empty = i;
    }
    map->entries[empty].address = ADDRESS_MAP_NONE;
}

bool address_map_remove(struct address_map *map, uint64_t address, struct ar_policy_block *out)
{
    if (!map->count || address == ADDRESS_MAP_NONE)
        return false;
    size_t place = probe(map, address);
    if (map->entries[place].address != address)
        return false;
    *out = map->entries[place];
    close_gap(map, place);
    map->count--;
    return true;
}
