#include "tests/support/late_memory.h"

#include "allocators/base/array.h"
#include "tests/support/test.h"

#define PHYSICAL_OF_HANDLES (UINT64_C(1) << 62) /* above every address */
#define NOBODY              UINT64_MAX

void late_memory_open(struct late_memory *memory)
{
    *memory = (struct late_memory){.next_physical = PHYSICAL_OF_HANDLES};
}

void late_memory_close(struct late_memory *memory)
{
    free(memory->written.items);
    free(memory->mappings.items);
    free(memory->handles.items);
}

/* The index of the first one that ends behind `address`. */
static size_t find(const struct late_extents *extents, uint64_t address)
{
    return ar_array_above(extents->items, extents->count, sizeof *extents->items,
                          offsetof(struct late_extent, end), address);
}

static void insert(struct late_extents *extents, size_t at, struct late_extent extent)
{
    assert_true(ar_array_make_room(&extents->items, extents->count, &extents->room,
                                   sizeof *extents->items));
    AR_ARRAY_INSERT(extents->items, extents->count, at, extent);
}

/* Cuts [start, end) out. */
static void clear(struct late_extents *extents, uint64_t start, uint64_t end)
{
    size_t at = find(extents, start);
    while (at < extents->count && extents->items[at].start < end) {
        struct late_extent old = extents->items[at];
        AR_ARRAY_REMOVE(extents->items, extents->count, at);
        if (old.start < start)
            insert(extents, at++, (struct late_extent){old.start, start, old.block, old.offset});
        if (old.end > end)
            insert(extents, at,
                   (struct late_extent){end, old.end, old.block, old.offset + (end - old.start)});
        if (old.end > end)
            return;
    }
}

static void put(struct late_extents *extents, struct late_extent extent)
{
    clear(extents, extent.start, extent.end);
    insert(extents, find(extents, extent.start), extent);
}

void late_memory_handle(struct late_memory *memory, uint64_t handle, uint64_t bytes)
{
    put(&memory->handles, (struct late_extent){handle, handle + 1, memory->next_physical, bytes});
    memory->next_physical += bytes;
}

void late_memory_map(struct late_memory *memory, uint64_t address, uint64_t handle)
{
    const struct late_extent *of = &memory->handles.items[find(&memory->handles, handle)];
    assert_int_equal(of->start, handle);
    put(&memory->mappings, (struct late_extent){address, address + of->offset, of->block, 0});
}

void late_memory_unmap(struct late_memory *memory, uint64_t address, uint64_t bytes)
{
    clear(&memory->mappings, address, address + bytes);
}

void late_memory_each(const struct late_memory *memory, uint64_t address, uint64_t bytes,
                      void (*visit)(void *argument, uint64_t physical, uint64_t bytes, uint64_t at),
                      void *argument)
{
    const struct late_extents *mappings = &memory->mappings;
    uint64_t at = 0;
    for (size_t i = find(mappings, address); at < bytes; i++) {
        bool more = i < mappings->count && mappings->items[i].start < address + bytes;
        uint64_t next = more ? mappings->items[i].start : address + bytes;
        uint64_t here = address + at;
        if (next > here) { /* not mapped: a driver allocation */
            visit(argument, here, next - here, at);
            at = next - address;
        }
        if (!more)
            continue;
        const struct late_extent *mapping = &mappings->items[i];
        uint64_t start = address + at;
        uint64_t end = mapping->end < address + bytes ? mapping->end : address + bytes;
        visit(argument, mapping->block + mapping->offset + (start - mapping->start), end - start,
              at);
        at = end - address;
    }
}

struct writing {
    struct late_memory *memory;
    uint64_t block;
};

static void write_one(void *argument, uint64_t physical, uint64_t bytes, uint64_t at)
{
    struct writing *writing = argument;
    put(&writing->memory->written,
        (struct late_extent){physical, physical + bytes, writing->block, at});
}

void late_memory_write(struct late_memory *memory, uint64_t address, uint64_t bytes, uint64_t block)
{
    struct writing writing = {memory, block};
    late_memory_each(memory, address, bytes, write_one, &writing);
}

struct reading {
    const struct late_memory *memory;
    uint64_t block, wrong, offset, other;
};

static void wrong(struct reading *reading, uint64_t bytes, uint64_t offset, uint64_t other)
{
    if (bytes && !reading->wrong) {
        reading->offset = offset;
        reading->other = other;
    }
    reading->wrong += bytes;
}

static void read_one(void *argument, uint64_t physical, uint64_t bytes, uint64_t at)
{
    struct reading *reading = argument;
    const struct late_extents *written = &reading->memory->written;
    uint64_t here = physical, end = physical + bytes;
    for (size_t i = find(written, physical); i < written->count && here < end; i++) {
        const struct late_extent *extent = &written->items[i];
        if (extent->start >= end)
            break;
        if (extent->start > here)
            wrong(reading, extent->start - here, at + (here - physical), NOBODY);
        uint64_t from = extent->start > here ? extent->start : here;
        uint64_t to = extent->end < end ? extent->end : end;
        uint64_t offset = at + (from - physical);
        if (extent->block != reading->block || extent->offset + (from - extent->start) != offset)
            wrong(reading, to - from, offset, extent->block);
        here = to;
    }
    wrong(reading, end - here, at + (here - physical), NOBODY);
}

uint64_t late_memory_wrong(const struct late_memory *memory, uint64_t address, uint64_t bytes,
                           uint64_t block, uint64_t *offset, uint64_t *other)
{
    struct reading reading = {.memory = memory, .block = block};
    late_memory_each(memory, address, bytes, read_one, &reading);
    *offset = reading.offset;
    *other = reading.other;
    return reading.wrong;
}
