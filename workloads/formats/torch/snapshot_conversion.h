/* What the parts of the conversion of a snapshot share: snapshot_trace.c has the states at the start and
 * at the end, snapshot_events.c what happened in between, snapshot_guesses.c what is said of it. */
#ifndef WORKLOADS_FORMATS_TORCH_SNAPSHOT_CONVERSION_H
#define WORKLOADS_FORMATS_TORCH_SNAPSHOT_CONVERSION_H

#include "workloads/formats/torch/snapshot_trace.h"

struct conversion {
    struct snapshot_tree *tree;
    struct snapshot_world *world; /* in hand */
    struct snapshot_world *worlds;
    size_t world_count;
    const struct snapshot_marks *marks;
    size_t next_mark;
    const size_t *at; /* by world: its entries that were taken, that in hand too */
    struct trace_memory *memory;
    struct import_report *report;
    uint64_t next_id, begun_us, now_us, events;
    bool timed;            /* a time was written */
    struct ar_map *places; /* by world: 2 * id + 1 where it is let go, by address */
    uint32_t *streams;     /* ordinal + 1 by device and index */
    uint32_t stream_count;
    uint32_t pools[SNAPSHOT_POOLS_MOST]; /* ordinal + 1 */
    uint32_t pool_count;
    uint64_t last_request; /* events from the last request on */
    uint64_t missing_frees, late;
    uint64_t early_marks, unplaced_marks; /* before the first entry; without a place */
};

enum ar_status conversion_no_memory(struct ar_error *error);

/* Which of the devices is in hand, and the map of its blocks. */
size_t conversion_world(const struct conversion *c);
struct ar_map *conversion_places(const struct conversion *c);

/* The trace's ordinals of the tree's streams and pools. */
uint32_t conversion_stream(struct conversion *c, unsigned stream);
uint32_t conversion_pool(struct conversion *c, unsigned pool);

/* The keys of a request. */
struct trace_attributes conversion_keys(struct conversion *c, unsigned pool, uint32_t tag);

enum ar_status conversion_append(struct conversion *c, struct trace_event event, const char *text,
                                 struct ar_error *error) AR_STATUS_CHECKED;
enum ar_status conversion_note(struct conversion *c, const char *text,
                               struct ar_error *error) AR_STATUS_CHECKED;
/* "verb,1,2,3" */
enum ar_status conversion_note_numbers(struct conversion *c, const char *verb,
                                       const uint64_t *numbers, size_t count,
                                       struct ar_error *error) AR_STATUS_CHECKED;

/* Appends all entries of all devices, and the marks. */
enum ar_status conversion_events(struct conversion *c, struct ar_error *error) AR_STATUS_CHECKED;

/* Once, after all else: what was guessed goes to the report, with the counts of the devices. */
void conversion_say_guesses(const struct conversion *c);

#endif
