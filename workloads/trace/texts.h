/* A pool that stores each text once: labels, notes, keys. Indexes and pointers are valid until the
 * pool is closed; indexes count from 0 in the order of first appearance. */
#ifndef WORKLOADS_TRACE_TEXTS_H
#define WORKLOADS_TRACE_TEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/base/status.h"

struct texts {
    const char **items;
    uint32_t *hashes;
    size_t count, capacity;
    uint32_t *buckets; /* index + 1 of the text; 0: free */
    size_t bucket_count;
    char *chunk; /* the latest chunk; each starts with a pointer to the one before */
    size_t chunk_used, chunk_bytes;
    uint64_t total_bytes; /* of all texts with a newline each */
};

/* A zeroed struct is an empty pool. */
void texts_close(struct texts *texts);

/* The index of a text; false if it is not in the pool. */
bool texts_find(const struct texts *texts, const char *text, size_t length, uint32_t *index);

/* The index of the text, which is copied into the pool if it is new. HOST_MEMORY, or INVALID beyond
 * 2^32 - 2 texts. */
enum ar_status texts_intern(struct texts *texts, const char *text, size_t length, uint32_t *index,
                            struct ar_error *error) AR_STATUS_CHECKED;

#endif
