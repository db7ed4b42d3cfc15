/* From the id of a block to a number: what those need who follow blocks by id and not by slot.
 *
 * 1. Open addressing with linear probing over a power of two of cells, at most half of them taken;
 *    the cell is the upper bits of a product with an odd constant (Knuth, "The Art of Computer
 *    Programming" 3, 6.4).
 * 2. Removal moves later entries of the run back (Knuth's algorithm R), so memory is that of the
 *    most ids held at once. */
#ifndef WORKLOADS_TRACE_ID_MAP_H
#define WORKLOADS_TRACE_ID_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/base/status.h"

struct id_map_cell {
    uint64_t id, value; /* id UINT64_MAX: not taken */
};

/* A zeroed struct is an empty map. */
struct id_map {
    struct id_map_cell *cells;
    size_t room, count; /* room: a power of two, or 0 */
    unsigned shift;     /* 64 - log2(room) */
};

void id_map_close(struct id_map *map);
void id_map_clear(struct id_map *map);

/* Adds an id that is not there, or gives one that is there another value. HOST_MEMORY: the map
 * is as it was. */
enum ar_status id_map_put(struct id_map *map, uint64_t id, uint64_t value) AR_STATUS_CHECKED;
bool id_map_get(const struct id_map *map, uint64_t id, uint64_t *value);
/* Does nothing where it is not there. */
void id_map_remove(struct id_map *map, uint64_t id);

#endif
