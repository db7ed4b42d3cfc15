#include "workloads/record/books.h"

#include <stdlib.h>

#include "workloads/trace/check.h"

enum ar_status books_open(struct books *books, uint32_t process_count)
{
    *books = (struct books){.next_stream = 1, .next_pool = 1};
    books->processes = calloc(process_count + 1u, sizeof *books->processes);
    books->process_count = process_count;
    return books->processes ? AR_OK : AR_HOST_MEMORY;
}

void books_close(struct books *books)
{
    for (uint32_t i = 0; books->processes && i < books->process_count; i++) {
        ar_map_close(&books->processes[i].blocks);
        ar_map_close(&books->processes[i].physicals);
        ar_map_close(&books->processes[i].streams);
        ar_map_close(&books->processes[i].events);
        ar_map_close(&books->processes[i].pools);
    }
    free(books->processes);
    free(books->blocks);
    free(books->free_blocks);
    free(books->free_events);
}

/* Room for one more item of `size` bytes; NULL: there is no memory. */
static void *room_for_one(void *items, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return items;
    size_t more = *capacity ? *capacity * 2 : 256;
    void *larger = realloc(items, more * size);
    if (larger)
        *capacity = more;
    return larger;
}

/* ---- blocks --------------------------------------------------------------------------------- */

enum ar_status books_block_add(struct books *books, uint32_t process, uint64_t address,
                               struct books_block block)
{
    size_t place = books->block_count;
    if (books->free_count) {
        place = books->free_blocks[--books->free_count];
    } else {
        struct books_block *blocks = room_for_one(books->blocks, books->block_count,
                                                  &books->block_capacity, sizeof *books->blocks);
        if (!blocks)
            return AR_HOST_MEMORY;
        books->blocks = blocks;
        books->block_count++;
    }
    books->blocks[place] = block;
    return ar_map_put(&books->processes[process].blocks, address, place);
}

bool books_block_take(struct books *books, uint32_t process, uint64_t address,
                      struct books_block *block)
{
    struct ar_map *blocks = &books->processes[process].blocks;
    uint64_t place;
    if (!blocks->room || !ar_map_get(blocks, address, &place))
        return false;
    *block = books->blocks[place];
    ar_map_remove(blocks, address);
    size_t *list = room_for_one(books->free_blocks, books->free_count, &books->free_capacity,
                                sizeof *books->free_blocks);
    if (list) { /* else the place is not used again */
        books->free_blocks = list;
        books->free_blocks[books->free_count++] = (size_t)place;
    }
    return true;
}

/* ---- streams -------------------------------------------------------------------------------- */

#define DEVICE_SHIFT 48u /* above any address of a program */
#define OWN_DEFAULT  (UINT64_C(1) << 63)

enum ar_status books_stream(struct books *books, uint32_t process, uint32_t thread,
                            const struct spool_record *record, uint32_t *ordinal)
{
    struct ar_map *streams = &books->processes[process].streams;
    bool own = record->flags & SPOOL_PER_THREAD;
    uint64_t key = own ? OWN_DEFAULT | thread : record->stream;
    key ^= (uint64_t)record->device << DEVICE_SHIFT;
    uint64_t known;
    if (streams->room && ar_map_get(streams, key, &known)) {
        *ordinal = (uint32_t)known;
        return AR_OK;
    }
    if (!own && !record->stream && !books->default_named) {
        books->default_named = true;
        *ordinal = 0;
    } else {
        *ordinal = books->next_stream;
        books->next_stream += books->next_stream < TRACE_STREAM_LIMIT - 1;
    }
    return ar_map_put(streams, key, *ordinal);
}

/* ---- events --------------------------------------------------------------------------------- */

enum ar_status books_event_recorded(struct books *books, uint32_t process, uint64_t handle,
                                    uint64_t *number)
{
    if (books_event_find(books, process, handle, number))
        return AR_OK;
    if (books->free_event_count)
        *number = books->free_events[--books->free_event_count];
    else if (books->next_event < TRACE_EVENT_LIMIT)
        *number = books->next_event++;
    else
        return AR_UNSUPPORTED;
    return ar_map_put(&books->processes[process].events, handle, *number);
}

bool books_event_find(const struct books *books, uint32_t process, uint64_t handle,
                      uint64_t *number)
{
    const struct ar_map *events = &books->processes[process].events;
    return events->room && ar_map_get(events, handle, number);
}

enum ar_status books_event_gone(struct books *books, uint32_t process, uint64_t handle)
{
    uint64_t number;
    if (!books_event_find(books, process, handle, &number))
        return AR_OK;
    uint64_t *list = room_for_one(books->free_events, books->free_event_count,
                                  &books->free_event_capacity, sizeof *list);
    if (!list)
        return AR_HOST_MEMORY;
    books->free_events = list;
    books->free_events[books->free_event_count++] = number;
    ar_map_remove(&books->processes[process].events, handle);
    return AR_OK;
}

/* ---- physical memory and pools -------------------------------------------------------------- */

enum ar_status books_physical_add(struct books *books, uint32_t process, uint64_t handle,
                                  bool pinned, uint64_t *number)
{
    *number = books->next_physical++;
    return ar_map_put(&books->processes[process].physicals, handle, *number * 2 + pinned);
}

bool books_physical_find(const struct books *books, uint32_t process, uint64_t handle,
                         uint64_t *number, bool *pinned)
{
    const struct ar_map *physicals = &books->processes[process].physicals;
    uint64_t value;
    if (!physicals->room || !ar_map_get(physicals, handle, &value))
        return false;
    *number = value / 2;
    *pinned = value % 2;
    return true;
}

enum ar_status books_pool(struct books *books, uint32_t process, uint64_t handle, uint32_t *number)
{
    struct ar_map *pools = &books->processes[process].pools;
    uint64_t known;
    if (pools->room && ar_map_get(pools, handle, &known)) {
        *number = (uint32_t)known;
        return AR_OK;
    }
    *number = books->next_pool++;
    return ar_map_put(pools, handle, *number);
}
