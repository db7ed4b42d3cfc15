/* The one place that knows which order of events is a trace. Every reader, the memory trace
 * and the writers send each event through it: it refuses what cannot be, puts into the event
 * what follows from those before (slot, stream, flags), counts, and hashes. */
#ifndef WORKLOADS_TRACE_CHECK_H
#define WORKLOADS_TRACE_CHECK_H

#include "workloads/io/sha256.h"
#include "workloads/trace/source.h"
#include "workloads/trace/tables.h"

#define TRACE_STREAM_LIMIT 65536u              /* stream ordinals lie below */
#define TRACE_EVENT_LIMIT  (1u << 20)          /* numbers of recorded events lie below */
#define TRACE_TIME_LIMIT   (UINT64_C(1) << 62) /* nanoseconds lie below */
#define TRACE_HASH_BATCH   64

struct trace_check_block;

struct trace_check {
    const struct trace_tables *tables; /* of the events; texts are there before their events */
    bool by_slot; /* events carry their slots, which are held to the blocks; else ids find them */
    bool
        free_requested_final; /* no completion follows a let-go: the slot is free again at the let-go */
    bool hash_off;            /* a later pass over what was hashed before */
    struct trace_check_block *blocks; /* by slot */
    size_t block_count, block_capacity;
    uint32_t free_slot; /* the most recently freed; UINT32_MAX: none */
    uint32_t *buckets;  /* slot + 1 by id; unused where by_slot */
    size_t bucket_count;
    uint8_t *recorded; /* a bit per event number */
    uint64_t time_ns;
    uint64_t kernel_ns;    /* of all kernels so far */
    uint32_t first_stream; /* that owned a block */
    bool several_streams;  /* others own, use or let go blocks, too */
    uint32_t block_stream; /* of the block that the event taken last names */
    uint64_t live_blocks, held_blocks, peak_live_blocks, peak_held_blocks;
    uint64_t live_bytes, free_requests;
    uint32_t keys_seen;
    uint64_t texts_seen;
    struct trace_info counts; /* the counted fields only */
    struct sha256 hash;
    struct trace_event batch[TRACE_HASH_BATCH];
    unsigned batch_count;
};

/* `tables` stays the caller's and lives longer than the check. */
void trace_check_start(struct trace_check *check, const struct trace_tables *tables, bool by_slot,
                       bool free_requested_final);

/* Takes the next event, whose kind, id, value, attributes and stream are set (on a let-go
 * TRACE_NO_STREAM means: that of the block). INVALID with a sentence that begins with what the
 * event is; the caller puts file and line before it. */
enum ar_status trace_check_event(struct trace_check *check, struct trace_event *event,
                                 struct ar_error *error) AR_STATUS_CHECKED;

/* Takes events that must be as trace_check_event leaves them. `*at` is the number in the
 * span of the one that is refused. */
enum ar_status trace_check_span(struct trace_check *check, const struct trace_event *events,
                                size_t count, size_t *at, struct ar_error *error) AR_STATUS_CHECKED;

/* Puts counts and hash into `info`; the other fields stay. */
void trace_check_finish(struct trace_check *check, struct trace_info *info);

void trace_check_close(struct trace_check *check);

#endif
