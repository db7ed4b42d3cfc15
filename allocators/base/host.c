#include "allocators/base/host.h"

#include <stdlib.h>
#include <string.h>

void *ar_host_alloc(struct ar_host *host, size_t bytes)
{
    bool fails = ++host->calls == host->fail_at;
    void *memory = fails ? NULL : calloc(1, bytes ? bytes : 1);
    host->failed += !memory;
    if (!memory)
        return NULL;
    host->now_bytes += bytes;
    if (host->now_bytes > host->peak_bytes)
        host->peak_bytes = host->now_bytes;
    return memory;
}

void ar_host_free(struct ar_host *host, void *memory, size_t bytes)
{
    if (!memory)
        return;
    host->now_bytes -= bytes;
    free(memory);
}

void *ar_host_grow(struct ar_host *host, void *memory, size_t old_count, size_t new_count,
                   size_t element_bytes)
{
    bool fails = ++host->calls == host->fail_at || new_count > SIZE_MAX / element_bytes;
    size_t old_bytes = old_count * element_bytes;
    size_t new_bytes = new_count * element_bytes;
    char *grown = fails     ? NULL
                  : !memory ? calloc(1, new_bytes ? new_bytes : 1) /* large: zeroed by the system */
                            : realloc(memory, new_bytes ? new_bytes : 1);
    host->failed += !grown;
    if (!grown)
        return NULL;
    for (size_t i = old_bytes; memory && i < new_bytes; i++)
        grown[i] = 0;
    host->now_bytes += new_bytes - old_bytes;
    if (host->now_bytes > host->peak_bytes)
        host->peak_bytes = host->now_bytes;
    return grown;
}

bool ar_host_extend(struct ar_host *host, void *array, uint32_t *room, uint32_t new_room,
                    size_t element_bytes)
{
    void *memory;
    memcpy(&memory, array, sizeof memory); /* a pointer to any type */
    memory = ar_host_grow(host, memory, *room, new_room, element_bytes);
    if (!memory)
        return false;
    memcpy(array, &memory, sizeof memory);
    *room = new_room;
    return true;
}
