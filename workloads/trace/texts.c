/* A pool of texts by index. The bytes are in chunks that never move; a hash table with linear
 * probing, at most half full, finds a text by its FNV-1a hash. */
#include "workloads/trace/texts.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 1 << 16 };

static uint32_t hash_of(const char *text, size_t length)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    return hash;
}

void texts_close(struct texts *texts)
{
    for (char *chunk = texts->chunk, *before; chunk; chunk = before) {
        memcpy(&before, chunk, sizeof before);
        free(chunk);
    }
    free(texts->items);
    free(texts->hashes);
    free(texts->buckets);
    *texts = (struct texts){0};
}

static bool find(const struct texts *texts, const char *text, size_t length, uint32_t hash,
                 size_t *bucket)
{
    size_t mask = texts->bucket_count - 1;
    for (*bucket = hash & mask; texts->buckets[*bucket]; *bucket = (*bucket + 1) & mask) {
        uint32_t index = texts->buckets[*bucket] - 1;
        if (texts->hashes[index] == hash && !strncmp(texts->items[index], text, length) &&
            !texts->items[index][length])
            return true;
    }
    return false;
}

bool texts_find(const struct texts *texts, const char *text, size_t length, uint32_t *index)
{
    size_t bucket;
    if (!texts->bucket_count || !find(texts, text, length, hash_of(text, length), &bucket))
        return false;
    *index = texts->buckets[bucket] - 1;
    return true;
}

static bool grow(struct texts *texts)
{
    size_t capacity = texts->capacity ? texts->capacity * 2 : 32;
    const char **items = realloc(texts->items, capacity * sizeof *items);
    if (items)
        texts->items = items;
    uint32_t *hashes = realloc(texts->hashes, capacity * sizeof *hashes);
    if (hashes)
        texts->hashes = hashes;
    uint32_t *buckets = calloc(capacity * 2, sizeof *buckets);
    if (!items || !hashes || !buckets) {
        free(buckets);
        return false;
    }
    free(texts->buckets);
    texts->buckets = buckets;
    texts->bucket_count = capacity * 2;
    texts->capacity = capacity;
    for (uint32_t i = 0; i < texts->count; i++) {
        size_t at = hashes[i] & (texts->bucket_count - 1);
        while (buckets[at])
            at = (at + 1) & (texts->bucket_count - 1);
        buckets[at] = i + 1;
    }
    return true;
}

static char *room_for(struct texts *texts, size_t bytes)
{
    if (!texts->chunk || texts->chunk_bytes - texts->chunk_used < bytes) {
        size_t size = sizeof(char *) + bytes;
        size = size < CHUNK_BYTES ? CHUNK_BYTES : size;
        char *chunk = malloc(size);
        if (!chunk)
            return NULL;
        memcpy(chunk, &texts->chunk, sizeof texts->chunk);
        texts->chunk = chunk;
        texts->chunk_bytes = size;
        texts->chunk_used = sizeof(char *);
    }
    char *room = texts->chunk + texts->chunk_used;
    texts->chunk_used += bytes;
    return room;
}

enum ar_status texts_intern(struct texts *texts, const char *text, size_t length, uint32_t *index,
                            struct ar_error *error)
{
    uint32_t hash = hash_of(text, length);
    size_t bucket = 0;
    if (texts->count && find(texts, text, length, hash, &bucket)) {
        *index = texts->buckets[bucket] - 1;
        return AR_OK;
    }
    if (texts->count >= UINT32_MAX - 1)
        return ar_error_set(error, AR_INVALID, "more than %u different texts in one trace",
                            UINT32_MAX - 1);
    if (texts->count == texts->capacity && !grow(texts))
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for the trace's texts");
    char *copy = room_for(texts, length + 1);
    if (!copy)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for the trace's texts");
    memcpy(copy, text, length);
    copy[length] = 0;
    (void)find(texts, text, length, hash, &bucket);
    *index = (uint32_t)texts->count++;
    texts->items[*index] = copy;
    texts->hashes[*index] = hash;
    texts->buckets[bucket] = *index + 1;
    texts->total_bytes += length + 1;
    return AR_OK;
}
