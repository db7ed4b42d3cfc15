/* Open addressing with linear probing; an entry that is given up keeps its place until the table
 * is made anew, when three quarters of it are used. */
#include "sim/explain/births.h"

#include <stdlib.h>

enum births_state { BIRTHS_EMPTY, BIRTHS_LIVE, BIRTHS_GONE };

struct births_entry {
    uint64_t address;
    struct birth birth;
    enum births_state state;
};

static size_t home(const struct births *self, uint64_t address)
{
    return (size_t)((address * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & (self->room - 1);
}

static struct births_entry *find(const struct births *self, uint64_t address)
{
    if (!self->room)
        return NULL;
    for (size_t at = home(self, address);; at = (at + 1) & (self->room - 1)) {
        struct births_entry *entry = &self->entries[at];
        if (entry->state == BIRTHS_EMPTY)
            return NULL;
        if (entry->state == BIRTHS_LIVE && entry->address == address)
            return entry;
    }
}

static void put(struct births *self, uint64_t address, const struct birth *birth)
{
    size_t at = home(self, address);
    while (self->entries[at].state != BIRTHS_EMPTY)
        at = (at + 1) & (self->room - 1);
    self->entries[at] = (struct births_entry){address, *birth, BIRTHS_LIVE};
    self->used++;
    self->live++;
}

static bool renew(struct births *self)
{
    struct births larger = {.room = 1024};
    while (larger.room < 4 * (self->live + 1))
        larger.room *= 2;
    larger.entries = calloc(larger.room, sizeof *larger.entries);
    if (!larger.entries)
        return false;
    for (size_t i = 0; i < self->room; i++)
        if (self->entries[i].state == BIRTHS_LIVE)
            put(&larger, self->entries[i].address, &self->entries[i].birth);
    free(self->entries);
    *self = larger;
    return true;
}

bool births_add(struct births *self, uint64_t address, const struct birth *birth)
{
    struct births_entry *entry = find(self, address);
    if (entry) {
        entry->birth = *birth;
        return true;
    }
    if (4 * (self->used + 1) > 3 * self->room && !renew(self))
        return false;
    put(self, address, birth);
    return true;
}

void births_remove(struct births *self, uint64_t address)
{
    struct births_entry *entry = find(self, address);
    if (!entry)
        return;
    entry->state = BIRTHS_GONE;
    self->live--;
}

const struct birth *births_find(const struct births *self, uint64_t address)
{
    const struct births_entry *entry = find(self, address);
    return entry ? &entry->birth : NULL;
}

void births_close(struct births *self)
{
    free(self->entries);
    *self = (struct births){0};
}
