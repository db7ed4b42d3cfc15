#include "sim/device_memory/hazards.h"

#include <stdlib.h>
#include <string.h>

struct hazard {
    struct range range;
    uint32_t count;
    struct sim_use *uses;
    struct sim_use first; /* room for one, which is enough for most */
};

static void hazard_free(struct hazard *hazard)
{
    if (hazard->uses != &hazard->first)
        free(hazard->uses);
    free(hazard);
}

static struct hazard *hazard_from(const struct sim_hazards *self, uint64_t address)
{
    return (struct hazard *)ranges_from(&self->ranges, address);
}

void sim_hazards_close(struct sim_hazards *self)
{
    while (self->ranges.root) {
        struct hazard *hazard = (struct hazard *)self->ranges.root;
        ranges_remove(&self->ranges, &hazard->range);
        hazard_free(hazard);
    }
}

/* A new entry with room for `count` uses. */
static struct hazard *hazard_add(struct sim_hazards *self, uint64_t start, uint64_t end,
                                 const struct sim_use *uses, uint32_t count)
{
    struct hazard *hazard = calloc(1, sizeof *hazard);
    if (!hazard)
        return NULL;
    hazard->uses = &hazard->first;
    if (count > 1 && !(hazard->uses = malloc(count * sizeof *uses))) {
        free(hazard);
        return NULL;
    }
    memcpy(hazard->uses, uses, count * sizeof *uses);
    hazard->count = count;
    hazard->range.start = start;
    hazard->range.end = end;
    ranges_insert(&self->ranges, &hazard->range);
    return hazard;
}

/* Divides the entry that crosses `address`, if one does. */
static bool hazards_divide(struct sim_hazards *self, uint64_t address)
{
    struct hazard *hazard = hazard_from(self, address);
    if (!hazard || hazard->range.start >= address)
        return true;
    uint64_t end = hazard->range.end;
    hazard->range.end = address;
    if (hazard_add(self, address, end, hazard->uses, hazard->count))
        return true;
    hazard->range.end = end;
    return false;
}

/* Adds a use to an entry; a later use of the same stream and mapping takes the place of the
 * earlier one, which it comes after. */
static bool hazard_use(struct hazard *hazard, const struct sim_use *use)
{
    for (uint32_t i = 0; i < hazard->count; i++) {
        struct sim_use *old = &hazard->uses[i];
        if (old->stream == use->stream && old->mapping == use->mapping) {
            *old = *use;
            return true;
        }
    }
    struct sim_use *grown = malloc((hazard->count + 1) * sizeof *grown);
    if (!grown)
        return false;
    memcpy(grown, hazard->uses, hazard->count * sizeof *grown);
    grown[hazard->count++] = *use;
    if (hazard->uses != &hazard->first)
        free(hazard->uses);
    hazard->uses = grown;
    return true;
}

bool sim_hazards_use(struct sim_hazards *self, uint64_t start, uint64_t end,
                     const struct sim_use *use)
{
    if (!hazards_divide(self, start) || !hazards_divide(self, end))
        return false;
    while (start < end) {
        struct hazard *hazard = hazard_from(self, start);
        uint64_t next = hazard && hazard->range.start < end ? hazard->range.start : end;
        if (start < next) {
            if (!hazard_add(self, start, next, use, 1))
                return false;
            start = next;
        } else {
            if (!hazard_use(hazard, use))
                return false;
            start = hazard->range.end;
        }
    }
    return true;
}

bool sim_hazards_visit(const struct sim_hazards *self, uint64_t start, uint64_t end,
                       sim_hazard_visit *visit, void *argument)
{
    const struct hazard *hazard = hazard_from(self, start);
    while (hazard && hazard->range.start < end) {
        uint64_t from = hazard->range.start > start ? hazard->range.start : start;
        uint64_t to = hazard->range.end < end ? hazard->range.end : end;
        for (uint32_t i = 0; i < hazard->count; i++)
            if (!visit(argument, &hazard->uses[i], from, to))
                return false;
        hazard = hazard_from(self, hazard->range.end);
    }
    return true;
}

bool sim_hazards_forget(struct sim_hazards *self, uint64_t start, uint64_t end)
{
    if (!hazards_divide(self, start) || !hazards_divide(self, end))
        return false;
    struct hazard *hazard;
    while ((hazard = hazard_from(self, start)) && hazard->range.start < end) {
        ranges_remove(&self->ranges, &hazard->range);
        hazard_free(hazard);
    }
    return true;
}
