/* The texts of a trace, each stored once, and its two tables: the sets of keys, by index from 1,
 * and the texts of labels and notes, by index from 0, both in the order of first use. */
#pragma once

#include "workloads/trace/source.h"

/* A pool that stores each text once: labels, notes, keys. Indexes and pointers are valid until the
 * pool is closed; indexes count from 0 in the order of first appearance. A zeroed struct is an
 * empty pool. */
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

void texts_close(struct texts *texts);

/* The index of a text; false if it is not in the pool. */
bool texts_find(const struct texts *texts, const char *text, size_t length, uint32_t *index);

/* The index of the text, which is copied into the pool if it is new. HOST_MEMORY, or INVALID beyond
 * 2^32 - 2 texts. */
enum ar_status texts_intern(struct texts *texts, const char *text, size_t length, uint32_t *index,
                            struct ar_error *error);

/* Maximum bytes of a label, a note or a set of keys: a line has room for it. */
#define TRACE_TEXT_LIMIT 65000u

struct trace_tables {
    struct texts keys;    /* each set of keys in canonical form; item 0 belongs to index 1 */
    struct texts strings; /* the memory of tags and unknown keys */
    struct trace_attributes **blocks;
    size_t block_count, block_room;
    struct texts texts;
};

/* A zeroed struct is a pair of empty tables. */
void trace_tables_close(struct trace_tables *tables);

/* The index of the keys in `text`, "pool=1,tag=x" in any order; 0 for an empty text. INVALID if a
 * key or value is invalid, or a key is given twice. */
enum ar_status trace_tables_keys(struct trace_tables *tables, const char *text, size_t length,
                                 uint32_t *index, struct ar_error *error);

/* The same from a struct; NULL gives 0. */
enum ar_status trace_tables_attributes(struct trace_tables *tables,
                                       const struct trace_attributes *attributes, uint32_t *index,
                                       struct ar_error *error);

/* Adds the keys and the text of an event of `source` to these tables and sets their indexes in the
 * event; `attributes`, unless NULL, replaces the event's own keys. */
enum ar_status trace_tables_take(struct trace_tables *tables, struct trace_source *source,
                                 struct trace_event *event,
                                 const struct trace_attributes *attributes, struct ar_error *error);

/* The keys by index; valid until the tables are closed. No keys for 0 and beyond the last index. */
const struct trace_attributes *trace_tables_at(const struct trace_tables *tables, uint32_t index);

/* The canonical text of the keys, "" for index 0. */
const char *trace_tables_keys_text(const struct trace_tables *tables, uint32_t index);

/* The text of a label or note; "" beyond the last index. */
const char *trace_tables_text(const struct trace_tables *tables, uint64_t index);

/* Adds the text of a label or note. INVALID if it is no UTF-8, or has a control byte. */
enum ar_status trace_tables_add_text(struct trace_tables *tables, const char *text, size_t length,
                                     uint64_t *index, struct ar_error *error);
