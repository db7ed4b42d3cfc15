#include "bench/micro/sections.h"

#include <stdlib.h>
#include <string.h>

#include "allocators/registry.h"

struct grid *sections_grid(struct sections *sections, const char *title, const char *corner,
                           const char *counter)
{
    struct grid *grid =
        sections->grid_count < SECTION_GRIDS ? grid_make(title, corner, counter) : NULL;
    if (grid)
        sections->grids[sections->grid_count++] = grid;
    else
        sections->full = true;
    return grid;
}

void *sections_cell(struct sections *sections, const void *cell, size_t bytes)
{
    void *copy = sections->cell_count < SECTION_CELLS ? malloc(bytes) : NULL;
    if (!copy) {
        sections->full = true;
        return NULL;
    }
    memcpy(copy, cell, bytes);
    sections->cells[sections->cell_count++] = copy;
    return copy;
}

void sections_close(struct sections *sections)
{
    for (size_t i = 0; i < sections->grid_count; i++)
        free(sections->grids[i]);
    for (size_t i = 0; i < sections->cell_count; i++)
        free(sections->cells[i]);
    free(sections->cold_buffer);
    ar_device_close(sections->device);
    *sections = (struct sections){0};
}

const struct ar_policy_ops *sections_policy(size_t index)
{
    const struct ar_policy_ops *ops;
    for (size_t i = 0; (ops = registry_policy(i)); i++)
        if (!(ops->capabilities & AR_POLICY_OFFLINE) && index-- == 0)
            return ops;
    return NULL;
}
