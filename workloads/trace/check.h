/* The check of every event of a trace, for readers, traces in memory and writers: it refuses
 * invalid events, sets the fields that follow from earlier events (slot, stream, flags), counts,
 * and hashes. */
#pragma once

#include "allocators/base/map.h"
#include "workloads/io/sha256.h"
#include "workloads/trace/tables.h"

#define TRACE_STREAM_LIMIT 65536u              /* stream ordinals are below */
#define TRACE_EVENT_LIMIT  (1u << 20)          /* numbers of recorded events are below */
#define TRACE_TIME_LIMIT   (UINT64_C(1) << 62) /* nanoseconds are below */
#define TRACE_HASH_BATCH   64

struct trace_check_block;

struct trace_check {
    const struct trace_tables *tables; /* of the events; texts are added before their events */
    bool by_slot;              /* events have their slots, which are checked; else ids find them */
    bool free_requested_final; /* no completion follows a free request, which then frees the slot */
    bool hash_off;             /* a later pass over events that were hashed before */
    struct trace_check_block *blocks; /* by slot */
    size_t block_count, block_capacity;
    uint32_t free_slot;       /* the most recently freed; UINT32_MAX: none */
    struct ar_map slot_of_id; /* unused if by_slot */
    uint8_t *recorded;        /* a bit per event number */
    uint64_t time_ns;
    uint64_t kernel_ns;    /* of all kernels so far */
    uint32_t first_stream; /* of the first request */
    bool several_streams;  /* there are requests, uses or free requests on others */
    uint32_t block_stream; /* of the block of the latest event */
    uint64_t live_blocks, held_blocks, peak_live_blocks, peak_held_blocks;
    uint64_t live_bytes, card_bytes, free_requests; /* card: live, without pinned host memory */
    uint32_t keys_seen;
    uint32_t gpu_keys; /* 1 + the keys of the latest request whose GPU was counted; 0: none */
    bool gpu_pinned;   /* that request is of pinned host memory */
    uint64_t texts_seen;
    struct trace_info counts; /* the counted fields only */
    struct sha256 hash;
    struct trace_event batch[TRACE_HASH_BATCH];
    unsigned batch_count;
};

/* `tables` belongs to the caller and must outlive the check. */
void trace_check_start(struct trace_check *check, const struct trace_tables *tables, bool by_slot,
                       bool free_requested_final);

/* Checks the next event, whose kind, id, value, attributes and stream are set (on a free request
 * TRACE_NO_STREAM stands for the block's stream). INVALID with a sentence; the caller puts file and
 * line before it. */
enum ar_status trace_check_event(struct trace_check *check, struct trace_event *event,
                                 struct ar_error *error);

/* Checks events that must be as trace_check_event leaves them. `*at` is the index of the refused
 * one in the span. */
enum ar_status trace_check_span(struct trace_check *check, const struct trace_event *events,
                                size_t count, size_t *at, struct ar_error *error);

/* Reads driver,local,BYTES or driver,took,BYTES; false: the text is neither. A note that is checked
 * is one of them. */
bool trace_driver_note(const char *text, bool *is_local, uint64_t *bytes);

/* Writes counts and hash to `info`; the other fields stay. */
void trace_check_finish(struct trace_check *check, struct trace_info *info);

/* Whether the events have free requests and no completion follows any of them. */
static inline bool trace_check_is_final(const struct trace_check *check)
{
    return check->free_requests && !check->counts.has_split_frees;
}

void trace_check_close(struct trace_check *check);
